"""Crossref, OpenAlex, Semantic Scholar and arXiv: paging to the end, batches, what was promised and did not come."""

import json

from ingest.records import BrokenRecord, Listing
from ingest.references import Reference
from ingest.sources.arxiv import fetch_arxiv
from ingest.sources.crossref_api import fetch_crossref, fetch_pages
from ingest.sources.openalex import fetch_openalex
from ingest.sources.openalex import fetch_pages as openalex_pages
from ingest.sources.semantic_scholar import fetch_s2


def titles(items):
    return [item.title for item in items if isinstance(item, Reference)]


def test_crossref_with_a_shortfall(http, server, answer, recorded):
    server.answers["/works/10.5555%2Fcr.1"] = answer(recorded("crossref/work.json"))
    found, missing, wrong = fetch_crossref(http(), ["10.5555/cr.1", "10.5555/none", "not a doi"])
    assert found.subject.title == "An invented proceedings paper" and found.subject.date == "2024-03-09"
    assert [r.doi for r in found.references] == [None, "10.5555/CR.2"] and found.shortfall == 1
    assert "does not know" in missing.reason and isinstance(wrong, BrokenRecord)


def test_cursor_paging_ends_on_an_empty_page(http, server, answer):
    def page(query, _headers, _body):
        number = 0 if query["cursor"] == "*" else int(query["cursor"])
        items = [{"DOI": f"10.1/{number}.{i}"} for i in range(3)] if number < 12 else []
        return answer({"message": {"items": items, "next-cursor": str(number + 1)}})

    server.answers["/works"] = page
    assert len(list(fetch_pages(http(), {"filter": "x"}))) == 36
    assert all(query["filter"] == "x" for _m, _p, query, _h, _b in server.requests)
    assert len(server.requests) == 13 and all(
        "offset" not in query for _m, _p, query, _h, _b in server.requests
    )


def test_openalex_pages_end_with_the_cursor_even_if_it_repeats(http, server, answer):
    pages = {"*": "b", "b": "c", "c": "b"}
    server.answers["/works"] = lambda query, _h, _b: answer(
        {"meta": {"next_cursor": pages[query["cursor"]]}, "results": [{"id": query["cursor"]}]}
    )
    assert [one["id"] for one, _total in openalex_pages(http(), {})] == ["*", "b", "c"]


def test_a_query_reads_every_page_and_says_what_is_missing(http, server, answer, recorded):
    from ingest.ingest import fetch

    def crossref(query, _headers, _body):
        items = (
            [{"DOI": f"10.1/{n}", "type": "book", "title": [f"Title {n}"]} for n in range(2)]
            if query["cursor"] == "*"
            else []
        )
        return answer({"message": {"items": items, "next-cursor": "b", "total-results": 5}})

    server.answers["/works"] = crossref
    found = list(fetch(http(), "crossref", ["query.bibliographic=paged attention&filter=type:book"]))
    assert titles(found) == ["Title 0", "Title 1"] and "5 works are promised, 2 came" in found[-1].reason
    assert server.requests[0][2]["query.bibliographic"] == "paged attention"
    server.answers["/works"] = answer(
        {**json.loads(recorded("openalex/page.json")), "meta": {"count": 3, "next_cursor": None}}
    )
    found = list(fetch(http(), "openalex", ["filter=cites:W9000"]))
    assert titles(found) == ["The first cited work"] and "3 works are promised, 1 came" in found[-1].reason


def test_openalex_references_deleted_and_merged(http, server, answer, recorded):
    """W9001 is there, W9002 is gone (404), W9003 has become W9009 (301)."""
    server.answers["/works/W9000"] = answer(recorded("openalex/work.json"))
    server.answers["/works"] = answer(recorded("openalex/page.json"))
    server.answers["/works/W9003"] = answer(b"", 301, {"Location": "/works/W9009"})
    server.answers["/works/W9009"] = answer(recorded("openalex/merged.json"))
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


