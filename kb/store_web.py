"""What the web asks of the database: whole tables, read once per data version and kept in memory.

The literature is a few hundred works; one pass over each table costs less than a single filtered list with
counts would per request. Records that only one page shows (records, versions, provenance) are read on demand.
"""

from __future__ import annotations

from typing import Any

from kb.evidence_sources import source_url
from kb.reader import Reader, Row, loads


def data_fingerprint(reader: Reader) -> str:
    """Changes whenever packaged data are rebuilt or a user's rows are added, merged or undone."""
    meta = {row["key"]: row["value"] for row in reader.rows("SELECT key, value FROM meta")}
    counts = reader.one(
        "SELECT (SELECT COUNT(*) FROM record) AS records, (SELECT COALESCE(MAX(id), 0) FROM record) AS last_record,"
        " (SELECT COUNT(*) FROM work) AS works, (SELECT COUNT(*) FROM decision) AS decisions,"
        " (SELECT COUNT(*) FROM mergelog) AS merges,"
        " (SELECT COUNT(*) FROM mergelog WHERE undone_at <> '') AS undone,"
        " (SELECT COUNT(*) FROM evidence) AS evidence, (SELECT COUNT(*) FROM technique) AS techniques"
    )
    assert counts is not None  # an aggregate always has one row
    digest = meta.get("data_digest") or meta.get("data_version") or ""
    return f"{digest}-" + "-".join(str(value) for value in counts.values())


def every_work(reader: Reader) -> list[Row]:
    """All works with decoded authors, newest first."""
    rows = reader.rows(
        "SELECT id, slug, title, authors, first_author, authors_truncated, year, venue, kind, arxiv_id, doi, url,"
        " abstract, role, role_reason, survey_count, status, origin FROM work ORDER BY slug"
    )
    for row in rows:
        row["authors"] = loads(row["authors"]) or []
        row["authors_truncated"] = bool(row["authors_truncated"])
    return rows


def every_survey(reader: Reader) -> list[Row]:
    """Surveys with the slug of their own work."""
    return reader.rows(
        "SELECT survey.slug, survey.name, survey.work_id, survey.reference_count, work.slug AS work_slug,"
        " work.title, work.year, source.title AS source_title, source.locator AS source_locator,"
        " source.retrieved_at, source.sha256"
        " FROM survey JOIN work ON work.id = survey.work_id LEFT JOIN source ON source.slug = survey.slug"
        " ORDER BY survey.slug"
    )


def every_citation(reader: Reader) -> list[Row]:
    """Who cites whom, under which number and, where a source gives it, on which page; once, whoever says so."""
    return reader.rows(
        "SELECT citing_id, cited_id, MIN(record_id) AS record_id, number, MAX(page) AS page FROM citation"
        " GROUP BY citing_id, cited_id, number ORDER BY citing_id, number, cited_id"
    )


def every_technique(reader: Reader) -> list[Row]:
    """Techniques with their whole declaration (`data`) decoded."""
    rows = reader.rows(
        "SELECT slug, name, summary, kind, mechanism, phase, training, lossless, year, data FROM technique ORDER BY slug"
    )
    for row in rows:
        row["data"] = loads(row["data"]) or {}
    return rows


def every_technique_level(reader: Reader) -> list[Row]:
    return reader.rows(
        "SELECT technique, scheme, path, basis FROM techniquelevel ORDER BY technique, scheme, path"
    )


def every_technique_bottleneck(reader: Reader) -> list[Row]:
    return reader.rows(
        "SELECT link.technique, link.bottleneck FROM techniquebottleneck AS link"
        " JOIN bottleneck ON bottleneck.slug = link.bottleneck ORDER BY link.technique, bottleneck.position"
    )


def every_technique_work(reader: Reader) -> list[Row]:
    return reader.rows("SELECT technique, work_id, role FROM techniquework ORDER BY technique, id")


def every_level(reader: Reader) -> list[Row]:
    return reader.rows(
        "SELECT scheme, path, parent, name, description, basis, position FROM level ORDER BY scheme, position, path"
    )


def every_bottleneck(reader: Reader) -> list[Row]:
    return reader.rows("SELECT slug, name, description, position FROM bottleneck ORDER BY position, slug")


def every_relation(reader: Reader) -> list[Row]:
    return reader.rows("SELECT a, b, kind, condition, source, basis FROM relation ORDER BY a, b, kind")


def every_evidence(reader: Reader) -> list[Row]:
    """Reported figures with their paper and the address of their source."""
    rows = reader.rows(
        "SELECT evidence.*, work.slug AS paper_id, work.title AS paper_name FROM evidence"
        " LEFT JOIN work ON work.id = evidence.work_id ORDER BY evidence.id"
    )
    return [{**row, "source_url": source_url(row["source"])} for row in rows]


def every_identifier(reader: Reader) -> list[Row]:
    """Other spellings under which a work is known (identifiers that any record states)."""
    return reader.rows(
        "SELECT DISTINCT scheme, value, work_id FROM identifier WHERE scheme <> 'title' ORDER BY work_id, scheme, value"
    )


def every_merge(reader: Reader) -> list[Row]:
    """Slugs that were absorbed into another work, so that old links still lead somewhere."""
    return reader.rows("SELECT kept, absorbed FROM mergelog WHERE undone_at = '' ORDER BY id")


def records_of_work(reader: Reader, work_id: int) -> list[Row]:
    """Every record that says something about this work: which source, under which number, in which words."""
    rows = reader.rows(
        "SELECT record.id, record.locator, record.position, record.method, record.retrieved_at, record.fields,"
        " record.origin, source.slug AS source, source.title AS source_title, source.kind AS source_kind,"
        " source.locator AS source_locator FROM record JOIN source ON source.id = record.source_id"
        " WHERE record.work_id = :work ORDER BY source.slug, record.position",
        {"work": work_id},
    )
    for row in rows:
        row["fields"] = loads(row["fields"]) or {}
    return rows


def references_of_survey(reader: Reader, survey: str) -> list[Row]:
    """The reference list of one survey in its own order, as its rows print it."""
    rows = reader.rows(
        "SELECT record.position, record.locator, record.fields, work.slug AS paper_id, work.kind AS work_kind,"
        " work.title AS work_title, work.survey_count FROM record JOIN source ON source.id = record.source_id"
        " LEFT JOIN work ON work.id = record.work_id WHERE source.slug = :survey ORDER BY record.position",
        {"survey": survey},
    )
    for row in rows:
        row["fields"] = loads(row["fields"]) or {}
    return rows


def sources(reader: Reader) -> list[Row]:
    return reader.rows("SELECT slug, kind, title, locator, retrieved_at, origin FROM source ORDER BY slug")


def snapshot_tables(reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """Everything the snapshot is made of, in one call."""
    return {
        "works": every_work(reader),
        "surveys": every_survey(reader),
        "citations": every_citation(reader),
        "techniques": every_technique(reader),
        "technique_levels": every_technique_level(reader),
        "technique_bottlenecks": every_technique_bottleneck(reader),
        "technique_works": every_technique_work(reader),
        "levels": every_level(reader),
        "bottlenecks": every_bottleneck(reader),
        "relations": every_relation(reader),
        "evidence": every_evidence(reader),
        "identifiers": every_identifier(reader),
        "merges": every_merge(reader),
        "sources": sources(reader),
    }
