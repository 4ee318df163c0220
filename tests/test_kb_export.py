"""Exports: escaping, stable keys, filters, and round trips through readers that are not ours."""

import csv
import io
import json
import re

import bibtexparser
import networkx
import pytest
import rispy
from bibtexparser.middlewares import LatexDecodingMiddleware

from ingest.sources.detect import open_source
from kb.errors import InvalidQuery, NotFound
from kb.export import FORMATS, csl_item, export, ris_entry, select_works
from kb.export_bibtex import bibtex_entry, key

BASE = {
    "id": 1, "slug": "bee-2023-title", "title": "A title", "authors": [{"family": "Bee", "given": "Ann"}], "authors_truncated": False,
    "year": 2023, "venue": "", "kind": "paper", "arxiv_id": None, "doi": None, "url": None, "abstract": "", "role": "", "status": "",
    "volume": "", "issue": "", "pages": "", "publisher": "", "edition": "", "date": "", "arxiv_version": "",
}  # fmt: skip


def work(**values):
    return {**BASE, **values}


def read_back(text):
    """Through our own readers."""
    return list(open_source(io.BytesIO(text.encode())).items)


def text_of(reader, format_, **filters):
    return "".join(export(reader, format_, **filters))


@pytest.mark.parametrize(
    "title, value",
    [
        ("A & B 100% of x_1 #2", r"A \& B 100\% of x\_1 \#2"),
        ("LLM.int8(): 8-bit Matrix Multiplication", "{LLM.int8()}: 8-bit Matrix Multiplication"),
        ("Vicuna … with 90%* chatgpt quality", r"Vicuna … with 90\%* chatgpt quality"),
        ("AWQ: Activation-aware Weight Quantization", "{AWQ}: Activation-aware Weight Quantization"),
        ("Plain words only", "Plain words only"),
        ("The “GPT-4” report", "The “{GPT-4}” report"),
        ("Cost $5 {x} ~ ^ \\", r"Cost \$5 \{x\} \textasciitilde{} \textasciicircum{} \textbackslash{}"),
    ],
)  # fmt: skip
def test_bibtex_titles(title, value):
    assert f"title = {{{value}}}" in bibtex_entry(work(title=title))


def test_links_are_not_escaped():
    entry = bibtex_entry(work(url="https://h/x_y?a=b&c%20#d", doi="10.1/a_b%"))
    assert "url = {https://h/x_y?a=b&c%20#d}" in entry and "doi = {10.1/a_b%}" in entry


def test_names_and_organisations():
    entry = bibtex_entry(
        work(
            authors=[
                {"family": "van der Berg", "given": "Jan"},
                {"family": "OpenAI Team"},
                {"family": "A & B, Inc."},
            ],
            authors_truncated=True,
        )
    )
    assert r"author = {van der Berg, Jan and {OpenAI Team} and {A \& B, Inc.} and others}" in entry
    assert not re.search(r"author = \{\{", bibtex_entry(work()))


def test_keys_have_no_special_characters():
    assert re.fullmatch(r"[A-Za-z0-9:_-]+", key("100%{X} ä/b"))
    assert "@misc{bee-2023-title," in bibtex_entry(work())


def test_retraction_is_a_note_and_not_in_the_title():
    retracted = work(status="retracted")
    assert "note = {RETRACTED}" in bibtex_entry(retracted) and "title = {A title}" in bibtex_entry(retracted)
    assert "N1  - RETRACTED" in ris_entry(retracted) and csl_item(retracted)["note"] == "RETRACTED"


def test_ris_has_one_author_per_line():
    text = ris_entry(work(authors=[{"family": "A", "given": "B."}, {"family": "C", "given": "D."}]))
    assert "AU  - A, B.\nAU  - C, D.\n" in text and text.endswith("ER  - \n\n")


ODD = [
    work(slug="a", title="LLM.int8(): 8-bit & 100% of x_1 #2 {y} $z ~ ^ \\ end", doi="10.1000/x_1%y", url="https://h.org/x_y?a=b&c"),
    work(slug="b", title="Ünïcödé – “quotes” ‘n’ ﬁne", authors=[{"family": "Kurtić", "given": "Eldar"}, {"family": "al-Hakim"}]),
    work(slug="c", title="Three: A sub-title?", authors=[{"family": "van der Berg", "given": "Jan"}, {"family": "OpenAI Team"}], authors_truncated=True),
    work(slug="d", title="Journal paper", venue="Computing in Science & Engineering", volume="3", issue="2", pages="611–626", date="2023-10-05"),
    work(slug="e", title="Book", kind="book", publisher="MIT Press", edition="2"),
    work(slug="f", title="Conference", venue="Proceedings of the 29th Symposium on Operating Systems Principles"),
    work(slug="g", title="Preprint", arxiv_id="2309.06180", abstract="With 50% & more_things."),
    work(slug="h", title="Software", kind="software", url="https://github.com/a/b_c", authors=[], year=None),
]  # fmt: skip


