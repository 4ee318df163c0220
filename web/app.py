"""The application factory: everything a request needs hangs on the application, nothing on the module."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from kb.db import open_reader
from kb.reader import Reader
from web import errors, openapi
from web import warm as warming
from web.assets import Assets
from web.cache import ResponseCache
from web.deps import Library
from web.render import package_version
from web.traffic import CountRequests, Traffic

DESCRIPTION = """Which inference-optimization techniques pay off for this model, on this hardware, under this
workload, by how much, why, and who showed it.

Units stand in the names (`_ms`, `_bytes`, `_tok_s`); unknown numbers are `null`. Every error has one shape:
`{"error": {"code", "message", "hint", "field"}}`. Lists page with `limit` (at most 200) and `cursor`; `next` and the
`Link` header lead on. Responses carry an ETag made of the data version and the URL."""


def create_app(
    url: str | None = None, *, reader_factory: Callable[[], Reader] | None = None, warm: bool = True
) -> FastAPI:
    """The web interface over one database, which must exist (the command line builds it on first use).

    `reader_factory` replaces `url` where the caller opens connections itself; it is called once per thread. With
    `warm`, what takes seconds is computed in the background as soon as the server is up.
    """
    library, traffic = Library(reader_factory or (lambda: open_reader(url))), Traffic()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stop = threading.Event()
        worker = threading.Thread(
            target=warming.warm, args=(app, library, stop, traffic), name="kb-warm", daemon=True
        )
        if warm:
            worker.start()
        yield
        stop.set()
        if warm:
            worker.join(5)
        library.close()

    app = FastAPI(
        title="kb: optimizing LLM inference",
        description=DESCRIPTION,
        version=package_version(),
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # both would load their scripts from elsewhere; /api is our own reference
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.library = library
    app.state.assets = Assets()
    app.add_middleware(ResponseCache, library=library)
    app.add_middleware(CountRequests, traffic=traffic)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]
    errors.install(app)
    add_routes(app)

    @app.get("/static/{name}", include_in_schema=False)
    def static(request: Request, name: str) -> Response:
        found = app.state.assets.respond(name, request)
        if found is None:
            raise HTTPException(404)
        return found

    return app


def add_routes(app: FastAPI) -> None:
    from web import (
        api,
        api_graph,
        api_lists,
        pages_answer,
        pages_api,
        pages_catalogue,
        pages_compare,
        pages_gains,
        pages_graph,
        pages_lists,
        pages_records,
        pages_taxonomy,
        pages_technique,
        pages_validation,
    )

    for module in (
        *(
            api,
            api_lists,
            api_graph,
            pages_answer,
            pages_lists,
            pages_technique,
            pages_records,
            pages_taxonomy,
        ),
        *(pages_catalogue, pages_compare, pages_graph, pages_gains, pages_validation, pages_api),
    ):
        app.include_router(module.router)
