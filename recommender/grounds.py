"""What speaks against techniques in one situation, most of it kept: it is the same for a model, device, engine or wish.

`rules`, `device_rules` and `engine_rules` say why. What they say of every technique is kept in columns aligned with
`Knowledge.active`, so that an answer asks them about the few whose changes or load have to be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from recommender import effects, own_changes, rules
from recommender.device_rules import device_refusals
from recommender.engine_rules import not_offered
from recommender.engines import OPEN_ENGINES
from recommender.knowledge import Knowledge
from recommender.own_changes import Alone
from recommender.refusals import Refusal
from recommender.situation import Situation, model_traits
from taxonomy.model import Technique

Refusals = tuple[Refusal, ...]
# One technique's cells: by device, by engine, by model, by wishes; None where its changes have to be seen.
Row = tuple[Refusals | None, Refusals | None, Refusals | None, Refusals]
Column = list[Any]


class Grounds:
    """One situation's view of what is kept."""

    def __init__(self, situation: Situation, knowledge: Knowledge) -> None:
        self.situation, self.knowledge = situation, knowledge
        self.in_place: frozenset[str] = frozenset()  # known once the changes of all techniques are
        self.device = own_changes.of_object(situation.hardware, "devices", knowledge)
        self.engine = own_changes.of_object(situation.engine, "engines", knowledge)
        self.model = own_changes.of_object(situation.model, "models", knowledge)

    def rows(self) -> Iterator[Row]:
        """What is known of every technique with effects, in their order."""
        return zip(self._by_device, self._by_engine, self._by_model, self._by_wishes, strict=True)

    def against(
        self,
        technique: Technique,
        alone: Alone,
        row: Row,
        *,
        unfit: Refusal | None,
        is_adapted: bool = False,
    ) -> Refusals:
        """What speaks against a technique, highest code first: the first reason, or every one where it does not fit.

        `unfit` is the estimate's word that it does not fit, which stands second in the interface's order. `is_adapted`:
        the technique is not as in the catalogue, but as it is for this model.
        """
        ruled_out, not_shipped, senseless, unwanted = row
        if ruled_out is None:
            ruled_out = self._ruled_out(technique, alone)
        if ruled_out:
            return ruled_out
        slug = technique.slug
        # Where it does not fit, a plan may still use it beside something that makes room: every reason counts.
        every = unfit is not None
        found: Refusals = (unfit,) if unfit is not None else ()
        if slug in self.used:
            found += tuple(
                rules.use_refusals(technique, alone.changes, self.situation, self.knowledge, self.in_place)
            )
        if every or not found:
            found += self._senseless(technique) if senseless is None else senseless
            if slug in self.conditional:
                found += tuple(rules.load_refusals(technique, self.situation.question))
        if every or not found:
            found += self._not_shipped(technique, alone) if not_shipped is None else not_shipped
        if (every or not found) and slug in self.opposed:
            found += tuple(rules.conflict_refusals(technique, self.situation, self.knowledge, self.in_place))
        if every or not found:
            found += (
                tuple(rules.constraint_refusals(technique, self.situation, self.knowledge))
                if is_adapted
                else unwanted
            )
        return found

    def lacking(self) -> Sequence[bool]:
        """Whether the model lacks what a technique asks for, in the order of techniques with effects."""
        if "lacking" not in self.model:
            traits, demands = model_traits(self.situation.model), self.knowledge.demands
            self.model["lacking"] = [not traits.issuperset(demands[slug]) for slug in self.knowledge.active]
        found: Sequence[bool] = self.model["lacking"]
        return found

    @cached_property
    def _by_device(self) -> Column:
        if "column" not in self.device:
            formatted = self._all("formatted")
            self.device["column"] = [
                None
                if technique.slug in formatted
                else tuple(device_refusals(technique, {}, self.situation, self.knowledge))
                for technique in self._active
            ]
        found: Column = self.device["column"]
        return found

    def _ruled_out(self, technique: Technique, alone: Alone) -> Refusals:
        key = (technique.slug, alone.activation_format, alone.weight_format is None)
        if key not in self.device:
            self.device[key] = tuple(
                device_refusals(technique, alone.changes, self.situation, self.knowledge)
            )
        found: Refusals = self.device[key]
        return found

    @cached_property
    def _by_engine(self) -> Column:
        if "column" not in self.engine:
            formatted, shipped = self._all("formatted"), self.knowledge.shipped
            slug, is_open = self.situation.engine.slug, self.situation.engine.slug in OPEN_ENGINES
            self.engine["column"] = [
                ()
                if is_open or slug in shipped[technique.slug]
                else None
                if technique.slug in formatted
                else tuple(not_offered(technique, {}, self.situation, self.knowledge))
                for technique in self._active
            ]
        found: Column = self.engine["column"]
        return found

    def _not_shipped(self, technique: Technique, alone: Alone) -> Refusals:
        key = (technique.slug, alone.weight_format, alone.kv_format)
        if key not in self.engine:
            self.engine[key] = tuple(not_offered(technique, alone.changes, self.situation, self.knowledge))
        found: Refusals = self.engine[key]
        return found

    @cached_property
    def _by_model(self) -> Column:
        if "column" not in self.model:
            drafters = self._all("drafters")
            self.model["column"] = [
                None if technique.slug in drafters else self._of_model(technique, drafts=False)
                for technique in self._active
            ]
        found: Column = self.model["column"]
        return found

    def _senseless(self, technique: Technique) -> Refusals:
        key = (technique.slug, technique.slug in self.drafting)
        if key not in self.model:
            self.model[key] = self._of_model(technique, drafts=key[1])
        found: Refusals = self.model[key]
        return found

    def _of_model(self, technique: Technique, *, drafts: bool) -> Refusals:
        return tuple(rules.model_refusals(technique, self.situation.model, self.knowledge, drafts=drafts))

    @cached_property
    def _by_wishes(self) -> Column:
        question = self.situation.question
        wishes = (question.max_training, question.lossless, question.max_quality_loss)
        kept = own_changes.of_key(wishes, "wishes", self.knowledge)
        if "column" not in kept:
            kept["column"] = [
                tuple(rules.constraint_refusals(technique, self.situation, self.knowledge))
                for technique in self._active
            ]
        found: Column = kept["column"]
        return found

    @property
    def _active(self) -> Iterator[Technique]:
        return map(self.knowledge.techniques.__getitem__, self.knowledge.active)

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
    def drafting(self) -> frozenset[str]:
        """Techniques that accept several tokens a step on this engine."""
        if "drafting" not in self.engine:
            techniques = self.knowledge.on_engine(self.situation.engine.slug)
            self.engine["drafting"] = frozenset(
                slug
                for slug in self.knowledge.active
                if "tokens_per_step" in effects.settings_of(techniques[slug])
            )
        found: frozenset[str] = self.engine["drafting"]
        return found

    @cached_property
    def conditional(self) -> frozenset[str]:
        """Techniques that ask something of the load or of the number of devices."""
        return self._all("conditional")

    def _all(self, name: str) -> frozenset[str]:
        """A set of techniques that is the same in every situation."""
        kept: dict[Any, frozenset[str]] = own_changes.of_key("sets", "sets", self.knowledge)
        if name not in kept:
            test = SETS[name]
            kept[name] = frozenset(technique.slug for technique in self._active if test(technique))
        return kept[name]


def sets_any(technique: Technique, fields: frozenset[str]) -> bool:
    """Whether a technique sets one of these fields, on whatever engine."""
    return any(effect.field in fields for effect in technique.effects) or any(
        not fields.isdisjoint(support.sets) for support in technique.engines
    )


def asks_of_load(technique: Technique) -> bool:
    need = technique.requires
    return need.min_devices > 1 or need.min_batch > 1 or need.reuse or need.acceptance or need.request_rate


FORMATS = frozenset(rules.FORMAT_FIELDS)
SETS: dict[str, Callable[[Technique], bool]] = {
    "formatted": lambda technique: sets_any(technique, FORMATS),
    "drafters": lambda technique: sets_any(technique, effects.DRAFTING | {"tokens_per_step"}),
    "conditional": asks_of_load,
}
