"""A technique's gain over batch and context as text: a sparkline, the numbers under it, where it stops paying."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from kb.cli.render import unicode_ok, wrap

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "_.-:=+*#"
CELL = 5  # characters per value


def sparkline(values: Sequence[float | None]) -> str:
    """One character per value, on a logarithmic scale from the smallest to the largest; a blank where unknown.

    >>> sparkline([1.0, 2.0, None, 4.0]) in ("▁▄ █", "_: #")
    True
    """
    blocks = BLOCKS if unicode_ok() else ASCII_BLOCKS
    known = [math.log(value) for value in values if value and value > 0]
    if not known:
        return " " * len(values)
    low, span = min(known), max(known) - min(known)

    def block(value: float | None) -> str:
        if not value or value <= 0:
            return " "
        share = (math.log(value) - low) / span if span > 1e-9 else 0.5
        return blocks[min(len(blocks) - 1, int(share * (len(blocks) - 1)))]

    return "".join(block(value) for value in values)


def curve(data: Mapping[str, Any]) -> str:
    """The curves of `recommender.service.technique_curve`, indented for `kb show`."""
    asked = data.get("scenario", {})
    where = f"{asked.get('model', '')} on {asked.get('hardware', '')}".strip()
    lines = [wrap(f"{data['metric']} over {where}; 1.00x is the baseline", indent=2)]
    for name, label in (("batch", "batch"), ("context_tokens", "prompt tokens")):
        points = data[name]
        if not points:
            continue
        gains = [point["gain"] for point in points]
        lines.append(f"  {label:<14}{sparkline([gain for gain in gains for _ in range(CELL)])}")
        lines.append(_row("", [_axis(point["x"]) for point in points]))
        lines.append(_row("", ["?" if gain is None else f"{gain:.2f}"[:4] for gain in gains]))
        fits = [point["fits"] for point in points]
        if not all(fits):
            first = next(point["x"] for point in points if not point["fits"])
            lines.append(wrap(f"does not fit from {label} {_axis(first)}", indent=16))
        even = data["break_even"].get(name)
        if even:
            lines.append(wrap(f"gain is 1.00x at {label} {even:,}", indent=16))
    return "\n".join(lines)


def _row(label: str, cells: Sequence[str]) -> str:
    return (f"  {label:<14}" + "".join(f"{cell:<{CELL}}" for cell in cells)).rstrip()


def _axis(value: float) -> str:
    """512, 2k, 128k"""
    return f"{value / 1024:.0f}k" if value >= 1024 else f"{value:.0f}"
