"""`/graph`: the citation graph on a time axis, with the same set as a list; all state in the URL."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from kb import graph as kb_graph
from kb.errors import NotFound
from kb.reader import Reader
from web import graph_view as view
from web.charts.timeline import MOST_LINKS, Edge, columns_of, timeline
from web.deps import LibraryDep
from web.facets import bottleneck_facet, level_facet
from web.listing import Facet, groups, paged, select
from web.pages_lists import chosen_of, state_of
from web.render import integer, page
from web.snapshot import SCHEME_NAMES, Snapshot
from web.urls import Pairs, link, replaced

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Item = dict[str, Any]
MOST_ROOTS = 6
MOST_EDGES = 400
MOST_NAMES = 12  # in a view this small every work has its name beside it
KNOWN = ("root", "relation", "lanes", "from", "to", "lane", "shared", "page", "format")


@dataclass
class View:
    """What is in view: works, their support, roots, edges, and what could not be found."""

    works: list[Item]
    roots: list[Item] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    support: dict[str, str] = field(default_factory=dict)
    support_name: str = "Cited by"
    title: str = ""
    missing: str = ""
    near: list[tuple[str, str]] = field(default_factory=list)
    path_asked: bool = False


def graph_facets(snapshot: Snapshot) -> list[Facet]:
    return [
        Facet("survey", "Cited by", lambda work: work["surveys"] or ["none"], lambda slug: SCHEME_NAMES.get(slug, "none of the three"), str),
        Facet("cited", "Number of surveys", lambda work: [str(len(work["surveys"]))], order=lambda value: -int(value) if value.isdigit() else 0),
        level_facet(snapshot, "zhou"),
        bottleneck_facet(snapshot),
        Facet("role", "Role", lambda work: [work["role"] or "unclassified"]),
        Facet("year", "Year", lambda work: [str(work["year"])] if work["year"] else ["not stated"], order=lambda value: (0, -int(value)) if value.isdigit() else (1, 0), shown=8),
    ]  # fmt: skip


def found_root(snapshot: Snapshot, reader: Reader, text: str, result: View) -> Item | None:
    """A work by any identifier, a survey, a reference number (`zhou:27`) or a technique's slug."""
    work, _ = snapshot.work(text)
    if work is None:
        try:
            graph = kb_graph.load_graph(reader)
            work = snapshot.work_by_id.get(kb_graph.find(graph, reader, text))
        except NotFound:
            work = None
    if work is None and not result.missing:
        result.missing = f"No paper “{text[:80]}”."
        result.near = [
            (each["title"], link("/graph", {"root": each["slug"]})) for each in snapshot.near_works(text)
        ]
    return work


def roots_of(request: Request, snapshot: Snapshot, reader: Reader, result: View) -> list[Item]:
    texts = [
        part.strip()
        for value in request.query_params.getlist("root")
        for part in value.split(",")
        if part.strip()
    ]
    found = [work for text in texts[:50] if (work := found_root(snapshot, reader, text, result))]
    return list({work["slug"]: work for work in found}.values())[:MOST_ROOTS]


def default_relation(roots: list[Item], snapshot: Snapshot) -> str:
    """What tells most: a survey's references; for other works, who cites them."""
    return "references" if roots and all(snapshot.cites.get(root["id"]) for root in roots) else "cited-by"


def path_view(request: Request, snapshot: Snapshot, reader: Reader) -> View:
    result = View([], path_asked=True, support_name="Step")
    ends = [
        found_root(snapshot, reader, request.query_params.get(name, ""), result) for name in ("from", "to")
    ]
    start, end = ends
    if start is None or end is None:
        result.title = "A path needs two works that are here"
        return result
    result.works = view.shortest_path(snapshot, reader, start, end)
    result.roots = [start, end]
    result.edges = [
        Edge(a["slug"], b["slug"], "path") for a, b in zip(result.works, result.works[1:], strict=False)
    ]
    result.support = {work["slug"]: str(index) for index, work in enumerate(result.works)}
    steps = len(result.works) - 1
    result.title = (
        f"{steps} citations lie between the two works"
        if result.works
        else "No citations connect these two works"
    )
    if steps == 1:
        result.title = "One of the two cites the other"
    if not result.works:
        result.works = [start, end]
    return result


