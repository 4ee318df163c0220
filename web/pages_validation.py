"""How far off: predicted against measured, filterable, the worst rows first."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from web.charts.scatter import Pair, agreement_chart
from web.deps import LibraryDep
from web.explore import agreement_spec
from web.listing import Facet, groups, paged, select
from web.pages_gains import gains_summary
from web.pages_lists import chosen_of, sort_links, state_of
from web.render import integer, page
from web.urls import link, replaced
from web.validation import METRIC_NAMES, engine_name, figures, validated

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

SORTS = {"error": "largest error", "id": "as listed"}
FACETS = [
    Facet(
        "metric",
        "Metric",
        lambda row: [row["metric"]],
        lambda name: METRIC_NAMES.get(name, (name, ""))[0],
        shown=13,
    ),
    Facet("engine", "Engine", lambda row: [row["engine"]], engine_name),
    Facet("hw", "Hardware", lambda row: [row["hardware"]], shown=12),
    Facet("model", "Model", lambda row: [row["model"]]),
    Facet("source", "Source", lambda row: [row["source"]], shown=5),
    Facet(
        "fits", "Memory", lambda row: [{True: "fits", False: "does not fit", None: "unknown"}[row["fits"]]]
    ),
]
COLUMNS = ("id", "metric", "unit", "hardware", "devices", "engine", "model", "weight_format", "batch", "input_tokens", "output_tokens", "measured", "predicted", "error", "fits", "reason", "source", "source_path")  # fmt: skip


def percent(share: float | None) -> str:
    """An error or a share in per cent.

    >>> percent(0.0918), percent(None)
    ('9.2 %', '–')
    """
    if share is None:
        return "–"
    return f"{share * 100:.1f} %" if share < 0.1 else f"{share * 100:,.0f} %"


def plotted(rows: list[dict[str, Any]]) -> tuple[str, list[Pair]]:
    """The metric with most rows of the selection: one chart has one unit."""
    counts = Counter(
        row["metric"] for row in rows if row["predicted"] and row["measured"] and row["metric"] != "oom"
    )
    if not counts:
        return "", []
    metric = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[0][0]
    return metric, [
        Pair(
            row["measured"],
            row["predicted"],
            engine_name(row["engine"]),
            f"{row['model']} on {row['hardware']}",
        )
        for row in rows
        if row["metric"] == metric and row["predicted"] and row["measured"]
    ]


@router.get("/validation")
def validation(request: Request, library: LibraryDep) -> Response:
    """The page, or with `format=csv` or `json` the selected rows."""
    rows, _ = validated()
    known = ("sort", "page", "format", *(facet.name for facet in FACETS))
    pairs = state_of(request, known, "error")
    chosen = chosen_of(request, FACETS)
    kept, counts = select(rows, FACETS, chosen)
    selected = [dict(row) for row in kept]
    form = request.query_params.get("format", "")
    if form == "json":
        return JSONResponse({"total": len(selected), "summary": figures(selected), "rows": selected})
    if form == "csv":
        return as_csv(selected)
    sort = request.query_params.get("sort", "error")
    if sort != "id":
        selected.sort(key=lambda row: (-(row["error"] or 0.0), row["id"]))
    stats = figures(selected)
    metric, points = plotted(selected)
    chart = None
    base = [pair for pair in pairs if pair[0] not in ("page", "sort")]
    if points:
        name, unit = METRIC_NAMES.get(metric, (metric, ""))
        chart = agreement_chart(
            points,
            unit=unit,
            title=f"Predicted against measured: {name}",
            explore=link("/validation/chart.json", base),
        )
    narrowed = any(chosen.values())
    subject = (
        f"{len(selected):,} of {len(rows):,} measured rows" if narrowed else f"{len(rows):,} measured rows"
    )
    title = (
        f"Half of {subject} are within {percent(stats['median'])} of our estimate"
        if stats["median"] is not None
        else f"{subject}, none with a numeric prediction"
    )
    return page(
        request,
        "validation.html",
        title=title,
        lede="Measurements that others published, priced by the same formulas that answer questions. The interval of each estimate comes from engines and devices left out of the calibration.",
        known=known,
        json_url=link("/validation", [*base, ("format", "json")]),
        csv_url=link("/validation", [*base, ("format", "csv")]),
        command="kb validate --json",
        stats=stats,
        percent=percent,
        groups=groups(FACETS, counts, chosen, "/validation", pairs),
        pairs=pairs,
        chart=chart,
        sorts=sort_links("/validation", pairs, SORTS, "error"),
        sort=sort if sort in SORTS else "error",
        page=paged(selected, integer(request.query_params.get("page")), "/validation", pairs),
        gains=gains_summary(library),
        by_metric=[
            (
                METRIC_NAMES.get(name, (name, ""))[0],
                link("/validation", replaced(pairs, metric=name)),
                figures([row for row in selected if row["metric"] == name]),
            )
            for name in sorted({row["metric"] for row in selected})
        ],
    )


def as_csv(rows: list[dict[str, Any]]) -> Response:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row.get(name) for name in COLUMNS] for row in rows)
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8")


@router.get("/validation/chart.json")
def chart_json(request: Request) -> Response:
    """The scatter as a Plotly figure, with every point's setting on hover."""
    rows, _ = validated()
    kept, _ = select(rows, FACETS, chosen_of(request, FACETS))
    metric, points = plotted([dict(row) for row in kept])
    return JSONResponse(agreement_spec(points, METRIC_NAMES.get(metric, ("", metric))[1]))
