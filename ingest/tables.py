"""Bulk reading and writing of the literature tables: thousands of rows per statement, through indexes only."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import JSON, bindparam, insert, text, update
from sqlalchemy import func as sql
from sqlalchemy import select as sql_select

import kb.models as tables
from ingest.keys import Key
from ingest.references import Reference, reference_from_json

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

IN_LIST = 500  # values per IN list where the database has no json_each
LOCK = 0x6B62  # Postgres: one importer at a time hands out row ids
TABLES = {
    "source": tables.Source,
    "work": tables.Work,
    "record": tables.Record,
    "identifier": tables.Identifier,
    "citation": tables.Citation,
    "decision": tables.Decision,
}


class StoredRecord(NamedTuple):
    """A record as the matcher needs it: one per distinct signature within a work."""

    id: int
    work_id: int
    signature: str
    stated: Reference
    kind: str  # of its source
    subject: bool
    reference: str  # "zhou:27", as decisions name it


def rows_in(connection: Connection, statement: str, values: Iterable[Any], **parameters: Any) -> list[Any]:
    """Runs `statement`, whose `{values}` stands for a list of any length, and returns all rows."""
    values = list(values)
    if not values:
        return []
    if connection.dialect.name == "sqlite":
        query = text(statement.format(values="(SELECT value FROM json_each(:values))"))
        return list(connection.execute(query, {"values": json.dumps(values), **parameters}).fetchall())
    found: list[Any] = []
    query = text(statement.format(values=":values")).bindparams(bindparam("values", expanding=True))
    for start in range(0, len(values), IN_LIST):
        found += connection.execute(query, {"values": values[start : start + IN_LIST], **parameters})
    return found


def run_in(connection: Connection, statement: str, values: Iterable[Any], **parameters: Any) -> None:
    """Runs a writing `statement` over a list of any length."""
    values = list(values)
    if not values:
        return
    if connection.dialect.name == "sqlite":
        query = text(statement.format(values="(SELECT value FROM json_each(:values))"))
        connection.execute(query, {"values": json.dumps(values), **parameters})
        return
    query = text(statement.format(values=":values")).bindparams(bindparam("values", expanding=True))
    for start in range(0, len(values), IN_LIST):
        connection.execute(query, {"values": values[start : start + IN_LIST], **parameters})


class Ids:
    """Row ids handed out in order, so that the same input gives the same rows; the caller holds the write lock."""

    def __init__(self, connection: Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        self.last = {
            name: connection.execute(sql_select(sql.max(table.id))).scalar() or 0  # type: ignore[attr-defined]
            for name, table in TABLES.items()
        }

    def next(self, name: str) -> int:
        self.last[name] += 1
        return self.last[name]


def insert_rows(connection: Connection, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Inserts rows that carry their ids; all rows have the same columns."""
    if not rows:
        return
    table = TABLES[name].__table__  # type: ignore[attr-defined]
    if connection.dialect.name == "sqlite":
        insert_sqlite(connection, table, rows)
        return
    connection.execute(insert(table), rows)
    if connection.dialect.name == "postgresql":
        connection.execute(
            text(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT MAX(id) FROM {name}))")
        )


def insert_sqlite(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """The driver's own executemany: per row, SQLAlchemy's costs more than the insertion itself."""
    names = list(rows[0])
    left_out = [
        column
        for column in table.columns
        if column.name not in rows[0] and column.default is not None and column.default.is_scalar
    ]
    # Encoded once, since they are the same in all rows.
    defaults = tuple(
        json.dumps(column.default.arg) if isinstance(column.type, JSON) else column.default.arg  # type: ignore[union-attr]
        for column in left_out
    )
    columns = json_columns(table, names, rows)
    values = [(*row, *defaults) for row in zip(*columns, strict=True)]
    names += [column.name for column in left_out]
    marks = ", ".join("?" * len(names))
    connection.exec_driver_sql(f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})", values)


def json_columns(table: Table, names: Sequence[str], rows: Sequence[dict[str, Any]]) -> list[Iterable[Any]]:
    """Column by column the values of `names`, those of JSON columns as text."""
    return [
        map(json.dumps, map(itemgetter(name), rows))
        if isinstance(table.columns[name].type, JSON)
        else map(itemgetter(name), rows)
        for name in names
    ]


def known_signatures(connection: Connection, signatures: Iterable[str]) -> dict[str, int]:
    """signature → work, of those that are stored."""
    found = rows_in(
        connection,
        "SELECT signature, MIN(work_id) FROM record WHERE signature IN {values} GROUP BY signature",
        signatures,
    )
    return {row[0]: row[1] for row in found}


def works_with(connection: Connection, keys: Iterable[Key]) -> dict[Key, set[int]]:
    """key → works of which a record states it."""
    by_scheme: dict[str, list[str]] = defaultdict(list)
    for scheme, value in keys:
        by_scheme[scheme].append(value)
    found: dict[Key, set[int]] = defaultdict(set)
    for scheme, values in by_scheme.items():
        for value, work_id in rows_in(
            connection,
            "SELECT value, work_id FROM identifier WHERE scheme = :scheme AND value IN {values}",
            values,
            scheme=scheme,
        ):
            found[scheme, value].add(work_id)
    return found


