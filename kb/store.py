"""What the knowledge base holds: lists and records, each function named after the question it answers.

Everything reads through `kb.reader.Reader` with portable SQL, returns plain dictionaries with the keys of the
public interface, and pages with an opaque cursor. Works and techniques have modules of their own; this one adds
what needs both, and is the one that the command line and the web import.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kb.errors import InvalidQuery
from kb.paging import MAX_LIMIT, decode_cursor, encode_cursor, page_of, placeholders
from kb.reader import Reader, Row
from kb.store_techniques import (
    find_technique,
    get_technique,
    list_bottlenecks,
    list_evidence,
    list_levels,
    list_techniques,
)
from kb.store_works import (
    CITED_BY_SURVEYS,
    check_survey,
    find_work,
    get_paper,
    paper_item,
    paper_url,
    survey_citations,
)

__all__ = [
    "MAX_LIMIT",
    "SORTS",
    "check_survey",
    "data_version",
    "decode_cursor",
    "encode_cursor",
    "find_technique",
    "find_work",
    "get_paper",
    "get_survey",
    "get_technique",
    "list_bottlenecks",
    "list_evidence",
    "list_levels",
    "list_papers",
    "list_surveys",
    "list_techniques",
    "page_of",
    "spec_item",
    "status",
]

SORTS = {
    "title": "LOWER(work.title), work.slug",
    "year": "work.year DESC, LOWER(work.title), work.slug",
    "surveys": "work.survey_count DESC, work.year DESC, work.slug",
}


def status(reader: Reader) -> Row:
    """Counts of everything, and the data's version."""
    counts = {
        name: reader.rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"]
        for name, table in (
            ("works", "work"),
            ("records", "record"),
            (
                "citations",
                "(SELECT DISTINCT citing_id, cited_id, number FROM citation) AS one",  # several sources may say it
            ),
            ("techniques", "technique"),
            ("evidence", "evidence"),
            ("relations", "relation"),
        )
    }
    user = reader.rows("SELECT COUNT(*) AS n FROM record WHERE origin = 'user'")[0]["n"]
    proposed = reader.rows("SELECT COUNT(*) AS n FROM decision WHERE status = 'proposed'")[0]["n"]
    meta = {row["key"]: row["value"] for row in reader.rows("SELECT key, value FROM meta")}
    return {
        **counts,
        "user_records": user,
        "proposed_duplicates": proposed,
        "schema_version": int(meta.get("schema_version", "0")),
        "data_version": meta.get("data_digest", "")[:12],
    }


def data_version(reader: Reader) -> str:
    row = reader.one("SELECT value FROM meta WHERE key = 'data_digest'")
    return row["value"][:12] if row else ""


def list_papers(
    reader: Reader,
    *,
    survey: str | None = None,
    year: int | None = None,
    kind: str | None = None,
    role: str | None = None,
    technique: str | None = None,
    level: str | None = None,
    bottleneck: str | None = None,
    sort: str = "year",
    limit: int | None = None,
    cursor: str | None = None,
) -> dict[str, Any]:
    """Works, newest first unless `sort` says otherwise; filters narrow."""
    if sort not in SORTS:
        raise InvalidQuery(f"cannot sort by {sort!r}", hint=f"one of {', '.join(SORTS)}", field="sort")
    where: list[str] = ["1 = 1"]
    parameters: dict[str, Any] = {}
    if survey is not None:
        check_survey(reader, survey)
        where.append(
            f"work.id IN (SELECT work_id FROM ({CITED_BY_SURVEYS} WHERE survey.slug = :survey) AS cited)"
        )
        parameters["survey"] = survey
    for column, value in (("year", year), ("kind", kind), ("role", role)):
        if value is not None:
            where.append(f"work.{column} = :{column}")
            parameters[column] = value
    if technique or level or bottleneck:
        slugs = [
            item["slug"]
            for item in list_techniques(reader, level=level, bottleneck=bottleneck)["items"]
            if technique is None or item["slug"] == technique
        ]
        names = placeholders(slugs, "t", parameters)
        where.append(f"work.id IN (SELECT work_id FROM techniquework WHERE technique IN ({names}))")
    rows = reader.rows(
        f"SELECT work.* FROM work WHERE {' AND '.join(where)} ORDER BY {SORTS[sort]}", parameters
    )
    cited = survey_citations(reader)
    page = page_of(rows, limit, cursor)
    page["items"] = [paper_item(row, cited.get(row["id"], ())) for row in page["items"]]
    return page


def list_surveys(reader: Reader, *, limit: int | None = None, cursor: str | None = None) -> dict[str, Any]:
    rows = reader.rows(
        "SELECT survey.slug AS survey, survey.name AS name, survey.reference_count AS reference_count, work.*"
        " FROM survey JOIN work ON work.id = survey.work_id ORDER BY survey.slug"
    )
    items = [
        {
            "slug": row["survey"],
            "name": row["name"],
            "references": row["reference_count"],
            "paper_id": row["slug"],
            "title": row["title"],
            "year": row["year"],
            "url": paper_url(row),
        }
        for row in rows
    ]
    return page_of(items, limit, cursor)


def get_survey(reader: Reader, slug: str) -> Row:
    check_survey(reader, slug)
    item = next(found for found in list_surveys(reader)["items"] if found["slug"] == slug)
    item["paper"] = get_paper(reader, item["paper_id"])
    item["levels"] = list_levels(reader, scheme=slug)["items"]
    return item


def spec_item(spec: Any) -> Mapping[str, Any]:
    """A cost-model specification (a frozen dataclass) as plain data."""
    from dataclasses import asdict

    return asdict(spec)
