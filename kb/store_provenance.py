"""Who says so: for every field of a work, and for every citation of it, the records that state it."""

from __future__ import annotations

from typing import Any

from kb.reader import Reader, Row, loads
from kb.text import plain_title

FIELDS = ("title", "authors", "year", "venue", "arxiv_id", "doi", "url", "kind", "status", "abstract")


def stated(fields: dict[str, Any], field: str) -> Any:
    """What a record says of a field, in the form in which works carry it."""
    value = fields.get(field)
    return plain_title(value) if field == "title" and value else value


def provenance_of(reader: Reader, slug: str) -> list[Row]:
    """One row per field and record that states it; `chosen` marks what the work shows. Citations come last.

    Each row has field, value, source, source_title, locator (the place in the source), address (of the source),
    method (how it was read), retrieved_at, origin and chosen.
    """
    work = reader.one("SELECT * FROM work WHERE slug = :slug", {"slug": slug})
    if work is None:
        return []
    records = reader.rows(
        "SELECT record.id, record.locator, record.method, record.retrieved_at, record.fields, record.origin,"
        " source.slug AS source, source.title AS source_title, source.locator AS address"
        " FROM record JOIN source ON source.id = record.source_id WHERE record.work_id = :work ORDER BY record.id",
        {"work": work["id"]},
    )
    rows: list[Row] = []
    for field in FIELDS:
        shown = loads(work[field]) if field == "authors" else work[field]
        for record in records:
            fields = loads(record["fields"]) or {}
            value = stated(fields, field)
            if value in (None, "", []):
                continue
            notes = [note for note in fields.get("notes", []) if note.startswith((f"{field}:", "source:"))]
            said = names(value, bool(fields.get("et_al"))) if field == "authors" else value
            rows.append(
                {**where(record), "field": field, "value": said, "chosen": value == shown, "notes": notes}
            )
    return rows + citations(reader, work["id"])


def names(authors: list[dict[str, str]], et_al: bool) -> str:
    """Authors as a reader writes them."""
    listed = ", ".join(f"{one.get('given', '')} {one['family']}".strip() for one in authors)
    return f"{listed} et al." if et_al else listed


def where(record: Row) -> Row:
    """The place of a record."""
    return {
        key: record[key]
        for key in ("source", "source_title", "locator", "address", "method", "retrieved_at", "origin")
    }


def citations(reader: Reader, work_id: int) -> list[Row]:
    """Who cites the work, by which record."""
    found = reader.rows(
        "SELECT citation.number, citing.slug AS citing, record.locator, record.method, record.retrieved_at,"
        " record.origin, source.slug AS source, source.title AS source_title, source.locator AS address"
        " FROM citation JOIN record ON record.id = citation.record_id JOIN source ON source.id = record.source_id"
        " JOIN work AS citing ON citing.id = citation.citing_id WHERE citation.cited_id = :work ORDER BY citation.id",
        {"work": work_id},
    )
    return [
        {
            **where(row),
            "field": "cited by",
            "value": row["citing"],
            "chosen": True,
            "notes": [],
            "number": row["number"],
        }
        for row in found
    ]
