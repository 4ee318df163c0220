"""JSON of CSL, Crossref, OpenAlex, Semantic Scholar and of our own, and Atom: what providers send beside the plain case."""

import io
import json

import pytest

from ingest.records import BrokenRecord, Listing
from ingest.sources.detect import open_source


def read(content):
    """The kind of source, its works and its broken records."""
    data = content if isinstance(content, bytes) else content.encode()
    source = open_source(io.BytesIO(data))
    items = [item.subject if isinstance(item, Listing) else item for item in source.items]
    return (
        source.kind,
        [item for item in items if not isinstance(item, BrokenRecord)],
        [item for item in items if isinstance(item, BrokenRecord)],
    )


def one(data):
    _kind, (work,), broken = read(json.dumps(data))
    assert not broken
    return work


CSL = {"type": "article-journal", "title": "T"}
CROSSREF = {"DOI": "10.1000/x", "type": "journal-article", "title": ["T"], "indexed": {}}
OPENALEX = {"id": "https://openalex.org/W2741809807", "title": "T", "authorships": []}
S2 = {"paperId": "a" * 40, "title": "T"}

PARTS = [
    ([[2020, 5, 17]], "2020-05-17"), (["2020"], "2020"), ([2020.0, 5], "2020-05"), ([["2020", "05"]], "2020-05"), ([[["2020"]]], "2020"),
    ("2020-05", "2020-05"), (["2020-05-17"], "2020-05-17"), ([[2020, 0]], "2020"), ([[2020, 13]], "2020"), ([[2020, None, 3]], "2020"),
    ([["x"]], ""), ([["²"]], ""), ([[None]], ""), ([[]], ""), ([], ""), (None, ""), ([[-350]], ""), ([[True]], ""), ([[99999]], ""), ([[0]], ""),
]  # fmt: skip


@pytest.mark.parametrize("parts, date", PARTS)
def test_date_parts_of_any_shape(parts, date):
    for work in (
        one({**CSL, "issued": {"date-parts": parts}}),
        one({**CROSSREF, "issued": {"date-parts": parts}}),
    ):
        assert (work.date, work.year) == (date, int(date[:4]) if date else None)


TITLES = [
    ("<i>E. coli</i> &amp; H<sub>2</sub>O", "E. coli & H2O"),
    ('<span class="nocase">vLLM</span> at 90%', "vLLM at 90%"),
    ("A <jats:italic>b</jats:italic> c", "A b c"),
    ("&lt;i&gt;In vivo&lt;/i&gt; &amp;amp; after", "In vivo & after"),
    ("p < 0.05 and a > b", "p < 0.05 and a > b"),
    ("R&D at AT&T; more", "R&D at AT&T; more"),
    ("caf&#233; &ldquo;x&rdquo;", "café “x”"),
    ("One<br/>two", "One two"),
]


@pytest.mark.parametrize("printed, title", TITLES)
def test_markup_of_letters_is_not_part_of_a_title(printed, title):
    for data in (
        {**CSL, "title": printed}, {**CROSSREF, "title": [printed]}, {**OPENALEX, "title": printed}, {**S2, "title": printed},
    ):  # fmt: skip
        assert one(data).title == title


def test_mathml_stays_and_reads_plainly():
    text = "Decay of <mml:math>\n <mml:mi>Ca</mml:mi> <mml:mn>38</mml:mn>\n</mml:math> in flight"
    work = one({**CROSSREF, "title": [text]})
    assert "<mml:mi>Ca</mml:mi><mml:mn>38</mml:mn>" in work.title
    assert work.plain_title == "Decay of Ca38 in flight"


@pytest.mark.parametrize(
    "value, year", [("2020", 2020), (2020.0, 2020), (2020, 2020), ("n.d.", None), (None, None), (20, None)]
)
def test_years_that_are_text(value, year):
    works = (
        one({**OPENALEX, "publication_year": value}), one({**S2, "year": value}),
        one({"title": "T", "authors": [], "year": value}),
    )  # fmt: skip
    assert [work.year for work in works] == [year] * 3
    assert [work.date for work in works[:2]] == [str(year or "")] * 2


