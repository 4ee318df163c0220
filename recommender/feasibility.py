"""When the baseline does not fit: the smallest changes that make it fit, priced, cheapest first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from costmodel.efficiency import rates_for
from costmodel.layout import layout_of
from costmodel.memory import Memory, memory
from costmodel.specs import Deployment
from recommender import text
from recommender.answer import Json
from recommender.effects import Fields, deployments
from recommender.for_model import native_format
from recommender.pricing import Priced, as_list, price
from recommender.situation import Situation

# Width of the weights → (format that stands for it, what a person calls it, techniques that give it).
WEIGHT_STEPS: tuple[tuple[str, str, str], ...] = (
    ("int8", "8-bit weights", "none"),
    ("w4a16-awq-g128", "4-bit weights", "calibration"),
    ("gptq-3bit-g128", "3-bit weights", "calibration"),
    ("aqlm-2bit-1x16", "2-bit weights", "calibration"),
)
KV_STEP = ("fp8", "8-bit KV cache")
DEVICE_STEPS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64)
HOST_MARGIN = 1.01
PUBLISHED = 0.1  # the publisher's own narrow format is a smaller change than any other
HOST_OVERLAP = 0.5  # share of the transfer that copying the next layer early hides, at best
MAX_SHOWN = 12


@dataclass(slots=True)
class Change:
    """One candidate way to make the model fit. Dozens are made for an answer: `frozen` costs three times as much."""

    words: tuple[str, ...]
    fields: Fields
    devices: int
    batch: int
    input_tokens: int
    weights: float = 0.0  # step of WEIGHT_STEPS, 0: as they are, PUBLISHED: as their publisher ships them
    cache: int = 0  # 1: KV cache in 8 bits
    host_share: float = 0.0
    kept: float = 1.0  # share of the asked sequences or prompt tokens that is left

    @property
    def order(self) -> tuple[Any, ...]:
        """Cheapest first: no new device before new ones; a small loss of quality or load before a large one.

        Half the load counts as much as one step of the weights' width, an 8-bit cache as half of one. What moves
        weights to the host costs nothing to buy and everything to use, so it comes last.
        """
        size = self.weights + 0.5 * self.cache + (1.0 / self.kept - 1.0)
        return (self.host_share > 0, self.devices, size, self.host_share)

    @property
    def is_lossy(self) -> bool:
        return self.weights >= 1 or self.cache > 0

    def beats(self, other: Change) -> bool:
        """Whether it asks for no more than the other in any respect."""
        return (
            self.devices <= other.devices
            and self.weights <= other.weights
            and self.cache <= other.cache
            and (self.host_share > 0) <= (other.host_share > 0)
            and self.batch >= other.batch
            and self.input_tokens >= other.input_tokens
        )


def baseline_memory(situation: Situation) -> Memory:
    """Bytes of the baseline; where requests come at a rate, times decide how many there are."""
    if situation.question.request_rate is not None:
        found: Memory = price(situation, [{}]).estimate.memory
        return found
    return memory_of_fields(situation, [{}])


class WeightStep(NamedTuple):
    """A width of the weights."""

    size: float  # as in `Change.weights`
    fields: Fields
    words: str


class CacheStep(NamedTuple):
    """A width of the KV cache."""

    size: int  # as in `Change.cache`
    fields: Fields
    words: str


def ways(situation: Situation, baseline: Memory) -> list[Change]:
    """What might make it fit.

    Formats on the devices at hand, more devices, weights in host memory, a smaller batch, a shorter prompt.
    """
    weights, cache = weight_steps(situation), cache_steps(situation)
    counts = device_counts(situation.question.devices)
    found = None
    if situation.question.request_rate is None:
        found = memory_of_steps(situation, weights, cache, counts)
    changes = candidates(situation, weights, cache, counts, found)
    changes += smaller_loads(situation, float(baseline.max_batch))
    return changes + moved_to_host(situation, weights, found)


def memory_of_steps(
    situation: Situation, weights: Sequence[WeightStep], cache: Sequence[CacheStep], counts: Sequence[int]
) -> Memory:
    """Bytes of every width of the weights × width of the cache × number of devices, a full batch in flight."""
    base = situation.base
    degrees: Fields = {}
    for name in ("tensor_parallel", "pipeline_parallel"):
        if base.get(name) is not None:  # of the devices at hand
            degrees[name] = np.array([float(base[name])] + [math.nan] * (len(counts) - 1))
    deployment = Deployment(
        **{
            **base,
            **degrees,
            "weight_format": np.array([{**base, **step.fields}["weight_format"] for step in weights])[
                :, None, None
            ],
            "kv_format": np.array([{**base, **step.fields}["kv_format"] for step in cache])[:, None],
            "devices": np.array(counts, dtype=float),
        }
    )
    return memory_of(situation, deployment)


def explore(situation: Situation, baseline: Priced, changes: Sequence[Change], priced: Priced) -> Json:
    """The ways to make it fit, all priced, and what lacks until then."""
    total, available = baseline.at("total_bytes", 0), baseline.at("available_bytes", 0)
    fitting = sorted(
        (i for i, fits in enumerate(priced.listed("fits")) if fits), key=lambda i: (changes[i].order, i)
    )
    shown: list[int] = []
    for i in fitting:
        if situation.question.lossless and changes[i].is_lossy:
            continue
        if not any(changes[k].beats(changes[i]) for k in shown):
            shown.append(i)
    return {
        "fits": False,
        "needed_bytes": total,
        "available_bytes": available,
        "lacking_bytes": total - available,
        "min_devices": whole(baseline.at("min_devices", 0)),
        "changes": [entry(situation, changes[i], priced, i) for i in shown[:MAX_SHOWN]],
        "formats": formats_table(situation, changes, priced),
    }


def whole(value: float) -> int | None:
    """A number of devices, None where no number would do."""
    return int(value) if math.isfinite(value) and value < 1e6 else None


def weight_steps(situation: Situation) -> list[WeightStep]:
    """The weights as they are, as their publisher ships them, and in fewer bits."""
    bits = weight_bits(situation.base["weight_format"])
    steps = [WeightStep(0, {}, "")]
    native = native_format(situation.model)
    if native is not None and native.bits_per_weight < bits:
        own: Fields = {"weight_format": native.slug, "weight_kernel": "tuned"}
        steps.append(WeightStep(PUBLISHED, own, published_words(native.slug)))
    for number, (fmt, words, _) in enumerate(WEIGHT_STEPS, start=1):
        if weight_bits(fmt) < bits:
            fields = {"weight_format": fmt, "weight_kernel": kernel_of(fmt)}
            steps.append(WeightStep(number, fields, words))
    return steps


def cache_steps(situation: Situation) -> list[CacheStep]:
    """The cache as it is, and in 8 bits."""
    steps = [CacheStep(0, {}, "")]
    if weight_bits(situation.base["kv_format"], "kv") > 8:
        steps.append(CacheStep(1, {"kv_format": KV_STEP[0]}, KV_STEP[1]))
    return steps


def candidates(
    situation: Situation,
    weights: Sequence[WeightStep],
    cache: Sequence[CacheStep],
    counts: Sequence[int],
    found: Memory | None,
) -> list[Change]:
    """Widths of the weights × of the cache on the devices at hand, and on the fewest more that hold them.

    Where bytes are not known beforehand (`found`), on every larger number of devices.
    """
    question = situation.question
    shape = (len(weights), len(cache), len(counts))
    fits = np.broadcast_to(found.fits, shape).tolist() if found is not None else None
    changes = []
    for number, devices in enumerate(counts):
        more: Fields = {}
        told: list[str] = []
        if devices > question.devices:
            more = {"devices": devices, "tensor_parallel": None, "pipeline_parallel": None}
            told = [f"{devices} x {text.device(situation.hardware.name)}"]
        for row, step in enumerate(weights):
            for column, kept in enumerate(cache):
                held = fits[row][column] if fits else None
                if more and held and (not held[number] or True in held[:number]):
                    continue
                said = (*(word for word in (step.words, kept.words) if word), *told)
                if said:
                    fields = {**step.fields, **kept.fields, **more}
                    changes.append(
                        Change(
                            said, fields, devices, question.batch, question.input_tokens, step.size, kept.size
                        )
                    )
    return changes


def smaller_loads(situation: Situation, largest: float) -> list[Change]:
    """A smaller batch, the `largest` that fits among others, and shorter prompts."""
    question, batch, prompt = situation.question, situation.question.batch, situation.question.input_tokens
    found = []
    exact = [int(largest)] if 1 <= largest < batch else []
    for fewer in [*exact, *smaller(batch)]:
        words = f"batch {fewer:,} instead of {batch:,}"
        found.append(Change((words,), {}, question.devices, fewer, prompt, kept=fewer / batch))
    for tokens in smaller(prompt, least=64):
        words = f"prompts of {tokens:,} tokens instead of {prompt:,}"
        found.append(Change((words,), {}, question.devices, batch, tokens, kept=tokens / prompt))
    return found


def published_words(slug: str) -> str:
    return f"the published {slug} weights"


def smaller(value: int, least: int = 1) -> list[int]:
    """Nine tenths, eight tenths … half of a number in two digits, then halves; largest first."""
    found = [round_down(value * tenths / 10) for tenths in (9, 8, 7, 6, 5)]
    half = found[-1]
    while half // 2 >= least:
        half //= 2
        found.append(half)
    return [each for each in dict.fromkeys(found) if least <= each < value]


def round_down(value: float) -> int:
    """Two significant digits: 1843.2 → 1800."""
    unit = 10 ** max(0, len(str(int(value))) - 2)
    return int(value // unit * unit)


def device_counts(given: int) -> list[int]:
    """The devices at hand, and the usual larger numbers."""
    return [given, *(count for count in DEVICE_STEPS if given < count <= max(64, 4 * given))]


def weight_bits(fmt: Any, use: str = "weights") -> float:
    from costmodel.formats import lookup

    return float(
        lookup(str(fmt), "bits_per_weight", use, "weight_format" if use == "weights" else "kv_format")
    )


def kernel_of(fmt: str) -> str:
    return "lut" if fmt.startswith(("aqlm", "quip", "qtip")) else "tuned"


def moved_to_host(
    situation: Situation, weights: Sequence[WeightStep], found: Memory | None
) -> list[Change]:  # fmt: skip
    """Per weight format on the devices at hand, the same with the least share of weights in host memory.

    `found`: bytes by width of the weights, of the cache and number of devices, where they are known.
    """
    if not situation.hardware.host_bytes_per_s:
        return []
    question = situation.question
    if found is None:
        priced: Memory = price(situation, [step.fields for step in weights]).estimate.memory
        columns = [priced.total_bytes, priced.available_bytes, priced.weights_bytes]
    else:
        columns = [
            column[:, 0, 0]
            for column in np.broadcast_arrays(found.total_bytes, found.available_bytes, found.weights_bytes)
        ]
    added = []
    for step, total, available, stored in zip(
        weights, *(as_list(column, len(weights)) for column in columns), strict=True
    ):
        if total <= available:
            continue
        share = (total - available) * HOST_MARGIN / stored if stored > 0 else 2.0
        if share >= 1:
            continue
        moved = {**step.fields, "host_weight_share": share, "offload_overlap": HOST_OVERLAP}
        words = f"{text.bytes_(share * stored)} of weights in host memory"
        added.append(
            Change(
                (step.words, words) if step.words else (words,),
                moved,
                question.devices,
                question.batch,
                question.input_tokens,
                step.size,
                host_share=share,
            )
        )
    return added


def memory_of_fields(situation: Situation, changes: Sequence[Fields]) -> Memory:
    """Bytes of changes that keep the load, a full batch in flight."""
    return memory_of(situation, deployments(situation.base, changes))


def memory_of(situation: Situation, deployment: Deployment) -> Memory:
    """Bytes of one or many deployments under the load that is asked for."""
    hardware, engine = situation.hardware, situation.engine
    layout = layout_of(hardware, deployment, engine, rates_for(hardware, engine))
    return memory(situation.model, hardware, situation.workload, deployment, engine, layout)


def entry(situation: Situation, change: Change, priced: Priced, i: int) -> Json:
    """One way to make it fit, with its price."""
    hardware = situation.hardware
    price_usd = (
        None
        if hardware.price_usd is None
        else hardware.price_usd * (change.devices - situation.question.devices)
    )
    total, available = priced.at("total_bytes", i), priced.at("available_bytes", i)
    return {
        "change": ", ".join(change.words),
        "deployment": {name: value for name, value in change.fields.items() if value is not None},
        "devices": change.devices,
        "batch": change.batch,
        "input_tokens": change.input_tokens,
        "fits": bool(priced.fits[i]),
        "total_bytes": total,
        "available_bytes": available,
        "spare_bytes": available - total,
        "ttft_ms": priced.at("ttft_s", i) * 1e3,
        "tpot_ms": priced.at("tpot_s", i) * 1e3,
        "e2e_ms": priced.at("e2e_s", i) * 1e3,
        "throughput_tok_s": priced.at("throughput_tok_s", i),
        "added_price_usd": price_usd,
        "caveat": caveat(change, priced, i, situation.question.devices),
    }


def caveat(change: Change, priced: Priced, i: int, given: int) -> str:
    """The one thing to know before choosing it."""
    if change.host_share:
        return f"every token waits for the host link: {text.seconds(priced.at('tpot_s', i))} per token"
    if change.weights >= 3:
        return "quality falls noticeably; check on your task"
    if change.weights >= 1 or change.cache:
        return "small loss of quality"
    if change.weights:
        return "as published, so no loss"
    least = whole(priced.at("min_devices", i))
    if least is not None and least < change.devices and change.kept == 1.0 and change.devices > given:
        return f"{least} would hold it, but a model is not split evenly over {least}"
    return ""


def formats_table(situation: Situation, changes: Sequence[Change], priced: Priced) -> list[Json]:
    """Per width of the weights: whether it fits on the devices at hand, and on how many it would."""
    rows = []
    steps: list[tuple[float, tuple[str, str, str]]] = list(enumerate(WEIGHT_STEPS, start=1))
    native = native_format(situation.model)
    if native is not None:
        steps.insert(0, (PUBLISHED, (native.slug, published_words(native.slug), "none")))
    for step, (fmt, words, training) in steps:
        i = next(
            (
                k
                for k, change in enumerate(changes)
                if change.weights == step
                and change.devices == situation.question.devices
                and change.words == (words,)
            ),
            None,
        )
        if i is None:
            continue
        total, available = priced.at("total_bytes", i), priced.at("available_bytes", i)
        rows.append(
            {
                "weights": words,
                "format": fmt,
                "training": training,
                "total_bytes": total,
                "available_bytes": available,
                "fits": bool(priced.fits[i]),
                "lacking_bytes": max(0.0, total - available),
                "min_devices": whole(priced.at("min_devices", i)),
                "tpot_ms": priced.at("tpot_s", i) * 1e3,
            }
        )
    return rows


def shortest_ways(found: Mapping[str, Any], situation: Situation) -> str:
    """The first change that makes it fit on the devices at hand, and the next one that is as small; else more devices."""
    changes = found["changes"]
    at_hand = [way for way in changes if way["devices"] == situation.question.devices]
    own = [way for way in at_hand if "host_weight_share" not in way["deployment"]]
    ways = own or [way for way in changes if way not in at_hand] or at_hand
    said = [way["change"] for way in ways[:1]]
    said += [
        way["change"]
        for way in ways[1:2]
        if own and not way["caveat"].startswith("quality") and is_near(way, situation)
    ]
    native = native_format(situation.model)
    if native is not None and said and said[0] == published_words(native.slug):
        said = [f"{said[0]} (--weights {native.slug})"]
    return " or ".join(said)


def is_near(way: Mapping[str, Any], situation: Situation) -> bool:
    """Whether at least half of the asked load is left."""
    question = situation.question
    return 2 * way["batch"] >= question.batch and 2 * way["input_tokens"] >= question.input_tokens


def sentence(found: Mapping[str, Any], situation: Situation) -> str:
    """What lacks, in bytes, in one sentence."""
    return (
        f"needs {text.bytes_(found['needed_bytes'])}, {situation.devices_text} "
        f"{'holds' if situation.question.devices == 1 else 'hold'} {text.bytes_(found['available_bytes'])}: "
        f"{text.bytes_(found['lacking_bytes'])} too many."
    )
