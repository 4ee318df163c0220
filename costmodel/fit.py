"""Fits the constants of data/efficiency.csv on data/measurements.csv: `python -m costmodel.fit`.

Few, named, bounded constants; each starts from a prior and moves only as far as measurements pull it (ridge in
logarithms: a constant without data keeps its prior). Residuals are logarithms of predicted over measured; rows are
weighted so that a source of hundreds of rows does not outvote ten sources of a few; outliers are down-weighted
(Cauchy). Cross-validation leaves out whole sources, engine classes and device groups.
"""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel.measured import Case
from costmodel.stack import Stack, in_metric, stack, times
from costmodel.tables import read_text

Array = NDArray[np.float64]
COLUMNS = ("name", "value", "prior", "sigma", "low", "high", "unit", "count", "cv_error", "basis", "meaning")
NOISE = 0.07  # logarithm: sources differ by this and more on the same configuration
CAUCHY = 0.18  # residuals beyond this lose weight
STEP = 0.02  # of a logarithm, finite differences
MOVES = 1e-4  # change of a prediction's logarithm that makes a row count for a constant


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
    jacobian_rows: Any = None

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
    problem: Problem, mask: NDArray[np.bool_], start: Array, iterations: int = 12, scale: float = CAUCHY
) -> tuple[Array, Array]:
    """Levenberg–Marquardt on the masked rows; returns the logarithms of the constants and the last Jacobian."""
    free = problem.free
    prior = np.log([c.prior for c in free])
    sigma = np.array([c.sigma for c in free])
    low, high = np.log([max(c.low, 1e-12) for c in free]), np.log([c.high for c in free])
    theta, damping = np.clip(start, low, high), 1e-2
    predicted = predict(problem.rows, problem.values(theta))
    jacobian = np.zeros((len(predicted), len(free)))

    def cost(residual: Array, at: Array) -> float:
        robust = scale**2 * np.log1p((residual / scale) ** 2)
        return float((problem.weight * robust * mask).sum() / NOISE**2 + (((at - prior) / sigma) ** 2).sum())

    now = cost(predicted - problem.target, theta)
    for _ in range(iterations):
        for i in range(len(free)):
            moved = theta.copy()
            step = STEP if theta[i] + STEP <= high[i] else -STEP
            moved[i] += step
            jacobian[:, i] = (predict(problem.rows, problem.values(moved)) - predicted) / step
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
