"""Finished responses kept in memory: ETag = data version + URL, 304, gzip once, answered before any routing."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool

from web.deps import Library

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

MAX_BYTES = 96 * 1024 * 1024
MAX_BODY_BYTES = 2 * 1024 * 1024
MIN_GZIP_BYTES = 500
TEXT_TYPES = (b"text/", b"application/", b"image/svg")  # no response of ours is binary

SECURITY_HEADERS: Headers = [
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self';"
        b" frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


@dataclass(frozen=True)
class Stored:
    status: int
    headers: Headers
    body: bytes
    zipped: bytes | None

    @property
    def size(self) -> int:
        return len(self.body) + len(self.zipped or b"") + 512


class ResponseCache:
    """ASGI middleware. Only successful GETs are kept; streams pass through untouched."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], library: Library) -> None:
        self.app = app
        self.library = library
        self.store: OrderedDict[str, Stored] = OrderedDict()
        self.stored_bytes = 0
        self.version = ""
        self.waiting: dict[str, asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] not in ("GET", "HEAD") or scope["path"].startswith(("/static/", "/api/v1/health")):
            await self.app(scope, receive, with_security(send, scope["method"] == "HEAD"))
            return
        await self.answer(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        version = await self.current_version()
        if not version:  # the database cannot be read: let the routes say so
            await self.app(
                {**scope, "method": "GET"}, receive, with_security(send, scope["method"] == "HEAD")
            )
            return
        key = scope["path"] + "?" + scope["query_string"].decode("latin-1")
        headers = dict(scope["headers"])
        etag = f'W/"{version}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"'.encode()
        known = headers.get(b"if-none-match", b"")
        stored = await self.fetch(key, version, scope, receive)
        if stored.status == 200 and (etag in [tag.strip() for tag in known.split(b",")] or known == b"*"):
            kept = [(n, v) for n, v in stored.headers if n in (b"cache-control", b"vary", b"link")]
            await send({"type": "http.response.start", "status": 304, "headers": [*kept, (b"etag", etag)]})
            await send({"type": "http.response.body", "body": b""})
            return
        out = list(stored.headers)
        if stored.status == 200:
            out.append((b"etag", etag))
        body = stored.body
        if stored.zipped is not None and accepts_gzip(headers.get(b"accept-encoding", b"")):
            body = stored.zipped
            out.append((b"content-encoding", b"gzip"))
        out.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": stored.status, "headers": out})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    async def current_version(self) -> str:
        try:
            if self.library.is_fresh():
                version = self.library.version()
            else:
                version = await run_in_threadpool(self.library.version)
        except Exception:
            return ""
        if version != self.version:
            self.store.clear()
            self.stored_bytes = 0
            self.version = version
        return version

    async def fetch(self, key: str, version: str, scope: Scope, receive: Receive) -> Stored:
        """From memory, or by running the application; the same URL asked for meanwhile waits for the result."""
        while True:
            stored = self.store.get(key)
            if stored is not None:
                self.store.move_to_end(key)
                return stored
            pending = self.waiting.get(key)
            if pending is None:
                break
            await pending.wait()
        event = self.waiting[key] = asyncio.Event()
        try:
            stored = await self.render(scope, receive)
            if stored.status == 200 and stored.size <= MAX_BODY_BYTES and self.version == version:
                self.keep(key, stored)
            return stored
        finally:
            del self.waiting[key]
            event.set()

    async def render(self, scope: Scope, receive: Receive) -> Stored:
        status, headers, chunks = 500, [], []

        async def collect(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", []))
            elif message["type"] == "http.response.body":
                chunks.append(message.get("body", b""))

        await self.app({**scope, "method": "GET"}, receive, collect)
        body = b"".join(chunks)
        kept: Headers = [(n, v) for n, v in headers if n.lower() not in (b"content-length", b"etag")]
        names = {name.lower() for name, _ in kept}
        kept += [pair for pair in SECURITY_HEADERS if pair[0] not in names]
        if b"cache-control" not in names:
            kept.append((b"cache-control", b"no-cache"))
        kind = next((v for n, v in kept if n.lower() == b"content-type"), b"")
        zipped = None
        if len(body) >= MIN_GZIP_BYTES and kind.startswith(TEXT_TYPES):
            kept.append((b"vary", b"accept-encoding"))
            zipped = gzip.compress(body, 6, mtime=0)
        return Stored(status, kept, body, zipped)

    def keep(self, key: str, stored: Stored) -> None:
        self.store[key] = stored
        self.stored_bytes += stored.size
        while self.stored_bytes > MAX_BYTES:
            _, dropped = self.store.popitem(last=False)
            self.stored_bytes -= dropped.size


def with_security(send: Send, head: bool = False) -> Send:
    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            names = {name.lower() for name, _ in headers}
            message = {
                **message,
                "headers": headers + [pair for pair in SECURITY_HEADERS if pair[0] not in names],
            }
        elif head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return secured


def accepts_gzip(header: bytes) -> bool:
    """Whether the client takes gzip: named (or `*`) without `q=0`.

    >>> accepts_gzip(b"gzip, br"), accepts_gzip(b"gzip;q=0"), accepts_gzip(b"")
    (True, False, False)
    """
    for part in header.lower().split(b","):
        name, _, weight = part.strip().partition(b";")
        if name.strip() in (b"gzip", b"*"):
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False
