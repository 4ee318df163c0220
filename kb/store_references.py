"""A survey's reference list as it was read, and what stands open or was done about duplicates."""

from __future__ import annotations

from typing import Any

from kb.reader import Reader, Row, loads
from kb.store_works import check_survey

PAPERS = ("paper", "book")


def survey_references(reader: Reader, slug: str) -> list[Row]:
    """One row per reference in the survey's order, as the row prints it.

    A row that prints nothing but an identifier takes title, first author and year from the work that it names;
    any other row keeps what it says, cut titles included. `is_paper` is known of the work, so that a blog post is
    one in every survey. `work_title` and `work_year` are the work's own.
    """
    check_survey(reader, slug)
    rows = reader.rows(
        "SELECT record.fields, record.position, citation.number, work.slug AS paper_id, work.title AS work_title,"
        " work.first_author AS work_author, work.year AS work_year, work.kind AS work_kind"
        " FROM citation JOIN record ON record.id = citation.record_id JOIN source ON source.id = record.source_id"
        " JOIN work ON work.id = citation.cited_id WHERE source.slug = :slug ORDER BY record.position, record.id",
        {"slug": slug},
    )
    return [reference_item(position, row) for position, row in enumerate(rows, 1)]


def reference_item(position: int, row: Row) -> Row:
    fields: dict[str, Any] = loads(row["fields"]) or {}
    authors = fields.get("authors") or []
    bare = not fields.get("title") and not authors and bool(fields.get("doi") or fields.get("arxiv_id"))
    return {
        "number": row["number"] or position,
        "title": fields.get("title") or (row["work_title"] if bare else None) or None,
        "first_author": authors[0]["family"] if authors else (row["work_author"] if bare else None) or None,
        "year": fields.get("year") or (row["work_year"] if bare else None),
        "arxiv_id": fields.get("arxiv_id"),
        "doi": fields.get("doi"),
        "url": fields.get("url"),
        "is_paper": row["work_kind"] in PAPERS,
        "paper_id": row["paper_id"],
        "kind": row["work_kind"],
        "truncated": bool(fields.get("truncated")),
        "work_title": row["work_title"],
        "work_year": row["work_year"],
    }


def proposals(reader: Reader) -> list[Row]:
    """Possible duplicates that wait for a person, the likeliest first."""
    return reader.rows(
        "SELECT decision.id, decision.a, decision.b, decision.basis, decision.score, one.title AS title_a,"
        " one.year AS year_a, other.title AS title_b, other.year AS year_b FROM decision"
        " JOIN work AS one ON one.slug = decision.a JOIN work AS other ON other.slug = decision.b"
        " WHERE decision.kind = 'same' AND decision.status = 'proposed'"
        " ORDER BY decision.score DESC, decision.a, decision.b"
    )


def united(reader: Reader) -> dict[str, int]:
    """How many groups of records each kind of evidence joins: identifiers by scheme, titles, people's decisions."""
    rows = reader.rows(
        "SELECT kind, COUNT(*) AS n FROM (SELECT CASE WHEN scheme = 'title' AND value LIKE 'url:%' THEN 'url'"
        " ELSE scheme END AS kind, value, work_id FROM identifier WHERE scheme <> 'url'"
        " GROUP BY scheme, value, work_id HAVING COUNT(DISTINCT record_id) > 1) AS shared GROUP BY kind ORDER BY kind"
    )
    found = {row["kind"]: row["n"] for row in rows}
    decided = reader.one("SELECT COUNT(*) AS n FROM decision WHERE kind = 'same' AND status = 'accepted'")
    if decided and decided["n"]:
        found["decision"] = decided["n"]
    return found


def merges(reader: Reader) -> list[Row]:
    """Merges by hand, undone ones included, the newest first."""
    return reader.rows("SELECT id, kept, absorbed, made_at, undone_at FROM mergelog ORDER BY id DESC")
