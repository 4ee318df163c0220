"""What the engine in use does not offer: techniques it does not ship, number formats it cannot load or store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costmodel.formats import find_format, for_engine
from recommender import text
from recommender.engines import names
from recommender.knowledge import Knowledge
from recommender.refusals import Refusal
from recommender.situation import Situation
from taxonomy.model import Technique


def not_offered(
    technique: Technique, changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge
) -> list[Refusal]:
    """Why an engine that does not ship a technique cannot run it; the same in every question about the engine."""
    engine, offered = situation.engine, knowledge.shipped_by(technique.slug)
    unreadable = format_refusals(changes, situation)
    if unreadable or not technique.engines:
        return unreadable
    if any(
        engine.slug in knowledge.shipped_by(slug) for slug in knowledge.members.get(technique.mechanism, ())
    ):
        return []
    if not offered:
        return [
            Refusal(
                "not-applicable", f"{text.engine(engine.name)} does not offer it; only research code exists."
            )
        ]
    verb = "do" if len(offered) > 1 else "does"
    return [
        Refusal("not-applicable", f"{text.engine(engine.name)} does not offer it; {names(offered)} {verb}.")
    ]


def format_refusals(changes: Mapping[str, Any], situation: Situation) -> list[Refusal]:
    """Number formats that the engine cannot load or store."""
    engine = situation.engine
    weights, cache = changes.get("weight_format"), changes.get("kv_format")
    if isinstance(weights, str) and engine.formats:
        found = find_format(for_engine(weights, engine.format_aliases))
        if found.family not in engine.formats:
            known = ", ".join("fp16" if family == "float" else family for family in engine.formats)
            return [
                Refusal(
                    "not-applicable",
                    f"{text.engine(engine.name)} does not load {text.format_name(found.name)}; it loads {known}.",
                )
            ]
    if isinstance(cache, str) and engine.kv_formats and cache not in engine.kv_formats:
        kept = find_format(for_engine(cache, engine.format_aliases, "kv"), "kv", "kv_format")
        if kept.slug not in engine.kv_formats:
            known = ", ".join(engine.kv_formats)
            return [
                Refusal(
                    "not-applicable",
                    f"{text.engine(engine.name)} does not keep its cache in {text.format_name(kept.name)}; it keeps it in {known}.",
                )
            ]
    return []
