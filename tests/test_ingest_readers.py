"""Recognising sources by their content, and what each provider states."""

import gzip
import io
import json

import pytest

from ingest.errors import UnreadableSource
from ingest.records import BrokenRecord, Listing, read_date
from ingest.sources.csl import parse_csl_item
from ingest.sources.detect import open_source


def opened(content):
    source = open_source(io.BytesIO(content if isinstance(content, bytes) else content.encode()))
    return source.kind, list(source.items)


def families(reference):
    return [author["family"] for author in reference.authors]


def test_csl_names_and_dates():
    r = parse_csl_item(
        {
            "id": "x", "type": "article-journal", "title": "RETRACTED: T", "container-title": "J", "page": "1-9",
            "author": [{"family": "Berg", "non-dropping-particle": "van der", "given": "Jan"}, {"literal": "OpenAI Team"},
                       {"family": "al-Hakim"}, "Doe, Jane"],
            "issued": {"date-parts": [["2016", "10"]]}, "DOI": "10.1000/X", "number": "arXiv:1601.07616",
        }
    )  # fmt: skip
    assert families(r) == ["van der Berg", "OpenAI Team", "al-Hakim", "Doe"]
    assert (r.title, r.status, r.date, r.pages, r.arxiv_id, r.doi) == (
        "T",
        "retracted",
        "2016-10",
        "1–9",
        "1601.07616",
        "10.1000/X",
    )


@pytest.mark.parametrize(
    "issued, date",
    [({"date-parts": [[2016, 10]]}, "2016-10"), ({"date-parts": [[2024]]}, "2024"), ({"date-parts": [[None]]}, ""), ({"date-parts": []}, ""),
     ({"raw": "March 2020"}, "2020-03"), ({"literal": "n.d."}, ""), ("2020-01-02", "2020-01-02"), (None, ""), ({"date-parts": [["x", 1]]}, "")],
)  # fmt: skip
def test_csl_dates(issued, date):
    assert parse_csl_item({"type": "book", "title": "T", "issued": issued}).date == date


def test_dates_of_exports():
    assert [read_date(t) for t in ("2023/04/01/Spring", "c. 1999", "Sept 2001", "2001 Sep 5", "31/12/2020", "12/31/2020", "")] == [
        "2023-04-01", "1999", "2001-09", "2001-09-05", "2020-12-31", "2020-12-31", ""]  # fmt: skip


ATOM = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>ArXiv Query</title>
<entry><id>http://arxiv.org/abs/2309.06180v1</id><title>Paged
  attention</title><published>2023-09-12T12:50:04Z</published><author><name>Woosuk Kwon</name></author>
  <author><name>Jan van der Berg</name></author><summary>Abstract &amp; more</summary></entry>
