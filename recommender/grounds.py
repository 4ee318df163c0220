"""What speaks against techniques, as far as it is the same for many questions: by model, device, engine and wishes.

`rules` says why; here it is kept who is concerned, so that an answer asks the rules about few of the catalogue's
techniques.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from recommender import effects, own_changes
from recommender.engines import OPEN_ENGINES
from recommender.knowledge import Knowledge
from recommender.refusals import Refusal
from recommender.situation import Situation
from taxonomy.model import Technique

Refusals = tuple[Refusal, ...]


class Grounds:
    """One situation's view of what is kept."""

    def __init__(self, situation: Situation, knowledge: Knowledge, in_place: frozenset[str]) -> None:
        self.situation, self.knowledge, self.in_place = situation, knowledge, in_place
        question = situation.question
        self.device: dict[Any, Refusals] = own_changes.of_device(situation.hardware, knowledge)
        self.engine: dict[Any, Refusals] = own_changes.of_engine(situation.engine, knowledge)
        self.model: dict[Any, Refusals] = own_changes.of_object(situation.model, "models", knowledge)
        wishes = (question.max_training, question.lossless, question.max_quality_loss)
        self.wishes: dict[str, Refusals] = own_changes.of_key(wishes, "wishes", knowledge)

    @cached_property
    def used(self) -> frozenset[str]:
        """Techniques that are there already, or that something in use includes."""
        using, in_place = self.situation.using, self.in_place
        if not using:
            return in_place
        including = self.knowledge.including
        return in_place.union(
            using, (slug for slug, others in including.items() if not others.isdisjoint(using))
        )

    @cached_property
    def opposed(self) -> frozenset[str]:
        """Techniques that conflict with something that is there."""
        kept: dict[Any, frozenset[str]] = own_changes.of_key("opposed", "in place", self.knowledge)
        found = kept.get(self.in_place)
        if found is None:
            if len(kept) >= own_changes.KEPT:
                kept.clear()
            found = kept[self.in_place] = frozenset(
                slug
                for slug, others in self.knowledge.opponents.items()
                if not others.isdisjoint(self.in_place)
            )
        return found

    @cached_property
    def shipped(self) -> frozenset[str] | None:
        """What the engine ships; None where it is a model engine, which offers everything."""
        slug = self.situation.engine.slug
        if slug in OPEN_ENGINES:
            return None
        kept: dict[Any, frozenset[str]] = own_changes.of_key("shipped", "engines' own", self.knowledge)
        if slug not in kept:
            shipped = self.knowledge.shipped
            kept[slug] = frozenset(name for name, engines in shipped.items() if slug in engines)
        return kept[slug]

    @cached_property
    def drafting(self) -> frozenset[str]:
        """Techniques that accept several tokens a step on this engine."""
        slug = self.situation.engine.slug
        kept: dict[Any, frozenset[str]] = own_changes.of_key("drafting", "engines' own", self.knowledge)
        if slug not in kept:
            techniques: Mapping[str, Technique] = self.knowledge.on_engine(slug)
            kept[slug] = frozenset(
                name
                for name in self.knowledge.active
                if "tokens_per_step" in effects.settings_of(techniques[name])
            )
        return kept[slug]

    @cached_property
    def conditional(self) -> frozenset[str]:
        """Techniques that ask something of the load or of the number of devices."""
        standing = self.knowledge.standing
        if "conditional" not in standing:
            standing["conditional"] = frozenset(
                slug
                for slug, technique in self.knowledge.techniques.items()
                if (need := technique.requires).min_devices > 1
                or need.min_batch > 1
                or need.reuse
                or need.acceptance
                or need.request_rate
            )
        found: frozenset[str] = standing["conditional"]
        return found
