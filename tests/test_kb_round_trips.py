"""What an export says, read back by our own readers, by bibtexparser and by rispy: nothing is lost on the way."""

import io
import re
import unicodedata

import bibtexparser
import pytest
import rispy
from bibtexparser.middlewares import LatexDecodingMiddleware, SeparateCoAuthors, SplitNameParts

from ingest.sources.detect import open_source
from kb.export import WRITERS, csv_text

BASE = {
    "id": 1, "title": "T", "authors": [], "authors_truncated": False, "year": 2020, "venue": "", "kind": "paper", "arxiv_id": None,
    "doi": None, "url": None, "abstract": "", "role": "", "status": "", "volume": "", "issue": "", "pages": "", "publisher": "",
    "edition": "", "date": "", "arxiv_version": "",
}  # fmt: skip
DOE = {"family": "Doe", "given": "J."}
TITLES = [
    "100% of A & B_c #1 $5 {x} ~ ^ \\", "{Brace", "a} b", "--flag and a --- dash", "it''s ``x`` ?`y", "C++ @ home", "ends with \\",
    "naïve “q” — … ½ – x", "大型 模型", "e\u0301", "$a$ and $b$", "x & y; z", "AI - no tag", "'single' ’curly’", "p < 0.05",
]  # fmt: skip
NAMES = [
    {"family": "van der Berg", "given": "Jan"}, {"family": "King", "given": "Martin Luther", "suffix": "Jr."},
    {"family": "Smith", "given": "A.", "suffix": "III"}, {"family": "{X}", "given": "A%"}, {"family": "De Sa", "given": "C."},
    {"family": "and", "given": "Bo"}, {"family": "Others"}, {"family": "Barnes and Noble, Inc."}, {"family": "OpenAI"},
    {"family": "AT&T Labs"}, {"family": "University of California, Irvine"}, {"family": "’s-Gravesande", "given": "W. J."},
    {"family": "vLLM Team"}, {"family": "Groß", "given": "Ä.-Ö."}, {"family": "Smith", "given": "SA"},
]  # fmt: skip
OTHERS = [
    {"doi": "10.1002/(SICI)1097<1661::AID>3.0.CO;2-2"}, {"url": "https://h.org/a_b?x=1&y=%20#f~"},
    {"arxiv_id": "hep-th/9901001", "arxiv_version": 2, "venue": "arXiv"}, {"arxiv_id": "2305.12345", "venue": ""},
    {"arxiv_id": "2305.12345", "arxiv_version": 3, "doi": "10.1000/x_y", "url": "https://x.y/z", "venue": "ACM & Co. 100%"},
    {"kind": "software", "url": "https://github.com/a/b_c"}, {"kind": "website", "url": "https://a.b/blog/1"},
    {"kind": "website", "url": "https://www.nvidia.com/x"}, {"kind": "product", "url": "https://a.b/x"}, {"kind": "product"},
    {"kind": "website", "url": "https://a.b/1", "venue": "The Daily"}, {"kind": "software"}, {"kind": "paper", "url": "https://a.b/1.pdf"},
    {"kind": "book", "publisher": "MIT Press", "edition": "2nd"}, {"status": "retracted"}, {"status": "withdrawn"},
    {"authors": [DOE], "authors_truncated": True}, {"pages": "S-12", "venue": "J"}, {"pages": "1:1–1:24", "venue": "TOCS"},
    {"volume": "12", "issue": "3–4", "pages": "e12–e15", "venue": "J. of X", "date": "2020-03"}, {"year": None},
    {"date": "2020-03-09", "venue": "J"}, {"abstract": "one {x} 50% & more -- `so'"},
]  # fmt: skip
WORKS = [
    {**BASE, **fields, "slug": f"k{number}"}
    for number, fields in enumerate(
        [
            *({"title": unicodedata.normalize("NFC", title)} for title in TITLES),
            *({"authors": [name, DOE]} for name in NAMES),
            *OTHERS,
        ]
    )
]
SAME = (
    "title",
    "year",
    "venue",
    "kind",
    "doi",
    "arxiv_id",
    "url",
    "volume",
    "issue",
    "pages",
    "publisher",
    "edition",
    "status",
    "abstract",
)


