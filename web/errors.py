"""Exceptions → one error shape for `/api`, one error page for everything else.

`{"error": {"code", "message", "hint", "field"}}` with the right status; never a traceback, never SQL.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from costmodel.errors import CostModelError, UnknownName
from kb.errors import DatabaseError, InvalidQuery, KnowledgeBaseError, NotFound
from recommender.errors import RecommenderError
from taxonomy.errors import TaxonomyError

logger = logging.getLogger("kb.web")

OURS = (CostModelError, KnowledgeBaseError, RecommenderError, TaxonomyError)
HTTP_CODES = {
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "too-large",
    422: "invalid",
}


@dataclass(frozen=True)
class Problem:
    """What went wrong, for a reader: `near` holds (text, link) of the closest records."""

    status: int
    code: str
    message: str
    hint: str = ""
    field: str | None = None
    near: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()

    def body(self) -> dict[str, Any]:
        shape = asdict(self)
        return {"error": {name: shape[name] for name in ("code", "message", "hint", "field")}}


class Contradiction(RecommenderError):
    """Fields that are fine alone and cannot hold together."""

    code = "conflict"


class Missing(NotFound):
    """A record that is not there, with links to the closest ones."""

    def __init__(self, kind: str, asked: str, near: list[tuple[str, str]], *, hint: str = "") -> None:
        super().__init__(kind, asked[:200], [text for text, _ in near], hint=hint)
        self.near = near


def problem_of(error: Exception) -> Problem:
    """One problem for any exception that a request can raise."""
    if isinstance(error, NotFound):
        near = tuple(getattr(error, "near", ()))
        return Problem(404, error.code, error.message, error.hint, error.field, near)
    if isinstance(error, UnknownName) or is_unknown_technique(error):
        return Problem(404, "unknown-name", error.message, error.hint, error.field)  # type: ignore[attr-defined]
    if isinstance(error, Contradiction):
        return Problem(409, "conflict", error.message, error.hint, error.field)
    if isinstance(error, DatabaseError):
        return Problem(503, error.code, error.message, error.hint, error.field)
    if isinstance(error, InvalidQuery) and (error.field == "cursor" or error.message.startswith("no ")):
        return Problem(404, "not-found", error.message, error.hint, error.field)
    if isinstance(error, OURS):
        return Problem(422, error.code, error.message, error.hint, error.field)
    if isinstance(error, RequestValidationError):
        return problem_of_validation(error)
    if isinstance(error, HTTPException):
        code = HTTP_CODES.get(error.status_code, "http")
        message = {404: "no such page", 405: "this address does not take that method"}.get(
            error.status_code, str(error.detail)
        )
        hint = {404: "see /api for the routes, or / to start", 405: "see the Allow header"}.get(
            error.status_code, ""
        )
        return Problem(error.status_code, code, message, hint, None, (), tuple((error.headers or {}).items()))
    logger.error("request failed", exc_info=error)
    return Problem(
        500, "internal", "something went wrong on our side", "the server's log holds the details; retry"
    )


def is_unknown_technique(error: Exception) -> bool:
    """Techniques and levels are found by the recommender, which has one class for all faults of a question."""
    missing = ("unknown technique", "no technique lies at level")
    return isinstance(error, RecommenderError) and error.message.startswith(missing)


def problem_of_validation(error: RequestValidationError) -> Problem:
    """The first fault that FastAPI found, in our words; a body that is no JSON counts as 422 as well."""
    faults = error.errors()
    first = faults[0] if faults else {"loc": (), "msg": "invalid request", "type": ""}
    place = [str(part) for part in first.get("loc", ()) if part not in ("query", "body", "path")]
    name = place[0] if place and not place[0].isdigit() else None
    given = first.get("input")
    said = str(first.get("msg", "")).removeprefix("Value error, ")
    shown = f", got {str(given)[:60]!r}" if isinstance(given, str | int | float) else ""
    if first.get("type") == "json_invalid":
        return Problem(422, "invalid-json", "the body is not JSON", "send an object, for example {}", None)
    message = f"{name}: {said[:1].lower()}{said[1:]}{shown}" if name else f"{said}{shown}"
    return Problem(422, "invalid-value", message, "see /api for the fields and their ranges", name)


def methods_of(request: Request) -> list[str]:
    """All methods of an address; the framework names those of the first route only."""
    paths = request.app.openapi()["paths"] if wants_json(request) else {}
    return sorted(method.upper() for method in paths.get(request.url.path, {}))


def wants_json(request: Request) -> bool:
    return request.url.path.startswith("/api/")


def respond(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    headers = dict(problem.headers)
    if problem.status == 405:
        headers["allow"] = ", ".join(methods_of(request)) or headers.get("allow", "GET")
    if wants_json(request):
        return JSONResponse(problem.body(), problem.status, headers)
    from web.render import render_problem

    return render_problem(request, problem, headers)


def install(app: FastAPI) -> None:
    """Every exception class that may leave a route."""

    async def handle(request: Request, error: Exception) -> Response:
        return respond(request, error)

    for kind in (*OURS, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, handle)
