"""The planner on real assessments: parts, candidate sets, one vectorised call, the best plan per training budget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from recommender import assemble, caveats, effects, explain, own_changes, rank, stack
from recommender.answer import Json, Recommendation
from recommender.assess import Assessment, Assessments, trust
from recommender.effects import Fields
from recommender.engines import OPEN_ENGINES
from recommender.knowledge import Knowledge
from recommender.pricing import Priced, price
from recommender.stack import Part

POOL = 13
# Codes that a budget, not the situation, imposes: such techniques may still be part of a plan for another budget.
SOFT = frozenset({"needs-training"})
PASSABLE = SOFT | {"no-gain", "does-not-fit"}  # what another part of the plan may put right, too


@dataclass(frozen=True, kw_only=True)
class Planned:
    """All candidate plans, priced."""

    parts: list[Part]
    sets: list[tuple[int, ...]]
    priced: Priced
    candidates: list[Fields]
    gains: Mapping[str, Any]
    scores: Any
    runs: Any  # which fit, keep the targets and have one engine for all their parts
    facts: stack.Facts
    best: Mapping[str, int | None] = field(default_factory=dict)  # training budget → index of a set


def plan(assessments: Assessments) -> Planned | None:
    """Search plans; None where nothing goes together."""
    question = assessments.situation.question
    parts = parts_of(assessments)
    if not parts:
        return None
    sets = [chosen for chosen in stack.candidate_sets(parts) if stack.is_complete(parts, chosen)]
    if not sets:
        return None
    seen = assessments.situation.formula_workload

    def compose(slugs: Sequence[str]) -> Fields:
        return effects.compose(
            [assessments.technique(slug) for slug in slugs],
            assessments.situation.base,
            model=assessments.situation.model,
            workload=seen,
            overrides=assessments.situation.overrides,
        )

    candidates = [stack.combined(parts, chosen, compose) for chosen in sets]
    priced = price(assessments.situation, [{}, *candidates])
    gains = {name: column[1:] for name, column in rank.gains(priced.metrics_at(0), priced.metrics).items()}
    fits = priced.fits[1:] & meets_targets(question, priced)[1:]
    fits = fits & np.array([stack.common_engines(parts, chosen) != frozenset() for chosen in sets])
    if assessments.metric == "memory":
        fits = fits & (gains["latency"] >= assemble.SLOWEST)
    trusts = [part.trust for part in parts]
    spreads = np.array(
        [
            rank.spread_of(changes) * max([trusts[k] for k in chosen])
            for chosen, changes in zip(sets, candidates, strict=True)
        ]
    )
    sure = rank.lower_bound(gains[assessments.metric], spreads)
    scores = stack.plan_scores(sure, fits, stack.set_prices(parts, sets))
    facts = stack.facts_of(parts, sets)
    budgets = {
        training: stack.best(
            parts, sets, scores, training=training, lossless_only=question.lossless, facts=facts
        )
        for training in ("none", "calibration", "finetune")
    }
    return Planned(
        parts=parts,
        sets=sets,
        priced=priced,
        candidates=candidates,
        gains=gains,
        scores=scores,
        runs=fits,
        facts=facts,
        best=budgets,
    )


def spread_of_set(parts: Sequence[Part], chosen: Sequence[int], changes: Fields) -> float:
    """The spread of a plan's gain: that of its least certain part."""
    return rank.spread_of(changes) * max(parts[i].trust for i in chosen)


def meets_targets(question: Any, priced: Priced) -> Any:
    """Which candidates keep the latency targets; all where none was set or where nobody keeps them."""
    kept = np.ones(priced.count, dtype=bool)
    if question.ttft_slo_ms is not None:
        kept &= priced.column("ttft_s") * 1e3 <= question.ttft_slo_ms
    if question.tpot_slo_ms is not None:
        kept &= priced.column("tpot_s") * 1e3 <= question.tpot_slo_ms
    return kept if kept.any() else np.ones(priced.count, dtype=bool)


