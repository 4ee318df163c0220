"""SELECTs over techniques and their evidence, for the recommender's snapshot."""

from __future__ import annotations

from typing import Any

from kb.reader import Reader, Row, loads


def catalogue_version(reader: Reader) -> str:
    """A short text that changes whenever an answer could: the packaged data, ingested records, merges."""
    parts: list[Any] = []
    row = reader.one("SELECT value FROM meta WHERE key = 'data_digest'")
    parts.append(row["value"] if row else "")
    row = reader.one("SELECT COUNT(*) AS n, MAX(id) AS last FROM record")
    parts += [row["n"], row["last"]] if row else []
    row = reader.one(
        "SELECT COUNT(*) AS n, SUM(CASE WHEN undone_at = '' THEN 0 ELSE 1 END) AS undone FROM mergelog"
    )
    parts += [row["n"], row["undone"]] if row else []
    return ":".join(str(part) for part in parts)


def technique_rows(reader: Reader) -> list[Row]:
    """Every technique's whole declaration (`data`: taxonomy.Technique as a dictionary), by slug."""
    rows = reader.rows("SELECT slug, year, data FROM technique ORDER BY slug")
    return [{**row, "data": loads(row["data"])} for row in rows]


def relation_rows(reader: Reader) -> list[Row]:
    """Declared relations between techniques or mechanisms."""
    return reader.rows("SELECT a, b, kind, condition, source, basis FROM relation ORDER BY id")


def technique_paper_rows(reader: Reader) -> list[Row]:
    """Works linked to techniques with their role."""
    rows = reader.rows(
        "SELECT link.technique, link.role, work.id AS work_id, work.slug AS id, work.title, work.year, "
        "work.authors, work.arxiv_id, work.doi, work.url "
        "FROM techniquework AS link JOIN work ON work.id = link.work_id "
        "ORDER BY link.technique, link.id"
    )
    return [{**row, "authors": loads(row["authors"])} for row in rows]


def survey_citation_rows(reader: Reader) -> list[Row]:
    """Which survey cites which work that a technique links to."""
    return reader.rows(
        "SELECT DISTINCT citation.cited_id AS work_id, survey.slug AS survey "
        "FROM citation JOIN survey ON survey.work_id = citation.citing_id "
        "WHERE citation.cited_id IN (SELECT work_id FROM techniquework) ORDER BY survey.slug"
    )


def evidence_rows(reader: Reader, technique: str | None = None) -> list[Row]:
    """Reported figures, of one technique or of all."""
    sql = (
        "SELECT evidence.*, work.slug AS paper_id FROM evidence LEFT JOIN work ON work.id = evidence.work_id"
    )
    if technique is not None:
        return reader.rows(
            sql + " WHERE evidence.technique = :technique ORDER BY evidence.id", {"technique": technique}
        )
    return reader.rows(sql + " ORDER BY evidence.id")
