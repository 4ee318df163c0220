"""The catalogue's files → tables: levels, bottlenecks, techniques with their works, relations, evidence.

Deterministic: rows are written in the files' order, and a second run replaces them all. Works that techniques name
are looked up by arXiv id, DOI, survey reference, title or link; those that no survey cites become records of the
source `catalogue`, so that every technique has a paper that `kb show` finds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sqlmodel import delete, insert

import kb.models as tables
from ingest.catalogue_works import WorkIndex, add_works
from kb.evidence_sources import arxiv_of, named_in
from taxonomy.jsonform import technique_to_json
from taxonomy.load import load_bottlenecks, load_levels, load_relations, load_techniques
from taxonomy.model import Technique, WorkRef

if TYPE_CHECKING:
    from sqlmodel import Session

REPLACED = (
    tables.Evidence,
    tables.Relation,
    tables.TechniqueWork,
    tables.TechniqueBottleneck,
    tables.TechniqueLevel,
    tables.Technique,
    tables.Bottleneck,
    tables.Level,
)


def load_catalogue(session: Session) -> None:
    """Replaces every catalogue row by what the package's files say."""
    for table in REPLACED:
        session.execute(delete(table))
    techniques = load_techniques()
    _insert(session, tables.Level, _level_rows())
    _insert(session, tables.Bottleneck, _bottleneck_rows())
    links = link_works(session, techniques.values())
    years = first_years(session, links)
    _insert(
        session,
        tables.Technique,
        (_technique_row(item, years.get(item.slug)) for item in techniques.values()),
    )
    _insert(session, tables.TechniqueLevel, _technique_level_rows(techniques.values()))
    _insert(
        session,
        tables.TechniqueBottleneck,
        ({"technique": t.slug, "bottleneck": slug} for t in techniques.values() for slug in t.bottlenecks),
    )
    _insert(session, tables.TechniqueWork, links)
    _insert(
        session,
        tables.Relation,
        (
            {
                "a": r.a,
                "b": r.b,
                "kind": r.kind,
                "condition": r.condition,
                "source": r.source,
                "basis": r.basis,
            }
            for r in load_relations()
        ),
    )
    _insert(session, tables.Evidence, evidence_rows(session, links))
    session.flush()


def _insert(session: Session, table: Any, rows: Iterable[Mapping[str, Any]]) -> None:
    rows = [dict(row) for row in rows]
    if rows:
        session.execute(insert(table), rows)


def _level_rows() -> Iterable[dict[str, Any]]:
    for scheme, levels in load_levels().items():
        for position, level in enumerate(levels):
            yield {
                "scheme": scheme,
                "path": level.path,
                "parent": level.parent,
                "name": level.name,
                "description": level.description,
                "basis": level.basis,
                "position": position,
            }


def _bottleneck_rows() -> Iterable[dict[str, Any]]:
    for position, item in enumerate(load_bottlenecks().values()):
        yield {"slug": item.slug, "name": item.name, "description": item.description, "position": position}


def _technique_row(item: Technique, year: int | None) -> dict[str, Any]:
    return {
        "slug": item.slug,
        "name": item.name,
        "summary": item.summary,
        "kind": item.kind.value,
        "mechanism": item.mechanism or item.slug,
        "phase": item.phase.value,
        "training": item.training.value,
        "lossless": item.lossless.value,
        "year": year,
        "data": technique_to_json(item),
    }


def _technique_level_rows(techniques: Iterable[Technique]) -> Iterable[dict[str, Any]]:
    for item in techniques:
        for scheme, paths in item.levels.items():
            for path in paths:
                yield {
                    "technique": item.slug,
                    "scheme": scheme,
                    "path": path,
                    "basis": item.level_basis[scheme],
                }


def link_works(session: Session, techniques: Iterable[Technique]) -> list[dict[str, Any]]:
    """TechniqueWork rows; works that nobody knows yet are added first."""
    techniques = list(techniques)
    index = WorkIndex(session)
    if add_works(session, (work for item in techniques for work in item.works), index):
        index = WorkIndex(session)
    links: list[dict[str, Any]] = []
    seen: set[tuple[str, int, str]] = set()
    for item in techniques:
        for work in item.works:
            found = index.find(work)
            if found is not None and (item.slug, found, work.role) not in seen:
                seen.add((item.slug, found, work.role))
                links.append({"technique": item.slug, "work_id": found, "role": work.role})
    return links


def first_years(session: Session, links: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The year of the earliest work that introduces each technique."""
    from sqlmodel import select

    rows = session.exec(select(tables.Work.id, tables.Work.year)).all()
    year_of = {work_id: year for work_id, year in rows if year is not None}
    years: dict[str, int] = {}
    for link in links:
        year = year_of.get(link["work_id"])
        if link["role"] == "introduces" and year is not None:
            years[link["technique"]] = min(year, years.get(link["technique"], year))
    return years


def effect_file() -> list[dict[str, str]]:
    """`ingest/data/effects.csv`: one row per reported figure."""
    with (files("ingest") / "data" / "effects.csv").open("r", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def evidence_rows(session: Session, links: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Evidence rows. Figures from memory and suspect ones stay, marked, and never score or calibrate.

    The paper of a figure is the work that its source names, where it names one of ours: a survey's table is the
    survey's. Else it is the work that the row states, else the one that introduces the technique.
    """
    index = WorkIndex(session)
    introduced: dict[str, int] = {}
    for link in links:
        if link["role"] == "introduces":
            introduced.setdefault(link["technique"], link["work_id"])
    by_name = {item.name.casefold(): introduced.get(item.slug) for item in load_techniques().values()}
    for row in effect_file():
        paper = WorkRef(arxiv_id=row["arxiv_id"] or None, title=row["paper_title"] or None)
        devices, config = row["n_devices"], row["config"]
        if devices and not devices.isdigit():
            config = f"{config}; devices {devices}".lstrip("; ")
        suspect = row["notes"].lower().startswith("suspect")
        yield {
            "id": row["id"],
            "technique": row["technique"],
            "work_id": index.find(WorkRef(arxiv_id=arxiv_of(row["source"])))
            or by_name.get((named_in(row["source"]) or "").casefold())
            or index.find(paper)
            or introduced.get(row["technique"]),
            "paper_title": row["paper_title"],
            "arxiv_id": row["arxiv_id"],
            "year": int(row["year"]) if row["year"] else None,
            "metric": row["metric"],
            "value": float(row["value"]),
            "value_hi": float(row["value_hi"]) if row["value_hi"] else None,
            "value_kind": row["value_kind"],
            "unit": row["unit"],
            "level": row["level"],
            "baseline": row["baseline"],
            "model": row["model"],
            "hardware": row["hardware"],
            "n_devices": int(devices) if devices.isdigit() else None,
            "batch": row["batch"],
            "input_tokens": row["input_tokens"],
            "output_tokens": row["output_tokens"],
            "config": config,
            "source": row["source"],
            "locator": row["quoted_number_location"],
            "confidence": row["confidence"],
            "conditions_confidence": row["conditions_confidence"],
            "score": row["score"] == "yes" and not suspect and row["confidence"] != "from memory",
            "score_reason": row["score_reason"],
            "suspect": suspect,
            "notes": row["notes"],
        }