def parts_of(assessments: Assessments) -> list[Part]:
    """The techniques worth combining: one per mechanism and gain, best first, enough for every training budget."""
    knowledge, metric = assessments.knowledge, assessments.metric
    usable = [
        item
        for slug in shipped_here(assessments)
        if (item := assessments.items[slug]).changes
        and all(refusal.code in PASSABLE for refusal in item.refusals)
        and helps_somewhere(assessments, item)
        and is_foreseeable(assessments, item)
    ]
    chosen: dict[tuple[str, str, int], Assessment] = {}
    engine = assessments.situation.engine.slug
    taken: dict[
        tuple[str, str, str], set[tuple[str, str]]
    ] = {}  # flags: two names of one practice are one part
    for item in sorted(usable, key=lambda item: knowledge.evidence_rank(item.slug)):
        mechanism, training = knowledge.mechanism(item.slug), item.technique.training.value
        flags = assemble.switches(item.technique, engine)
        spent = taken.setdefault((mechanism, training, item.technique.lossless.value), set())
        if flags.isdisjoint(spent):
            chosen.setdefault((mechanism, training, round(_score(item, metric) / 0.06)), item)
            spent |= flags
    # Best first, as `stack.shortlist` sorts them; only those that stay need their relations.
    ordered = sorted(chosen.values(), key=lambda item: (-_worth(item, assessments), item.slug))
    best: dict[str, Assessment] = {}
    for training in ("none", "calibration", "finetune"):
        within = [
            item
            for item in ordered
            if stack.TRAINING_STEP[item.technique.training.value] <= stack.TRAINING_STEP[training]
        ]
        for item in within[: POOL if training != "finetune" else POOL + 3]:
            best[item.slug] = item
    parts = [part_of(item, assessments) for item in best.values()]
    return stack.shortlist(parts, POOL + 5)


def shipped_here(assessments: Assessments) -> Sequence[str]:
    """Techniques with effects that may be a step: the engine asked for ships them (with `plain`: some engine does)."""
    engine, device = assessments.situation.engine.slug, assessments.situation.hardware
    kept = own_changes.of_key((engine, device.vendor, device.device_class), "steps", assessments.knowledge)
    if "slugs" not in kept:
        offers = {slug: assessments.shipped_by(slug) for slug in assessments.knowledge.active}
        is_open = engine in OPEN_ENGINES
        kept["slugs"] = [slug for slug, names in offers.items() if (names if is_open else engine in names)]
    found: Sequence[str] = kept["slugs"]
    return found


def is_foreseeable(assessments: Assessments, item: Assessment) -> bool:
    """Whether the gain does not hang on what users write, unless the question says so."""
    told = assessments.situation.question.acceptance_rate is not None and "tokens_per_step" in item.changes
    return told or not assemble.depends_on_workload(item.technique)


def helps_somewhere(assessments: Assessments, item: Assessment) -> bool:
    """Whether a technique may be useful in a plan: it gains under the objective, or frees memory where that is short."""
    value = item.gain[assessments.metric]
    if value is not None and value > 1 + rank.NOISE:
        return True
    memory = item.gain["memory"]
    return not assessments.baseline_fits and memory is not None and memory > 1 + rank.NOISE


def _score(item: Assessment, metric: str) -> float:
    bounds = rank.interval(item.gain[metric], item.spread)
    return math.log(bounds[0]) if bounds else 0.0


def _worth(item: Assessment, assessments: Assessments) -> float:
    """The score by which a part is chosen: its gain less its discount."""
    return _score(item, assessments.metric) - assemble.discount([item.technique], assessments)


def part_of(item: Assessment, assessments: Assessments) -> Part:
    """A technique with its relations, as the planner wants it."""
    knowledge, in_place = assessments.knowledge, assessments.in_place
    mine = {item.slug, item.technique.mechanism} - {""}
    excludes: set[str] = set()
    requires: set[str] = set()
    for slug in mine:
        for relation in knowledge.relation_index.get(slug, ()):
            others = {relation.a, relation.b} - mine
            if relation.kind in ("conflicts", "subsumes"):
                excludes |= members_of(others, knowledge)
            elif relation.kind == "requires" and relation.a in mine and not others & in_place:
                requires |= members_of(others, knowledge)
    # What sets the same fields itself does not need the other beside it: it is a variant of it.
    settings = effects.settings_of(item.technique)
    if any(settings & effects.settings_of(knowledge.techniques[slug]) for slug in requires):
        requires = set()
    return Part(
        slug=item.slug,
        changes=item.changes,
        settings=settings,
        training=item.technique.training.value,
        lossless=item.technique.lossless.value,
        score=_worth(item, assessments),
        discount=assemble.discount([item.technique], assessments),
        trust=trust(item.slug, knowledge),
        engines=frozenset(assessments.shipped_by(item.slug)),
        excludes=frozenset(excludes - {item.slug}),
        requires=frozenset(requires),
    )


