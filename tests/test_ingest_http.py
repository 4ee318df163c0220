"""Fetching against a local server that misbehaves: limits, breaks, lies, drips, moves, promises too much."""

import json
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ingest.errors import FetchError, RecordMissing
from ingest.http import Http
from ingest.http_cache import Cache
from ingest.records import BrokenRecord, Listing
from ingest.references import Reference
from ingest.sources.arxiv import fetch_arxiv
from ingest.sources.crossref_api import fetch_crossref, fetch_pages
from ingest.sources.openalex import fetch_openalex
from ingest.sources.openalex import fetch_pages as openalex_pages
from ingest.sources.semantic_scholar import fetch_s2

RECORDED = Path(__file__).parent / "recorded"


def recorded(name):
    return (RECORDED / name).read_bytes()


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


@pytest.fixture
def fake_time():
    return Time()


@pytest.fixture
def http(server, fake_time, tmp_path):
    made = []

    def make(**options):
        environ = {f"KB_{name}_URL": server.url for name in ("ARXIV", "CROSSREF", "OPENALEX", "S2")}
        environ.update(options.pop("environ", {}))
        one = Http(
            environ=environ, sleep=fake_time.sleep, clock=fake_time.clock, jitter=lambda: 0.5,
            **{"cache": Cache(tmp_path / "cache"), **options},
        )  # fmt: skip
        made.append(one)
        return one

    yield make
    for one in made:
        one.session.close()


def titles(items):
    return [item.title for item in items if isinstance(item, Reference)]


# --- one request ------------------------------------------------------------------------------------------


def test_waits_as_long_as_retry_after_says_then_backs_off(http, server, fake_time):
    server.answers["/works/x"] = [
        Answer(status=429, headers={"Retry-After": "2"}),
        Answer(status=429),
        Answer({"ok": 1}),
    ]
    assert http().get_json("crossref", "/works/x") == {"ok": 1}
    assert len(server.requests) == 3
    waits = [seconds for seconds in fake_time.slept if seconds >= 1]
    assert waits[0] >= 2 and waits[1] >= 1


def test_retry_after_as_a_date(http, server, fake_time):
    server.answers["/works/x"] = [
        Answer(status=503, headers={"Retry-After": formatdate(time.time() + 30, usegmt=True)}), Answer({"ok": 1})]  # fmt: skip
    http().get_json("crossref", "/works/x")
    assert 25 <= max(fake_time.slept) <= 40


def test_a_wait_of_hours_is_said_instead_of_waited(http, server, fake_time):
    server.answers["/graph/v1/paper/x"] = Answer(status=429, headers={"Retry-After": "7200"})
    with pytest.raises(FetchError, match="7200") as caught:
        http().get_json("s2", "/graph/v1/paper/x")
    assert "S2_API_KEY" in caught.value.hint and sum(fake_time.slept) < 10


def test_gives_up_after_a_few_tries_with_a_clear_word(http, server):
    server.answers["/graph/v1/paper/x"] = Answer(status=429)
    with pytest.raises(FetchError, match="429") as caught:
        http().get_json("s2", "/graph/v1/paper/x")
    assert len(server.requests) == 5 and "S2_API_KEY" in caught.value.hint


@pytest.mark.parametrize("fault", ["close", "truncate", "hang"])
def test_broken_connections_are_tried_again(http, server, fault):
    server.answers["/works/x"] = [Answer({"half": 1}, fault=fault), Answer({"ok": 1})]
    assert http(read_timeout_s=0.4).get_json("crossref", "/works/x") == {"ok": 1}


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_server_errors_are_tried_again(http, server, status):
    server.answers["/works/x"] = [Answer(b"oops", status), Answer({"ok": 1})]
    assert http().get_json("crossref", "/works/x") == {"ok": 1}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_refusals_are_not_tried_again(http, server, status):
    server.answers["/works/x"] = Answer(b"bad <b>thing</b>", status)
    with pytest.raises(RecordMissing if status in (404, 410) else FetchError):
        http().get_json("crossref", "/works/x")
    assert len(server.requests) == 1


