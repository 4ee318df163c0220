"""An Answer's JSON as what the page shows: verdict, tiles, plan, rows, charts. No number is computed here that the
JSON does not carry, except sums and shares for drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from costmodel.specs import Hardware
from recommender.knowledge import is_research_code
from web.charts.bars import axis_around, interval, time_chart
from web.charts.memory import memory_chart, memory_row
from web.charts.pareto import Plan, pareto_chart
from web.charts.roofline import operators_of, roofline_chart
from web.charts.svg import Chart
from web.formats import bytes_text, milliseconds, number, ratio, span

Json = Mapping[str, Any]

METRICS = {
    "latency": ("e2e_ms", "Reply", "ms"),
    "tpot": ("tpot_ms", "Time per token", "ms"),
    "ttft": ("ttft_ms", "First token", "ms"),
    "throughput": ("throughput_tok_s", "Tokens/s", "tokens/s"),
    "memory": ("total", "Memory", "bytes"),
    "cost": ("cost_per_million_tokens_usd", "USD per million", "USD"),
}
CODE_NAMES = {
    "unsupported-hardware": "This hardware cannot run them",
    "does-not-fit": "Alone, they do not make it fit",
    "already-in-use": "Already in use",
    "not-applicable": "They do not apply to this question",
    "conflicts": "They exclude what is in use",
    "needs-training": "They need more training than you allow",
    "lossy": "They change the output more than you allow",
    "no-gain": "No gain here",
    "filtered-out": "Left out by your filter",
}
GROUP_SHOWN = 3
BARS = 5


def metric_of(objective: str) -> str:
    return {"cost": "throughput"}.get(objective, objective)


def verdict_class(answer: Json) -> str:
    if answer["baseline"]["fits"]:
        return "ok"
    return "warn" if answer["recommendations"] else "bad"


def best_of(answer: Json) -> Json | None:
    """The first recommendation: what the verdict speaks of."""
    return answer["recommendations"][0] if answer["recommendations"] else None


def rate_band(estimate: Json) -> str:
    """Tokens per second of one sequence, from the interval of the time per token."""
    pair = (estimate.get("interval") or {}).get("tpot_ms")
    return span([1e3 / pair[1], 1e3 / pair[0]]) if pair and all(pair) else ""


def tiles(answer: Json) -> list[dict[str, str]]:
    """Four numbers with their bands: of the best option where there is one, of the baseline otherwise."""
    baseline, best = answer["baseline"], best_of(answer)
    now = best["estimate"] if best else baseline
    memory = now["memory_bytes"]
    had = baseline["memory_bytes"]
    before = "" if best is None else ("now " if baseline["fits"] else "would be ")
    speed = 1e3 / now["tpot_ms"] if now.get("tpot_ms") else None
    old_speed = 1e3 / baseline["tpot_ms"] if baseline.get("tpot_ms") else None
    ttft_band = span((now.get("interval") or {}).get("ttft_ms"), "milliseconds")
    objective = answer["scenario"]["objective"]
    metric = metric_of(objective)
    found = [
        {
            "label": "Decode speed, one sequence",
            "value": number(speed),
            "unit": "tokens/s",
            "note": join(rate_band(now), f"{before}{number(old_speed)}" if best else ""),
        },
        {
            "label": "Time to first token",
            "value": milliseconds(now.get("ttft_ms")).split(" ")[0],
            "unit": milliseconds(now.get("ttft_ms")).partition(" ")[2],
            "note": join(ttft_band, f"{before}{milliseconds(baseline.get('ttft_ms'))}" if best else ""),
        },
        {
            "label": "Memory needed",
            "value": bytes_text(memory.get("total")).split(" ")[0],
            "unit": f"of {bytes_text(memory.get('available'))}",
            "note": join(
                "fits" if now["fits"] else "does not fit",
                f"{before}{bytes_text(had.get('total'))}" if best else "",
            ),
        },
    ]
    if best:
        found.append(
            {
                "label": {
                    "latency": "Complete reply",
                    "tpot": "Time per token",
                    "ttft": "First token",
                    "throughput": "Throughput",
                    "memory": "Memory",
                    "cost": "Tokens per device",
                }[objective]
                + " against now",
                "value": ratio(best["gain"].get(metric)),
                "unit": "better" if (best["gain"].get(metric) or 0) >= 1 else "",
                "note": join(
                    span((best.get("gain_interval") or {}).get(metric), "ratio"),
                    "lossless" if best["quality"].get("lossless") else "output changes a little",
                ),
            }
        )
    else:
        found.append(
            {
                "label": "Throughput",
                "value": number(now.get("throughput_tok_s")),
                "unit": "tokens/s",
                "note": "all sequences",
            }
        )
    return found


def join(*parts: str) -> str:
    return " · ".join(part for part in parts if part and part != "–")


def plan_steps(answer: Json) -> list[dict[str, Any]]:
    """The first plan's steps in order, or the first techniques as single steps."""
    metric = metric_of(answer["scenario"]["objective"])
    plan = next((each for each in answer["recommendations"] if each["kind"] == "plan"), None)
    if plan and plan.get("steps"):
        return [
            {
                "slug": step["technique"],
                "name": step["name"],
                "gain": ratio((step.get("marginal_gain") or {}).get(metric)),
                "training": step["training"],
                "how": step.get("how") or [],
            }
            for step in plan["steps"]
        ]
    best = best_of(answer)
    if best is None:
        return []
    how = [{"engine": each["name"], "how": each["how"]} for each in best["engines"][:3]]
    return [
        {
            "slug": best["techniques"][0],
            "name": best["name"],
            "gain": ratio(best["gain"].get(metric)),
            "training": best["training"],
            "how": how,
        }
    ]


