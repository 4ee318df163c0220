"""The packaged literature: three surveys as facts, one work per work, the user's rows kept through a rebuild."""

import json
import sqlite3

import pytest
from sqlalchemy import text
from sqlmodel import Session, SQLModel

import kb.models  # noqa: F401  (registers the tables)
from ingest.literature import SourceInfo, ingest_records, load_surveys
from ingest.references import Reference
from kb.db import make_engine


def make_session(path):
    engine = make_engine(f"sqlite:///{path}")
    session = Session(engine)
    SQLModel.metadata.create_all(session.connection())
    return session


@pytest.fixture
def session(tmp_path):
    with make_session(tmp_path / "kb.sqlite") as one:
        load_surveys(one)
        one.commit()
        yield one


def count(session, statement):
    return session.connection().execute(text(statement)).scalar_one()


def test_707_references_are_530_works_and_the_surveys_are_works_too(session):
    assert count(session, "SELECT COUNT(*) FROM citation") == 313 + 254 + 140
    assert count(session, "SELECT COUNT(DISTINCT cited_id) FROM citation") == 530
    # Zhou's reference 27 is the Yuan survey; the other two surveys are cited by none of the three.
    assert count(session, "SELECT COUNT(*) FROM work") == 532
    row = session.connection().execute(
        text(
            "SELECT work.id, survey.slug FROM citation JOIN work ON work.id = citation.cited_id"
            " JOIN survey ON survey.work_id = work.id WHERE citation.number = 27"
        )
    )
    assert [one[1] for one in row] == ["yuan"]


def test_the_same_files_give_the_same_rows(tmp_path):
    dumps = []
    for name in ("a.sqlite", "b.sqlite"):
        with make_session(tmp_path / name) as session:
            load_surveys(session)
            session.commit()
        connection = sqlite3.connect(tmp_path / name)
        dumps.append("\n".join(connection.iterdump()))
        connection.close()
    assert dumps[0] == dumps[1]


def test_loading_again_changes_nothing(session, tmp_path):
    before = [
        tuple(row)
        for row in session.connection().execute(text("SELECT slug, title, year FROM work ORDER BY slug"))
    ]
    load_surveys(session)
    session.commit()
    after = [
        tuple(row)
        for row in session.connection().execute(text("SELECT slug, title, year FROM work ORDER BY slug"))
    ]
    assert before == after
    assert count(session, "SELECT COUNT(*) FROM record") == count(
        session, "SELECT COUNT(DISTINCT source_id || ':' || locator) FROM record"
    )


def test_a_rebuild_keeps_what_the_user_ingested(session):
    mine = [
        Reference(
            title="Attention is all you need",
            authors=({"family": "Vaswani", "given": "A."},),
            year=2017,
            et_al=True,
            key="v",
        ),
        Reference(
            title="A paper that no survey cites at all",
            authors=({"family": "Doe", "given": "J."},),
            year=2026,
            key="d",
        ),
    ]
    report = ingest_records(session, SourceInfo(kind="bibtex", title="mine", locator="my.bib"), mine)
    assert (report.read, report.new, report.matched) == (2, 1, 1)
    slugs = "SELECT work.slug FROM record JOIN work ON work.id = record.work_id WHERE record.origin = 'user' ORDER BY record.id"
    before = [row[0] for row in session.connection().execute(text(slugs))]
    load_surveys(session)
    session.commit()
    assert [row[0] for row in session.connection().execute(text(slugs))] == before
    assert count(session, "SELECT COUNT(*) FROM work") == 533
    assert count(session, "SELECT COUNT(DISTINCT cited_id) FROM citation") == 530


def test_no_raw_reference_text_is_shipped():
    from ingest.curated import DATA

    for name in ("zhou", "yuan", "park"):
        for line in (DATA / "surveys" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            assert "unstructured" not in row
            assert not any(isinstance(value, str) and len(value) > 260 for value in row.values())
