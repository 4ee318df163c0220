"""One technique: what it does, its gain on the reader's setup, published results beside predictions, relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from costmodel.errors import CostModelError
from recommender.errors import RecommenderError
from recommender.question import Question
from web.ask import SCENARIO_FIELDS, question_of, state_pairs
from web.backtested import curve, predictions
from web.charts.bars import axis_around, interval
from web.charts.gain import Published
from web.charts.svg import Chart
from web.deps import Library, LibraryDep
from web.errors import Missing
from web.explore import gain_spec
from web.facets import KIND_NAMES, LOSSLESS_NAMES
from web.formats import number, ratio
from web.pages_answer import curve_charts
from web.records import (
    ROLE_ORDER,
    breadcrumbs,
    effect_words,
    evidence_groups,
    first_number,
    metric_name,
    relations_of,
    requirement_words,
    siblings,
    source_of,
)
from web.render import moved, page
from web.snapshot import SCHEME_NAMES
from web.urls import Pairs, link, pairs_of, record_path

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Item = dict[str, Any]
SHOWN_GROUPS = 15
DEFAULT_SETUP = {"hardware": "a100-80gb-sxm", "model": "llama-2-7b", "engine": "vllm"}
CURVE_METRICS = ("decode_speedup", "e2e_speedup", "throughput_gain")
OBJECTIVE_OF_PHASE = {"prefill": "ttft", "decode": "tpot", "both": "latency"}


@router.get("/techniques/{slug}/gain.json")
def gain_json(request: Request, slug: str, library: LibraryDep) -> Response:
    """The gain curve as a Plotly figure."""
    technique, found = library.snapshot().technique(slug)
    if technique is None:
        raise Missing("technique", slug, [])
    data = curve(library, found, setup_of(request, technique))
    axis = "context_tokens" if request.query_params.get("axis") == "context_tokens" else "batch"
    return JSONResponse(gain_spec(data, axis, technique["name"]))


@router.get("/techniques/{slug}")
def technique(request: Request, slug: str, library: LibraryDep) -> Response:
    """The page; names and aliases lead to the canonical slug."""
    snapshot = library.snapshot()
    item, found = snapshot.technique(slug)
    if item is None:
        near = [
            (each["name"], record_path("techniques", each["slug"])) for each in snapshot.near_techniques(slug)
        ]
        raise Missing("technique", slug, near, hint="all of them: /techniques")
    if slug != found:
        return moved(record_path("techniques", found))
    data = item["data"] or {}
    metric = request.query_params.get("metric", "")
    rows = snapshot.evidence_by_technique.get(found, [])
    groups, axis, axis_label = evidence_view(rows, metric, predictions(library, found, rows))
    everything = request.query_params.get("rows") == "all"
    curves, ask, ask_link, error = gain_view(request, library, item, rows)
    crumbs = breadcrumbs(snapshot, item["levels"])
    alike = siblings(snapshot, item)
    state = pairs_of({"metric": metric, "rows": "all" if everything else ""})
    path = record_path("techniques", found)
    return page(
        request,
        "technique.html",
        title=f"{item['name']}: {headline(item, groups)}",
        known=("metric", "rows", *SCENARIO_FIELDS),
        json_url=f"/api/v1{path}",
        csv_url=link("/compare.csv", {"ids": found}),
        command=f"kb show {found}",
        technique=item,
        data=data,
        crumbs=crumbs,
        level_basis=item["level_basis"],
        missing_schemes=[name for scheme, name in SCHEME_NAMES.items() if not item["levels"].get(scheme)],
        chips=chips(item, groups),
        lossless_name=LOSSLESS_NAMES.get(item["lossless"], item["lossless"]),
        needs=requirement_words(data.get("requires") or {}),
        needs_note=(data.get("requires") or {}).get("note", ""),
        curves=curves,
        curve_error=error,
        ask=ask,
        ask_link=ask_link,
        groups=groups if everything else groups[:SHOWN_GROUPS],
        group_total=len(groups),
        more_groups=not everything and len(groups) > SHOWN_GROUPS,
        all_href=link(path, [*state, ("rows", "all")]) + "#results",
        evidence_total=len(rows),
        source_total=len({source_of(row) for row in rows}),
        predicted_shown=any(group["predicted_text"] != "–" for group in groups),
        metrics=metric_links(rows, metric, path),
        axis=axis,
        axis_label=axis_label,
        relations=relations_of(snapshot, item),
        siblings=alike,
        compare_link=link("/compare", {"ids": ",".join([found, *(each["slug"] for each in alike[:5])])}),
        effects=[effect_words(effect) for effect in data.get("effects") or []],
        papers=sorted(
            item["work_links"],
            key=lambda entry: (ROLE_ORDER.get(entry["role"], 9), entry["work"]["year"] or 0),
        ),
    )


def headline(item: Item, groups: Sequence[Item]) -> str:
    """What it relieves, and by how much others have seen."""
    relieves = " and ".join(name.lower() for name in item["bottleneck_names"][:2])
    text = f"relieves {relieves}" if relieves else KIND_NAMES.get(item["kind"], str(item["kind"]))
    ratios = [group for group in groups if group["is_ratio"]]
    if ratios:
        text += (
            f"; {ratio(ratios[0]['low'])[:-1]}–{ratio(ratios[0]['high'])} {ratios[0]['metric_name']} reported"
            if ratios[0]["low"] != ratios[0]["high"]
            else f"; {ratio(ratios[0]['high'])} {ratios[0]['metric_name']} reported"
        )
    return text


def chips(item: Item, groups: Sequence[Item]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    best: dict[str, tuple[float, float]] = {}
    for group in groups:
        if group["is_ratio"]:
            low, high = best.get(group["metric_name"], (group["low"], group["high"]))
            best[group["metric_name"]] = (min(low, group["low"]), max(high, group["high"]))
    for name, (low, high) in list(best.items())[:3]:
        text = f"{ratio(low)[:-1]}–{ratio(high)}" if low != high else ratio(high)
        found.append((f"{text} {name}", "ok" if low >= 1 else "warn" if high >= 1 else "bad"))
    found.append(
        (
            LOSSLESS_NAMES[item["lossless"]],
            "ok" if item["lossless"] == "yes" else "warn",
        )
    )
    if not groups:
        found.append(("estimate only, no published figure here", "warn"))
    if item["kind"] != "software":
        found.append((KIND_NAMES.get(item["kind"], str(item["kind"])), ""))
    if item["year"]:
        found.append((str(item["year"]), ""))
    return found


def metric_links(rows: Sequence[Item], chosen: str, path: str) -> list[tuple[str, str, int, str, bool]]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["metric"]] = counts.get(row["metric"], 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [
        (
            name,
            metric_name(name),
            count,
            link(path, {"metric": "" if name == chosen else name}) + "#results",
            name == chosen,
        )
        for name, count in ordered
    ]


def evidence_view(
    rows: Sequence[Item], metric: str, predicted_by_id: Mapping[str, float]
) -> tuple[list[Item], tuple[float, float], str]:
    """Groups with their bars on one shared axis; figures that are no ratios get no bar."""
    kept = [row for row in rows if not metric or row["metric"] == metric]
    groups = evidence_groups(kept)
    axis = axis_around(
        [bound for group in groups if group["is_ratio"] for bound in (group["low"], group["high"])]
    )
    for group in groups:
        group["bar"] = (
            interval(group["median"], group["low"], group["high"], axis)
            if group["is_ratio"] and group["low"] > 0
            else ""
        )
        predicted = [predicted_by_id[row["id"]] for row in group["rows"] if row["id"] in predicted_by_id]
        group["predicted_text"] = (
            (ratio(sorted(predicted)[len(predicted) // 2]) if group["is_ratio"] else number(predicted[0]))
            if predicted
            else "–"
        )
    return groups, axis, "× baseline, log scale"


def setup_of(request: Request, item: Item) -> Question:
    """The reader's setup, ranked by what the technique acts on."""
    given = {name: value for name, value in request.query_params.items() if name in SCENARIO_FIELDS and value}
    return default_question(item, given)


