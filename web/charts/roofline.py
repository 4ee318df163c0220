"""The roofline: what bandwidth and arithmetic allow, and where each operator stands before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from web.charts.scale import Scale, padded_log, tick_label
from web.charts.svg import Chart, Key, line, mark, path, spread, tag, text
from web.formats import milliseconds, number, si


@dataclass(frozen=True)
class Operator:
    """One operator of one phase: FLOP per byte, FLOP/s reached, its share of the phase's time."""

    name: str
    phase: str
    intensity: float
    flops_per_s: float
    ms: float
    bound: str


def operators_of(estimate: Mapping[str, Any]) -> list[Operator]:
    """From the interface's `operators`; those without arithmetic (pure moves) have no place on a roofline."""
    found = []
    for row in estimate.get("operators") or []:
        flops, ms, size = row.get("flops") or 0.0, row.get("ms") or 0.0, row.get("bytes") or 0.0
        if flops > 0 and ms > 0 and size > 0:
            found.append(
                Operator(
                    row["name"],
                    row.get("phase", ""),
                    flops / size,
                    flops / ms * 1e3,
                    ms,
                    row.get("bound", ""),
                )
            )
    return found


def roofline_chart(
    *,
    device: str,
    peak_flops: float,
    bandwidth: float,
    compute_format: str,
    before: Sequence[Operator],
    after: Sequence[Operator] = (),
    after_peak: float | None = None,
    after_format: str = "",
    ident: str = "roof",
) -> Chart:
    """`peak_flops` in FLOP/s, `bandwidth` in bytes/s; `after_peak` where the change computes in another format."""
    ridge = peak_flops / bandwidth
    everything = [*before, *after]
    roof_high = max(peak_flops, after_peak or 0.0)
    later = {(each.name, each.phase): each for each in after}
    slowest = max(before, key=lambda each: each.ms) if before else None
    finding = f"{device}: the roof is flat at {si(peak_flops, 'FLOP/s')} ({compute_format}) beyond {number(ridge)} FLOP per byte."
    if slowest:
        finding += f" The longest operator, {slowest.phase} {slowest.name}, stands at {number(slowest.intensity)} FLOP per byte"
        moved = later.get((slowest.name, slowest.phase))
        finding += f" and moves to {number(moved.intensity)}." if moved else "."

    def draw(width: int, name: str) -> tuple[str, int]:
        height = 300 if width > 400 else 280
        left, right, top, bottom = 52, width - 12, 24, height - 44
        xs = padded_log([each.intensity for each in everything] + [ridge, ridge * 4, 0.5], 1.5)
        ys = padded_log(
            [each.flops_per_s for each in everything] + [roof_high] + ([] if everything else [bandwidth]), 1.6
        )
        x = Scale(*xs, left, right, log=True)
        y = Scale(*ys, bottom, top, log=True)
        out = []
        for value in x.ticks(5 if width > 400 else 4):
            out += [
                line(x(value), top, x(value), bottom, "gr"),
                text(x(value), bottom + 16, tick_label(value), "ts", "middle"),
            ]
        for value in y.ticks(5):
            out += [
                line(left, y(value), right, y(value), "gr"),
                text(left - 6, y(value) + 4, tick_label(value / 1e12), "ts", "end"),
            ]
        start = max(xs[0], ys[0] / bandwidth)
        corner = (x(ridge), y(peak_flops))
        roof = [(x(start), y.clamped(start * bandwidth)), corner, (right, y(peak_flops))]
        out.append(path([*roof, (right, bottom), (x(start), bottom)], "band", closed=True))
        out.append(path(roof, "ki w2 nf"))
        if after_peak and after_peak != peak_flops:
            bend = after_peak / bandwidth
            out.append(
                path([corner, (x.clamped(bend), y(after_peak)), (right, y(after_peak))], "ki w15 dash nf")
            )
            out.append(
                text(right, y(after_peak) - 5, f"{si(after_peak, 'FLOP/s')} {after_format}", "tb ts", "end")
            )
        # In the middle of the flat part: its right end is where long prompts put their marks and names.
        out.append(
            text(
                (min(corner[0], right - 110) + right) / 2,
                y(peak_flops) - 6,
                f"{si(peak_flops, 'FLOP/s')} {compute_format}",
                "tb ts halo",
                "middle",
            )
        )
        out.append(line(*corner, x(ridge), bottom, "km dot nf"))
        out.append(text(x(ridge) - 4, bottom - 6, f"ridge {number(ridge)}", "ts", "end"))
        middle = (start * ridge) ** 0.5 if start < ridge else start
        out.append(
            text(x(middle) - 10, y.clamped(middle * bandwidth) - 8, si(bandwidth, "B/s"), "tb ts halo", "end")
        )
        for each in before:
            to = later.get((each.name, each.phase))
            if (
                to
                and abs(x(to.intensity) - x(each.intensity)) + abs(y(to.flops_per_s) - y(each.flops_per_s))
                > 12
            ):
                out.append(arrow(x(each.intensity), y(each.flops_per_s), x(to.intensity), y(to.flops_per_s)))
        for each in before:
            out.append(
                mark(shape_of(each), x(each.intensity), y(each.flops_per_s), f"hol w2 {stroke_of(each)}")
            )
        for each in after:
            out.append(mark(shape_of(each), x(each.intensity), y(each.flops_per_s), fill_of(each)))
        out += labels(before, after, x, y, width, top, bottom)
        out += [
            text((left + right) / 2, height - 6, "FLOP per byte (log)", "ts", "middle"),
            text(left - 46, 12, "TFLOP/s (log)", "ts"),
        ]
        return "".join(out), height

    keys = [Key("decode, now", "hol w2 k1", 0), Key("prefill, now", "hol w2 k4", 1)] if everything else []
    if after:
        keys += [Key("decode, after", "c1", 0), Key("prefill, after", "c4", 1)]
    return Chart(
        ident=ident,
        title=f"Roofline of {device}",
        finding=finding,
        draw=draw,
        columns=[
            "Operator",
            "Phase",
            "FLOP per byte",
            "Reached",
            "Time",
            "Bound by",
            "After: FLOP per byte",
            "After: time",
        ],
        rows=[
            [
                each.name,
                each.phase,
                number(each.intensity),
                si(each.flops_per_s, "FLOP/s"),
                milliseconds(each.ms),
                each.bound,
                number(to.intensity) if (to := later.get((each.name, each.phase))) else "–",
                milliseconds(to.ms) if to else "–",
            ]
            for each in before
        ],
        keys=keys,
        caption=("Hollow: now. Filled: after the first recommendation. " if after else "")
        + "Under the slope, bytes set the time; under the flat roof, arithmetic does.",
    )