def root_view(snapshot: Snapshot, reader: Reader, relation: str, roots: list[Item]) -> View:
    result = View([], roots)
    works = {root["slug"]: root for root in roots}
    counts: dict[str, int] = {}
    kind = "cites" if relation in ("references", "cited-by") else relation
    for root in roots:
        for work, count in view.related(snapshot, reader, root, relation):
            works[work["slug"]] = work
            counts[work["slug"]] = counts.get(work["slug"], 0) + count
            pair = (work["slug"], root["slug"]) if relation == "cited-by" else (root["slug"], work["slug"])
            result.edges.append(Edge(*pair, kind))
    result.works = list(works.values())
    result.support = {slug: f"{count}" for slug, count in counts.items()}
    result.support_name = {"co-cited": "Shared citing works", "coupled": "Shared references"}.get(
        relation, "Links"
    )
    name = (
        roots[0]["first_author"] + (f" {roots[0]['year']}" if roots[0]["year"] else "")
        if len(roots) == 1
        else f"these {len(roots)} works"
    )
    words = {
        "references": f"{name} cites {{}} here",
        "cited-by": f"{{}} here cite {name}",
        "co-cited": f"{{}} cited by the same works as {name}",
        "coupled": f"{{}} cite what {name} cites",
    }[relation]
    related_count = len(result.works) - len(roots)
    result.title = words.format("one work" if related_count == 1 else f"{related_count:,} works")
    if related_count == 1 and relation == "cited-by":
        result.title = f"One work here cites {name}"
    return result


def all_view(request: Request, snapshot: Snapshot) -> View:
    surveys = [snapshot.work_by_id[survey["work_id"]] for survey in snapshot.surveys]
    shared = [part for part in request.query_params.get("shared", "").split(",") if part]
    works = (
        [work for work in snapshot.works if all(slug in work["surveys"] for slug in shared)]
        if shared
        else snapshot.works
    )
    result = View(list(works), surveys)
    result.support = {work["slug"]: ", ".join(work["surveys"]) or "–" for work in works}
    if shared:
        names = " and ".join(SCHEME_NAMES.get(slug, slug) for slug in shared)
        result.title = f"{len(works):,} works are cited by {names}"
        result.works = list({work["slug"]: work for work in [*surveys, *works]}.values())
        result.edges = view.edges_among(snapshot, result.works)
    return result


def chosen_view(request: Request, snapshot: Snapshot, reader: Reader) -> tuple[View, str]:
    """The set that the URL asks for, before facets, and the relation."""
    if "from" in request.query_params or "to" in request.query_params:
        return path_view(request, snapshot, reader), "references"
    probe = View([])
    roots = roots_of(request, snapshot, reader, probe)
    if not roots:
        result = all_view(request, snapshot)
        result.missing, result.near = probe.missing, probe.near
        return result, "references"
    relation = request.query_params.get("relation", "")
    relation = relation if relation in view.RELATIONS else default_relation(roots, snapshot)
    result = root_view(snapshot, reader, relation, roots)
    result.missing, result.near = probe.missing, probe.near
    return result, relation


@router.get("/graph")
def graph(request: Request, library: LibraryDep) -> Response:
    snapshot = library.snapshot()
    facets = graph_facets(snapshot)
    known = (*KNOWN, *(facet.name for facet in facets))
    pairs = state_of(request, known, "")
    chosen = chosen_of(request, facets)
    lanes = "survey" if request.query_params.get("lanes") == "survey" else "level"
    reader = library.reader()
    shown, relation = chosen_view(request, snapshot, reader)
    root_slugs = {root["slug"] for root in shown.roots}
    kept, counts = select(shown.works, facets, chosen)
    lane = request.query_params.get("lane", "")
    works = [dict(work) for work in kept if not lane or view.lane_of(dict(work), lanes) == lane]
    if shown.edges or shown.path_asked:  # roots stay in view, whatever is filtered
        works = list({work["slug"]: work for work in [*shown.roots, *works]}.values())
    inside = {work["slug"] for work in works}
    edges = [edge for edge in shown.edges if edge.source in inside and edge.target in inside]
    if request.query_params.get("format") == "csv":
        return edges_csv(edges or view.edges_among(snapshot, works))
    base = [pair for pair in pairs if pair[0] != "page"]
    by_level: dict[tuple[str, int | None], str] = {}
    summarised = len(works) > MOST_LINKS
    nodes = [
        view.node_of(
            work,
            expand_link(work, shown, base),
            lanes,
            strong=work["slug"] in root_slugs or len(works) <= MOST_NAMES,
        )
        for work in works
    ]
    order = view.lane_order(works, lanes)
    if summarised:
        by_level = cell_links(nodes, base)
        edges = edges if len(edges) <= MOST_EDGES else []
    narrowed = any(chosen.values()) or bool(lane) or bool(shown.title)
    title = shown.title or f"{len(works):,} works on a time line, around {len(snapshot.surveys)} surveys"
    overlap = view.overlap_counts(reader)
    ordered = view.ranked_works(works) if not shown.path_asked else works
    rows = [
        {
            "work": work,
            "href": view.page_link(work),
            "lane": view.lane_of(work, lanes),
            "support": shown.support.get(work["slug"], "start"),
            "is_root": work["slug"] in root_slugs and bool(request.query_params.get("root")),
            "expand": expand_link(work, shown, base),
        }
        for work in ordered
    ]
    return page(
        request,
        "graph.html",
        title=title,
        lede="Year from left to right, lanes by class or by who cites the work. Positions depend only on the set in view, so the same address always shows the same picture.",
        known=known,
        status=404 if shown.missing and not shown.title else 200,
        csv_url=link("/graph", [*base, ("format", "csv")]),
        command=command_of(request, shown, relation),
        root_text=",".join(request.query_params.getlist("root")),
        from_text=request.query_params.get("from", ""),
        to_text=request.query_params.get("to", ""),
        path_asked=shown.path_asked,
        relation=relation,
        relations=list(view.RELATIONS.items()),
        default_relation=default_relation(shown.roots, snapshot)
        if request.query_params.get("root")
        else "references",
        lanes=lanes,
        narrowed=narrowed,
        chips=filter_chips(lane, pairs),
        missing=shown.missing,
        near=shown.near,
        drawing=timeline(
            nodes, edges, order, title=title, finding=finding_of(works, order, lanes), cell_links=by_level
        )
        if works
        else "",
        summarised=summarised,
        groups=groups(facets, counts, chosen, "/graph", pairs),
        pairs=pairs,
        page=paged(rows, integer(request.query_params.get("page")), "/graph", pairs),
        list_title=f"The same {len(works):,} works as a list" if len(works) != 1 else "The work as a list",
        support_name=shown.support_name,
        survey_total=len(snapshot.surveys),
        work_total=len(snapshot.works),
        overlap=overlap,
        overlap_links=[
            (
                f"{count} in {' and '.join(SCHEME_NAMES.get(each, each).split(' ')[0] for each in names.split(','))}",
                link("/graph", {"shared": names}),
            )
            for names, count in overlap.items()
            if names != "all"
        ],
        csv_edges=link("/graph", [*base, ("format", "csv")]),
    )


