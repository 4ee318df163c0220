"""Gain against batch and against context: the same grids as the break-even, with bands and memory ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recommender import breakeven, effects, rank
from recommender.answer import Json, plain
from recommender.assess import spread_of
from recommender.effects import Fields
from recommender.knowledge import Knowledge
from recommender.pricing import price
from recommender.question import Question
from recommender.situation import resolve

# An objective → the metric whose gain it ranks by, as in recommender.assess.
METRIC_OF = {"cost": "throughput"}


def gain_curves(
    knowledge: Knowledge,
    question: Question,
    techniques: Sequence[str],
    *,
    overrides: Mapping[str, Any] | None = None,
    metric: str | None = None,
) -> Json:
    """Gain of a stack of techniques over the question's baseline along batch and along prompt length.

    {"metric", "batch": [{"x", "gain", "low", "high", "fits", "baseline_fits"}], "context_tokens": [same],
    "break_even": {"batch", "context_tokens"}}; one call of the cost model.
    """
    situation = resolve(question, knowledge)
    metric = metric or METRIC_OF.get(question.objective, question.objective)
    batches = np.unique(np.append(breakeven.BATCHES[:-2], float(question.batch)))
    contexts = np.unique(np.append(breakeven.CONTEXTS, float(question.input_tokens)))
    batch = np.concatenate([batches, np.full(len(contexts), float(question.batch))])
    prompt = np.concatenate([np.full(len(batches), float(question.input_tokens)), contexts])
    width = len(batch)
    grid = replace(situation.workload, batch=batch, input_tokens=prompt)
    changes = effects.compose(
        [knowledge.techniques[slug] for slug in techniques],
        situation.base,
        model=situation.model,
        workload=effects.formula_workload(grid),
        overrides={**situation.overrides, **(overrides or {})},
    )
    candidates: list[Fields] = [{}] * width
    candidates += breakeven.spread_out(changes, width)
    workload = replace(
        grid, batch=np.tile(batch, 2), input_tokens=np.tile(prompt, 2), output_tokens=question.output_tokens
    )
    priced = price(situation, candidates, workload=workload)
    values = priced.metrics[metric].reshape(2, width)
    gain = rank.ratio(values[1], values[0]) if metric == "throughput" else rank.ratio(values[0], values[1])
    fits = priced.fits.reshape(2, width)
    spread = 0.0 if metric in ("memory", "max_batch") else spread_of(changes)
    split = len(batches)

    def points(places: Any, start: int) -> list[Json]:
        found = []
        for i, place in enumerate(places, start=start):
            value = rank.number(gain[i])
            band = rank.interval(value, spread) if spread else (value, value)
            low, high = band or (None, None)
            found.append(
                {
                    "x": float(place),
                    "gain": value,
                    "low": low,
                    "high": high,
                    "fits": bool(fits[1, i]),
                    "baseline_fits": bool(fits[0, i]),
                }
            )
        return found

    return {
        "metric": metric,
        "techniques": list(techniques),
        "batch": points(batches, 0),
        "context_tokens": points(contexts, split),
        "break_even": {
            "batch": _rounded(breakeven.crossing(batches, gain[:split], question.batch)),
            "context_tokens": _rounded(breakeven.crossing(contexts, gain[split:], question.input_tokens)),
        },
    }


def full_estimate(knowledge: Knowledge, question: Question, changes: Mapping[str, Any]) -> Json:
    """The estimate of one recommended deployment with its operators, which answers carry for the baseline only."""
    return plain(price(resolve(question, knowledge), [dict(changes)]).full_body(0))


def _rounded(value: float | None) -> int | None:
    return None if value is None else max(1, round(value))
