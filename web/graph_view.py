"""Sets of works and the edges between them, out of the snapshot: what the graph page draws and lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kb import graph as kb_graph
from kb.reader import Reader
from web.charts.timeline import Edge, Node
from web.snapshot import SCHEME_NAMES, Snapshot
from web.urls import record_path

Item = dict[str, Any]

RELATIONS = {
    "references": "what it cites",
    "cited-by": "what cites it",
    "co-cited": "cited by the same works",
    "coupled": "citing the same works",
}
LEVEL_LANES = (("data", "Data level", 5), ("model", "Model level", 1), ("system", "System level", 3))
ROLE_LANES = {
    "survey": "Surveys",
    "model": "Models",
    "benchmark": "Benchmarks and data",
    "system": "Systems and software",
    "technique": "Techniques, unclassified",
    "background": "Background",
    "": "Unclassified",
}
GROUP_NAMES = {3: "All three surveys", 0: "None of the three"}


def level_lane(work: Item) -> tuple[str, int]:
    """The lane and colour of a work by Zhou's first level of its techniques, or by its role."""
    tops = Counter(path.split("/")[0] for path in work["levels"].get("zhou", []))
    if work["is_survey"]:
        return "Surveys", 4
    for top, name, colour in LEVEL_LANES:
        if tops and max(tops, key=lambda each: (tops[each], each)) == top:
            return name, colour
    return ROLE_LANES.get(work["role"], "Unclassified"), 4 if work["role"] == "survey" else 0


def survey_lane(work: Item) -> str:
    """The community a citation graph of three stars has: which surveys cite the work."""
    if work["is_survey"]:
        return "Surveys"
    slugs = work["surveys"]
    if len(slugs) in GROUP_NAMES:
        return GROUP_NAMES[len(slugs)]
    names = [SCHEME_NAMES.get(slug, slug).split(" ")[0] for slug in slugs]
    return " and ".join(names) if len(names) > 1 else f"{names[0]} only"


def lane_of(work: Item, lanes: str) -> str:
    return survey_lane(work) if lanes == "survey" else level_lane(work)[0]


def lane_order(works: Iterable[Item], lanes: str) -> list[str]:
    """Lanes that hold something: surveys first, then classes, then roles."""
    present = Counter(lane_of(work, lanes) for work in works)
    if lanes == "survey":
        return sorted(
            present,
            key=lambda name: (
                name != "Surveys",
                name.startswith("None"),
                name.endswith("only"),
                "All" not in name,
                name,
            ),
        )
    order = ["Surveys", *(name for _, name, _ in LEVEL_LANES), *ROLE_LANES.values()]
    return sorted(present, key=lambda name: order.index(name) if name in order else 99)


def node_of(work: Item, href: str, lanes: str, *, strong: bool) -> Node:
    who = work["first_author"] or "Unknown"
    year = f" {work['year']}" if work["year"] else ""
    size = 8.0 if strong else 4.0 + len(work["surveys"])
    colour = level_lane(work)[1]
    return Node(
        work["slug"],
        f"{who}{year}: {work['title']}",
        f"{who}{year}",
        href,
        work["year"],
        lane_of(work, lanes),
        colour,
        size,
        strong,
    )


def related(snapshot: Snapshot, reader: Reader, root: Item, relation: str) -> list[tuple[Item, int]]:
    """Works related to one, with how many works support the relation, in the order of `kb graph`."""
    if relation in ("co-cited", "coupled"):
        ask = kb_graph.co_cited if relation == "co-cited" else kb_graph.coupled
        answer = ask(reader, root["slug"], limit=kb_graph.MAX_VIEW)
        found = [(each["id"], each["strength"]) for each in answer["items"]]
    else:
        answer = kb_graph.neighbours(reader, root["slug"], direction=relation)
        found = [(each["id"], 1) for each in answer["nodes"] if each["id"] != root["slug"]]
    return [(snapshot.work_by_slug[slug], count) for slug, count in found if slug in snapshot.work_by_slug]


def shortest_path(snapshot: Snapshot, reader: Reader, start: Item, end: Item) -> list[Item]:
    """Fewest citations between two works, followed either way; empty where they are not connected."""
    answer = kb_graph.shortest_path(reader, start["slug"], end["slug"])
    return [
        snapshot.work_by_slug[each["id"]] for each in answer["nodes"] if each["id"] in snapshot.work_by_slug
    ]


def edges_among(snapshot: Snapshot, works: Sequence[Item]) -> list[Edge]:
    """Citations between the works in view."""
    inside = {work["id"]: work["slug"] for work in works}
    return [
        Edge(inside[row["citing_id"]], inside[row["cited_id"]])
        for row in snapshot.citations
        if row["citing_id"] in inside and row["cited_id"] in inside
    ]


def overlap_counts(reader: Reader) -> dict[str, int]:
    """Works that all surveys cite (`all`), and each pair."""
    answer = kb_graph.overlap(reader)
    counts = {",".join(pair["surveys"]): pair["works"] for pair in answer["pairs"]}
    return counts | {"all": answer["all"]["works"]}


def ranked_works(works: Iterable[Item]) -> list[Item]:
    """Most cited by the surveys first, then with most figures and techniques here."""
    return sorted(
        works,
        key=lambda work: (
            -len(work["surveys"]),
            -work["evidence_count"],
            -len(work["technique_links"]),
            work["slug"],
        ),
    )


def page_link(work: Item) -> str:
    return record_path("papers", work["slug"])
