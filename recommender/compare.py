"""Techniques side by side: properties as rows, a value and its source in each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recommender import text
from recommender.answer import Json, plain
from recommender.errors import InvalidQuestion
from recommender.knowledge import Knowledge
from taxonomy.model import Technique

MAX_TECHNIQUES = 8

# metric of a reported figure → its row's title
REPORTED = {
    "decode_speedup": "reported decode speed-up",
    "prefill_speedup": "reported prefill speed-up",
    "e2e_speedup": "reported end-to-end speed-up",
    "throughput_gain": "reported throughput gain",
    "memory_reduction": "reported memory reduction",
    "ppl_delta": "reported perplexity change",
    "accuracy_delta": "reported accuracy change",
}


def compare(slugs: Sequence[str], knowledge: Knowledge, outcomes: Mapping[str, Json] | None = None) -> Json:
    """`{"techniques", "rows": [{"property", "cells": [{"value", "source"}]}]}`.

    `outcomes` maps slugs to what the recommender says in one scenario (gain, code, reason).
    """
    if not 2 <= len(slugs) <= MAX_TECHNIQUES:
        raise InvalidQuestion(
            f"{len(slugs)} techniques given",
            hint=f"compare 2 to {MAX_TECHNIQUES} of them",
            field="techniques",
        )
    techniques = []
    for asked in slugs:
        slug = knowledge.find(asked)
        if slug is None:
            import difflib

            near = difflib.get_close_matches(asked, knowledge.techniques, n=3)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            raise InvalidQuestion(
                f"unknown technique {asked[:60]!r}", hint=hint + "See: kb list techniques", field="techniques"
            )
        techniques.append(knowledge.techniques[slug])
    rows: list[Json] = []

    def add(name: str, cell: Any) -> None:
        cells = [cell(technique) for technique in techniques]
        if any(item["value"] not in (None, "", []) for item in cells):
            rows.append({"property": name, "cells": cells})

    add("mechanism", lambda t: _cell(t.mechanism or t.slug, _introduces(t, knowledge)))
    add("introduced", lambda t: _cell(knowledge.years.get(t.slug), _introduces(t, knowledge)))
    for scheme in ("zhou", "yuan", "park"):
        add(
            f"place in {scheme}",
            lambda t, s=scheme: _cell(list(t.levels.get(s, ())), t.level_basis.get(s, "")),
        )
    add("bottlenecks", lambda t: _cell(list(t.bottlenecks), _introduces(t, knowledge)))
    add("phase", lambda t: _cell(t.phase.value, _introduces(t, knowledge)))
    add("training", lambda t: _cell(t.training.value, _introduces(t, knowledge)))
    add("lossless", lambda t: _cell(t.lossless.value, _introduces(t, knowledge)))
    add("needs", lambda t: _cell(needs(t), _introduces(t, knowledge)))
    add("effect", _effect)
    for metric, title in REPORTED.items():
        add(title, lambda t, m=metric: _reported(t, m, knowledge))
    add("engines", lambda t: _cell(list(knowledge.shipped_by(t.slug)), _engine_source(t)))
    add(
        "papers",
        lambda t: _cell([paper["id"] for paper in knowledge.papers.get(t.slug, ())], "knowledge base"),
    )
    add("helps", lambda t: _cell(t.helps_when, _introduces(t, knowledge)))
    add("hurts", lambda t: _cell(t.hurts_when, _introduces(t, knowledge)))
    if outcomes:
        for metric in ("latency", "tpot", "ttft", "throughput", "memory"):
            add(f"gain here: {metric}", lambda t, m=metric: _gain(outcomes.get(t.slug), m))
        add("verdict here", lambda t: _verdict(outcomes.get(t.slug)))
    return plain(
        {
            "techniques": [technique.slug for technique in techniques],
            "names": [technique.name for technique in techniques],
            "rows": rows,
        }
    )


def _cell(value: Any, source: str) -> Json:
    return {"value": value, "source": source}


def _introduces(technique: Technique, knowledge: Knowledge) -> str:
    """The work that introduces a technique: its id in the knowledge base, else its identifier."""
    for paper in knowledge.papers.get(technique.slug, ()):
        if paper["role"] == "introduces":
            return str(paper["id"])
    for work in technique.works:
        if work.role == "introduces":
            return f"arXiv:{work.arxiv_id}" if work.arxiv_id else work.doi or work.url or work.title or ""
    return ""


def needs(technique: Technique) -> list[str]:
    """What device, model and workload must offer, in words."""
    need = technique.requires
    found = [f"{name.upper()} matrix units" for name in need.compute_formats]
    found += ["2:4 sparsity units"] if need.sparsity_2_4 else []
    found += list(need.vendors) + list(need.device_classes)
    if need.min_compute_capability:
        found.append(f"compute capability {need.min_compute_capability:g}")
    found += [f"{need.min_devices} devices"] if need.min_devices > 1 else []
    found += ["a host link"] if need.host_link else []
    found += [f"model: {name}" for name in need.model]
    found += ["reused prompts"] if need.reuse else []
    found += ["a stream of requests"] if need.request_rate else []
    found += ["answers that repeat earlier text"] if need.acceptance else []
    return found


def _effect(technique: Technique) -> Json:
    parts = [f"{effect.field} {effect.op} {effect.value}" for effect in technique.effects]
    sources = list(dict.fromkeys(effect.source for effect in technique.effects if effect.source))
    return _cell("; ".join(parts) or technique.no_effect_reason, ", ".join(sources))


def _reported(technique: Technique, metric: str, knowledge: Knowledge) -> Json:
    """The range of the sound figures of one metric; the source is the paper of its middle."""
    rows = [
        row
        for row in knowledge.evidence.get(technique.slug, ())
        if row["metric"] == metric and not row["suspect"] and row["value"] is not None
    ]
    if not rows:
        return _cell(None, "")
    rows.sort(key=lambda row: float(row["value"]))
    low, high, middle = rows[0], rows[-1], rows[len(rows) // 2]
    unit = middle["unit"] or ""
    if len(rows) == 1:
        value = f"{float(middle['value']):g} {unit}".strip()
    else:
        value = (
            f"{float(low['value']):g} to {float(high['value']):g} {unit}, "
            f"median {float(middle['value']):g} ({len(rows)} figures)"
        )
    source = middle["paper_id"] or middle["source"]
    return _cell(value, f"{source} {middle['locator']}".strip())


def _engine_source(technique: Technique) -> str:
    return ", ".join(dict.fromkeys(item.source for item in technique.engines if item.source)) or ""


def _gain(outcome: Json | None, metric: str) -> Json:
    value = (outcome or {}).get("gain", {}).get(metric)
    return _cell(None if value is None else text.factor(value), "computed by the cost model")


def _verdict(outcome: Json | None) -> Json:
    if not outcome:
        return _cell(None, "")
    if outcome.get("code"):
        return _cell(f"{outcome['code']}: {outcome['reason']}", "computed by the cost model")
    return _cell("recommended", "computed by the cost model")
