"""Gain against batch or context: a band, a line at 1×, the break-even, published points beside the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from web.charts.scale import Scale, powers_of_two, tick_label
from web.charts.svg import Chart, Key, hatch, line, mark, path, rect, text
from web.formats import ratio


@dataclass(frozen=True)
class GainPoint:
    x: float
    gain: float
    low: float | None = None
    high: float | None = None
    fits: bool = True


@dataclass(frozen=True)
class Published:
    """A reported figure: `series` names its setting; `low` and `high` are the range reported."""

    x: float
    gain: float
    series: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class GainCurve:
    points: Sequence[GainPoint]
    axis: str = "Batch (log)"
    here: float | None = None  # the question's own batch or context
    break_even: float | None = None
    published: Sequence[Published] = field(default_factory=tuple)
    title: str = "Gain against batch"
    unit: str = "batch"
    baseline: str = "the baseline"


def gain_chart(curve: GainCurve, ident: str = "gain", explore: str = "") -> Chart:
    points = sorted(curve.points, key=lambda point: point.x)
    series = list(dict.fromkeys(point.series for point in curve.published))[:5]
    best = max(points, key=lambda point: point.gain)
    told = dict.fromkeys((best, points[0] if best is points[-1] else points[-1]))
    finding = ", ".join(f"{ratio(point.gain)} at {curve.unit} {tick_label(point.x)}" for point in told)
    finding += (
        f"; no gain beyond {curve.unit} {tick_label(curve.break_even)}."
        if curve.break_even
        else "; no break-even in this range."
    )
    last_fit = [point.x for point in points if point.fits]
    memory_end = max(last_fit) if last_fit and len(last_fit) < len(points) else None

    def draw(width: int, name: str) -> tuple[str, int]:
        height = 290 if width > 400 else 270
        left, right, top, bottom = 46, width - 14, 26, height - 44
        values = [v for p in points for v in (p.gain, p.low, p.high) if v is not None and v > 0]
        values += [v for p in curve.published for v in (p.gain, p.low, p.high) if v is not None and v > 0]
        low, high = min([0.8, *values]) * 0.92, max([1.25, *values]) * 1.08
        low = max(low, high / 1e4)
        y = Scale(low, high, bottom, top, log=high / low > 8)
        x_low, x_high = points[0].x, points[-1].x
        if x_high <= x_low:
            x_high = x_low * 2
        x = Scale(x_low, x_high, left + 8, right - 6, log=True)
        out = [hatch(f"{name}-h", "km fade")]
        for value in powers_of_two(x_low, x_high, 7 if width > 400 else 4):
            out += [
                line(x(value), bottom, x(value), bottom + 4, "ax"),
                text(x(value), bottom + 17, tick_label(value), "ts", "middle"),
            ]
        for value in y.ticks(5):
            out += [
                line(left, y(value), right, y(value), "gr"),
                text(left - 6, y(value) + 4, f"{tick_label(value)}×", "ts", "end"),
            ]
        if memory_end is not None:
            start = x(memory_end)
            out += [
                rect(start, top, right - start, bottom - top, "", fill=f"url(#{name}-h)"),
                line(start, top, start, bottom, "km dash nf"),
                text(min(start, right - 70) - 4, top - 8, "memory ends", "tb ts", "middle"),
            ]
        banded = [p for p in points if p.low is not None and p.high is not None]
        if len(banded) > 1:
            upper = [(x(p.x), y.clamped(p.high or p.gain)) for p in banded]
            lower = [(x(p.x), y.clamped(p.low or p.gain)) for p in reversed(banded)]
            out.append(path([*upper, *lower], "band", closed=True))
        out += [
            line(left, y(1), right, y(1), "ki w15 nf"),
            text(left + 4, y(1) + 14, "no gain below this line", "ts halo"),
        ]
        out.append(path([(x(p.x), y.clamped(p.gain)) for p in points], "k1 w25 nf"))
        out += break_even_mark(curve, x, y, bottom, right)
        out += here_mark(curve, points, x, y, width)
        for point in curve.published:
            if point.x < x_low or point.x > x_high:
                continue
            index = series.index(point.series) if point.series in series else 4
            px, shift = x(point.x), (index - (len(series) - 1) / 2) * 7
            if point.low and point.high:
                out.append(
                    line(
                        px + shift,
                        y.clamped(point.low),
                        px + shift,
                        y.clamped(point.high),
                        f"k{index + 1} w15 nf",
                    )
                )
            out.append(mark(index, px + shift, y.clamped(point.gain), f"c{index + 1}"))
        out += [text((left + right) / 2, height - 6, curve.axis, "ts", "middle")]
        return "".join(out), height

    keys = [Key(label, f"c{index + 1}", index) for index, label in enumerate(series)]
    keys = [Key("our estimate with its band", "band"), *keys] if keys else []
    rows = [
        [
            tick_label(p.x),
            ratio(p.gain),
            f"{ratio(p.low)[:-1]}–{ratio(p.high)}" if p.low and p.high else "–",
            "yes" if p.fits else "no",
        ]
        for p in points
    ]
    rows += [[tick_label(p.x), ratio(p.gain), p.series, "published"] for p in curve.published]
    return Chart(
        ident=ident,
        title=curve.title,
        finding=finding,
        draw=draw,
        columns=[curve.unit.capitalize(), "Gain", "Band or setting", "Fits"],
        rows=rows,
        keys=keys,
        explore=explore,
    )


def break_even_mark(curve: GainCurve, x: Scale, y: Scale, bottom: float, right: float) -> list[str]:
    if curve.break_even is None or not x.low <= curve.break_even <= x.high:
        return []
    px = x(curve.break_even)
    flip = px > right - 90
    return [
        line(px, y(1), px, bottom, "k2 w15 dot nf"),
        mark(3, px, y(1), "c2", 5),
        text(
            px + (-8 if flip else 8),
            bottom - 8,
            f"break-even {tick_label(round(curve.break_even))}",
            "tb ts halo",
            "end" if flip else None,
        ),
    ]


def here_mark(curve: GainCurve, points: Sequence[GainPoint], x: Scale, y: Scale, width: int) -> list[str]:
    if curve.here is None:
        return []
    near = min(points, key=lambda point: abs(point.x - curve.here))  # type: ignore[operator]
    px, py = x.clamped(curve.here), y.clamped(near.gain)
    flip = px > width * 0.6
    return [
        mark(0, px, py, "c1", 5.5),
        text(
            px + (-9 if flip else 9),
            py - 9,
            f"you: {curve.unit} {tick_label(curve.here)}, {ratio(near.gain)}",
            "tb ts halo",
            "end" if flip else None,
        ),
    ]
