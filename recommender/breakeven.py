"""Where a technique stops paying: the batch, context or acceptance at which its gain crosses 1, computed on a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel.specs import Workload
from recommender import effects, rank
from recommender.effects import Fields
from recommender.pricing import price
from recommender.situation import Situation
from taxonomy.model import Technique

Array = NDArray[Any]

BATCHES = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048], dtype=float)
CONTEXTS = np.array([128, 512, 2048, 8192, 32768, 131072], dtype=float)
SAME = 1e-9  # ln of a gain that is none: the last digits of a double decide no crossing
ACCEPTANCES = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])


def crossing(points: Array, gain: Array, start: float) -> float | None:
    """The point nearest to `start` (in ratio) where the gain crosses 1, interpolated in logarithms.

    >>> import numpy as np
    >>> round(crossing(np.array([1.0, 2.0, 4.0]), np.array([2.0, 1.0, 0.5]), 1.0), 6)
    2.0
    >>> crossing(np.array([1.0, 2.0]), np.array([2.0, 1.5]), 1.0) is None
    True
    """
    return crossings(points, gain[None, :], np.array([start]))[0]


def crossings(points: Array, gains: Array, starts: Array) -> list[float | None]:
    """`crossing` of many rows at once."""
    with np.errstate(divide="ignore", invalid="ignore"):
        level, spots = np.log(gains), np.log(points)
        level = np.where(np.abs(level) < SAME, 0.0, level)
        one, two = level[:, :-1], level[:, 1:]
        crosses = np.isfinite(one) & np.isfinite(two) & ((one > 0) != (two > 0)) & (one != two)
        place = spots[:-1] + (spots[1:] - spots[:-1]) * one / (one - two)
    away = np.where(crosses, np.abs(place - np.log(starts)[:, None]), np.inf)
    nearest = away.argmin(axis=1)
    rows = np.arange(len(gains))
    found = np.exp(np.where(crosses[rows, nearest], place[rows, nearest], np.nan)).tolist()
    return [None if value != value else value for value in found]


def break_evens(
    situation: Situation,
    stacks: Sequence[Sequence[Technique]],
    overrides: Sequence[Mapping[str, Any]],
    metric: str,
) -> list[dict[str, Any]]:
    """Break-even batch, context and acceptance of several stacks of techniques, all grids in one call."""
    if not stacks:
        return []
    question = situation.question
    drafting = any(acceptance_of(techniques, situation) is not None for techniques in stacks)
    tail = len(ACCEPTANCES) if drafting else 0
    split = len(BATCHES) + len(CONTEXTS)
    width = split + tail
    batches = np.concatenate([BATCHES, np.full(len(CONTEXTS) + tail, float(question.batch))])
    prompts = np.full(width, float(question.input_tokens))
    prompts[len(BATCHES) : split] = CONTEXTS
    seen = effects.formula_workload(replace(situation.workload, batch=batches, input_tokens=prompts))
    candidates: list[Fields] = [{}]
    for techniques, knobs in zip(stacks, overrides, strict=True):
        rate = acceptance_of(techniques, situation)
        turned = {**situation.overrides, **knobs}
        if rate is not None:
            turned["acceptance_rate"] = np.concatenate([np.full(split, rate), ACCEPTANCES[:tail]])
        candidates.append(
            effects.compose(
                techniques, situation.base, model=situation.model, workload=seen, overrides=turned
            )
        )
    times = len(stacks) + 1
    workload = Workload(
        batch=np.tile(batches, times),
        input_tokens=np.tile(prompts, times),
        output_tokens=question.output_tokens,
        request_rate=question.request_rate,
        cache_hit_rate=question.cache_hit_rate,
    )
    priced = price(situation, candidates, workload=workload, width=width)
    values = priced.metrics[metric].reshape(times, width)
    gains = (
        rank.ratio(values[1:], values[:1]) if metric == "throughput" else rank.ratio(values[:1], values[1:])
    )
    rates = [acceptance_of(techniques, situation) for techniques in stacks]
    count = len(stacks)
    batch = crossings(BATCHES, gains[:, : len(BATCHES)], np.full(count, float(question.batch)))
    context = crossings(
        CONTEXTS, gains[:, len(BATCHES) : split], np.full(count, float(question.input_tokens))
    )
    least: list[float | None] = [None] * count
    if drafting:
        least = crossings(ACCEPTANCES, gains[:, split:], np.array([max(rate or 0.5, 0.01) for rate in rates]))
    answers = []
    for i, rate in enumerate(rates):
        found: dict[str, Any] = {"batch": whole(batch[i]), "context_tokens": whole(context[i])}
        if rate is not None:
            value = least[i]
            found["acceptance_rate"] = None if value is None else round(value, 3)
        answers.append(found)
    return answers


def acceptance_of(techniques: Sequence[Technique], situation: Situation) -> float | None:
    """The acceptance that a stack counts with: the user's or the technique's; None where nothing is drafted."""
    given = situation.overrides.get("acceptance_rate")
    for technique in techniques:
        for knob in technique.knobs:
            if knob.name == "acceptance_rate":
                return float(knob.default if given is None else given)
    return None


def spread_out(changes: Fields, width: int) -> list[Fields]:
    """One dictionary per grid point, out of changes that may hold arrays over the grid."""
    arrays = {name: value for name, value in changes.items() if isinstance(value, np.ndarray) and value.ndim}
    if not arrays:
        return [changes] * width
    return [{**changes, **{name: value[i] for name, value in arrays.items()}} for i in range(width)]


def whole(value: float | None) -> int | None:
    """The first whole number at or beyond a crossing."""
    return None if value is None else max(1, math.ceil(value - 1e-9))
