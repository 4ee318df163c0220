"""Fits the constants of data/efficiency.csv on data/measurements.csv: `python -m costmodel.fit`.

Few, named, bounded constants; each starts from a prior and moves only as far as measurements pull it (ridge in
logarithms: a constant without data keeps its prior). Residuals are logarithms of predicted over measured; rows are
weighted so that a source of hundreds of rows does not outvote ten sources of a few; outliers are down-weighted
(Cauchy). Cross-validation leaves out whole sources, engine classes and device groups.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel import accuracy_page, intervals
from costmodel.efficiency import parameters
from costmodel.measured import Case, read_case
from costmodel.stack import Stack, in_metric, stack, times
from costmodel.tables import read_text

Array = NDArray[np.float64]
COLUMNS = ("name", "value", "prior", "sigma", "low", "high", "unit", "count", "cv_error", "basis", "meaning")
NOISE = 0.07  # logarithm: sources differ by this and more on the same configuration
CAUCHY = 0.18  # residuals beyond this lose weight
STEP = 0.02  # of a logarithm, finite differences
ROWS_SEED = 7  # of the random fifths
REFIT_ITERATIONS = 2  # without a fold: leaving rows out moves the constants little, so few steps lead there


@dataclass(slots=True)
class Constant:
    """One row of data/efficiency.csv."""

    name: str
    value: float
    prior: float
    sigma: float  # of the logarithm; 0: never fitted
    low: float
    high: float
    unit: str
    count: int
    cv_error: str
    basis: str
    meaning: str


def read_constants() -> list[Constant]:
    """Rows of data/efficiency.csv."""
    rows = csv.DictReader(read_text("efficiency.csv").splitlines())
    return [
        Constant(
            r["name"], float(r["value"]), float(r["prior"]), float(r["sigma"]), float(r["low"]), float(r["high"]),
            r["unit"], int(r["count"]), r["cv_error"], r["basis"], r["meaning"],
        )
        for r in rows
    ]  # fmt: skip


def predict(rows: Stack, values: dict[str, float]) -> Array:
    """Logarithms of the predictions, each in its own metric."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(in_metric(rows, times(rows, values)[0]))


def weights_of(cases: list[Case]) -> Array:
    """Row weights: a source of n rows counts as √n rows."""
    sizes = Counter(case.source for case in cases)
    return np.array([sizes[case.source] ** -0.5 for case in cases])


@dataclass(slots=True)
class Problem:
    """Rows and the constants that may move."""

    rows: Stack
    target: Array
    weight: Array
    constants: list[Constant]
    free: list[Constant]

    def values(self, theta: Array) -> dict[str, float]:
        """name → value with the free constants at `theta` (logarithms)."""
        found = {c.name: c.value for c in self.constants}
        found.update({c.name: float(np.exp(t)) for c, t in zip(self.free, theta, strict=True)})
        return found


def make_problem(cases: list[Case], constants: list[Constant], free: list[Constant] | None = None) -> Problem:
    """The least-squares problem over `cases`."""
    rows = stack(cases)
    target = np.log(np.array([case.measured or 1.0 for case in cases]))
    movable = [c for c in constants if c.sigma > 0] if free is None else free
    return Problem(rows, target, weights_of(cases), constants, movable)


def solve(
    problem: Problem,
    mask: NDArray[np.bool_],
    start: Array,
    iterations: int = 12,
    scale: float = CAUCHY,
    known: Array | None = None,
) -> tuple[Array, Array]:
    """Levenberg–Marquardt on the masked rows; returns the logarithms of the constants and the last Jacobian.

    `known` is a Jacobian near the start, with which the first iteration saves one.
    """
    free = problem.free
    prior = np.log([c.prior for c in free])
    sigma = np.array([c.sigma for c in free])
    low, high = np.log([max(c.low, 1e-12) for c in free]), np.log([c.high for c in free])
    theta, damping = np.clip(start, low, high), 1e-2
    predicted = predict(problem.rows, problem.values(theta))
    jacobian = np.zeros((len(predicted), len(free))) if known is None else known

    def cost(residual: Array, at: Array) -> float:
        robust = scale**2 * np.log1p((residual / scale) ** 2)
        return float((problem.weight * robust * mask).sum() / NOISE**2 + (((at - prior) / sigma) ** 2).sum())

    now = cost(predicted - problem.target, theta)
    for round_ in range(iterations):
        if known is None or round_ > 0:
            jacobian = slopes(problem, theta, predicted, high)
        residual = predicted - problem.target
        strength = problem.weight * mask / (1.0 + (residual / scale) ** 2) / NOISE**2
        normal = jacobian.T @ (jacobian * strength[:, None]) + np.diag(1.0 / sigma**2)
        gradient = jacobian.T @ (strength * residual) + (theta - prior) / sigma**2
        improved = False
        for _ in range(6):
            change = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            proposal = np.clip(theta + np.clip(change, -0.5, 0.5), low, high)
            guess = predict(problem.rows, problem.values(proposal))
            then = cost(guess - problem.target, proposal)
            if then < now:
                improved = now - then > 1e-4 * now
                theta, predicted, now, damping = proposal, guess, then, damping / 5
                break
            damping *= 5
        if not improved:
            break
    return theta, jacobian


