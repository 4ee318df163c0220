"""Predictions for published results, technique by technique, kept per data version: seconds in all, so never twice."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from recommender import service
from recommender.backtest import predict_row
from recommender.question import Question
from web.deps import Library

Item = dict[str, Any]

_kept: dict[tuple[str, str], dict[str, Item]] = {}
_curves: dict[tuple[str, str, Question], Item] = {}
_lock = threading.Lock()
MOST_CURVES = 1_500
MOST_KEPT = 4_000  # techniques times data versions


def outcomes(library: Library, technique: str, rows: Sequence[Item]) -> dict[str, Item]:
    """Evidence id → the figure's prediction, or why it has none, as `kb backtest` gives it."""
    key = (library.version(), technique)
    found = _kept.get(key)
    if found is None:
        knowledge = library.knowledge()
        found = {row["id"]: predict_row(row, knowledge) for row in rows}
        with _lock:
            while len(_kept) >= MOST_KEPT:
                _kept.pop(next(iter(_kept)))
            _kept[key] = found
    return found


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
    key = (library.version(), technique, question)
    found = _curves.get(key)
    if found is None:
        found = service.technique_curve(library.reader(), technique, question)
        with _lock:
            while len(_curves) >= MOST_CURVES:
                _curves.pop(next(iter(_curves)))
            _curves[key] = found
    return found
