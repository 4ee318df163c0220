"""RIS as databases and programs write it."""

import io

import pytest

from ingest.records import BrokenRecord
from ingest.sources.detect import open_source
from ingest.sources.ris import parse_ris


def ris(text):
    return list(parse_ris(text.splitlines(keepends=True)))


def families(reference):
    return [author["family"] for author in reference.authors]


def test_ris_plain():
    (r,) = ris("TY  - JOUR\nAU  - Kwon, Woosuk\nAU  - van de Schoot, R.\nTI  - A title\nPY  - 2023/10/23/\nJO  - SOSP\nVL  - 1\n"
               "IS  - 2\nSP  - 611\nEP  - 626\nDO  - 10.1145/3600006.3613165\nID  - key\nER  - \n")  # fmt: skip
    assert (r.title, families(r), r.year, r.date, r.venue) == (
        "A title",
        ["Kwon", "van de Schoot"],
        2023,
        "2023-10-23",
        "SOSP",
    )
    assert (r.volume, r.issue, r.pages, r.doi, r.key) == (
        "1",
        "2",
        "611–626",
        "10.1145/3600006.3613165",
        "key",
    )


def test_ris_without_er_with_repeated_ty_and_continued_lines():
    found = ris(
        "\ufeffTY  - JOUR\r\nTI  - A long\r\ntitle on\r\n  three lines\r\nPY  - 2020\r\nTY  - CONF\r\nT1  - Second\r\n\r\nTY  - BOOK\r\nTI  - Third"
    )
    assert [(r.title, r.kind) for r in found] == [
        ("A long title on three lines", "paper"),
        ("Second", "paper"),
        ("Third", "book"),
    ]


@pytest.mark.parametrize(
    "lines, expected",
    [
        ("AU  - A, B.; C, D.", ["A", "C"]),
        ("A1  - Wong, T.\nA1  - van de Schoot, R.", ["Wong", "van de Schoot"]),
        ("A1  - One, A.\nA2  - Two, B.\nA3  - Three, C.\nA4  - Four, D.", ["One", "Two", "Three", "Four"]),
        ("AU  - OpenAI Team,", ["OpenAI Team"]),
        ("AU  - Jan van der Berg", ["van der Berg"]),
        ("AU  - King, Martin Luther, Jr.", ["King"]),
        ("AU  -", []),
    ],
)  # fmt: skip
def test_ris_authors(lines, expected):
    (r,) = ris(f"TY  - JOUR\n{lines}\nTI  - T\nER  - ")
    assert families(r) == expected


def test_ris_editors_of_a_book_are_not_the_chapter_authors():
    (r,) = ris("TY  - CHAP\nAU  - One, A.\nA2  - Editor, E.\nTI  - T\nER  - ")
    assert families(r) == ["One"]


@pytest.mark.parametrize(
    "lines, date",
    [("PY  - 2020", "2020"), ("PY  - 2020///", "2020"), ("Y1  - 2020/04//", "2020-04"), ("DA  - 2020/04/05/", "2020-04-05"),
     ("PY  - 2020\nDA  - 2020/04/05/Spring", "2020-04-05"), ("PY  - 2020\nDA  - 2019/12/31", "2020"), ("PY  - n.d.", ""),
     ("PY  - 15 March 2021", "2021-03-15"), ("DA  - 2021-7", "2021-07")],
)  # fmt: skip
def test_ris_dates(lines, date):
    (r,) = ris(f"TY  - JOUR\nTI  - T\n{lines}\nER  - ")
    assert r.date == date


def test_ris_broken_and_banner():
    found = ris(
        "Provider: X\nDatabase: Y\n\nTY  - JOUR\nPB  - Nobody\nER  - \nTY  - JOUR\nTI  - Good\nER  -\n"
    )
    assert isinstance(found[0], BrokenRecord) and found[1].title == "Good"


