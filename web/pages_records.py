"""Record pages of the literature: one paper, the surveys, one survey."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from kb import export, store_web
from kb.reader import Reader
from web.deps import LibraryDep
from web.errors import Missing
from web.listing import paged
from web.records import lengths_of, metric_name, setting_of
from web.render import integer, moved, page
from web.snapshot import SCHEME_NAMES, Snapshot
from web.urls import REFERENCES_PER_PAGE, link, record_path

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

SHOWN_EVIDENCE = 25
Item = dict[str, Any]


@router.get("/papers/{ident:path}")
def paper(request: Request, ident: str, library: LibraryDep) -> Response:
    """One work, under any of its identifiers; the canonical address is its slug."""
    snapshot = library.snapshot()
    work, slug = snapshot.work(ident)
    if work is None:
        near = [(each["title"], record_path("papers", each["slug"])) for each in snapshot.near_works(ident)]
        raise Missing("paper", ident, near, hint="an id is a slug, an arXiv id or a DOI; or search by title")
    if ident != slug:
        return moved(record_path("papers", slug))
    reader = library.reader()
    evidence = snapshot.evidence_by_work.get(work["id"], [])
    citing = {row["citing_id"] for row in snapshot.cited_by.get(work["id"], [])}
    surveys = {survey["work_id"] for survey in snapshot.surveys}
    return page(
        request,
        "paper.html",
        title=work["title"],
        json_url=f"/api/v1{record_path('papers', slug)}",
        command=f"kb show {slug}",
        work=work,
        is_survey=work["is_survey"],
        survey_names={
            survey["slug"]: SCHEME_NAMES.get(survey["slug"], survey["name"]) for survey in snapshot.surveys
        },
        other_citing=[
            snapshot.work_by_id[each] for each in sorted(citing - surveys) if each in snapshot.work_by_id
        ],
        evidence=[named(row, snapshot) for row in evidence[:SHOWN_EVIDENCE]],
        references=references_in(snapshot, work),
        related=related_works(snapshot, work),
        records=store_web.records_of_work(reader, work["id"]),
        identifiers=sorted(key for key, value in snapshot.work_aliases.items() if value == slug),
        bibtex=bibtex_of(reader, work),
    )


def named(row: Item, snapshot: Snapshot) -> Item:
    technique = snapshot.technique_by_slug.get(row["technique"])
    return row | {
        "technique_name": technique["name"] if technique else row["technique"],
        "metric_name": metric_name(row["metric"]),
        "setting": setting_of(row),
        "lengths": lengths_of(row),
    }


def references_in(snapshot: Snapshot, work: Item) -> list[Item]:
    if work["is_survey"]:
        return []  # its own page shows the list as printed
    rows = snapshot.cites.get(work["id"], [])
    return [
        {"number": row["number"], "work": snapshot.work_by_id[row["cited_id"]]}
        for row in rows
        if row["cited_id"] in snapshot.work_by_id
    ]


def related_works(snapshot: Snapshot, work: Item, count: int = 8) -> list[Item]:
    """Works that share techniques, then classes, with this one: co-citation alone says little with three surveys."""
    own_techniques = {entry["technique"]["slug"] for entry in work["technique_links"]}
    own_mechanisms = {entry["technique"]["mechanism"] for entry in work["technique_links"]} - {""}
    own_levels = {(scheme, path) for scheme, paths in work["levels"].items() for path in paths}
    if not own_techniques and not own_levels:
        return []
    scores: Counter[str] = Counter()
    for other in snapshot.works:
        if other is work:
            continue
        score = 0
        for entry in other["technique_links"]:
            score += 4 * (entry["technique"]["slug"] in own_techniques) + 2 * (
                entry["technique"]["mechanism"] in own_mechanisms
            )
        score += len(
            own_levels & {(scheme, path) for scheme, paths in other["levels"].items() for path in paths}
        )
        if score:
            scores[other["slug"]] = 10 * score + len(set(other["surveys"]) & set(work["surveys"]))
    order = sorted(scores, key=lambda slug: (-scores[slug], slug))
    return [snapshot.work_by_slug[slug] for slug in order[:count]]


def bibtex_of(reader: Reader, work: Item) -> str:
    """The entry as `kb export bibtex` writes it, with volume and pages where a record states them."""
    row = dict(work)
    export.add_editions(reader, [row])
    return export.bibtex_entry(row)


@router.get("/surveys")
def surveys(request: Request, library: LibraryDep) -> HTMLResponse:
    """The surveys and what they share."""
    snapshot = library.snapshot()
    sets = {
        survey["slug"]: {work["slug"] for work in snapshot.works if survey["slug"] in work["surveys"]}
        for survey in snapshot.surveys
    }
    rows = []
    for survey in snapshot.surveys:
        slug = survey["slug"]
        others = (
            set().union(*(works for name, works in sets.items() if name != slug)) if len(sets) > 1 else set()
        )
        rows.append(
            {
                "slug": slug,
                "name": survey["name"],
                "title": survey["title"],
                "references": survey["reference_count"],
                "works": len(sets[slug]),
                "alone": len(sets[slug] - others),
                "levels": sum(level["scheme"] == slug for level in snapshot.levels),
            }
        )
    overlaps = []
    names = [survey["slug"] for survey in snapshot.surveys]
    for size in range(len(names), 1, -1):
        for group in combinations(names, size):
            shared = set.intersection(*(sets[name] for name in group))
            href = (
                link("/papers", {"cited": "3"}) if size == 3 else link("/graph", {"shared": ",".join(group)})
            )
            overlaps.append(
                {
                    "name": " and ".join(SCHEME_NAMES.get(name, name) for name in group),
                    "count": len(shared),
                    "href": href,
                }
            )
    common = (
        sorted(
            set.intersection(*sets.values()), key=lambda slug: snapshot.work_by_slug[slug]["title"].casefold()
        )
        if sets
        else []
    )
    distinct = len(set().union(*sets.values())) if sets else 0
    total = sum(row["references"] for row in rows)
    return page(
        request,
        "surveys.html",
        title=f"{len(rows)} surveys cite {distinct:,} distinct works in {total:,} references",
        lede="Reference lists are kept as facts, in each survey's order and numbering; the same work cited by several surveys is one record.",
        json_url="/api/v1/surveys",
        command="kb list surveys",
        rows=rows,
        overlaps=overlaps,
        overlap_note="Pairs count works cited by both, whoever else cites them.",
        common=[snapshot.work_by_slug[slug] for slug in common],
    )


@router.get("/surveys/{ident}")
def survey(request: Request, ident: str, library: LibraryDep) -> Response:
    """One survey's references, a hundred at a time, in its own order."""
    snapshot = library.snapshot()
    found = next((each for each in snapshot.surveys if each["slug"] == ident.casefold()), None)
    if found is None:
        near = [(each["name"], record_path("surveys", each["slug"])) for each in snapshot.surveys]
        raise Missing("survey", ident, near)
    slug = found["slug"]
    if ident != slug:
        return moved(record_path("surveys", slug))
    rows = [
        reference_line(row, snapshot, slug) for row in store_web.references_of_survey(library.reader(), slug)
    ]
    own = snapshot.work_by_id[found["work_id"]]
    distinct = {row["paper_id"] for row in rows if row["paper_id"]}
    alone = sum(len(snapshot.work_by_slug[each]["surveys"]) == 1 for each in distinct)
    pairs = [("page", value) for value in request.query_params.getlist("page")[:1]]
    return page(
        request,
        "survey.html",
        title=f"{SCHEME_NAMES.get(slug, found['name'])}: {len(rows):,} references to {len(distinct):,} works",
        known=("page",),
        json_url=f"/api/v1/surveys/{slug}/references",
        csv_url=link("/api/v1/export/csv", {"survey": slug}),
        command=f"kb references {slug}",
        slug=slug,
        name=found["name"],
        own=own,
        distinct=len(distinct),
        alone=alone,
        source_locator=found["source_locator"] or "",
        retrieved=(found["retrieved_at"] or "")[:10],
        reference_count=len(rows),
        result=paged(
            rows, integer(request.query_params.get("page")), f"/surveys/{slug}", pairs, REFERENCES_PER_PAGE
        ),
    )


def reference_line(row: Item, snapshot: Snapshot, survey: str) -> Item:
    """One reference as printed, with who else cites the same work."""
    fields = row["fields"]
    work = snapshot.work_by_slug.get(row["paper_id"] or "")
    authors = fields.get("authors") or []
    first = authors[0] if authors else ""
    who = first if isinstance(first, str) else first.get("family") or first.get("given") or ""
    if len(authors) > 1 or fields.get("authors_truncated"):
        who = f"{who} et al." if who else ""
    return {
        "number": int(row["locator"]) if str(row["locator"]).isdigit() else row["position"],
        "title": fields.get("title") or row["work_title"] or fields.get("url") or "no title printed",
        "work_title": row["work_title"],
        "paper_id": row["paper_id"],
        "who": " · ".join(str(part) for part in (who, fields.get("venue")) if part),
        "year": fields.get("year") or (work["year"] if work else None),
        "also": [each for each in (work["surveys"] if work else []) if each != survey],
    }
