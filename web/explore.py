"""Figures for plotly.js, which a reader loads on demand; colours are CSS variables that the page resolves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from costmodel.specs import Hardware
from web.charts.roofline import operators_of
from web.charts.scatter import Pair

Figure = dict[str, Any]


def layout(x_title: str, y_title: str, *, x_log: bool = True, y_log: bool = False) -> Figure:
    axis: Figure = {"gridcolor": "var(--grid)", "linecolor": "var(--mute)", "zeroline": False}
    return {
        "paper_bgcolor": "var(--raised)",
        "plot_bgcolor": "var(--raised)",
        "font": {"color": "var(--ink2)", "size": 12},
        "margin": {"l": 60, "r": 16, "t": 16, "b": 48},
        "legend": {"orientation": "h", "y": -0.25},
        "xaxis": {
            **axis,
            "title": {"text": x_title},
            "type": "log" if x_log else "linear",
            "exponentformat": "SI",
        },
        "yaxis": {
            **axis,
            "title": {"text": y_title},
            "type": "log" if y_log else "linear",
            "exponentformat": "SI",
        },
        "hovermode": "closest",
    }


def gain_spec(data: Figure, axis: str, name: str) -> Figure:
    """The band, the line at 1×, the estimate."""
    points = [point for point in data[axis] if point["gain"] is not None]
    x = [point["x"] for point in points]
    low = [point["low"] or point["gain"] for point in points]
    high = [point["high"] or point["gain"] for point in points]
    unit = "Batch" if axis == "batch" else "Prompt tokens"
    return {
        "data": [
            {
                "x": x + x[::-1],
                "y": high + low[::-1],
                "fill": "toself",
                "fillcolor": "var(--s1)",
                "opacity": 0.18,
                "line": {"width": 0},
                "hoverinfo": "skip",
                "name": "band",
                "type": "scatter",
                "mode": "lines",
            },
            {
                "x": x,
                "y": [point["gain"] for point in points],
                "mode": "lines+markers",
                "line": {"color": "var(--s1)"},
                "name": name[:60],
                "type": "scatter",
                "hovertemplate": f"{unit} %{{x}}: %{{y:.2f}}×<extra></extra>",
            },
            {
                "x": [x[0], x[-1]],
                "y": [1, 1],
                "mode": "lines",
                "line": {"color": "var(--ink)", "width": 1},
                "name": "no gain",
                "hoverinfo": "skip",
                "type": "scatter",
            },
        ],
        "layout": layout(f"{unit} (log)", "Gain, ×"),
    }


def roofline_spec(
    before: Mapping[str, Any], after: Mapping[str, Any] | None, hardware: Hardware, devices: int
) -> Figure:
    """Roof, operators now and after the first option."""
    peak = (
        hardware.flops.get("fp16") or hardware.flops.get("bf16") or max(hardware.flops.values(), default=1.0)
    ) * devices
    bandwidth = hardware.bandwidth_bytes_per_s * devices
    ridge = peak / bandwidth
    traces: list[Figure] = [
        {
            "x": [0.1, ridge, ridge * 100],
            "y": [0.1 * bandwidth, peak, peak],
            "mode": "lines",
            "line": {"color": "var(--ink)"},
            "name": "roof",
            "type": "scatter",
            "hoverinfo": "skip",
        }
    ]
    for label, estimate, symbol in (("now", before, "-open"), ("after", after, "")):
        if estimate is None:
            continue
        for phase, shape, colour in (("decode", "circle", "var(--s1)"), ("prefill", "square", "var(--s4)")):
            rows = [each for each in operators_of(dict(estimate)) if each.phase == phase]
            traces.append(
                {
                    "x": [each.intensity for each in rows],
                    "y": [each.flops_per_s for each in rows],
                    "text": [f"{each.name}: {each.ms:.3g} ms, {each.bound}" for each in rows],
                    "mode": "markers",
                    "marker": {"symbol": shape + symbol, "size": 10, "color": colour},
                    "name": f"{phase}, {label}",
                    "type": "scatter",
                    "hovertemplate": "%{text}<br>%{x:.3g} FLOP/byte<extra></extra>",
                }
            )
    return {"data": traces, "layout": layout("FLOP per byte (log)", "FLOP/s (log)", y_log=True)}


def agreement_spec(points: Sequence[Pair], unit: str, truth: str = "measured") -> Figure:
    """Predicted against measured, one trace per series, the diagonal."""
    names = sorted({point.series for point in points})
    values = [value for point in points for value in (point.measured, point.predicted)] or [1.0, 10.0]
    traces: list[Figure] = [
        {"x": [min(values), max(values)], "y": [min(values), max(values)], "mode": "lines", "line": {"color": "var(--ink)", "width": 1}, "name": "equal", "type": "scatter", "hoverinfo": "skip"}
    ]  # fmt: skip
    for index, name in enumerate(names[:8]):
        members = [point for point in points if point.series == name]
        traces.append(
            {
                "x": [point.measured for point in members],
                "y": [point.predicted for point in members],
                "text": [point.label for point in members],
                "mode": "markers",
                "marker": {"size": 7, "symbol": index, "color": f"var(--s{index % 5 + 1})"},
                "name": name,
                "type": "scatter",
                "hovertemplate": "%{text}<br>" + truth + " %{x:.4g}, predicted %{y:.4g}<extra></extra>",
            }
        )
    return {
        "data": traces,
        "layout": layout(f"{truth}, {unit} (log)", f"predicted, {unit} (log)", y_log=True),
    }
