"""Ask and answer: the form, the answer, and the answer's charts as data."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from costmodel.catalogue import find_hardware
from costmodel.errors import CostModelError
from recommender.curves import advised_curves, full_estimate
from recommender.errors import RecommenderError
from recommender.question import Question
from web import answer_view as view
from web.ask import (
    EXAMPLE,
    FIELDS,
    OBJECTIVE_NAMES,
    command_line,
    engine_options,
    form_context,
    hardware_options,
    model_options,
    question_of,
    state_pairs,
)
from web.charts.gain import GainCurve, GainPoint, gain_chart
from web.charts.svg import Chart
from web.deps import Library, LibraryDep
from web.errors import Contradiction, problem_of
from web.explore import gain_spec, roofline_spec
from web.formats import bytes_text, milliseconds, number
from web.own_device import NAMES as CONSTANTS
from web.own_device import composed, is_inline
from web.render import moved, page
from web.urls import Pairs, link, replaced

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

QUESTIONS = (
    ("Llama-2-70B on one RTX 3090: what would make it fit?", EXAMPLE),
    (
        "Llama-3.1-8B on an A100, one user: what makes replies faster?",
        {"hardware": "a100-80gb-sxm", "model": "llama-3.1-8b"},
    ),
    (
        "The same at batch 256: what changes?",
        {"hardware": "a100-80gb-sxm", "model": "llama-3.1-8b", "batch": "256", "objective": "throughput"},
    ),
    (
        "Llama-3.1-70B on two H100 behind vLLM, most tokens per second",
        {
            "hardware": "h100-sxm",
            "model": "llama-3.1-70b",
            "devices": "2",
            "batch": "32",
            "engine": "vllm",
            "objective": "throughput",
        },
    ),
    (
        "Mixtral on one 24 GB card, nothing lossy",
        {"hardware": "rtx-4090", "model": "mixtral-8x7b", "lossless": "1"},
    ),
    (
        "Long prompts (32k) on an RTX 4090: first token",
        {"hardware": "rtx-4090", "model": "llama-3.1-8b", "input_tokens": "32768", "objective": "ttft"},
    ),
)


@router.get("/")
def ask(request: Request, library: LibraryDep) -> HTMLResponse:
    """The form with an example filled in, and that example's verdict."""
    snapshot = library.snapshot()
    inside = [
        (f"{len(snapshot.works):,} works, most of them from {len(snapshot.surveys)} surveys", "/papers"),
        (f"{len(snapshot.techniques):,} techniques in {len(snapshot.levels)} classes", "/techniques"),
        (f"{len(snapshot.evidence):,} published results", "/techniques?sort=numbers"),
        ("Models and devices by any spelling", "/models"),
        ("Predictions beside measurements", "/validation"),
        ("The same by program: REST", "/api"),
    ]
    return page(
        request,
        "ask.html",
        title="Which optimizations pay off for your model on your hardware?",
        example=example_of(library, snapshot.version),
        questions=[(text, link("/recommend", values)) for text, values in QUESTIONS],
        inside=inside,
        button="Answer",
        **form_context(EXAMPLE),
    )


@lru_cache(maxsize=2)
def example_of(library: Library, version: str) -> dict[str, Any]:
    """The worked example of the first page, once per data version."""
    question = question_of(EXAMPLE)
    answer = library.recommend(question).as_dict()
    return {
        "text": answer["verdict"]["text"],
        "cls": view.verdict_class(answer),
        "tiles": view.tiles(answer),
        "href": link("/recommend", state_pairs(question)),
        "command": command_line(question),
        "version": version,
    }


def given_of(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.query_params.items() if name in FIELDS}


@router.get("/names.json")
def names_json() -> Response:
    """What the form's fields complete: the first page carries it, the others fetch it when a field is entered."""
    return JSONResponse(
        {"hardware": hardware_options(), "model": model_options(), "engine": engine_options()}
    )


@router.get("/recommend")
def recommend(request: Request, library: LibraryDep) -> Response:
    """The answer as a page; a question with a fault keeps the form filled and shows no figures."""
    given = given_of(request)
    if own := composed({name: request.query_params.get(name, "") for name in ("hardware", *CONSTANTS)}):
        if listed(given.get("hardware", "")):
            name = given["hardware"]
            error = Contradiction(
                f"{name} is listed, and data of a device are given as well",
                hint="clear the data to ask about the listed device, or give your device another name",
                field="hardware",
            )
            return faulty(request, {**given, "hardware": own}, error)
        rest = [(n, v) for n, v in request.query_params.multi_items() if n not in ("hardware", *CONSTANTS)]
        return moved("/recommend", [("hardware", own), *((n, v) for n, v in rest if v)])
    if request.query_params.get("format") == "csv":
        return answer_csv(library, given)
    try:
        question = question_of(given)
        answer = library.recommend(question).as_dict()
    except (CostModelError, RecommenderError) as error:
        return faulty(request, given, error)
    return answered(request, library, question, answer)


def listed(name: str) -> bool:
    """Whether a name of the form is a device of the catalogue."""
    try:
        find_hardware(name)
    except CostModelError:
        return False
    return True