def members_of(names: set[str], knowledge: Knowledge) -> set[str]:
    """Technique slugs behind names that may be mechanisms."""
    return {slug for name in names for slug in (knowledge.members.get(name) or (name,))}


def slugs_of(planned: Planned, index: int) -> list[str]:
    return [planned.parts[i].slug for i in planned.sets[index]]


def deployed(planned: Planned, index: int, assessments: Assessments) -> tuple[int, ...]:
    """The parts of a plan in the order one would deploy them; where the model does not fit, what makes room first."""
    order = stack.deployment_order(planned.parts, planned.sets[index])
    if assessments.baseline_fits:
        return order
    return tuple(
        sorted(order, key=lambda i: -(assessments.items[planned.parts[i].slug].gain["memory"] or 1.0))
    )


def steps(planned: Planned, index: int, assessments: Assessments) -> list[Json]:
    """The plan in the order one would deploy it, with the gain of each step on top of those before it."""
    order = deployed(planned, index, assessments)
    positions = {chosen: i for i, chosen in enumerate(planned.sets)}
    before: dict[str, float] | None = planned.priced.metrics_at(0)
    found = []
    for length in range(1, len(order) + 1):
        prefix = tuple(sorted(order[:length]))
        slug = planned.parts[order[length - 1]].slug
        technique = assessments.technique(slug)
        position = positions.get(prefix)
        marginal: Mapping[str, float | None] | None = None
        after = None if position is None else planned.priced.metrics_at(position + 1)
        if before is not None and after is not None:
            marginal = {name: rank.number(value) for name, value in rank.gains(before, after).items()}
        before = after
        found.append(
            {
                "technique": slug,
                "name": technique.name,
                "training": technique.training.value,
                "lossless": technique.lossless.value,
                "marginal_gain": marginal,
                "how": [
                    {"engine": support.engine, "how": support.how}
                    for support in technique.engines
                    if support.engine == assessments.situation.engine.slug or len(technique.engines) <= 3
                ],
            }
        )
    return found


def recommendation(
    planned: Planned, index: int, assessments: Assessments, break_even: Mapping[str, Any]
) -> Recommendation:
    """One plan as an entry of the answer."""
    knowledge, question = assessments.knowledge, assessments.situation.question
    order = deployed(planned, index, assessments)
    slugs = [planned.parts[i].slug for i in order]
    techniques = [assessments.technique(slug) for slug in slugs]
    changes = planned.candidates[index]
    gain = {name: rank.number(column[index]) for name, column in planned.gains.items()}
    makes_it_fit = not assessments.baseline_fits
    levels: dict[str, list[str]] = {}
    for technique in techniques:
        for scheme, paths in technique.levels.items():
            levels.setdefault(scheme, []).extend(path for path in paths if path not in levels.get(scheme, ()))
    training = max(
        (technique.training.value for technique in techniques), key=lambda name: stack.TRAINING_STEP[name]
    )
    phases = {technique.phase.value for technique in techniques}
    remarks = caveats.of_times(
        planned.priced, index + 1, gain=gain, break_even=break_even, makes_it_fit=makes_it_fit
    )
    for technique in techniques:
        own = caveats.of_technique(
            technique,
            declared=knowledge.techniques[technique.slug],
            model=assessments.situation.model,
            engine=assessments.situation.engine,
            shipped=assessments.shipped_by(technique.slug),
            loss=knowledge.losses.get(technique.slug),
            changes=assessments.items[technique.slug].changes,
        )
        remarks += [f"{technique.name}: {line[:1].lower()}{line[1:]}" for line in own]
    if len(slugs) > 1:
        remarks.append("The gain of the whole was computed, not measured together.")
    prices = stack.set_prices(planned.parts, [planned.sets[index]])
    return Recommendation(
        rank=0,
        kind="plan",
        techniques=tuple(slugs),
        name=" + ".join(technique.name for technique in techniques),
        levels=levels,
        bottlenecks=tuple(dict.fromkeys(slug for technique in techniques for slug in technique.bottlenecks)),
        phase=phases.pop() if len(phases) == 1 else "both",
        deployment=changes,
        estimate=planned.priced.body(index + 1),
        gain=gain,
        gain_interval=assemble.intervals(gain, spread_of_set(planned.parts, planned.sets[index], changes)),
        makes_it_fit=makes_it_fit,
        why=explain.why(
            planned.priced, index + 1, objective=question.objective, gain=gain, makes_it_fit=makes_it_fit
        ),
        caveats=tuple(remarks),
        break_even=break_even,
        quality=assemble.quality(techniques, knowledge),
        training=training,
        engines=assemble.engines(techniques, assessments),
        members=tuple(slugs),
        papers=assemble.papers(slugs, knowledge),
        evidence=(),
        rank_discount=float(prices[0]) - stack.STEP_PRICE * len(slugs),
        engine=common_engine(planned, index, assessments),
        instead_of=explain.replaced(changes, assessments.situation, knowledge),
        steps=tuple(steps(planned, index, assessments)),
    )


