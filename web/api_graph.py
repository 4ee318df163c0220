"""REST: the citation graph and the exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from kb import export as kb_export
from kb import graph as kb_graph
from kb import graph_measures
from recommender.answer import plain
from web import schemas
from web.api_lists import Year, refuse_unknown
from web.deps import LibraryDep

router = APIRouter(prefix="/api/v1", tags=["graph and exports"])

ERRORS = schemas.error_responses(404, 422)
Many = Annotated[int, Query(ge=1, le=200, description="The strongest so many")]


def answered(request: Request, answer: dict[str, Any]) -> Response:
    refuse_unknown(request)
    return JSONResponse(plain(answer))


@router.get("/graph/neighbours/{ident:path}", responses=ERRORS, summary="What a work cites and what cites it")
def neighbours(
    request: Request,
    library: LibraryDep,
    ident: str,
    depth: Annotated[int, Query(ge=1, le=4, description="Steps away")] = 1,
    direction: Annotated[
        Literal["both", "references", "cited-by"], Query(description="Which citations to follow")
    ] = "both",
    limit: Annotated[
        int, Query(ge=1, le=kb_graph.MAX_VIEW, description="Most nodes; the others are counted")
    ] = 200,
) -> Response:
    """Nodes, edges and, beyond `limit`, a summary by year and distance. `scope` says what can be concluded."""
    return answered(
        request, kb_graph.neighbours(library.reader(), ident, depth=depth, direction=direction, limit=limit)
    )


@router.get("/graph/path", responses=ERRORS, summary="A shortest chain of citations between two works")
def path(
    request: Request,
    library: LibraryDep,
    start: Annotated[
        str,
        Query(
            alias="from",
            max_length=500,
            description="Slug, arXiv id, DOI or `zhou:27`",
            examples=["2306.00978"],
        ),
    ],
    end: Annotated[
        str,
        Query(
            alias="to",
            max_length=500,
            description="Slug, arXiv id, DOI or `zhou:27`",
            examples=["2309.06180"],
        ),
    ],
) -> Response:
    """Followed in either direction; `count` is how many chains are as short."""
    return answered(request, kb_graph.shortest_path(library.reader(), start, end))


@router.get("/graph/co-cited/{ident:path}", responses=ERRORS, summary="Works in the same reference lists")
def co_cited(request: Request, library: LibraryDep, ident: str, limit: Many = 20) -> Response:
    """By the number of lists that hold both (co-citation, Small 1973)."""
    return answered(request, kb_graph.co_cited(library.reader(), ident, limit=limit))


@router.get("/graph/coupled/{ident:path}", responses=ERRORS, summary="Works that cite the same works")
def coupled(request: Request, library: LibraryDep, ident: str, limit: Many = 20) -> Response:
    """By the number of shared references (bibliographic coupling, Kessler 1963)."""
    return answered(request, kb_graph.coupled(library.reader(), ident, limit=limit))


@router.get("/graph/rank", responses=ERRORS, summary="Works by a measure")
def rank(
    request: Request,
    library: LibraryDep,
    by: Annotated[
        Literal["pagerank", "citations", "per-year"], Query(description="Which measure")
    ] = "pagerank",
    limit: Many = 20,
    year_from: Annotated[
        int | None, Query(ge=1000, le=3000, description="Only works of this year or later")
    ] = None,
    year_to: Annotated[
        int | None, Query(ge=1000, le=3000, description="Only works of this year or earlier")
    ] = None,
) -> Response:
    """With the measure's meaning, and what it cannot say."""
    return answered(
        request,
        graph_measures.rank(library.reader(), measure=by, limit=limit, year_from=year_from, year_to=year_to),
    )


@router.get("/graph/communities", responses=ERRORS, summary="Groups of works")
def communities(request: Request, library: LibraryDep) -> Response:
    """By the reference lists that hold a work while only surveys' lists are known; by modularity otherwise."""
    return answered(request, graph_measures.communities(library.reader()))


@router.get("/graph/overlap", responses=ERRORS, summary="What the surveys share")
def overlap(request: Request, library: LibraryDep) -> Response:
    """Works in each pair of reference lists, and in all of them."""
    return answered(request, kb_graph.overlap(library.reader()))


SUFFIXES = {"bibtex": "bib", "csl-json": "json"}
Format = Literal["bibtex", "ris", "csl-json", "csv", "json", "graphml"]


@router.get(
    "/export/{format}",
    responses={
        200: {
            "description": "The file",
            "content": {
                kind: {"schema": {} if "json" in kind else {"type": "string"}}
                for kind in kb_export.MEDIA_TYPES.values()
            },
        },
        **ERRORS,
    },
    response_class=StreamingResponse,
    summary="The bibliography or the graph as a file",
)
def export(
    request: Request,
    library: LibraryDep,
    format: Format,
    survey: Annotated[list[str] | None, Query(max_length=10, description="Cited by these surveys")] = None,
    year: Annotated[
        list[Year] | None, Query(max_length=10, description="A year, or a range such as 2022..2024")
    ] = None,
    technique: Annotated[str | None, Query(max_length=200, description="Linked to this technique")] = None,
    level: Annotated[
        list[str] | None, Query(max_length=10, description="Linked to techniques of these classes")
    ] = None,
    bottleneck: Annotated[
        list[str] | None, Query(max_length=10, description="Linked to techniques that relieve these")
    ] = None,
    kind: Annotated[list[str] | None, Query(max_length=10, description="paper, book, software …")] = None,
    role: Annotated[list[str] | None, Query(max_length=10, description="Roles of works")] = None,
    id: Annotated[list[str] | None, Query(max_length=50, description="Only these works")] = None,
) -> Response:
    """BibTeX, RIS, CSL-JSON, CSV, JSON or GraphML; the filters are those of search, and all must hold."""
    refuse_unknown(request)
    pieces = kb_export.export(
        library.reader(),
        format,
        ids=id,
        survey=survey,
        year=year,
        technique=technique,
        level=level,
        bottleneck=bottleneck,
        kind=kind,
        role=role,
    )
    name = f"kb.{SUFFIXES.get(format, format)}"
    return StreamingResponse(
        encoded(pieces),
        media_type=kb_export.MEDIA_TYPES[format],
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )


def encoded(pieces: Iterator[str]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece.encode()
