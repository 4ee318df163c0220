"""What broke other literature tools, by kind, through the whole way: read, resolve, search, export.

The ids name public bug reports of other projects (JabRef, pubs, papis, asreview, datasette …); inputs are shortened.
"""

import io
import re

import pytest

from ingest.ingest import ingest
from ingest.sources.detect import open_source
from kb.export import export
from kb.search import search


@pytest.fixture
def library(tmp_path):
    """A function that ingests texts into a new database and gives a reader on it."""
    from sqlmodel import SQLModel

    import kb.models  # noqa: F401
    from kb.db import open_reader, open_session

    path = str(tmp_path / "kb.sqlite")
    opened = []

    def make(*texts):
        with open_session(path) as session:
            SQLModel.metadata.create_all(session.connection())
            for text in texts:
                ingest(session, ["-"], stdin=io.BytesIO(text.encode()))
        opened.append(open_reader(path))
        return opened[-1]

    yield make
    for reader in opened:
        reader.close()


def read(text):
    return list(open_source(io.BytesIO(text.encode())).items)


def works(reader):
    return reader.rows("SELECT * FROM work ORDER BY id")


def first(reader, query):
    found = search(reader, query)["results"]
    return found[0]["title"] if found else None


# --- one work in two spellings ----------------------------------------------------------------------------