def common_engine(planned: Planned, index: int, assessments: Assessments) -> str | None:
    """The engine that can run the whole plan: the one in use, else the first that ships all parts."""
    engines = stack.common_engines(planned.parts, planned.sets[index]) or frozenset()
    slug = assessments.situation.engine.slug
    if slug in engines:
        return slug
    order = [item for i in planned.sets[index] for item in assessments.shipped_by(planned.parts[i].slug)]
    return next((item for item in order if item in engines), None)


def chosen_plans(planned: Planned, assessments: Assessments) -> list[int]:
    """The plans worth showing: the best within the asked training budget and the best lossless one."""
    question = assessments.situation.question
    found = [
        stack.best(
            planned.parts,
            planned.sets,
            planned.scores,
            training=question.max_training,
            lossless_only=lossless or question.lossless,
            facts=planned.facts,
        )
        for lossless in (False, True)
    ]
    return [index for index in dict.fromkeys(found) if index is not None and len(planned.sets[index]) > 1]


def by_training(planned: Planned, assessments: Assessments) -> dict[str, Json | None]:
    """The best plan for each training budget, in short."""
    answer: dict[str, Json | None] = {}
    for training, index in planned.best.items():
        answer[training] = None if index is None else brief(planned, index, assessments)
    return answer


def brief(planned: Planned, index: int, assessments: Assessments) -> Json:
    """A plan without sources."""
    order = deployed(planned, index, assessments)
    priced = planned.priced
    return {
        "techniques": [planned.parts[i].slug for i in order],
        "deployment": planned.candidates[index],
        "gain": {name: rank.number(column[index]) for name, column in planned.gains.items()},
        "steps": steps(planned, index, assessments),
        "e2e_ms": priced.at("e2e_s", index + 1) * 1e3,
        "ttft_ms": priced.at("ttft_s", index + 1) * 1e3,
        "tpot_ms": priced.at("tpot_s", index + 1) * 1e3,
        "throughput_tok_s": priced.at("throughput_tok_s", index + 1),
        "total_bytes": priced.at("total_bytes", index + 1),
    }


def pareto(planned: Planned, assessments: Assessments) -> list[Json]:
    """Plans that no other beats in latency, throughput, memory and quality together, within the budget asked."""
    question, parts = assessments.situation.question, planned.parts
    kept = planned.runs & (planned.facts.training <= stack.TRAINING_STEP[question.max_training])
    if question.lossless:
        kept = kept & planned.facts.lossless
    allowed = np.flatnonzero(kept).tolist()
    rows = ([0] if assessments.baseline_fits else []) + [i + 1 for i in allowed]
    if not rows:
        return []
    index = np.array(rows)
    loss = np.array(
        [
            0 if i == 0 else sum(stack.QUALITY_STEP[parts[k].lossless] for k in planned.sets[i - 1])
            for i in rows
        ]
    )
    columns = [
        planned.priced.column("e2e_s")[index],
        -planned.priced.column("throughput_tok_s")[index],
        planned.priced.column("total_bytes")[index],
        loss,
    ]
    front = stack.pareto_front(columns)
    found = []
    for position in np.flatnonzero(front):
        i = rows[int(position)]
        slugs = [] if i == 0 else [parts[k].slug for k in deployed(planned, i - 1, assessments)]
        found.append(
            {
                "techniques": slugs,
                "e2e_ms": planned.priced.at("e2e_s", i) * 1e3,
                "tpot_ms": planned.priced.at("tpot_s", i) * 1e3,
                "throughput_tok_s": planned.priced.at("throughput_tok_s", i),
                "total_bytes": planned.priced.at("total_bytes", i),
                "quality_steps": int(loss[int(position)]),
            }
        )
    return sorted(found, key=lambda item: (item["e2e_ms"], item["techniques"]))
