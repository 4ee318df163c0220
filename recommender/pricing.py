"""Candidates → numbers: one vectorised call of the cost model, read element by element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Priced:
    """The estimate of several candidates; `count` elements in every array."""

    estimate: Any
    count: int

    @cached_property
    def metrics(self) -> dict[str, Array]:
        return {name: self.column(field) for name, field in METRICS.items()}

    @cached_property
    def fits(self) -> Array:
        return np.broadcast_to(np.asarray(self.estimate.fits, dtype=bool), (self.count,))

    def column(self, field: str) -> Array:
        """A field of the estimate, one number per candidate."""
        return np.broadcast_to(np.asarray(getattr(self.estimate, field), dtype=float), (self.count,))

    def at(self, field: str, index: int) -> float:
        return float(self.column(field)[index])

    def metrics_at(self, index: int) -> dict[str, float]:
        return {name: float(values[index]) for name, values in self.metrics.items()}

    def terms(self, phase: str, index: int) -> dict[str, float]:
        """Seconds per named term of one phase, for one candidate."""
        found = self.estimate.prefill_terms if phase == "prefill" else self.estimate.decode_terms
        return {name: element(value, index) for name, value in found.items()}

    def body(self, index: int) -> dict[str, Any]:
        """The interface's estimate of one candidate."""
        return self.estimate.as_dict(index)


def element(value: Any, index: int) -> float:
    """One element of an array, or the scalar itself."""
    array = np.asarray(value)
    if array.ndim == 0 or array.size == 1:
        return float(array.reshape(-1)[0])
    return float(array[index])


def price(
    situation: Situation,
    candidates: Sequence[Mapping[str, Any]],
    *,
    workload: Workload | None = None,
    hardware: Hardware | None = None,
) -> Priced:
    """Estimate every candidate (changes of the baseline) in one call.

    `workload` may carry one value per candidate in any field.
    """
    from costmodel.estimate import estimate

    found = estimate(
        situation.model,
        hardware or situation.hardware,
        workload or situation.workload,
        effects.deployments(situation.base, candidates),
        situation.engine,
    )
    return Priced(found, len(candidates))
