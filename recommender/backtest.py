"""Reported gains beside predicted ones: every figure's condition is rebuilt and the technique applied to it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from recommender import conditions, effects, variants
from recommender.answer import Json
from recommender.conditions import Unpriced, rebuild
from recommender.effects import Fields
from recommender.errors import RecommenderError
from recommender.knowledge import Knowledge
from recommender.pricing import Priced, price
from recommender.question import Question
from recommender.situation import Situation, model_traits, resolve
from taxonomy.model import Technique

# Metric of a row → what is compared. Ratios above 1 are better.
METRICS = {
    "decode_speedup": "decode",
    "prefill_speedup": "prefill",
    "ttft_reduction": "prefill",
    "e2e_speedup": "e2e",
    "throughput_gain": "throughput",
    "memory_reduction": "memory",
    "weight_compression": "weights",
    "kv_compression": "kv",
    "max_batch_gain": "max_batch",
    "cost_reduction": "throughput",
}
LEVELS = ("e2e", "serving", "capacity", "user report", "cost")
LARGEST_BATCH = 256  # engines admit no more sequences at once by default (vLLM: max_num_seqs 256)
NEUTRAL = 0.05  # gains within 5 % of 1 have no direction
CLOSE = 1.25
# Since when vLLM splits long prompts by default: its V1, announced in January 2025 (blog.vllm.ai, 2025-01-27).
CHUNKED_SINCE = {"vllm": 2025.0}
# Until then llama.cpp cut every matrix over the devices; since then each holds whole layers (its pull request 4766,
# merged in January 2024, made that the default).
LAYERS_SINCE = {"llama.cpp": 2024.04}
# What an engine was like without what it does today; a reported gain of such a practice is over an engine that lacked it.
# The share of cache memory that went unused before paging: vLLM paper, arXiv:2309.06180, figure 2 (20 to 38 % used).
LACKING: Fields = {
    "attention_kernel": "eager",
    "fused_operators": False,
    "cuda_graphs": False,
    "continuous_batching": False,
    "chunk_tokens": 0.0,
    "prefix_cache": False,
    "weight_kernel": "naive",
    "kv_waste_share": 0.7,
}
# Where weights lie that the device does not hold. A source whose baseline cannot hold the model either, or that says so,
# had them there without what the technique adds: nothing overlapped, nothing skipped.
PLACES = ("host_weight_share", "disk_weight_share", "host_compute")
PLACED_TEXT = r"offload|accelerate|zero-?inference|naive loading"
LESS_SPLIT = {"split": "flash", "flash": "eager"}


def backtest(rows: Iterable[Mapping[str, Any]], knowledge: Knowledge) -> Json:
    """`{"rows", "summary"}` of the interface for rows with the columns of effects.csv."""
    found = [predict_row(row, knowledge) for row in rows]
    return {"rows": found, "summary": summary(found)}


def predict_row(row: Mapping[str, Any], knowledge: Knowledge) -> Json:
    """One figure: reported, predicted, what was assumed, or the reason why it is not predicted."""
    result: Json = {
        "id": row.get("id"),
        "technique": row.get("technique"),
        "metric": row.get("metric"),
        "reported": _number(row.get("value")),
        "predicted": None,
        "log_ratio": None,
        "assumed": [],
        "reason": None,
        "value_kind": row.get("value_kind") or "point",
        "score": _truth(row.get("score")),
    }
    try:
        predicted, assumed = predict(row, knowledge)
    except (RecommenderError, ValueError) as error:
        result["reason"] = getattr(error, "message", str(error))
        return result
    result["assumed"] = assumed
    result["predicted"] = predicted
    if result["reported"] and result["reported"] > 0 and predicted > 0:
        result["log_ratio"] = math.log(predicted / result["reported"])
    return result


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _truth(value: Any) -> bool:
    return value is True or str(value).strip().lower() in ("yes", "true", "1")


def predict(row: Mapping[str, Any], knowledge: Knowledge) -> tuple[float, list[str]]:
    """(predicted ratio, what was assumed). Raises Unpriced with the reason."""
    metric = METRICS.get(str(row.get("metric") or ""))
    unit = str(row.get("unit") or "x")
    level = str(row.get("level") or "e2e")
    if metric is None:
        raise Unpriced(f"{row.get('metric')} is no speed or memory ratio")
    if unit != "x":
        raise Unpriced(f"the figure is in {unit}, not a ratio")
    if level not in LEVELS:
        raise Unpriced(f"a {level} figure: the model prices whole requests")
    slug = knowledge.find(str(row.get("technique") or ""))
    if slug is None:
        raise Unpriced(f"technique {row.get('technique')!r} is not in the catalogue")
    technique = knowledge.techniques[slug]
    if not technique.effects:
        raise Unpriced(technique.no_effect_reason or "the technique declares no effect")
    if re.search(r"\b(gpus?|devices?) count\b", f"{row.get('baseline')} {row.get('config')}".lower()):
        raise Unpriced("a ratio of device counts, not of batches or speeds")
    found = rebuild(row)
    if technique.slug in reuse_of_prefixes(knowledge) and found.cache_hit_rate is None:
        raise Unpriced(
            "the source prints no share of tokens that are found in the cache, and the gain hangs on it"
        )
    variant = variants.variant_of(row, technique)
    situation = situation_of(found, variant)
    lacking = sorted(set(knowledge.demands[slug]) - model_traits(situation.model))
    if lacking:
        raise Unpriced(f"{situation.model.name} has not what the technique works on: {', '.join(lacking)}")
    before, after = deployments_of(technique, variant, situation, found, level, metric)
    before |= placed_before(before, after, situation, str(row.get("baseline") or ""))
    if not {k: v for k, v in after.items() if before.get(k) != v} and "devices" not in after:
        raise Unpriced(f"{situation.engine.name} already works this way, so there is nothing to compare")
    other = situation
    if found.candidate_engine:  # timed in another engine than the baseline
        other = situation_of(replace(found, engine=found.candidate_engine, engine_year=None), variant)
    return ratio_of(situation, before, after, metric, found, other), found.assumed


def reuse_of_prefixes(knowledge: Knowledge) -> frozenset[str]:
    """Techniques that do nothing but keep what earlier requests computed."""
    return frozenset(
        slug
        for slug, technique in knowledge.techniques.items()
        if {effect.field for effect in technique.effects} == {"prefix_cache"}
    )


def situation_of(found: conditions.Conditions, variant: variants.Variant) -> Situation:
    """The rebuilt scenario, as the recommender would see it."""
    question = Question(
        hardware=found.hardware,
        model=found.model,
        devices=found.devices,
        interconnect=found.interconnect,
        batch=found.batch,
        input_tokens=found.input_tokens,
        output_tokens=found.output_tokens,
        cache_hit_rate=found.cache_hit_rate or 0.0,
        engine=found.engine,
    )
    situation = resolve(question, Knowledge(techniques={}), any_engine=True)
    engine = situation.engine
    if found.engine_year and not engine.year:
        engine = replace(engine, year=found.engine_year)
    if engine.year and engine.year < LAYERS_SINCE.get(found.engine, 0.0):
        engine = replace(engine, layout="tensor")
    base = dict(situation.base)
    if found.engine_year and found.engine_year < CHUNKED_SINCE.get(found.engine, 0.0):
        base["chunk_tokens"] = 0.0
    return replace(situation, engine=engine, base={**base, **variant.baseline})


def without(technique: Technique, base: Fields, stated: Fields) -> Fields:
    """The engine before it had the technique, where its default of today is what the technique brings.

    Empty where the baseline's own text names a field of the technique: it had it then, in another form.
    """
    touched = {effect.field for effect in technique.effects}
    if touched & set(stated):
        return {}
    lacked: Fields = {}
    for name in sorted(touched):
        now = base.get(name)
        if name == "decode_attention_kernel":
            lacked[name] = LESS_SPLIT.get(str(now), now)
        elif name in LACKING and now not in (None, 0.0):
            lacked[name] = LACKING[name]
    return {name: value for name, value in lacked.items() if value != base.get(name)}


def placed_before(before: Fields, after: Fields, situation: Situation, baseline: str) -> Fields:
    """What an offloading technique's baseline kept off the device; nothing where it holds the model by itself."""
    places = {name: after[name] for name in PLACES if after.get(name)}
    elsewhere = re.search(
        r"\b([ahlv]\d{2,3}|rtx)\b", baseline.lower()
    )  # the baseline had a device of its own
    if not places or set(places) == {"host_compute"} or elsewhere:
        return {}
    if not re.search(PLACED_TEXT, baseline.lower()):
        alone = price(situation, [before], workload=replace(situation.workload, batch=1.0))
        if alone.at("max_batch", 0) >= 1.0:
            return {}
    return places


