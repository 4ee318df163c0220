"""`taxonomy/data` → validated, frozen objects. Every fault of every file is reported at once.

load_techniques()   slug → Technique, sorted        load_levels()       scheme → levels in reading order
load_bottlenecks()  slug → Bottleneck                load_relations()    list of Relation
load_mechanisms()   slug → Mechanism
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from taxonomy.check import Faults, build, check_relations, check_technique
from taxonomy.errors import DataError
from taxonomy.model import (
    BOTTLENECKS,
    SCHEMES,
    Bottleneck,
    Level,
    Mechanism,
    Relation,
    Technique,
)


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
    faults.stop()
    return found


def parse_technique(table: Mapping[str, Any], file: str, faults: Faults) -> Technique | None:
    """One file's table as a Technique; its slug is the file's name without `.toml`."""
    slug = file.removesuffix(".toml")
    if "slug" in table:
        faults.add(file, "", "slug", "is the file's name; leave it out")
        return None
    return build(Technique, {"slug": slug, **table}, file, "", faults)


@lru_cache(maxsize=1)
def load_relations() -> tuple[Relation, ...]:
    """Pairs of techniques or mechanisms that require, conflict with, compose with or subsume each other."""
    faults = Faults()
    columns = ("a", "b", "kind", "condition", "source", "basis")
    relations: list[Relation] = []
    with (data_root() / "relations.csv").open("r", encoding="utf-8") as text:
        reader = csv.DictReader(text)
        if tuple(reader.fieldnames or ()) != columns:
            raise DataError(
                f"relations.csv has columns {reader.fieldnames}; they must be {', '.join(columns)}"
            )
        for number, row in enumerate(reader, 2):
            relation = build(Relation, row, "relations.csv", f"line {number}", faults)
            if relation is not None:
                relations.append(relation)
    check_relations(relations, set(load_techniques()) | set(load_mechanisms()), faults)
    faults.stop()
    return tuple(relations)
