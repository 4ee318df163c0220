"""Question → Answer: the one entry for the command line, REST and HTML. Neither prints nor knows HTTP."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kb.reader import Reader
from recommender import assemble, breakeven, explain, feasibility, plans, text, witness
from recommender.answer import REJECTION_CODES, Answer, Json, Recommendation, Rejection, plain
from recommender.assess import Assessments, assess
from recommender.errors import InvalidQuestion
from recommender.knowledge import RESEARCH_CODE, Knowledge, load_knowledge
from recommender.pricing import price
from recommender.question import Question
from recommender.refusals import Refusal, first, inert_refusal
from recommender.rules import matches_level
from recommender.situation import resolve


def as_question(given: Question | Mapping[str, Any]) -> Question:
    return given if isinstance(given, Question) else Question.from_mapping(given)


def recommend(reader: Reader, question: Question | Mapping[str, Any], *, brief: bool = False) -> Answer:
    """Rank every technique of the knowledge base for one scenario, and say why not for the others.

    `brief` is for whoever shows no figure's prediction: only those are made that may contradict the first entry.
    """
    return recommend_with(load_knowledge(reader), as_question(question), brief=brief)


def recommend_with(knowledge: Knowledge, question: Question, *, brief: bool = False) -> Answer:
    """The same on a snapshot already in memory; pure."""
    check_level(question, knowledge)
    situation = resolve(question, knowledge)
    assessments = assess(situation, knowledge)
    planned = plans.plan(assessments) if question.stack else None
    recommendations = witnessed(ranked(assessments, planned), assessments, brief=brief)
    found = None
    if not assessments.baseline_fits:
        found = feasibility.explore(situation, assessments.priced, assessments.ways, assessments.ways_priced)
    return Answer(
        scenario=situation.question.scenario(),
        resolved=situation.resolved,
        baseline=assessments.priced.full_body(0),
        recommendations=tuple(recommendations),
        rejected=rejections(assessments),
        notes=situation.notes,
        verdict=verdict(assessments, recommendations, found),
        feasibility=found,
        pareto=tuple(plans.pareto(planned, assessments)) if planned else (),
        plans_by_training=plans.by_training(planned, assessments) if planned else {},
        confidence=confidence(assessments),
    )


def check_level(question: Question, knowledge: Knowledge) -> None:
    """A level that no technique has is a slip of the keyboard, not a filter."""
    if question.level is None or not knowledge.techniques:
        return
    if not any(matches_level(technique, question.level) for technique in knowledge.techniques.values()):
        paths = {
            path
            for technique in knowledge.techniques.values()
            for found in technique.levels.values()
            for path in found
        }
        near = difflib.get_close_matches(question.level.rpartition(":")[2], sorted(paths), n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise InvalidQuestion(
            f"no technique lies at level {question.level[:60]!r}",
            hint=hint + "See: kb list levels",
            field="level",
        )


def ranked(assessments: Assessments, planned: plans.Planned | None) -> list[Recommendation]:
    """The accepted techniques, one entry per mechanism, and the best plans; their break-evens in one call."""
    groups = assemble.groups(assessments)
    chosen = plans.chosen_plans(planned, assessments) if planned is not None else []
    stacks = [[group[0].technique] for group in groups]
    knobs = [
        {"host_share": group[0].changes["host_weight_share"]}
        if "host_weight_share" in group[0].changes
        else {}
        for group in groups
    ]
    if planned is not None:
        stacks += [[assessments.technique(slug) for slug in plans.slugs_of(planned, i)] for i in chosen]
        shares = [planned.candidates[i].get("host_weight_share") for i in chosen]
        knobs += [{} if share is None else {"host_share": share} for share in shares]
    points = breakeven.break_evens(assessments.situation, stacks, knobs, assessments.metric)
    found = [assemble.single(assessments, group, points[k]) for k, group in enumerate(groups)]
    if planned is not None:
        found += [
            plans.recommendation(planned, i, assessments, points[len(groups) + k])
            for k, i in enumerate(chosen)
        ]
    return order(found, assessments)


def order(items: Sequence[Recommendation], assessments: Assessments) -> list[Recommendation]:
    """Sorted and numbered."""
    from dataclasses import replace

    metric, engine = assessments.metric, assessments.situation.engine.slug
    found = sorted(items, key=lambda item: assemble.sort_key(item, metric, engine))
    return [replace(item, rank=number) for number, item in enumerate(found, start=1)]


def witnessed(
    items: Sequence[Recommendation], assessments: Assessments, *, brief: bool
) -> list[Recommendation]:
    """The first entries with predictions beside their reported figures."""
    count = 1 if brief else witness.WITNESSED
    first_ones = [
        witness.with_predictions(item, assessments.knowledge, scored_only=brief) for item in items[:count]
    ]
    return [*first_ones, *items[count:]]


def rejections(assessments: Assessments) -> tuple[Rejection, ...]:
    """Every technique that is not recommended, with its code and one sentence."""
    knowledge = assessments.knowledge
    prominence = knowledge.prominence
    found = []
    for slug, item in assessments.items.items():
        refused = item.refusals
        if not refused:
            continue
        refusal, also = refused[0], NO_CODES
        if len(refused) > 1:
            place, also = told_first(tuple([refusal.code for refusal in refused]))
            refusal = refused[place]
        technique = item.technique
        found.append(
            Rejection(
                slug,
                refusal.code,
                f"{technique.name}: {refusal.reason}",
                item.gain if item.changes else None,
                technique.name,
                technique.mechanism,
                also,
                prominence[slug],
            )
        )
    return (*found, *inert_rejections(knowledge, assessments.baseline_unfit))


def inert_rejections(knowledge: Knowledge, unfit: Refusal | None) -> Sequence[Rejection]:
    """Techniques without effects: the same words in every answer, unless the model does not fit."""
    usual: Sequence[Rejection] | None = knowledge.standing.get("inert")
    if usual is None:
        usual = knowledge.standing["inert"] = [
            Rejection(
                slug,
                (refusal := inert_refusal(technique := knowledge.techniques[slug])).code,
                f"{technique.name}: {refusal.reason}",
                name=technique.name,
                mechanism=technique.mechanism,
                prominence=knowledge.prominence[slug],
            )
            for slug in knowledge.inert
        ]
    if unfit is None:
        return usual
    code, reason = unfit.code, unfit.reason
    return [
        Rejection(
            each.technique,
            code,
            f"{each.name}: {reason}",
            None,
            each.name,
            each.mechanism,
            (each.code,),
            each.prominence,
        )
        for each in usual
    ]


NO_CODES: tuple[str, ...] = ()


@lru_cache(maxsize=4096)
def told_first(codes: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Which of several refusals is told, by the interface's order, and the other codes."""
    place = min(range(len(codes)), key=lambda i: REJECTION_CODES.index(codes[i]))
    return place, tuple(sorted(set(codes) - {codes[place]}))