def deployments_of(
    technique: Technique,
    variant: variants.Variant,
    situation: Situation,
    found: conditions.Conditions,
    level: str,
    metric: str,
) -> tuple[Fields, Fields]:
    """Changes of the baseline and of the candidate, relative to the rebuilt deployment."""
    before: Fields = {}
    if metric in ("decode", "prefill", "e2e") and level != "serving":
        # A benchmark at a fixed batch starts all its sequences together, whatever the engine could do.
        before = {"continuous_batching": False, "chunk_tokens": 0.0}
    if variant.baseline_devices and variant.baseline_devices != found.devices:
        before |= {"devices": variant.baseline_devices, "tensor_parallel": None, "pipeline_parallel": None}
    base = {**situation.base, **before}
    after = effects.changes_of(
        technique,
        {**base, "devices": found.devices},
        model=situation.model,
        workload=situation.formula_workload,
        overrides=variant.knobs,
    )
    if not after or effects.is_covered(after, base):
        lacked = without(technique, base, variant.baseline)
        if lacked:
            before |= lacked
            after = {**{name: base[name] for name in lacked}, **after}
    if situation.engine.layout == "layer" and variant.baseline_devices:
        # Such an engine splits by layers whatever the figure calls it.
        after = {name: value for name, value in after.items() if not name.endswith("_parallel")}
    after = {**before, **after, **variant.fields}
    if metric == "prefill":
        # both sides compute as many prompts at once; one that starts them one by one has not computed them faster
        after["continuous_batching"] = {**base, **before}.get("continuous_batching")
    if variant.baseline_devices:
        after["devices"] = found.devices
    return before, after