def test_s2_asks_in_one_batch_and_reports_a_shortfall(http, server, answer, recorded):
    batch = json.loads(recorded("s2/batch.json"))
    server.answers["/graph/v1/paper/batch"] = answer([batch[0], *[None] * 19])
    server.answers[f"/graph/v1/paper/{'a' * 40}/references"] = answer(recorded("s2/references.json"))
    found = list(fetch_s2(http(), ["arXiv:2401.00001", *(f"CorpusID:{n}" for n in range(2, 21))]))
    assert server.paths().count("/graph/v1/paper/batch") == 1
    assert json.loads(server.requests[0][4])["ids"][:2] == ["ARXIV:2401.00001", "CorpusId:2"]
    (listing,) = [item for item in found if isinstance(item, Listing)]
    assert listing.subject.arxiv_id == "2401.00001" and titles(listing.references) == ["A cited paper"]
    assert listing.expected == 3 and listing.shortfall == 2
    assert sum(isinstance(item, BrokenRecord) for item in found) == 19


def test_s2_paging_stops_on_an_empty_page(http, server, answer, recorded):
    paper = {**json.loads(recorded("s2/batch.json"))[0], "referenceCount": 1033}

    def page(query, _headers, _body):
        offset = int(query["offset"])
        rows = (
            [{"citedPaper": {"paperId": f"{n:040x}", "title": f"Title {n}"}} for n in range(1000)]
            if offset == 0
            else []
        )
        return answer({"offset": offset, "next": 1000 if offset == 0 else None, "data": rows})

    server.answers["/graph/v1/paper/batch"] = answer([paper])
    server.answers[f"/graph/v1/paper/{'a' * 40}/references"] = page
    (listing,) = fetch_s2(http(), ["2401.00001"])
    assert (len(listing.references), listing.expected, listing.shortfall) == (1000, 1033, 33)


def test_arxiv_asks_for_all_ids_at_once(http, server, answer, recorded):
    server.answers["/api/query"] = answer(recorded("arxiv/feed.xml"))
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


def feed(answer, total, *numbers):
    entries = "".join(
        f"<entry><id>http://arxiv.org/abs/2401.{n:05d}v1</id><title>Title {n}</title><published>2024-01-01T00:00:00Z</published></entry>\n"
        for n in numbers
    )
    head = '<feed xmlns="http://www.w3.org/2005/Atom"><opensearch:totalResults xmlns:opensearch="o">'
    return answer(f"{head}{total}</opensearch:totalResults>{entries}</feed>".encode())


def test_an_empty_page_in_the_middle_is_asked_for_again(http, server, answer):
    server.answers["/api/query"] = [feed(answer, 4, 1, 2), feed(answer, 4), feed(answer, 4, 2, 3, 4)]
    found = list(fetch_arxiv(http(cache=None), [f"2401.0000{n}" for n in (1, 2, 3, 4)]))
    assert titles(found) == ["Title 1", "Title 2", "Title 3", "Title 4"]


def test_what_arxiv_leaves_out_is_reported(http, server, answer):
    server.answers["/api/query"] = [feed(answer, 3, 1, 2), feed(answer, 3)]
    found = list(fetch_arxiv(http(cache=None), ["2401.00001", "2401.00002", "2401.00003"]))
    assert titles(found) == ["Title 1", "Title 2"]
    assert [item.locator for item in found if isinstance(item, BrokenRecord)] == ["arxiv:2401.00003"]


def test_the_whole_way_into_a_database(http, server, tmp_path, answer, recorded):
    from sqlmodel import SQLModel

    import kb.models  # noqa: F401
    from ingest.ingest import ingest
    from kb.db import open_reader, open_session
    from kb.search import search

    server.answers["/works/W9000"] = answer(recorded("openalex/work.json"))
    server.answers["/works"] = answer(recorded("openalex/page.json"))
    server.answers["/works/W9003"] = answer(recorded("openalex/merged.json"))
    server.answers["/api/query"] = answer(recorded("arxiv/feed.xml"))
    path = str(tmp_path / "kb.sqlite")
    with open_session(path) as session:
        SQLModel.metadata.create_all(session.connection())
        outcome = ingest(session, ["openalex:W9000", "arxiv:2401.00001", "arxiv:hep-th/9901001"], http=http())
    told = outcome.as_json()
    assert (told["read"], told["new"]) == (4, 4)
    assert {"read", "new", "matched", "merged", "proposed", "unresolved"} <= told.keys()
    reasons = [one["reason"] for one in told["unresolved"]]
    assert any("404" in reason for reason in reasons) and any(
        "3 references are promised, 2 came" in reason for reason in reasons
    )
    short = next(one for one in told["unresolved"] if "expected" in one)
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
