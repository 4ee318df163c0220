"""Axes: values to pixels, and the ticks a reader would choose."""

from __future__ import annotations

import math
from dataclasses import dataclass

from web.formats import number

LEAST_SPAN = 2.0  # of a logarithmic axis: less would blow noise up


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis from [low, high] in data to [start, end] in pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            value = max(value, self.low * 1e-3)  # bands may reach down to zero; an axis cannot
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def clamped(self, value: float) -> float:
        return self(min(max(value, self.low), self.high))

    def ticks(self, count: int = 5) -> list[float]:
        return log_ticks(self.low, self.high, count) if self.log else linear_ticks(self.low, self.high, count)


def linear_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 × 10ⁿ inside [low, high].

    >>> linear_ticks(0, 113, 4)
    [0.0, 50.0, 100.0]
    """
    if not high > low:
        return [low]
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def log_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Powers of ten; with more between them where the axis spans little.

    >>> log_ticks(0.5, 2000)
    [1.0, 10.0, 100.0, 1000.0]
    >>> log_ticks(0.4, 3), log_ticks(2.1, 4.2)
    ([0.5, 1.0, 2.0], [2.5, 3.0, 4.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = [10.0**power for power in range(first, last + 1)]
    for between in ((1,), (1, 2, 5), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)):
        values = [round(decade * factor, 12) for decade in decades for factor in between]
        inside = [value for value in values if low * 0.999 <= value <= high * 1.001]
        if len(inside) >= 3:
            break
    step = max(1, math.ceil(len(inside) / max(1, count + 1)))
    return inside[::step]


def powers_of_two(low: float, high: float, count: int = 6) -> list[float]:
    """Ticks of a batch axis: 1, 2, 4 … thinned to at most `count` intervals.

    >>> powers_of_two(1, 256, 4)
    [1.0, 4.0, 16.0, 64.0, 256.0]
    """
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, math.ceil((last - first) / count))
    return [2.0**power for power in range(first, last + 1, step)]


def padded_log(values: list[float], factor: float = 1.3) -> tuple[float, float]:
    """A logarithmic range around positive values, from its middle widened to a factor of `LEAST_SPAN` at least.

    >>> [round(end, 2) for end in padded_log([2.0, 2.0], 1.0)]
    [1.41, 2.83]
    """
    good = [value for value in values if value > 0 and math.isfinite(value)]
    if not good:
        return 0.1, 10.0
    low, high = min(good) / factor, max(good) * factor
    widen = max(1.0, math.sqrt(LEAST_SPAN * low / high))
    return low / widen, high * widen


def tick_label(value: float) -> str:
    """
    >>> tick_label(1000.0), tick_label(0.5), tick_label(1e6)
    ('1,000', '0.5', '1 M')
    """
    if abs(value) >= 1e9:
        return f"{number(value / 1e9)} G"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
