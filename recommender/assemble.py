"""From assessed techniques and plans to the entries of an Answer: papers, figures, engines, quality, sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from kb.evidence_sources import source_url
from recommender import caveats, explain, rank, rules
from recommender.answer import GAIN_METRICS, Json, Recommendation
from recommender.assess import Assessment, Assessments
from recommender.engines import OPEN_ENGINES
from recommender.feasibility import weight_bits
from recommender.knowledge import RESEARCH_CODE, Knowledge
from taxonomy.model import Lossless, Technique

# Members of one mechanism whose gains differ by more than this (in ln) are told apart.
SAME_GAIN = 0.06
MAX_PAPERS = 12
# ln by which a gain is valued less that hangs on what users write, and the latency gain below which a saving of
# memory is no longer worth its price.
WORKLOAD_DEPENDENT = 0.6
SLOWEST = 0.7
MAX_EVIDENCE = 8


def groups(assessments: Assessments) -> list[list[Assessment]]:
    """Accepted techniques of one mechanism with about the same gains, best-evidenced first in each group."""
    knowledge, found = assessments.knowledge, []
    named = {knowledge.mechanism(slug) for slug, item in assessments.items.items() if not item.refusals}
    for mechanism, members in knowledge.members.items():
        if mechanism not in named:
            continue
        accepted = [
            item for slug in members if (item := assessments.items.get(slug)) is not None and item.accepted
        ]
        leaders: list[list[Assessment]] = []
        for item in sorted(
            accepted, key=lambda item: (readiness_of(item, assessments), *knowledge.evidence_rank(item.slug))
        ):
            home = next(
                (group for group in leaders if alike(group[0], item, assessments.situation.engine.slug)), None
            )
            if home is None:
                leaders.append([item])
            else:
                home.append(item)
        found += leaders
    return found


def readiness(engines: Iterable[str], asked: str) -> int:
    """0: the engine asked for ships it (`plain`: some engine does); 1: only other engines do; 2: only research code."""
    names = set(engines) - {RESEARCH_CODE}
    return 2 if not names else 0 if asked in names or asked in OPEN_ENGINES else 1


def readiness_of(item: Assessment, assessments: Assessments) -> int:
    return readiness(assessments.shipped_by(item.slug), assessments.situation.engine.slug)


def alike(a: Assessment, b: Assessment, engine: str) -> bool:
    """Whether two techniques of one mechanism may share a line: same training, same losslessness, and the same gains or
    the same flags (two names of one practice, whose gains differ by what their authors assumed)."""
    if a.technique.training is not b.technique.training or a.technique.lossless is not b.technique.lossless:
        return False
    if switches(a.technique, engine) & switches(b.technique, engine):
        return True
    for metric in ("latency", "throughput", "memory"):
        one, two = a.gain[metric], b.gain[metric]
        if one is None or two is None:
            if one is not two:
                return False
        elif abs(math.log(one / two)) > SAME_GAIN:
            return False
    return True


def switches(technique: Technique, engine: str) -> set[tuple[str, str]]:
    """The command-line flags that turn a technique on: of the engine asked for, or of any."""
    return {
        (support.engine, support.how)
        for support in technique.engines
        if "--" in support.how and (engine in OPEN_ENGINES or support.engine == engine)
    }


def intervals(gain: Mapping[str, float | None], spread: float) -> dict[str, tuple[float, float] | None]:
    """Interval per metric; memory and batch are counted, the rest is timed."""
    return {
        name: rank.memory_gain_is_exact(gain[name])
        if name in ("memory", "max_batch")
        else rank.interval(gain[name], spread)
        for name in GAIN_METRICS
    }


def papers(slugs: Iterable[str], knowledge: Knowledge) -> tuple[Json, ...]:
    """Works of several techniques, each once: those that introduce first, then by surveys that cite them."""
    found: dict[str, Json] = {}
    for slug in slugs:
        for item in knowledge.papers.get(slug, ()):
            if item["id"] not in found:
                found[item["id"]] = {**item, "technique": slug}
    return tuple(list(found.values())[:MAX_PAPERS])


def evidence(slugs: Sequence[str], assessments: Assessments) -> tuple[Json, ...]:
    """Reported figures nearest to the question: same metric, then model, device and batch."""
    knowledge, question = assessments.knowledge, assessments.situation.question
    rows = [row for slug in slugs for row in knowledge.evidence.get(slug, ()) if not row["suspect"]]
    wanted = _METRICS_OF[question.objective]

    def distance(row: Mapping[str, Any]) -> tuple[Any, ...]:
        batch = _first_number(row["batch"])
        apart = 9.0 if batch is None else abs(math.log(max(batch, 1) / question.batch))
        return (
            row["metric"] not in wanted,
            not row["score"],
            not _same_name(row["hardware"], assessments.situation.hardware.slug),
            apart,
            row["id"],
        )

    return tuple(evidence_row(row) for row in sorted(rows, key=distance)[:MAX_EVIDENCE])


_METRICS_OF = {
    "latency": ("e2e_speedup", "decode_speedup"),
    "tpot": ("decode_speedup",),
    "ttft": ("prefill_speedup", "ttft_reduction"),
    "throughput": ("throughput_gain",),
    "memory": ("memory_reduction", "weight_compression", "kv_compression"),
    "cost": ("throughput_gain", "cost_reduction"),
}


def evidence_row(row: Mapping[str, Any]) -> Json:
    """One reported figure in the interface's words; `predicted` is filled where it was computed."""
    return {
        "id": row["id"],
        "technique": row["technique"],
        "metric": row["metric"],
        "value": row["value"],
        "value_hi": row["value_hi"],
        "value_kind": row["value_kind"],
        "unit": row["unit"],
        "baseline": row["baseline"],
        "model": row["model"],
        "hardware": row["hardware"],
        "batch": row["batch"],
        "input_tokens": row["input_tokens"],
        "output_tokens": row["output_tokens"],
        "paper_id": row["paper_id"],
        "source": row["source"],
        "source_url": source_url(row["source"]),
        "locator": row["locator"],
        "predicted": row.get("predicted"),
    }


