"""Gain against batch and against context: the same grids as the break-even, with bands and memory ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recommender import breakeven, effects, rank
from recommender.answer import Json, plain
from recommender.assess import Assessments, assess
from recommender.effects import Fields
from recommender.knowledge import Knowledge
from recommender.pricing import price
from recommender.question import Question
from recommender.situation import Situation, resolve
from taxonomy.model import Technique

MOST_BATCH = 512  # drawn, unless the question asks for more


def gain_curves(
    situation: Situation,
    techniques: Mapping[str, Technique],
    *,
    overrides: Mapping[str, Any] | None = None,
    metric: str | None = None,
) -> Json:
    """Gain of a stack of techniques (by slug) over the question's baseline along batch and along prompt length.

    {"metric", "batch": [{"x", "gain", "low", "high", "fits", "baseline_fits"}], "context_tokens": [same],
    "break_even": {"batch", "context_tokens"}}; one call of the cost model.
    """
    question = situation.question
    metric = metric or rank.METRIC_OF[question.objective]
    batches = np.unique(np.append(breakeven.BATCHES, float(question.batch)))
    contexts = np.unique(np.append(breakeven.CONTEXTS, float(question.input_tokens)))
    batch = np.concatenate([batches, np.full(len(contexts), float(question.batch))])
    prompt = np.concatenate([np.full(len(batches), float(question.input_tokens)), contexts])
    width = len(batch)
    grid = replace(situation.workload, batch=batch, input_tokens=prompt)
    changes = effects.compose(
        list(techniques.values()),
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
    spread = 0.0 if metric in ("memory", "max_batch") else rank.spread_of(changes)
    split = len(batches)

    def points(places: Any, start: int, most: float) -> list[Json]:
        found = []
        for i, place in enumerate(places, start=start):
            if place > most:
                break
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

    def crosses(places: Any, grid: Any, start: int, here: float) -> int | None:
        on_grid = np.isin(
            places, grid
        )  # so that it is the break-even of the answer, which knows the grid alone
        found = gain[start : start + len(places)][on_grid]
        return breakeven.whole(breakeven.crossing(places[on_grid], found, here))

    return {
        "metric": metric,
        "techniques": list(techniques),
        "batch": points(batches, 0, max(MOST_BATCH, question.batch)),
        "context_tokens": points(contexts, split, math.inf),
        "break_even": {
            "batch": crosses(batches, breakeven.BATCHES, 0, question.batch),
            "context_tokens": crosses(contexts, breakeven.CONTEXTS, split, question.input_tokens),
        },
    }


def advised_curves(
    knowledge: Knowledge, question: Question, slugs: Sequence[str], deployment: Mapping[str, Any]
) -> Json:
    """`gain_curves` of techniques in the form in which they are advised: the width that fits, the engine's kernels.

    `deployment` is the advised one; the share of weights it keeps in host memory holds along the curves.
    """
    return curves_of(assess_few(knowledge, question, slugs), slugs, deployment)


def curves_of(assessments: Assessments, slugs: Sequence[str], deployment: Mapping[str, Any]) -> Json:
    """`advised_curves` of techniques that were assessed already."""
    here = {slug: assessments.technique(slug) for slug in slugs}
    share = deployment.get("host_weight_share")
    overrides = {} if share is None else {"host_share": share}
    return gain_curves(assessments.situation, here, overrides=overrides)


def assess_few(knowledge: Knowledge, question: Question, slugs: Sequence[str]) -> Assessments:
    """What the recommender thinks of these techniques alone."""
    situation = resolve(question, knowledge)
    few = {slug: knowledge.techniques[slug] for slug in (*slugs, *situation.using)}
    return assess(
        situation, Knowledge(techniques=few, relations=knowledge.relations, evidence=knowledge.evidence)
    )


def full_estimate(knowledge: Knowledge, question: Question, changes: Mapping[str, Any]) -> Json:
    """The estimate of one recommended deployment with its operators, which answers carry for the baseline only."""
    return plain(price(resolve(question, knowledge), [dict(changes)]).full_body(0))
