"""Readers: BibTeX, RIS, CSL, arXiv, OpenAlex, Semantic Scholar, and recognising them by content."""

import gzip
import io
import json

import pytest

from ingest.errors import UnreadableSource
from ingest.latex import escape, to_text
from ingest.records import BrokenRecord, Listing, read_date
from ingest.references import Reference
from ingest.sources.bibtex import parse_bibtex
from ingest.sources.csl import parse_csl_item
from ingest.sources.detect import open_source
from ingest.sources.ris import parse_ris
from ingest.stream import json_values


def bibtex(text):
    return list(parse_bibtex(text.splitlines(keepends=True)))


def ris(text):
    return list(parse_ris(text.splitlines(keepends=True)))


def opened(content):
    source = open_source(io.BytesIO(content if isinstance(content, bytes) else content.encode()))
    return source.kind, list(source.items)


def families(reference):
    return [author["family"] for author in reference.authors]


# --- LaTeX ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "latex, text",
    [
        (r"Mart{\'\i}n", "Martín"), (r"Gr{\=u}z{\=i}tis", "Grūzītis"), (r"Ljube{\v s}i{\'c}", "Ljubešić"), (r"\^{i}le", "île"),
        (r"\'{E}cole", "École"), (r"\'Ecole", "École"), (r'G{\"o}del', "Gödel"), (r"G\"odel", "Gödel"), (r"{\O}rsted", "Ørsted"),
        (r"Stra{\ss}e", "Straße"), (r"\ss{}a", "ßa"), (r"\c{C}elik", "Çelik"), (r"Dvo{\v{r}}{\'a}k", "Dvořák"), (r"\r{A}ngstr", "Ångstr"),
        (r"\H{o}", "ő"), (r"\k{a}", "ą"), (r"\.{z}", "ż"), (r"\d{a}", "ạ"), (r"\u{g}", "ğ"), (r"{\L}ukasz", "Łukasz"), (r"{\AE}", "Æ"),
        (r"\~{n}", "ñ"), (r"{\'{\i}}", "í"), (r"\`a", "à"), (r"A \& B", "A & B"), (r"90\% of \$5 \#1 a\_b \{x\}", "90% of $5 #1 a_b {x}"),
        (r"Computing in Science {\&} Engineering", "Computing in Science & Engineering"), (r"\emph{fast} \textbf{x}", "fast x"),
        (r"{\em fast} x", "fast x"), (r"pages 1--2---3", "pages 1–2—3"), (r"``so''", "“so”"), ("a~b", "a b"), (r"\LaTeX{} rocks", "LaTeX rocks"),
        (r"H$_2$O", "H2O"), (r"$\alpha$-$\beta$ pruning", "α-β pruning"), (r"costs $5 or \$6", "costs $5 or $6"), ("{LLM}.int8()", "LLM.int8()"),
        (r"\href{https://x.y/z}{text}", "text"), (r"\unknown{kept}", "kept"), ("100% sure", "100% sure"), ("\\", "\\"), ("{", ""), ("}{", ""),
        (r"\'", ""), (r"\v", ""), ("$", "$"), (r"\textsuperscript{2}", "2"), ("e\u0301", "é"), (r"\(x^2\)", "x2"), (r"\o", "ø"), (r"\i", "ı"),
    ],
)  # fmt: skip
def test_latex_to_text(latex, text):
    assert to_text(latex) == text


@pytest.mark.parametrize(
    "text", ["A & B 100% of x_1 #2", "$5 {x} ~ ^ \\ end", "Größe – “quoted”", "C++ & C#", "a\\b"]
)
def test_escaping_is_undone_by_reading(text):
    assert to_text(escape(text)) == text


# --- BibTeX -----------------------------------------------------------------------------------------------


def test_bibtex_strings_concatenation_months():
    found = bibtex('@string{acl = "Proc. of " # "ACL"}\n@STRING(ed = {2nd})\n'
                   '@article{a, title = {T}, journal = acl # " 2024", month = mar # "~12", year = 2024, edition = ed}')  # fmt: skip
    assert (found[0].venue, found[0].date, found[0].edition) == ("Proc. of ACL 2024", "2024-03-12", "2nd")


