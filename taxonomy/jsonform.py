"""Technique ↔ JSON, for the knowledge base's JSON column and the REST interface.

Fields at their default are left out (but for kind, phase, training and lossless), so a row is small; reading fills
them in again. Reading trusts the text, which the loader has validated, and is therefore fast enough to run over the
whole catalogue at every question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from enum import StrEnum
from functools import lru_cache
from typing import Any

from taxonomy.model import (
    Checkpoint,
    Effect,
    EngineSupport,
    Kind,
    Knob,
    Lossless,
    Observation,
    Phase,
    Requirement,
    Technique,
    Training,
    WorkRef,
)

_PARTS: dict[str, Any] = {
    "effects": Effect,
    "knobs": Knob,
    "engines": EngineSupport,
    "works": WorkRef,
    "checkpoints": Checkpoint,
    "observations": Observation,
}
_ENUMS: dict[str, type[StrEnum]] = {"kind": Kind, "phase": Phase, "training": Training, "lossless": Lossless}
_TUPLES = frozenset({"bottlenecks", "aliases"})


@lru_cache(maxsize=16)
def _defaults(cls: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (f.name, f.default_factory() if f.default_factory is not MISSING else f.default) for f in fields(cls)
    )


def _plain(item: Any) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    kind: Any = type(item)
    for name, default in _defaults(kind):
        value = getattr(item, name)
        if isinstance(value, StrEnum):  # readers expect phase, training … to be there
            kept[name] = value.value
            continue
        if default is not MISSING and value == default:
            continue
        if isinstance(value, Requirement):
            value = _plain(value)
        elif isinstance(value, tuple):
            value = [_plain(part) if hasattr(part, "__dataclass_fields__") else part for part in value]
        elif isinstance(value, dict):
            value = {key: list(part) if isinstance(part, tuple) else part for key, part in value.items()}
        kept[name] = value
    return kept


def technique_to_json(technique: Technique) -> dict[str, Any]:
    """Plain dictionaries, lists, strings and numbers; defaults left out."""
    return _plain(technique)


def _part(cls: Any, row: Mapping[str, Any]) -> Any:
    return cls(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})


def technique_from_json(row: Mapping[str, Any]) -> Technique:
    """The Technique that `technique_to_json` wrote."""
    values: dict[str, Any] = {}
    for name, value in row.items():
        if name in _PARTS:
            value = tuple([_part(_PARTS[name], part) for part in value])
        elif name in _ENUMS:
            value = _ENUMS[name](value)
        elif name == "requires":
            value = _part(Requirement, value)
        elif name == "levels":
            value = {scheme: tuple(paths) for scheme, paths in value.items()}
        elif name in _TUPLES:
            value = tuple(value)
        values[name] = value
    return Technique(**values)
