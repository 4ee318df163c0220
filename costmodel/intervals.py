"""80 % intervals of predicted times, from cross-validated residuals by class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from costmodel.efficiency import parameters

if TYPE_CHECKING:
    from costmodel.estimate import Estimate

CONFIDENCE = 0.8


def spread(phase: str, engine: str, group: str, *, several: bool = False) -> tuple[float, str]:
    """Factor f such that [t / f, t · f] holds the measured time in 80 % of cases, and what that rests on."""
    values = parameters()
    if engine == "roofline":
        return 1.0, "the roofline is a limit, not a forecast"
    for key, basis in (
        (f"interval.{phase}.{group}.{engine}", f"cross-validated residuals of {engine} on {group}"),
        (
            f"interval.{phase}.engine.{engine}",
            f"cross-validated residuals of {engine}; no measurement on {group}",
        ),
    ):
        if key in values:
            return values[key], basis
    wide = values.get(f"interval.{phase}.unseen", 2.0)
    return wide, f"no measurement of {engine} on {group}: residuals of left-out engines and devices"


def attach(estimate: Estimate) -> None:
    """Set the intervals of an estimate's times."""
    engine, group = estimate.rates.engine, estimate.rates.group
    decode, basis = spread("decode", engine, group)
    first, _ = spread("prefill", engine, group)
    estimate.tpot_interval_s = (estimate.tpot_s / decode, estimate.tpot_s * decode)
    estimate.ttft_interval_s = (estimate.ttft_s / first, estimate.ttft_s * first)
    estimate.interval_basis = basis


def half_width(factor: float) -> Any:
    """Half width of the interval in natural logarithms."""
    return math.log(factor)