RECORD = [("TY", "JOUR"), ("TI", "T one"), ("AU", "Smith, J."), ("PY", "2001"), ("ER", "")]
WAYS = {
    "plain": "{tag}  - {value}", "no blank behind": "{tag}  -{value}", "one blank": "{tag} - {value}", "tabs": "{tag}\t-\t{value}",
    "a tab": "{tag}\t{value}", "lower case": "{lower}  - {value}", "wide": "{tag}    -    {value}", "indented": "  {tag}  - {value}",
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_ris_tags_however_they_are_written(way):
    lines = [WAYS[way].format(tag=tag, lower=tag.lower(), value=value) for tag, value in RECORD]
    source = open_source(io.BytesIO(("\r\n".join(lines * 2)).encode()))
    found = list(source.items)
    assert source.kind == "ris"
    assert [(r.title, families(r), r.year) for r in found] == [("T one", ["Smith"], 2001)] * 2


def test_ris_text_that_looks_like_a_tag():
    (r,) = ris("TY  - JOUR\nTI  - T\nAB  - text\nAI - is not a tag\nID - nor is this\nin - or this\nER  - \n")
    assert r.abstract == "text AI - is not a tag ID - nor is this in - or this" and r.key == "record 1"


def test_ris_a_loose_line_in_a_strict_file():
    (r,) = ris("TY  - JOUR\nTI - T\nPY - 2020\nER  - ")
    assert (r.title, r.year) == ("T", 2020)


@pytest.mark.parametrize(
    "line, name",
    [
        ("Smith, John, III", {"family": "Smith", "given": "John", "suffix": "III"}),
        ("Smith, Jr., John", {"family": "Smith", "given": "John", "suffix": "Jr."}),
        ("Barnes and Noble, Inc.", {"family": "Barnes and Noble, Inc."}),
        ("University of California,, Irvine", {"family": "University of California, Irvine"}),
        ("Gemini Team", {"family": "Gemini Team"}),
        ("Doe, Jane and", {"family": "Doe", "given": "Jane and"}),
        ("Smith, SA", {"family": "Smith", "given": "SA"}),
    ],
)
def test_ris_names(line, name):
    (r,) = ris(f"TY  - JOUR\nAU  - {line}\nTI  - T\nER  - ")
    assert r.authors == (name,)


@pytest.mark.parametrize(
    "lines",
    [
        "AU  - Doe, J.\nAU  - et al.",
        "AU  - Doe, J. et al.",
        "AU  - Doe, J.\nN1  - Author list incomplete (et al.)",
    ],
)
def test_ris_cut_lists(lines):
    (r,) = ris(f"TY  - JOUR\n{lines}\nTI  - T\nER  - ")
    assert families(r) == ["Doe"] and r.et_al


@pytest.mark.parametrize(
    "lines, expected",
    [
        (
            "UR  - https://a.org/x\nUR  - https://b.org/y",
            {"url": "https://a.org/x", "notes": ("further links: https://b.org/y",)},
        ),
        ("UR  - https://doi.org/10.1000/x; https://a.org/x", {"url": "https://a.org/x", "doi": "10.1000/x"}),
        ("UR  - 10.1000/a", {"url": None, "doi": "10.1000/a"}),
        ("UR  - <Go to ISI>://WOS:0001", {"url": None}),
        ("YR  - 2020", {"year": 2020}),
        ("AU  - Doe JA", {"authors": ({"family": "Doe", "given": "JA"},)}),
        (
            "AU  - Doe, J., Roe, R.",
            {"authors": ({"family": "Doe", "given": "J."}, {"family": "Roe", "given": "R."})},
        ),
        (
            "AU  - Doe, J. & Roe, R.",
            {"authors": ({"family": "Doe", "given": "J."}, {"family": "Roe", "given": "R."})},
        ),
        ("AN  - arXiv:2305.12345v3", {"arxiv_id": "2305.12345", "arxiv_version": 3}),
        ("JO  - arXiv preprint arXiv:2305.12345", {"venue": "arXiv", "arxiv_id": "2305.12345"}),
        ("N1  - WITHDRAWN", {"status": "withdrawn"}),
        ("M3  - Product", {"kind": "product"}),
        ("SP  - S-12\nEP  - S-15", {"pages": "S-12–S-15"}),
        ("SP  - 12-15", {"pages": "12–15"}),
        ("JO  - Science &amp; Co", {"venue": "Science & Co"}),
    ],
)
def test_ris_fields(lines, expected):
    (r,) = ris(f"TY  - JOUR\nTI  - <i>T</i>\n{lines}\nER  - ")
    assert {name: getattr(r, name) for name in expected} == expected and r.title == "T"


def test_ris_an_id_before_its_type():
    assert [
        (r.key, r.title)
        for r in ris("ID  - a\nTY  - JOUR\nTI  - One\nER  - \nID  - b\nTY  - JOUR\nTI  - Two\nER  - ")
    ] == [
        ("a", "One"),
        ("b", "Two"),
    ]


def test_ris_thesis():
    (r,) = ris("TY  - THES\nTI  - T\nPB  - MIT\nER  - ")
    assert (r.venue, r.publisher) == ("MIT", "MIT")