def ratio_of(
    situation: Situation,
    before: Fields,
    after: Fields,
    metric: str,
    found: conditions.Conditions,
    other: Situation,
) -> float:
    """Baseline over candidate (or the other way round for throughput) in the row's metric; `other` is the candidate's
    scenario where it was timed in another engine."""

    def sides(batches: tuple[float, float]) -> list[Priced]:
        """Each side by itself: they may differ in engine and batch."""
        return [
            price(where, [changes], workload=replace(where.workload, batch=batch))
            for where, changes, batch in zip((situation, other), (before, after), batches, strict=True)
        ]

    asked = float(found.batch)
    priced = sides((float(found.baseline_batch or asked), asked))
    if found.batch_is_maximum or (metric == "throughput" and not all(bool(side.fits[0]) for side in priced)):
        # Each side runs as many sequences as its memory holds.
        admitted = math.inf if found.memory_bound else LARGEST_BATCH
        most = [side.at("max_batch", 0) for side in priced]
        if found.batch_is_maximum and most[0] < 1.0:
            # The baseline ran, so it had the devices that hold it: FP16 on two against FP6 on one.
            least = sides((1.0, 1.0))[0].at("min_devices", 0)
            if not math.isfinite(least):
                raise Unpriced(f"no number of such devices holds {situation.model.name} of the baseline")
            before = {**before, "devices": least, "tensor_parallel": None, "pipeline_parallel": None}
            most = [side.at("max_batch", 0) for side in sides((1.0, 1.0))]
        first, second = (min(max(1.0, batch), admitted) for batch in most)
        if found.batch_is_maximum:
            priced = sides((first, second))
        elif 1.0 <= most[0] < asked:
            # Below one, the source had more memory than its text says, and its batch is believed.
            priced = sides((first, min(second, asked)))
    one, two = (value_of(side, 0, metric) for side in priced)
    if not (one > 0 and two > 0 and math.isfinite(one) and math.isfinite(two)):
        raise Unpriced(f"the cost model gives no {metric} for these conditions")
    return two / one if metric in ("throughput", "max_batch") else one / two


