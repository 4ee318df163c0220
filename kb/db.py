"""Opening the database: where it is, when it must be (re)built, readers and sessions.

`kb` may not import `ingest`, which builds the database, so the builder is handed in: the faces call
`kb.cli.common.open_reader`, which calls `ensure(url, version, build)` and then `open_reader(url)`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kb.errors import DatabaseError
from kb.reader import Reader, SqliteReader

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlmodel import Session

SCHEMA_VERSION = 1
LOCK_TIMEOUT_S = 60.0
BUSY_TIMEOUT_S = 30.0
MAX_STAMPS = 8  # installed copies of the same data that one database knows


@dataclass(frozen=True)
class DataVersion:
    """Identity of the packaged data: `stamp` is cheap (sizes and times), `digest` reads every byte."""

    stamp: str
    digest: Callable[[], str]


def database_url(option: str | None = None) -> str:
    """The database to use: the option, KB_DATABASE_URL, or an SQLite file in the user's data folder.

    >>> database_url("notes.db")
    'sqlite:///notes.db'
    """
    given = option or os.environ.get("KB_DATABASE_URL")
    if given:
        return given if "://" in given else f"sqlite:///{given}"
    from platformdirs import user_data_path

    return f"sqlite:///{user_data_path('kb', appauthor=False) / 'kb.sqlite'}"


def sqlite_path(url: str) -> Path | None:
    """The file behind an SQLite URL, or None for other databases and for in-memory ones."""
    if not url.startswith("sqlite:///"):
        return None
    name = url.removeprefix("sqlite:///").split("?")[0]
    return None if name in ("", ":memory:") else Path(name).expanduser()


def explain(error: Exception, url: str) -> DatabaseError:
    """A driver's complaint as one of ours."""
    where = sqlite_path(url) or url
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    hint = "give another with --db PATH or KB_DATABASE_URL"
    if "not a database" in text or "malformed" in text:
        return DatabaseError(f"{where} is not a kb database ({text})", hint=hint, field="db")
    if "readonly" in text or "read-only" in text:
        return DatabaseError(
            f"{where} is read-only ({text})", hint=f"make it writable, or {hint}", field="db"
        )
    return DatabaseError(f"cannot use the database {where} ({text})", hint=hint, field="db")


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turns the drivers' exceptions into DatabaseError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(error, url) from error
    except Exception as error:
        if type(error).__module__.startswith("sqlalchemy."):
            raise explain(getattr(error, "orig", None) or error, url) from error
        raise


def connect_sqlite(path: Path, *, read_only: bool) -> sqlite3.Connection:
    mode = "ro" if read_only else "rwc"
    from urllib.parse import quote

    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=BUSY_TIMEOUT_S, check_same_thread=False
    )


def open_reader(url: str | None = None) -> Reader:
    """A connection for reading; the database must exist (see `ensure`)."""
    url = database_url(url)
    path = sqlite_path(url)
    with translated(url):
        if path is not None:
            return SqliteReader(connect_sqlite(path, read_only=True))
        from kb.reader import SqlAlchemyReader

        return SqlAlchemyReader(make_engine(url).connect())


def make_engine(url: str) -> Engine:
    """An SQLAlchemy engine with our SQLite settings."""
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import StaticPool

    if not url.startswith("sqlite"):
        # The driver that the extra installs; SQLAlchemy's own choice is the one before it.
        if url.startswith("postgresql://"):
            url = "postgresql+psycopg" + url.removeprefix("postgresql")
        try:
            return create_engine(url)
        except ModuleNotFoundError as error:
            raise DatabaseError(
                f"the database driver {error.name} is not installed",
                hint="install it; for PostgreSQL: pip install 'kb-inference[postgresql]'",
                field="db",
            ) from error
    options: dict[str, Any] = {"connect_args": {"timeout": BUSY_TIMEOUT_S, "check_same_thread": False}}
    if sqlite_path(url) is None:
        options["poolclass"] = StaticPool  # an in-memory database lives as long as its one connection
    engine = create_engine(url, **options)

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        # The driver's own transaction control skips DDL; we begin explicitly, so that a killed build rolls back.
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        # 64 MiB: the resolver looks up keys all over a large file.
        connection.execute("PRAGMA cache_size = -65536")

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


@contextmanager
def open_session(url: str | None = None) -> Iterator[Session]:
    """One transaction for writers: commits at the end, rolls back on any exception."""
    from sqlmodel import Session

    url = database_url(url)
    with translated(url):
        engine = make_engine(url)
        try:
            with Session(engine) as session:
                yield session
                session.commit()
        finally:
            engine.dispose()


def read_meta(url: str) -> dict[str, str]:
    """The Meta table, or {} where there is no database yet."""
    path = sqlite_path(url)
    with translated(url):
        if path is not None and (not path.exists() or path.stat().st_size == 0):
            return {}
        reader = open_reader(url)
        try:
            return {row["key"]: row["value"] for row in reader.rows("SELECT key, value FROM meta")}
        except Exception as error:
            if "no such table" in str(error) or "UndefinedTable" in str(error):
                return {}
            raise
        finally:
            reader.close()


def is_current(url: str, version: DataVersion) -> bool:
    return f"{SCHEMA_VERSION}:{version.stamp}" in read_meta(url).get("data_stamp", "").split()


def ensure(
    url: str,
    version: DataVersion,
    build: Callable[[Session], None],
    *,
    announce: Callable[[str], None] = lambda _text: None,
    force: bool = False,
) -> bool:
    """Builds the database from packaged data where it is missing or older; True if it did.

    The user's own rows survive: `build` replaces packaged rows only, in one transaction. Processes that start
    together wait for the first one's lock, then find the database current.
    """
    if not force and is_current(url, version):
        return False
    from filelock import FileLock, Timeout

    path = sqlite_path(url)
    with translated(url):
        if path is None:
            return build_locked(url, version, build, announce, force)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT_S):
                return build_locked(url, version, build, announce, force)
        except Timeout as error:
            raise DatabaseError(
                f"another process has been building {path} for over {LOCK_TIMEOUT_S:.0f} s",
                hint=f"wait for it, or remove {path}.lock if none is running",
                field="db",
            ) from error


def build_locked(
    url: str,
    version: DataVersion,
    build: Callable[[Session], None],
    announce: Callable[[str], None],
    force: bool,
) -> bool:
    if not force and is_current(url, version):
        return False
    from sqlmodel import SQLModel

    import kb.models as models
    from kb.migrations import migrate

    digest = version.digest()
    meta = read_meta(url)
    with open_session(url) as session:
        SQLModel.metadata.create_all(session.connection())
        for (
            table
        ) in SQLModel.metadata.sorted_tables:  # tables that were there lack the indexes of a newer version
            for index in table.indexes:
                index.create(session.connection(), checkfirst=True)
        migrate(session)
        stamps = meta.get("data_stamp", "").split()
        if force or meta.get("data_digest") != digest or meta.get("schema_version") != str(SCHEMA_VERSION):
            announce("upgrading the knowledge base" if meta else "building the knowledge base (first use)")
            build(session)
            stamps = []
        # Two installed copies of the same data differ in their files' times only: both stay current.
        stamps = [f"{SCHEMA_VERSION}:{version.stamp}", *stamps][:MAX_STAMPS]
        values = {
            "schema_version": str(SCHEMA_VERSION),
            "data_digest": digest,
            "data_stamp": " ".join(stamps),
        }
        for key, value in values.items():
            session.merge(models.Meta(key=key, value=value))
    return True
