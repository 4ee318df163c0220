"""Facet counts: how often each facet value occurs among the results.

In one process the counts of the second and later queries come from memory: for each value one number whose bits are
the documents that have it, so that counting is an `and` of two numbers. A command that asks once, and results too
large to hold, are counted by the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kb.kept import Kept
from kb.reader import Reader, Row

if TYPE_CHECKING:
    from kb.search import Selection

FACETS = ("type", "level", "bottleneck", "phase", "training", "survey", "kind", "role", "year")
MAX_DOCUMENTS = 50_000  # larger indexes are not kept in memory
KEPT = 4  # databases whose bits are kept

Bits = dict[str, dict[str, int]]  # facet → value → documents as bits


FACET_BITS: Kept[Bits] = Kept(KEPT)
ASKED: Kept[int] = Kept(1000)  # databases that were asked once


def identity(reader: Reader, state: Mapping[str, str]) -> tuple[str, ...] | None:
    """A key for what is kept of this database; None where nothing tells it from others."""
    if reader.dialect != "sqlite":
        return None
    row = reader.one("SELECT file FROM pragma_database_list WHERE name = 'main'")
    if row is None or not row["file"]:
        return None
    last = reader.one("SELECT coalesce(max(id), 0) AS last FROM search_document")
    return (row["file"], *(f"{k}={v}" for k, v in sorted(state.items())), str(last and last["last"]))


def count_facets(reader: Reader, state: Mapping[str, str], ids: Iterable[int]) -> list[dict[str, Any]]:
    """For every facet its values among these documents, the most frequent first."""
    ids = list(ids)
    key = identity(reader, state)
    if key is None or int(key[-1]) > MAX_DOCUMENTS:
        return counts_by_ids(reader, ids)
    if ASKED.get(key) is None:
        ASKED.put(key, 1)
        return counts_by_ids(reader, ids)
    bits = FACET_BITS.made(key, lambda: load_bits(reader))
    chosen = as_bits(ids)
    return arranged(
        {
            name: [(value, n) for value, members in values.items() if (n := (members & chosen).bit_count())]
            for name, values in bits.items()
        }
    )


def as_bits(ids: Iterable[int]) -> int:
    """Document ids as the bits of one number.

    >>> bin(as_bits([0, 3]))
    '0b1001'
    """
    ids = list(ids)
    if not ids:
        return 0
    field = bytearray(max(ids) // 8 + 1)
    for i in ids:
        field[i >> 3] |= 1 << (i & 7)
    return int.from_bytes(field, "little")


def load_bits(reader: Reader) -> Bits:
    members: dict[tuple[str, str], list[int]] = {}
    for row in reader.rows("SELECT document_id, name, value FROM search_facet"):
        if row["name"] in FACETS:
            members.setdefault((row["name"], row["value"]), []).append(row["document_id"])
    for row in reader.rows("SELECT id, year FROM search_document WHERE year IS NOT NULL"):
        members.setdefault(("year", str(row["year"])), []).append(row["id"])
    bits: Bits = {}
    for (name, value), ids in members.items():
        bits.setdefault(name, {})[value] = as_bits(ids)
    return bits


COUNTS = (
    "SELECT f.name AS name, f.value AS value, count(*) AS n FROM chosen c JOIN search_facet f ON f.document_id = c.id "
    "GROUP BY f.name, f.value "
    "UNION ALL SELECT 'year', CAST(year AS VARCHAR(8)), count(*) FROM chosen WHERE year IS NOT NULL GROUP BY year"
)


def counts_by_ids(reader: Reader, ids: list[int]) -> list[dict[str, Any]]:
    if not ids:
        return []
    listed = ", ".join(map(str, ids))
    rows = reader.rows(
        f"WITH chosen AS (SELECT id, year FROM search_document WHERE id IN ({listed})) {COUNTS}", {}
    )
    return from_rows(rows)


def facets_by_sql(reader: Reader, selection: Selection) -> list[dict[str, Any]]:
    """The counts of a selection that is too large to list."""
    where = f" WHERE {' AND '.join(selection.where)}" if selection.where else ""
    chosen = f"chosen AS (SELECT d.id AS id, d.year AS year FROM {selection.source}{where})"
    rows = reader.rows(f"WITH {', '.join([*selection.ctes, chosen])} {COUNTS}", selection.parameters)
    return from_rows(rows)


def from_rows(rows: Iterable[Row]) -> list[dict[str, Any]]:
    grouped: dict[str, list[tuple[str, int]]] = {}
    for row in rows:
        grouped.setdefault(row["name"], []).append((row["value"], row["n"]))
    return arranged(grouped)


def arranged(grouped: Mapping[str, list[tuple[str, int]]]) -> list[dict[str, Any]]:
    """Facets in their own order; years newest first, other values by count."""
    found = []
    for name in FACETS:
        values = sorted(grouped.get(name, ()), key=lambda pair: (-pair[1], pair[0]))
        if name == "year":
            values = sorted(values, reverse=True)
        if values:
            found.append({"name": name, "values": [{"value": v, "count": n} for v, n in values]})
    return found