def option_rows(answer: Json, top: int) -> tuple[list[dict[str, Any]], tuple[float, float]]:
    """Ranked options for the table, and the shared axis of their intervals."""
    objective = answer["scenario"]["objective"]
    metric = metric_of(objective)
    key, _, kind = METRICS[objective]
    shown = answer["recommendations"][:top]
    values = [
        bound
        for each in shown
        for bound in [each["gain"].get(metric), *((each["gain_interval"] or {}).get(metric) or [])]
    ]
    axis = axis_around(values, 0.5, 2.0)
    rows = []
    for each in shown:
        estimate = each["estimate"]
        value = estimate["memory_bytes"]["total"] if key == "total" else estimate.get(key)
        pair = (each["gain_interval"] or {}).get(metric) or [None, None]
        memory = estimate["memory_bytes"]
        rows.append(
            {
                **each,
                "value_text": {"ms": milliseconds, "bytes": bytes_text}.get(kind, number)(value),
                "gain_text": ratio(each["gain"].get(metric)),
                "band_text": span(pair, "ratio"),
                "bar": interval(each["gain"].get(metric), pair[0], pair[1], axis),
                "memory_text": bytes_text(memory["total"]),
                "fits": estimate["fits"],
                "quality_text": quality_text(each["quality"]),
                "break_text": break_text(each["break_even"]),
                "anchor": f"o{each['rank']}",
                "research": is_research_code(each),
            }
        )
    return rows, axis


def quality_text(quality: Json) -> str:
    """Lossless, or the range of the quality figures reported, by metric."""
    if quality.get("lossless"):
        return "lossless"
    by_metric: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in quality.get("reported") or []:
        if row.get("value") is not None:
            by_metric[(row["metric"], row.get("unit") or "")].append(row["value"])
    if not by_metric:
        return "no figure recorded"
    (metric, unit), values = max(by_metric.items(), key=lambda pair: len(pair[1]))
    words = {"ppl_delta": "perplexity", "accuracy_delta": "accuracy"}.get(metric, metric)
    low, high = min(values), max(values)
    unit = "" if unit in ("ppl", "perplexity") else f" {unit}"
    return f"{words} {signed(low)}{unit}" if low == high else f"{words} {signed(low)} to {signed(high)}{unit}"


def signed(value: float) -> str:
    return f"+{number(value)}" if value > 0 else number(value)


def break_text(break_even: Json) -> str:
    parts = []
    if break_even.get("batch"):
        parts.append(f"batch {break_even['batch']:,}")
    if break_even.get("context_tokens"):
        parts.append(f"{break_even['context_tokens']:,} prompt tokens")
    return " or ".join(parts)


def rejected_groups(answer: Json, *, everything: bool = False) -> list[dict[str, Any]]:
    """Not advised, by reason; the largest groups are cut, never silently."""
    groups: dict[str, list[Json]] = defaultdict(list)
    for row in answer["rejected"]:
        groups[row["code"]].append(row)
    metric = metric_of(answer["scenario"]["objective"])
    found = []
    for code in sorted(groups, key=lambda code: list(CODE_NAMES).index(code) if code in CODE_NAMES else 99):
        rows = groups[code]
        shown = rows if everything else rows[:GROUP_SHOWN]
        found.append(
            {
                "code": code,
                "name": CODE_NAMES.get(code, code.replace("-", " ")),
                "count": len(rows),
                "hidden": len(rows) - len(shown),
                "rows": [
                    {
                        **row,
                        "reason": row["reason"].removeprefix(f"{row['name']}: ")
                        if row.get("name")
                        else row["reason"],
                        "number": ratio((row["gain"] or {}).get(metric))
                        if row.get("gain") and (row["gain"] or {}).get(metric)
                        else "",
                    }
                    for row in shown
                ],
            }
        )
    return found


