"""Merging and undoing: exact, kept through a rebuild, refused with a reason."""

import random

import pytest
from sqlalchemy import text
from sqlmodel import Session

from ingest.errors import StoreError
from ingest.literature import SourceInfo, ingest_records, load_surveys
from ingest.merging import declare_different, merge, unmerge
from ingest.references import Reference
from kb.db import make_engine
from kb.errors import NotFound
from kb.models import Technique

TABLES = ("work", "record", "identifier", "citation", "decision", "survey", "techniquework", "evidence")


def author(*families):
    return tuple({"family": family} for family in families)


def dump(session):
    return {
        table: sorted(str(tuple(row)) for row in session.connection().execute(text(f"SELECT * FROM {table}")))
        for table in TABLES
    }


def slugs(session):
    return [row[0] for row in session.connection().execute(text("SELECT slug FROM work ORDER BY slug"))]


@pytest.fixture
def session():
    from sqlmodel import SQLModel

    import kb.models  # noqa: F401

    with Session(make_engine("sqlite://")) as one:
        SQLModel.metadata.create_all(one.connection())
        yield one


@pytest.fixture
def two(session):
    references = [
        Reference(
            title="Alpha networks for long sequences",
            authors=author("Doe", "Roe"),
            year=2020,
            arxiv_id="2001.00001",
            key="a",
        ),
        Reference(
            title="Beta networks: the published version",
            authors=author("Doe", "Roe"),
            year=2021,
            doi="10.1000/b",
            key="b",
        ),
        Reference(
            title="Beta networks: the published version", authors=author("Doe", "Roe"), year=2021, key="c"
        ),
    ]
    ingest_records(session, SourceInfo(kind="bibtex", title="x", locator="x.bib"), references)
    assert slugs(session) == ["doe-2020-alpha", "doe-2021-beta-networks"]
    return session


def test_undoing_a_merge_gives_back_every_row(two):
    before = dump(two)
    log = merge(two, "doe-2020-alpha", "10.1000/b", reason="same text")
    assert slugs(two) == ["doe-2020-alpha"]
    row = two.connection().execute(text("SELECT doi, arxiv_id, year FROM work")).one()
    assert tuple(row) == ("10.1000/b", "2001.00001", 2020)
    unmerge(two, str(log["id"]))
    assert dump(two) == before


def test_a_merge_unites_citations_and_links_and_an_undo_parts_them(two):
    connection = two.connection()
    survey = Reference(title="A survey of networks", authors=author("Poe"), year=2024)
    listed = [
        Reference(
            title="Alpha networks for long sequences", authors=author("Doe", "Roe"), year=2020, number=1
        ),
        Reference(
            title="Beta networks: the published version", authors=author("Doe", "Roe"), year=2021, number=2
        ),
    ]
    ingest_records(two, SourceInfo(kind="survey", title="Poe"), listed, subject=survey)
    ids = {row.slug: row.id for row in two.connection().execute(text("SELECT slug, id FROM work"))}
    connection = two.connection()
    two.add(
        Technique(
            slug="alpha",
            name="Alpha",
            summary="",
            kind="technique",
            mechanism="",
            phase="both",
            training="none",
            lossless="yes",
        )
    )
    two.flush()
    for number, slug in enumerate(("doe-2020-alpha", "doe-2021-beta-networks"), 1):
        connection.execute(
            text(
                "INSERT INTO techniquework (id, technique, work_id, role) VALUES (:n, 'alpha', :w, 'introduces')"
            ),
            {"n": number, "w": ids[slug]},
        )
    before = dump(two)
    log = merge(two, "doe-2020-alpha", "doe-2021-beta-networks")
    cited = two.connection().execute(text("SELECT DISTINCT cited_id FROM citation")).scalars().all()
    assert cited == [ids["doe-2020-alpha"]]
    assert two.connection().execute(text("SELECT COUNT(*) FROM techniquework")).scalar_one() == 1
    unmerge(two, log["absorbed"])
    assert dump(two) == before


def test_merging_twice_or_undoing_twice_is_refused_with_a_reason(two):
    log = merge(two, "doe-2020-alpha", "doe-2021-beta-networks")
    with pytest.raises(StoreError, match="one work already"):
        merge(two, "2001.00001", "10.1000/b")
    unmerge(two, str(log["id"]))
    with pytest.raises(StoreError, match="was undone"):
        unmerge(two, str(log["id"]))
    with pytest.raises(NotFound):
        unmerge(two, "99")
    with pytest.raises(NotFound):
        merge(two, "doe-2020-alpha", "nobody-1900-nothing")


def test_a_word_that_two_works_differ_takes_the_proposal_off_the_list(session):
    references = [
        Reference(
            title="Gamma pruning of large models by rows",
            authors=author("Doe", "Roe", "Poe"),
            year=2020,
            key="a",
        ),
        Reference(
            title="Gamma pruning of large models by columns",
            authors=author("Doe", "Roe", "Poe"),
            year=2020,
            key="b",
        ),
    ]
    report = ingest_records(session, SourceInfo(kind="bibtex", title="x", locator="x.bib"), references)
    assert report.proposed == 1
    one, other = slugs(session)
    declare_different(session, one, other)
    waiting = session.connection().execute(text("SELECT COUNT(*) FROM decision WHERE status = 'proposed'"))
    assert waiting.scalar_one() == 0
    # The same pair does not come back with the next import.
    again = [
        Reference(title=reference.title, authors=reference.authors, year=2021, key="c" + reference.key)
        for reference in references
    ]
    assert ingest_records(session, SourceInfo(kind="bibtex", title="y", locator="y.bib"), again).proposed == 0


def test_a_merge_by_hand_outlives_a_rebuild_and_can_still_be_undone(session):
    load_surveys(session)
    session.commit()
    before = slugs(session)
    log = merge(session, "lin-2023-awq", "frantar-2022-gptq")
    load_surveys(session)
    assert "frantar-2022-gptq" not in slugs(session)
    assert "lin-2023-awq" in slugs(session)
    unmerge(session, str(log["id"]))
    assert slugs(session) == before


@pytest.mark.parametrize("seed", range(12))
def test_merges_of_any_works_undone_in_reverse_leave_every_row_as_it_was(session, seed):
    """Records that share titles, identifiers and addresses in all ways; three merges, then three times back."""
    rng = random.Random(seed)
    references = [
        Reference(
            title=f"{rng.choice(['Alpha', 'Beta', 'Gamma'])} networks {rng.choice(['for sequences', 'of models', ''])}".strip(),
            authors=author(*rng.sample(["Doe", "Roe", "Poe", "Moe"], rng.randint(0, 3))),
            year=rng.choice([2018, 2020, 2024, None]),
            arxiv_id=rng.choice([None, None, "2001.00001", "2001.00002"]),
            doi=rng.choice([None, None, "10.1000/a", "10.1000/b"]),
            key=f"k{number}",
        )
        for number in range(20)
    ]
    ingest_records(session, SourceInfo(kind="bibtex", title="x", locator="x.bib"), references)
    states, logs = [], []
    for _ in range(3):
        one, other = rng.sample(slugs(session), 2)
        states.append(dump(session))
        logs.append(merge(session, one, other)["id"])
        assert other not in slugs(session)
    for log, before in zip(reversed(logs), reversed(states), strict=True):
        unmerge(session, str(log))
        assert dump(session) == before
