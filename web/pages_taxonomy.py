"""The vocabulary as pages: the three schemes side by side, the bottlenecks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from web.deps import LibraryDep
from web.facets import level_values
from web.render import page
from web.snapshot import SCHEME_NAMES, Snapshot
from web.urls import link

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Item = dict[str, Any]
SAME_CLASS = 0.25  # classes that share less than this part of their techniques are different ideas


@router.get("/levels")
def levels(request: Request, library: LibraryDep) -> HTMLResponse:
    """Three taxonomies side by side, and what only one of them has."""
    snapshot = library.snapshot()
    matches = counterparts(snapshot)
    schemes = [scheme_tree(snapshot, scheme, matches) for scheme in SCHEME_NAMES]
    shared = sum(len(each["levels"]) == len(SCHEME_NAMES) for each in snapshot.techniques)
    return page(
        request,
        "levels.html",
        title=f"Three taxonomies: {shared} of {len(snapshot.techniques)} techniques have a place in all of them",
        json_url="/api/v1/levels",
        command="kb list levels",
        schemes=schemes,
        only=only_here(snapshot, matches),
        gaps=gaps(snapshot),
        mapping=mapping_rows(snapshot),
    )


Matches = dict[tuple[str, str], dict[str, tuple[str, float]]]


def counterparts(snapshot: Snapshot) -> Matches:
    """For each class the class of each other scheme that shares most techniques with it (Jaccard index)."""
    members: dict[tuple[str, str], set[str]] = {}
    for technique in snapshot.techniques:
        for scheme in SCHEME_NAMES:
            for path in set(level_values(technique, scheme)):
                members.setdefault((scheme, path), set()).add(technique["slug"])
    found: Matches = {}
    for here, mine in members.items():
        found[here] = {}
        for (scheme, path), theirs in members.items():
            if scheme == here[0]:
                continue
            share = len(mine & theirs) / len(mine | theirs)
            if share > found[here].get(scheme, ("", 0.0))[1]:
                found[here][scheme] = (path, share)
    return found


def is_alone(matches: Matches, scheme: str, path: str) -> bool:
    """No class of the other surveys holds mostly the same techniques."""
    near = matches.get((scheme, path))
    return near is not None and all(share < SAME_CLASS for _, share in near.values())


def only_here(snapshot: Snapshot, matches: Matches) -> list[Item]:
    """Classes without a counterpart, with the closest class of each other scheme and how much it shares."""
    rows = []
    for level in snapshot.levels:
        scheme, path = level["scheme"], level["path"]
        if not is_alone(matches, scheme, path):
            continue
        near = [
            f"{snapshot.level_by_path[(other, where)]['name']} ({other}, {share:.0%} shared)"
            for other, (where, share) in sorted(matches[(scheme, path)].items())
            if (other, where) in snapshot.level_by_path
        ]
        rows.append(
            {
                "scheme": SCHEME_NAMES[scheme],
                "name": level["name"],
                "href": link("/techniques", {scheme: path}),
                "near": "; ".join(near) or "nothing",
            }
        )
    return rows


def gaps(snapshot: Snapshot) -> list[Item]:
    """Techniques that a scheme has no class for."""
    return [
        {"name": name, "techniques": [each for each in snapshot.techniques if not each["levels"].get(scheme)]}
        for scheme, name in SCHEME_NAMES.items()
    ]


def scheme_tree(snapshot: Snapshot, scheme: str, matches: Matches) -> Item:
    """Nodes in the survey's order, each with the techniques at or below it."""
    counts: Counter[str] = Counter()
    for technique in snapshot.techniques:
        counts.update(set(level_values(technique, scheme)))
    nodes: dict[str, Item] = {}
    roots: list[Item] = []
    own = [level for level in snapshot.levels if level["scheme"] == scheme]
    for level in own:
        path = level["path"]
        node = {
            "name": level["name"],
            "href": link("/techniques", {scheme: path}),
            "count": counts[path],
            "compiled": level["basis"] == "compiled",
            "alone": is_alone(matches, scheme, path),
            "depth": path.count("/"),
            "children": [],
        }
        nodes[path] = node
        parent = nodes.get(path.rpartition("/")[0])
        (parent["children"] if parent else roots).append(node)
    placed = sum(bool(each["levels"].get(scheme)) for each in snapshot.techniques)
    return {
        "slug": scheme,
        "name": SCHEME_NAMES[scheme],
        "count": len(own),
        "techniques": placed,
        "roots": roots,
    }


def mapping_rows(snapshot: Snapshot) -> list[Item]:
    """Zhou's second-level classes against where the others put the same techniques."""
    rows = []
    for level in snapshot.levels:
        if level["scheme"] != "zhou" or level["path"].count("/") != 1:
            continue
        members = [each for each in snapshot.techniques if level["path"] in set(level_values(each, "zhou"))]
        row: Item = {"name": level["name"], "href": link("/techniques", {"zhou": level["path"]})}
        for scheme in ("yuan", "park"):
            counted = Counter(path for each in members for path in set(each["levels"].get(scheme, [])))
            row[scheme] = [
                (snapshot.level_by_path[(scheme, path)]["name"], count, link("/techniques", {scheme: path}))
                for path, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))[:4]
                if (scheme, path) in snapshot.level_by_path
            ]
        rows.append(row)
    return rows


@router.get("/bottlenecks")
def bottlenecks(request: Request, library: LibraryDep) -> HTMLResponse:
    """What can limit inference, and what relieves it; beside it the matrix bottleneck × phase."""
    snapshot = library.snapshot()
    rows = []
    for each in snapshot.bottlenecks:
        members = [item for item in snapshot.techniques if each["slug"] in item["bottlenecks"]]
        phases = Counter(item["phase"] for item in members)
        cells: list[Any] = [
            {"text": str(len(members)), "href": link("/techniques", {"bottleneck": each["slug"]})}
        ]
        for phase in ("prefill", "decode", "both"):
            pairs = [("bottleneck", each["slug"]), ("phase", phase)]
            cells.append(
                {"text": str(phases[phase]), "href": link("/techniques", pairs)} if phases[phase] else "–"
            )
        rows.append(
            {"id": each["slug"], "name": each["name"], "sub": each["description"], "href": "", "cells": cells}
        )
    return page(
        request,
        "simple_list.html",
        title=f"{len(rows)} bottlenecks of LLM inference, and what relieves each",
        lede="A technique pays where it relieves what limits you; the answer to a question names its bottleneck first.",
        json_url="/api/v1/bottlenecks",
        command="kb list bottlenecks",
        columns=[
            ("Bottleneck", ""),
            ("Techniques", "num"),
            ("Prefill", "num"),
            ("Decode", "num"),
            ("Both", "num"),
        ],
        rows=rows,
    )
