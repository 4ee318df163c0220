"""REST: what the knowledge base holds. Lists with filters and cursors, records, search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import StringConstraints

from costmodel.catalogue import all_engines, all_hardware, all_models, find_engine, find_hardware, find_model
from costmodel.errors import CostModelError, UnknownName
from kb import search as kb_search
from kb import store, store_web
from kb.errors import InvalidQuery
from recommender.answer import plain
from web import schemas
from web.ask import check_names
from web.deps import LibraryDep
from web.errors import Missing
from web.urls import record_path

router = APIRouter(prefix="/api/v1", tags=["knowledge base"])

DEFAULT_LIMIT = 50
Limit = Annotated[int, Query(ge=1, le=store.MAX_LIMIT, description="Items per page")]
Year = Annotated[str, StringConstraints(pattern=r"^[12][0-9]{3}(\.\.[12][0-9]{3})?$")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before")]
LIST_ERRORS = schemas.error_responses(404, 422)


def listed(request: Request, page: dict[str, Any]) -> JSONResponse:
    """A page of a list with `Link: rel="next"`; unknown parameters are refused, not ignored."""
    known = {parameter.alias for parameter in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            allowed = ", ".join(sorted(known)) or "none"
            raise InvalidQuery(
                f"unknown parameter {name[:60]!r}", hint=f"allowed: {allowed}", field=name[:60]
            )
    headers = {}
    if page.get("next"):
        headers["link"] = (
            f'<{request.url.include_query_params(cursor=page["next"]).path}?{request.url.include_query_params(cursor=page["next"]).query}>; rel="next"'
        )
    return JSONResponse(plain(page), headers=headers)


def refuse_unknown(request: Request) -> None:
    listed(request, {})


def text(description: str, example: str | None = None, longest: int = 200) -> Any:
    return Query(max_length=longest, description=description, examples=[example] if example else None)


@router.get("/techniques", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Techniques")
def techniques(
    request: Request,
    library: LibraryDep,
    level: Annotated[
        str | None, text("A class and everything below it, optionally `scheme:path`", "model/compression")
    ] = None,
    bottleneck: Annotated[str | None, text("What it relieves", "kv-bandwidth")] = None,
    phase: Annotated[Literal["prefill", "decode", "both"] | None, Query(description="What it helps")] = None,
    training: Annotated[
        Literal["none", "calibration", "finetune", "pretrain"] | None,
        Query(description="What has to be trained"),
    ] = None,
    lossless: Annotated[
        Literal["yes", "approx", "no"] | None, Query(description="Whether the output stays the same")
    ] = None,
    mechanism: Annotated[str | None, text("Techniques of one mechanism")] = None,
    kind: Annotated[str | None, text("software, hardware or model", "software")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Every technique with its classes, bottlenecks and how much supports it."""
    filters: dict[str, Any] = {
        "level": level,
        "bottleneck": bottleneck,
        "phase": phase,
        "training": training,
        "lossless": lossless,
        "mechanism": mechanism,
        "kind": kind,
    }
    return listed(request, store.list_techniques(library.reader(), **filters, limit=limit, cursor=cursor))


@router.get("/techniques/{slug}", responses=schemas.error_responses(404), summary="One technique")
def technique(slug: str, request: Request, library: LibraryDep) -> Response:
    """Its declared effects, papers, published results, relations and engines. Names and aliases are understood."""
    refuse_unknown(request)
    return JSONResponse(plain(store.get_technique(library.reader(), slug)))