def test_html_instead_of_json_is_asked_for_once_more(http, server):
    server.answers["/works/x"] = [Answer(b"<html>busy</html>"), Answer({"ok": 1})]
    assert http().get_json("crossref", "/works/x") == {"ok": 1}
    server.answers["/works/y"] = Answer(b"<html>busy</html>")
    with pytest.raises(FetchError, match="not JSON"):
        http().get_json("crossref", "/works/y")


def test_too_large_an_answer_is_cut_off(http, server):
    server.answers["/works/x"] = Answer(b"x" * 200_000)
    with pytest.raises(FetchError, match="more than"):
        http(max_bytes=100_000).get_json("crossref", "/works/x")


def test_no_network_is_said_in_one_line(http):
    with pytest.raises(FetchError, match="cannot reach") as caught:
        http(environ={"KB_CROSSREF_URL": "http://127.0.0.1:1"}).get_json("crossref", "/works/x")
    assert "kb ingest FILE" in caught.value.hint and "\n" not in caught.value.message


def test_pace_between_requests(http, server, fake_time):
    server.answers["/api/query"] = Answer(b"<feed/>")
    asking = http(cache=None)
    for _ in range(3):
        asking.get_text("arxiv", "/api/query")
    assert sum(fake_time.slept) == pytest.approx(6.0)  # arXiv: three seconds between requests


