"""`taxonomy/data` → validated, frozen objects. Every fault of every file is reported at once.

load_techniques()   slug → Technique, sorted        load_levels()       scheme → levels in reading order
load_bottlenecks()  slug → Bottleneck                load_relations()    list of Relation
load_mechanisms()   slug → Mechanism
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from taxonomy.check import Faults, build, check_relations, check_technique
from taxonomy.errors import DataError
from taxonomy.model import (
    BOTTLENECKS,
    SCHEMES,
    Bottleneck,
    Level,
    Mechanism,
    Observation,
    Relation,
    Technique,
)

Row = TypeVar("Row")


def data_root() -> Traversable:
    return files("taxonomy") / "data"


def read_toml(path: Traversable, faults: Faults) -> dict[str, Any]:
    """The parsed file; a syntax error becomes a fault and an empty table."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as fault:
        faults.add(path.name, "", "", f"is not TOML: {fault}")
    except FileNotFoundError:
        faults.add(path.name, "", "", "is missing")
    return {}


@lru_cache(maxsize=1)
def load_levels() -> Mapping[str, tuple[Level, ...]]:
    """The three schemes; parents stand before their children."""
    faults = Faults()
    schemes: dict[str, tuple[Level, ...]] = {}
    for scheme in SCHEMES:
        name = f"schemes/{scheme}.toml"
        table = read_toml(data_root() / "schemes" / f"{scheme}.toml", faults)
        levels: list[Level] = []
        seen: set[str] = set()
        for entry in table.get("level", []):
            level = build(Level, {"scheme": scheme, **entry}, name, str(entry.get("path", "?")), faults)
            if level is None:
                continue
            if level.path in seen:
                faults.add(name, level.path, "path", "occurs twice")
            if level.parent is not None and level.parent not in seen:
                faults.add(name, level.path, "path", f"has no parent '{level.parent}' above it")
            if level.basis not in ("survey", "compiled"):
                faults.add(name, level.path, "basis", f"is '{level.basis}'", ("survey", "compiled"))
            if not level.description:
                faults.add(name, level.path, "description", "is empty")
            seen.add(level.path)
            levels.append(level)
        schemes[scheme] = tuple(levels)
    faults.stop()
    return schemes


@lru_cache(maxsize=1)
def load_bottlenecks() -> Mapping[str, Bottleneck]:
    faults = Faults()
    table = read_toml(data_root() / "bottlenecks.toml", faults)
    found: dict[str, Bottleneck] = {}
    for entry in table.get("bottleneck", []):
        item = build(Bottleneck, entry, "bottlenecks.toml", str(entry.get("slug", "?")), faults)
        if item is not None:
            found[item.slug] = item
    if tuple(found) != BOTTLENECKS:
        faults.add(
            "bottlenecks.toml", "", "slug", "list differs from taxonomy.model.BOTTLENECKS", BOTTLENECKS
        )
    faults.stop()
    return found


@lru_cache(maxsize=1)
def load_mechanisms() -> Mapping[str, Mechanism]:
    faults = Faults()
    table = read_toml(data_root() / "mechanisms.toml", faults)
    found: dict[str, Mechanism] = {}
    for entry in table.get("mechanism", []):
        item = build(Mechanism, entry, "mechanisms.toml", str(entry.get("slug", "?")), faults)
        if item is None:
            continue
        if item.slug in found:
            faults.add("mechanisms.toml", item.slug, "slug", "occurs twice")
        found[item.slug] = item
    faults.stop()
    return found


@lru_cache(maxsize=1)
def load_techniques() -> Mapping[str, Technique]:
    """Every technique by slug (the file's name), sorted."""
    faults = Faults()
    levels = {scheme: {level.path for level in found} for scheme, found in load_levels().items()}
    mechanisms = load_mechanisms()
    folder = data_root() / "techniques"
    found: dict[str, Technique] = {}
    for path in sorted((p for p in folder.iterdir() if p.name.endswith(".toml")), key=lambda p: p.name):
        technique = parse_technique(read_toml(path, faults), path.name, faults)
        if technique is not None:
            check_technique(technique, path.name, levels, mechanisms, faults)
            found[technique.slug] = technique
    names: dict[str, str] = {}
    for technique in found.values():
        for name in (technique.name, *technique.aliases):
            other = names.setdefault(name.lower(), technique.slug)
            if other != technique.slug:
                faults.add(f"{technique.slug}.toml", "", "name", f"'{name}' is also used by {other}")
    for observation in read_table("observations.csv", Observation, faults):
        owner = found.get(observation.technique)
        if owner is None:
            faults.add(
                "observations.csv", observation.what, "technique", f"'{observation.technique}' is unknown"
            )
        else:
            found[owner.slug] = replace(owner, observations=(*owner.observations, observation))
    faults.stop()
    return dict(sorted(found.items()))


def read_table(name: str, kind: type[Row], faults: Faults) -> list[Row]:
    """A CSV file whose columns are the fields of `kind`, as objects."""
    columns = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    rows: list[Row] = []
    with (data_root() / name).open("r", encoding="utf-8") as text:
        reader = csv.DictReader(text)
        if reader.fieldnames != columns:
            raise DataError(f"{name} has columns {reader.fieldnames}; they must be {', '.join(columns)}")
        for number, row in enumerate(reader, 2):
            item = build(kind, row, name, f"line {number}", faults)
            if item is not None:
                rows.append(item)
    return rows


def parse_technique(table: Mapping[str, Any], file: str, faults: Faults) -> Technique | None:
    """One file's table as a Technique; its slug is the file's name without `.toml`."""
    slug = file.removesuffix(".toml")
    for name, why in {"slug": "is the file's name", "observations": "stand in observations.csv"}.items():
        if name in table:
            faults.add(file, "", name, f"{why}; leave it out")
            return None
    return build(Technique, {"slug": slug, **table}, file, "", faults)


@lru_cache(maxsize=1)
def load_relations() -> tuple[Relation, ...]:
    """Pairs of techniques or mechanisms that require, conflict with, compose with or subsume each other."""
    faults = Faults()
    relations = read_table("relations.csv", Relation, faults)
    check_relations(relations, set(load_techniques()) | set(load_mechanisms()), faults)
    faults.stop()
    return tuple(relations)