@pytest.mark.parametrize(
    "author, expected, et_al",
    [
        ("Kwon, Woosuk and Li, Zhuohan", ["Kwon", "Li"], False),
        ("Woosuk Kwon and Zhuohan Li and others", ["Kwon", "Li"], True),
        ("van der Berg, Jan and Ludwig van Beethoven", ["van der Berg", "van Beethoven"], False),
        ("{OpenAI Team} and {Barnes and Noble, Inc.}", ["OpenAI Team", "Barnes and Noble, Inc."], False),
        ("King, Jr., Martin Luther", ["King"], False),
        (r"Mart{\'\i}n, Jos{\'e} and {\'E}mile Zola", ["Martín", "Zola"], False),
        ("al-Hakim, A. and ’s-Gravesande, W.", ["al-Hakim", "’s-Gravesande"], False),
        ("A and\n   B\n AND C", ["A", "B", "C"], False),
        ("Anderson, Sandy and Band, Andy", ["Anderson", "Band"], False),
        ("Agrawal, A. and  and Ramjee, R. and ", ["Agrawal", "Ramjee"], False),
        ("{van der Berg}, Jan", ["van der Berg"], False),
        ("de las Casas, Diego", ["de las Casas"], False),
    ],
)  # fmt: skip
def test_bibtex_names(author, expected, et_al):
    reference = bibtex(f"@misc{{k, title = {{T}}, author = {{{author}}}}}")[0]
    assert families(reference) == expected
    assert reference.et_al is et_al


@pytest.mark.parametrize(
    "entry, title",
    [
        ('@article{k, title = "The {"}quoted{"} word", year = 2020}', 'The "quoted" word'),
        (r'@article{k, title = "G\"odel, Escher", year = 2020}', "Gödel, Escher"),
        ("@article(k, title = {In parentheses}, year = 2020)", "In parentheses"),
        ("@article{k, title = {Nested {deep{er}} braces}, year = 2020,}", "Nested deeper braces"),
        ('@article{k, title = "No comma"\n year = {2020}}', "No comma"),
        ("@ARTICLE { k , TITLE = {Spaces and capitals} , Year = 2020 }", "Spaces and capitals"),
        ("@article{, title = {Empty key}, year = 2020}", "Empty key"),
        ("@article{title = {No key}, year = 2020}", "No key"),
        ("@article{k, title = {Not closed}, year = {2020}\n", "Not closed"),
        ("% comment\nfree text @ home\n@article{k, title = {After text}, year = 2020}", "After text"),
        ("@comment{x}@article{k, title = {After comment}, year=2020}", "After comment"),
        ("@article{k, title = {Over\n   two   lines}, year = 2020}", "Over two lines"),
        ("@article{k, title = {x}, title = {second is ignored}, year = 2020}", "x"),
        ("@article{k:a/b+c-d_e.f, title = {Odd key}, year = 2020}", "Odd key"),
        ("@article{k, title = {A @ sign}, year = 2020}", "A @ sign"),
        (r"@article{k, title = {A \{ brace}, year = 2020}", "A { brace"),
        ("@article{k, title = {{Double braced}}, year = 2020}", "Double braced"),
        ("@article{k, title = {Sub}, subtitle = {Title}, year = 2020}", "Sub: Title"),
    ],
)  # fmt: skip
def test_bibtex_forms(entry, title):
    found = bibtex(entry)
    assert [r.title for r in found if isinstance(r, Reference)] == [title]
    assert found[0].year == 2020


def test_bibtex_broken_entries_do_not_stop_the_rest():
    found = bibtex(
        "@article{one, title={One}, year=2001}\n@article{bad1, title = {never closed, year = 2002\n}\n"
        '@article{two, title={Two}, year=2003}\n@article{bad2, title = "unclosed, year = 2004}\n'
        "@misc{bad3}\n@article{bad4, = {x}}\n@article{three, title={Three}, year=2005}\n@article{bad5, title ="
    )
    assert [r.key for r in found if isinstance(r, Reference)] == ["one", "two", "three"]
    broken = [r for r in found if isinstance(r, BrokenRecord)]
    assert [b.locator.split()[0] for b in broken] == ["bad1", "bad2", "bad3", "bad4", "bad5"]
    assert all(b.reason and b.excerpt for b in broken)


def test_bibtex_one_key_twice_gives_two_records():
    found = bibtex("@misc{a, title={One}}\n@misc{a, title={Two}}\n")
    assert [(r.key, r.title) for r in found] == [("a", "One"), ("a#2", "Two")]


def test_bibtex_formulas_stay_in_the_title_and_read_plainly():
    reference = bibtex(r"@misc{k, title = {Can the Measure of {$\cup^n_1 [a_i,b_i]$} be Computed}}")[0]
    assert r"$\cup^n_1 [a_i,b_i]$" in reference.title
    assert "$" not in reference.plain_title and "be Computed" in reference.plain_title


