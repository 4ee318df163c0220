"""Works as the knowledge base shows them: an item of a list, and the whole record."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from kb.errors import NotFound
from kb.evidence_sources import source_url
from kb.reader import Reader, Row, loads


def paper_item(row: Row, surveys: Sequence[Row] = ()) -> Row:
    """A work as a list shows it."""
    return {
        "id": row["slug"],
        "title": row["title"],
        "authors": loads(row["authors"]),
        "year": row["year"],
        "venue": row["venue"],
        "kind": row["kind"],
        "arxiv_id": row["arxiv_id"],
        "doi": row["doi"],
        "url": paper_url(row),
        "role": row["role"],
        "surveys": [{"survey": item["survey"], "number": item["number"]} for item in surveys],
    }


def paper_url(row: Row) -> str | None:
    """Where to read it: the arXiv page, the DOI, or the link that the source gives."""
    if row["arxiv_id"]:
        return f"https://arxiv.org/abs/{row['arxiv_id']}"
    if row["doi"]:
        return f"https://doi.org/{row['doi']}"
    return row["url"]


CITED_BY_SURVEYS = """
    SELECT DISTINCT citation.cited_id AS work_id, survey.slug AS survey, citation.number AS number, citation.page AS page
    FROM citation JOIN survey ON survey.work_id = citation.citing_id
"""


def survey_citations(reader: Reader) -> dict[int, list[Row]]:
    """Which survey cites each work, and as which number."""
    found: dict[int, list[Row]] = {}
    for row in reader.rows(CITED_BY_SURVEYS + " ORDER BY citation.cited_id, survey.slug, citation.number"):
        found.setdefault(row["work_id"], []).append(row)
    return found


def check_survey(reader: Reader, slug: str) -> None:
    known = [row["slug"] for row in reader.rows("SELECT slug FROM survey ORDER BY slug")]
    if slug not in known:
        raise NotFound("survey", slug, known, hint="see: kb list surveys")


def find_work(reader: Reader, text: str) -> Row:
    """A work by slug, arXiv id or DOI, in any spelling that people paste."""
    key = text.strip()
    row = reader.one("SELECT * FROM work WHERE slug = :key", {"key": key.lower()})
    if row is not None:
        return row
    from kb.identifiers import identify

    found = identify(key)
    if found is not None:
        row = reader.one(
            "SELECT work.* FROM identifier JOIN work ON work.id = identifier.work_id"
            " WHERE identifier.scheme = :scheme AND identifier.value = :value ORDER BY work.id",
            {"scheme": found.scheme, "value": found.value},
        )
        if row is not None:
            return row
    slugs = [item["slug"] for item in reader.rows("SELECT slug FROM work")]
    raise NotFound(
        "paper", text, get_close_matches(key.lower(), slugs, n=3, cutoff=0.5), hint="see: kb search WORDS"
    )


def get_paper(reader: Reader, text: str) -> Row:
    """One work with surveys, techniques, references, citing works, evidence and versions."""
    row = find_work(reader, text)
    key = {"id": row["id"]}
    item = paper_item(row, survey_citations(reader).get(row["id"], ()))
    item["abstract"] = row["abstract"]
    item["role_reason"] = row["role_reason"]
    item["techniques"] = reader.rows(
        "SELECT technique.slug AS slug, technique.name AS name, techniquework.role AS role FROM techniquework"
        " JOIN technique ON technique.slug = techniquework.technique WHERE techniquework.work_id = :id"
        " ORDER BY technique.slug",
        key,
    )
    item["references"] = reader.rows(
        "SELECT DISTINCT citation.number AS number, work.slug AS id, work.title AS title, work.year AS year FROM citation"
        " JOIN work ON work.id = citation.cited_id WHERE citation.citing_id = :id ORDER BY citation.number, work.slug",
        key,
    )
    item["cited_by"] = reader.rows(
        "SELECT DISTINCT work.slug AS id, work.title AS title, work.year AS year, citation.number AS number,"
        " citation.page AS page FROM citation JOIN work ON work.id = citation.citing_id"
        " WHERE citation.cited_id = :id ORDER BY work.slug, citation.number",
        key,
    )
    item["versions"] = [
        {"scheme": found["scheme"], "value": found["value"]}
        for found in reader.rows(
            "SELECT DISTINCT scheme, value FROM identifier WHERE work_id = :id AND scheme <> 'title'"
            " ORDER BY scheme, value",
            key,
        )
    ]
    item["evidence"] = [
        evidence_item(found)
        for found in reader.rows("SELECT * FROM evidence WHERE work_id = :id ORDER BY id", key)
    ]
    return item


def evidence_item(row: Row) -> Row:
    """A reported figure as the interface shows it."""
    item = {key: value for key, value in row.items() if key not in ("work_id", "slug")}
    item["score"] = bool(row["score"])
    item["suspect"] = bool(row["suspect"])
    item["paper_id"] = row.get("slug")
    item["source_url"] = source_url(row["source"])
    return item
