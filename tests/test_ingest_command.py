"""`kb ingest` and the library function behind it: files of every kind, standard input, dry runs, repetitions."""

import io
import json
import os
import shutil
import subprocess
import sys

import pytest

from ingest.errors import IngestError, UnreadableSource
from ingest.ingest import as_identifier, ingest
from ingest.literature import Report

BIB = """@article{one, title = {The first invented result}, author = {Doe, Jane and Roe, Richard}, year = {2021}, doi = {10.5555/one}}
@misc{bad, title = {never closed, year = {2020}
@misc{two, title = {The second invented result}, author = {Li, Wei}, year = {2022}, eprint = {2201.00002}, archiveprefix = {arXiv}}
"""
RIS = "TY  - JOUR\nTI  - The first invented result\nAU  - Doe, Jane\nAU  - Roe, Richard\nPY  - 2021\nDO  - 10.5555/ONE\nER  - \n"
CSL = [{"id": "x", "type": "article", "title": "The second invented result", "author": [{"family": "Li", "given": "Wei"}],
        "issued": {"date-parts": [[2022]]}, "number": "arXiv:2201.00002"}, {"id": "y", "type": "book"}]  # fmt: skip
PAGE = """A survey of inventions

References

1. J. Doe and R. Roe, “The first invented result,” Journal of Things, 2021.
2. W. Li, “The second invented result,” arXiv preprint arXiv:2201.00002, 2022.
3. W. Li, “A third invented result of some length,” arXiv preprint arXiv:2301.00003, 2023.
"""


@pytest.fixture
def empty(tmp_path):
    from sqlmodel import SQLModel

    import kb.models  # noqa: F401
    from kb.db import open_session

    path = str(tmp_path / "kb.sqlite")
    with open_session(path) as session:
        SQLModel.metadata.create_all(session.connection())
    return path


def run(database, *sources, stdin=None, **options):
    from kb.db import open_session

    with open_session(database) as session:
        return ingest(session, [str(one) for one in sources], stdin=stdin, **options).as_json()


def count(database, table):
    from kb.db import open_reader

    reader = open_reader(database)
    try:
        return reader.one(f"SELECT count(*) AS n FROM {table}")["n"]
    finally:
        reader.close()


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_bibtex_then_ris_then_csl_are_the_same_two_works(empty, tmp_path):
    first = run(empty, write(tmp_path / "a.txt", BIB))
    assert (first["read"], first["new"], first["matched"]) == (2, 2, 0)
    assert [(one["locator"].split()[0], bool(one["reason"])) for one in first["unresolved"]] == [
        ("bad", True)
    ]
    second = run(empty, write(tmp_path / "b.txt", RIS), write(tmp_path / "c.txt", CSL))
    assert (second["read"], second["new"], second["matched"]) == (2, 0, 2)
    assert second["unresolved"][0]["locator"] == "record 2"
    assert count(empty, "work") == 2 and count(empty, "record") == 4


def test_again_adds_nothing(empty, tmp_path):
    path = write(tmp_path / "a.bib", BIB)
    run(empty, path)
    before = [count(empty, table) for table in ("work", "record", "identifier", "source")]
    again = run(empty, path)
    assert (again["new"], again["known"]) == (0, 2)
    assert [count(empty, table) for table in ("work", "record", "identifier", "source")] == before


def test_a_dry_run_changes_nothing(empty, tmp_path):
    one, two = write(tmp_path / "a.bib", BIB), write(tmp_path / "b.ris", RIS)
    said = run(empty, one, two, dry_run=True)
    assert (said["read"], said["new"], said["matched"]) == (3, 2, 1)
    assert [count(empty, table) for table in ("work", "record", "source", "decision")] == [0, 0, 0, 0]


def test_one_pasted_reference_is_shown_before_it_is_stored(empty):
    line = "A. Agrawal, N. Kedia, A. Tumanov, , and R. Ramjee, “A title of some length,” arXiv preprint arXiv:2403.02310, 2024.\n"
    said = run(empty, "-", stdin=io.BytesIO(line.encode()), dry_run=True)
    (shown,) = said["preview"]
    assert (shown["title"], shown["year"], shown["arxiv_id"]) == (
        "A title of some length",
        2024,
        "2403.02310",
    )
    assert [author["family"] for author in shown["authors"]] == ["Agrawal", "Kedia", "Tumanov", "Ramjee"]
    assert count(empty, "work") == 0


def test_a_page_gives_citations_by_number(empty, tmp_path):
    answer = run(empty, write(tmp_path / "page.md", PAGE))
    assert (answer["read"], answer["new"]) == (3, 3)
    assert count(empty, "citation") == 3 and count(empty, "survey") == 1


