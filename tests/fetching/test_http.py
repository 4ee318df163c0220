"""One session against a server that misbehaves: limits, breaks, lies, drips, moves; cache, keys and redirects."""

import time
from email.utils import formatdate

import pytest

from ingest.errors import FetchError, RecordMissing

# --- one request ------------------------------------------------------------------------------------------


def test_waits_as_long_as_retry_after_says_then_backs_off(http, server, fake_time, answer):
    server.answers["/works/x"] = [
        answer(status=429, headers={"Retry-After": "2"}),
        answer(status=429),
        answer({"ok": 1}),
    ]
    assert http().get_json("crossref", "/works/x") == {"ok": 1}
    assert len(server.requests) == 3
    waits = [seconds for seconds in fake_time.slept if seconds >= 1]
    assert waits[0] >= 2 and waits[1] >= 1


def test_retry_after_as_a_date(http, server, fake_time, answer):
    server.answers["/works/x"] = [
        answer(status=503, headers={"Retry-After": formatdate(time.time() + 30, usegmt=True)}), answer({"ok": 1})]  # fmt: skip
    http().get_json("crossref", "/works/x")
    assert 25 <= max(fake_time.slept) <= 40


def test_a_wait_of_hours_is_said_instead_of_waited(http, server, fake_time, answer):
    server.answers["/graph/v1/paper/x"] = answer(status=429, headers={"Retry-After": "7200"})
    with pytest.raises(FetchError, match="7200") as caught:
        http().get_json("s2", "/graph/v1/paper/x")
    assert "S2_API_KEY" in caught.value.hint and sum(fake_time.slept) < 10


def test_gives_up_after_a_few_tries_with_a_clear_word(http, server, answer):
    server.answers["/graph/v1/paper/x"] = answer(status=429)
    with pytest.raises(FetchError, match="429") as caught:
        http().get_json("s2", "/graph/v1/paper/x")
    assert len(server.requests) == 5 and "S2_API_KEY" in caught.value.hint


@pytest.mark.parametrize("fault", ["close", "truncate", "hang"])
def test_broken_connections_are_tried_again(http, server, fault, answer):
    server.answers["/works/x"] = [answer({"half": 1}, fault=fault), answer({"ok": 1})]
    assert http(read_timeout_s=0.4).get_json("crossref", "/works/x") == {"ok": 1}


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_server_errors_are_tried_again(http, server, status, answer):
    server.answers["/works/x"] = [answer(b"oops", status), answer({"ok": 1})]
    assert http().get_json("crossref", "/works/x") == {"ok": 1}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_refusals_are_not_tried_again(http, server, status, answer):
    server.answers["/works/x"] = answer(b"bad <b>thing</b>", status)
    with pytest.raises(RecordMissing if status in (404, 410) else FetchError):
        http().get_json("crossref", "/works/x")
    assert len(server.requests) == 1


def test_html_instead_of_json_is_asked_for_once_more(http, server, answer):
    server.answers["/works/x"] = [answer(b"<html>busy</html>"), answer({"ok": 1})]
    assert http().get_json("crossref", "/works/x") == {"ok": 1}
    server.answers["/works/y"] = answer(b"<html>busy</html>")
    with pytest.raises(FetchError, match="not JSON"):
        http().get_json("crossref", "/works/y")


def test_too_large_an_answer_is_cut_off(http, server, answer):
    server.answers["/works/x"] = answer(b"x" * 200_000)
    with pytest.raises(FetchError, match="more than"):
        http(max_bytes=100_000).get_json("crossref", "/works/x")


def test_no_network_is_said_in_one_line(http):
    with pytest.raises(FetchError, match="cannot reach") as caught:
        http(environ={"KB_CROSSREF_URL": "http://127.0.0.1:1"}).get_json("crossref", "/works/x")
    assert "kb ingest FILE" in caught.value.hint and "\n" not in caught.value.message


def test_pace_between_requests(http, server, fake_time, answer):
    server.answers["/api/query"] = answer(b"<feed/>")
    asking = http(cache=None)
    for _ in range(3):
        asking.get_text("arxiv", "/api/query")
    assert sum(fake_time.slept) == pytest.approx(6.0)  # arXiv: three seconds between requests