def faulty(request: Request, given: dict[str, str], error: Exception) -> HTMLResponse:
    problem = problem_of(error)
    empty = not given
    near = [
        (slug, link("/recommend", {**given, problem.field or "": slug}))
        for slug in getattr(error, "suggestions", ())
        if problem.field in FIELDS
    ]
    return page(
        request,
        "answer.html",
        title="Name a model and a device" if empty else problem.message[:1].upper() + problem.message[1:],
        status=200 if empty else problem.status,
        known=(*FIELDS, *CONSTANTS),
        problem=problem,
        hint=problem.hint.partition("list all:")[0].strip(),  # the rest speaks of the command line
        lists=LISTS.get(problem.field or "", ()) if problem.status == 404 else (),
        near=near,
        button="Answer",
        **form_context({**DEFAULT_FORM, **given}, problem.field),
    )


LISTS = {
    "hardware": (("All devices", "/hardware"),),
    "model": (("All models", "/models"),),
    "engine": (("All engines", "/engines"),),
    "using": (("All techniques", "/techniques"),),
}
DEFAULT_FORM = {"hardware": "", "model": ""}


def answered(request: Request, library: Library, question: Question, answer: dict[str, Any]) -> HTMLResponse:
    resolved = answer["resolved"]
    hardware = find_hardware(question.hardware).spec
    pairs = state_pairs(question)
    rows, axis = view.option_rows(answer, question.top)
    for row in rows:
        row["sources"] = view.source_count(row)
    best = view.best_of(answer)
    everything = question.why_not
    names = {technique["slug"]: technique["name"] for technique in library.snapshot().techniques}
    return page(
        request,
        "answer.html",
        title=answer["verdict"]["text"],
        known=(*FIELDS, *CONSTANTS, "format"),
        problem=None,
        cls=view.verdict_class(answer),
        subtitle=subtitle(answer),
        chips=chips(answer),
        tiles=view.tiles(answer),
        equal=command_line(question),
        reproduce=f"{command_line(question)} --json",
        shown=view.shown(answer),
        json_link=link("/api/v1/recommend", pairs),
        csv_link=link("/recommend", [*pairs, ("format", "csv")]),
        understood=understood(question, resolved),
        notes=answer["notes"],
        steps=view.plan_steps(answer),
        ways=ways(answer),
        memory=view.memory_figure(answer),
        time=view.time_figure(answer),
        rows=rows,
        axis=axis,
        names=names,
        metric_name=view.METRICS[question.objective][1],
        goal=OBJECTIVE_NAMES[question.objective],
        option_total=len(answer["recommendations"]),
        more_link=link("/recommend", replaced(pairs, top=200)),
        roof=view.roofline_figure(answer, hardware, question.devices, after_of(library, question, best)),
        roof_explore=link("/recommend/roofline.json", pairs),
        curves=curves(library, question, best, pairs),
        groups=view.rejected_groups(answer, everything=everything),
        rejected_total=len(answer["rejected"]),
        everything=everything,
        all_link=link("/recommend", replaced(pairs, why_not=1)),
        pareto=view.pareto_view(answer, names),
        assumptions=view.assumption_rows(answer["baseline"]),
        button="Update",
        **form_context(form_values(question, resolved)),
    )


