"""What the knowledge base holds: lists and records, each function named after the question it answers.

Everything reads through `kb.reader.Reader` with portable SQL, returns plain dictionaries with the keys of the
public interface, and pages with an opaque cursor.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from kb.errors import InvalidQuery, NotFound
from kb.reader import Reader, Row, loads

MAX_LIMIT = 200
SCHEMES = ("zhou", "yuan", "park")


def encode_cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> int:
    """The offset in a cursor.

    >>> decode_cursor(encode_cursor(50))
    50
    """
    if not cursor:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        if not text.startswith("o"):
            raise ValueError
        return int(text[1:10])
    except ValueError as error:
        raise InvalidQuery(
            f"cursor {cursor[:40]!r} is not one of ours",
            hint="take it from `next` of a previous page",
            field="cursor",
        ) from error


def page_of(items: Sequence[Any], limit: int | None, cursor: str | None) -> dict[str, Any]:
    """One page of a list: {"total", "items", "next"}; `limit` None gives everything."""
    start = decode_cursor(cursor)
    if limit is None:
        return {"total": len(items), "items": list(items[start:]), "next": None}
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidQuery(
            f"limit {limit} is not in 1 … {MAX_LIMIT}", hint="page on with the cursor", field="limit"
        )
    end = start + limit
    return {
        "total": len(items),
        "items": list(items[start:end]),
        "next": encode_cursor(end) if end < len(items) else None,
    }


def placeholders(values: Sequence[Any], prefix: str, parameters: dict[str, Any]) -> str:
    """`:p0, :p1 …` for an IN list, the values put into `parameters`."""
    names = []
    for index, value in enumerate(values):
        parameters[f"{prefix}{index}"] = value
        names.append(f":{prefix}{index}")
    return ", ".join(names) or "NULL"


def status(reader: Reader) -> Row:
    """Counts of everything, and the data's version."""
    counts = {
        name: reader.rows(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"]
        for name, table in (
            ("works", "work"),
            ("records", "record"),
            ("citations", "citation"),
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


# --- papers -----------------------------------------------------------------------------------------------


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


SORTS = {
    "title": "LOWER(work.title), work.slug",
    "year": "work.year DESC, LOWER(work.title), work.slug",
    "surveys": "work.survey_count DESC, work.year DESC, work.slug",
}


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
    return item


# --- surveys ----------------------------------------------------------------------------------------------


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


# --- techniques -------------------------------------------------------------------------------------------


def list_techniques(
    reader: Reader,
    *,
    level: str | None = None,
    bottleneck: str | None = None,
    phase: str | None = None,
    training: str | None = None,
    lossless: str | None = None,
    mechanism: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> dict[str, Any]:
    """Techniques by name; `level` is a path or a prefix of one, optionally `scheme:path`."""
    where, parameters = ["1 = 1"], {}
    for column, value in (
        ("phase", phase),
        ("training", training),
        ("lossless", lossless),
        ("mechanism", mechanism),
        ("kind", kind),
    ):
        if value is not None:
            where.append(f"technique.{column} = :{column}")
            parameters[column] = value
    if bottleneck is not None:
        known = [row["slug"] for row in reader.rows("SELECT slug FROM bottleneck ORDER BY position")]
        if bottleneck not in known:
            raise NotFound("bottleneck", bottleneck, get_close_matches(bottleneck, known) or known)
        where.append(
            "technique.slug IN (SELECT technique FROM techniquebottleneck WHERE bottleneck = :bottleneck)"
        )
        parameters["bottleneck"] = bottleneck
    if level is not None:
        scheme, _, path = level.rpartition(":")
        paths = [row["path"] for row in reader.rows("SELECT path FROM level ORDER BY path")]
        if not any(known == path or known.startswith(path + "/") for known in paths):
            raise NotFound("level", level, get_close_matches(path, paths), hint="see: kb list levels")
        parameters["level"] = path
        parameters["below"] = path + "/%"
        condition = "(path = :level OR path LIKE :below)"
        if scheme:
            condition += " AND scheme = :scheme"
            parameters["scheme"] = scheme
        where.append(f"technique.slug IN (SELECT technique FROM techniquelevel WHERE {condition})")
    rows = reader.rows(
        "SELECT technique.slug, technique.name, technique.summary, technique.kind, technique.mechanism,"
        " technique.phase, technique.training, technique.lossless, technique.year FROM technique"
        f" WHERE {' AND '.join(where)} ORDER BY technique.slug",
        parameters,
    )
    levels, bottlenecks = technique_levels(reader), technique_bottlenecks(reader)
    papers = counts(
        reader, "SELECT technique AS key, COUNT(DISTINCT work_id) AS n FROM techniquework GROUP BY technique"
    )
    evidence = counts(reader, "SELECT technique AS key, COUNT(*) AS n FROM evidence GROUP BY technique")
    page = page_of(rows, limit, cursor)
    page["items"] = [
        {
            **row,
            "levels": levels.get(row["slug"], {}),
            "bottlenecks": bottlenecks.get(row["slug"], []),
            "papers": papers.get(row["slug"], 0),
            "evidence": evidence.get(row["slug"], 0),
        }
        for row in page["items"]
    ]
    return page


def counts(reader: Reader, sql: str) -> dict[str, int]:
    return {row["key"]: row["n"] for row in reader.rows(sql)}


def technique_levels(reader: Reader) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for row in reader.rows(
        "SELECT technique, scheme, path FROM techniquelevel ORDER BY technique, scheme, path"
    ):
        found.setdefault(row["technique"], {}).setdefault(row["scheme"], []).append(row["path"])
    return found


def technique_bottlenecks(reader: Reader) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in reader.rows(
        "SELECT technique, techniquebottleneck.bottleneck AS bottleneck FROM techniquebottleneck"
        " JOIN bottleneck ON bottleneck.slug = techniquebottleneck.bottleneck ORDER BY technique, position"
    ):
        found.setdefault(row["technique"], []).append(row["bottleneck"])
    return found


def find_technique(reader: Reader, text: str) -> Row:
    """A technique by slug, name or alias."""
    wanted = squash(text)
    rows = reader.rows("SELECT slug, name, data FROM technique ORDER BY slug")
    for row in rows:
        if row["slug"] == text.strip().lower() or wanted in (squash(row["slug"]), squash(row["name"])):
            return row
    for row in rows:
        if wanted in {squash(alias) for alias in loads(row["data"]).get("aliases", [])}:
            return row
    slugs = [row["slug"] for row in rows]
    raise NotFound(
        "technique",
        text,
        get_close_matches(text.lower(), slugs, n=3, cutoff=0.5),
        hint="see: kb list techniques",
    )


def squash(text: str) -> str:
    """Letters and digits only, so that `FlashAttention 2` and `flash-attention-2` are one.

    >>> squash("LLM.int8()")
    'llmint8'
    """
    return "".join(letter for letter in text.lower() if letter.isalnum() or letter in "#+")


def get_technique(reader: Reader, text: str) -> Row:
    """One technique with its declaration, papers, evidence, relations and siblings."""
    row = find_technique(reader, text)
    key = {"slug": row["slug"]}
    item = dict(loads(row["data"]))
    item["slug"] = row["slug"]
    item["levels"] = technique_levels(reader).get(row["slug"], {})
    item["papers"] = technique_papers(reader, row["slug"])
    item["evidence"] = [
        evidence_item(found)
        for found in reader.rows(
            "SELECT evidence.*, work.slug AS slug FROM evidence LEFT JOIN work ON work.id = evidence.work_id"
            " WHERE technique = :slug ORDER BY evidence.id",
            key,
        )
    ]
    names = {row["slug"], item.get("mechanism", "")}
    item["relations"] = [
        found
        for found in reader.rows("SELECT a, b, kind, condition, source, basis FROM relation ORDER BY id")
        if found["a"] in names or found["b"] in names
    ]
    item["members"] = [
        found["slug"]
        for found in reader.rows(
            "SELECT slug FROM technique WHERE mechanism = :mechanism AND mechanism <> '' ORDER BY slug",
            {"mechanism": item.get("mechanism", "")},
        )
    ]
    return item


def technique_papers(reader: Reader, slug: str) -> list[Row]:
    """The works that introduce, evaluate or survey a technique."""
    cited = survey_citations(reader)
    return [
        {**paper_item(row, cited.get(row["id"], ())), "role": row["link_role"]}
        for row in reader.rows(
            "SELECT work.*, techniquework.role AS link_role FROM techniquework JOIN work ON work.id = techniquework.work_id"
            " WHERE techniquework.technique = :slug ORDER BY techniquework.role DESC, work.year, work.slug",
            {"slug": slug},
        )
    ]


# --- levels and bottlenecks -------------------------------------------------------------------------------


def list_levels(
    reader: Reader, *, scheme: str | None = None, limit: int | None = None, cursor: str | None = None
) -> dict[str, Any]:
    """The nodes of the three schemes in their own order, with the number of techniques at or below each."""
    if scheme is not None and scheme not in SCHEMES:
        raise NotFound("scheme", scheme, list(SCHEMES))
    rows = [
        row
        for row in reader.rows("SELECT scheme, path, parent, name, description, basis FROM level ORDER BY id")
        if scheme in (None, row["scheme"])
    ]
    below: dict[tuple[str, str], set[str]] = {}
    for row in reader.rows("SELECT technique, scheme, path FROM techniquelevel"):
        parts = row["path"].split("/")
        for depth in range(1, len(parts) + 1):
            below.setdefault((row["scheme"], "/".join(parts[:depth])), set()).add(row["technique"])
    page = page_of(rows, limit, cursor)
    page["items"] = [
        {**row, "techniques": len(below.get((row["scheme"], row["path"]), ()))} for row in page["items"]
    ]
    return page


def list_bottlenecks(
    reader: Reader, *, limit: int | None = None, cursor: str | None = None
) -> dict[str, Any]:
    rows = reader.rows(
        "SELECT bottleneck.slug, bottleneck.name, bottleneck.description, COUNT(techniquebottleneck.technique) AS techniques"
        " FROM bottleneck LEFT JOIN techniquebottleneck ON techniquebottleneck.bottleneck = bottleneck.slug"
        " GROUP BY bottleneck.slug, bottleneck.name, bottleneck.description, bottleneck.position"
        " ORDER BY bottleneck.position"
    )
    return page_of(rows, limit, cursor)


# --- evidence ---------------------------------------------------------------------------------------------


def list_evidence(
    reader: Reader,
    *,
    technique: str | None = None,
    metric: str | None = None,
    paper: str | None = None,
    scored: bool | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> dict[str, Any]:
    """Reported figures with their conditions."""
    where, parameters = ["1 = 1"], {}
    if technique is not None:
        where.append("evidence.technique = :technique")
        parameters["technique"] = find_technique(reader, technique)["slug"]
    if metric is not None:
        where.append("evidence.metric = :metric")
        parameters["metric"] = metric
    if paper is not None:
        where.append("evidence.work_id = :work_id")
        parameters["work_id"] = find_work(reader, paper)["id"]
    if scored is not None:
        where.append("evidence.score = :score")
        parameters["score"] = scored
    rows = reader.rows(
        "SELECT evidence.*, work.slug AS slug FROM evidence LEFT JOIN work ON work.id = evidence.work_id"
        f" WHERE {' AND '.join(where)} ORDER BY evidence.id",
        parameters,
    )
    page = page_of(rows, limit, cursor)
    page["items"] = [evidence_item(row) for row in page["items"]]
    return page


def spec_item(spec: Any) -> Mapping[str, Any]:
    """A cost-model specification (a frozen dataclass) as plain data."""
    from dataclasses import asdict

    return asdict(spec)