def slopes(problem: Problem, theta: Array, predicted: Array, high: Array) -> Array:
    """Derivatives of the predictions' logarithms by those of the constants, by finite differences."""
    jacobian = np.zeros((len(predicted), len(problem.free)))
    for i in range(len(problem.free)):
        moved = theta.copy()
        step = STEP if theta[i] + STEP <= high[i] else -STEP
        moved[i] += step
        jacobian[:, i] = (predict(problem.rows, problem.values(moved)) - predicted) / step
    return jacobian


Fold = tuple[str, NDArray[np.bool_]]


def folds(problem: Problem, kind: str) -> list[Fold]:
    """Rows to leave out together: `rows` (a fifth of all, at random), `cells` (a fifth of the source × device × model
    cells), or every `source`, `hardware` or `engine` (class) in turn."""
    cases = problem.rows.cases
    if kind == "rows":
        keys = [str(n) for n in np.random.default_rng(ROWS_SEED).permutation(len(cases)) % 5]
    elif kind == "cells":
        names = [f"{c.source}|{c.hardware_name}|{c.model.slug if c.model else ''}" for c in cases]
        order = {
            name: i % 5
            for i, name in enumerate(sorted(set(names), key=lambda n: sum(map(ord, n)) * 7919 % 1009))
        }
        keys = [str(order[name]) for name in names]
    else:
        keys = [{"source": c.source, "hardware": c.hardware_name, "engine": c.kind}[kind] for c in cases]
    array = np.array(keys)
    return [(key, array == key) for key in sorted(set(keys))]


def cross_validate(problem: Problem, theta: Array, jacobian: Array, kind: str) -> Array:
    """Residuals (logarithms) of every row, predicted by constants that never saw its fold."""
    residual = np.full(len(problem.target), np.nan)
    for _, out in folds(problem, kind):
        moved, _ = solve(problem, ~out, theta, REFIT_ITERATIONS, known=jacobian)
        residual[out] = (predict(problem.rows, problem.values(moved)) - problem.target)[out]
    return residual


# ---------------------------------------------------------------- the command

MOST_CONSTANTS = 120
LEAST_INFORMATION = 0.9  # a constant whose posterior is wider than this share of its prior keeps the prior
LEAST_UNSEEN = 0.45  # logarithm: sources alone differ by up to 1.7 on one configuration
INTERVAL_QUANTILE = 0.82
UNSEEN_QUANTILE = 0.85
NEW_DEVICE_QUANTILE = 0.8
MOST_WIDENING = 2.0  # a phase measured on one device only says nothing about the next
SHRINKAGE_ROWS = 12.0  # rows at which a class's own residuals weigh as much as its phase's
INTERVAL_COLUMNS = ("phase", "engine", "group", "factor", "count", "basis")


def training_cases() -> list[Case]:
    """The scored rows about time of data/measurements.csv."""
    rows = csv.DictReader(read_text("measurements.csv").splitlines())
    cases = [read_case(row) for row in rows if row["score"] == "yes"]
    return [case for case in cases if not case.refused and case.phase != "memory" and case.measured]


def posterior(problem: Problem, theta: Array, jacobian: Array) -> Array:
    """Standard deviations of the constants' logarithms, given priors and rows (Laplace approximation)."""
    residual = predict(problem.rows, problem.values(theta)) - problem.target
    strength = problem.weight / (1.0 + (residual / CAUCHY) ** 2) / NOISE**2
    sigma = np.array([c.sigma for c in problem.free])
    normal = jacobian.T @ (jacobian * strength[:, None]) + np.diag(1.0 / sigma**2)
    return np.sqrt(np.diag(np.linalg.inv(normal)))


