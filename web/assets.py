"""Static files from memory under names that carry their content's hash; plotly.js from the installed package."""

from __future__ import annotations

import gzip
import hashlib
import threading
from importlib.metadata import version
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from web.cache import accepts_gzip

TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"


class Assets:
    """`url("style.css")` → `/static/style-<hash>.css`; the old name stays valid while the process lives."""

    def __init__(self) -> None:
        self.content: dict[str, tuple[bytes, bytes, str]] = {}
        self.names: dict[str, str] = {}
        for entry in sorted((files("web") / "static").iterdir(), key=lambda each: each.name):
            if not entry.is_file():
                continue
            stem, _, extension = entry.name.rpartition(".")
            body = entry.read_bytes()
            name = f"{stem}-{hashlib.sha256(body).hexdigest()[:10]}.{extension}"
            self.names[entry.name] = name
            self.content[name] = (body, gzip.compress(body, 9, mtime=0), TYPES[extension])
        self.plotly_name = f"plotly-{version('plotly')}.min.js"
        self._lock = threading.Lock()

    def url(self, name: str) -> str:
        return f"/static/{self.names[name]}"

    @property
    def plotly_url(self) -> str:
        return f"/static/{self.plotly_name}"

    def load_plotly(self) -> None:
        """5 MB: read and compressed once, when the first reader asks to explore a chart."""
        with self._lock:
            if self.plotly_name not in self.content:
                body = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
                self.content[self.plotly_name] = (body, gzip.compress(body, 6, mtime=0), TYPES["js"])

    def respond(self, name: str, request: Request) -> Response | None:
        if name == self.plotly_name:
            self.load_plotly()
        found = self.content.get(name)
        if found is None:
            return None
        body, zipped, kind = found
        etag = f'"{name}"'
        headers = {"cache-control": FOREVER, "etag": etag, "vary": "accept-encoding"}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if accepts_gzip(request.headers.get("accept-encoding", "").encode("latin-1")):
            return Response(zipped, headers=headers | {"content-encoding": "gzip"}, media_type=kind)
        return Response(body, headers=headers, media_type=kind)
