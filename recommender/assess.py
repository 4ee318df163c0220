"""Every technique of the catalogue, alone, in one situation: priced, gained and judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from costmodel.catalogue import all_engines
from costmodel.memory import Memory
from recommender import explain, feasibility, for_model, own_changes, rank, refusals, rules, text
from recommender.answer import GAIN_METRICS
from recommender.effects import Fields
from recommender.engines import able
from recommender.grounds import Grounds
from recommender.knowledge import Knowledge
from recommender.own_changes import NOTHING, Alone
from recommender.pricing import Priced, price
from recommender.refusals import Refusal
from recommender.situation import Situation
from taxonomy.model import Technique

# A technique with measured end-to-end figures behind it is surer than one without.
MEASURED, WELL_MEASURED, UNMEASURED = 1.0, 0.8, 1.3
WELL_MEASURED_FIGURES = 3

# Room left beside the weights when a share of them is put into host memory, so that the allocator can work.
HOST_MARGIN = 1.01


@dataclass(slots=True)
class Assessment:
    """One technique in one situation. Hundreds are made for an answer, and `frozen` costs three times as much."""

    technique: Technique
    changes: Fields
    index: int  # element of the priced candidates; 0 is the baseline
    fits: bool
    gain: Mapping[str, float | None]
    spread: float
    refusals: tuple[Refusal, ...] = ()

    @property
    def accepted(self) -> bool:
        return not self.refusals

    @property
    def slug(self) -> str:
        return self.technique.slug


@dataclass(kw_only=True)
class Assessments:
    """The whole catalogue in one situation."""

    situation: Situation
    knowledge: Knowledge
    priced: Priced
    candidates: list[Fields]
    ways: list[feasibility.Change]  # to make it fit; none where it does
    ways_priced: Priced
    in_place: frozenset[str]  # techniques and mechanisms in use, by the user's word or built into the engine
    items: dict[str, Assessment] = field(default_factory=dict)  # techniques with effects
    baseline_unfit: Refusal | None = None  # why what is there now does not fit
    adapted: Mapping[str, Technique] = field(
        default_factory=dict
    )  # techniques that ask for less of this model

    @property
    def baseline_fits(self) -> bool:
        return bool(self.priced.fits[0])

    def of(self, slug: str) -> Assessment:
        """One technique's, with or without effects."""
        found = self.items.get(slug)
        return inert(self.knowledge.techniques[slug], self.baseline_unfit) if found is None else found

    def technique(self, slug: str) -> Technique:
        """A technique as it is for this model."""
        return self.adapted.get(slug) or self.knowledge.on_engine(self.situation.engine.slug)[slug]

    @property
    def metric(self) -> str:
        return rank.METRIC_OF[self.situation.question.objective]

    def shipped_by(self, slug: str) -> tuple[str, ...]:
        """Engines that have the technique and run on the device."""
        device = self.situation.hardware
        key = f"shipped {device.vendor} {device.device_class}"
        here = self.knowledge.standing.get(key)
        if here is None:
            running, known = able(device), all_engines()
            here = self.knowledge.standing[key] = {
                name: tuple(
                    each for each in offered if running is None or each in running or each not in known
                )
                for name, offered in self.knowledge.shipped.items()
            }
        found: tuple[str, ...] = here[slug]
        return found

    def outcome(self, index: int, gain: Mapping[str, float | None], spread: float) -> str:
        """What the estimate says against a candidate: does-not-fit, no-gain, or nothing."""
        if not self.priced.fits[index]:
            return UNFIT
        if not self.baseline_fits:
            return ""  # it makes the model fit, whatever it costs
        value = gain[self.metric]
        if self.metric == "memory":
            return "" if value is not None and value > 1 + rank.NOISE else "no-gain"
        return "" if rank.is_gain(value, spread) else "no-gain"


def trusts(knowledge: Knowledge) -> Sequence[float]:
    """`trust` of every technique with effects."""
    found: Sequence[float] | None = knowledge.standing.get("trusts")
    if found is None:
        found = knowledge.standing["trusts"] = [trust(slug, knowledge) for slug in knowledge.active]
    return found


def trust(slug: str, knowledge: Knowledge) -> float:
    """By how much the reported figures of a technique narrow or widen its interval."""
    figures = knowledge.scored_figures.get(slug, 0)
    return UNMEASURED if not figures else WELL_MEASURED if figures >= WELL_MEASURED_FIGURES else MEASURED