def labels(
    before: Sequence[Operator],
    after: Sequence[Operator],
    x: Scale,
    y: Scale,
    width: int,
    top: float,
    bottom: float,
) -> list[str]:
    """Names for the longest operators only, kept apart."""
    source = after or before
    chosen = sorted([each for each in source if each.phase == "decode"], key=lambda each: -each.ms)[:3]
    chosen += sorted([each for each in source if each.phase == "prefill"], key=lambda each: -each.ms)[:1]
    heights = spread([y(each.flops_per_s) + 14 for each in chosen], 14, top + 8, bottom - 22)
    out = []
    for each, at in zip(chosen, heights, strict=True):
        px = x(each.intensity)
        flip = px > width * 0.62
        out.append(
            text(
                px + (-9 if flip else 9),
                at,
                f"{each.phase} {each.name}",
                "tb ts halo",
                "end" if flip else None,
            )
        )
    return out


def arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    x2, y2 = x2 - ux * 5, y2 - uy * 5
    back = (x2 - ux * 6, y2 - uy * 6)
    head = [(back[0] - uy * 3.5, back[1] + ux * 3.5), (x2, y2), (back[0] + uy * 3.5, back[1] - ux * 3.5)]
    steps = [[(x1 + ux * 5, y1 + uy * 5), (x2, y2)], head]
    joined = "".join("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in part) for part in steps)
    return tag("path", d=joined, cls="k1 w15 nf fade")


def shape_of(each: Operator) -> int:
    return 1 if each.phase == "prefill" else 0


def stroke_of(each: Operator) -> str:
    return "k4" if each.phase == "prefill" else "k1"


def fill_of(each: Operator) -> str:
    return "c4" if each.phase == "prefill" else "c1"
