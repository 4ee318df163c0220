"""Laws of reading and writing: nothing a file can hold stops the reader, and what is written comes back."""

import io
import json
import string
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.errors import UnreadableSource
from ingest.latex import to_text
from ingest.records import BrokenRecord, Listing, read_date
from ingest.references import Reference
from ingest.sources.detect import open_source
from kb.export import WRITERS
from kb.export_bibtex import escape
from kb.search_query import parse_query

FAST = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

SEEDS = (
    b'@string{a = "x"}\n@article{k, title = {A {B} \\\'e $x^2$}, author = {Doe, J. and {Org}}, year = 2020, month = mar # " 1"}\n@misc{l, title="q"}',
    b"TY  - JOUR\nAU  - Doe, J.\nTI  - A\n  goes on\nPY  - 2020/01//\nER  - \nTY  - BOOK\nTI  - B\n",
    b'[{"type": "book", "title": "T", "author": [{"family": "A"}], "issued": {"date-parts": [[2020, 1]]}}, {"type": "book", "title": "U"}]',
    b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/abs/2401.00001v1</id><title>T</title></entry></feed>',
    b'{"id": "https://openalex.org/W2741809807", "title": "T", "authorships": [{"author": {"display_name": "A B"}}], "publication_year": 2020}\n',
    b'{"paperId": "' + b"a" * 40 + b'", "title": "T", "externalIds": {"ArXiv": "2401.00001"}, "year": 2020, "references": [{"paperId": null}]}',
    b'{"message": {"DOI": "10.1/x", "type": "book", "title": ["T"], "reference": [{"unstructured": "A. B. 2020. T. V."}], "issued": {"date-parts": [[2020]]}}}',
    b"A survey\n\nReferences\n\n1. A. Bee, \xe2\x80\x9cT one,\xe2\x80\x9d 2020.\n2. C. Dee, \xe2\x80\x9cT two,\xe2\x80\x9d 2021.\n",
)  # fmt: skip


def read(content):
    """Every item of a source; the only error allowed says that nothing in it can be read."""
    try:
        items = list(open_source(io.BytesIO(content)).items)
    except UnreadableSource:
        return []
    assert all(isinstance(item, Reference | BrokenRecord | Listing) for item in items)
    return items


@FAST
@given(st.binary(max_size=400))
def test_any_bytes(content):
    read(content)


@FAST
@given(st.sampled_from(SEEDS), st.data())
def test_damaged_files(seed, data):
    """Bytes cut out, doubled, replaced: broken records are reported, nothing is raised."""
    content = bytearray(seed)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        action = data.draw(st.sampled_from(["cut", "double", "set"]))
        if action == "cut":
            del content[at : at + data.draw(st.integers(1, 12))]
        elif action == "double":
            content[at:at] = content[at : at + 12]
        elif content:
            content[at] = data.draw(st.sampled_from(list(b'{}[]",\\@#=$%\n\x00\xff')))
    read(bytes(content))


@FAST
@given(st.sampled_from([2, 4, 5, 6]), st.data())
def test_json_with_fields_of_other_types(index, data):
    """A number where a list should be, a null where text should be …"""
    record = json.loads(SEEDS[index].decode())
    record = record[0] if isinstance(record, list) else record
    inner = record.get("message", record)
    strange = st.one_of(
        st.none(),
        st.integers(),
        st.text(max_size=5),
        st.just([]),
        st.just({}),
        st.just([None]),
        st.just([[]]),
        st.booleans(),
    )
    for key in data.draw(st.lists(st.sampled_from(sorted(inner)), max_size=3)):
        inner[key] = data.draw(strange)
    read(json.dumps(record).encode())


@FAST
@given(st.text(alphabet=string.printable + "äöüéß€–“”𝔸", max_size=80))
def test_latex_never_fails_and_escaping_is_undone(text):
    to_text(text)
    plain = " ".join(text.split())
    assert to_text(escape(plain)) == unicodedata.normalize("NFC", plain)


@FAST
@given(st.text(max_size=40))
def test_dates_are_iso_or_nothing(text):
    date = read_date(text)
    assert date == "" or (len(date) in (4, 7, 10) and date[:4].isdigit())


WORD = st.text(alphabet="abcXYZéß&%$#_{}~^\\0123456789:?!()'’-", min_size=1, max_size=9)
TITLE = st.lists(WORD, min_size=1, max_size=6).map(
    lambda words: unicodedata.normalize("NFC", "A " + " ".join(words))
)
PART = st.text(alphabet="abcdeé", min_size=1, max_size=8).map(str.capitalize)


@FAST
@given(TITLE, st.lists(st.tuples(PART, PART), max_size=4), st.integers(1900, 2030))
@pytest.mark.parametrize("format_", ["bibtex", "ris", "csl-json", "json"])
def test_what_is_written_is_read_back(format_, title, names, year):
    if "--" in title or "''" in title or title.endswith("'"):
        return
    row = {
        "id": 1, "slug": "k", "title": title, "authors": [{"family": f, "given": g} for f, g in names], "authors_truncated": False,
        "year": year, "venue": "", "kind": "paper", "arxiv_id": None, "doi": "10.5555/x", "url": None, "abstract": "", "role": "",
        "status": "", "volume": "", "issue": "", "pages": "", "publisher": "", "edition": "", "date": "", "arxiv_version": "",
    }  # fmt: skip
    (found,) = read("".join(WRITERS[format_]([row])).encode())
    assert (found.title, list(found.authors), found.year, found.doi) == (
        title,
        row["authors"],
        year,
        "10.5555/x",
    )


@FAST
@given(st.text(max_size=60))
def test_any_query_is_read(text):
    query = parse_query(text)
    for clause in query.clauses:
        assert clause.options