def calibrate(
    cases: list[Case], constants: list[Constant], *, restart: bool = False
) -> tuple[Problem, Array, Array]:
    """Fit; keep only the constants that the rows inform; fit those again."""
    for constant in constants:
        if constant.sigma == 0:
            constant.value = constant.prior
    problem = make_problem(cases, constants)
    every = np.ones(len(cases), dtype=bool)
    theta = np.log([c.prior if restart else c.value for c in problem.free])
    if restart:
        theta, _ = solve(problem, every, theta, 5, 1.5)
        theta, _ = solve(problem, every, theta, 4, 0.5)
    theta, jacobian = solve(problem, every, theta, 6)
    sigma = np.array([c.sigma for c in problem.free])
    information = posterior(problem, theta, jacobian) / sigma
    order = np.argsort(information)
    kept = {int(i) for i in order[:MOST_CONSTANTS] if information[i] < LEAST_INFORMATION}
    for i, constant in enumerate(problem.free):
        constant.value = float(np.exp(theta[i])) if i in kept else constant.prior
        constant.count, constant.basis, constant.cv_error = 0, "prior", ""
    free = [c for i, c in enumerate(problem.free) if i in kept]
    smaller = Problem(problem.rows, problem.target, problem.weight, constants, free)
    theta, jacobian = solve(smaller, every, np.log([c.value for c in free]), 6)
    for constant, value in zip(free, theta, strict=True):
        constant.value = float(np.exp(value))
    return smaller, theta, jacobian


def record(problem: Problem, theta: Array, jacobian: Array, left_out: Array) -> None:
    """Count of rows and cross-validated error of each fitted constant."""
    for i, constant in enumerate(problem.free):
        moved = np.abs(jacobian[:, i]) > MOVED_SHARE
        constant.count = int(moved.sum())
        constant.basis = "measured"
        if moved.any():
            constant.cv_error = f"{np.median(np.expm1(np.abs(left_out[moved]))):.3f}"


MOVED_SHARE = 0.01  # a row counts for a constant when 1 % of the constant moves its prediction by 0.01 %


def interval_rows(
    cases: list[Case], siblings: Array, inside: Array, by_hardware: Array, by_engine: Array
) -> list[dict[str, str]]:
    """Factors of the 80 % intervals: by phase, engine and device group, and for what no row covers.

    A question about a measured engine and device group may be a sibling of a measured row or a new model on a new
    device: the residuals of both kinds of hold-out count alike.
    """
    devices = Counter(case.hardware.slug for case in cases if case.hardware)
    rows = [
        _interval(intervals.DEVICE, "*", slug, 0.0, n, "a measured device")
        for slug, n in sorted(devices.items())
    ]
    unseen = np.where(np.abs(by_engine) > np.abs(by_hardware), by_engine, by_hardware)
    phases = sorted({case.phase for case in cases})
    size = np.abs(np.concatenate([siblings, inside]))
    for phase in phases:
        of_phase = np.array([case.phase == phase for case in cases])
        general = float(np.quantile(size[np.tile(of_phase, 2)], INTERVAL_QUANTILE))
        usual = np.ones(len(cases))
        keys = [(case.engine_key, case.group) if case.phase == phase else None for case in cases]
        for key in sorted({key for key in keys if key}):
            chosen = np.array([k == key for k in keys])
            own = float(np.quantile(size[np.tile(chosen, 2)], INTERVAL_QUANTILE))
            n = int(chosen.sum())
            width = (own * n + general * SHRINKAGE_ROWS) / (n + SHRINKAGE_ROWS)
            usual[chosen] = width
            rows.append(
                _interval(phase, *key, width, n, "cross-validated residuals of this engine and device group")
            )
        ratio = float(np.quantile(np.abs(by_hardware[of_phase]) / usual[of_phase], NEW_DEVICE_QUANTILE))
        rows.append(
            _interval(
                intervals.NEW_DEVICE, phase, "*", np.log(np.clip(ratio, 1.0, MOST_WIDENING)), int(of_phase.sum()),
                "times as wide on a device without measurements: residuals of left-out devices over the usual width",
            )
        )  # fmt: skip
        wide = float(np.quantile(np.abs(unseen[of_phase]), UNSEEN_QUANTILE))
        wide = max(wide, 1.6 * general, LEAST_UNSEEN)
        rows.append(
            _interval(
                phase, "*", "*", wide, int(of_phase.sum()), "residuals of left-out engine classes and devices"
            )
        )
    return rows


