"""docs/accuracy.md: how far predictions are from measurements, in the sample and left out, beside the bare roofline.

Written by `python -m costmodel.fit`, which has the left-out residuals at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import numpy as np
from numpy.typing import NDArray

from costmodel.efficiency import parameters
from costmodel.measured import Case
from costmodel.stack import in_metric, stack, times

Array = NDArray[np.float64]
Residuals = dict[
    str, Array
]  # in | rows | cells | source | hardware | engine | roofline → logarithms of predicted / measured

PHASES: tuple[tuple[str, Callable[[Case], bool]], ...] = (
    ("decode time, one device", lambda c: c.phase == "decode" and c.devices == 1),
    ("decode time, several devices", lambda c: c.phase == "decode" and c.devices > 1),
    ("prefill time, one device", lambda c: c.phase == "prefill" and c.devices == 1),
    ("prefill time, several devices", lambda c: c.phase == "prefill" and c.devices > 1),
    ("throughput", lambda c: c.phase == "throughput"),
    ("end-to-end latency", lambda c: c.phase == "e2e"),
)
TARGETS = {
    "decode time, one device": ("9 / 45", "24 / 60"),
    "decode time, several devices": ("9 / 40", "26 / 50"),
    "prefill time, one device": ("14 / 45", "40 / 120"),
    "prefill time, several devices": ("15 / 50", "–"),
    "throughput": ("9 / 22", "20 / 60"),
    "end-to-end latency": ("7 / 20", "–"),
}
LEFT_OUT = ("rows", "cells", "source", "hardware", "engine")
WORST = 10

# why the model misses, by what the missed rows have in common: (test on the case, predicted / measured) → reason
REASONS: tuple[tuple[Callable[[Case, float], bool], str], ...] = (
    (
        lambda c, ratio: c.engine_name == "ik_llama.cpp" and c.devices > 4,
        "sixteen cards on consumer boards: how many PCIe lanes each has is not stated, and the source ran a fork with its "
        "own mixture-of-experts kernels",
    ),
    (
        lambda c, ratio: c.engine_name == "optimum-habana" and c.model is not None and c.model.attention == "MLA",
        "latent attention in plain PyTorch operators on Gaudi: many small launches that the class's constants do not know",
    ),
    (
        lambda c, ratio: c.engine_name == "optimum-habana" and c.model is not None and c.model.is_moe,
        "the port ran every expert or gathered few, depending on the model's code and version; figures of one model differ "
        "threefold between Gaudi2 and Gaudi3",
    ),
    (
        lambda c, ratio: c.engine_name == "optimum-habana",
        "a regression baseline of continuous integration: prompt lengths are not stated, and eight cards behave as one",
    ),
    (
        lambda c, ratio: c.group == "nvidia-simt",
        "k-quants below four bits are bound by integer arithmetic on a part of 2016; the model knows only its bandwidth",
    ),
    (
        lambda c, ratio: c.engine_name == "autoawq" and c.phase == "prefill",
        "the first prompt pays for warm-up in some rows and not in others (64 tokens take 43 to 100 ms)",
    ),
    (
        lambda c, ratio: c.group in ("cpu", "cpu-arm"),
        "kernels for single formats differ twofold on one processor, and the source does not say how threads were pinned",
    ),
    (
        lambda c, ratio: c.engine_name == "lmdeploy-turbomind" and c.input_tokens < 2,
        "one prompt token: the figure is scheduling noise of the benchmark (79 ms at batch 32, 42 ms at batch 64)",
    ),
    (
        lambda c, ratio: c.engine_name == "fastertransformer",
        "24 devices in three stages: how the batch was cut into micro-batches is not stated",
    ),
    (
        lambda c, ratio: c.engine_name in ("hf-transformers", "hf-accelerate", "litgpt"),
        "eager PyTorch of its year: the processor of the host, which sets the pace, is not stated",
    ),
    (
        lambda c, ratio: c.group == "amd-gddr",
        "an early back end (ROCm or Vulkan) whose matrix kernels did not use the units; later ones are three times as fast",
    ),
    (
        lambda c, ratio: c.group == "apple",
        "the same chip reaches its bandwidth with one format and not with another in this source",
    ),
)  # fmt: skip
OTHERWISE = "no single cause found: its neighbours in the same source are priced within the class's error"


def percent(value: float) -> str:
    """0.123 → 12; 12.3 → 1230."""
    return f"{100 * value:.0f}"


def cell(residual: Array) -> str:
    """Median and 90th percentile of exp(|residual|) − 1, in percent."""
    errors = np.expm1(np.abs(residual[np.isfinite(residual)]))
    if not errors.size:
        return "–"
    return f"{percent(float(np.median(errors)))} / {percent(float(np.quantile(errors, 0.9)))}"


def median(residual: Array) -> str:
    errors = np.expm1(np.abs(residual[np.isfinite(residual)]))
    return percent(float(np.median(errors))) if errors.size else "–"


def roofline_residuals(cases: list[Case]) -> Array:
    """The same rows by the bare roofline: data-sheet rates, no overheads."""
    bare = []
    for case in cases:
        limit = copy(case)
        limit.kind = "roofline"
        bare.append(limit)
    rows = stack(bare)
    with np.errstate(divide="ignore", invalid="ignore"):
        predicted = in_metric(rows, times(rows, parameters(), ideal=True)[0])
    return np.log(predicted) - np.log([case.measured or 1.0 for case in cases])


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def grouped(
    cases: list[Case], residuals: Residuals, key: Callable[[Case], str], least: int
) -> list[tuple[str, ...]]:
    names = np.array([key(case) for case in cases])
    rows: list[tuple[str, ...]] = []
    for name in sorted(set(names)):
        chosen = names == name
        if chosen.sum() < least:
            continue
        bias = float(np.exp(np.median(residuals["in"][chosen])))
        rows.append(
            (
                name, str(int(chosen.sum())), cell(residuals["in"][chosen]), cell(residuals["rows"][chosen]), cell(residuals["cells"][chosen]),
                cell(residuals["hardware"][chosen]), cell(residuals["engine"][chosen]), f"{bias:.2f}",
                median(residuals["roofline"][chosen]),
            )
        )  # fmt: skip
    return rows


def explain(case: Case, ratio: float) -> str:
    """Why a row is far off."""
    return next((reason for test, reason in REASONS if test(case, ratio)), OTHERWISE)


def worst_rows(cases: list[Case], residuals: Residuals) -> list[tuple[str, ...]]:
    order = np.argsort(-np.abs(residuals["in"]))[:WORST]
    rows: list[tuple[str, ...]] = []
    for i in order:
        case, ratio = cases[i], float(np.exp(residuals["in"][i]))
        model = case.model.slug if case.model else ""
        measured = f"{case.measured:.4g}" if case.measured else ""
        rows.append(
            (
                case.id, f"{case.engine_name}, {case.hardware_name} × {case.devices:g}, {model}",
                f"{case.metric} {measured}", f"{ratio:.2f}", explain(case, ratio),
            )
        )  # fmt: skip
    return rows


def page(cases: list[Case], residuals: Residuals, constants: int, coverage: dict[str, float]) -> str:
    """The page as Markdown."""
    parts = [
        "# Accuracy",
        "",
        "Written by `python -m costmodel.fit`; do not edit. Predictions against the "
        f"{len(cases)} scored measurements of time in `costmodel/data/measurements.csv`, with {constants} fitted constants "
        "(`costmodel/data/efficiency.csv`: value, bounds, rows, error). Error of a row: exp(|ln(predicted / measured)|) − 1. "
        "Each cell: median / 90th percentile, in percent.",
        "",
        "*In sample*: constants fitted on these rows. *Rows*: a random fifth of them left out in turn, as for a sibling of "
        "a measured row. *Cells*: a fifth of the source × device × model cells left out in turn, as for a model that "
        "the source did not measure on that device. *Source*, *hardware*, *engine*: every source, every device, every engine class left out in turn, so its "
        "constants fall back to their priors and to what its relatives say. Trust the left-out columns. *Roofline*: the "
        "bare limit (data-sheet bandwidth and rate, no overhead) on the same rows, median.",
        "",
        f"The 80 % intervals, made from left-out residuals, cover {100 * coverage['rows']:.0f} % of the rows left out at "
        f"random; widened, as for a device without measurements, {100 * coverage['hardware']:.0f} % of those of left-out "
        f"devices; as for an unknown engine, {100 * coverage['engine']:.0f} % of those of left-out engine classes.",
        "",
        "## By kind of time",
        "",
    ]
    header: tuple[str, ...] = (
        "", "rows", "in sample", "rows left out", *LEFT_OUT[1:], "roofline", "target: same sources", "target: unseen",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for name, test in PHASES:
        chosen = np.array([test(case) for case in cases])
        rows.append(
            (
                name, str(int(chosen.sum())), cell(residuals["in"][chosen]),
                *(cell(residuals[kind][chosen]) for kind in LEFT_OUT), median(residuals["roofline"][chosen]),
                *TARGETS[name],
            )
        )  # fmt: skip
    parts += table(header, rows)
    equal = tuple(source_equal(cases, residuals[kind]) for kind in ("in", "rows", "source"))
    parts += [
        "",
        f"Decode time on one device with every source counted equally (mean of the sources' medians): {percent(equal[0])} % "
        f"in sample, {percent(equal[1])} % on rows left out at random (target 20), {percent(equal[2])} % with the source "
        "left out.",
        "",
    ]
    header = ("", "rows", "in sample", "rows left out", "cells", "hardware", "engine", "bias", "roofline")
    for title, key, least in (
        ("By metric", lambda c: c.metric, 1),
        ("By engine", lambda c: c.engine_name, 1),
        ("By hardware", lambda c: c.hardware_name, 4),
        ("By source", lambda c: c.source, 1),
    ):
        parts += [f"## {title}", "", *table(header, grouped(cases, residuals, key, least)), ""]
    parts += [
        "Hardware with fewer than four rows is left out of the table. Bias: median of predicted / measured.",
        "",
    ]
    parts += ["## The worst ten rows", ""]
    parts += table(("row", "what", "measured", "predicted / measured", "why"), worst_rows(cases, residuals))
    parts += [
        "",
        "## What the figures do not say",
        "",
        "Sources differ by 1.15 to 1.7 times on one configuration, so a median much below 7 % would be fitted noise. "
        "Engines of another era than the measured ones (an engine changes two- to threefold within a year) and devices "
        "without measurements take the constants of their class, and their intervals are wider.",
        "",
    ]
    return "\n".join(parts)


def source_equal(cases: list[Case], residual: Array) -> float:
    """Mean over the sources of the median error of decode time on one device."""
    medians = []
    for source in sorted({case.source for case in cases}):
        chosen = np.array([c.source == source and c.phase == "decode" and c.devices == 1 for c in cases])
        if chosen.any():
            medians.append(float(np.median(np.expm1(np.abs(residual[chosen])))))
    return float(np.mean(medians))