_COLUMNS = {
    "decode": "step_s",
    "prefill": "ttft_s",
    "e2e": "e2e_s",
    "throughput": "throughput_tok_s",
    "memory": "total_bytes",
    "weights": "weights_bytes",
    "kv": "kv_cache_bytes",
    "max_batch": "max_batch",
}


def value_of(priced: Priced, index: int, metric: str) -> float:
    """The measured quantity of one side."""
    if metric == "memory":
        return priced.at("total_bytes", index) - priced.at("overhead_bytes", index)
    return priced.at(_COLUMNS[metric], index)


def summary(rows: Sequence[Json]) -> Json:
    """Over the scored rows, each technique with the same weight; maxima are judged apart."""
    scored = [row for row in rows if row["score"] and row["value_kind"] != "up_to"]
    answer = _measures([row for row in scored if row["log_ratio"] is not None])
    answer["scored"] = len(scored)
    answer["predicted_share"] = _share([row["log_ratio"] is not None for row in scored], [1.0] * len(scored))
    answer["n_rows"] = len(rows)
    answer["predicted_rows"] = sum(row["predicted"] is not None for row in rows)
    answer["assumed_rows"] = sum(bool(row["assumed"]) for row in scored if row["predicted"] is not None)
    maxima = [row for row in rows if row["value_kind"] == "up_to" and row["log_ratio"] is not None]
    answer["maxima"] = len(maxima)
    answer["maxima_respected"] = _share(
        [row["log_ratio"] <= math.log(CLOSE) for row in maxima], [1.0] * len(maxima)
    )
    names = sorted({row["technique"] for row in scored if row["log_ratio"] is not None})
    answer["by_technique"] = {
        name: _measures([row for row in scored if row["technique"] == name and row["log_ratio"] is not None])
        for name in names
    }
    return answer


def _measures(rows: Sequence[Json]) -> Json:
    """median_factor, within_1_25x and direction weighted by technique; rank correlation over all rows."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["technique"]] = counts.get(row["technique"], 0) + 1
    weights = [1.0 / counts[row["technique"]] for row in rows]
    factors = [math.exp(abs(row["log_ratio"])) for row in rows]
    return {
        "n": len(rows),
        "techniques": len(counts),
        "median_factor": weighted_median(factors, weights),
        "within_1_25x": _share([factor <= CLOSE for factor in factors], weights),
        "direction_accuracy": _share(
            [same_direction(row["predicted"], row["reported"]) for row in rows], weights
        ),
        "spearman": spearman([row["predicted"] for row in rows], [row["reported"] for row in rows]),
        "bias": math.exp(
            sum(w * row["log_ratio"] for w, row in zip(weights, rows, strict=True)) / sum(weights)
        )
        if rows
        else None,
    }


def _share(hits: Sequence[bool], weights: Sequence[float]) -> float | None:
    total = sum(weights)
    return sum(w for hit, w in zip(hits, weights, strict=True) if hit) / total if total else None


def weighted_median(values: Sequence[float], weights: Sequence[float]) -> float | None:
    """The value at half of the weight.

    >>> weighted_median([1.0, 2.0, 9.0], [1.0, 1.0, 1.0])
    2.0
    """
    if not values:
        return None
    half, so_far = sum(weights) / 2, 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        so_far += weight
        if so_far >= half:
            return value
    return max(values)


def direction(gain: float) -> int:
    """1 helps, −1 hurts, 0 within 5 % of no change."""
    return 0 if abs(gain - 1) <= NEUTRAL else 1 if gain > 1 else -1


def same_direction(predicted: float, reported: float) -> bool:
    """Both help, both hurt or both neutral; figures within 5 % of each other agree across the border."""
    return direction(predicted) == direction(reported) or abs(math.log(predicted / reported)) <= NEUTRAL


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation, ties at their mean rank.

    >>> spearman([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    if len(a) < 3:
        return None
    x, y = ranks(a), ranks(b)
    if x.std() == 0 or y.std() == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def ranks(values: Sequence[float]) -> Any:
    """Ranks from 1, ties at their mean."""
    array = np.asarray(values, dtype=float)
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts - 1) / 2)[inverse]