def _interval(phase: str, engine: str, group: str, width: float, count: int, basis: str) -> dict[str, str]:
    return {
        "phase": phase, "engine": engine, "group": group, "factor": f"{np.exp(width):.3f}", "count": str(count),
        "basis": basis,
    }  # fmt: skip


def write_csv(path: Path, columns: tuple[str, ...], rows: list[dict[str, str]]) -> None:
    """A table with Unix line ends, as the repository keeps them."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8")


def rows_of(constants: list[Constant]) -> list[dict[str, str]]:
    """The constants as rows of data/efficiency.csv, sorted by name."""
    return [
        {
            "name": c.name, "value": f"{c.value:.6g}", "prior": f"{c.prior:.6g}", "sigma": f"{c.sigma:g}",
            "low": f"{c.low:g}", "high": f"{c.high:g}", "unit": c.unit, "count": str(c.count),
            "cv_error": c.cv_error, "basis": c.basis, "meaning": c.meaning,
        }
        for c in sorted(constants, key=lambda c: c.name)
    ]  # fmt: skip


def write_page(problem: Problem, theta: Array, left_out: dict[str, Array]) -> None:
    """docs/accuracy.md, in a checkout."""
    folder = Path(__file__).parent.parent / "docs"
    if not folder.is_dir():
        return
    parameters.cache_clear()
    intervals.table.cache_clear()
    intervals.spread.cache_clear()
    intervals.of_group.cache_clear()
    cases = problem.rows.cases
    residuals = {
        "in": predict(problem.rows, problem.values(theta)) - problem.target,
        "roofline": accuracy_page.roofline_residuals(cases), **left_out,
    }  # fmt: skip
    width = np.log([intervals.spread(c.phase, c.engine_key, c.group)[0] for c in cases])
    new = np.array([intervals.table()[(intervals.NEW_DEVICE, c.phase, "*")][0] for c in cases])
    unknown = np.log([intervals.table()[(c.phase, "*", "*")][0] for c in cases])
    coverage = {
        "rows": float(np.mean(np.abs(residuals["rows"]) <= width)),
        "hardware": float(np.mean(np.abs(residuals["hardware"]) <= width * new)),
        "engine": float(np.mean(np.abs(residuals["engine"]) <= unknown)),
    }
    text = accuracy_page.page(cases, residuals, len(problem.free), coverage)
    (folder / "accuracy.md").write_text(text, encoding="utf-8")


def main(arguments: list[str], say: Callable[[str], Any] = print) -> None:
    """Fit, cross-validate and rewrite data/efficiency.csv and data/intervals.csv; `--restart` from the priors."""
    cases = training_cases()
    constants = read_constants()
    problem, theta, jacobian = calibrate(cases, constants, restart="--restart" in arguments)
    siblings = cross_validate(problem, theta, jacobian, "rows")
    inside = cross_validate(problem, theta, jacobian, "cells")
    by_engine = cross_validate(problem, theta, jacobian, "engine")
    by_hardware = cross_validate(problem, theta, jacobian, "hardware")
    record(problem, theta, jacobian, inside)
    data = Path(__file__).parent / "data"
    write_csv(data / "efficiency.csv", COLUMNS, rows_of(constants))
    by_source = cross_validate(problem, theta, jacobian, "source")
    found = interval_rows(cases, siblings, inside, by_hardware, by_engine)
    write_csv(data / "intervals.csv", INTERVAL_COLUMNS, found)
    write_page(problem, theta, {
        "rows": siblings, "cells": inside, "source": by_source, "hardware": by_hardware, "engine": by_engine,
    })  # fmt: skip
    error = np.median(np.expm1(np.abs(predict(problem.rows, problem.values(theta)) - problem.target)))
    say(
        f"{len(problem.free)} constants on {len(cases)} rows: median error {error:.1%}, left out {np.median(np.expm1(np.abs(inside))):.1%}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
