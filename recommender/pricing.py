"""Candidates → numbers: one vectorised call of the cost model, read element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    """The estimate of several candidates; `count` elements in every array."""

    def __init__(self, estimate: Any, count: int) -> None:
        self.estimate = estimate
        self.count = count
        self._lists: dict[str, list[Any]] = {}

    @cached_property
    def metrics(self) -> dict[str, Array]:
        return {name: self.column(field) for name, field in METRICS.items()}

    @cached_property
    def fits(self) -> Array:
        return np.broadcast_to(np.asarray(self.estimate.fits, dtype=bool), (self.count,))

    def column(self, field: str) -> Array:
        """A field of the estimate, one number per candidate."""
        return np.broadcast_to(np.asarray(getattr(self.estimate, field), dtype=float), (self.count,))

    def listed(self, field: str) -> list[Any]:
        """The same as a list of Python values, made once."""
        found = self._lists.get(field)
        if found is None:
            found = self._lists[field] = as_list(getattr(self.estimate, field), self.count)
        return found

    def at(self, field: str, index: int) -> float:
        return self.listed(field)[index]

    def metrics_at(self, index: int) -> dict[str, float]:
        return {name: self.listed(field)[index] for name, field in METRICS.items()}

    @cached_property
    def _terms(self) -> dict[str, dict[str, list[float]]]:
        return {
            phase: {name: as_list(value, self.count) for name, value in found.items()}
            for phase, found in (
                ("prefill", self.estimate.prefill_terms),
                ("decode", self.estimate.decode_terms),
            )
        }

    def terms(self, phase: str, index: int) -> dict[str, float]:
        """Seconds per named term of one phase, for one candidate."""
        return {name: values[index] for name, values in self._terms[phase].items()}

    def bound(self, phase: str, index: int) -> str:
        """compute | memory | interconnect | overhead."""
        return str(self.listed("prefill_bound" if phase == "prefill" else "bound")[index])

    @cached_property
    def _limits(self) -> dict[str, dict[str, list[bool]]]:
        """Phase → term → whether arithmetic, not memory, takes most of it, per candidate."""
        from costmodel.phases import TERM_OF

        found: dict[str, dict[str, list[bool]]] = {}
        for phase, operators in (
            ("prefill", self.estimate.prefill_operators),
            ("decode", self.estimate.decode_operators),
        ):
            sums: dict[str, Any] = {}
            for operator in operators:
                name = TERM_OF.get(operator.name, "linear")
                limited = operator.seconds * np.where(operator.compute_s > operator.memory_s, 1.0, -1.0)
                sums[name] = sums.get(name, 0.0) + limited
            found[phase] = {name: as_list(value > 0, self.count) for name, value in sums.items()}
        return found

    def is_compute_bound(self, phase: str, term: str, index: int) -> bool:
        """Whether a term of the cost model is bound by arithmetic."""
        values = self._limits[phase].get(term)
        return bool(values[index]) if values else False

    @cached_property
    def _intervals(self) -> dict[str, list[list[float]]]:
        return {
            name: [as_list(side, self.count) for side in getattr(self.estimate, field)]
            for name, field in (("tpot_ms", "tpot_interval_s"), ("ttft_ms", "ttft_interval_s"))
        }

    def interval(self, name: str, index: int) -> list[float]:
        """The 80 % interval of `tpot_ms` or `ttft_ms` of one candidate."""
        return [side[index] * 1e3 for side in self._intervals[name]]

    def full_body(self, index: int) -> dict[str, Any]:
        """The interface's estimate of one candidate with operators and assumptions."""
        return self.estimate.as_dict(index if self.count > 1 else None)

    def body(self, index: int) -> dict[str, Any]:
        """The interface's estimate of one candidate; operators and assumptions are the baseline's to show."""
        intervals = {name: self.interval(name, index) for name in self._intervals}
        return {
            "fits": bool(self.listed("fits")[index]),
            "min_devices": _whole(self.listed("min_devices")[index]),
            "max_batch": _whole(self.listed("max_batch")[index]),
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
            "bottleneck": self.listed("bottleneck")[index],
            "operators": [],
            "assumptions": [],
        }


def _whole(value: float) -> int:
    return int(min(value, 2**53))


def as_list(value: Any, count: int) -> list[Any]:
    """A scalar or an array as a list of Python values, one per candidate."""
    if value is None or isinstance(value, str | int | float | bool):
        return [value] * count
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

    found = estimate(
        situation.model,
        hardware or situation.hardware,
        workload or situation.workload,
        effects.deployments(situation.base, candidates, width),
        situation.engine,
    )
    return Priced(found, len(candidates) * width)
