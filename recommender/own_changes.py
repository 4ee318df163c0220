"""What each technique changes in a deployment, kept from question to question where neither model nor workload matter.

Most techniques set plain numbers: for the same engine and layout they are the same in every question, so only the
formulas that see the workload or the model are computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from recommender import effects, rank
from recommender.effects import Fields
from recommender.knowledge import Knowledge
from recommender.situation import Situation
from taxonomy.model import Technique

# Deployments whose changes, and devices, engines and models whose limits are kept; one takes some 10 to 20 kB, and the
# catalogue has about 200 devices and as many models.
KEPT = 256


@dataclass(frozen=True, slots=True)
class Alone:
    """A technique by itself on one deployment."""

    changes: Fields
    key: tuple[Any, ...]  # equal for techniques that change the same
    in_place: bool
    spread: float  # see `rank.spread_of`
    activation_format: Any
    weight_format: Any
    kv_format: Any


def alone(changes: Fields, *, in_place: bool) -> Alone:
    """What follows from the changes, worked out once."""
    return Alone(
        changes,
        tuple(sorted(changes.items())),
        in_place,
        rank.spread_of(changes),
        changes.get("activation_format"),
        changes.get("weight_format"),
        changes.get("kv_format"),
    )


NOTHING = alone({}, in_place=False)


def kept(situation: Situation, knowledge: Knowledge) -> list[Alone | None]:
    """What every technique changes on this deployment where the model has what it asks for; to be filled."""
    key = (situation.engine.slug, tuple(situation.base.items()), tuple(situation.overrides.items()))
    pool = of_key(key, "changes", knowledge)
    if "column" not in pool:
        pool["column"] = [None] * len(knowledge.active)
    found: list[Alone | None] = pool["column"]
    return found


def stable(
    technique: Technique, situation: Situation, workload: SimpleNamespace, knowledge: Knowledge
) -> Alone:
    """`work_out` of a technique of the snapshot that the workload does not change, by model and the fields it touches.

    Deployments that differ elsewhere share the result, so that few have to be worked out for a new combination.
    """
    pool: dict[tuple[Any, ...], tuple[Technique, Alone]] = knowledge.standing.setdefault("stable", {})
    base = situation.base
    timeless = technique.slug in knowledge.timeless
    key = (
        id(technique),
        None if timeless else situation.model,
        *[base.get(effect.field) for effect in technique.effects],
        *[base.get(name) for name in LAYOUT],
        *situation.overrides.items(),
    )
    found = pool.get(key)
    if found is None:
        if len(pool) >= KEPT_STABLE:
            pool.clear()
        # The technique is kept beside its changes, so that no other object gets its id.
        found = pool[key] = (technique, work_out(technique, situation, workload, {}))
    return found[1]


LAYOUT = ("devices", "tensor_parallel", "pipeline_parallel")
KEPT_STABLE = 50_000  # some 20 MB


def of_key(key: Any, kind: str, knowledge: Knowledge) -> dict[Any, Any]:
    """A place for what holds for equal keys, to be filled; the oldest makes room."""
    pool: dict[Any, dict[Any, Any]] = knowledge.standing.setdefault(kind, {})
    found = pool.get(key)
    if found is None:
        while len(pool) >= KEPT:
            pool.pop(next(iter(pool)), None)
        found = pool[key] = {}
    return found


def of_object(thing: Any, kind: str, knowledge: Knowledge) -> dict[Any, Any]:
    """A place for what holds for a device, engine or model in every question."""
    pool: dict[int, tuple[Any, dict[Any, Any]]] = knowledge.standing.setdefault(kind, {})
    found = pool.get(id(thing))
    if found is None:
        while len(pool) >= KEPT:
            pool.pop(next(iter(pool)), None)
        # The object is kept beside what is known of it, so that no other gets its id.
        found = pool[id(thing)] = (thing, {})
    return found[1]


def work_out(
    technique: Technique,
    situation: Situation,
    workload: SimpleNamespace,
    host: Mapping[str, Any],
) -> Alone:
    """The changes of one technique on a model that has what its formulas ask about."""
    changes = effects.changes_of(
        technique,
        situation.base,
        model=situation.model,
        workload=workload,
        overrides={**situation.overrides, **host} if host else situation.overrides,
    )
    return alone(changes, in_place=effects.is_in_place(technique, changes, situation.base))
