"""Techniques, the levels and bottlenecks they are filed under, and the figures reported of them."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from kb.errors import NotFound
from kb.paging import page_of
from kb.reader import Reader, Row, loads
from kb.store_works import evidence_item, find_work, paper_item, survey_citations

SCHEMES = ("zhou", "yuan", "park")


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
