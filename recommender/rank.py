"""Gains, their intervals and the order of recommendations. Pure arithmetic on priced candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Which gain decides under each objective. Cost per token on given devices falls exactly as throughput rises.
METRIC_OF = {
    "latency": "latency",
    "tpot": "tpot",
    "ttft": "ttft",
    "throughput": "throughput",
    "memory": "memory",
    "cost": "throughput",
}

# Standard deviation (ln) of a predicted ratio that is truly 1: run-to-run spread of serving benchmarks (1 to 3 %)
# and what the cost model gets wrong on both sides. With Z80 a change below about 5 % is no change.
NOISE = 0.04
# Half-width of 80 % intervals in standard deviations of the logarithm.
Z80 = 1.2816


# Share of a predicted change (in logarithms) that is uncertain, by what the change rests on. Chosen so that 80 %
# intervals hold about that share of the reported figures of the backtest (docs/backtest.md).
SPREADS: tuple[tuple[frozenset[str], float], ...] = (
    (
        frozenset({"prompt_kept", "hot_weight_share", "host_compute", "weight_density", "weight_read_share"}),
        0.35,
    ),
    (frozenset({"cascade_share", "layers_executed", "output_kept"}), 0.35),
    (frozenset({"attention_kernel", "fused_operators", "cuda_graphs", "continuous_batching"}), 0.30),
)
DEFAULT_SPREAD = 0.25  # below all of them


def spread_of(changes: Mapping[str, Any]) -> float:
    """How uncertain the gain of these changes is, as a share of its logarithm."""
    for names, spread in SPREADS:  # largest first
        if not names.isdisjoint(changes):
            return spread
    return DEFAULT_SPREAD


def ratio(numerator: Any, denominator: Any) -> Array:
    """Element-wise ratio; not a number where either side is not positive and finite."""
    top, bottom = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    good = (top > 0) & (bottom > 0) & np.isfinite(top) & np.isfinite(bottom)
    return np.where(
        good, np.divide(top, bottom, out=np.full(np.broadcast(top, bottom).shape, np.nan), where=good), np.nan
    )


def gains(base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Array]:
    """Gain per metric; above 1 is better. `base` and `new` map the metrics of `pricing.METRICS` to numbers."""
    found = {name: ratio(base[name], new[name]) for name in ("latency", "tpot", "ttft", "memory")}
    found["throughput"] = ratio(new["throughput"], base["throughput"])
    found["max_batch"] = ratio(new["max_batch"], base["max_batch"])
    return found


def log_spread(gain: Any, spread: Any) -> Any:
    """Standard deviation of ln(gain): noise, plus a share of the predicted change itself."""
    if isinstance(gain, float):
        return math.hypot(NOISE, spread * math.log(gain)) if gain > 0 else math.inf
    change = np.abs(np.log(np.maximum(gain, 1e-300)))
    return np.sqrt(NOISE**2 + (np.asarray(spread) * change) ** 2)


def interval(gain: float | None, spread: float) -> tuple[float, float] | None:
    """The 80 % interval of a gain; None where the gain is unknown."""
    if gain is None or not math.isfinite(gain) or gain <= 0:
        return None
    half = math.exp(Z80 * float(log_spread(gain, spread)))
    return gain / half, gain * half


def lower_bound(gain: Any, spread: Any) -> Array:
    """The low end of the 80 % interval, element-wise; what a technique gives at least."""
    values = np.asarray(gain, dtype=float)
    with np.errstate(invalid="ignore"):
        return values / np.exp(Z80 * log_spread(np.where(np.isfinite(values), values, 1.0), spread))


def is_gain(gain: float | None, spread: float) -> bool:
    """Whether a gain stands out of the noise: the whole interval lies above 1."""
    bounds = interval(gain, spread)
    return bounds is not None and bounds[0] > 1.0


def memory_gain_is_exact(gain: float | None) -> tuple[float, float] | None:
    """Memory is counted, not timed: its interval is the allocator's slack."""
    if gain is None or not math.isfinite(gain):
        return None
    return gain / (1 + NOISE), gain * (1 + NOISE)


def number(value: Any) -> float | None:
    """A plain float, or None where it is not finite."""
    found = float(value)
    return found if math.isfinite(found) else None


def numbers(values: Array) -> list[float | None]:
    """`number` of every element."""
    return [value if math.isfinite(value) else None for value in values.tolist()]


# What a gain is worth in the order of recommendations, not in the numbers shown: a factor e^-x where no serving
# engine is known to ship the technique, where outputs change noticeably, and where somebody has to train.
UNSHIPPED = 0.35
CHANGES_ANSWERS = 0.5
APPROXIMATE = 0.05
TRAINING_EFFORT = {"none": 0.0, "calibration": 0.02, "finetune": 0.10, "pretrain": 0.30}


def discount(*, shipped: bool, lossless: str, training: str) -> float:
    """By how much (ln) a technique goes down in the order for what its gain does not show."""
    quality = {"yes": 0.0, "approx": APPROXIMATE, "no": CHANGES_ANSWERS}[lossless]
    return (0.0 if shipped else UNSHIPPED) + quality + TRAINING_EFFORT[training]
