"""The citation graph: who cites whom, loaded once per data version; every answer a plain dictionary.

With three surveys the graph is three stars: only the surveys' own reference lists are known. Answers carry `scope`,
which says what follows from that and what does not.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations, pairwise
from threading import Lock
from typing import Any

from kb.errors import InvalidQuery, NotFound
from kb.reader import Reader

MAX_VIEW = 5_000  # nodes drawn at once; larger neighbourhoods are summarised
DIRECTIONS = ("both", "references", "cited-by")
MEASURES = ("pagerank", "citations", "per-year")


@dataclass(frozen=True)
class Graph:
    """Works and citations. Adjacency in both directions, in the order of the reference lists."""

    works: Mapping[int, Mapping[str, Any]]
    references: Mapping[int, Mapping[int, int | None]]  # citing → cited → number in its list
    cited_by: Mapping[int, Mapping[int, int | None]]
    slugs: Mapping[str, int]
    surveys: Mapping[int, str]  # work → survey
    version: tuple[Any, ...] = ()
    cache: dict[Any, Any] = field(default_factory=dict, compare=False)

    @property
    def edge_count(self) -> int:
        return sum(len(cited) for cited in self.references.values())

    def degree(self, work: int) -> int:
        return len(self.cited_by.get(work, ()))

    def order(self, work: int) -> tuple[int, int, str]:
        """Most cited first, then the newest, then by slug: the order of every list here."""
        known = self.works[work]
        return (-self.degree(work), -(known["year"] or 0), known["slug"])


LOADED: dict[tuple[Any, ...], Graph] = {}
LOCK = Lock()


def graph_version(reader: Reader) -> tuple[Any, ...]:
    """Changes whenever citations or works do; cheap, so that every request can ask."""
    row = reader.one(
        "SELECT (SELECT value FROM meta WHERE key = 'data_digest') AS digest,"
        " (SELECT MAX(id) FROM citation) AS citation, (SELECT MAX(id) FROM work) AS work,"
        " (SELECT MAX(id) FROM record) AS record, (SELECT COUNT(*) FROM mergelog) AS merges,"
        " (SELECT COUNT(*) FROM mergelog WHERE undone_at <> '') AS undone"
    )
    place = ""
    if reader.dialect == "sqlite":
        found = reader.one("SELECT file FROM pragma_database_list WHERE name = 'main'")
        place = found["file"] if found else ""
    return (place, *(row.values() if row else ()))


def load_graph(reader: Reader) -> Graph:
    """The graph of this database; kept in memory until the data change (in-memory databases are not told apart)."""
    version = graph_version(reader)
    kept = LOADED.get(version) if version[0] else None
    if kept is not None:
        return kept
    graph = read_graph(reader, version)
    with LOCK:
        while len(LOADED) >= 4:
            LOADED.pop(next(iter(LOADED)))
        if version[0]:
            LOADED[version] = graph
    return graph


def read_graph(reader: Reader, version: tuple[Any, ...] = ()) -> Graph:
    references: dict[int, dict[int, int | None]] = {}
    cited_by: dict[int, dict[int, int | None]] = {}
    for row in reader.rows(
        "SELECT citing_id, cited_id, number FROM citation ORDER BY citing_id, number, cited_id"
    ):
        if row["citing_id"] != row["cited_id"]:
            references.setdefault(row["citing_id"], {}).setdefault(row["cited_id"], row["number"])
            cited_by.setdefault(row["cited_id"], {}).setdefault(row["citing_id"], row["number"])
    works = {
        row["id"]: row
        for row in reader.rows(
            "SELECT id, slug, title, year, first_author, kind, role, survey_count FROM work"
        )
    }
    surveys = {
        row["work_id"]: row["slug"]
        for row in reader.rows("SELECT slug, work_id FROM survey ORDER BY slug DESC")
    }
    slugs = {row["slug"]: identifier for identifier, row in works.items()}
    return Graph(works, references, cited_by, slugs, surveys, version)


def find(graph: Graph, reader: Reader, text: str) -> int:
    """A work by slug, survey, arXiv id, DOI or survey number (`zhou:27`)."""
    key = text.strip().lower()
    if key in graph.slugs:
        return graph.slugs[key]
    for work, survey in graph.surveys.items():
        if survey == key:
            return work
        if key.startswith(f"{survey}:") and key[len(survey) + 1 :].isdigit():
            wanted = int(key[len(survey) + 1 :])
            for cited, number in graph.references.get(work, {}).items():
                if number == wanted:
                    return cited
    from kb.store_works import find_work

    try:
        return int(find_work(reader, text)["id"])
    except NotFound:
        introduced = reader.one(
            "SELECT work_id FROM techniquework WHERE technique = :slug ORDER BY role <> 'introduces', id LIMIT 1",
            {"slug": key},
        )
        if introduced is not None:  # a technique stands for the paper that introduces it
            return int(introduced["work_id"])
        near = get_close_matches(key, [*graph.surveys.values(), *graph.slugs], n=3, cutoff=0.5)
        raise NotFound("paper", text, near, hint="see: kb search WORDS") from None


def node(graph: Graph, work: int, **more: Any) -> dict[str, Any]:
    """A work as the graph shows it."""
    known = graph.works[work]
    return {
        "id": known["slug"],
        "title": known["title"],
        "year": known["year"],
        "first_author": known["first_author"],
        "kind": known["kind"],
        "role": known["role"],
        "type": "survey" if work in graph.surveys else "paper",
        "survey": graph.surveys.get(work),
        "cited_by": graph.degree(work),
        "references": len(graph.references.get(work, ())),
        **more,
    }


def edge(graph: Graph, citing: int, cited: int) -> dict[str, Any]:
    return {
        "from": graph.works[citing]["slug"],
        "to": graph.works[cited]["slug"],
        "number": graph.references[citing][cited],
        "type": "cites",
    }


def scope(graph: Graph) -> dict[str, Any]:
    """What the graph holds, and what can and what cannot be concluded from it."""
    citing = [work for work in graph.works if graph.references.get(work)]
    only_surveys = all(work in graph.surveys for work in citing)
    can = [
        "which works a reference list holds",
        "which works several lists share",
        "which works stand in them together",
    ]
    cannot = []
    if only_surveys:
        cannot = [
            "how often a work is cited at all: only the surveys' own lists are known",
            "whether one cited work cites another",
            "influence: a rank here says in how many of these lists a work stands, not how important it is",
        ]
    return {
        "works": len(graph.works),
        "citations": graph.edge_count,
        "citing_works": len(citing),
        "stars": only_surveys,
        "can": can,
        "cannot": cannot,
    }


def neighbours(
    reader: Reader, text: str, *, depth: int = 1, direction: str = "both", limit: int = MAX_VIEW
) -> dict[str, Any]:
    """The works around one: what it cites and what cites it, up to `depth` steps away.

    Beyond `limit` nodes the most cited are kept and the others are counted by year and distance.
    """
    if direction not in DIRECTIONS:
        raise InvalidQuery(
            f"unknown direction {direction!r}", hint=f"one of {', '.join(DIRECTIONS)}", field="direction"
        )
    if not 1 <= depth <= 4:
        raise InvalidQuery(
            f"depth {depth} is not in 1 … 4", field="depth", hint="1 is what cites and is cited"
        )
    limit = max(1, min(limit, MAX_VIEW))
    graph = load_graph(reader)
    root = find(graph, reader, text)
    distance = {root: 0}
    queue = deque([root])
    while queue:
        work = queue.popleft()
        if distance[work] == depth:
            continue
        for other in sorted(adjacent(graph, work, direction), key=graph.order):
            if other not in distance:
                distance[other] = distance[work] + 1
                queue.append(other)
    ranked = sorted(distance, key=lambda work: (distance[work], graph.order(work)))
    kept = set(ranked[:limit])
    left = [work for work in ranked if work not in kept]
    return {
        "root": graph.works[root]["slug"],
        "depth": depth,
        "direction": direction,
        "total": len(ranked),
        "nodes": [node(graph, work, distance=distance[work]) for work in ranked[:limit]],
        "edges": [
            edge(graph, citing, cited)
            for citing in ranked[:limit]
            for cited in graph.references.get(citing, ())
            if cited in kept
        ],
        "summary": summary(graph, left, distance) if left else None,
        "scope": scope(graph),
    }


def adjacent(graph: Graph, work: int, direction: str) -> set[int]:
    found: set[int] = set()
    if direction in ("both", "references"):
        found.update(graph.references.get(work, ()))
    if direction in ("both", "cited-by"):
        found.update(graph.cited_by.get(work, ()))
    return found


def summary(graph: Graph, works: Sequence[int], distance: Mapping[int, int]) -> dict[str, Any]:
    """Works that are not shown, as counts."""
    years = Counter(graph.works[work]["year"] for work in works)
    return {
        "hidden": len(works),
        "by_distance": dict(sorted(Counter(distance[work] for work in works).items())),
        "by_year": {str(year): years[year] for year in sorted(years, key=lambda y: (y is None, y))},
    }


def shortest_path(reader: Reader, start: str, end: str) -> dict[str, Any]:
    """A shortest chain of citations between two works, in whatever direction; all of equal length are counted."""
    graph = load_graph(reader)
    source, target = find(graph, reader, start), find(graph, reader, end)
    steps, ways = {source: 0}, {source: 1}
    before: dict[int, int] = {}
    layer = [source]
    while layer and target not in steps:
        following: list[int] = []
        for work in sorted(layer, key=graph.order):
            for other in sorted(adjacent(graph, work, "both"), key=graph.order):
                if other not in steps:
                    steps[other], ways[other], before[other] = steps[work] + 1, 0, work
                    following.append(other)
                if steps[other] == steps[work] + 1:
                    ways[other] += ways[work]
        layer = following
    answer: dict[str, Any] = {
        "from": graph.works[source]["slug"],
        "to": graph.works[target]["slug"],
        "scope": scope(graph),
    }
    if target not in steps:
        return {**answer, "found": False, "length": None, "count": 0, "nodes": [], "edges": []}
    chain = [target]
    while chain[-1] != source:
        chain.append(before[chain[-1]])
    chain.reverse()
    edges = [
        edge(graph, a, b) if b in graph.references.get(a, ()) else edge(graph, b, a)
        for a, b in pairwise(chain)
    ]
    nodes = [node(graph, work) for work in chain]
    return {
        **answer,
        "found": True,
        "length": len(edges),
        "count": ways[target],
        "nodes": nodes,
        "edges": edges,
    }


def co_cited(reader: Reader, text: str, *, limit: int = 20) -> dict[str, Any]:
    """Works that stand in the same reference lists, by how many lists (Small 1973); `jaccard` is the shared part."""
    graph = load_graph(reader)
    root = find(graph, reader, text)
    lists = set(graph.cited_by.get(root, ()))
    common = Counter(other for citing in lists for other in graph.references[citing] if other != root)
    return together(
        graph, root, common, lambda other: len(lists | set(graph.cited_by[other])), "lists", limit
    )


def coupled(reader: Reader, text: str, *, limit: int = 20) -> dict[str, Any]:
    """Works that cite the same works (bibliographic coupling, Kessler 1963), by how many."""
    graph = load_graph(reader)
    root = find(graph, reader, text)
    cited = set(graph.references.get(root, ()))
    common = Counter(other for one in cited for other in graph.cited_by[one] if other != root)
    return together(
        graph, root, common, lambda other: len(cited | set(graph.references[other])), "references", limit
    )


def together(
    graph: Graph, root: int, common: Counter[int], union: Any, what: str, limit: int
) -> dict[str, Any]:
    ranked = sorted(common, key=lambda other: (-common[other], graph.order(other)))
    return {
        "root": graph.works[root]["slug"],
        "shared": what,
        "total": len(ranked),
        "items": [
            node(graph, other, strength=common[other], jaccard=round(common[other] / union(other), 4))
            for other in ranked[: max(1, limit)]
        ],
        "scope": scope(graph),
    }


def overlap(reader: Reader) -> dict[str, Any]:
    """What the surveys' reference lists share: every pair, and all of them."""
    graph = load_graph(reader)
    lists = {
        slug: set(graph.references.get(work, ()))
        for work, slug in sorted(graph.surveys.items(), key=lambda p: p[1])
    }
    names = sorted(lists)
    pairs = [{"surveys": [a, b], "works": len(lists[a] & lists[b])} for a, b in combinations(names, 2)]
    everywhere = set.intersection(*lists.values()) if lists else set()
    return {
        "surveys": [{"slug": slug, "works": len(works)} for slug, works in lists.items()],
        "distinct": len(set().union(*lists.values())) if lists else 0,
        "pairs": pairs,
        "all": {
            "surveys": names,
            "works": len(everywhere),
            "items": [node(graph, work) for work in sorted(everywhere, key=graph.order)],
        },
    }


def whole(reader: Reader) -> dict[str, Any]:
    """All nodes and edges."""
    graph = load_graph(reader)
    works = sorted({*graph.references, *graph.cited_by}, key=graph.order)
    return {
        "nodes": [node(graph, work) for work in works],
        "edges": [
            edge(graph, citing, cited) for citing in works for cited in graph.references.get(citing, ())
        ],
        "scope": scope(graph),
    }
