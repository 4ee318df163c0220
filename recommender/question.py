"""What is asked: one scenario and the wishes of the person who asks, checked field by field."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from recommender.errors import InvalidQuestion
from taxonomy.model import BOTTLENECKS

OBJECTIVES = ("latency", "tpot", "ttft", "throughput", "memory", "cost")
TRAINING = ("none", "calibration", "finetune", "pretrain")

# Largest values that still mean something; beyond them a number is a slip of the keyboard, and the arithmetic
# would only return another absurd number.
MAX_DEVICES = 16_384
MAX_BATCH = 1_048_576
MAX_TOKENS = 100_000_000
MAX_RATE = 1e9


@dataclass(frozen=True, kw_only=True)
class Question:
    """One scenario (shared by every command) plus what only `recommend` asks. Names as in the interface."""

    hardware: str
    model: str
    devices: int = 1
    batch: int = 1
    input_tokens: int = 1024
    output_tokens: int = 512
    engine: str = "plain"
    using: tuple[str, ...] = ()
    weight_format: str = "fp16"
    kv_format: str = "fp16"
    activation_format: str = "fp16"
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    expert_parallel: int | None = None
    interconnect: str | None = None
    request_rate: float | None = None
    cache_hit_rate: float = 0.0
    acceptance_rate: float | None = None
    objective: str = "latency"
    lossless: bool = False
    max_training: str = "calibration"
    max_quality_loss: float | None = None
    ttft_slo_ms: float | None = None
    tpot_slo_ms: float | None = None
    level: str | None = None
    bottleneck: str | None = None
    why_not: bool = False
    top: int = 5
    stack: bool = True

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any]) -> Question:
        """Check a mapping (JSON body, query string, command line) and make a Question of it.

        Raises
        ------
        InvalidQuestion
            an unknown field, a wrong type or an impossible number; one line that says what is allowed.
        """
        if not isinstance(given, Mapping):
            raise InvalidQuestion(
                f"a scenario is an object of fields, not {type(given).__name__}",
                hint='for example {"hardware": "rtx-3090", "model": "70b"}',
            )
        values: dict[str, Any] = {}
        for raw_name, value in given.items():
            name = SPELLINGS.get(str(raw_name), str(raw_name))
            if name not in CHECKS:
                raise _unknown_field(str(raw_name))
            if name in values:
                raise InvalidQuestion(f"{name} is given twice", hint="give it once", field=name)
            checked = CHECKS[name](name, value)
            if checked is not None:
                values[name] = checked
        for required in ("hardware", "model"):
            if required not in values:
                raise InvalidQuestion(
                    f"{required} is missing",
                    hint="say which, for example hardware=rtx-3090 and model=llama-2-70b",
                    field=required,
                )
        question = cls(**values)
        _check_layout(question)
        return question

    def scenario(self) -> dict[str, Any]:
        """The fields as plain JSON values, in the interface's names."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        found["using"] = list(self.using)
        return found


# The command line and older forms spell some fields by their flag.
SPELLINGS = {
    "hw": "hardware",
    "weights": "weight_format",
    "kv": "kv_format",
    "activations": "activation_format",
    "tp": "tensor_parallel",
    "pp": "pipeline_parallel",
    "ep": "expert_parallel",
    "acceptance": "acceptance_rate",
    "cache_hit": "cache_hit_rate",
    "cache-hit": "cache_hit_rate",
}


def _unknown_field(name: str) -> InvalidQuestion:
    near = difflib.get_close_matches(name, CHECKS, n=3)
    hint = f"did you mean {', '.join(near)}? " if near else ""
    return InvalidQuestion(
        f"unknown field {name[:60]!r}", hint=f"{hint}allowed: {', '.join(sorted(CHECKS))}", field=name[:60]
    )