def verdict(assessments: Assessments, items: Sequence[Recommendation], found: Json | None) -> Json:
    """The answer in one sentence, with the baseline's bottleneck."""
    situation, priced = assessments.situation, assessments.priced
    objective = situation.question.objective
    phase = explain.phase_of(objective, priced)
    name, share = explain.bottleneck(priced, phase)
    facts: Json = {
        "fits": assessments.baseline_fits,
        "phase": phase,
        "bound": priced.bound(phase, 0),
        "term": text.term(name),
        "share": share,
        "weight_format": str(situation.base["weight_format"]),
    }
    best = items[0] if items else None
    if found is not None:
        head = f"Does not fit: {feasibility.sentence(found, situation)}"
        ways = feasibility.shortest_ways(found, situation)
        if best is None:
            tail = f"With {ways} it would." if ways else "Nothing in reach makes it fit."
        else:
            first_way = f"Fits with {ways}. " if ways else ""
            tail = f"{first_way}{best_that_fits(best, items, assessments.metric, ways=bool(ways))}"
    else:
        what = "The prompt" if phase == "prefill" else "Decoding"
        head = f"Fits. {what} {explain.bound_text(priced, phase)}."
        if best is None:
            tail = "Nothing in the catalogue helps under these constraints."
        else:
            value = best.gain[assessments.metric]
            lead = "Best" if shipped(best) else "No engine ships anything that helps here; research code"
            gone = f" instead of {text.listed(list(best.instead_of))}" if best.instead_of else ""
            tail = f"{lead}: {best.name}{gone}" + (f", {text.gain(objective, value)}." if value else ".")
    return {**facts, "text": f"{head} {tail}", "best": list(best.techniques) if best else []}


