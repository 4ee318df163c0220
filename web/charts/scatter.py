"""Predicted against measured, and any two positive quantities of which one should equal the other: log–log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web.charts.scale import Scale, padded_log, tick_label
from web.charts.svg import Chart, Key, line, path, tag, text

# `outline` draws squares first, `svg.mark` circles first: the key shows what the chart draws.
SHAPES = (1, 3, 2, 4)


@dataclass(frozen=True)
class Pair:
    measured: float
    predicted: float
    series: str
    label: str
    href: str = ""


def outline(shape: int, x: float, y: float) -> str:
    """A small closed mark as path steps: square, diamond, triangle, bar, cross-bar."""
    start = {
        0: (-2.6, -2.6, "h5.2v5.2h-5.2z"),
        1: (0, -3.8, "l3.8 3.8l-3.8 3.8l-3.8 -3.8z"),
        2: (0, -3.6, "l3.4 6.2h-6.8z"),
        3: (-1.4, -3.6, "h2.8v7.2h-2.8z"),
        4: (-3.6, -1.4, "h7.2v2.8h-7.2z"),
    }[shape % 5]
    return f"M{x + start[0]:.1f} {y + start[1]:.1f}{start[2]}"


def agreement_chart(
    pairs: Sequence[Pair],
    *,
    unit: str,
    title: str,
    factor: float = 1.25,
    ident: str = "agree",
    explore: str = "",
    truth: str = "measured",
) -> Chart:
    """The diagonal is agreement; the band spans a factor of `factor` to either side."""
    series = list(dict.fromkeys(pair.series for pair in pairs))
    top_series = sorted(series, key=lambda name: -sum(pair.series == name for pair in pairs))[:4]
    inside = sum(1 / factor <= pair.predicted / pair.measured <= factor for pair in pairs)
    finding = (
        f"{inside} of {len(pairs)} points lie within a factor of {factor:g} of what was {truth}."
        if pairs
        else "No points."
    )

    def draw(width: int, name: str) -> tuple[str, int]:
        height = 340 if width > 400 else 320
        left, right, top, bottom = 56, width - 12, 14, height - 44
        low, high = padded_log([value for pair in pairs for value in (pair.measured, pair.predicted)], 1.5)
        x, y = Scale(low, high, left, right, log=True), Scale(low, high, bottom, top, log=True)
        out = []
        for value in x.ticks(5 if width > 400 else 4):
            out += [
                line(x(value), top, x(value), bottom, "gr"),
                text(x(value), bottom + 16, tick_label(value), "ts", "middle"),
                line(left, y(value), right, y(value), "gr"),
                text(left - 6, y(value) + 4, tick_label(value), "ts", "end"),
            ]
        band = [
            (x(low), y.clamped(low * factor)),
            (x(high / factor), y(high)),
            (x(high), y(high)),
            (x(high), y(high / factor)),
            (x.clamped(low * factor), y(low)),
            (x(low), y(low)),
        ]
        out += [path(band, "band", closed=True), line(x(low), y(low), x(high), y(high), "ki w15 nf")]
        # One path per series: a thousand marks stay a handful of elements.
        for index in range(len(top_series) + 1):
            members = [
                pair
                for pair in pairs
                if (top_series.index(pair.series) if pair.series in top_series else len(top_series)) == index
            ]
            steps = "".join(outline(index, x(pair.measured), y(pair.predicted)) for pair in members)
            if steps:
                out.append(tag("path", d=steps, cls=f"c{index + 1} over"))
        out += [
            text((left + right) / 2, height - 6, f"{truth}, {unit} (log)", "ts", "middle"),
            text(left + 6, top + 12, f"predicted, {unit} (log)", "ts halo"),
            text(right - 4, y(high) + 26, "equal", "tb ts halo", "end"),
        ]
        return "".join(out), height

    keys = [Key(label, f"c{index + 1}", SHAPES[index]) for index, label in enumerate(top_series)]
    if len(series) > len(top_series):
        keys.append(Key("others", "c5", 4))
    return Chart(
        ident=ident,
        title=title,
        finding=finding,
        draw=draw,
        keys=keys,
        explore=explore,
        caption=f"On the line the estimate equals what was {truth}; the band is a factor of {factor:g} either way.",
    )