def test_csl_without_type_and_csl_by_id():
    kind, works, broken = read(json.dumps([{"title": "A", "author": [{"family": "Bee"}]}, {"DOI": "10.1000/x", "issued": {"date-parts": [[2020]]}},
                                           {"title": "C", "container-title": "J", "type": "odd"}]))  # fmt: skip
    assert (kind, [work.title for work in works], broken) == ("csl-json", ["A", "", "C"], [])
    _kind, works, _broken = read(json.dumps({"bee": CSL, "dee": {**CSL, "title": "U"}}))
    assert [(work.key, work.title) for work in works] == [("bee", "T"), ("dee", "U")]


@pytest.mark.parametrize(
    "author, name",
    [
        (
            {"family": "King", "given": "Martin", "suffix": "Jr."},
            {"family": "King", "given": "Martin", "suffix": "Jr."},
        ),
        (
            {"family": "Berg", "non-dropping-particle": "van der", "given": "J"},
            {"family": "van der Berg", "given": "J"},
        ),
        ({"literal": "Acme, Inc."}, {"family": "Acme, Inc."}),
        ({"literal": "Others"}, {"family": "Others"}),
        ({"given": "Madonna"}, {"family": "Madonna"}),
        ("Doe, Jane", {"family": "Doe", "given": "Jane"}),
        ("Gemini Team", {"family": "Gemini Team"}),
    ],
)
def test_csl_authors(author, name):
    work = one({**CSL, "author": [None, author, {"family": None}]})
    assert work.authors == (name,) and not work.et_al


def test_csl_details():
    assert one({**CSL, "author": [{"family": "Bee"}, {"literal": "others"}]}).et_al
    assert one({"type": "thesis", "title": "T", "publisher": "MIT"}).venue == "MIT"
    assert [one({**CSL, "page": pages}).pages for pages in ("1-9", "1--9", "S-12", "e1–e9")] == [
        "1–9",
        "1–9",
        "S-12",
        "e1–e9",
    ]
    assert one({**CSL, "note": "DOI: 10.1000/note"}).doi == "10.1000/note"
    versioned = one({**CSL, "number": "arXiv:2305.12345", "version": "3"})
    assert (versioned.arxiv_id, versioned.arxiv_version) == ("2305.12345", 3)
    assert one({**CSL, "container-title": "arXiv preprint arXiv:2305.12345"}).venue == "arXiv"


def test_names_for_display():
    names = ["Martin Luther King Jr.", "Gemini Team", "van Dijk, Eva", "Ludwig van Beethoven"]
    expected = (
        {"family": "King", "given": "Martin Luther", "suffix": "Jr."}, {"family": "Gemini Team"},
        {"family": "van Dijk", "given": "Eva"}, {"family": "van Beethoven", "given": "Ludwig"},
    )  # fmt: skip
    assert one({**S2, "authors": [{"name": name} for name in names]}).authors == expected
    listed = [{"author": {"display_name": name}} for name in names]
    assert one({**OPENALEX, "authorships": [None, {"author": None}, *listed]}).authors == expected


def test_crossref_details():
    work = one(
        {
            **CROSSREF,
            "author": [{"family": "Smith", "given": "J", "suffix": "Jr."}, {"name": "Acme, Inc."}, None],
            "page": "S-1",
            "volume": None,
        }
    )
    assert work.authors == ({"family": "Smith", "given": "J", "suffix": "Jr."}, {"family": "Acme, Inc."})
    assert (work.pages, work.volume) == ("S-1", "")
    source = open_source(io.BytesIO(json.dumps({**CROSSREF, "reference-count": "3", "reference": [
        {"key": "a", "article-title": "On <i>x</i>", "journal-title": "arXiv preprint arXiv:2305.12345v2", "year": "n.d."}]}).encode()))  # fmt: skip
    (listing,) = source.items
    assert (listing.expected, listing.shortfall) == (3, 2)
    (cited,) = listing.references
    assert (cited.title, cited.venue, cited.arxiv_id, cited.arxiv_version, cited.year) == (
        "On x",
        "arXiv",
        "2305.12345",
        2,
        None,
    )


