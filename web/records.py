"""What a record's page shows beyond the record itself: breadcrumbs, groups of published results, relations."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from web.snapshot import SCHEME_NAMES, Snapshot

Item = dict[str, Any]

RELATION_WORDS = {
    "composes": ("✓ add up", "ok"),
    "requires": ("needs", "warn"),
    "conflicts": ("✗ either or", "bad"),
    "subsumes": ("includes", ""),
}
OPERATION_WORDS = {"set": "=", "multiply": "×", "add": "+", "min": "at most", "max": "at least"}
ROLE_ORDER = {"introduces": 0, "evaluates": 1, "surveys": 2}


def breadcrumbs(snapshot: Snapshot, levels: Mapping[str, Sequence[str]]) -> list[Item]:
    """For each scheme the first class with its parents: what a reader finds it under in each survey."""
    found = []
    for scheme in SCHEME_NAMES:
        for path in list(levels.get(scheme, []))[:2]:
            parts = path.split("/")
            steps = []
            for depth in range(1, len(parts) + 1):
                level = snapshot.level_by_path.get((scheme, "/".join(parts[:depth])))
                if level:
                    steps.append({"name": level["name"], "path": level["path"], "basis": level["basis"]})
            if steps:
                found.append({"scheme": scheme, "scheme_name": SCHEME_NAMES[scheme], "steps": steps})
    return found


def relations_of(snapshot: Snapshot, technique: Item) -> list[Item]:
    """Declared relations, each named from this technique's side; partners that are mechanisms keep their name."""
    own = {technique["slug"], technique["mechanism"]} - {""}
    found, seen = [], set()
    for row in snapshot.relations:
        if row["a"] in own:
            other, forward = row["b"], True
        elif row["b"] in own:
            other, forward = row["a"], False
        else:
            continue
        if (other, row["kind"]) in seen or other in own:
            continue
        seen.add((other, row["kind"]))
        words, cls = RELATION_WORDS.get(row["kind"], (row["kind"], ""))
        if not forward and row["kind"] == "requires":
            words = "needed by"
        if not forward and row["kind"] == "subsumes":
            words = "part of"
        partner = snapshot.technique_by_slug.get(other)
        members = (
            [each for each in snapshot.techniques if each["mechanism"] == other][:6]
            if partner is None
            else []
        )
        found.append(
            {**row, "other": other, "partner": partner, "members": members, "words": words, "cls": cls}
        )
    return sorted(found, key=lambda row: (row["kind"], row["other"]))


def siblings(snapshot: Snapshot, technique: Item) -> list[Item]:
    """Other techniques with the same effect on a deployment."""
    if not technique["mechanism"]:
        return []
    return [
        each
        for each in snapshot.techniques
        if each["mechanism"] == technique["mechanism"] and each is not technique
    ]


def setting_of(row: Item) -> str:
    batch = stated(row["batch"])
    return f"batch {batch}" if batch else "batch not stated"


def lengths_of(row: Item) -> str:
    """Prompt and output lengths, as far as they are printed.

    >>> lengths_of({"input_tokens": "128", "output_tokens": "not stated"})
    '128 in'
    """
    found = ((stated(row["input_tokens"]), "in"), (stated(row["output_tokens"]), "out"))
    return ", ".join(f"{value} {word}" for value, word in found if value)


def stated(cell: Any) -> str:
    text = str(cell or "").strip()
    return "" if text.casefold() == "not stated" else text