@lru_cache(maxsize=4096)
def _first_number(value: Any) -> float | None:
    digits = ""
    for character in str(value or ""):
        if character.isdigit():
            digits += character
        elif digits:
            break
    return float(digits) if digits else None


def _same_name(text: str, slug: str) -> bool:
    return bool(text) and slug.split("-")[0] in text.lower().replace(" ", "-")


def quality(techniques: Sequence[Technique], knowledge: Knowledge) -> Json:
    """Whether outputs stay the same, and the quality figures reported."""
    reported = [
        {
            "technique": technique.slug,
            "metric": row["metric"],
            "value": row["value"],
            "unit": row["unit"],
            "model": row["model"],
            "config": row["config"],
            "paper_id": row["paper_id"],
            "locator": row["locator"],
        }
        for technique in techniques
        for row in knowledge.evidence.get(technique.slug, ())
        if row["metric"] in ("ppl_delta", "accuracy_delta") and not row["suspect"]
    ]
    lossless = all(technique.lossless is Lossless.YES for technique in techniques)
    return {"lossless": lossless, "reported": reported[:MAX_EVIDENCE]}


def engines(techniques: Iterable[Technique], assessments: Assessments) -> tuple[Json, ...]:
    """Where on this device and how to switch the techniques on; one entry per engine and technique."""
    return tuple(
        {
            "name": support.engine,
            "how": support.how,
            "since": support.since,
            "technique": technique.slug,
            "source": support.source,
            "checked": support.checked,
        }
        for technique in techniques
        for support in technique.engines
        if support.engine == RESEARCH_CODE or support.engine in assessments.shipped_by(technique.slug)
    )


def single(
    assessments: Assessments,
    group: Sequence[Assessment],
    break_even: Mapping[str, Any],
    number: int = 0,
) -> Recommendation:
    """One mechanism as a recommendation: its best-evidenced member speaks for the others."""
    item, knowledge, question = group[0], assessments.knowledge, assessments.situation.question
    technique, slugs = item.technique, [member.slug for member in group]
    makes_it_fit = not assessments.baseline_fits
    loss = rules.largest_reported_loss(item.slug, knowledge)
    remarks = caveats.of_technique(
        technique,
        declared=knowledge.techniques[item.slug],
        model=assessments.situation.model,
        engine=assessments.situation.engine,
        shipped=assessments.shipped_by(item.slug),
        loss=loss,
        changes=item.changes,
    )
    remarks += caveats.of_times(
        assessments.priced, item.index, gain=item.gain, break_even=break_even, makes_it_fit=makes_it_fit
    )
    return Recommendation(
        rank=number,
        kind="technique",
        techniques=(item.slug,),
        name=technique.name,
        levels={scheme: list(paths) for scheme, paths in technique.levels.items()},
        bottlenecks=technique.bottlenecks,
        phase=technique.phase.value,
        deployment=item.changes,
        estimate=assessments.priced.body(item.index),
        gain=item.gain,
        gain_interval=intervals(item.gain, item.spread),
        makes_it_fit=makes_it_fit,
        why=explain.why(
            assessments.priced,
            item.index,
            objective=question.objective,
            gain=item.gain,
            makes_it_fit=makes_it_fit,
        ),
        caveats=tuple(remarks),
        break_even=break_even,
        quality=quality([technique], knowledge),
        training=technique.training.value,
        engines=engines((member.technique for member in group), assessments),
        members=tuple(slugs),
        papers=papers(slugs, knowledge),
        evidence=evidence(slugs, assessments),
        mechanism=technique.mechanism,
        rank_discount=min(discount([member.technique], assessments) for member in group),
        meets_slo=meets_slo(assessments, item.index),
        instead_of=explain.replaced(item.changes, assessments.situation, knowledge),
        member_gains={member.slug: member.gain for member in group},
    )


