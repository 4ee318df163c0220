"""Unbeaten plans: reply time against memory, throughput as the size of the mark, quality as its shape.

Better is up and to the right. Labels are the numbers of the table beside the chart: names of plans are too long for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from web.charts.scale import Scale, padded_log, tick_label
from web.charts.svg import Chart, Key, line, mark, path, text
from web.formats import bytes_text, milliseconds, plural

# quality steps → (words, class, shape of `svg.mark`)
QUALITY = (
    ("lossless", "c3", 0),
    ("small loss", "c1", 1),
    ("more loss", "c2", 2),
)

Box = tuple[float, float, float, float]
DIRECTIONS = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))


@dataclass(frozen=True)
class Plan:
    name: str
    e2e_ms: float
    throughput_tok_s: float
    total_bytes: float
    quality_steps: int
    now: bool = False

    @property
    def quality(self) -> tuple[str, str, int]:
        return QUALITY[min(max(self.quality_steps, 0), len(QUALITY) - 1)]


def pareto_chart(
    plans: Sequence[Plan], *, capacity_bytes: float | None = None, ident: str = "pareto"
) -> Chart:
    """At least two plans, the fastest first."""
    fast = min(plans, key=lambda plan: plan.e2e_ms)
    small = min(plans, key=lambda plan: plan.total_bytes)
    finding = f"{plural(len(plans), 'plan')}, each better than every other in something: from {milliseconds(fast.e2e_ms)} a reply in {bytes_text(fast.total_bytes)} to {milliseconds(small.e2e_ms)} in {bytes_text(small.total_bytes)}."

    def draw(width: int, _ident: str) -> tuple[str, int]:
        height = 320 if width > 400 else 290
        left, right, top, bottom = 58, width - 14, 16, height - 46
        sizes = [plan.total_bytes / 1e9 for plan in plans]
        low, high = padded_log(sizes, 1.15)
        x = Scale(low, high, right, left, log=True)  # less memory is to the right
        y_low, y_high = padded_log([plan.e2e_ms for plan in plans], 1.3)
        y = Scale(y_low, y_high, top, bottom, log=True)  # faster is up
        out = []
        for value in x.ticks(5 if width > 400 else 3):
            out += [
                line(x(value), top, x(value), bottom, "gr"),
                text(x(value), bottom + 16, tick_label(value), "ts", "middle"),
            ]
        for value in y.ticks(4):
            out += [
                line(left, y(value), right, y(value), "gr"),
                text(left - 6, y(value) + 4, milliseconds(value), "ts", "end"),
            ]
        if capacity_bytes and low < capacity_bytes / 1e9 < high:
            place = x(capacity_bytes / 1e9)
            out += [
                line(place, top, place, bottom, "ki dash"),
                text(place + 5, top + 10, "memory ends", "ts halo"),
            ]
        out.append(
            path(
                steps([(x(size), y(plan.e2e_ms)) for size, plan in zip(sizes, plans, strict=True)]),
                "km nf dash",
            )
        )
        most = max(plan.throughput_tok_s for plan in plans)
        marks = []
        for index, (size, plan) in enumerate(zip(sizes, plans, strict=True), start=1):
            _, cls, shape = plan.quality
            radius = 3.5 + 5.5 * math.sqrt(plan.throughput_tok_s / most)
            marks.append((x(size), y(plan.e2e_ms), radius, index, plan))
            inside = mark(
                shape,
                x(size),
                y(plan.e2e_ms),
                f"{cls.replace('c', 'k')} hol w2" if plan.now else f"{cls} over",
                radius,
            )
            out.append(inside)
        for (at_x, at_y), label in labels(marks, left, right, top, bottom):
            out.append(text(at_x, at_y, label, "tb ts halo", "middle"))
        out += [
            text((left + right) / 2, height - 6, "memory, GB (log, less to the right)", "ts", "middle"),
            text(left + 6, bottom - 8, "time of a reply (log, faster up)", "ts halo"),
        ]
        return "".join(out), height

    used = {plan.quality: None for plan in sorted(plans, key=lambda plan: plan.quality_steps)}
    return Chart(
        ident=ident,
        title="Plans that no other beats in everything",
        finding=finding,
        draw=draw,
        keys=[Key(words, cls, shape) for words, cls, shape in used],
        caption="Up is faster, right is smaller; a larger mark makes more tokens per second. Numbers are those of the table.",
    )


def steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The stepped outline of what is reachable, up and right being better.

    >>> steps([(10.0, 5.0), (20.0, 8.0), (15.0, 9.0)])
    [(10.0, 5.0), (10.0, 8.0), (20.0, 8.0)]
    """
    found: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[1], -point[0])):
        if found and x <= found[-1][0]:
            continue
        if found:
            found.append((found[-1][0], y))
        found.append((x, y))
    return found


def labels(
    marks: Sequence[tuple[float, float, float, int, Plan]],
    left: float,
    right: float,
    top: float,
    bottom: float,
) -> list[tuple[tuple[float, float], str]]:
    """A free place beside each mark for its number; the nearest that touches nothing."""
    taken = [(x - r, y - r, x + r, y + r) for x, y, r, _, _ in marks]
    found = []
    for x, y, r, index, _ in marks:
        gap = r + 7
        choices: list[tuple[int, int, float, float, Box]] = []
        for distance, (dx, dy) in itertools.product((gap, gap + 13), DIRECTIONS):
            cx, cy = x + dx * distance, y + dy * distance
            box = (cx - 5, cy - 6, cx + 5, cy + 6)
            inside = left <= box[0] and box[2] <= right + 12 and top - 12 <= box[1] and box[3] <= bottom
            clashes = sum(overlap(box, other) for other in taken) + (0 if inside else 5)
            choices.append((clashes, len(choices), cx, cy, box))
        _, _, cx, cy, box = min(choices)
        taken.append(box)
        found.append(((cx, cy + 4), str(index)))
    return found


def overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
