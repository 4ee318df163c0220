"""Predicted against measured, and any two positive quantities of which one should equal the other: log–log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web.charts.scale import Scale, padded_log, tick_label
from web.charts.svg import Chart, Key, line, mark, path, tag, text
from web.formats import number


@dataclass(frozen=True)
class Pair:
    measured: float
    predicted: float
    series: str
    label: str
    href: str = ""


def agreement_chart(
    pairs: Sequence[Pair], *, unit: str, title: str, factor: float = 1.25, ident: str = "agree"
) -> Chart:
    """The diagonal is agreement; the band spans a factor of `factor` to either side."""
    series = list(dict.fromkeys(pair.series for pair in pairs))
    top_series = sorted(series, key=lambda name: -sum(pair.series == name for pair in pairs))[:4]
    inside = sum(1 / factor <= pair.predicted / pair.measured <= factor for pair in pairs)
    finding = (
        f"{inside} of {len(pairs)} points lie within a factor of {factor:g} of the measurement."
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
        for pair in pairs:
            index = top_series.index(pair.series) if pair.series in top_series else 4
            drawn = mark(index, x(pair.measured), y(pair.predicted), f"c{index + 1}", 4)
            out.append(
                tag(
                    "g",
                    tag(
                        "title",
                        f"{pair.label}: measured {number(pair.measured)}, predicted {number(pair.predicted)} {unit}",
                    )
                    + drawn,
                )
            )
        out += [
            text((left + right) / 2, height - 6, f"measured, {unit} (log)", "ts", "middle"),
            text(left + 6, top + 12, f"predicted, {unit} (log)", "ts halo"),
            text(right - 4, y(high) + 26, "equal", "tb ts halo", "end"),
        ]
        return "".join(out), height

    keys = [Key(label, f"c{index + 1}", index) for index, label in enumerate(top_series)]
    if len(series) > len(top_series):
        keys.append(Key("others", "c5", 4))
    return Chart(
        ident=ident,
        title=title,
        finding=finding,
        draw=draw,
        columns=["Row", "Group", f"Measured, {unit}", f"Predicted, {unit}", "Predicted ÷ measured"],
        rows=[
            [
                pair.label,
                pair.series,
                number(pair.measured),
                number(pair.predicted),
                f"{pair.predicted / pair.measured:.2f}",
            ]
            for pair in pairs
        ],
        keys=keys,
        caption=f"On the line the estimate equals the measurement; the band is a factor of {factor:g} either way.",
    )