@pytest.mark.parametrize(
    "fields, arxiv, doi",
    [
        ("eprint = {2309.06180}, archivePrefix = {arXiv}", "2309.06180", None),
        ("eprint = {2309.06180v2}, eprinttype = {arxiv}", "2309.06180", None),
        ("journal = {arXiv preprint arXiv:2309.06180}", "2309.06180", None),
        ("journal = {CoRR}, volume = {abs/2309.06180}", "2309.06180", None),
        ("doi = {10.48550/arXiv.2309.06180}", "2309.06180", None),
        ("url = {https://arxiv.org/abs/2309.06180}", "2309.06180", None),
        ("doi = {https://doi.org/10.1145/3600006.3613165}", None, "10.1145/3600006.3613165"),
        (r"doi = {10.1007/978-3-030-1\_2}", None, "10.1007/978-3-030-1_2"),
        ("eprint = {hep-th/9711200}, archiveprefix = {arXiv}", "hep-th/9711200", None),
        ("howpublished = {arXiv:2309.06180}", "2309.06180", None),
    ],
)  # fmt: skip
def test_bibtex_identifiers(fields, arxiv, doi):
    reference = bibtex(f"@misc{{k, title = {{T}}, {fields}}}")[0]
    assert (reference.arxiv_id, reference.doi) == (arxiv, doi)


@pytest.mark.parametrize(
    "fields, date",
    [("year = 2016, month = oct", "2016-10"), ("year = {2016}, month = 10", "2016-10"), ("date = {2016-10-05}", "2016-10-05"),
     ("date = {2016-10/2017-02}", "2016-10"), ("year = {(2016)}", "2016"), ("year = {in press}", ""), ("month = oct", ""),
     ("year = 2016, month = {October}", "2016-10"), ("year = {c2016}", "2016")],
)  # fmt: skip
def test_bibtex_dates(fields, date):
    reference = bibtex(f"@misc{{k, title = {{T}}, {fields}}}")[0]
    assert reference.date == date and reference.year == (int(date[:4]) if date else None)


def test_bibtex_links_keep_their_characters():
    reference = bibtex(r"@online{k, title = {T}, url = {https://h.org/x\_y?a=b&c=%20d}}")[0]
    assert reference.url == "https://h.org/x_y?a=b&c=%20d"
    assert (
        bibtex(r"@misc{k, title = {T}, howpublished = {\url{https://github.com/a/b_c}}}")[0].kind
        == "software"
    )


# --- RIS --------------------------------------------------------------------------------------------------


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


# --- CSL, dates -------------------------------------------------------------------------------------------


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


# --- recognising by content -------------------------------------------------------------------------------

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


# --- streams ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, good, bad",
    [
        ('{"a":1}\n{"b":2}\n', 2, 0), ('[{"a":1},{"b":2}]', 2, 0), ('[\n {"a":1},\n {"b": tru},\n {"c":3}\n]', 2, 1), ('{"a":1}\n{bad\n{"c":3}\n', 2, 1),
        ('{\n "a": 1,\n "b": [1, 2]\n}\n', 1, 0), ('{"a":1}{"b":2} {"c":3}', 3, 0), ('{"a": "x\n{"b":2}\n{"c":3}', 2, 1), ("", 0, 0), ("[]", 0, 0),
        ('[{"a": "un", }, {"b":1}]', 1, 1), ("[" * 100_000, 0, 1), ('{"a":1}\n' + "[" * 5000 + "\n" + '{"b":1}', 2, 1), ('{"a": 1', 0, 1),
    ],
)  # fmt: skip
def test_json_streams(text, good, bad):
    values = list(json_values(io.StringIO(text)))
    assert sum(not v.error for v in values) == good
    assert sum(bool(v.error) for v in values) == bad


class Endless(io.RawIOBase):
    """JSON lines made as they are read; counts what was asked for."""

    def __init__(self, records, joint):
        self.left, self.joint, self.buffer, self.sent = records, joint, b"[" if joint == b"," else b"", 0

    def readable(self):
        return True

    def readinto(self, target):
        while len(self.buffer) < len(target) and self.left:
            self.left -= 1
            record = {"id": str(self.left), "type": "book", "title": f"Title {self.left} " + "x" * 400}
            end = (b"]" if self.joint == b"," else b"") if not self.left else self.joint
            self.buffer += json.dumps(record).encode() + end
        chunk, self.buffer = self.buffer[: len(target)], self.buffer[len(target) :]
        target[: len(chunk)] = chunk
        self.sent += len(chunk)
        return len(chunk)


@pytest.mark.parametrize("joint", [b"\n", b","], ids=["json-lines", "one-array-on-one-line"])
def test_large_streams_need_little_memory(joint):
    import tracemalloc

    stream = Endless(20_000, joint)
    tracemalloc.start()
    source = open_source(io.BufferedReader(stream))
    count = sum(isinstance(item, Reference) for item in source.items)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert stream.sent > 9_000_000
    assert peak < (2_000_000 if joint == b"\n" else 60_000_000)
