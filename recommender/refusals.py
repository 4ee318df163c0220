"""A refusal: the code and the one sentence that speak against a technique."""

from __future__ import annotations

from dataclasses import dataclass

from recommender.answer import REJECTION_CODES
from taxonomy.model import Kind, Technique


@dataclass(frozen=True)
class Refusal:
    """A code and a sentence; the sentence ends with a full stop (empty where another refusal will be told)."""

    code: str
    reason: str

    def __post_init__(self) -> None:
        if self.reason and not self.reason.endswith("."):
            object.__setattr__(self, "reason", f"{self.reason}.")

    @property
    def priority(self) -> int:
        return REJECTION_CODES.index(self.code)


def first(refusals: list[Refusal]) -> Refusal:
    """The refusal that the interface's order puts first."""
    return min(refusals, key=lambda refusal: refusal.priority)


def inert_refusal(technique: Technique) -> Refusal:
    """Why a technique that declares no effect cannot be switched on."""
    if technique.kind is Kind.HARDWARE:
        why = technique.no_effect_reason or "no software switch turns it on"
        return Refusal("not-applicable", f"is hardware, not software: {_decapitalise(why)}")
    return Refusal(
        "not-applicable", _capitalise(technique.no_effect_reason) or "declares no effect on a deployment."
    )


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _decapitalise(text: str) -> str:
    return text if len(text) > 1 and text[1].isupper() else text[:1].lower() + text[1:]
