"""Published gains of techniques beside what the cost model predicts for the same setting, filterable."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from recommender.backtest import summary
from web.backtested import every_outcome
from web.charts.scatter import Pair, agreement_chart
from web.deps import Library, LibraryDep
from web.explore import agreement_spec
from web.formats import number, plural
from web.listing import Facet, Item, groups, paged, select
from web.pages_lists import chosen_of, sort_links, state_of
from web.records import metric_name
from web.render import integer, page
from web.urls import link, replaced

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

PATH = "/validation/gains"
SORTS = {"factor": "farthest off", "technique": "technique", "id": "as listed"}
STATES = {
    "scored": "counts for the score",
    "predicted": "predicted, not scored",
    "unpredicted": "not predicted",
}
COLUMNS = ("id", "technique", "metric", "reported", "predicted", "value_kind", "score", "assumed", "reason", "model", "hardware", "batch", "input_tokens", "baseline", "source", "locator")  # fmt: skip


def state_of_row(row: Item) -> str:
    """Scored rows say how good we are; others are shown, too, with what keeps them out."""
    if row["predicted"] is None or row["log_ratio"] is None:
        return "unpredicted"
    return "scored" if row["score"] and row["value_kind"] != "up_to" else "predicted"


def facets(names: dict[str, str]) -> list[Facet]:
    return [
        Facet("state", "Comparison", lambda row: [state_of_row(row)], lambda state: STATES.get(state, state)),
        Facet("technique", "Technique", lambda row: [row["technique"]], lambda slug: names.get(slug, slug), shown=14),
        Facet("metric", "Gain", lambda row: [row["metric"]], metric_name, shown=12),
        Facet("kind", "Figure", lambda row: [row["value_kind"]], lambda kind: kind.replace("_", " ")),
    ]  # fmt: skip


def pairs_of_rows(rows: Sequence[Item], names: dict[str, str]) -> list[Pair]:
    """What a scatter can show: ratios that are both predicted and reported."""
    return [
        Pair(row["reported"], row["predicted"], metric_name(row["metric"]), str(names.get(row["technique"])))
        for row in rows
        if row["log_ratio"] is not None
    ]  # fmt: skip


def plotted(rows: Sequence[Item], chosen: Mapping[str, Sequence[str]]) -> list[Item]:
    """The scored rows that the headline speaks of, unless a reader chose others."""
    return list(rows) if chosen.get("state") else [row for row in rows if state_of_row(row) == "scored"]


def share(value: float | None) -> str:
    return "–" if value is None else f"{value * 100:.0f} %"


def headline(stats: dict[str, Any]) -> str:
    """What the scored rows of a selection say."""
    if not stats["n"]:
        return "No published gain of this selection is both scored and predicted"
    return f"Half of {stats['n']:,} published gains are predicted within a factor of {number(stats['median_factor'])}"


def gains_summary(library: Library) -> str:
    """One sentence for the page of measured times."""
    stats = summary(every_outcome(library))
    return f"{headline(stats)}; {share(stats['direction_accuracy'])} point the right way."


@router.get(PATH)
def gains(request: Request, library: LibraryDep) -> Response:
    """The page, or with `format=csv` or `json` the selected rows."""
    rows = every_outcome(library)
    names = {each["slug"]: each["name"] for each in library.snapshot().techniques}
    kinds = facets(names)
    known = ("sort", "page", "format", *(facet.name for facet in kinds))
    pairs = state_of(request, known, "factor")
    chosen = chosen_of(request, kinds)
    kept, counts = select(rows, kinds, chosen)
    selected = [dict(row) for row in kept]
    stats = summary(selected)
    form = request.query_params.get("format", "")
    if form == "json":
        shown = [{name: row.get(name) for name in COLUMNS} for row in selected]
        return JSONResponse({"total": len(selected), "summary": stats, "rows": shown})
    if form == "csv":
        return as_csv(selected)
    sort = request.query_params.get("sort", "factor")
    sort = sort if sort in SORTS else "factor"
    if sort == "factor":
        selected.sort(
            key=lambda row: (state_of_row(row) != "scored", -abs(row["log_ratio"] or 0.0), str(row["id"]))
        )
    elif sort == "technique":
        selected.sort(
            key=lambda row: (names.get(row["technique"], row["technique"]).casefold(), str(row["id"]))
        )
    points = pairs_of_rows(plotted(selected, chosen), names)
    base = [pair for pair in pairs if pair[0] not in ("page", "sort")]
    chart = (
        agreement_chart(
            points,
            unit="×",
            title="Predicted against reported gains",
            ident="gains",
            explore=link(f"{PATH}/chart.json", base),
            truth="reported",
        )
        if points
        else None
    )
    return page(
        request,
        "gains.html",
        title=headline(stats),
        known=known,
        json_url=link(PATH, [*base, ("format", "json")]),
        csv_url=link(PATH, [*base, ("format", "csv")]),
        command="kb backtest --json",
        stats=stats,
        share=share,
        names=names,
        state=state_of_row,
        metric_name=metric_name,
        chart=chart,
        groups=groups(kinds, counts, chosen, PATH, pairs),
        pairs=pairs,
        sorts=sort_links(PATH, pairs, SORTS, "factor"),
        sort=sort,
        page=paged(selected, integer(request.query_params.get("page")), PATH, pairs),
        by_technique=[
            (names.get(slug, slug), link(PATH, replaced(base, technique=slug)), each)
            for slug, each in stats["by_technique"].items()
        ],
        unpredicted=reasons(selected),
    )


def reasons(rows: Sequence[Item]) -> list[tuple[str, str]]:
    """Why figures are not predicted, the most frequent first."""
    counted = Counter(row["reason"] for row in rows if row["reason"])
    return [(reason, plural(count, "figure")) for reason, count in counted.most_common(6)]


def as_csv(rows: Sequence[Item]) -> Response:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(["; ".join(row[name]) if name == "assumed" else row.get(name) for name in COLUMNS])
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8")


@router.get(f"{PATH}/chart.json")
def chart_json(request: Request, library: LibraryDep) -> Response:
    """The scatter as a Plotly figure."""
    names = {each["slug"]: each["name"] for each in library.snapshot().techniques}
    kinds = facets(names)
    chosen = chosen_of(request, kinds)
    kept, _ = select(every_outcome(library), kinds, chosen)
    return JSONResponse(agreement_spec(pairs_of_rows(plotted(kept, chosen), names), "×", "reported"))
