"""Reading the database without SQLModel: portable SQL text in, dictionaries out.

Importing SQLModel costs a third of a second, more than all the rest of `kb recommend`; SQLite files are
therefore read through the standard library and every other database through SQLAlchemy. Both take the same
SQL text with `:name` parameters. Writers use SQLModel sessions (kb/db.py).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Protocol

Row = dict[str, Any]


class Reader(Protocol):
    """One open connection, for reading."""

    dialect: str

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]: ...

    def one(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Row | None: ...

    def close(self) -> None: ...


class SqliteReader:
    """Reads an SQLite file through the standard library; JSON columns come back as text (see `loads`)."""

    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.connection.row_factory = sqlite3.Row

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        return [dict(row) for row in self.connection.execute(sql, parameters or {})]

    def one(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Row | None:
        row = self.connection.execute(sql, parameters or {}).fetchone()
        return None if row is None else dict(row)

    def close(self) -> None:
        self.connection.close()


class SqlAlchemyReader:
    """Reads any database that SQLAlchemy speaks to."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.dialect = connection.dialect.name

    def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[Row]:
        from sqlalchemy import text

        return [dict(row) for row in self.connection.execute(text(sql), parameters or {}).mappings()]

    def one(self, sql: str, parameters: Mapping[str, Any] | None = None) -> Row | None:
        found = self.rows(sql, parameters)
        return found[0] if found else None

    def close(self) -> None:
        self.connection.close()


def loads(value: Any) -> Any:
    """A JSON column as Python data: text from sqlite3, already decoded from some other drivers."""
    import json

    return json.loads(value) if isinstance(value, str | bytes) else value
