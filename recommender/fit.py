"""The question turned round: which devices, how many and with which formats reach a target, cheapest first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recommender.answer import Json, plain
from recommender.effects import Fields
from recommender.engines import runs_on, usual_engine
from recommender.errors import InvalidQuestion
from recommender.feasibility import kernel_of
from recommender.knowledge import Knowledge
from recommender.pricing import Priced, price
from recommender.question import Question
from recommender.situation import Situation, resolve

DEVICE_COUNTS = (1, 2, 4, 8, 16, 32)
# Boards without a fabric between hosts stay in one host, which has slots for about eight of them.
ONE_HOST = 8
ONE_HOST_CLASSES = ("consumer", "workstation")
MAX_OPTIONS = 60

# What may be changed to reach the target: (words, techniques, fields, matrix format that the device must have,
# loss). Smaller losses first: among equal prices the first that reaches the target is shown.
FORMATS: tuple[tuple[str, tuple[str, ...], Fields, str, int], ...] = (
    ("16-bit weights", (), {}, "", 0),
    (
        "FP8 weights and activations",
        ("fp8-w8a8",),
        {"weight_format": "fp8", "activation_format": "fp8"},
        "fp8",
        1,
    ),
    ("8-bit weights", ("int8-weight-only",), {"weight_format": "int8"}, "", 1),
    ("4-bit weights", ("awq",), {"weight_format": "w4a16-awq-g128"}, "", 2),
    ("2-bit weights", ("aqlm",), {"weight_format": "aqlm-2bit-1x16"}, "", 3),
)


def fit(given: Mapping[str, Any], knowledge: Knowledge | None = None, *, top: int = MAX_OPTIONS) -> Json:
    """Devices and formats that hold the model at the asked batch and keep the latency targets, cheapest first.

    Without `hardware` the whole catalogue is searched; with it, that device alone. Without `engine` every device
    gets the usual serving software of its kind.
    """
    asked = dict(given)
    anywhere = not asked.get("hardware")
    named = asked.get("engine")
    question = Question.from_mapping({**asked, "hardware": asked.get("hardware") or "h100-sxm"})
    known = knowledge or Knowledge(techniques={})
    situation = resolve(question, known, any_engine=anywhere)
    from costmodel.catalogue import all_engines, all_hardware

    devices = list(all_hardware().values()) if anywhere else [situation.hardware]
    options: list[Json] = []
    nearest: Json | None = None
    for hardware in devices:
        engine = situation.engine if named else usual_engine(hardware, all_engines())
        if not runs_on(engine, hardware):
            continue
        for option in options_on(replace(situation, hardware=hardware, engine=engine), question):
            if option["reaches"]:
                options.append(option)
            elif option["fits"] and (nearest is None or option["miss"] < nearest["miss"]):
                nearest = option
    options.sort(key=order)
    shown: list[Json] = []
    for option in options:
        if not any(
            other["hardware"] == option["hardware"] and other["devices"] <= option["devices"]
            for other in shown
        ):
            shown.append(option)
    return plain(
        {
            "scenario": {**question.scenario(), "hardware": asked.get("hardware")},
            "resolved": {"model": situation.resolved["model"]},
            "targets": {
                "ttft_ms": question.ttft_slo_ms,
                "tpot_ms": question.tpot_slo_ms,
                "batch": question.batch,
            },
            "options": shown[:top],
            "found": len(options),
            "nearest": nearest if not options else None,
            "notes": [
                "Prices are list or street prices of the devices alone, without hosts.",
                *situation.notes,
            ],
        }
    )


def options_on(situation: Situation, question: Question) -> Iterator[Json]:
    """Every count and format on one device, priced in one call."""
    hardware = situation.hardware
    base = {**situation.base, **{k: v for k, v in situation.engine.defaults.items() if k in situation.base}}
    for name in ("weight_format", "kv_format", "activation_format"):
        base[name] = getattr(question, name)
    situation = replace(situation, base=base)
    candidates, facts = [], []
    for count in DEVICE_COUNTS:
        if count > 1 and hardware.device_class in ("cpu", "apple", "edge", "apu"):
            continue
        if count > ONE_HOST and hardware.device_class in ONE_HOST_CLASSES:
            continue
        for words, techniques, fields, path, loss in FORMATS:
            if path and not hardware.flops.get(path):
                continue
            kernel = (
                {"weight_kernel": kernel_of(fields["weight_format"])} if "weight_format" in fields else {}
            )
            candidates.append(
                {**fields, **kernel, "devices": count, "tensor_parallel": None, "pipeline_parallel": None}
            )
            facts.append((count, words, techniques, loss))
    priced = price(situation, candidates)
    for i, (count, words, techniques, loss) in enumerate(facts):
        yield option(situation, question, priced, i, count, words, techniques, loss)


def option(
    situation: Situation,
    question: Question,
    priced: Priced,
    i: int,
    count: int,
    words: str,
    techniques: tuple[str, ...],
    loss: int,
) -> Json:
    """One way, with how far it is from the target (`miss` 1 or less reaches it)."""
    hardware = situation.hardware
    ttft, tpot = priced.at("ttft_s", i) * 1e3, priced.at("tpot_s", i) * 1e3
    miss = max(
        ttft / question.ttft_slo_ms if question.ttft_slo_ms else 0.0,
        tpot / question.tpot_slo_ms if question.tpot_slo_ms else 0.0,
    )
    fits = bool(priced.fits[i])
    return {
        "hardware": hardware.slug,
        "name": hardware.name,
        "devices": count,
        "engine": situation.engine.slug,
        "weights": words,
        "techniques": list(techniques),
        "quality_step": loss,
        "fits": fits,
        "reaches": fits and miss <= 1.0 and math.isfinite(tpot),
        "miss": miss,
        "sure": surely_reaches(question, priced, i),
        "ttft_ms": ttft,
        "tpot_ms": tpot,
        "tpot_interval_ms": interval_ms(priced, i),
        "throughput_tok_s": priced.at("throughput_tok_s", i),
        "max_batch": min(priced.at("max_batch", i), 2.0**53),
        "total_bytes": priced.at("total_bytes", i),
        "available_bytes": priced.at("available_bytes", i),
        "price_usd": None if hardware.price_usd is None else hardware.price_usd * count,
        "cost_per_million_tokens_usd": priced.at("cost_per_million_tokens_usd", i),
        "power_w": None if hardware.tdp_w is None else hardware.tdp_w * count,
    }


def surely_reaches(question: Question, priced: Priced, i: int) -> bool:
    """Whether the upper ends of the 80 % intervals keep the targets too, not only the estimates."""
    for target, field in (
        (question.tpot_slo_ms, "tpot_interval_s"),
        (question.ttft_slo_ms, "ttft_interval_s"),
    ):
        bounds = interval_ms(priced, i, field)
        if target is not None and (bounds is None or bounds[1] > target):
            return False
    return True


def interval_ms(priced: Priced, i: int, field: str = "tpot_interval_s") -> list[float] | None:
    """The 80 % interval of a time, by default that per token."""
    found = getattr(priced.estimate, field)
    if found is None:
        return None
    return [float(np.broadcast_to(np.asarray(bound, dtype=float), priced.count)[i]) * 1e3 for bound in found]


def order(option: Json) -> tuple[Any, ...]:
    """Cheapest first; what has no price comes last; then fewer devices, less loss."""
    known = option["price_usd"] is not None
    return (
        not known,
        option["price_usd"] if known else 0.0,
        option["devices"],
        option["quality_step"],
        option["tpot_ms"],
        option["hardware"],
    )


def check_targets(question: Question) -> None:
    """A target makes the search meaningful."""
    if question.ttft_slo_ms is None and question.tpot_slo_ms is None:
        raise InvalidQuestion(
            "no target is given", hint="give --tpot-slo-ms, --ttft-slo-ms or both", field="tpot_slo_ms"
        )