SAME = {
    "U01 DOI case": ("@article{a, title={On things of some length here}, author={Doe, A.}, year=2022, doi={10.1109/SC41404.2022.00051}}",
                     "@article{b, title={On Things of Some Length Here}, author={Doe, A.}, year=2022, doi={10.1109/sc41404.2022.00051}}"),
    "U15 arXiv DOI": ("@misc{a, title={Neural nets of some length}, author={Doe, A.}, year=2017, doi={10.48550/ARXIV.1707.08052}}",
                      "@misc{b, title={Neural nets of some length}, author={Doe, A.}, year=2017, eprint={1707.08052}, archiveprefix={arXiv}}"),
    "U17 type and braces": ("@misc{a, title={{A Report on {Inference} Systems}}, author={Doe, Ann and Roe, Bob}, year=2020, url={https://x.org/r}}",
                            "@techreport{b, title={A report on inference systems}, author={Doe, Ann and Roe, Bob}, year={2020}, url={https://x.org/r}}"),
    "U41 composed and decomposed": ("@misc{a, title={The Re\u0301sume\u0301 of a long life in science}, author={Cote\u0301, A.}, year=2020}",
                                    "@misc{b, title={The Résumé of a long life in science}, author={Coté, A.}, year=2020}"),
    "U34 LaTeX accents": (r"@misc{a, title={Une \^{i}le et une tr\`es longue phrase}, author={Mart{\'\i}n, A.}, year=2020}",
                          "TY  - JOUR\nTI  - Une île et une très longue phrase\nAU  - Martín, A.\nPY  - 2020\nER  - \n"),
    "U38 escaped ampersand": (r"@article{a, title={Search {\&} rescue in large models}, author={Doe, A.}, year=2020}",
                              "@article{b, title={Search & rescue in large models}, author={Doe, A.}, year=2020}"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAME)
def test_same_work(library, case):
    assert len(works(library(*SAME[case]))) == 1


DIFFERENT = {
    "U18 editions": ("@book{a, title={Computer Systems of Today}, edition={2}, author={Doe, A.}, year=2010}",
                     "@book{b, title={Computer Systems of Today}, edition={3}, author={Doe, A.}, year=2013}"),
    "U18 numbers": ("@misc{a, title={FlashAttention: fast attention}, author={Dao, T.}, year=2022}",
                    "@misc{b, title={FlashAttention-2: faster attention}, author={Dao, T.}, year=2023}"),
    "U71 a title inside a title": ("@misc{a, title={Model compression}, author={Bucila, C.}, year=2006}",
                                   "@misc{b, title={Model compression via distillation and quantization}, author={Polino, A.}, year=2018}"),
}  # fmt: skip


@pytest.mark.parametrize("case", DIFFERENT)
def test_different_works(library, case):
    assert len(works(library(*DIFFERENT[case]))) == 2


# --- search -----------------------------------------------------------------------------------------------

ENTRIES = r"""
@misc{Law:2009The, title={The {KV}-cache of an LLM}, author={Law, A.}, year={2009}}
@misc{ca, title={Decay of Ca38: a measurement}, author={Alpha, B.}, year={2017}}
@misc{cb, title={Decay of Ar 38 and its kin}, author={Beta, C.}, year={2018}}
@misc{math, title={Can the Measure of {$\cup^n_1 [a_i,b_i]$} be Computed}, author={Gamma, D.}, year={1977}}
@misc{gpt, title={GPT-4 and low-bit formats}, author={Kurti\'c, E.}, year={2023}}
@inproceedings{kwon, title={Efficient memory management}, author={Kwon, W.}, year={2023}, doi={10.1145/3600006.3613165}, eprint={2309.06180}, archiveprefix={arXiv}}
"""


@pytest.mark.parametrize(
    "query, title",
    [
        ("KV-cache", "The KV-cache of an LLM"), ("Law:2009The", "The KV-cache of an LLM"), ("law:2009the", "The KV-cache of an LLM"),
        ("Ca 38", "Decay of Ca38: a measurement"), ("Ca38", "Decay of Ca38: a measurement"), ("Ar38", "Decay of Ar 38 and its kin"),
        ("measure computed", r"Can the Measure of ∪n1 [ai,bi] be Computed"), ("GPT-4", "GPT-4 and low-bit formats"),
        ("low-bit", "GPT-4 and low-bit formats"), ("Kurtic", "GPT-4 and low-bit formats"), ("Kurtić", "GPT-4 and low-bit formats"),
        ("10.1145/3600006.3613165", "Efficient memory management"), ("2309.06180", "Efficient memory management"),
        ("https://doi.org/10.1145/3600006.3613165", "Efficient memory management"), ("kwon-2023-efficient", "Efficient memory management"),
        ("author:kwon", "Efficient memory management"), ("year:1977", r"Can the Measure of ∪n1 [ai,bi] be Computed"), ("foo:bar", None),
    ],
)  # fmt: skip
def test_what_is_typed_finds_it(library, query, title):
    assert first(library(ENTRIES), query) == title


def test_park_and_meta_in_the_package(reader):
    assert search(reader, "park.")["total"] > 0
    numbers = {row["number"] for row in reader.rows(
        "SELECT c.number FROM citation c JOIN survey s ON s.work_id = c.citing_id JOIN work w ON w.id = c.cited_id "
        "WHERE s.slug = 'zhou' AND w.slug = :slug", {"slug": search(reader, "meta's llama")["results"][0]["id"]})}  # fmt: skip
    assert 250 in numbers


@pytest.mark.parametrize("query", ["Kurtic", "Kurtić", "Kurtic\u0301"])
def test_accents_in_the_package(reader, query):
    found = {one["id"] for one in search(reader, query)["results"]}
    for number in ("zhou:171", "zhou:176", "park:55"):
        assert search(reader, number)["results"][0]["id"] in found


# --- export -----------------------------------------------------------------------------------------------


def test_keys_of_one_author_and_year(library):
    """U32, U82: distinct, plain, and the same after more of them came."""
    one = "@misc{%s, title={%s system for inference}, author={van der Berg, Jan and {100%%\\{X\\}}}, year={2024}}\n"
    names = ["Alpha", "Beta", "Gamma"]
    text = "".join(one % (name, name) for name in names)
    reader = library(text)
    keys = re.findall(r"^@\w+\{(.*),$", "".join(export(reader, "bibtex")), re.MULTILINE)
    assert len(set(keys)) == 3 and all(re.fullmatch(r"[A-Za-z0-9:_-]+", key) for key in keys)
    reader = library("".join(one % (name, name) for name in ["Aaaa", "Zeta"]))
    later = re.findall(r"^@\w+\{(.*),$", "".join(export(reader, "bibtex")), re.MULTILINE)
    assert set(keys) < set(later) and len(later) == 5


def test_a_round_trip_loses_nothing(library):
    """U36, U37, U38: what BibTeX escapes comes back."""
    text = r"""@article{a, title = {A {\&} B 100\% of x\_1 \#2 with 90\%* quality \$5}, author = {{Team \& Co} and van der Berg, Jan and others},
      journal = {Computing in Science {\&} Engineering}, year = 2021, month = mar, url = {https://h.org/x_y?a=b&c}, pages = {1--9}, volume = 3}"""
    reader = library(text)
    (once,) = read(text)
    (again,) = read("".join(export(reader, "bibtex")))
    for name in ("title", "authors", "et_al", "venue", "year", "date", "url", "pages", "volume"):
        assert getattr(once, name) == getattr(again, name), name
    assert once.title == "A & B 100% of x_1 #2 with 90%* quality $5"


def test_retracted_works(library):
    """U53: the flag is kept apart from the title, and exported as a note."""
    reader = library("@article{a, title={RETRACTED: A finding of some length}, author={Doe, A.}, year=2020}")
    (work,) = works(reader)
    assert (work["title"], work["status"]) == ("A finding of some length", "retracted")
    assert "note = {RETRACTED}" in "".join(export(reader, "bibtex"))


# --- files ------------------------------------------------------------------------------------------------


def test_authors_of_ris_in_one_line_are_split_with_a_warning():
    """U78."""
    (reference,) = read("TY  - JOUR\nTI  - T\nAU  - A, B.; C, D.\nER  - \n")
    assert [author["family"] for author in reference.authors] == ["A", "C"] and "split" in reference.notes[0]


@pytest.mark.parametrize(
    "parts, date",
    [("[[2016,10]]", "2016-10"), ("[[2024]]", "2024"), ("[[null]]", ""), ("[]", ""), ("[[2018,1,24]]", "2018-01-24"), ("[[0]]", "")],
)  # fmt: skip
def test_partial_dates_keep_their_precision(parts, date):
    """U49."""
    (reference,) = read(f'{{"type": "book", "title": "T", "issued": {{"date-parts": {parts}}}}}')
    assert reference.date == date
