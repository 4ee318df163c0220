"""Storing references: twice adds nothing, a kill leaves whole batches, two writers wait for each other."""

import multiprocessing
import sqlite3
import threading
from dataclasses import replace

import pytest
from sqlalchemy import event, text
from sqlmodel import Session, SQLModel

import ingest.literature
import kb.models  # noqa: F401  (registers the tables)
from ingest.literature import SourceInfo, ingest_records
from ingest.references import Reference
from kb.db import make_engine


def some(count, start=0):
    return [
        Reference(
            title=f"Work number {number} about imaginary decoding",
            authors=({"family": f"Doe{number % 7}"}, {"family": "Roe"}),
            year=2020,
            key=f"k{number}",
        )
        for number in range(start, start + count)
    ]


def source(name="x", digest=""):
    return SourceInfo(kind="bibtex", title=name, locator=f"{name}.bib", content_sha256=digest or name * 8)


def open_store(path):
    session = Session(make_engine(f"sqlite:///{path}"))
    SQLModel.metadata.create_all(session.connection())
    session.commit()
    return session


@pytest.fixture
def session(tmp_path):
    with open_store(tmp_path / "kb.sqlite") as one:
        yield one


def counts(session):
    return {
        table: session.connection().execute(text(f"SELECT COUNT(*) FROM {table}")).scalar_one()
        for table in ("source", "record", "work", "identifier", "citation", "decision")
    }


def test_running_an_import_twice_adds_nothing(session):
    first = ingest_records(session, source(), some(10))
    before = counts(session)
    second = ingest_records(session, source(), some(10))
    assert counts(session) == before
    assert (first.read, first.new, first.matched, first.known) == (10, 10, 0, 0)
    assert (second.read, second.new, second.matched, second.known) == (10, 0, 10, 10)


def test_the_same_content_under_another_name_adds_nothing(session):
    ingest_records(session, source("a", "f" * 64), some(5))
    before = counts(session)
    ingest_records(session, source("b", "f" * 64), some(5))
    assert counts(session) == before


def test_the_same_work_from_another_source_is_a_record_of_the_same_work(session):
    ingest_records(session, source("a"), some(5))
    report = ingest_records(session, source("b"), some(5))
    assert (report.new, report.matched) == (0, 5)
    assert counts(session)["work"] == 5
    assert counts(session)["record"] == 10


def test_a_key_that_occurs_twice_in_one_file_keeps_both_entries(session):
    one, other = some(2)
    twice = [one, Reference(title=other.title, authors=other.authors, year=2020, key=one.key)]
    for _ in range(2):
        ingest_records(session, source(), twice)
    assert counts(session)["record"] == 2
    assert counts(session)["work"] == 2


def test_what_is_not_committed_can_be_taken_back(session):
    before = counts(session)
    report = ingest_records(session, source(), some(10), batch=4, commit=False)
    session.rollback()
    assert report.new == 10
    assert counts(session) == before


def test_a_reference_that_says_nothing_is_reported_and_kept(session):
    empty = Reference(authors=({"family": "Kwon"},), truncated=True, number=110)
    report = ingest_records(session, source(), [empty, *some(1)])
    assert [one["number"] for one in report.unresolved] == [110]
    assert counts(session)["work"] == 2


def test_a_flag_before_the_title_becomes_the_status(session):
    flagged = [
        Reference(
            title="RETRACTED: A work about decoding things", authors=({"family": "Doe"},), year=2020, key="a"
        ),
        Reference(title="A work about decoding things", authors=({"family": "Doe"},), year=2020, key="b"),
    ]
    ingest_records(session, source(), flagged)
    rows = session.connection().execute(text("SELECT title, status FROM work")).all()
    assert [tuple(row) for row in rows] == [("A work about decoding things", "retracted")]


def test_an_import_that_fails_midway_leaves_whole_batches_and_goes_on_later(session):
    def broken():
        yield from some(25)
        raise RuntimeError("the source ended")

    with pytest.raises(RuntimeError):
        ingest_records(session, source(), broken(), batch=10)
    session.rollback()
    assert counts(session)["record"] == 20  # the batch that was being read is not there at all
    report = ingest_records(session, source(), some(40), batch=10)
    assert (report.known, report.new) == (20, 20)
    assert counts(session)["record"] == counts(session)["work"] == 40


def killed_import(path):
    """Runs in a process of its own and dies inside the second batch, after rows were written."""
    import os

    real, calls = ingest.literature.store_records, []

    def dying(*arguments, **keywords):
        calls.append(1)
        real(*arguments, **keywords)
        if len(calls) == 2:
            os._exit(9)

    ingest.literature.store_records = dying
    with Session(make_engine(f"sqlite:///{path}")) as session:
        ingest_records(session, source(), some(40), batch=10)


def test_a_killed_process_leaves_a_sound_store_that_resumes(tmp_path):
    path = tmp_path / "kb.sqlite"
    open_store(path).close()
    process = multiprocessing.get_context("fork").Process(target=killed_import, args=(path,))
    process.start()
    process.join(60)
    assert process.exitcode == 9
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT COUNT(*) FROM record").fetchone() == (10,)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    with open_store(path) as session:
        report = ingest_records(session, source(), some(40), batch=10)
        assert (report.known, report.new) == (10, 30)