def filter_chips(lane: str, pairs: Pairs) -> list[tuple[str, str]]:
    return [(f"{lane} ✕", link("/graph", replaced(pairs, lane=None)))] if lane else []


def expand_link(work: Item, shown: View, base: Pairs) -> str:
    """Selecting a work adds it to the roots; selecting a root takes it away."""
    current = [root["slug"] for root in shown.roots] if any(name == "root" for name, _ in base) else []
    if work["slug"] in current:
        wanted = [slug for slug in current if slug != work["slug"]]
    else:
        wanted = [*current, work["slug"]][-MOST_ROOTS:]
    kept = [pair for pair in base if pair[0] in ("lanes", "relation")]
    return link("/graph", [("root", ",".join(wanted)), *kept] if wanted else kept)


def cell_links(nodes: list[Any], base: Pairs) -> dict[tuple[str, int | None], str]:
    """A cell narrows to its lane and year; works before the first column share a cell of their lane."""
    first, _ = columns_of(nodes)
    found: dict[tuple[str, int | None], str] = {}
    for node in nodes:
        year = node.year if node.year and node.year >= first else None
        if (node.lane, year) not in found:
            values = [("lane", node.lane)]
            years = (
                [str(year)]
                if year
                else sorted(
                    {
                        str(n.year) if n.year else "not stated"
                        for n in nodes
                        if n.lane == node.lane and (not n.year or n.year < first)
                    }
                )
            )
            kept = [pair for pair in base if pair[0] not in ("lane", "year")]
            found[(node.lane, year)] = link("/graph", [*kept, *values, *(("year", each) for each in years)])
    return found


def finding_of(works: list[Item], order: list[str], lanes: str) -> str:
    counts = {name: sum(view.lane_of(work, lanes) == name for work in works) for name in order}
    years = sorted(work["year"] for work in works if work["year"])
    span = f" from {years[0]} to {years[-1]}" if years else ""
    return (
        f"{len(works):,} works{span}: " + ", ".join(f"{name} {count}" for name, count in counts.items()) + "."
    )


def command_of(request: Request, shown: View, relation: str) -> str:
    if shown.path_asked and len(shown.roots) == 2:
        return f"kb graph path {shown.roots[0]['slug']} {shown.roots[1]['slug']}"
    if request.query_params.get("root") and shown.roots:
        verb = {"co-cited": "co-cited", "coupled": "coupled"}.get(relation, "neighbours")
        return f"kb graph {verb} {shown.roots[0]['slug']}"
    return "kb graph rank"


def edges_csv(edges: list[Edge]) -> Response:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["source", "target", "kind"])
    writer.writerows((edge.source, edge.target, edge.kind) for edge in edges)
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8")
