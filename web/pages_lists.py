"""Lists to wander through: techniques, papers, and search over everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from kb import search as kb_search
from web.deps import LibraryDep
from web.facets import paper_facets, technique_facets
from web.listing import Facet, Group, Page, Value, groups, paged, select
from web.render import integer, page
from web.snapshot import SCHEME_NAMES, Snapshot, plain
from web.urls import Pairs, link, record_path, replaced, toggled

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

TECHNIQUE_SORTS = {"name": "name", "numbers": "published results", "papers": "papers", "year": "year"}
PAPER_SORTS = {
    "surveys": "how many surveys cite it",
    "year": "year",
    "title": "title",
    "relevance": "relevance",
}
SEARCH_PAGE = 20
MAX_OFFSET = 10_000


def chosen_of(request: Request, facets: Sequence[Facet]) -> dict[str, list[str]]:
    return {facet.name: request.query_params.getlist(facet.name)[:50] for facet in facets}


def state_of(request: Request, known: Sequence[str], default_sort: str) -> Pairs:
    """The page's state as pairs: known names, no empty values, no defaults."""
    return [
        (name, value)
        for name, value in request.query_params.multi_items()
        if name in known and value and (name, value) not in (("sort", default_sort), ("page", "1"))
    ]


def sort_links(path: str, pairs: Pairs, sorts: Mapping[str, str], default: str) -> list[tuple[str, str, str]]:
    return [
        (value, label, link(path, replaced(pairs, sort=None if value == default else value)))
        for value, label in sorts.items()
    ]


def in_words(query: str, facets: Sequence[Facet], chosen: Mapping[str, Sequence[str]]) -> str:
    """What was asked for, for a sentence."""
    parts = [f"“{query[:80]}”"] if query else []
    parts += [
        f"{facet.title.lower()} {' or '.join(facet.label(v) for v in chosen[facet.name])}"
        for facet in facets
        if chosen.get(facet.name)
    ]
    return " with ".join(parts) if parts else "everything"


def widened(path: str, pairs: Pairs) -> tuple[str, str]:
    """One link that asks for more: without the last filter."""
    kept = [pair for pair in pairs if pair[0] not in ("page", "sort")]
    if len(kept) > 1:
        last = kept[-1]
        return link(path, toggled(kept, *last)), f"Search without {last[0]} {last[1][:40]}"
    return path, "Show all"


@router.get("/techniques")
def techniques(request: Request, library: LibraryDep) -> HTMLResponse:
    """All techniques, narrowed by facets."""
    snapshot = library.snapshot()
    facets = technique_facets(snapshot)
    known = ("q", "sort", "page", *(facet.name for facet in facets))
    pairs = state_of(request, known, "name")
    chosen = chosen_of(request, facets)
    query = request.query_params.get("q", "").strip()
    sort = request.query_params.get("sort", "name")
    notices = (
        ()
        if sort in TECHNIQUE_SORTS
        else (f"No sort “{sort[:40]}”; sorted by name. It knows {', '.join(TECHNIQUE_SORTS)}.",)
    )
    items, counts = select(matching_techniques(snapshot, query), facets, chosen)
    items = sorted(items, key=TECHNIQUE_KEYS.get(sort, TECHNIQUE_KEYS["name"]))
    result = paged(items, integer(request.query_params.get("page")), "/techniques", pairs)
    narrowed = bool(query or any(chosen.values()))
    count = (
        f"{len(items):,} of {len(snapshot.techniques):,} techniques"
        if narrowed
        else f"{len(items):,} techniques for faster and smaller inference"
    )
    wider, wider_text = widened("/techniques", pairs)
    return page(
        request,
        "techniques.html",
        title=count + (f" match {in_words(query, facets, chosen)}" if narrowed else ""),
        lede="Each one changes named quantities of a deployment; the cost model turns that into time and memory for your case.",
        known=known,
        notices=notices,
        json_url=link("/api/v1/techniques", api_pairs(chosen)),
        command=command_of("kb list techniques", chosen),
        query=query,
        kept=[pair for pair in pairs if pair[0] not in ("q", "page")],
        narrowed=narrowed,
        groups=groups(facets, counts, chosen, "/techniques", pairs),
        pairs=pairs,
        sorts=sort_links("/techniques", pairs, TECHNIQUE_SORTS, "name"),
        sort=sort if sort in TECHNIQUE_SORTS else "name",
        page=result,
        asked=in_words(query, facets, chosen),
        near=snapshot.near_techniques(query) if query and not items else [],
        wider=wider,
        wider_text=wider_text,
    )


TECHNIQUE_KEYS: dict[str, Any] = {
    "name": lambda item: item["name"].casefold(),
    "numbers": lambda item: (-item["evidence_count"], item["name"].casefold()),
    "papers": lambda item: (-len(item["work_links"]), item["name"].casefold()),
    "year": lambda item: (-(item["year"] or 0), item["name"].casefold()),
}


