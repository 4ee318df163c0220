"""Predictions for published results, technique by technique, kept per data version: seconds in all, so never twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kb.kept import Kept
from recommender import service
from recommender.backtest import predict_row
from recommender.question import Question
from web.deps import Library

Item = dict[str, Any]

MOST_CURVES = 1_500
MOST_OUTCOMES = 4_000  # techniques times data versions
_outcomes: Kept[dict[str, Item]] = Kept(MOST_OUTCOMES)
_curves: Kept[Item] = Kept(MOST_CURVES)


def outcomes(library: Library, technique: str, rows: Sequence[Item]) -> dict[str, Item]:
    """Evidence id → the figure's prediction, or why it has none, as `kb backtest` gives it."""

    def judged() -> dict[str, Item]:
        knowledge = library.knowledge()
        return {row["id"]: predict_row(row, knowledge) for row in rows}

    return _outcomes.made((library.version(), technique), judged)


def predictions(library: Library, technique: str, rows: Sequence[Item]) -> dict[str, float]:
    """Evidence id → what the cost model predicts for the same setting; rows it cannot rebuild are absent."""
    found = outcomes(library, technique, rows)
    return {ident: each["predicted"] for ident, each in found.items() if each["predicted"] is not None}


def every_outcome(library: Library) -> list[Item]:
    """Every published figure with its prediction and its setting, in the order of `kb backtest`."""
    found = []
    for technique, rows in library.snapshot().evidence_by_technique.items():
        judged = outcomes(library, technique, rows)
        found += [{**row, **judged[row["id"]]} for row in rows]
    return sorted(found, key=lambda row: str(row["id"]))


def curve(library: Library, technique: str, question: Question) -> Item:
    """A technique's gain curves, kept for questions that many readers ask (the page's own default above all)."""
    return _curves.made(
        (library.version(), technique, question),
        lambda: service.technique_curve(library.reader(), technique, question),
    )