def test_two_writers_at_once_make_one_sound_store(tmp_path):
    path = tmp_path / "kb.sqlite"
    open_store(path).close()
    errors = []

    def write(name, start):
        try:
            with Session(make_engine(f"sqlite:///{path}")) as session:
                ingest_records(session, source(name), some(60, start), batch=7)
        except Exception as error:
            errors.append(error)

    # Forty of the works are in both files.
    threads = [threading.Thread(target=write, args=("a", 0)), threading.Thread(target=write, args=("b", 20))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with open_store(path) as session:
        assert counts(session)["record"] == 120
        assert counts(session)["work"] == 80
        wrong = session.connection().execute(
            text(
                "SELECT COUNT(*) FROM identifier JOIN record ON record.id = record_id WHERE identifier.work_id <> record.work_id"
            )
        )
        assert wrong.scalar_one() == 0


def test_works_of_one_author_and_year_get_distinct_readable_slugs(session):
    titles = [f"Model {word} for quick decoding" for word in ("alpha", "beta", "gamma")] + [
        "Model alpha for slow decoding"
    ]
    listed = [Reference(title=title, authors=({"family": "Li"},), year=2023, key=title) for title in titles]
    ingest_records(session, source(), listed)
    slugs = session.connection().execute(text("SELECT slug FROM work ORDER BY id")).scalars().all()
    assert slugs == ["li-2023-model", "li-2023-model-beta", "li-2023-model-gamma", "li-2023-model-alpha"]


def test_a_survey_cites_each_work_as_its_row_number(session):
    subject = Reference(title="A survey of decoding", authors=({"family": "van der Poe"},), year=2024)
    listed = [
        Reference(title=one.title, authors=one.authors, year=2020, number=n)
        for n, one in enumerate(some(3), 1)
    ]
    for _ in range(2):
        ingest_records(
            session, SourceInfo(kind="survey", title="Poe", content_sha256="1" * 64), listed, subject=subject
        )
    rows = session.connection().execute(text("SELECT number, cited_id FROM citation ORDER BY number")).all()
    assert [row[0] for row in rows] == [1, 2, 3]
    survey = session.connection().execute(text("SELECT slug, reference_count FROM survey")).one()
    assert tuple(survey) == ("van-der-poe", 3)
    assert session.connection().execute(text("SELECT SUM(survey_count) FROM work")).scalar_one() == 3


def test_an_identifier_that_two_different_papers_claim_is_flagged_and_unites_nothing(session):
    """A list prints a wrong DOI: the row keeps its title, and a person is asked."""
    listed = [
        Reference(
            title="A study of decoding", authors=({"family": "Doe"},), year=2020, doi="10.1000/w", key="a"
        ),
        Reference(
            title="Whales of the northern sea",
            authors=({"family": "Ahab"},),
            year=2020,
            doi="10.1000/W",
            key="b",
        ),
    ]
    report = ingest_records(session, source(), listed)
    assert (report.new, report.proposed) == (2, 1)
    basis = session.connection().execute(text("SELECT basis FROM decision")).scalar_one()
    assert basis == "same doi, but titles and authors differ"


def test_a_survey_that_is_read_again_from_another_page_counts_once(session):
    subject = Reference(title="A survey of decoding", authors=({"family": "Poe"},), year=2024)
    listed = [
        Reference(title=one.title, authors=one.authors, year=2020, number=n)
        for n, one in enumerate(some(3), 1)
    ]
    for digest in ("1" * 64, "2" * 64):
        info = SourceInfo(kind="survey", title="Poe", content_sha256=digest)
        ingest_records(session, info, listed, subject=subject)
    assert session.connection().execute(text("SELECT slug FROM survey")).scalars().all() == ["poe"]
    assert counts(session)["citation"] == 6  # two pages say so
    assert session.connection().execute(text("SELECT MAX(survey_count) FROM work")).scalar_one() == 1


def test_a_reference_that_says_nothing_better_does_not_rewrite_the_work(session):
    written = []

    @event.listens_for(session.connection().engine, "before_cursor_execute")
    def note(_connection, _cursor, statement, *_rest):
        if statement.startswith("UPDATE work"):
            written.append(statement.partition(" WHERE ")[0])

    doe = ({"family": "Doe", "given": "J."}, {"family": "Roe", "given": "R."})
    plain = Reference(title="Alpha networks for sequences", authors=doe, year=2021, kind="paper", key="a")
    for number, (change, said) in enumerate(
        [
            ({}, []),
            ({"title": "ALPHA NETWORKS FOR SEQUENCES"}, []),
            ({"venue": "Proc. B"}, ["UPDATE work SET venue = ?"]),
            ({"year": 2020}, ["UPDATE work SET year = ?"]),
        ]
    ):
        written.clear()
        source = SourceInfo(kind="bibtex", title="x", locator=f"{number}.bib")
        ingest_records(session, source, [replace(plain, key=f"k{number}", **change)])
        assert written == said
    work = session.connection().execute(text("SELECT title, venue, year FROM work")).all()
    assert work == [("Alpha networks for sequences", "Proc. B", 2020)]