def evidence_groups(rows: Sequence[Item]) -> list[Item]:
    """Published results of one technique, grouped by metric, hardware, model and batch; the fullest groups first."""
    groups: dict[tuple[Any, ...], list[Item]] = defaultdict(list)
    for row in rows:
        key = (
            row["metric"],
            row["unit"],
            row["hardware"] or "GPU not stated",
            row["model"] or "model not stated",
            setting_of(row),
            row["baseline"] or "",
            source_of(row),
        )
        groups[key].append(row)
    found = []
    for key, members in groups.items():
        metric, unit, hardware, model, setting, baseline, source = key
        values = sorted(
            value for row in members for value in (row["value"], row["value_hi"]) if value is not None
        )
        found.append(
            {
                "metric": metric,
                "metric_name": metric_name(metric),
                "unit": unit,
                "hardware": hardware,
                "model": model,
                "setting": setting,
                "baseline": baseline,
                "source": source,
                "locator": members[0]["locator"],
                "confidence": members[0]["confidence"],
                "suspect": any(row["suspect"] for row in members),
                "median": values[len(values) // 2]
                if len(values) % 2
                else math.sqrt(abs(values[len(values) // 2 - 1] * values[len(values) // 2]))
                if values[0] > 0
                else (values[0] + values[-1]) / 2,
                "low": values[0],
                "high": values[-1],
                "count": len(members),
                "rows": members,
                "is_ratio": unit in ("x", "×", "ratio"),
                "kind": members[0]["value_kind"],
                "paper_id": members[0]["paper_id"],
                "paper_name": members[0]["paper_name"],
                "source_url": members[0]["source_url"],
            }
        )
    return sorted(found, key=lambda group: (metric_rank(group["metric"]), -group["count"], group["hardware"]))


METRIC_ORDER = (
    "decode_speedup",
    "e2e_speedup",
    "speedup",
    "throughput",
    "prefill_speedup",
    "ttft",
    "memory",
    "kernel",
)


def metric_rank(metric: str) -> int:
    return next(
        (index for index, name in enumerate(METRIC_ORDER) if metric.startswith(name)), len(METRIC_ORDER)
    )


def metric_name(metric: str) -> str:
    """
    >>> metric_name("decode_speedup"), metric_name("ttft_reduction")
    ('decode speed-up', 'TTFT reduction')
    """
    words = metric.replace("_", " ").replace("speedup", "speed-up")
    return re.sub(
        r"\b(ttft|tpot|kv|e2e)\b",
        lambda match: {"e2e": "end-to-end", "kv": "KV"}.get(match[0], match[0].upper()),
        words,
    )


def source_of(row: Item) -> str:
    return str(row["source"] or row["paper_title"] or row["arxiv_id"] or "")


def first_number(text: str) -> float | None:
    """The first number of a free-text cell (`"1"`, `"1-8"`, `"batch 16"`); None for `"not stated"`."""
    match = re.search(r"\d+(?:\.\d+)?", str(text or "").replace(",", ""))
    return float(match[0]) if match else None


def requirement_words(requires: Mapping[str, Any]) -> list[str]:
    """What hardware, model and deployment must offer, as phrases."""
    words = []
    if requires.get("compute_formats"):
        words.append(f"matrix units for {', '.join(requires['compute_formats'])}")
    if requires.get("sparsity_2_4"):
        words.append("2:4 sparse matrix units")
    if requires.get("vendors"):
        words.append(" or ".join(requires["vendors"]))
    if requires.get("device_classes"):
        words.append(f"{' or '.join(requires['device_classes'])} devices")
    if requires.get("min_compute_capability"):
        words.append(f"NVIDIA compute capability {requires['min_compute_capability']} or later")
    if (requires.get("min_devices") or 1) > 1:
        words.append(f"at least {requires['min_devices']} devices")
    if requires.get("host_link"):
        words.append("a link to host memory")
    if requires.get("model"):
        words.append(f"{' or '.join(requires['model'])} models")
    if (requires.get("min_batch") or 1) > 1:
        words.append(f"batch {requires['min_batch']} or more")
    if requires.get("reuse"):
        words.append("prompts that share tokens")
    if requires.get("request_rate"):
        words.append("requests that arrive over time")
    return words


def effect_words(effect: Mapping[str, Any]) -> Item:
    """One declared change, readable: `weight_format = w4a16-awq-g128`."""
    return {
        "field": str(effect["field"]).replace("_", " "),
        "operation": OPERATION_WORDS.get(effect.get("op", "set"), effect.get("op", "set")),
        "value": effect.get("value", 0),
        "source": effect.get("source", ""),
        "basis": effect.get("basis", "paper"),
    }