def test_limits_in_headers_set_the_pace(http, server, fake_time):
    server.answers["/works/x"] = Answer(
        {}, headers={"X-Rate-Limit-Limit": "2", "X-Rate-Limit-Interval": "1s"}
    )
    asking = http(cache=None)
    for _ in range(4):
        asking.get_json("crossref", "/works/x")
    assert fake_time.slept[-1] == pytest.approx(0.5)
    server.answers["/works/W1"] = Answer(
        {}, headers={"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "20"}
    )
    before = fake_time.now
    asking.get_json("openalex", "/works/W1")
    asking.get_json("openalex", "/works/W1")
    assert fake_time.now - before >= 20


# --- cache ------------------------------------------------------------------------------------------------


def test_answers_are_kept_and_revalidated(http, server):
    def answer(_query, headers, _body):
        if headers.get("If-None-Match") == '"v1"' and headers.get("If-Modified-Since"):
            return Answer(b"", 304, {"ETag": '"v1"'})
        return Answer(
            {"n": 1},
            headers={
                "ETag": '"v1"',
                "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
                "Cache-Control": "no-cache",
            },
        )

    server.answers["/works/x"] = answer
    assert http().get_json("crossref", "/works/x") == {"n": 1}
    assert http().get_json("crossref", "/works/x") == {"n": 1}
    assert "If-None-Match" in server.requests[1][3]


def test_fresh_answers_are_not_asked_for_again(http, server):
    server.answers["/works/x"] = Answer({"n": 1})
    assert http().get_json("crossref", "/works/x") == http().get_json("crossref", "/works/x")
    assert len(server.requests) == 1


def test_no_store_is_obeyed_and_damaged_files_do_not_matter(http, server, tmp_path):
    server.answers["/works/x"] = Answer({"n": 1}, headers={"Cache-Control": "no-store"})
    http().get_json("crossref", "/works/x")
    assert not list((tmp_path / "cache").glob("*.answer"))
    server.answers["/works/y"] = Answer({"n": 2})
    http().get_json("crossref", "/works/y")
    (kept,) = (tmp_path / "cache").glob("*.answer")
    kept.write_bytes(kept.read_bytes()[:-3])
    assert http().get_json("crossref", "/works/y") == {"n": 2}
    assert len(server.requests) == 3


# --- keys and redirects -----------------------------------------------------------------------------------


def test_keys_go_to_the_provider_only(http, server, tmp_path):
    other = Server()
    other.answers["/moved"] = Answer({"n": 1})
    server.answers["/graph/v1/paper/x"] = Answer(b"", 302, {"Location": f"{other.url}/moved"})
    server.answers["/works/W1"] = Answer({"n": 2})
    asking = http(
        environ={"S2_API_KEY": "secret-1", "OPENALEX_API_KEY": "secret-2", "KB_MAILTO": "me@example.org"}
    )
    try:
        assert asking.get_json("s2", "/graph/v1/paper/x") == {"n": 1}
    finally:
        other.close()
    asking.get_json("openalex", "/works/W1")
    assert server.requests[0][3]["x-api-key"] == "secret-1"
    assert server.requests[1][2] == {"api_key": "secret-2", "mailto": "me@example.org"}
    assert "me@example.org" in server.requests[0][3]["User-Agent"]
    assert "secret" not in str(other.requests)
    assert not any(b"secret" in path.read_bytes() for path in (tmp_path / "cache").iterdir())


def test_a_refused_key_is_named(http, server):
    server.answers["/graph/v1/paper/x"] = Answer(status=403)
    with pytest.raises(FetchError) as caught:
        http(environ={"S2_API_KEY": "wrong"}).get_json("s2", "/graph/v1/paper/x")
    assert "S2_API_KEY" in caught.value.hint and "wrong" not in caught.value.message + caught.value.hint


def test_redirects_that_never_end(http, server):
    server.answers["/works/x"] = Answer(b"", 301, {"Location": "/works/x"})
    with pytest.raises(FetchError, match="redirects"):
        http().get_json("crossref", "/works/x")


# --- providers --------------------------------------------------------------------------------------------


def test_crossref_with_a_shortfall(http, server):
    server.answers["/works/10.5555%2Fcr.1"] = Answer(recorded("crossref/work.json"))
    found, missing, wrong = fetch_crossref(http(), ["10.5555/cr.1", "10.5555/none", "not a doi"])
    assert found.subject.title == "An invented proceedings paper" and found.subject.date == "2024-03-09"
    assert [r.doi for r in found.references] == [None, "10.5555/CR.2"] and found.shortfall == 1
    assert "does not know" in missing.reason and isinstance(wrong, BrokenRecord)


def test_cursor_paging_ends_on_an_empty_page(http, server):
    def page(query, _headers, _body):
        number = 0 if query["cursor"] == "*" else int(query["cursor"])
        items = [{"DOI": f"10.1/{number}.{i}"} for i in range(3)] if number < 12 else []
        return Answer({"message": {"items": items, "next-cursor": str(number + 1)}})

    server.answers["/works"] = page
    assert len(list(fetch_pages(http(), {"filter": "x"}))) == 36
    assert all(query["filter"] == "x" for _m, _p, query, _h, _b in server.requests)
    assert len(server.requests) == 13 and all(
        "offset" not in query for _m, _p, query, _h, _b in server.requests
    )


def test_openalex_pages_end_with_the_cursor_even_if_it_repeats(http, server):
    pages = {"*": "b", "b": "c", "c": "b"}
    server.answers["/works"] = lambda query, _h, _b: Answer(
        {"meta": {"next_cursor": pages[query["cursor"]]}, "results": [{"id": query["cursor"]}]}
    )
    assert [one["id"] for one, _total in openalex_pages(http(), {})] == ["*", "b", "c"]


def test_a_query_reads_every_page_and_says_what_is_missing(http, server):
    from ingest.ingest import fetch

    def crossref(query, _headers, _body):
        items = (
            [{"DOI": f"10.1/{n}", "type": "book", "title": [f"Title {n}"]} for n in range(2)]
            if query["cursor"] == "*"
            else []
        )
        return Answer({"message": {"items": items, "next-cursor": "b", "total-results": 5}})

    server.answers["/works"] = crossref
    found = list(fetch(http(), "crossref", ["query.bibliographic=paged attention&filter=type:book"]))
    assert titles(found) == ["Title 0", "Title 1"] and "5 works are promised, 2 came" in found[-1].reason
    assert server.requests[0][2]["query.bibliographic"] == "paged attention"
    server.answers["/works"] = Answer(
        {**json.loads(recorded("openalex/page.json")), "meta": {"count": 3, "next_cursor": None}}
    )
    found = list(fetch(http(), "openalex", ["filter=cites:W9000"]))
    assert titles(found) == ["The first cited work"] and "3 works are promised, 1 came" in found[-1].reason


def test_openalex_references_deleted_and_merged(http, server):
    """W9001 is there, W9002 is gone (404), W9003 has become W9009 (301)."""
    server.answers["/works/W9000"] = Answer(recorded("openalex/work.json"))
    server.answers["/works"] = Answer(recorded("openalex/page.json"))
    server.answers["/works/W9003"] = Answer(b"", 301, {"Location": "/works/W9009"})
    server.answers["/works/W9009"] = Answer(recorded("openalex/merged.json"))
    (listing,) = fetch_openalex(http(), ["W9000"])
    assert titles(listing.references) == ["The first cited work", "The work that W9003 became"]
    (gone,) = [item for item in listing.references if isinstance(item, BrokenRecord)]
    assert "W9002" in gone.locator and listing.expected == 3 and listing.shortfall == 1
    work = listing.subject
    assert (work.openalex_id, work.doi, work.venue, work.pages, work.date) == (
        "W9000",
        "10.5555/oa.9000",
        "Journal of Invented Results",
        "11–19",
        "2024-05-01",
    )
    assert [a["family"] for a in work.authors] == [
        "van der Berg",
        "Wei",
    ] and work.abstract == "Invented results."


def test_s2_asks_in_one_batch_and_reports_a_shortfall(http, server):
    batch = json.loads(recorded("s2/batch.json"))
    server.answers["/graph/v1/paper/batch"] = Answer([batch[0], *[None] * 19])
    server.answers[f"/graph/v1/paper/{'a' * 40}/references"] = Answer(recorded("s2/references.json"))
    found = list(fetch_s2(http(), ["arXiv:2401.00001", *(f"CorpusID:{n}" for n in range(2, 21))]))
    assert server.paths().count("/graph/v1/paper/batch") == 1
    assert json.loads(server.requests[0][4])["ids"][:2] == ["ARXIV:2401.00001", "CorpusId:2"]
    (listing,) = [item for item in found if isinstance(item, Listing)]
    assert listing.subject.arxiv_id == "2401.00001" and titles(listing.references) == ["A cited paper"]
    assert listing.expected == 3 and listing.shortfall == 2
    assert sum(isinstance(item, BrokenRecord) for item in found) == 19


def test_s2_paging_stops_on_an_empty_page(http, server):
    paper = {**json.loads(recorded("s2/batch.json"))[0], "referenceCount": 1033}

    def page(query, _headers, _body):
        offset = int(query["offset"])
        rows = (
            [{"citedPaper": {"paperId": f"{n:040x}", "title": f"Title {n}"}} for n in range(1000)]
            if offset == 0
            else []
        )
        return Answer({"offset": offset, "next": 1000 if offset == 0 else None, "data": rows})

    server.answers["/graph/v1/paper/batch"] = Answer([paper])
    server.answers[f"/graph/v1/paper/{'a' * 40}/references"] = page
    (listing,) = fetch_s2(http(), ["2401.00001"])
    assert (len(listing.references), listing.expected, listing.shortfall) == (1000, 1033, 33)


def test_arxiv_asks_for_all_ids_at_once(http, server):
    server.answers["/api/query"] = Answer(recorded("arxiv/feed.xml"))
    found = list(fetch_arxiv(http(), ["2401.00001v2", "hep-th/9901001", "nonsense"]))
    assert titles(found) == ["An invented preprint", "An invented old preprint"]
    assert server.requests[0][2]["id_list"] == "2401.00001v2,hep-th/9901001" and len(server.requests) == 1
    assert [item.locator for item in found if isinstance(item, BrokenRecord)] == ["arxiv:nonsense"]
    first = next(item for item in found if isinstance(item, Reference))
    assert (first.arxiv_id, first.arxiv_version, first.doi, first.date) == (
        "2401.00001",
        2,
        "10.5555/ax.1",
        "2024-01-02",
    )


def feed(total, *numbers):
    entries = "".join(
        f"<entry><id>http://arxiv.org/abs/2401.{n:05d}v1</id><title>Title {n}</title><published>2024-01-01T00:00:00Z</published></entry>\n"
        for n in numbers
    )
    head = '<feed xmlns="http://www.w3.org/2005/Atom"><opensearch:totalResults xmlns:opensearch="o">'
    return Answer(f"{head}{total}</opensearch:totalResults>{entries}</feed>".encode())


def test_an_empty_page_in_the_middle_is_asked_for_again(http, server):
    server.answers["/api/query"] = [feed(4, 1, 2), feed(4), feed(4, 2, 3, 4)]
    found = list(fetch_arxiv(http(cache=None), [f"2401.0000{n}" for n in (1, 2, 3, 4)]))
    assert titles(found) == ["Title 1", "Title 2", "Title 3", "Title 4"]


def test_what_arxiv_leaves_out_is_reported(http, server):
    server.answers["/api/query"] = [feed(3, 1, 2), feed(3)]
    found = list(fetch_arxiv(http(cache=None), ["2401.00001", "2401.00002", "2401.00003"]))
    assert titles(found) == ["Title 1", "Title 2"]
    assert [item.locator for item in found if isinstance(item, BrokenRecord)] == ["arxiv:2401.00003"]


def test_the_whole_way_into_a_database(http, server, tmp_path):
    from sqlmodel import SQLModel

    import kb.models  # noqa: F401
    from ingest.ingest import ingest
    from kb.db import open_reader, open_session
    from kb.search import search

    server.answers["/works/W9000"] = Answer(recorded("openalex/work.json"))
    server.answers["/works"] = Answer(recorded("openalex/page.json"))
    server.answers["/works/W9003"] = Answer(recorded("openalex/merged.json"))
    server.answers["/api/query"] = Answer(recorded("arxiv/feed.xml"))
    path = str(tmp_path / "kb.sqlite")
    with open_session(path) as session:
        SQLModel.metadata.create_all(session.connection())
        outcome = ingest(session, ["openalex:W9000", "arxiv:2401.00001", "arxiv:hep-th/9901001"], http=http())
    answer = outcome.as_json()
    assert (answer["read"], answer["new"]) == (4, 4)
    assert {"read", "new", "matched", "merged", "proposed", "unresolved"} <= answer.keys()
    reasons = [one["reason"] for one in answer["unresolved"]]
    assert any("404" in reason for reason in reasons) and any(
        "3 references are promised, 2 came" in reason for reason in reasons
    )
    short = next(one for one in answer["unresolved"] if "expected" in one)
    assert (short["complete"], short["fetched"], short["expected"]) == (False, 2, 3)
    reader = open_reader(path)
    assert search(reader, "invented preprint")["total"] == 2
    assert reader.one("SELECT count(*) AS n FROM citation")["n"] == 2
    assert reader.one("SELECT count(*) AS n FROM survey")["n"] == 0
    reader.close()
    with open_session(path) as session:  # again: nothing new
        again = ingest(
            session, ["openalex:W9000", "arxiv:2401.00001", "arxiv:hep-th/9901001"], http=http()
        ).as_json()
    assert again["new"] == 0 and again["known"] == 4