@pytest.mark.parametrize("format_", ["bibtex", "ris", "csl-json", "json"])
def test_our_own_readers_get_everything_back(format_):
    import unicodedata

    from kb.export import WRITERS

    found = read_back("".join(WRITERS[format_](ODD)))
    assert [one.key for one in found] == [one["slug"] for one in ODD]
    for one, given in zip(found, ODD, strict=True):
        assert one.title == unicodedata.normalize("NFC", given["title"])
        assert list(one.authors) == [dict(author) for author in given["authors"]]
        assert (one.year, one.doi, one.arxiv_id, one.kind) == (
            given["year"],
            given["doi"],
            given["arxiv_id"],
            given["kind"],
        )
        assert (one.volume, one.issue, one.pages, one.abstract) == (
            given["volume"],
            given["issue"],
            given["pages"],
            given["abstract"],
        )
        if given["url"]:
            assert one.url == given["url"]
        if given["venue"]:
            assert one.venue == given["venue"]
        assert one.et_al == given["authors_truncated"]


def test_bibtexparser_reads_every_entry(reader):
    works = {one["slug"]: one for one in select_works(reader)}
    library = bibtexparser.parse_string(
        text_of(reader, "bibtex"), append_middleware=[LatexDecodingMiddleware()]
    )
    assert not library.failed_blocks and len(library.entries) == len(works)
    for entry in library.entries:
        given, fields = works[entry.key], {field.key: field.value for field in entry.fields}
        assert " ".join(fields["title"].split()) == " ".join(given["title"].replace("~", "\u00a0").split())
        assert fields.get("year") == (str(given["year"]) if given["year"] else None)
        assert fields.get("eprint") == given["arxiv_id"]
        names = [
            name
            for name in re.split(r"\s+and\s+(?![^{]*})", fields.get("author", ""))
            if name and name != "others"
        ]
        assert len(names) == len(given["authors"])


def test_rispy_reads_every_record(reader):
    works = select_works(reader)
    entries = rispy.loads(text_of(reader, "ris"))
    assert len(entries) == len(works)
    for entry, given in zip(entries, works, strict=True):
        assert entry["id"] == given["slug"]
        assert entry.get("title", "") == given["title"]
        assert len(entry.get("authors", [])) == len(given["authors"])
        assert entry.get("year") == (str(given["year"]) if given["year"] else None)
        assert entry.get("doi") == given["doi"]


def test_csl_csv_and_json_hold_every_work(reader):
    works = select_works(reader)
    items = json.loads(text_of(reader, "csl-json"))
    assert [item["id"] for item in items] == [one["slug"] for one in works]
    assert all(item["type"] and isinstance(item["title"], str) for item in items)
    rows = list(csv.DictReader(io.StringIO(text_of(reader, "csv"))))
    assert [row["id"] for row in rows] == [one["slug"] for one in works]
    assert [row["year"] for row in rows] == [str(one["year"] or "") for one in works]
    assert [one["id"] for one in json.loads(text_of(reader, "json"))] == [one["slug"] for one in works]


def test_csv_cells_cannot_be_formulas():
    from kb.export import csv_text

    (row,) = csv.DictReader(io.StringIO("".join(csv_text([work(title='=HYPERLINK("x")', venue="@sum")]))))
    assert row["title"].startswith("'=") and row["venue"].startswith("'@")


def test_networkx_reads_the_graph(reader, tmp_path):
    path = tmp_path / "graph.graphml"
    path.write_text(text_of(reader, "graphml"), encoding="utf-8")
    graph = networkx.read_graphml(path)
    counted = reader.one(
        "SELECT count(*) AS n FROM (SELECT DISTINCT citing_id, cited_id FROM citation WHERE citing_id <> cited_id) AS pairs"
    )
    assert graph.is_directed() and graph.number_of_edges() == counted["n"]
    titles = {row["slug"]: row["title"] for row in reader.rows("SELECT slug, title FROM work")}
    assert all(titles[name] == data.get("title", "") for name, data in graph.nodes(data=True))
    numbers = [data["number"] for _a, _b, data in graph.edges(data=True)]
    assert min(numbers) == 1 and all(isinstance(number, int) for number in numbers)


def test_filters(reader):
    everything = select_works(reader)
    zhou = select_works(reader, survey=["zhou"])
    assert len(zhou) == 310 and len(zhou) < len(everything)
    assert {one["year"] for one in select_works(reader, year="2022..2023")} == {2022, 2023}
    assert [one["arxiv_id"] for one in select_works(reader, ids=["2309.06180"])] == ["2309.06180"]
    assert {one["id"] for one in select_works(reader, query="speculative", survey=["park"])} <= {
        one["id"] for one in everything
    }
    with pytest.raises(NotFound):
        select_works(reader, ids=["no-such-paper"])
    with pytest.raises(InvalidQuery):
        select_works(reader, survey=["zhuo"])
    with pytest.raises(InvalidQuery):
        list(export(reader, "docx"))


@pytest.mark.parametrize("format_", FORMATS)
def test_the_same_every_time(reader, format_):
    assert text_of(reader, format_) == text_of(reader, format_)


def test_distinct_keys_for_one_author_and_year(reader):
    """16 and more references by an author Li of 2023: each has its own key."""
    keys = [one["slug"] for one in select_works(reader)]
    assert len(keys) == len(set(keys))
    assert len([one for one in keys if one.startswith("li-2023")]) >= 10
    assert all(re.fullmatch(r"[A-Za-z0-9:_-]+", one) for one in keys)
