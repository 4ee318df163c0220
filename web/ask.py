"""Scenarios out of query strings and bodies: one reading for pages and API, and a guard against file names."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from costmodel.catalogue import all_engines, all_hardware, all_models
from costmodel.errors import UnknownName
from costmodel.units import GB, GIB
from recommender.question import MAX_DEVICES, OBJECTIVES, TRAINING, Question
from web.errors import Contradiction
from web.formats import parameters
from web.own_device import fields as own_device_fields
from web.urls import Pairs, pairs_of

DEFAULTS: dict[str, Any] = {
    name: getattr(Question(hardware="", model=""), name)
    for name in Question.__dataclass_fields__
    if name not in ("hardware", "model")
}
FIELDS = ("hardware", "model", *DEFAULTS)
SCENARIO_FIELDS = FIELDS[: FIELDS.index("objective")]
LISTS = ("using",)
EXAMPLE = {"hardware": "rtx-3090", "model": "llama-2-70b"}

OBJECTIVE_NAMES = {
    "latency": "fastest complete reply",
    "tpot": "fastest tokens",
    "ttft": "fastest first token",
    "throughput": "most tokens per second",
    "memory": "least memory",
    "cost": "lowest cost per token",
}
TRAINING_NAMES = {
    "none": "none at all",
    "calibration": "calibration (minutes)",
    "finetune": "fine-tuning",
    "pretrain": "pre-training",
}
FLAGS = {
    "hardware": "--hw",
    "weight_format": "--weights",
    "kv_format": "--kv",
    "activation_format": "--activations",
    "tensor_parallel": "--tp",
    "pipeline_parallel": "--pp",
    "expert_parallel": "--ep",
    "cache_hit_rate": "--cache-hit",
    "acceptance_rate": "--acceptance",
}


def check_names(values: Mapping[str, Any]) -> None:
    """The command line reads models and devices from files; whoever asks over HTTP must not make us read any."""
    for name, suffix in (("model", ".json"), ("hardware", ".toml")):
        for text in str(values.get(name) or "").split("+"):
            if text.strip().lower().endswith((suffix, ".json", ".toml")) or looks_like_path(text.strip()):
                raise UnknownName(
                    name, text[:80], [], hint="a file works on the command line only; here give a name"
                )


def whole_numbers(value: Any) -> list[int]:
    """One number or a sweep's list of them; absent is 1."""
    return [int(each or 1) for each in (value if isinstance(value, list) else [value])]


def looks_like_path(text: str) -> bool:
    if text.startswith(("/", "./", "../", "~", "\\")):
        return True
    try:
        return "/" in text and Path(text).exists()
    except (OSError, ValueError):
        return True


def question_of(values: Mapping[str, Any]) -> Question:
    """A checked question; empty fields count as absent."""
    given = {name: value for name, value in values.items() if value not in (None, "")}
    check_names(given)
    check_layout(given)
    return Question.from_mapping(given)


def check_layout(given: Mapping[str, Any]) -> None:
    """More ranks than devices: each field is fine, together they are not; over HTTP that is a conflict (409)."""
    try:
        devices = min(whole_numbers(given.get("devices")))
        ranks = {
            name: max(whole_numbers(given.get(name)))
            for name in ("tensor_parallel", "pipeline_parallel", "expert_parallel")
        }
    except (TypeError, ValueError, OverflowError):
        return  # Question names the field at fault
    product = ranks["tensor_parallel"] * ranks["pipeline_parallel"]
    name = max(ranks, key=lambda each: ranks[each])
    if (
        1 <= devices < max(product, *ranks.values())
        and min(ranks.values()) >= 1
        and max(ranks.values()) <= MAX_DEVICES
    ):
        raise Contradiction(
            f"{max(product, *ranks.values())} ranks need as many devices, {devices} given",
            hint=f"raise devices or lower {name}",
            field=name,
        )


def state_pairs(question: Question) -> Pairs:
    """The question as a query string without defaults, lists as one comma-separated value."""
    values = question.scenario()
    for name in LISTS:
        values[name] = ",".join(values.get(name) or ())
    return pairs_of({name: values[name] for name in FIELDS}, {**DEFAULTS, "using": ""})


def command_line(question: Question, command: str = "kb recommend") -> str:
    """The equal command; switches stand alone."""
    words = [command]
    for name, value in state_pairs(question):
        flag = FLAGS.get(name, "--" + name.replace("_", "-"))
        if name == "stack":
            continue
        words.append(flag if value == "1" and DEFAULTS.get(name) is False else f"{flag} {shlex.quote(value)}")
    return " ".join(words)


@lru_cache(maxsize=1)
def hardware_options() -> tuple[tuple[str, str], ...]:
    """(slug, what a reader recognises it by) of every device."""
    return tuple(
        (
            slug,
            f"{device.name} · {device.memory_bytes / GIB:.0f} GiB · {device.bandwidth_bytes_per_s / GB:,.0f} GB/s",
        )
        for slug, device in sorted(all_hardware().items())
    )


@lru_cache(maxsize=1)
def model_options() -> tuple[tuple[str, str], ...]:
    return tuple(
        (slug, f"{model.name} · {parameters(model.total_params)} parameters")
        for slug, model in sorted(all_models().items())
    )


@lru_cache(maxsize=1)
def engine_options() -> tuple[tuple[str, str], ...]:
    return tuple((slug, engine.name) for slug, engine in all_engines().items())


def form_context(values: Mapping[str, Any], error_field: str | None = None) -> dict[str, Any]:
    """What the form template needs: filled values, options, the field at fault."""
    filled = {name: values.get(name, DEFAULTS.get(name)) for name in FIELDS}
    using = filled.get("using") or ""
    filled["using"] = using if isinstance(using, str) else ",".join(using)
    return {
        "ask": {name: "" if value is None else value for name, value in filled.items()},
        "ask_defaults": DEFAULTS,
        "error_field": error_field,
        **own_device_fields(filled["hardware"]),
        "hardware_options": hardware_options(),
        "model_options": model_options(),
        "engine_options": engine_options(),
        "objectives": [(each, OBJECTIVE_NAMES.get(each, each)) for each in OBJECTIVES],
        "trainings": [(each, TRAINING_NAMES.get(each, each)) for each in TRAINING],
        "more_open": any(
            filled[name] not in (DEFAULTS[name], "", None, ())
            for name in DEFAULTS
            if name
            not in (
                "batch",
                "input_tokens",
                "output_tokens",
                "objective",
                "devices",
                "using",
                "why_not",
                "top",
                "stack",
            )
        )
        or bool(filled["using"]),
    }