def _number(name: str, value: Any) -> float:
    """A finite float out of a number or the text of one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidQuestion(
            f"{name} must be a number, not {type(value).__name__}", hint="give one number", field=name
        )
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise InvalidQuestion(
            f"{name} must be a number, got {str(value)[:40]!r}", hint="give one number", field=name
        ) from None
    if not math.isfinite(number):
        raise InvalidQuestion(
            f"{name} must be finite, got {value}", hint="give an ordinary number", field=name
        )
    return number


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _integer(low: int, high: int) -> Any:
    def check(name: str, value: Any) -> int | None:
        if _blank(value):
            return None
        number = _number(name, value)
        if number != int(number):
            raise InvalidQuestion(
                f"{name} must be a whole number, got {str(value).strip()}",
                hint=f"{low} to {high:,} is allowed",
                field=name,
            )
        if not low <= number <= high:
            raise InvalidQuestion(
                f"{name} must lie between {low} and {high:,}, got {str(value).strip()}",
                hint=f"{low} to {high:,} is allowed",
                field=name,
            )
        return int(number)

    return check


def _real(low: float, high: float, *, open_low: bool = False, what: str = "") -> Any:
    said = f"{'above' if open_low else 'from'} {low:g} to {high:g}{' ' + what if what else ''}"

    def check(name: str, value: Any) -> float | None:
        if _blank(value):
            return None
        number = _number(name, value)
        if not low <= number <= high or (open_low and number == low):
            raise InvalidQuestion(
                f"{name} must be {said}, got {value}", hint=f"{said} is allowed", field=name
            )
        return number

    return check


def _boolean(name: str, value: Any) -> bool | None:
    if _blank(value):
        return None
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise InvalidQuestion(
        f"{name} must be true or false, got {str(value)[:40]!r}", hint="true or false", field=name
    )


def _text(name: str, value: Any) -> str | None:
    if _blank(value):
        return None
    if not isinstance(value, str):
        raise InvalidQuestion(
            f"{name} must be text, not {type(value).__name__}", hint="give a name in quotes", field=name
        )
    text = value.strip()
    if len(text) > 4096 or any(ord(character) < 32 for character in text):
        raise InvalidQuestion(
            f"{name} is longer than 4096 characters or holds control characters",
            hint="give a name",
            field=name,
        )
    return text


def _choice(allowed: tuple[str, ...]) -> Any:
    def check(name: str, value: Any) -> str | None:
        text = _text(name, value)
        if text is None:
            return None
        lowered = text.lower()
        if lowered not in allowed:
            raise InvalidQuestion(
                f"{name} must be one of {', '.join(allowed)}, got {text[:40]!r}",
                hint=f"allowed: {', '.join(allowed)}",
                field=name,
            )
        return lowered

    return check


def _names(name: str, value: Any) -> tuple[str, ...] | None:
    """Slugs: a list, or one text with commas."""
    if _blank(value):
        return None
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise InvalidQuestion(
            f"{name} must be a list of technique slugs, not {type(value).__name__}",
            hint='for example "awq,fp8-kv"',
            field=name,
        )
    found: list[str] = []
    for part in parts:
        text = _text(name, part)
        if text and text.lower() not in found:
            found.append(text.lower())
    if len(found) > 50:
        raise InvalidQuestion(f"{name} lists {len(found)} techniques", hint="at most 50", field=name)
    return tuple(found)


CHECKS: dict[str, Any] = {
    "hardware": _text,
    "model": _text,
    "devices": _integer(1, MAX_DEVICES),
    "batch": _integer(1, MAX_BATCH),
    "input_tokens": _integer(1, MAX_TOKENS),
    "output_tokens": _integer(1, MAX_TOKENS),
    "engine": _text,
    "using": _names,
    "weight_format": _text,
    "kv_format": _text,
    "activation_format": _text,
    "tensor_parallel": _integer(1, MAX_DEVICES),
    "pipeline_parallel": _integer(1, MAX_DEVICES),
    "expert_parallel": _integer(1, MAX_DEVICES),
    "interconnect": _text,
    "request_rate": _real(0.0, MAX_RATE, open_low=True, what="requests per second"),
    "cache_hit_rate": _real(0.0, 1.0),
    "acceptance_rate": _real(0.0, 1.0),
    "objective": _choice(OBJECTIVES),
    "lossless": _boolean,
    "max_training": _choice(TRAINING),
    "max_quality_loss": _real(0.0, 1000.0, what="points"),
    "ttft_slo_ms": _real(0.0, 1e9, open_low=True, what="ms"),
    "tpot_slo_ms": _real(0.0, 1e9, open_low=True, what="ms"),
    "level": _text,
    "bottleneck": _choice(BOTTLENECKS),
    "why_not": _boolean,
    "top": _integer(1, 1000),
    "stack": _boolean,
}


def _check_layout(question: Question) -> None:
    """Ranks that the devices on hand cannot hold."""
    for name in ("tensor_parallel", "pipeline_parallel", "expert_parallel"):
        degree = getattr(question, name)
        if degree is not None and degree > question.devices:
            raise InvalidQuestion(
                f"{name} {degree} needs {degree} devices, {question.devices} given",
                hint=f"raise devices or lower {name}",
                field=name,
            )
    product = (question.tensor_parallel or 1) * (question.pipeline_parallel or 1)
    if product > question.devices:
        raise InvalidQuestion(
            f"tensor_parallel x pipeline_parallel is {product}, {question.devices} devices given",
            hint="their product may not exceed devices",
            field="tensor_parallel",
        )