<entry><id>http://arxiv.org/abs/quant-ph/0112019v1</id><title>Broken < wrong</title></entry>
<entry><id>http://arxiv.org/abs/2101.03961v3</id><title>Switch</title><published>2021-01-11T00:00:00Z</published></entry>
</feed>"""
OPENALEX = {
    "id": "https://openalex.org/W2741809807", "doi": "https://doi.org/10.7717/peerj.4375", "title": "State of OA", "publication_year": 2018,
    "publication_date": "2018-02-13", "authorships": [{"author": {"display_name": "Heather Piwowar"}}], "is_retracted": True,
    "primary_location": {"source": {"display_name": "PeerJ"}}, "abstract_inverted_index": {"b": [1], "a": [0]}, "type": "article",
}  # fmt: skip
S2 = {"paperId": "a" * 40, "externalIds": {"ArXiv": "1706.03762", "DOI": "10.48550/arXiv.1706.03762"}, "title": "Attention", "year": 2017,
      "authors": [{"name": "Ashish Vaswani"}], "referenceCount": 3, "references": [{"paperId": "b" * 40, "title": "Cited"}, {"paperId": None}]}  # fmt: skip
CROSSREF = {"message-type": "work", "message": {"DOI": "10.1145/1", "type": "journal-article", "title": ["A work"], "reference-count": 2,
            "reference": [{"key": "k1", "unstructured": "A. Bee. 2020. Title of one. In Venue."}]}}  # fmt: skip
CSL = [
    {"id": "a", "type": "article-journal", "title": "One"},
    {"id": "b", "type": "book"},
    {"id": "c", "type": "book", "title": "Three"},
]
PAGE = "A survey\n\nReferences\n\n1. A. Bee, “Title of one,” 2020.\n2. C. Dee, “Title of two,” 2021.\n"


@pytest.mark.parametrize(
    "content, kind, titles, broken",
    [
        (ATOM, "arxiv", ["Paged attention", "Switch"], 1),
        (json.dumps(OPENALEX), "openalex", ["State of OA"], 0),
        (json.dumps({"meta": {"count": 1}, "results": [OPENALEX]}), "openalex", ["State of OA"], 0),
        (json.dumps(S2), "s2", ["Attention"], 0),
        (json.dumps({"data": [{"citedPaper": S2}]}), "s2", ["Attention"], 0),
        (json.dumps(CROSSREF), "crossref", ["A work"], 0),
        (json.dumps({"message": {"items": [CROSSREF["message"]]}}), "crossref", ["A work"], 0),
        (json.dumps(CSL), "csl-json", ["One", "Three"], 1),
        (json.dumps(CSL, indent=2), "csl-json", ["One", "Three"], 1),
        ("\n".join(json.dumps(one) for one in CSL), "csl-json", ["One", "Three"], 1),
        (json.dumps({"items": CSL}), "csl-json", ["One", "Three"], 1),
        ('{"title": "Ours", "authors": [{"family": "Bee"}], "year": 2020}\n', "json", ["Ours"], 0),
        ("\ufeff@article{a, title={Bib}}", "bibtex", ["Bib"], 0),
        ("% Encoding: UTF-8\n\n@article{a, title={Bib}}", "bibtex", ["Bib"], 0),
        ("Exported today\n\n@article{a, title={Bib}}", "bibtex", ["Bib"], 0),
        ("TY  - JOUR\nTI  - Ris\n", "ris", ["Ris"], 0),
        ("\r\nProvider: X\r\nTY  - JOUR\r\nTI  - Ris\r\nER  - \r\n", "ris", ["Ris"], 0),
        (PAGE, "survey", ["A survey"], 0),
        ("[1] A. Bee, “Title of one,” 2020.\n[2] C. Dee, “Title of two,” 2021.\n", "text", ["Title of one", "Title of two"], 0),
        (gzip.compress(b"@article{a, title={Bib}}"), "bibtex", ["Bib"], 0),
        (gzip.compress(gzip.compress(b"@article{a, title={Bib}}")), "bibtex", ["Bib"], 0),
        ("@article{a, title={Bib}}".encode("utf-16"), "bibtex", ["Bib"], 0),
        ("@article{a, title={Caf\xe9}}".encode("latin-1"), "bibtex", ["Café"], 0),
        ("@article{a, title={Bib}}\r@misc{b, title={Mac}}\r", "bibtex", ["Bib", "Mac"], 0),
    ],
)  # fmt: skip
def test_recognised_by_content(content, kind, titles, broken):
    found, items = opened(content)
    assert found == kind
    good = [
        item.subject if isinstance(item, Listing) else item
        for item in items
        if not isinstance(item, BrokenRecord)
    ]
    assert [r.title for r in good] == titles
    assert sum(isinstance(item, BrokenRecord) for item in items) == broken


@pytest.mark.parametrize(
    "content",
    [
        "",
        " \n\t",
        "%PDF-1.5 …",
        b"PK\x03\x04rest",
        bytes(range(256)) * 8,
        "just some words\n",
        "{}",
        "[]",
        "[1, 2]",
        "{",
        "[[[[",
    ],
)
def test_unreadable_is_said_in_one_line(content):
    with pytest.raises(UnreadableSource) as caught:
        opened(content)
    assert "\n" not in caught.value.message + caught.value.hint and caught.value.hint


def test_details_of_providers():
    _kind, (work,) = opened(json.dumps(OPENALEX))
    assert (families(work), work.venue, work.date, work.abstract, work.status, work.openalex_id) == (
        ["Piwowar"], "PeerJ", "2018-02-13", "a b", "retracted", "W2741809807")  # fmt: skip
    _kind, (paper,) = opened(json.dumps(S2))
    assert (paper.subject.arxiv_id, paper.subject.doi, paper.expected, paper.shortfall) == (
        "1706.03762",
        None,
        3,
        2,
    )
    _kind, items = opened(ATOM)
    assert families(items[0]) == ["Kwon", "van der Berg"]
    assert (items[0].arxiv_id, items[0].arxiv_version, items[0].date, items[0].abstract) == (
        "2309.06180",
        1,
        "2023-09-12",
        "Abstract & more",
    )
    _kind, (listing,) = opened(json.dumps(CROSSREF))
    assert listing.shortfall == 1 and listing.references[0].title == "Title of one"