def assess(situation: Situation, knowledge: Knowledge) -> Assessments:
    """Price every technique with effects alone in one call and collect what speaks against each."""
    baseline = feasibility.baseline_memory(situation)
    techniques = knowledge.on_engine(situation.engine.slug)
    sized = {} if bool(baseline.fits) else for_model.narrowed(techniques, situation, knowledge)
    if sized:
        techniques = {**techniques, **sized}
    grounds = Grounds(situation, knowledge)
    asked = ask(grounds, techniques, sized, baseline)
    ways = [] if bool(baseline.fits) else feasibility.ways(situation, baseline)
    priced, ways_priced = price_all(situation, asked.candidates, ways)
    columns = rank.gains(priced.metrics_at(0), priced.metrics)
    # Techniques with the same changes share one element, so its gains are worked out once.
    values = [rank.numbers(column) for column in columns.values()]
    gains = [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
    in_place = grounds.in_place = names_in_place(situation, knowledge, asked.present)
    found = Assessments(
        situation=situation,
        knowledge=knowledge,
        priced=priced,
        candidates=asked.candidates,
        ways=ways,
        ways_priced=ways_priced,
        in_place=in_place,
        adapted=sized
        | for_model.adapted(
            dict(zip(knowledge.active, asked.alones, strict=True)), situation.model, techniques, knowledge
        ),
    )
    judge(found, asked, grounds, techniques, gains)
    return found


def price_all(
    situation: Situation, candidates: Sequence[Fields], ways: Sequence[feasibility.Change]
) -> tuple[Priced, Priced]:
    """The techniques, and the ways to make it fit with their own batches and prompts, in one call."""
    if not ways:
        return price(situation, candidates), Priced(None, 0)
    count, load = len(candidates), situation.workload
    workload = replace(
        load,
        batch=np.array([float(load.batch)] * count + [float(way.batch) for way in ways]),
        input_tokens=np.array([float(load.input_tokens)] * count + [float(way.input_tokens) for way in ways]),
    )
    priced = price(situation, [*candidates, *(way.fields for way in ways)], workload=workload)
    return priced.part(0, count), priced.part(count, len(ways))


@dataclass(slots=True)
class Asked:
    """What every technique with effects would change here; those that change the same share one candidate."""

    candidates: list[Fields] = field(default_factory=lambda: [{}])
    spreads: list[float] = field(default_factory=lambda: [rank.DEFAULT_SPREAD])
    alones: list[Alone] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # of its candidate; 0 changes nothing
    present: list[str] = field(default_factory=list)  # techniques that the deployment covers already


def ask(
    grounds: Grounds,
    techniques: Mapping[str, Technique],
    sized: Mapping[str, Technique],
    baseline: Memory,
) -> Asked:
    """The changes of all techniques that have effects."""
    situation, knowledge = grounds.situation, grounds.knowledge
    workload, kept = situation.formula_workload, own_changes.kept(situation, knowledge)
    timeless, loadless = knowledge.timeless, knowledge.loadless
    found = Asked()
    where: dict[tuple[Any, ...], int] = {(): 0}
    for number, (slug, known, lacks) in enumerate(
        zip(knowledge.active, kept, grounds.lacking(), strict=True)
    ):
        if lacks:
            alone = NOTHING
        elif known is not None and slug not in sized:
            alone = known
        else:
            technique = techniques[slug]
            host = host_overrides(technique, baseline) if technique.requires.host_link else {}
            if host or slug in sized or slug not in loadless:
                alone = own_changes.work_out(technique, situation, workload, host)
            else:
                alone = own_changes.stable(technique, situation, workload, knowledge)
                if slug in timeless and not technique.requires.host_link:
                    kept[number] = alone
        place = where.get(alone.key)
        if place is None:
            place = where[alone.key] = len(found.candidates)
            found.candidates.append(alone.changes)
            found.spreads.append(alone.spread)
        found.alones.append(alone)
        found.places.append(place)
        if alone.in_place:
            found.present.append(slug)
    return found


def judge(
    found: Assessments,
    asked: Asked,
    grounds: Grounds,
    techniques: Mapping[str, Technique],
    gains: Sequence[Mapping[str, float | None]],
) -> None:
    """Fill in what speaks against each technique that has effects."""
    situation, knowledge, adapted = found.situation, found.knowledge, found.adapted
    outcomes = [found.outcome(i, gain, asked.spreads[i]) for i, gain in enumerate(gains)]
    fits = found.priced.listed("fits")
    unfit = unfit_by_candidate(situation, found.priced, outcomes)
    found.baseline_unfit = unfit[0]
    filtered = situation.question.bottleneck or situation.question.level
    told: dict[int, Refusal] = {}  # one sentence for all techniques that change the same
    columns = zip(
        knowledge.active, asked.alones, asked.places, trusts(knowledge), grounds.rows(), strict=True
    )
    for slug, alone, i, trusted, row in columns:
        technique = adapted.get(slug) or techniques[slug]
        against = grounds.against(technique, alone, row, unfit=unfit[i], is_adapted=slug in adapted)
        if outcomes[i] == "no-gain":
            if not against and is_layout_in_use(alone.changes, gains[i]):
                against = (rules.layout_in_use(situation),)
            if not against:
                base = rules.missing_base(technique, knowledge, found.in_place)
                against = (base,) if base else ()
            if against:  # a refusal with a higher code is told: the sentence would not be read
                against = (*against, SILENT)
            else:
                if i not in told:
                    told[i] = Refusal("no-gain", explain_no_gain(found, i, gains[i]))
                against = (told[i],)
        if filtered and not against:
            against = tuple(rules.filter_refusals(technique, situation))
        found.items[slug] = Assessment(
            technique, alone.changes, i, fits[i], gains[i], alone.spread * trusted, against
        )


SILENT = Refusal("no-gain", "")


def is_layout_in_use(changes: Fields, gain: Mapping[str, float | None]) -> bool:
    """Whether a split of the model over devices is the one that runs already: stated, it changes no number."""
    return (
        bool(changes)
        and changes.keys() <= LAYOUT
        and all(value is None or abs(value - 1) < 1e-9 for value in gain.values())
    )


LAYOUT = frozenset({"tensor_parallel", "pipeline_parallel", "expert_parallel"})


UNFIT = "does-not-fit"


def unfit_by_candidate(situation: Situation, priced: Priced, outcomes: Sequence[str]) -> list[Refusal | None]:
    """Why a candidate does not fit, None where it does; those of equal bytes share a sentence."""
    if UNFIT not in outcomes:
        return [None] * len(outcomes)
    facts = explain.memory_facts(priced)
    before, devices_text, devices = facts[0][0], situation.devices_text, situation.question.devices
    made: dict[explain.MemoryFacts, Refusal] = {}
    found: list[Refusal | None] = []
    for outcome, bytes_ in zip(outcomes, facts, strict=True):
        if outcome != UNFIT:
            found.append(None)
            continue
        known = made.get(bytes_)
        if known is None:
            reason = explain.lacks(bytes_, before, devices_text, devices)
            known = made[bytes_] = Refusal(UNFIT, reason)
        found.append(known)
    return found


def inert(technique: Technique, unfit: Refusal | None) -> Assessment:
    """A technique without effects: it neither helps nor hurts."""
    usual = refusals.inert_refusal(technique)
    return Assessment(
        technique=technique,
        changes={},
        index=0,
        fits=unfit is None,
        gain=NOTHING_GAINED,
        spread=rank.DEFAULT_SPREAD,
        refusals=(usual,) if unfit is None else (unfit, usual),
    )


NOTHING_GAINED: Mapping[str, float | None] = dict.fromkeys(GAIN_METRICS, 1.0)


def names_in_place(situation: Situation, knowledge: Knowledge, present: Iterable[str]) -> frozenset[str]:
    """What runs already: techniques given as in use, and those whose effects the engine's defaults cover."""
    slugs = {*situation.using, *present}
    return frozenset(slugs | {knowledge.techniques[slug].mechanism for slug in slugs} - {""})


def host_overrides(technique: Technique, baseline: Memory) -> Fields:
    """For techniques that move weights to the host: the smallest share that makes the rest fit.

    Where the baseline fits already, the technique's own default stands, so that the price of moving is seen.
    """
    if not technique.requires.host_link or bool(baseline.fits):
        return {}
    lacking = float(baseline.total_bytes - baseline.available_bytes)
    weights = float(baseline.weights_bytes)
    share = min(1.0, max(0.0, lacking * HOST_MARGIN / weights)) if weights > 0 else 1.0
    names = [
        effect.value.removeprefix("knob:")
        for effect in technique.effects
        if effect.field in ("host_weight_share", "disk_weight_share")
        and isinstance(effect.value, str)
        and effect.value.startswith("knob:")
    ]
    return dict.fromkeys(names, share)


def explain_no_gain(found: Assessments, index: int, gain: Mapping[str, float | None]) -> str:
    """The sentence for what the estimate says against a candidate that fits."""
    question, priced = found.situation.question, found.priced
    if index == 0:
        return "comes out neutral for this model and workload: it would change nothing."
    gone = explain.replaced(found.candidates[index], found.situation, found.knowledge)
    sentence = explain.no_gain(
        priced,
        index,
        objective=question.objective,
        metric=found.metric,
        gain=gain[found.metric],
        batch=question.batch,
        changes=found.candidates[index],
    )
    return f"would replace {text.listed(list(gone))}; {sentence}" if gone else sentence
