"""A local server that misbehaves on demand, a clock that only sleeping moves, and our session between them."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ingest.http import PROVIDERS, Http
from ingest.http_cache import Cache

RECORDED = Path(__file__).parent.parent / "recorded"


@pytest.fixture
def recorded():
    """The bytes of a recorded answer, by its path."""
    return lambda name: (RECORDED / name).read_bytes()


@pytest.fixture
def answer():
    """What the server is to send: `answer(body, status, headers, fault)`."""
    return Answer


class Answer:
    def __init__(self, body=b"{}", status=200, headers=None, fault=""):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.headers, self.fault = status, headers or {}, fault


class Server:
    """Answers by path: a list is used up one by one, its last one stays; a function is called with the query."""

    def __init__(self):
        self.answers, self.requests = {}, []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                parts = urlsplit(self.path)
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                query = {k: v[0] for k, v in parse_qs(parts.query).items()}
                outer.requests.append((self.command, parts.path, query, dict(self.headers), body))
                found = outer.answers.get(parts.path, Answer(b"no such page", 404))
                if callable(found):
                    found = found(query, dict(self.headers), body)
                if isinstance(found, list):
                    found = found.pop(0) if len(found) > 1 else found[0]
                self.reply(found)

            do_GET = do_POST = handle_one

            def reply(self, answer):
                if answer.fault == "close":
                    self.close_connection = True
                    self.connection.close()
                    return
                if answer.fault == "hang":
                    time.sleep(1.5)
                self.send_response(answer.status)
                size = len(answer.body) + (1000 if answer.fault == "truncate" else 0)
                for name, value in {"Content-Length": str(size), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer.body)
                if answer.fault == "truncate":
                    self.close_connection = True

            def log_message(self, *_arguments):
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_arguments):
                pass

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(
            target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def paths(self):
        return [path for _method, path, _query, _headers, _body in self.requests]


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now, self.slept = 1000.0, []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def clock(self):
        return self.now


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


another_server = server  # where a redirect leads to


@pytest.fixture
def fake_time():
    return Time()


@pytest.fixture
def http(server, fake_time, tmp_path):
    made = []

    def make(url=server.url, *, environ=None, **options):
        addresses = {provider.url_variable: url for provider in PROVIDERS.values()}
        one = Http(
            environ=addresses | (environ or {}), sleep=fake_time.sleep, clock=fake_time.clock, jitter=lambda: 0.5,
            **{"cache": Cache(tmp_path / "cache"), **options},
        )  # fmt: skip
        made.append(one)
        return one

    yield make
    for one in made:
        one.session.close()
