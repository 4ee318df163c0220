"""What a request may use: a reader of its own thread, the snapshot of the current data, the settings."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from functools import cached_property
from importlib.resources import files
from typing import Annotated

from fastapi import Depends, Request

from kb import store_web
from kb.reader import Reader
from recommender.answer import Answer
from recommender.knowledge import Knowledge, load_knowledge
from recommender.question import Question
from recommender.service import recommend_with
from web.snapshot import Snapshot, build_snapshot

FRESHNESS_S = 1.0  # how long a change made by another process may stay unseen


class Library:
    """The database behind the pages. Connections are per thread: sqlite3 cursors are not to be shared."""

    def __init__(self, open_reader: Callable[[], Reader]) -> None:
        self._open_reader = open_reader
        self._local = threading.local()
        self._lock = threading.Lock()
        self._snapshot: Snapshot | None = None
        self._checked_at = float("-inf")
        self._knowledge: tuple[float, Knowledge] | None = None  # with when it was found current
        self._readers: list[Reader] = []

    def reader(self) -> Reader:
        found = getattr(self._local, "reader", None)
        if found is None:
            found = self._local.reader = self._open_reader()
            self._readers.append(found)
        return found

    def snapshot(self) -> Snapshot:
        """The current data, rebuilt when another process changed the database."""
        current = self._snapshot
        if current is not None and time.monotonic() - self._checked_at < FRESHNESS_S:
            return current
        with self._lock:
            current = self._snapshot
            if current is not None and time.monotonic() - self._checked_at < FRESHNESS_S:
                return current
            reader = self.reader()
            version = self.stamp(store_web.data_fingerprint(reader))
            if current is None or current.version != version:
                current = self._snapshot = build_snapshot(version, store_web.snapshot_tables(reader))
            self._checked_at = time.monotonic()
            return current

    def knowledge(self) -> Knowledge:
        """Techniques and their evidence as the recommender reads them; it keeps them per data version."""
        asked_at = time.monotonic()
        if self._knowledge is None or asked_at - self._knowledge[0] >= FRESHNESS_S:
            self._knowledge = (asked_at, load_knowledge(self.reader()))
        return self._knowledge[1]

    def recommend(self, question: Question) -> Answer:
        return recommend_with(self.knowledge(), question)

    def version(self) -> str:
        """Identity of data and code together: what an ETag is made of."""
        return self.snapshot().version

    def is_fresh(self) -> bool:
        return self._snapshot is not None and time.monotonic() - self._checked_at < FRESHNESS_S

    def stamp(self, fingerprint: str) -> str:
        return hashlib.sha256(f"{self.code_version}:{fingerprint}".encode()).hexdigest()[:16]

    @cached_property
    def code_version(self) -> str:
        """Pages change when templates, styles or the packages' data change, too."""
        digest = hashlib.sha256()
        for package in ("web", "costmodel", "recommender", "taxonomy"):
            for path in sorted(str(one) for one in walk(files(package))):
                digest.update(path.encode())
        return digest.hexdigest()[:12]

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        self._local = threading.local()


def walk(folder: object) -> list[str]:
    """Every file of a package with its size and time, as text."""
    found: list[str] = []
    for entry in folder.iterdir():  # type: ignore[attr-defined]
        if entry.is_dir():
            if entry.name != "__pycache__":
                found += walk(entry)
        elif hasattr(entry, "stat"):
            status = entry.stat()
            found.append(f"{entry}:{status.st_size}:{status.st_mtime_ns}")
        else:  # a package inside a zip file has no times; its names and contents do not change while it runs
            found.append(str(entry))
    return found


async def get_library(request: Request) -> Library:
    """Asynchronous so that it costs no thread; the route asks it for the reader of the route's own thread."""
    library: Library = request.app.state.library
    return library


LibraryDep = Annotated[Library, Depends(get_library)]