def shipped(item: Recommendation) -> bool:
    """Whether an engine has it; a plan is made of such parts alone."""
    return item.kind == "plan" or any(
        entry["technique"] == item.techniques[0] and entry["name"] != RESEARCH_CODE for entry in item.engines
    )


def best_that_fits(best: Recommendation, items: Sequence[Recommendation], metric: str, *, ways: bool) -> str:
    """The first technique that makes it fit, and the plan that gains more; what only costs time is no best."""
    speed = f"{text.number(1e3 / best.estimate['tpot_ms'])} tok/s a request"
    if (best.gain[metric] or 0.0) < 1.0:
        lead = "Techniques that make it fit cost time" if ways else "What makes it fit costs time"
        return f"{lead}: {best.name}, {speed}."
    plan = next((item for item in items if item.kind == "plan" and (item.gain[metric] or 0.0) > 1.0), None)
    if plan is None or plan is best or (plan.gain[metric] or 0.0) <= (best.gain[metric] or 0.0):
        return f"Best: {best.name}, {speed}."
    return f"Best: {best.name}, {speed}; {plan.name}: {text.number(1e3 / plan.estimate['tpot_ms'])}."


def confidence(assessments: Assessments) -> Json:
    """How far to trust the times: the cost model's own interval and what it rests on."""
    priced = assessments.priced
    low, high = priced.interval("tpot_ms", 0)
    width = None if not low or not high else (high / low) ** 0.5
    level = "unknown" if width is None else "high" if width < 1.2 else "medium" if width < 1.45 else "low"
    return {"level": level, "factor": width, "basis": priced.estimate.interval_basis}


def estimate(question: Question | Mapping[str, Any], knowledge: Knowledge | None = None) -> Json:
    """The interface's `kb estimate` for one scenario."""
    asked = as_question(question)
    situation = resolve(asked, knowledge or Knowledge(techniques={}))
    body = plain(price(situation, [{}]).full_body(0))
    return {
        "scenario": situation.question.scenario(),
        "resolved": situation.resolved,
        **body,
        "notes": list(situation.notes),
    }


def technique_curve(reader: Reader, slug: str, given: Question | Mapping[str, Any]) -> Json:
    """A technique's gain over batch and over prompt length in one scenario, and whether it is any use there."""
    from recommender.curves import assess_few, curves_of

    knowledge, question = load_knowledge(reader), as_question(given)
    technique = knowledge.find(slug)
    if technique is None:
        raise InvalidQuestion(
            f"unknown technique {slug[:60]!r}", hint="See: kb list techniques", field="technique"
        )
    assessments = assess_few(knowledge, question, [technique])
    item = assessments.of(technique)
    refusal = first(list(item.refusals)) if item.refusals else None
    return plain(
        {
            "scenario": question.scenario(),
            "resolved": assessments.situation.resolved,
            "gain": dict(item.gain),
            "code": refusal.code if refusal else None,
            "reason": refusal.reason if refusal else None,
            **curves_of(assessments, [technique], item.changes),
        }
    )


def outcomes(knowledge: Knowledge, given: Question | Mapping[str, Any]) -> dict[str, Json]:
    """What is said of every technique in one scenario: its gains, and the code and reason where it is refused."""
    assessments = assess(resolve(as_question(given), knowledge), knowledge)
    found: dict[str, Json] = {}
    for slug in knowledge.techniques:
        item = assessments.of(slug)
        refusal = first(list(item.refusals)) if item.refusals else None
        found[slug] = {
            "gain": dict(item.gain) if item.changes else {},
            "code": refusal.code if refusal else None,
            "reason": refusal.reason if refusal else None,
        }
    return found


def sweep(given: Mapping[str, Any], knowledge: Knowledge | None = None) -> Iterator[Json]:
    """Estimates over a grid: fields of the scenario, some of them as lists; one row per combination."""
    from recommender import grid

    return grid.sweep(given, knowledge)
