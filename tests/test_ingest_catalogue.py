"""The catalogue in the database: rows, works that resolve, evidence kept apart, and the same rows every time."""

import pytest
from sqlmodel import Session, SQLModel, col, func, select

import kb.models as tables
from ingest.catalogue import effect_file, load_catalogue
from ingest.literature import load_surveys
from kb.db import make_engine
from taxonomy.load import load_levels, load_relations, load_techniques


@pytest.fixture(scope="module")
def session():
    """An in-memory database with the surveys and the catalogue."""
    engine = make_engine("sqlite://")
    with Session(engine) as open_session:
        SQLModel.metadata.create_all(open_session.connection())
        load_surveys(open_session)
        load_catalogue(open_session)
        yield open_session
        open_session.rollback()
    engine.dispose()


def count(session, table):
    return session.exec(select(func.count()).select_from(table)).one()


def test_every_technique_has_a_row_and_its_levels(session):
    techniques = load_techniques()
    assert count(session, tables.Technique) == len(techniques)
    assert count(session, tables.Level) == sum(len(levels) for levels in load_levels().values())
    assert count(session, tables.TechniqueLevel) == sum(
        len(paths) for technique in techniques.values() for paths in technique.levels.values()
    )
    assert count(session, tables.Relation) == len(load_relations())
    assert count(session, tables.Bottleneck) == 11


def test_every_technique_has_a_work(session):
    linked = set(session.exec(select(tables.TechniqueWork.technique)).all())
    assert sorted(set(load_techniques()) - linked) == []


def test_every_named_work_is_linked_under_a_title(session):
    named = sum(
        len({(w.role, w.arxiv_id, w.doi, w.title, w.reference) for w in t.works})
        for t in load_techniques().values()
    )
    rows = session.exec(
        select(tables.Work.title).join(
            tables.TechniqueWork, col(tables.TechniqueWork.work_id) == tables.Work.id
        )
    ).all()
    assert all(rows)
    assert len(rows) >= named * 0.97  # two references of one technique may turn out to be one work


@pytest.mark.parametrize(
    ("arxiv_id", "slug", "surveys"),
    [("2306.00978", "awq", 2), ("2301.00774", "sparsegpt", 3), ("2406.10774", "quest", 0), ("2211.17192", "spec-decode", 3)],
)  # fmt: skip
def test_arxiv_ids_find_the_work_and_its_technique(session, arxiv_id, slug, surveys):
    """SparseGPT's id stands in no survey; the catalogue's record adds it to the work that all three cite."""
    work_id = session.exec(
        select(tables.Identifier.work_id)
        .where(tables.Identifier.scheme == "arxiv", tables.Identifier.value == arxiv_id)
        .distinct()
    ).one()
    work = session.get(tables.Work, work_id)
    assert work.survey_count == surveys
    links = session.exec(
        select(tables.TechniqueWork.technique).where(tables.TechniqueWork.work_id == work_id)
    ).all()
    assert slug in links


def test_a_blog_post_is_not_the_paper(session):
    """Zhou's reference 105 is AI21's announcement of Jamba; the paper is another work."""
    links = session.exec(
        select(tables.Work.title)
        .join(tables.TechniqueWork, col(tables.TechniqueWork.work_id) == tables.Work.id)
        .where(tables.TechniqueWork.technique == "jamba")
    ).all()
    assert len(links) == 2


def test_the_works_of_the_surveys_stay_as_many(session):
    """Catalogue records join works or make new ones; they never split or merge what surveys cite."""
    cited = session.exec(select(func.count(func.distinct(tables.Citation.cited_id)))).one()
    assert cited == 530


def test_evidence_keeps_ids_and_apart_what_must_not_calibrate(session):
    rows = {row.id: row for row in session.exec(select(tables.Evidence)).all()}
    source = {row["id"]: row for row in effect_file()}
    assert rows.keys() == source.keys()
    assert len(rows) == 732
    assert all(row.work_id is not None and row.source for row in rows.values())
    suspect = [row for row in rows.values() if row.suspect]
    assert len(suspect) == 60 and not any(row.score for row in suspect)
    assert not any(row.score for row in rows.values() if row.confidence == "from memory")
    assert sum(row.score for row in rows.values()) == 238
    first = rows["E0002"]  # Zhou et al., Table 4: AWQ in TensorRT-LLM, LLaMA-2-7B, batch 1, 128 tokens
    assert (first.metric, first.value, first.batch, first.input_tokens) == ("decode_speedup", 2.4, "1", "128")
    assert first.n_devices == 1 and first.locator == "Table 4"


def test_every_reported_figure_belongs_to_a_technique(session):
    unknown = {row["technique"] for row in effect_file()} - set(load_techniques())
    assert unknown == set()


def test_loading_twice_gives_the_same_rows(session):
    def snapshot():
        links = session.exec(select(tables.TechniqueWork).order_by(tables.TechniqueWork.technique)).all()
        return (
            [(link.technique, link.work_id, link.role) for link in links],
            count(session, tables.Record),
            count(session, tables.Work),
            count(session, tables.Evidence),
        )

    before = snapshot()
    load_catalogue(session)
    assert snapshot() == before


def test_years_come_from_the_introducing_work(session):
    years = dict(session.exec(select(tables.Technique.slug, tables.Technique.year)).all())
    assert (years["gptq"], years["mqa"], years["quest"]) == (2022, 2019, 2024)
    assert sum(year is None for year in years.values()) < 15
