"""A grid of scenarios, one row each; everything that shares a model, a device and an engine is one call."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from costmodel.specs import Workload
from recommender.answer import Json, plain
from recommender.errors import InvalidQuestion
from recommender.knowledge import Knowledge
from recommender.pricing import Priced, price
from recommender.question import CHECKS, SPELLINGS, Question
from recommender.situation import given_fields, resolve

MAX_ROWS = 200_000
CHUNK = 4096

# Fields that the cost model takes as arrays, beside the formats; the others need a call of their own per value.
_WORKLOAD = ("batch", "input_tokens", "output_tokens", "cache_hit_rate")
_DEPLOYMENT = ("weight_format", "kv_format", "activation_format")
# Fields of `recommend` alone.
_ELSEWHERE = frozenset({
    "objective", "lossless", "max_training", "max_quality_loss", "ttft_slo_ms", "tpot_slo_ms", "level", "bottleneck",
    "why_not", "top", "stack",
})  # fmt: skip
_OUTPUTS = {
    "fits": "fits",
    "min_devices": "min_devices",
    "max_batch": "max_batch",
    "throughput_tok_s": "throughput_tok_s",
    "prefill_tok_s": "prefill_tok_s",
    "requests_s": "requests_s",
    "cost_per_million_tokens_usd": "cost_per_million_tokens_usd",
    "energy_j_per_token": "energy_j_per_token",
    "bottleneck": "bottleneck",
    "weights_bytes": "weights_bytes",
    "kv_cache_bytes": "kv_cache_bytes",
    "activations_bytes": "activation_bytes",
    "overhead_bytes": "overhead_bytes",
    "total_bytes": "total_bytes",
    "available_bytes": "available_bytes",
}


def axes_of(given: Mapping[str, Any]) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The fields given as lists, and the others. Raises InvalidQuestion on the first fault of any value."""
    axes: dict[str, list[Any]] = {}
    fixed: dict[str, Any] = {}
    for raw, value in given.items():
        name = SPELLINGS.get(raw, raw)
        if name in _ELSEWHERE:
            raise InvalidQuestion(f"{name} belongs to recommend", hint="leave it out of a sweep", field=name)
        if isinstance(value, list | tuple) and name != "using":
            if not value:
                raise InvalidQuestion(f"{name} is an empty list", hint="give at least one value", field=name)
            axes[name] = list(value)
        else:
            fixed[name] = value
    count = math.prod(len(values) for values in axes.values())
    if count > MAX_ROWS:
        raise InvalidQuestion(
            f"the grid has {count:,} rows",
            hint=f"at most {MAX_ROWS:,}; sweep in parts",
            field=next(iter(axes)),
        )
    heads = {name: values[0] for name, values in axes.items()}
    Question.from_mapping({**fixed, **heads})
    for name, values in axes.items():
        for value in values[1:]:
            Question.from_mapping({**fixed, **heads, name: value})
    return axes, fixed


def sweep(given: Mapping[str, Any], knowledge: Knowledge | None = None) -> Iterator[Json]:
    """Rows of the grid, in the order in which its lists are given (the last one varies fastest)."""
    axes, fixed = axes_of(given)
    known = knowledge or Knowledge(techniques={})
    names = list(axes)
    outer = [name for name in names if name not in (*_WORKLOAD, *_DEPLOYMENT)]
    questions = (
        Question.from_mapping({**fixed, **dict(zip(names, values, strict=True))})
        for values in itertools.product(*axes.values())
    )

    def group(question: Question) -> tuple[Any, ...]:
        return tuple(getattr(question, name) for name in outer if name in CHECKS)

    for _, run in itertools.groupby(questions, key=group):
        while chunk := list(itertools.islice(run, CHUNK)):
            yield from _rows(chunk, names, known)


def _rows(questions: Sequence[Question], names: Sequence[str], knowledge: Knowledge) -> Iterator[Json]:
    """Questions that differ in workload and formats only."""
    situation = resolve(questions[0], knowledge)
    changes = [
        {name: value for name, value in given_fields(question).items() if name in _DEPLOYMENT}
        for question in questions
    ]
    workload = Workload(
        batch=np.array([float(question.batch) for question in questions]),
        input_tokens=np.array([float(question.input_tokens) for question in questions]),
        output_tokens=np.array([float(question.output_tokens) for question in questions]),
        cache_hit_rate=np.array([question.cache_hit_rate for question in questions]),
        request_rate=questions[0].request_rate,
    )
    priced = price(situation, changes, workload=workload)
    for i, question in enumerate(questions):
        yield {
            "hardware": situation.hardware.slug,
            "model": situation.model.slug,
            **{name: getattr(question, name) for name in names if name not in ("hardware", "model")},
            **_outputs(priced, i),
        }


def _outputs(priced: Priced, index: int) -> Json:
    found = {name: priced.listed(field)[index] for name, field in _OUTPUTS.items()}
    found |= {f"{name}_ms": priced.at(f"{name}_s", index) * 1e3 for name in ("ttft", "tpot", "e2e")}
    for name in ("min_devices", "max_batch"):
        found[name] = int(found[name]) if math.isfinite(found[name]) and found[name] < 2**53 else None
    return plain(found)