def after_of(
    library: Library, question: Question, best: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The first option's estimate with its operators."""
    return full_estimate(library.knowledge(), question, best["deployment"]) if best else None


def form_values(question: Question, resolved: dict[str, Any]) -> dict[str, Any]:
    values = question.scenario()
    values["using"] = ",".join(question.using)
    if not is_inline(question.hardware):
        values["hardware"] = resolved["hardware"]["slug"]
    values["model"] = resolved["model"]["slug"]
    return values


def subtitle(answer: dict[str, Any]) -> str:
    """What limits the setup as it is, with its numbers."""
    baseline = answer["baseline"]
    memory = baseline["memory_bytes"]
    text = f"As it is: weights {bytes_text(memory['weights'])}, KV cache {bytes_text(memory['kv_cache'])}, {bytes_text(memory['total'])} in all; the devices hold {bytes_text(memory['available'])}."
    if baseline["fits"]:
        text += f" A token takes {milliseconds(baseline['tpot_ms'])}, the prompt {milliseconds(baseline['ttft_ms'])}."
    elif baseline["min_devices"]:
        text += f" It takes at least {baseline['min_devices']} of these devices."
    return f"{text} Decode is bound by {baseline['decode']['bound']}, the prompt by {baseline['prefill']['bound']}."


def chips(answer: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    if answer["baseline"]["fits"]:
        found.append(("✓ Fits as it is", "ok"))
    elif answer["recommendations"]:
        found.append(("~ Fits after a change", "warn"))
    else:
        found.append(("✗ Does not fit", "bad"))
    found.append((f"Bottleneck: {str(answer['baseline']['bottleneck']).replace('-', ' ')}", ""))
    confidence = answer.get("confidence") or {}
    if confidence.get("level"):
        found.append((f"Confidence: {confidence['level']}", ""))
    if confidence.get("basis"):
        found.append((str(confidence["basis"]).partition(":")[0][:90], ""))
    return found


def understood(question: Question, resolved: dict[str, Any]) -> str:
    """How the names were read, with what they might have meant instead."""
    parts = [f"{resolved['model']['name']} on {question.devices} × {resolved['hardware']['name']}"]
    for kind in ("model", "hardware"):
        each = resolved[kind]
        if kind == "hardware" and is_inline(each["asked"]):
            parts.append("the device as you describe it")
        elif each["asked"] != each["slug"]:
            also = f"; also {', '.join(each['alternatives'][:4])}" if each["alternatives"] else ""
            parts.append(f"“{each['asked']}” read as {each['slug']}{also}")
    parts.append(
        f"{question.input_tokens:,} prompt and {question.output_tokens:,} new tokens, batch {question.batch:,}, engine {question.engine}"
    )
    return "; ".join(parts)


def ways(answer: dict[str, Any]) -> list[dict[str, str]]:
    """The smallest changes that make it fit."""
    found = []
    for way in ((answer.get("feasibility") or {}).get("changes") or [])[:6]:
        numbers = []
        if way.get("total_bytes"):
            numbers.append(f"{bytes_text(way['total_bytes'])} of {bytes_text(way.get('available_bytes'))}")
        if way.get("tpot_ms"):
            numbers.append(f"{number(1e3 / way['tpot_ms'])} tokens/s")
        found.append({"change": way["change"], "tail": ", ".join(numbers)})
    return found


def curves(library: Library, question: Question, best: Mapping[str, Any] | None, pairs: Pairs) -> list[Chart]:
    """Gain of the first option against batch and against prompt length."""
    if best is None:
        return []
    data = advised_curves(library.knowledge(), question, best["techniques"], best["deployment"])
    return curve_charts(data, question, "/recommend/gain.json", pairs)


def curve_charts(
    data: dict[str, Any],
    question: Question,
    explore: str,
    pairs: Pairs,
    published: tuple[Any, ...] = (),
) -> list[Chart]:
    found = []
    for axis, title, unit, here in (
        ("batch", "Gain against batch", "batch", question.batch),
        ("context_tokens", "Gain against prompt length", "prompt tokens", question.input_tokens),
    ):
        points = [
            GainPoint(each["x"], each["gain"], each["low"], each["high"], each["fits"])
            for each in data[axis]
            if each["gain"] is not None
        ]
        if len(points) < 2:
            continue
        curve = GainCurve(
            points,
            axis=f"{unit.capitalize()} (log)",
            here=here,
            break_even=data["break_even"][axis],
            title=title,
            unit=unit,
            published=published if axis == "batch" else (),
        )
        found.append(gain_chart(curve, f"gain-{axis}", link(explore, [*pairs, ("axis", axis)])))
    return found


@router.get("/recommend/gain.json")
def gain_json(request: Request, library: LibraryDep) -> Response:
    """The gain curve as a Plotly figure, fetched only when a reader explores it."""
    question = question_of(given_of(request))
    best = view.best_of(library.recommend(question).as_dict())
    if best is None:
        return JSONResponse({"data": [], "layout": {}})
    data = advised_curves(library.knowledge(), question, best["techniques"], best["deployment"])
    axis = "context_tokens" if request.query_params.get("axis") == "context_tokens" else "batch"
    return JSONResponse(gain_spec(data, axis, best["name"]))


@router.get("/recommend/roofline.json")
def roofline_json(request: Request, library: LibraryDep) -> Response:
    """The roofline as a Plotly figure."""
    question = question_of(given_of(request))
    answer = library.recommend(question).as_dict()
    return JSONResponse(
        roofline_spec(
            answer["baseline"],
            after_of(library, question, view.best_of(answer)),
            find_hardware(question.hardware).spec,
            question.devices,
        )
    )


CSV_COLUMNS = (
    "rank",
    "kind",
    "name",
    "techniques",
    "fits",
    "total_bytes",
    "ttft_ms",
    "tpot_ms",
    "e2e_ms",
    "throughput_tok_s",
    "gain_latency",
    "gain_tpot",
    "gain_ttft",
    "gain_throughput",
    "gain_memory",
    "training",
    "lossless",
    "papers",
)


def answer_csv(library: Library, given: dict[str, str]) -> Response:
    """The ranked options as CSV, one row each."""
    answer = library.recommend(question_of(given)).as_dict()
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for each in answer["recommendations"]:
        estimate, gain = each["estimate"], each["gain"]
        writer.writerow(
            [
                each["rank"], each["kind"], each["name"], ";".join(each["techniques"]), estimate["fits"], estimate["memory_bytes"]["total"],
                estimate["ttft_ms"], estimate["tpot_ms"], estimate["e2e_ms"], estimate["throughput_tok_s"],
                gain["latency"], gain["tpot"], gain["ttft"], gain["throughput"], gain["memory"],
                each["training"], each["quality"]["lossless"], ";".join(paper["id"] for paper in each["papers"]),
            ]
        )  # fmt: skip
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8")