@pytest.mark.parametrize("format_", ["bibtex", "ris", "csl-json", "json"])
def test_our_readers_get_everything_back(format_):
    found = list(open_source(io.BytesIO("".join(WRITERS[format_](WORKS)).encode())).items)
    assert [one.key for one in found] == [work["slug"] for work in WORKS]
    for one, work in zip(found, WORKS, strict=True):
        preprint = f"https://arxiv.org/abs/{work['arxiv_id']}"
        given = {name: work[name] or "" for name in SAME}
        assert {
            name: "" if (value := getattr(one, name) or "") == preprint else value for name in SAME
        } == given
        assert [dict(author) for author in one.authors] == work["authors"]
        assert one.et_al is work["authors_truncated"]
        assert one.date == (work["date"] or str(work["year"] or ""))
        if work["arxiv_version"]:
            assert one.arxiv_version == work["arxiv_version"]


def test_bibtexparser_gets_everything_back():
    library = bibtexparser.parse_string(
        "".join(WRITERS["bibtex"](WORKS)),
        append_middleware=[SeparateCoAuthors(), SplitNameParts(), LatexDecodingMiddleware()],
    )
    assert not library.failed_blocks
    for entry, work in zip(library.entries, WORKS, strict=True):
        fields = {field.key: field.value for field in entry.fields}
        # pylatexenc's letter for \textasciicircum
        assert " ".join(fields["title"].replace("ˆ", "^").split()) == work["title"]
        venue = next(
            (fields[name] for name in ("journal", "booktitle", "howpublished") if name in fields), ""
        )
        assert venue == work["venue"] and fields.get("eprint", "") == (work["arxiv_id"] or "")
        assert fields.get("version", "") == str(work["arxiv_version"]) and fields.get("doi", "") == (
            work["doi"] or ""
        )
        names = [
            (" ".join((*one.von, *one.last)), " ".join(one.first), " ".join(one.jr))
            for one in fields.get("author", [])
        ]
        given = [(one["family"], one.get("given", ""), one.get("suffix", "")) for one in work["authors"]]
        assert [
            tuple(re.sub(r"[\\{}]", "", part) for part in name) for name in names if name[0] != "others"
        ] == [tuple(re.sub(r"[\\{}]", "", part) for part in name) for name in given]


def test_rispy_gets_everything_back():
    entries = rispy.loads("".join(WRITERS["ris"](WORKS)))
    for entry, work in zip(entries, WORKS, strict=True):
        assert (entry["title"], entry.get("doi")) == (work["title"], work["doi"])
        # EndNote: an organisation of several words ends with a comma; its own comma is written twice
        names = [name.replace(",,", ",").rstrip(",") for name in entry.get("authors", [])]
        parts = [[one.get(key) for key in ("family", "given", "suffix")] for one in work["authors"]]
        assert names == [", ".join(part for part in one if part) for one in parts]
        if work["arxiv_version"]:
            assert entry["accession_number"] == f"arXiv:{work['arxiv_id']}v{work['arxiv_version']}"


def test_csv_has_the_version_and_the_suffix():
    import csv

    rows = list(csv.DictReader(io.StringIO("".join(csv_text(WORKS)))))
    assert [row["arxiv_version"] for row in rows] == [str(work["arxiv_version"]) for work in WORKS]
    assert any(row["authors"] == "King, Martin Luther, Jr.; Doe, J." for row in rows)


def test_a_suffix_inside_a_family_name_is_taken_out():
    (work,) = [{**BASE, "slug": "k", "authors": [{"family": "Smith, Jr.", "given": "J."}]}]
    assert "author = {Smith, Jr., J.}" in "".join(WRITERS["bibtex"]([work]))
    assert "AU  - Smith, J., Jr.\n" in "".join(WRITERS["ris"]([work]))
    assert '{"family": "Smith", "given": "J.", "suffix": "Jr."}' in "".join(WRITERS["csl-json"]([work]))