def default_question(item: Item, given: Mapping[str, str] | None = None) -> Question:
    """The page's usual setup with the reader's changes."""
    values = {**DEFAULT_SETUP, **(given or {})}
    return question_of({**values, "objective": OBJECTIVE_OF_PHASE.get(item["phase"], "latency")})


def gain_view(
    request: Request, library: Library, item: Item, rows: Sequence[Item]
) -> tuple[list[Chart], Mapping[str, Any], str, str]:
    """Curves for the reader's setup, the filled form, a link to the full answer, or what was wrong."""
    given = {name: request.query_params.get(name, "") for name in SCENARIO_FIELDS}
    ask: dict[str, Any] = {
        **DEFAULT_SETUP,
        "devices": 1,
        "input_tokens": 1024,
        **{k: v for k, v in given.items() if v},
    }
    try:
        question = setup_of(request, item)
        ask_link = link("/recommend", state_pairs(question))
        if not (item["data"] or {}).get("effects"):
            return [], ask, ask_link, ""
        data = curve(library, item["slug"], question)
    except (CostModelError, RecommenderError) as error:
        return [], ask, "", f"{error.message}. {error.hint}"
    pairs: Pairs = [pair for pair in state_pairs(question) if pair[0] != "objective"]
    charts = curve_charts(
        data,
        question,
        f"{record_path('techniques', item['slug'])}/gain.json",
        pairs,
        published(rows),
    )
    reason = data.get("reason")
    return charts, ask, ask_link, f"Not advised for this setup: {reason}" if reason and not charts else ""


def published(rows: Sequence[Item]) -> tuple[Published, ...]:
    """Reported ratios with a stated batch, one mark per setting."""
    found = []
    for row in rows:
        batch = first_number(row["batch"])
        if (
            row["metric"] not in CURVE_METRICS
            or row["unit"] != "x"
            or batch is None
            or row["suspect"]
            or row["value"] <= 0
        ):
            continue
        series = (
            ", ".join(part for part in (short(row["hardware"]), short(row["model"])) if part)
            or "setting not stated"
        )
        found.append(Published(batch, row["value"], series))
    return tuple(found[:60])


def short(text: str) -> str:
    return text.partition(" (")[0][:24]