def test_standard_input(empty):
    answer = run(empty, "-", stdin=io.BytesIO(BIB.encode()))
    assert answer["new"] == 2
    assert run(empty, "-", stdin=io.BytesIO(BIB.encode()))["known"] == 2


def test_one_unreadable_source_does_not_stop_the_others(empty, tmp_path):
    answer = run(
        empty,
        tmp_path / "missing.bib",
        write(tmp_path / "a.bib", BIB),
        write(tmp_path / "noise.txt", "just words\n"),
    )
    assert answer["new"] == 2
    assert [one["source"].rpartition("/")[2] for one in answer["unresolved"]] == [
        "missing.bib",
        "a.bib",
        "noise.txt",
    ]


def test_if_nothing_can_be_read_it_is_an_error(empty, tmp_path):
    with pytest.raises(UnreadableSource, match=r"missing\.bib"):
        run(empty, tmp_path / "missing.bib")
    with pytest.raises(UnreadableSource, match="folder"):
        run(empty, tmp_path)
    with pytest.raises(IngestError):
        run(empty, "-", stdin=io.BytesIO(b""))


def test_many_crossref_works_in_one_file(empty, tmp_path):
    def work(n, **more):
        return {"DOI": f"10.5555/w.{n}", "type": "journal-article", "title": [f"The invented work number {n}"], "reference-count": 0,
                "issued": {"date-parts": [[2020]]}, "author": [{"family": f"Author{n}", "given": "A"}], **more}  # fmt: skip

    listed = [
        work(1, reference=[{"key": "r", "DOI": "10.5555/w.2"}], **{"reference-count": 1}),
        work(2),
        work(3),
    ]
    answer = run(empty, write(tmp_path / "works.jsonl", "\n".join(map(json.dumps, listed))))
    assert answer["new"] == 3 and count(empty, "work") == 3 and count(empty, "survey") == 0
    assert count(empty, "citation") == 1


def test_the_index_follows(empty, tmp_path):
    from kb.db import open_reader
    from kb.search import search

    run(empty, write(tmp_path / "a.bib", BIB))
    reader = open_reader(empty)
    assert search(reader, "second invented")["results"][0]["title"] == "The second invented result"
    assert search(reader, "10.5555/one")["results"][0]["exact"]
    reader.close()


def test_no_more_broken_records_are_listed_than_anybody_reads(empty, tmp_path):
    lines = ["{bad" for _ in range(1500)]
    answer = run(empty, write(tmp_path / "x.jsonl", json.dumps(CSL[0]) + "\n" + "\n".join(lines)))
    assert answer["new"] == 1
    assert len(answer["unresolved"]) == 1000 and answer["unresolved_not_listed"] == 500


@pytest.mark.parametrize(
    "text, provider",
    [
        ("doi:10.1145/3600006.3613165", "doi"), ("DOI:10.1145/1", "doi"), ("10.1145/3600006.3613165", "doi"), ("arxiv:2309.06180", "arxiv"),
        ("https://arxiv.org/abs/2309.06180v1", "arxiv"), ("doi:10.48550/arXiv.2309.06180", "arxiv"), ("openalex:W2741809807", "openalex"),
        ("s2:" + "a" * 40, "s2"), ("refs.bib", ""), ("./a:b.bib", ""), ("-", ""),
    ],
)  # fmt: skip
def test_identifiers_are_told_from_files(text, provider):
    assert as_identifier(text)[0] == provider


def kb(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-P", "-m", "kb.cli", *arguments],
        capture_output=True,
        timeout=120,
        env={**os.environ},
        **options,
    )


def test_the_command(database, tmp_path):
    mine = str(tmp_path / "mine.sqlite")
    shutil.copy(database, mine)
    done = kb("ingest", "-", "--json", "--quiet", "--db", mine, input=BIB.encode())
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert {"read", "new", "matched", "merged", "proposed", "unresolved", "classification"} <= answer.keys()
    assert (answer["read"], answer["new"]) == (2, 2) and len(answer["unresolved"]) == 1
    assert not done.stderr.strip()
    table = kb("ingest", "-", "--dry-run", "--db", mine, input=RIS.encode())
    assert table.returncode == 0 and all(len(line) <= 80 for line in table.stdout.decode().splitlines())
    wrong = kb("ingest", "nowhere.bib", "--db", mine)
    assert wrong.returncode == 2 and wrong.stderr.decode().count("\n") == 1


def test_the_report_has_the_keys_of_the_interface():
    assert {"read", "new", "matched", "merged", "proposed", "unresolved"} <= Report().as_json().keys()