def test_limits_in_headers_set_the_pace(http, server, fake_time, answer):
    server.answers["/works/x"] = answer(
        {}, headers={"X-Rate-Limit-Limit": "2", "X-Rate-Limit-Interval": "1s"}
    )
    asking = http(cache=None)
    for _ in range(4):
        asking.get_json("crossref", "/works/x")
    assert fake_time.slept[-1] == pytest.approx(0.5)
    server.answers["/works/W1"] = answer(
        {}, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "20"}
    )
    before = fake_time.now
    asking.get_json("openalex", "/works/W1")
    asking.get_json("openalex", "/works/W1")
    assert fake_time.now - before >= 20


# --- cache ------------------------------------------------------------------------------------------------


def test_answers_are_kept_and_revalidated(http, server, answer):
    def revalidated(_query, headers, _body):
        if headers.get("If-None-Match") == '"v1"' and headers.get("If-Modified-Since"):
            return answer(b"", 304, {"ETag": '"v1"'})
        return answer(
            {"n": 1},
            headers={
                "ETag": '"v1"',
                "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
                "Cache-Control": "no-cache",
            },
        )

    server.answers["/works/x"] = revalidated
    assert http().get_json("crossref", "/works/x") == {"n": 1}
    assert http().get_json("crossref", "/works/x") == {"n": 1}
    assert "If-None-Match" in server.requests[1][3]


def test_fresh_answers_are_not_asked_for_again(http, server, answer):
    server.answers["/works/x"] = answer({"n": 1})
    assert http().get_json("crossref", "/works/x") == http().get_json("crossref", "/works/x")
    assert len(server.requests) == 1


def test_no_store_is_obeyed_and_damaged_files_do_not_matter(http, server, tmp_path, answer):
    server.answers["/works/x"] = answer({"n": 1}, headers={"Cache-Control": "no-store"})
    http().get_json("crossref", "/works/x")
    assert not list((tmp_path / "cache").glob("*.answer"))
    server.answers["/works/y"] = answer({"n": 2})
    http().get_json("crossref", "/works/y")
    (kept,) = (tmp_path / "cache").glob("*.answer")
    kept.write_bytes(kept.read_bytes()[:-3])
    assert http().get_json("crossref", "/works/y") == {"n": 2}
    assert len(server.requests) == 3


# --- keys and redirects -----------------------------------------------------------------------------------


def test_keys_go_to_the_provider_only(http, server, another_server, tmp_path, answer):
    another_server.answers["/moved"] = answer({"n": 1})
    server.answers["/graph/v1/paper/x"] = answer(b"", 302, {"Location": f"{another_server.url}/moved"})
    server.answers["/works/W1"] = answer({"n": 2})
    asking = http(
        environ={"S2_API_KEY": "secret-1", "OPENALEX_API_KEY": "secret-2", "KB_MAILTO": "me@example.org"}
    )
    assert asking.get_json("s2", "/graph/v1/paper/x") == {"n": 1}
    asking.get_json("openalex", "/works/W1")
    assert server.requests[0][3]["x-api-key"] == "secret-1"
    assert server.requests[1][2] == {"api_key": "secret-2", "mailto": "me@example.org"}
    assert "me@example.org" in server.requests[0][3]["User-Agent"]
    assert "secret" not in str(another_server.requests)
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "cache").iterdir())


def test_a_refused_key_is_named(http, server, answer):
    server.answers["/graph/v1/paper/x"] = answer(status=403)
    with pytest.raises(FetchError) as caught:
        http(environ={"S2_API_KEY": "wrong"}).get_json("s2", "/graph/v1/paper/x")
    assert "S2_API_KEY" in caught.value.hint and "wrong" not in caught.value.message + caught.value.hint


def test_redirects_that_never_end(http, server, answer):
    server.answers["/works/x"] = answer(b"", 301, {"Location": "/works/x"})
    with pytest.raises(FetchError, match="redirects"):
        http().get_json("crossref", "/works/x")
