"""Answers kept on disk: one file per address, a line of JSON and then the body."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

FRESH_S = 24 * 3600.0  # bibliographic records change rarely; afterwards they are revalidated


@dataclass(frozen=True)
class Cached:
    url: str
    body: bytes
    etag: str = ""
    modified: str = ""
    stored_at: float = 0.0
    fresh_s: float = FRESH_S
    may_be_stored: bool = True

    @classmethod
    def from_answer(cls, url: str, body: bytes, headers: Mapping[str, str], now: float) -> Cached:
        fresh_s, may_be_stored = lifetime(headers)
        return cls(
            url,
            body,
            headers.get("ETag") or "",
            headers.get("Last-Modified") or "",
            now,
            fresh_s,
            may_be_stored,
        )

    def renewed(self, headers: Mapping[str, str], now: float) -> Cached:
        """After "not modified": the same body, its age counted anew."""
        return replace(self, stored_at=now, etag=headers.get("ETag") or self.etag)

    def is_fresh(self, now: float) -> bool:
        return 0 <= now - self.stored_at < self.fresh_s

    def conditions(self) -> dict[str, str]:
        """Headers that let the server answer "not modified"."""
        found = {}
        if self.etag:
            found["If-None-Match"] = self.etag
        if self.modified:
            found["If-Modified-Since"] = self.modified
        return found


def lifetime(headers: Mapping[str, str]) -> tuple[float, bool]:
    """How long an answer may be used unasked, and whether it may be kept at all."""
    control = (headers.get("Cache-Control") or "").lower()
    if "no-store" in control:
        return 0.0, False
    if "no-cache" in control:
        return 0.0, True
    if match := re.search(r"max-age=(\d+)", control):
        return min(float(match[1]), FRESH_S), True
    return FRESH_S, True


class Cache:
    """A folder of answers; whatever is unreadable in it counts as not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> Cache:
        """KB_CACHE_DIR, or the user's cache folder."""
        if environ.get("KB_CACHE_DIR"):
            return cls(Path(environ["KB_CACHE_DIR"]) / "http")
        from platformdirs import user_cache_path

        return cls(user_cache_path("kb", appauthor=False) / "http")

    def path(self, url: str) -> Path:
        return self.folder / f"{hashlib.sha256(url.encode()).hexdigest()}.answer"

    def load(self, url: str) -> Cached | None:
        try:
            with self.path(url).open("rb") as file:
                head = json.loads(file.readline())
                body = file.read()
            if head.pop("url") != url or head.pop("bytes") != len(body):
                return None
            return Cached(url, body, **head)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def store(self, answer: Cached) -> None:
        """Writes through a temporary file, so that no reader ever sees half an answer."""
        head = {
            "url": answer.url, "bytes": len(answer.body), "etag": answer.etag, "modified": answer.modified,
            "stored_at": answer.stored_at, "fresh_s": answer.fresh_s,
        }  # fmt: skip
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder, prefix="new-")
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(head).encode() + b"\n" + answer.body)
            Path(name).replace(self.path(answer.url))
        except OSError:
            return  # a full or read-only disk costs a second request, nothing else
