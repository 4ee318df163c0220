"""Candidates → numbers: one vectorised call of the cost model, read element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel.phases import TERM_OF
from costmodel.report import Case, bottleneck_of, bound_of, case_of
from costmodel.specs import Hardware, Workload
from recommender import effects
from recommender.situation import Situation

Array = NDArray[Any]

# Metric of a gain → field of costmodel.estimate.Estimate.
METRICS = {
    "latency": "e2e_s",
    "tpot": "tpot_s",
    "ttft": "ttft_s",
    "throughput": "throughput_tok_s",
    "memory": "total_bytes",
    "max_batch": "max_batch",
}


# Fields of the estimate's JSON body, as milliseconds and as they are.
_MS = {"ttft_ms": "ttft_s", "tpot_ms": "tpot_s", "e2e_ms": "e2e_s"}
_PLAIN = (
    "throughput_tok_s",
    "prefill_tok_s",
    "requests_s",
    "cost_per_million_tokens_usd",
    "energy_j_per_token",
)
_MEMORY = {
    "weights": "weights_bytes",
    "kv_cache": "kv_cache_bytes",
    "activations": "activation_bytes",
    "overhead": "overhead_bytes",
    "total": "total_bytes",
    "available": "available_bytes",
}


class Priced:
    """The estimate of several candidates; `count` elements in every array.

    A part of a larger estimate sees `count` of its `size` elements, from `first` on.
    """

    def __init__(self, estimate: Any, count: int, *, first: int = 0, size: int | None = None) -> None:
        self.estimate = estimate
        self.count = count
        self.first = first
        self.size = count if size is None else size
        self._lists: dict[str, list[Any]] = {}
        self._cases: dict[int, Case] = {}
        self._terms: dict[tuple[str, int], dict[str, float]] = {}

    def part(self, first: int, count: int) -> Priced:
        """Some neighbouring candidates by themselves."""
        return Priced(self.estimate, count, first=self.first + first, size=self.size)

    @cached_property
    def metrics(self) -> dict[str, Array]:
        return {name: self.column(field) for name, field in METRICS.items()}

    @cached_property
    def fits(self) -> Array:
        return self._spread(np.asarray(self.estimate.fits, dtype=bool))

    def column(self, field: str) -> Array:
        """A field of the estimate, one number per candidate."""
        return self._spread(np.asarray(getattr(self.estimate, field), dtype=float))

    def _spread(self, values: Array) -> Array:
        if values.shape != (self.size,):
            values = np.broadcast_to(values, (self.size,))
        return values[self.first : self.first + self.count]

    def listed(self, field: str) -> list[Any]:
        """The same as a list of Python values, made once."""
        found = self._lists.get(field)
        if found is None:
            values = as_list(getattr(self.estimate, field), self.size)
            found = self._lists[field] = values[self.first : self.first + self.count]
        return found

    def at(self, field: str, index: int) -> float:
        return self.listed(field)[index]

    def metrics_at(self, index: int) -> dict[str, float]:
        return {name: self.listed(field)[index] for name, field in METRICS.items()}

    def one(self, value: Any, index: int) -> Any:
        """One candidate's element of a number or an array over all of them."""
        if not isinstance(value, np.ndarray):
            return value.item() if isinstance(value, np.generic) else value
        if value.size == 1:
            return value.item()
        return value.item(self.first + index)

    def case(self, index: int) -> Case:
        """Terms, operators and what else bounds one candidate, as plain numbers: few are asked about."""
        found = self._cases.get(index)
        if found is None:
            found = case_of(self.estimate, lambda value: self.one(value, index), counts=False)
            self._cases[index] = found
        return found

    def terms(self, phase: str, index: int) -> dict[str, float]:
        """Seconds per named term of one phase, for one candidate."""
        found = self._terms.get((phase, index))
        if found is None:
            times = self.estimate.prefill if phase == "prefill" else self.estimate.decode
            found = times.terms(lambda value: self.one(value, index))
            self._terms[phase, index] = found
        return found

    def bound(self, phase: str, index: int) -> str:
        """compute | memory | interconnect | overhead."""
        case = self.case(index)
        operators = case.prefill_operators if phase == "prefill" else case.decode_operators
        return str(bound_of(operators, self.terms(phase, index)))

    def is_compute_bound(self, phase: str, term: str, index: int) -> bool:
        """Whether arithmetic, not memory, takes most of a term of the cost model."""
        case = self.case(index)
        limited = 0.0
        for operator in case.prefill_operators if phase == "prefill" else case.decode_operators:
            if TERM_OF.get(operator.name, "linear") == term:
                limited += operator.seconds if operator.compute_s > operator.memory_s else -operator.seconds
        return limited > 0

    def interval(self, name: str, index: int) -> list[float]:
        """The 80 % interval of `tpot_ms` or `ttft_ms` of one candidate."""
        sides = self.estimate.tpot_interval_s if name == "tpot_ms" else self.estimate.ttft_interval_s
        return [self.one(side, index) * 1e3 for side in sides]

    def full_body(self, index: int) -> dict[str, Any]:
        """The interface's estimate of one candidate with operators and assumptions."""
        return self.estimate.as_dict(self.first + index if self.size > 1 else None)

    def body(self, index: int) -> dict[str, Any]:
        """The interface's estimate of one candidate; operators and assumptions are the baseline's to show."""
        intervals = {name: self.interval(name, index) for name in ("tpot_ms", "ttft_ms")}
        return {
            "fits": bool(self.listed("fits")[index]),
            "min_devices": _whole(self.listed("min_devices")[index]),
            "max_batch": _whole(self.listed("max_batch")[index]),
            "host_bytes": self.listed("host_bytes")[index],
            "memory_bytes": {name: self.listed(field)[index] for name, field in _MEMORY.items()},
            **{name: self.listed(field)[index] * 1e3 for name, field in _MS.items()},
            **{name: self.listed(name)[index] for name in _PLAIN},
            "interval": {**intervals, "confidence": 0.8, "basis": self.estimate.interval_basis},
            **{
                phase: {
                    "ms": self.listed(field)[index] * 1e3,
                    "bound": self.bound(phase, index),
                    "terms": {name: value * 1e3 for name, value in self.terms(phase, index).items() if value},
                }
                for phase, field in (("prefill", "ttft_s"), ("decode", "tpot_s"))
            },
            "bottleneck": str(bottleneck_of(self.case(index))),
            "operators": [],
            "assumptions": [],
        }


def _whole(value: float) -> int:
    return int(min(value, 2**53))


def as_list(value: Any, count: int) -> list[Any]:
    """A scalar or an array as a list of Python values, one per candidate."""
    if value is None or isinstance(value, str | int | float | bool):
        return [value.item() if isinstance(value, np.generic) else value] * count
    array = np.asarray(value)
    if array.size == 1:
        return [array.reshape(-1)[0].item()] * count
    return np.broadcast_to(array, (count,)).tolist()


def price(
    situation: Situation,
    candidates: Sequence[Mapping[str, Any]],
    *,
    workload: Workload | None = None,
    hardware: Hardware | None = None,
    width: int = 1,
) -> Priced:
    """Estimate every candidate (changes of the baseline) in one call.

    `workload` may carry one value per element in any field; every candidate stands for `width` elements.
    """
    from costmodel.estimate import estimate

    count = len(candidates) * width
    found = estimate(
        situation.model,
        hardware or situation.hardware,
        workload or situation.workload,
        effects.deployments(situation.base, candidates, width),
        situation.engine,
    )
    return Priced(found, count)
