"""JSON schema of a technique's file, for editors: `python -m taxonomy.schema` writes data/technique.schema.json."""

from __future__ import annotations

import json
import typing
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from taxonomy.check import EFFECT_BASES, REQUIREMENTS, ROLES
from taxonomy.model import BOTTLENECKS, OPERATIONS, SCHEMES, Technique

PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean"}
NOT_IN_FILES = ("slug", "observations")  # the file's name; observations.csv


def technique_schema() -> dict[str, Any]:
    """What `taxonomy.check` accepts, as far as JSON schema can say it."""
    schema = _object(Technique, skip=NOT_IN_FILES)
    found = schema["properties"]
    found["bottlenecks"]["items"] = {"enum": list(BOTTLENECKS)}
    found["effects"]["items"]["properties"]["op"] = {"enum": list(OPERATIONS)}
    found["effects"]["items"]["properties"]["basis"] = {"enum": list(EFFECT_BASES)}
    found["works"]["items"]["properties"]["role"] = {"enum": list(ROLES)}
    found["requires"]["properties"]["model"]["items"] = {"enum": list(REQUIREMENTS)}
    for name in ("levels", "level_basis"):
        found[name]["propertyNames"] = {"enum": list(SCHEMES)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A technique (taxonomy/data/techniques/<slug>.toml)",
        **schema,
    }


def _object(cls: Any, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    kept = [item for item in fields(cls) if item.name not in skip]
    needed = [item.name for item in kept if item.default is MISSING and item.default_factory is MISSING]
    found: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {item.name: _type(hints[item.name]) for item in kept},
    }
    return {**found, "required": needed} if needed else found


def _type(hint: Any) -> dict[str, Any]:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return {"type": "array", "items": _type(parts[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(parts[1])}
    if parts:
        kinds = [_type(part) for part in parts if part is not type(None)]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"enum": [member.value for member in hint]}
    return _object(hint) if is_dataclass(hint) else {"type": PLAIN[hint]}


def schema_text() -> str:
    return json.dumps(technique_schema(), indent=1) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "data" / "technique.schema.json").write_text(schema_text(), encoding="utf-8")