def matching_techniques(snapshot: Snapshot, query: str) -> list[dict[str, Any]]:
    """Every word somewhere in name, alias, mechanism or summary; punctuation and case do not matter."""
    words = [key for word in query.split()[:20] if (key := plain(word))]
    if not words:
        return [] if query else snapshot.techniques
    return [item for item in snapshot.techniques if all(word in item["haystack"] for word in words)]


API_NAMES = {
    "bottleneck": "bottleneck",
    "phase": "phase",
    "training": "training",
    "lossless": "lossless",
    "kind": "kind",
    "survey": "survey",
    "year": "year",
    "role": "role",
}


def api_pairs(chosen: Mapping[str, Sequence[str]]) -> Pairs:
    """The part of a page's state that the API's list can say as well (one value per name)."""
    pairs = [(API_NAMES[name], values[0]) for name, values in chosen.items() if values and name in API_NAMES]
    levels = [f"{scheme}:{chosen[scheme][0]}" for scheme in SCHEME_NAMES if chosen.get(scheme)]
    return [*pairs, ("level", levels[0])] if levels else pairs


def command_of(start: str, chosen: Mapping[str, Sequence[str]]) -> str:
    return " ".join([start, *(f"--{name} {value}" for name, value in api_pairs(chosen))])


@router.get("/papers")
def papers(request: Request, library: LibraryDep) -> HTMLResponse:
    """All works, searched and narrowed."""
    snapshot = library.snapshot()
    facets = paper_facets(snapshot)
    query = request.query_params.get("q", "").strip()[:10_000]
    default = "relevance" if query else "surveys"
    known = ("q", "sort", "page", *(facet.name for facet in facets))
    pairs = state_of(request, known, default)
    chosen = chosen_of(request, facets)
    sort = request.query_params.get("sort", default)
    notices = () if sort in PAPER_SORTS else (f"No sort “{sort[:40]}”. It knows {', '.join(PAPER_SORTS)}.",)
    found, suggestion, notes = (
        (snapshot.works, None, []) if not query else found_papers(library.reader(), snapshot, query)
    )
    items, counts = select(found, facets, chosen)
    if sort != "relevance" or not query:
        items = sorted(items, key=PAPER_KEYS.get(sort, PAPER_KEYS["surveys"]))
    result = paged(items, integer(request.query_params.get("page")), "/papers", pairs)
    narrowed = bool(query or any(chosen.values()))
    title = f"{len(items):,} works that the surveys draw on"
    if narrowed:
        title = f"{len(items):,} of {len(snapshot.works):,} works match {in_words(query, facets, chosen)}"
    wider, wider_text = widened("/papers", pairs)
    return page(
        request,
        "papers.html",
        title=title,
        lede="A work is one paper with all its versions, or one piece of software; each says which survey cites it, and under which number.",
        known=known,
        notices=(*notices, *notes),
        json_url=link("/api/v1/papers", api_pairs(chosen)),
        csv_url=link(
            "/api/v1/export/csv", [pair for pair in api_pairs(chosen) if pair[0] in ("survey", "year")]
        ),
        command=command_of("kb list papers", chosen),
        query=query,
        kept=[pair for pair in pairs if pair[0] not in ("q", "page")],
        narrowed=narrowed,
        groups=groups(facets, counts, chosen, "/papers", pairs),
        pairs=pairs,
        sorts=sort_links(
            "/papers", pairs, {k: v for k, v in PAPER_SORTS.items() if query or k != "relevance"}, default
        ),
        sort=sort if sort in PAPER_SORTS else default,
        page=result,
        asked=in_words(query, facets, chosen),
        suggestion=suggestion,
        wider=wider,
        wider_text=wider_text,
    )


PAPER_KEYS: dict[str, Any] = {
    "surveys": lambda work: (-len(work["surveys"]), -(work["year"] or 0), work["title"].casefold()),
    "year": lambda work: (-(work["year"] or 0), work["title"].casefold()),
    "title": lambda work: work["title"].casefold(),
}


def found_papers(
    reader: Any, snapshot: Snapshot, query: str
) -> tuple[list[dict[str, Any]], str | None, list[str]]:
    """Works in order of relevance; the index answers at most 200, the closest first."""
    answer = kb_search.search(reader, query, filters={"type": ["paper", "survey"]}, limit=kb_search.MAX_LIMIT)
    works = [snapshot.work(hit["id"])[0] for hit in answer["results"]]
    surveys = {survey["slug"]: survey["work_slug"] for survey in snapshot.surveys}
    works = [
        work or snapshot.work_by_slug.get(surveys.get(hit["id"], ""))
        for work, hit in zip(works, answer["results"], strict=True)
    ]
    distinct = list({work["slug"]: work for work in works if work}.values())
    return distinct, answer["did_you_mean"], list(answer.get("notes") or [])


