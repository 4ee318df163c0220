"""From a parsed table to a dataclass, and what a technique must satisfy. Faults are collected, not raised singly."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

from taxonomy.effects import unknown_names
from taxonomy.errors import DataError
from taxonomy.model import (
    BOTTLENECKS,
    OPERATIONS,
    RELATIONS,
    SCHEMES,
    Kind,
    Relation,
    Technique,
)

T = TypeVar("T")

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
SENTENCE_END = re.compile(r"[.!?](?=\s+[A-Z0-9(]|$)")
EFFECT_BASES = ("vendor", "paper", "measured", "derived", "assumed")
ROLES = ("introduces", "evaluates", "surveys")
REQUIREMENTS = (
    "moe",
    "dense",
    "attention",
    "mha",
    "gqa",
    "sliding-window",
    "ssm",
    "relu",
    "mtp",
    "encoder-decoder",
)


@dataclass
class Faults:
    """Everything wrong with the data, for one report."""

    lines: list[str] = field(default_factory=list)

    def add(self, file: str, entry: str, name: str, what: str, allowed: Iterable[str] = ()) -> None:
        where = " · ".join(part for part in (file, entry, name) if part)
        hint = f"; allowed: {', '.join(allowed)}" if allowed else ""
        self.lines.append(f"{where}: {what}{hint}")

    def stop(self) -> None:
        """Raise one DataError that lists all faults, if there are any."""
        if self.lines:
            count = len(self.lines)
            raise DataError(
                f"{count} fault{'s' if count > 1 else ''} in taxonomy/data\n" + "\n".join(self.lines),
                hint="taxonomy/data/README.md describes every field",
            )


@lru_cache(maxsize=64)
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


@lru_cache(maxsize=64)
def _fields(cls: Any) -> dict[str, bool]:
    """Field name → whether it must be given."""
    return {f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(cls)}


def build(cls: type[T], table: Mapping[str, Any], file: str, entry: str, faults: Faults) -> T | None:
    """`table` as an object of dataclass `cls`; unknown, missing and mistyped fields become faults."""
    plain: Any = cls
    known = _fields(plain)
    before = len(faults.lines)
    for name in table:
        if name not in known:
            faults.add(file, entry, name, "is not a field", sorted(known))
    for name, needed in known.items():
        if needed and name not in table:
            faults.add(file, entry, name, "is missing")
    values = {
        name: _convert(_hints(plain)[name], value, file, f"{entry} {name}".strip(), faults)
        for name, value in table.items()
        if name in known
    }
    return None if len(faults.lines) > before else cls(**values)


def _convert(hint: Any, value: Any, file: str, entry: str, faults: Faults) -> Any:
    """`value` as `hint` wants it: enums from text, tuples from arrays, nested tables as dataclasses."""
    origin = typing.get_origin(hint)
    if origin is tuple:
        if not isinstance(value, list):
            faults.add(file, entry, "", "must be an array")
            return ()
        inner = typing.get_args(hint)[0]
        return tuple(_convert(inner, item, file, f"{entry}[{i}]", faults) for i, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, dict):
            faults.add(file, entry, "", "must be a table")
            return {}
        inner = typing.get_args(hint)[1]
        return {key: _convert(inner, item, file, f"{entry}.{key}", faults) for key, item in value.items()}
    if origin in (types.UnionType, typing.Union):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        if not isinstance(value, tuple(_runtime(kind) for kind in kinds)):
            faults.add(file, entry, "", f"is {value!r}", [kind.__name__ for kind in kinds])
        return value
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        if value not in [member.value for member in hint]:
            faults.add(file, entry, "", f"is {value!r}", [member.value for member in hint])
            return next(iter(hint))
        return hint(value)
    if is_dataclass(hint):
        if not isinstance(value, dict):
            faults.add(file, entry, "", "must be a table")
            return None
        return build(typing.cast(type, hint), value, file, entry, faults)
    if not isinstance(value, _runtime(hint)) or (isinstance(value, bool) and hint is not bool):
        faults.add(file, entry, "", f"is {value!r}", [hint.__name__])
    return value


def _runtime(kind: type) -> type | tuple[type, ...]:
    return (int, float) if kind is float else kind


def check_technique(
    technique: Technique,
    file: str,
    levels: Mapping[str, Collection[str]],
    mechanisms: Collection[str],
    faults: Faults,
) -> None:
    """The rules of taxonomy/data/README.md that a single file can break."""

    def say(name: str, what: str, allowed: Iterable[str] = ()) -> None:
        faults.add(file, "", name, what, allowed)

    if not SLUG.fullmatch(technique.slug):
        say("slug", "must be lower-case letters, digits and single hyphens")
    if len(SENTENCE_END.findall(technique.summary)) > 3 or not technique.summary.endswith("."):
        say("summary", "must be one to three sentences")
    if technique.mechanism and technique.mechanism not in mechanisms:
        say("mechanism", f"'{technique.mechanism}' is not in mechanisms.toml")
    for scheme, paths in technique.levels.items():
        if scheme not in SCHEMES:
            say("levels", f"'{scheme}' is no scheme", SCHEMES)
            continue
        for path in paths:
            if path not in levels[scheme]:
                say(f"levels.{scheme}", f"'{path}' is no level of schemes/{scheme}.toml")
        if technique.level_basis.get(scheme) not in ("survey", "compiled"):
            say(f"level_basis.{scheme}", "must say who placed it", ("survey", "compiled"))
    for scheme in technique.level_basis:
        if scheme not in technique.levels:
            say(f"level_basis.{scheme}", "has no levels")
    if not technique.levels:
        say("levels", "is empty")
    if not technique.bottlenecks:
        say("bottlenecks", "is empty", BOTTLENECKS)
    for slug in technique.bottlenecks:
        if slug not in BOTTLENECKS:
            say("bottlenecks", f"'{slug}' is unknown", BOTTLENECKS)
    if bool(technique.effects) == bool(technique.no_effect_reason):
        say("effects", "give effects or no_effect_reason, one of the two")
    if technique.kind is Kind.HARDWARE and technique.effects:
        say("effects", "a hardware design is not a software choice and changes no deployment")
    _check_effects(technique, say)
    if not technique.works:
        say("works", "is empty; every technique names the work that introduces it")
    for work in technique.works:
        if work.role not in ROLES:
            say("works.role", f"is '{work.role}'", ROLES)
        if not (work.arxiv_id or work.doi or work.title or work.reference):
            say("works", "needs arxiv_id, doi, title or reference")
    for kind in technique.requires.model:
        if kind not in REQUIREMENTS:
            say("requires.model", f"'{kind}' is unknown", REQUIREMENTS)


def _check_effects(technique: Technique, say: Any) -> None:
    names = [knob.name for knob in technique.knobs]
    if len(set(names)) != len(names):
        say("knobs", "a name occurs twice")
    for knob in technique.knobs:
        if isinstance(knob.default, int | float) and (
            (knob.low is not None and knob.default < knob.low)
            or (knob.high is not None and knob.default > knob.high)
        ):
            say(f"knobs.{knob.name}", f"default {knob.default} lies outside {knob.low}…{knob.high}")
        if knob.choices and str(knob.default) not in knob.choices:
            say(f"knobs.{knob.name}", f"default '{knob.default}' is no choice", knob.choices)
    for effect in technique.effects:
        if effect.op not in OPERATIONS:
            say(f"effects.{effect.field}", f"op is '{effect.op}'", OPERATIONS)
        if effect.basis not in EFFECT_BASES:
            say(f"effects.{effect.field}", f"basis is '{effect.basis}'", EFFECT_BASES)
        if not effect.source:
            say(f"effects.{effect.field}", "has no source")
        try:
            missing = unknown_names(effect.value, names)
        except DataError as fault:
            say(f"effects.{effect.field}", fault.message)
            continue
        if missing:
            say(f"effects.{effect.field}", f"names {', '.join(missing)}, which nothing defines")


def check_relations(relations: Iterable[Relation], known: Collection[str], faults: Faults) -> None:
    seen: set[tuple[str, str, str]] = set()
    for relation in relations:
        entry = f"{relation.a} {relation.kind} {relation.b}"
        for slug in (relation.a, relation.b):
            if slug not in known:
                faults.add("relations.csv", entry, "", f"'{slug}' is neither a technique nor a mechanism")
        if relation.kind not in RELATIONS:
            faults.add("relations.csv", entry, "kind", f"is '{relation.kind}'", RELATIONS)
        if not relation.source:
            faults.add("relations.csv", entry, "source", "is empty")
        pair = (relation.a, relation.b, relation.kind)
        if pair in seen:
            faults.add("relations.csv", entry, "", "occurs twice")
        seen.add(pair)