def distinct_options(answer: Json) -> list[Json]:
    """The first options that differ in what they need, for the memory bars."""
    seen: set[int] = {round(answer["baseline"]["memory_bytes"]["total"] / 1e8)}
    found = []
    for each in answer["recommendations"]:
        size = round(each["estimate"]["memory_bytes"]["total"] / 1e8)
        if size not in seen:
            seen.add(size)
            found.append(each)
    return found[: BARS - 1]


def memory_figure(answer: Json) -> Chart:
    """Now, the formats in between (where the answer explored them), and the first options."""
    rows = [memory_row("now", answer["baseline"]["memory_bytes"])]
    rows += [memory_row(each["name"], each["estimate"]["memory_bytes"]) for each in distinct_options(answer)]
    return memory_chart(rows)


def time_figure(answer: Json) -> Chart:
    """Prefill and decode step, now and with the first option."""
    pairs = [("now", answer["baseline"])] + (
        [("best", best["estimate"])] if (best := best_of(answer)) else []
    )
    rows = []
    for phase, word in (("prefill", "prompt"), ("decode", "token")):
        for label, estimate in pairs:
            part = estimate[phase]
            terms = {name.replace("_", " "): ms for name, ms in part["terms"].items() if ms}
            rows.append((f"{word} {label}", terms, part["ms"] or 0.0))
    return time_chart(rows)


def roofline_figure(
    answer: Json, hardware: Hardware, devices: int, after_estimate: Json | None
) -> Chart | None:
    """Per device: operators of all devices share the work, so roof and points are both scaled to the whole."""
    before = operators_of(answer["baseline"])
    best = best_of(answer)
    after = operators_of(after_estimate) if after_estimate else []
    if not before:
        return None
    peak = (
        hardware.flops.get("fp16") or hardware.flops.get("bf16") or max(hardware.flops.values(), default=0.0)
    )
    if not peak:
        return None
    used = str((best or {}).get("deployment", {}).get("activation_format") or "") if best else ""
    narrow = next(
        (
            name
            for name in ("fp8", "int8", "fp4", "int4")
            if used.startswith(name) and hardware.flops.get(name)
        ),
        "",
    )
    count = max(1, devices)
    label = hardware.name if count == 1 else f"{count} × {hardware.name}"
    return roofline_chart(
        device=label,
        peak_flops=peak * count,
        bandwidth=hardware.bandwidth_bytes_per_s * count,
        compute_format="FP16",
        before=before,
        after=after,
        after_peak=hardware.flops[narrow] * count if narrow else None,
        after_format=narrow.upper(),
    )


def source_count(each: Json) -> str:
    papers, results = len(each["papers"]), len(each["evidence"])
    text = f"{papers} {'paper' if papers == 1 else 'papers'}"
    return f"{text}, {results} {'result' if results == 1 else 'results'}" if results else text


def assumption_rows(estimate: Json) -> Sequence[Json]:
    return estimate.get("assumptions") or []


def shown(answer: Json) -> str:
    """The numbers somebody may find wrong, in one line: of the setup as it is and of the first option."""
    parts = []
    for label, estimate in (
        ("as it is", answer["baseline"]),
        ("first option", (best_of(answer) or {}).get("estimate")),
    ):
        if estimate:
            parts.append(
                f"{label}: {milliseconds(estimate.get('tpot_ms'))} a token, first token {milliseconds(estimate.get('ttft_ms'))}, "
                f"{number(estimate.get('throughput_tok_s'))} tokens/s, {bytes_text(estimate['memory_bytes'].get('total'))}"
            )
    return f"{answer['verdict']['text']} ({'; '.join(parts)})"


PLANS = 6


def pareto_view(answer: Json, names: Mapping[str, str]) -> dict[str, Any] | None:
    """Plans that no other beats in everything: the chart, and its numbers as rows."""
    found = answer.get("pareto") or []
    plans = [
        Plan(
            " + ".join(names.get(slug, slug) for slug in each["techniques"]) or "as it is",
            *(each["e2e_ms"], each["throughput_tok_s"], each["total_bytes"], each["quality_steps"]),
            now=not each["techniques"],
        )
        for each in found[:PLANS]
    ]
    if len(plans) < 2:
        return None
    rows = [
        {
            "techniques": each["techniques"],
            "e2e": milliseconds(each["e2e_ms"]),
            "throughput": number(each["throughput_tok_s"]),
            "memory": bytes_text(each["total_bytes"]),
            "quality": plan.quality[0],
        }
        for each, plan in zip(found, plans, strict=False)
    ]
    chart = pareto_chart(plans, capacity_bytes=answer["baseline"]["memory_bytes"].get("available"))
    return {"chart": chart, "rows": rows, "hidden": len(found) - len(plans)}