FACET_TITLES = {
    "type": "Type",
    "level": "Level",
    "bottleneck": "Bottleneck",
    "phase": "Phase",
    "training": "Training",
    "survey": "Cited by",
    "kind": "Kind",
    "role": "Role",
    "year": "Year",
}
PATHS = {
    "paper": "papers",
    "technique": "techniques",
    "survey": "surveys",
    "model": "models",
    "hardware": "hardware",
}


@router.get("/search")
def search(request: Request, library: LibraryDep) -> HTMLResponse:
    """One box over everything; an identifier typed alone leads to its record first."""
    snapshot = library.snapshot()
    known = ("q", "sort", "page", *FACET_TITLES)
    pairs = state_of(request, known, "relevance")
    query = request.query_params.get("q", "").strip()[:10_000]
    sort = request.query_params.get("sort", "relevance")
    notices = (
        () if sort in kb_search.SORTS else (f"No sort “{sort[:40]}”. It knows {', '.join(kb_search.SORTS)}.",)
    )
    sort = sort if sort in kb_search.SORTS else "relevance"
    chosen = {
        name: request.query_params.getlist(name)[:20]
        for name in FACET_TITLES
        if request.query_params.getlist(name)
    }
    number = integer(request.query_params.get("page"), high=MAX_OFFSET // SEARCH_PAGE)
    answer: dict[str, Any] = {"total": 0, "results": [], "did_you_mean": None, "notes": [], "facets": []}
    if query or chosen:
        answer = kb_search.search(
            library.reader(),
            query,
            filters=chosen,
            sort=sort,
            limit=SEARCH_PAGE,
            offset=(number - 1) * SEARCH_PAGE,
            facets=True,
        )
    total = answer["total"]
    hits = [hit | {"href": record_path(PATHS[hit["type"]], hit["id"])} for hit in answer["results"]]
    result = search_page(hits, total, number, pairs)
    shown = f"“{query[:80]}”" if query else "these filters"
    title = (
        (
            f"{total:,} {'result' if total == 1 else 'results'} for {shown}"
            if total
            else f"Nothing found for {shown}"
        )
        if query or chosen
        else "Search papers, techniques, surveys, models and hardware"
    )
    return page(
        request,
        "search.html",
        title=title,
        known=known,
        notices=notices,
        json_url=link("/api/v1/search", [pair for pair in pairs if pair[0] != "page"]) if query else "",
        command=f"kb search {shell_quoted(query[:200])}" if query else "",
        query=query,
        told=answer.get("notes") or [],
        suggestion=answer["did_you_mean"],
        total=total,
        narrowed=bool(chosen),
        groups=search_groups(snapshot, answer.get("facets") or [], chosen, pairs),
        pairs=pairs,
        kept=[pair for pair in pairs if pair[0] not in ("q", "page")],
        sorts=sort_links("/search", pairs, {name: name for name in kb_search.SORTS}, "relevance"),
        sort=sort,
        page=result,
    )


def search_page(hits: list[dict[str, Any]], total: int, number: int, pairs: Pairs) -> Page:
    pages = max(1, -(-total // SEARCH_PAGE))
    first = (number - 1) * SEARCH_PAGE
    previous = link("/search", replaced(pairs, page=number - 1 if number > 2 else None)) if number > 1 else ""
    following = link("/search", replaced(pairs, page=number + 1)) if number < pages else ""
    return Page(hits, total, number, pages, first + 1, first + len(hits), previous, following)


def search_groups(
    snapshot: Snapshot, facets: list[dict[str, Any]], chosen: Mapping[str, Sequence[str]], pairs: Pairs
) -> list[Group]:
    """The index's facet counts as links."""
    found = []
    for facet in facets:
        name = facet["name"]
        picked = set(chosen.get(name, ()))
        values = [
            Value(
                each["value"],
                facet_label(snapshot, name, each["value"]),
                each["count"],
                each["value"] in picked,
                link("/search", toggled(pairs, name, each["value"])),
            )
            for each in facet["values"]
        ]
        if len(values) > 1 or picked:
            shown = [value for index, value in enumerate(values) if index < 8 or value.chosen]
            found.append(
                Group(
                    name,
                    FACET_TITLES.get(name, name.capitalize()),
                    shown,
                    [v for v in values if v not in shown][:60],
                )
            )
    return found


def facet_label(snapshot: Snapshot, name: str, value: str) -> str:
    if name == "level":
        scheme, _, path = value.partition(":")
        level = snapshot.level_by_path.get((scheme, path))
        return f"{level['name']} ({scheme})" if level else value
    if name == "bottleneck" and value in snapshot.bottleneck_by_slug:
        return str(snapshot.bottleneck_by_slug[value]["name"])
    return value


def shell_quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