def records_of(connection: Connection, works: Iterable[int]) -> list[StoredRecord]:
    """The distinct statements about some works, in the order of their ids."""
    first = rows_in(
        connection,
        "SELECT MIN(id) FROM record WHERE work_id IN {values} GROUP BY work_id, signature",
        sorted(works),
    )
    found = rows_in(
        connection,
        "SELECT record.id, record.work_id, record.signature, record.fields, source.kind, record.locator, source.slug"
        " FROM record JOIN source ON source.id = record.source_id WHERE record.id IN {values} ORDER BY record.id",
        sorted(row[0] for row in first),
    )
    return [
        StoredRecord(
            id=row[0],
            work_id=row[1],
            signature=row[2],
            stated=reference_from_json(json.loads(row[3]) if isinstance(row[3], str | bytes) else row[3]),
            kind=row[4],
            subject=row[5] == "subject",
            reference=f"{row[6]}:{row[5]}",
        )
        for row in found
    ]


def record_ids(connection: Connection, works: Iterable[int]) -> dict[tuple[int, str], list[int]]:
    """(work, signature) → every record, for moving them."""
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for record_id, work_id, signature in rows_in(
        connection,
        "SELECT id, work_id, signature FROM record WHERE work_id IN {values} ORDER BY id",
        sorted(works),
    ):
        found[work_id, signature].append(record_id)
    return found


def anchor_signatures(connection: Connection, works: Iterable[int]) -> dict[int, str]:
    """work → the signature of its oldest record: where that one goes, the work's id and slug go."""
    found = rows_in(
        connection,
        "SELECT work_id, signature FROM record WHERE id IN"
        " (SELECT MIN(id) FROM record WHERE work_id IN {values} GROUP BY work_id)",
        sorted(works),
    )
    return {row[0]: row[1] for row in found}


def update_works(connection: Connection, told: dict[int, dict[str, Any]]) -> set[int]:
    """Rewrites the columns that follow from the records, roles and counts stay; the works that came out differently.

    Another reference to a known paper seldom says anything better, and a row that is not written costs no index.
    """
    if not told:
        return set()
    table = tables.Work.__table__  # type: ignore[attr-defined]
    names = list(next(iter(told.values())))
    wanted = dict(zip(told, zip(*json_columns(table, names, list(told.values())), strict=True), strict=True))
    changes: dict[tuple[str, ...], list[int]] = defaultdict(
        list
    )  # names of columns → works in which they differ
    for row in rows_in(
        connection, f"SELECT {', '.join(names)}, id FROM work WHERE id IN {{values}}", sorted(told)
    ):
        stored, new = as_stored(row[:-1]), wanted[row[-1]]
        if stored != new:
            different = [one for one, old, now in zip(names, stored, new, strict=True) if old != now]
            changes[tuple(different)].append(row[-1])
    # A column that is set is written to its index, too, even if its value stays: only what differs is set.
    for columns, works in changes.items():
        if connection.dialect.name == "sqlite":
            places = [names.index(name) for name in columns]
            sets = ", ".join(f"{name} = ?" for name in columns)
            values = [(*(wanted[work][place] for place in places), work) for work in works]
            connection.exec_driver_sql(f"UPDATE work SET {sets} WHERE id = ?", values)
            continue
        statement = update(table).where(table.c.id == bindparam("b_id"))
        rows = [{"b_id": work, **{name: told[work][name] for name in columns}} for work in works]
        connection.execute(statement.values(**{name: bindparam(name) for name in columns}), rows)
    return {work for works in changes.values() for work in works}


def as_stored(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row as `json_columns` writes it: some drivers decode JSON columns."""
    return tuple(json.dumps(value) if isinstance(value, list | dict) else value for value in row)


def move_records(connection: Connection, moves: dict[int, int]) -> None:
    """Gives records to other works; identifiers and citations follow."""
    if not moves:
        return
    rows = [{"record": record, "work": work} for record, work in moves.items()]
    for statement in (
        "UPDATE record SET work_id = :work WHERE id = :record",
        "UPDATE identifier SET work_id = :work WHERE record_id = :record",
        "UPDATE citation SET cited_id = :work WHERE record_id = :record",
        "UPDATE citation SET citing_id = :work WHERE citing_record_id = :record",
    ):
        connection.execute(text(statement), rows)


def replace_work(connection: Connection, old: int, new: int) -> None:
    """Every other row that points to an absorbed work points to the one that stays; the empty work goes."""
    pair = {"old": old, "new": new}
    connection.execute(
        text(
            "DELETE FROM techniquework WHERE work_id = :old AND EXISTS (SELECT 1 FROM techniquework AS kept"
            " WHERE kept.work_id = :new AND kept.technique = techniquework.technique AND kept.role = techniquework.role)"
        ),
        pair,
    )
    for table in ("techniquework", "evidence", "survey"):
        connection.execute(text(f"UPDATE {table} SET work_id = :new WHERE work_id = :old"), pair)
    connection.execute(text("DELETE FROM work WHERE id = :old"), pair)


def taken_slugs(connection: Connection, slugs: Iterable[str]) -> set[str]:
    return {row[0] for row in rows_in(connection, "SELECT slug FROM work WHERE slug IN {values}", slugs)}
