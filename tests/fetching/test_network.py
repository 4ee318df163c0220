"""Without a network: every provider, every way in which a connection fails, one line that says so and what to do."""

import os
import socket
import subprocess
import sys

import pytest
import requests

from ingest.errors import FetchError, IngestError, NoNetwork
from ingest.http import PROVIDERS
from ingest.ingest import ingest
from ingest.network import reason

ASKED = ["doi:10.1145/3600006.3613165", "arxiv:2309.06180", "openalex:W2741809807", "s2:CorpusID:215416146"]
CLOSED = "http://127.0.0.1:1"  # nothing listens on tcpmux
NOWHERE = "http://kb-test.invalid"  # RFC 2606: this name never resolves


@pytest.fixture
def silent():
    """A port that takes connections and never answers."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=16)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()


@pytest.mark.parametrize("source", ASKED)
def test_a_closed_port_is_no_network_for_every_provider(http, source):
    with pytest.raises(
        NoNetwork, match=r"no network: cannot reach 127\.0\.0\.1:1 \(the connection is refused\)"
    ) as caught:
        ingest(None, [source], http=http(CLOSED))  # fmt: skip
    assert "kb ingest FILE" in caught.value.hint and "identifier" not in caught.value.hint


@pytest.mark.parametrize("source", ASKED)
def test_a_proxy_that_is_not_there(http, source, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, CLOSED)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NoNetwork, match="the proxy does not let us through") as caught:
        ingest(None, [source], http=http(NOWHERE))
    assert "HTTPS_PROXY" in caught.value.hint


@pytest.mark.parametrize("source", ASKED)
def test_silence_is_no_network_too(http, silent, source):
    with pytest.raises(NoNetwork, match=r"no answer within 0\.05 s, 5 times"):
        ingest(None, [source], http=http(silent, read_timeout_s=0.05))


def fails_with(error):
    def request(*_arguments, **_options):
        raise error

    return request


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            requests.exceptions.ConnectionError("NameResolutionError: Failed to resolve 'x'"),
            "its name is not found",
        ),
        (
            requests.exceptions.ConnectionError("[Errno 101] Failed to establish a new connection"),
            "no route to it",
        ),
        (
            requests.exceptions.ConnectTimeout("ConnectTimeoutError(timed out)"),
            "no connection within the time limit",
        ),
        (
            requests.exceptions.SSLError("CERTIFICATE_VERIFY_FAILED: self-signed"),
            "its certificate is not trusted here",
        ),
        (
            requests.exceptions.ProxyError("Tunnel connection failed: 403 Forbidden"),
            "the proxy does not let us through",
        ),
    ],
)
def test_each_way_to_fail_has_its_word(http, monkeypatch, error, said):
    asking = http(NOWHERE)
    monkeypatch.setattr(asking.session, "request", fails_with(error))
    assert reason(error) == said
    with pytest.raises(NoNetwork, match=said) as caught:
        ingest(None, [ASKED[0]], http=asking)
    assert "\n" not in caught.value.message and "kb ingest FILE" in caught.value.hint


def test_a_connection_that_breaks_later_is_not_called_a_missing_network():
    assert reason(requests.exceptions.ConnectionError("Connection aborted", ConnectionResetError())) == ""


def test_an_identifier_that_is_none_is_still_called_so(http):
    with pytest.raises(IngestError, match="not a DOI") as caught:
        ingest(None, ["doi:banana"], http=http(CLOSED))
    assert caught.value.hint == "check the identifier" and not isinstance(caught.value, FetchError)


@pytest.mark.parametrize("source", ASKED)
def test_the_command_says_so_and_ends_with_2(database, source):
    addresses = {provider.url_variable: CLOSED for provider in PROVIDERS.values()}
    environ = {**os.environ, **addresses, "KB_DATABASE_URL": database}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kb.cli", "ingest", source, "--quiet"], capture_output=True, text=True, env=environ
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert "no network" in done.stderr and "kb ingest FILE" in done.stderr and "identifier" not in done.stderr


def test_a_database_without_its_driver_is_said_in_one_line(monkeypatch):
    from kb.db import make_engine
    from kb.errors import DatabaseError

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseError, match="driver psycopg is not installed") as caught:
        make_engine("postgresql://nobody@127.0.0.1:1/kb")
    assert "[postgresql]" in caught.value.hint
