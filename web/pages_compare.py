"""`/compare`: columns of the reader's choice, as a page, CSV or LaTeX; the whole state is the URL."""

from __future__ import annotations

import difflib
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from costmodel.catalogue import all_hardware, all_models, find_hardware, find_model
from costmodel.errors import CostModelError
from web.ask import check_names
from web.comparison import EXAMPLES, MOST, Table, as_csv, as_latex, shown_rows, table_of
from web.deps import LibraryDep
from web.errors import Missing
from web.render import page
from web.snapshot import Snapshot
from web.urls import link, record_path

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

FOLDERS = {"technique": "techniques", "model": "models", "hardware": "hardware"}


def read_state(
    request: Request, snapshot: Snapshot
) -> tuple[str, list[str], list[tuple[str, list[str]]], list[str]]:
    """Kind, known slugs, unknown names with near ones, remarks."""
    kind = request.query_params.get("kind", "technique")
    told = []
    if kind not in FOLDERS:
        told.append(f"No kind “{kind[:40]}”; comparing techniques. It knows {', '.join(FOLDERS)}.")
        kind = "technique"
    asked = [part.strip() for value in request.query_params.getlist("ids") for part in value.split(",")]
    asked = list(dict.fromkeys(part[:200] for part in asked if part))
    slugs: list[str] = []
    unknown: list[tuple[str, list[str]]] = []
    for text in asked[:50]:
        found, near = find(kind, text, snapshot)
        if found and found not in slugs:
            slugs.append(found)
        elif not found:
            unknown.append((text, near))
    if len(slugs) > MOST:
        told.append(f"At most {MOST} columns; the first {MOST} are shown.")
    return kind, slugs[:MOST], unknown, told


def find(kind: str, text: str, snapshot: Snapshot) -> tuple[str, list[str]]:
    if kind == "technique":
        item, slug = snapshot.technique(text)
        return (slug, []) if item else ("", [each["slug"] for each in snapshot.near_techniques(text)])
    catalogue: dict[str, Any] = dict(all_models()) if kind == "model" else dict(all_hardware())
    try:
        check_names({kind: text})
        slug = (find_model if kind == "model" else find_hardware)(text).slug
    except CostModelError:
        return "", difflib.get_close_matches(text, catalogue, n=3, cutoff=0.4)
    return (slug, []) if slug in catalogue else ("", [])


@router.get("/compare")
def compare(request: Request, library: LibraryDep) -> HTMLResponse:
    snapshot = library.snapshot()
    kind, slugs, unknown, told = read_state(request, snapshot)
    everything = request.query_params.get("all") == "1"
    table = table_of(snapshot, kind, slugs) if slugs else None
    rows = shown_rows(table, everything) if table else []
    state = {"kind": kind, "ids": ",".join(slugs)}
    default = {"kind": "technique"}
    names = (
        " and ".join(
            [", ".join(name for name, _ in table.heads[:-1]), table.heads[-1][0]]
            if len(table.heads) > 1
            else [table.heads[0][0]]
        )
        if table
        else ""
    )
    options = {"technique": snapshot.technique_by_slug, "model": all_models(), "hardware": all_hardware()}[
        kind
    ]
    title = (
        f"{names}: {len(rows)} differences"
        if table and not everything and len(slugs) > 1
        else f"{names}, side by side"
        if table
        else "Compare techniques, models or devices"
    )
    return page(
        request,
        "compare.html",
        title=title,
        lede="Fixed properties, a source in each cell; the number of rows behind a published range stands in brackets.",
        known=("kind", "ids", "all"),
        notices=tuple(told),
        command=f"kb compare {' '.join(slugs)}" if slugs and kind == "technique" else "",
        status=404 if unknown and not slugs else 200,
        kind=kind,
        folder=FOLDERS[kind],
        ids=",".join(slugs),
        options=options,
        unknown=[
            (
                asked,
                [
                    (each, link("/compare", {**state, "ids": ",".join([*slugs, each])}, default))
                    for each in near
                ],
            )
            for asked, near in unknown
        ],
        table=table,
        heads=[
            (
                name,
                slug,
                link("/compare", {**state, "ids": ",".join(each for each in slugs if each != slug)}, default)
                if len(slugs) > 1
                else "",
            )
            for name, slug in (table.heads if table else [])
        ],
        rows=rows,
        total=len(shown_rows(table, True)) if table else 0,
        everything=everything or len(slugs) < 2,
        works={slug: short_name(work) for slug, work in snapshot.work_by_slug.items()}
        if kind == "technique"
        else {},
        diff_link=link("/compare", state, default),
        all_link=link("/compare", {**state, "all": "1"}, default),
        csv_link=link("/compare.csv", {**state, "all": "1" if everything else ""}, default),
        tex_link=link("/compare.tex", {**state, "all": "1" if everything else ""}, default),
        examples=[
            (f"{name} ({each})", link("/compare", {"kind": each, "ids": ids}, default))
            for each, pairs in EXAMPLES.items()
            for name, ids in pairs
        ],
    )


def short_name(work: dict[str, Any]) -> str:
    return f"{work['first_author']} {work['year'] or ''}".strip() or str(work["title"])[:40]


def exported(request: Request, library: Any) -> tuple[Table, list[Any]]:
    snapshot = library.snapshot()
    kind, slugs, unknown, _ = read_state(request, snapshot)
    if not slugs:
        asked = unknown[0][0] if unknown else ""
        near = [(each, record_path(FOLDERS[kind], each)) for each in (unknown[0][1] if unknown else [])]
        raise Missing(kind, asked, near, hint="name what to compare: /compare.csv?ids=awq,gptq")
    table = table_of(snapshot, kind, slugs)
    return table, shown_rows(table, request.query_params.get("all") == "1")


@router.get("/compare.csv")
def compare_csv(request: Request, library: LibraryDep) -> Response:
    table, rows = exported(request, library)
    return Response(as_csv(table, rows), media_type="text/csv; charset=utf-8")


@router.get("/compare.tex")
def compare_tex(request: Request, library: LibraryDep) -> Response:
    table, rows = exported(request, library)
    return Response(
        as_latex(table, rows, f"{request.url.path}?{request.url.query}"),
        media_type="text/plain; charset=utf-8",
    )
