"""Reported figures beside what the model predicts for their own conditions, and where the two disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recommender.answer import Json, Recommendation
from recommender.errors import RecommenderError
from recommender.knowledge import Knowledge

# Entries whose figures are predicted, and figures of each: every one is a scenario of its own to price.
WITNESSED = 3
FIGURES = 3
# Reported and predicted apart by more than this factor is a disagreement worth a sentence.
APART = 1.5


def predicted(row: Mapping[str, Any], knowledge: Knowledge) -> float | None:
    """The prediction for the conditions of one reported figure; worked out once per snapshot."""
    from recommender.backtest import predict

    key = str(row["id"])
    if key not in knowledge.predictions:
        try:
            knowledge.predictions[key] = predict(row, knowledge)[0]
        except (RecommenderError, ValueError):
            knowledge.predictions[key] = None
    return knowledge.predictions[key]


def with_predictions(
    item: Recommendation, knowledge: Knowledge, *, scored_only: bool = False
) -> Recommendation:
    """The entry with predictions beside its first figures, and a sentence where they disagree.

    Only scored figures may disagree; with `scored_only` the others are left without a prediction.
    """
    rows = {row["id"]: row for slug in item.members for row in knowledge.evidence.get(slug, ())}
    found: list[Json] = []
    apart: list[tuple[float, Json]] = []
    for number, figure in enumerate(item.evidence):
        row = rows.get(figure["id"])
        if number >= FIGURES or row is None or (scored_only and not row["score"]):
            found.append(figure)
            continue
        value = predicted(row, knowledge)
        figure = {**figure, "predicted": value}
        found.append(figure)
        reported = figure["value"]
        if value and reported and reported > 0 and row["score"]:
            distance = abs(math.log(value / reported))
            if distance > math.log(APART):
                apart.append((distance, figure))
    sentence = None
    if apart:
        worst = max(apart, key=lambda entry: (entry[0], entry[1]["id"]))[1]
        sentence = (
            f"Reported {worst['value']:g}x ({worst['model']} on {worst['hardware'] or 'a device not named'}, "
            f"{worst['id']}), predicted {worst['predicted']:.2f}x for the same conditions: measure before you rely on it."
        )
    return replace(item, evidence=tuple(found), disagreement=sentence)