@pytest.mark.parametrize(
    "printed", ["RETRACTED: T", "Retracted: T", "T [Retracted]", "[RETRACTED ARTICLE] T"]
)
def test_retraction_marks_are_no_part_of_a_title(printed):
    for data in (
        {**CSL, "title": printed},
        {**CROSSREF, "title": [printed]},
        {**OPENALEX, "title": printed},
        {**S2, "title": printed},
    ):
        work = one(data)
        assert (work.title, work.status) == ("T", "retracted")


def test_preprint_servers_in_json():
    assert one({**CSL, "publisher": "arXiv", "number": "2305.12345"}).arxiv_id == "2305.12345"
    posted = one(
        {
            **CROSSREF,
            "type": "posted-content",
            "posted": {"date-parts": [[2018, 1, 24]]},
            "title": [],
            "original-title": ["O"],
        }
    )
    assert (posted.title, posted.date) == ("O", "2018-01-24")


def test_openalex_abstract_with_wrong_places():
    assert (
        one({**OPENALEX, "abstract_inverted_index": {"a": None, "b": ["x", 1], "c": [0]}}).abstract == "c b"
    )


@pytest.mark.parametrize(
    "data, field, value",
    [
        ({"links": 5, "notes": "x", "kind": 7}, "kind", "paper"),
        ({"authors": {"family": "Bee"}}, "authors", ({"family": "Bee"},)),
        ({"authors": "Bee; Dee"}, "authors", ({"family": "Bee"}, {"family": "Dee"})),
        ({"arxiv_id": "arXiv:2305.12345v2"}, "arxiv_version", 2),
        ({"doi": "https://doi.org/10.1000/x"}, "doi", "10.1000/x"),
        ({"volume": 3}, "volume", "3"),
    ],
)
def test_own_records_of_other_types(data, field, value):
    assert getattr(one({"title": "T", "year": 2020, **data}), field) == value


def test_letters_that_no_database_takes():
    _kind, works, _broken = read(
        '{"type":"book","title":"a\\ud800b\\u0000c"}\n{"type":"book","title":"\\ud83d\\ude00"}\n'
    )
    assert [work.title for work in works] == ["a\ufffdb c", "😀"]
    _kind, works, _broken = read('[{"type":"book",\n"title":"a\\udfffb"}]')
    assert works[0].title == "a\ufffdb"
    _kind, works, _broken = read("@misc{a, title={T\0U}}")
    assert works[0].title == "T U"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize(
    "text", ["@misc{a, title={Größe}}", "TY  - JOUR\nTI  - Größe\nER  - ", '{"type":"book","title":"Größe"}']
)
def test_wide_encodings_with_and_without_mark(text, encoding):
    _kind, (work,), _broken = read(text.encode(encoding))
    assert work.title == "Größe"


ENTRY = "<{0}entry><{0}id>http://arxiv.org/abs/2301.0000{1}v2</{0}id><{0}title>{2}</{0}title></{0}entry>"


@pytest.mark.parametrize("prefix", ["", "a:", "atom:"])
def test_atom_under_any_prefix(prefix):
    declared = f"xmlns{':' + prefix[:-1] if prefix else ''}"
    entries = "\n".join(
        ENTRY.format(prefix, number, title)
        for number, title in enumerate(["T", "U\x0b", "A & B", "x &eacute; y"])
    )
    kind, works, broken = read(
        f"<?xml version='1.0'?><{prefix}feed {declared}='http://www.w3.org/2005/Atom'>{entries}</{prefix}feed>"
    )
    assert (kind, [work.title for work in works], broken) == ("arxiv", ["T", "U", "A & B", "x é y"], [])
    assert [work.arxiv_version for work in works] == [2] * 4


def test_one_atom_entry_alone():
    entry = ENTRY.format("", 1, "T").replace("<entry>", '<entry xmlns="http://www.w3.org/2005/Atom">')
    assert [work.title for work in read(entry)[1]] == ["T"]