@router.get("/papers", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Papers")
def papers(
    request: Request,
    library: LibraryDep,
    survey: Annotated[str | None, text("Cited by this survey: zhou, yuan or park", "zhou")] = None,
    year: Annotated[
        int | None, Query(ge=1000, le=3000, description="Year of publication", examples=[2023])
    ] = None,
    kind: Annotated[str | None, text("paper, book, software, website or product", "paper")] = None,
    role: Annotated[str | None, text("technique, survey, model, benchmark, system or background")] = None,
    technique: Annotated[str | None, text("Linked to this technique", "awq")] = None,
    level: Annotated[str | None, text("Linked to a technique of this class", "model/compression")] = None,
    bottleneck: Annotated[str | None, text("Linked to a technique that relieves this", "kv-capacity")] = None,
    sort: Annotated[
        str,
        Query(
            json_schema_extra={"enum": list(store.SORTS)}, max_length=20, description="year, title or surveys"
        ),
    ] = "year",
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Works with their identifiers, and which survey cites each under which number."""
    filters: dict[str, Any] = {
        "survey": survey,
        "year": year,
        "kind": kind,
        "role": role,
        "technique": technique,
        "level": level,
        "bottleneck": bottleneck,
    }
    return listed(
        request, store.list_papers(library.reader(), **filters, sort=sort, limit=limit, cursor=cursor)
    )


@router.get("/papers/{ident:path}", responses=schemas.error_responses(404), summary="One paper")
def paper(ident: str, request: Request, library: LibraryDep) -> Response:
    """By slug, arXiv id or DOI (slashes as they are): surveys, techniques, references, versions, results."""
    refuse_unknown(request)
    return JSONResponse(plain(store.get_paper(library.reader(), ident)))


@router.get("/surveys", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Surveys")
def surveys(
    request: Request, library: LibraryDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """The surveys whose reference lists the knowledge base is built from."""
    return listed(request, store.list_surveys(library.reader(), limit=limit, cursor=cursor))


@router.get("/surveys/{slug}", responses=schemas.error_responses(404), summary="One survey")
def survey(slug: str, request: Request, library: LibraryDep) -> Response:
    """A survey with its own record and its classes."""
    refuse_unknown(request)
    return JSONResponse(plain(store.get_survey(library.reader(), slug)))


@router.get(
    "/surveys/{slug}/references",
    response_model=schemas.ListBody,
    responses=LIST_ERRORS,
    summary="A survey's references",
)
def references(
    slug: str, request: Request, library: LibraryDep, limit: Limit = store.MAX_LIMIT, cursor: Cursor = None
) -> Response:
    """In the survey's order; `number` is the position, identifiers as the row prints them."""
    reader = library.reader()
    store.check_survey(reader, slug)
    rows = [
        {
            "number": int(row["locator"]) if str(row["locator"]).isdigit() else row["position"],
            "title": row["fields"].get("title"),
            "first_author": first_author(row["fields"]),
            "year": row["fields"].get("year"),
            "arxiv_id": row["fields"].get("arxiv_id"),
            "doi": row["fields"].get("doi"),
            "url": row["fields"].get("url"),
            "is_paper": row["fields"].get("kind", row["work_kind"]) in ("paper", "book", None),
            "paper_id": row["paper_id"],
        }
        for row in store_web.references_of_survey(reader, slug)
    ]
    return listed(request, store.page_of(rows, limit, cursor))


def first_author(fields: dict[str, Any]) -> str | None:
    authors = fields.get("authors") or []
    if not authors:
        return None
    first = authors[0]
    return (
        str(first) if isinstance(first, str) else str(first.get("family") or first.get("given") or "") or None
    )


def catalogue_list(
    request: Request, items: Sequence[dict[str, Any]], limit: int, cursor: str | None
) -> Response:
    return listed(request, store.page_of(items, limit, cursor))


@router.get("/models", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Models")
def models(
    request: Request,
    family: Annotated[str | None, text("Only this family", "llama")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Published dimensions, and parameters counted from them."""
    found = [
        dict(store.spec_item(model)) for model in all_models().values() if family in (None, model.family)
    ]
    return catalogue_list(request, found, limit, cursor)


@router.get("/models/{ident:path}", responses=schemas.error_responses(404), summary="One model")
def model(ident: str, request: Request) -> Response:
    """By slug, Hugging Face id or any usual spelling."""
    refuse_unknown(request)
    return one_spec("model", find_model, ident)


@router.get("/hardware", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Hardware")
def hardware(
    request: Request,
    vendor: Annotated[str | None, text("Only this vendor", "NVIDIA")] = None,
    device_class: Annotated[str | None, text("datacenter, consumer, cpu …", "datacenter")] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Devices with dense peaks, bandwidths and the source of each row."""
    found = [
        dict(store.spec_item(device))
        for device in all_hardware().values()
        if (vendor is None or vendor.casefold() == device.vendor.casefold())
        and device_class in (None, device.device_class)
    ]
    return catalogue_list(request, found, limit, cursor)


@router.get("/hardware/{ident:path}", responses=schemas.error_responses(404), summary="One device")
def device(ident: str, request: Request) -> Response:
    """By slug or any usual spelling."""
    refuse_unknown(request)
    return one_spec("hardware", find_hardware, ident)


@router.get("/engines", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Engines")
def engines(request: Request, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None) -> Response:
    """Serving software and what each already does."""
    return catalogue_list(
        request, [dict(store.spec_item(engine)) for engine in all_engines().values()], limit, cursor
    )


@router.get("/engines/{slug}", responses=schemas.error_responses(404), summary="One engine")
def engine(slug: str, request: Request) -> Response:
    """By slug or any usual spelling."""
    refuse_unknown(request)
    return one_spec("engine", find_engine, slug)


def one_spec(kind: str, find: Any, ident: str) -> Response:
    folder = "models" if kind == "model" else "engines" if kind == "engine" else kind
    try:
        check_names({kind: ident})
        found = find(ident)
    except (
        CostModelError
    ) as error:  # also constants in one line that are none, or several devices: no record's name
        near = error.suggestions if isinstance(error, UnknownName) else ()
        raise Missing(
            kind,
            ident,
            [(slug, record_path(folder, slug)) for slug in near],
            hint=f"see /api/v1/{folder}",
        ) from None
    return JSONResponse(plain({**store.spec_item(found.spec), "alternatives": list(found.alternatives)}))


@router.get("/bottlenecks", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Bottlenecks")
def bottlenecks(
    request: Request, library: LibraryDep, limit: Limit = DEFAULT_LIMIT, cursor: Cursor = None
) -> Response:
    """What can limit inference, with the number of techniques that relieve it."""
    return listed(request, store.list_bottlenecks(library.reader(), limit=limit, cursor=cursor))


@router.get(
    "/levels",
    response_model=schemas.ListBody,
    responses=LIST_ERRORS,
    summary="Classes of the three taxonomies",
)
def levels(
    request: Request,
    library: LibraryDep,
    scheme: Annotated[str | None, text("zhou, yuan or park", "zhou")] = None,
    limit: Limit = store.MAX_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """In each survey's own order, with the number of techniques at or below each class."""
    return listed(request, store.list_levels(library.reader(), scheme=scheme, limit=limit, cursor=cursor))


@router.get("/evidence", response_model=schemas.ListBody, responses=LIST_ERRORS, summary="Published results")
def evidence(
    request: Request,
    library: LibraryDep,
    technique: Annotated[str | None, text("Of this technique", "awq")] = None,
    metric: Annotated[str | None, text("One metric", "decode_speedup")] = None,
    paper: Annotated[str | None, text("Reported by this paper", "2306.00978")] = None,
    scored: Annotated[
        bool | None, Query(description="Whether the setting is complete enough to compare with a prediction")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Reported figures with their conditions and where they stand in the source."""
    filters: dict[str, Any] = {"technique": technique, "metric": metric, "paper": paper, "scored": scored}
    return listed(request, store.list_evidence(library.reader(), **filters, limit=limit, cursor=cursor))


@router.get("/search", response_model=schemas.SearchBody, responses=LIST_ERRORS, summary="Search everything")
def search(
    request: Request,
    library: LibraryDep,
    q: Annotated[
        str,
        Query(
            max_length=10_000,
            description="Words, phrases, `-not`, `OR`, `field:value`, `prefix*`, identifiers",
            examples=["paged attention"],
        ),
    ] = "",
    type: Annotated[
        list[str] | None, Query(description="paper, technique, survey, model, hardware", max_length=20)
    ] = None,
    level: Annotated[list[str] | None, Query(description="scheme:path", max_length=20)] = None,
    bottleneck: Annotated[list[str] | None, Query(description="Slugs of bottlenecks", max_length=20)] = None,
    phase: Annotated[list[str] | None, Query(description="prefill, decode or both", max_length=20)] = None,
    training: Annotated[
        list[str] | None, Query(description="none, calibration, finetune or pretrain", max_length=20)
    ] = None,
    survey: Annotated[list[str] | None, Query(description="Cited by these surveys", max_length=20)] = None,
    kind: Annotated[list[str] | None, Query(description="Kinds", max_length=20)] = None,
    role: Annotated[list[str] | None, Query(description="Roles of papers", max_length=20)] = None,
    year: Annotated[
        list[Year] | None, Query(description="A year or a range such as 2022..2024", max_length=20)
    ] = None,
    sort: Annotated[
        str,
        Query(
            json_schema_extra={"enum": list(kb_search.SORTS)},
            max_length=20,
            description="Order of the results",
        ),
    ] = "relevance",
    facets: Annotated[bool, Query(description="Counts of every facet value among the results")] = False,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response:
    """One index over papers, techniques, surveys, models and hardware; identifiers find their record first."""
    given = {
        "type": type,
        "level": level,
        "bottleneck": bottleneck,
        "phase": phase,
        "training": training,
        "survey": survey,
        "kind": kind,
        "role": role,
        "year": year,
    }
    found = kb_search.search(
        library.reader(),
        q,
        filters={name: values for name, values in given.items() if values},
        sort=sort,
        limit=limit,
        offset=store.decode_cursor(cursor),
        facets=facets,
    )
    for name, values in given.items():
        for value in values or ():
            for note in found["notes"]:
                said, _, hint = note.partition("; ")
                if said == f"no {name} {str(value).replace(chr(34), ' ').strip()!r}":
                    raise InvalidQuery(said, hint=hint, field=name)
    return listed(request, found)


@router.get("/health", tags=["service"], summary="Is it up, and with which data", include_in_schema=True)
def health(library: LibraryDep) -> dict[str, Any]:
    """Counts of everything, and the data's version."""
    return {"status": "ok", **store.status(library.reader())}