def meets_slo(assessments: Assessments, index: int) -> bool | None:
    """Whether a candidate keeps the latency targets; None where none was set."""
    question, priced = assessments.situation.question, assessments.priced
    if question.ttft_slo_ms is None and question.tpot_slo_ms is None:
        return None
    return (question.ttft_slo_ms is None or priced.at("ttft_s", index) * 1e3 <= question.ttft_slo_ms) and (
        question.tpot_slo_ms is None or priced.at("tpot_s", index) * 1e3 <= question.tpot_slo_ms
    )


def depends_on_workload(technique: Technique) -> bool:
    """Whether the gain hangs on what users write: copied text, prunable prompts, easy questions, outlines."""
    fields = {effect.field for effect in technique.effects}
    copies = "tokens_per_step" in fields and "draft_passes" not in fields
    return copies or bool(fields & {"prompt_kept", "cascade_share", "output_kept"})


def discount(techniques: Iterable[Technique], assessments: Assessments) -> float:
    """The techniques' discounts together."""
    return sum(
        rank.discount(
            shipped=bool(assessments.shipped_by(technique.slug)),
            lossless=technique.lossless.value,
            training=technique.training.value,
        )
        + (WORKLOAD_DEPENDENT if depends_on_workload(technique) else 0.0)
        for technique in techniques
    )


def change_size(item: Recommendation) -> float:
    """How much a technique that makes the model fit changes its answers, in steps of the weights' width.

    0: nothing; 0.5: a cache of 8 bits; 1: weights of 8 bits; 2: of 4 bits, or a cache of fewer than 8; 3: of 3 bits;
    4: of 2 bits, and whatever is known to change what the model answers. The same steps as in `feasibility.Change`.
    """
    if item.quality["lossless"]:
        return 0
    sizes = []
    weights, cache = item.deployment.get("weight_format"), item.deployment.get("kv_format")
    if weights is not None:
        bits = weight_bits(weights)
        sizes.append(1.0 if bits > 6.6 else 2.0 if bits > 3.9 else 3.0 if bits > 2.75 else 4.0)
    if cache is not None:
        sizes.append(0.5 if weight_bits(cache, "kv") >= 8 else 2.0)
    return max(sizes, default=2.0 if item.rank_discount < rank.CHANGES_ANSWERS else 4.0)


def sort_key(item: Recommendation, metric: str, engine: str) -> tuple[Any, ...]:
    """Best first: latency targets kept, then what the engine ships, then the low end of the gain's interval, discounted
    (see rank.discount).

    Where the model does not fit, the smallest change to what the model answers that makes it fit comes first (see
    `change_size`), then the objective decides; plans of several come after single techniques, and what makes it fit
    at the price of time (weights in host memory) last.
    """
    bounds = item.gain_interval[metric]
    low = bounds[0] if bounds else 0.0
    value = item.gain[metric] or 0.0
    sure = low * math.exp(-item.rank_discount)
    shipping = [entry["name"] for entry in item.engines if entry["technique"] in item.techniques]
    slow = (metric == "memory" or item.makes_it_fit) and (item.gain["latency"] or 0.0) < SLOWEST
    return (
        item.meets_slo is False,
        value < 1 and not item.makes_it_fit,
        slow,
        item.makes_it_fit and len(item.techniques) > 1,
        change_size(item) if item.makes_it_fit else 0,
        0 if item.kind == "plan" else readiness(shipping, engine),
        -round(sure, 9),
        len(item.techniques),
        item.techniques,
    )
