"""Changes of the tables between versions: a list of functions, each run once, in order, in the build's transaction.

`create_all` makes missing tables; a migration is needed only where an existing table with user rows changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kb.errors import DatabaseError

if TYPE_CHECKING:
    from sqlmodel import Session

MIGRATIONS: list[tuple[int, Callable[[Session], None]]] = []  # (schema version it leads to, function)


def migrate(session: Session) -> list[int]:
    """Runs what is pending; returns the versions reached. Refuses a database that is newer than this program."""
    from kb.db import SCHEMA_VERSION
    from kb.models import Meta

    stored = session.get(Meta, "schema_version")
    current = int(stored.value) if stored else SCHEMA_VERSION
    if current > SCHEMA_VERSION:
        raise DatabaseError(
            f"the database has schema {current}, this program knows up to {SCHEMA_VERSION}",
            hint="install a newer kb, or give another database with --db PATH",
            field="db",
        )
    done = []
    for version, step in MIGRATIONS:
        if version > current:
            step(session)
            done.append(version)
    return done
