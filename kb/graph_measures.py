"""Ranks, communities and the timeline layout of the citation graph, kept per data version."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from kb.errors import InvalidQuery
from kb.graph import MAX_VIEW, MEASURES, Graph, edge, load_graph, node, scope
from kb.reader import Reader

DAMPING = 0.85  # Brin and Page 1998
TOLERANCE = 1e-10
MAX_STEPS = 200
SEED = 0

MEANINGS = {
    "pagerank": "share of a reader's visits who follows references at random (damping 0.85): favours old works, "
    "because citations only point back",
    "citations": "how many works of this knowledge base cite it",
    "per-year": "citations divided by the years that the work has had, counted to the newest work here, so that age "
    "does not decide",
}


def rank(
    reader: Reader,
    *,
    measure: str = "pagerank",
    limit: int = 20,
    year_from: int | None = None,
    year_to: int | None = None,
) -> dict[str, Any]:
    """Works by a measure, with what it means and what it cannot say."""
    if measure not in MEASURES:
        raise InvalidQuery(
            f"unknown measure {measure!r}", hint=f"one of {', '.join(MEASURES)}", field="measure"
        )
    graph = load_graph(reader)
    values = kept(graph, ("rank", measure), lambda: SCORES[measure](graph))
    chosen = [
        work
        for work in values
        if (year_from is None or (graph.works[work]["year"] or 0) >= year_from)
        and (year_to is None or (graph.works[work]["year"] or 9999) <= year_to)
    ]
    chosen.sort(key=lambda work: (-values[work], graph.order(work)))
    return {
        "measure": measure,
        "meaning": MEANINGS[measure],
        "total": len(chosen),
        "items": [
            node(graph, work, rank=place, score=round(values[work], 8))
            for place, work in enumerate(chosen[: max(1, limit)], start=1)
        ],
        "scope": scope(graph),
    }


def kept(graph: Graph, key: Any, make: Any) -> Any:
    if key not in graph.cache:
        graph.cache[key] = make()
    return graph.cache[key]


def pagerank(graph: Graph) -> dict[int, float]:
    """PageRank over works that cite or are cited: power iteration until the values move by less than TOLERANCE.

    Works without references hand their weight to all. Written out here because networkx would load scipy for it,
    which takes longer than the computation; tests compare with networkx.
    """
    works = sorted({*graph.references, *graph.cited_by})
    if not works:
        return {}
    count = len(works)
    values = dict.fromkeys(works, 1 / count)
    for _step in range(MAX_STEPS):
        sinks = sum(value for work, value in values.items() if not graph.references.get(work))
        base = (1 - DAMPING + DAMPING * sinks) / count
        following = dict.fromkeys(works, base)
        for source, cited in graph.references.items():
            part = DAMPING * values[source] / len(cited)
            for work in cited:
                following[work] += part
        moved = sum(abs(following[work] - values[work]) for work in works)
        values = following
        if moved < TOLERANCE:
            break
    return values


def citations(graph: Graph) -> dict[int, float]:
    return {work: float(len(citing)) for work, citing in graph.cited_by.items()}


def per_year(graph: Graph) -> dict[int, float]:
    newest = max((work["year"] for work in graph.works.values() if work["year"]), default=0)
    return {
        work: len(citing) / (newest - graph.works[work]["year"] + 1)
        for work, citing in graph.cited_by.items()
        if graph.works[work]["year"]
    }


SCORES = {"pagerank": pagerank, "citations": citations, "per-year": per_year}


def communities(reader: Reader) -> dict[str, Any]:
    """Groups of works (Louvain, fixed seed). In a graph of stars the groups are the lists themselves, so works are
    then grouped by which lists hold them, which is exact."""
    graph = load_graph(reader)
    groups, method = kept(graph, "communities", lambda: find_communities(graph))
    return {
        "method": method,
        "total": len(groups),
        "groups": [
            {
                "name": name,
                "size": len(members),
                "years": dict(sorted(Counter(str(graph.works[w]["year"]) for w in members).items())),
                "items": [node(graph, work) for work in members[:10]],
            }
            for name, members in groups
        ],
        "scope": scope(graph),
    }


def find_communities(graph: Graph) -> tuple[list[tuple[str, list[int]]], str]:
    if scope(graph)["stars"]:
        by_lists: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for work, lists in graph.cited_by.items():
            by_lists[tuple(sorted(graph.surveys[one] for one in lists))].append(work)
        found = [(" + ".join(names), sorted(works, key=graph.order)) for names, works in by_lists.items()]
        return sorted(
            found, key=lambda pair: (-len(pair[1]), pair[0])
        ), "the reference lists that hold a work"
    import networkx

    plain = networkx.Graph()
    for citing in sorted(graph.references):
        plain.add_edges_from((citing, cited) for cited in sorted(graph.references[citing]))
    parts = networkx.community.louvain_communities(plain, seed=SEED)
    named = []
    for part in parts:
        members = sorted(part, key=graph.order)
        named.append((graph.works[members[0]]["slug"], members))
    return sorted(named, key=lambda pair: (-len(pair[1]), pair[0])), "Louvain modularity, seed 0"


def community_of(graph: Graph) -> dict[int, str]:
    groups, _method = kept(graph, "communities", lambda: find_communities(graph))
    return {work: name for name, members in groups for work in members}


def timeline(
    reader: Reader,
    *,
    surveys: list[str] | None = None,
    lanes: Mapping[str, str] | None = None,
    limit: int = MAX_VIEW,
) -> dict[str, Any]:
    """Positions for drawing: year on x, citations on y, both 0 … 1; equal data give equal positions.

    `lanes` (work slug → lane, such as a level) puts works into horizontal bands. Within one year works stand in the
    order of their rank, so that nothing jumps when a work is added elsewhere.
    """
    graph = load_graph(reader)
    key = ("timeline", tuple(sorted(surveys or ())), tuple(sorted((lanes or {}).items())), limit)
    return kept(graph, key, lambda: place(graph, surveys, lanes or {}, limit))


def place(graph: Graph, surveys: list[str] | None, lanes: Mapping[str, str], limit: int) -> dict[str, Any]:
    centres = [work for work, slug in graph.surveys.items() if not surveys or slug in surveys]
    chosen = {cited for centre in centres for cited in graph.references.get(centre, ())} | set(centres)
    if not centres:
        chosen = set(graph.references) | set(graph.cited_by)
    dated = sorted((work for work in chosen if graph.works[work]["year"]), key=graph.order)
    shown = dated[:limit]
    years = sorted({graph.works[work]["year"] for work in shown})
    first, last = (years[0], years[-1]) if years else (0, 0)
    names = sorted({lanes.get(graph.works[work]["slug"], "") for work in shown})
    groups = community_of(graph)
    columns: dict[tuple[int, str], list[int]] = defaultdict(list)
    for work in shown:
        columns[graph.works[work]["year"], lanes.get(graph.works[work]["slug"], "")].append(work)
    most = max((len(members) for members in columns.values()), default=1)
    nodes = []
    for (year, lane), members in sorted(columns.items()):
        members.sort(key=graph.order)
        for position, work in enumerate(members):
            # A slight shift in a full year keeps marks apart; the year stays readable.
            across = (position % 7 - 3) / 7 * 0.8 / max(1, last - first + 1)
            height = (position + 0.5) / most
            nodes.append(
                node(
                    graph,
                    work,
                    x=round((year - first + 0.5) / max(1, last - first + 1) + across, 5),
                    y=round((names.index(lane) + height) / max(1, len(names)), 5),
                    lane=lane,
                    community=groups.get(work, ""),
                )
            )
    kept_works = set(shown)
    return {
        "years": [first, last],
        "lanes": names,
        "nodes": nodes,
        "edges": [
            edge(graph, citing, cited)
            for citing in sorted(kept_works, key=graph.order)
            for cited in graph.references.get(citing, ())
            if cited in kept_works
        ],
        "undated": len(chosen) - len(dated),
        "hidden": len(dated) - len(shown),
        "scope": scope(graph),
    }
