"""The facets of papers and techniques over the snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from web.listing import Facet
from web.snapshot import SCHEME_NAMES, Snapshot

TRAINING_ORDER = {"none": 0, "calibration": 1, "finetune": 2, "pretrain": 3}
LOSSLESS_NAMES = {"yes": "lossless", "approx": "small measured loss", "no": "changes the output"}
KIND_NAMES = {"software": "software", "hardware": "hardware design", "model": "model architecture"}


def level_values(item: Mapping[str, Any], scheme: str) -> Iterable[str]:
    """Every node on the way to the item's classes, so that a parent counts its children."""
    for path in item["levels"].get(scheme, []):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            yield "/".join(parts[:depth])


def level_facet(snapshot: Snapshot, scheme: str) -> Facet:
    positions = {
        level["path"]: index for index, level in enumerate(snapshot.levels) if level["scheme"] == scheme
    }

    def label(path: str) -> str:
        level = snapshot.level_by_path.get((scheme, path))
        return level["name"] if level else path

    return Facet(
        scheme,
        f"Level, {SCHEME_NAMES[scheme]}",
        lambda item: level_values(item, scheme),
        label,
        lambda path: (positions.get(path, len(positions)), path),
        depth=lambda path: path.count("/"),
    )


def bottleneck_facet(snapshot: Snapshot) -> Facet:
    positions = {each["slug"]: index for index, each in enumerate(snapshot.bottlenecks)}
    names = {each["slug"]: each["name"] for each in snapshot.bottlenecks}
    return Facet(
        "bottleneck",
        "Bottleneck",
        lambda item: item["bottlenecks"],
        lambda slug: names.get(slug, slug),
        lambda slug: (positions.get(slug, 99), slug),
        shown=11,
    )


def plain_facet(
    name: str, title: str, labels: Mapping[str, str] | None = None, order: Callable[[str], Any] | None = None
) -> Facet:
    return Facet(
        name,
        title,
        lambda item: [item[name]] if item[name] else [],
        lambda value: (labels or {}).get(value, value),
        order,
    )


def technique_facets(snapshot: Snapshot) -> list[Facet]:
    return [
        level_facet(snapshot, "zhou"),
        bottleneck_facet(snapshot),
        plain_facet("phase", "Phase it helps"),
        plain_facet("training", "Training needed", order=lambda value: TRAINING_ORDER.get(value, 9)),
        plain_facet("lossless", "Output", LOSSLESS_NAMES),
        Facet("engine", "Runs in", lambda item: item["engine_slugs"], shown=8),
        Facet(
            "has",
            "Has",
            lambda item: ["numbers"] if item["evidence_count"] else ["none"],
            lambda value: {"numbers": "published results", "none": "none yet"}.get(value, value),
        ),
        plain_facet("kind", "Kind", KIND_NAMES),
        level_facet(snapshot, "yuan"),
        level_facet(snapshot, "park"),
    ]


def paper_facets(snapshot: Snapshot) -> list[Facet]:
    return [
        Facet(
            "survey",
            "Cited by",
            lambda item: item["surveys"] or ["none"],
            lambda slug: SCHEME_NAMES.get(slug, "none of the three"),
            str,
        ),
        Facet(
            "cited",
            "Number of surveys",
            lambda item: [str(len(item["surveys"]))],
            lambda value: {"0": "none", "1": "one", "2": "two", "3": "all three"}.get(value, value),
            lambda value: "-" + value if value < "0" else chr(255 - ord(value[0])),
        ),
        Facet("role", "Role", lambda item: [item["role"] or "unclassified"]),
        level_facet(snapshot, "zhou"),
        bottleneck_facet(snapshot),
        Facet(
            "has",
            "Has",
            lambda item: (
                (["numbers"] if item["evidence_count"] else [])
                + (["technique"] if item["technique_links"] else [])
            ),
            lambda value: {"numbers": "published results here", "technique": "a technique here"}.get(
                value, value
            ),
        ),
        Facet("kind", "Kind", lambda item: [item["kind"]]),
        Facet(
            "year",
            "Year",
            lambda item: [str(item["year"])] if item["year"] else ["not stated"],
            order=lambda value: (0, -int(value)) if value.isdigit() else (1, 0),
            shown=8,
        ),
        level_facet(snapshot, "yuan"),
        level_facet(snapshot, "park"),
    ]
