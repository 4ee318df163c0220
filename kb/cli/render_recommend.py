"""An Answer as text for 80 columns: the verdict first, then memory, options, what to do, what not, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb.cli import render as text

LABEL = 11
BAR = 40
NAME = 24
SHOWN_REASONS = 3

UNITS = {
    "latency": ("s/request", "e2e_ms", 1e-3),
    "tpot": ("ms/token", "tpot_ms", 1.0),
    "ttft": ("ms TTFT", "ttft_ms", 1.0),
    "throughput": ("tokens/s", "throughput_tok_s", 1.0),
    "memory": ("GB", "", 1.0),
    "cost": ("tokens/s", "throughput_tok_s", 1.0),
}
LOSS = {True: "none", False: "some"}


def render(answer: Mapping[str, Any]) -> str:
    """The whole answer."""
    blocks: list[str | None] = [
        question(answer),
        "",
        label("VERDICT", answer["verdict"]["text"]),
        "",
        memory(answer),
        "",
    ]
    blocks.append(options(answer))
    blocks += ["", do(answer), rejected(answer), "", tail(answer)]
    return text.printable("\n".join(block for block in blocks if block is not None))


def label(name: str, value: str) -> str:
    return text.field(name, value, label_width=LABEL)


def short(name: str) -> str:
    """A device without its vendor's words."""
    from recommender.text import device

    return device(name)


def question(answer: Mapping[str, Any]) -> str:
    """What was asked, as it was understood."""
    asked, names = answer["scenario"], answer["resolved"]
    line = (
        f"{names['model']['name']} on {asked['devices']} x {short(names['hardware']['name'])} · "
        f"{asked['input_tokens']:,} in, {asked['output_tokens']:,} out · batch {asked['batch']:,}"
    )
    if asked["engine"] != "plain":
        line += f" · {names['engine']['name'].split(' (')[0]}"
    if asked["using"]:
        line += f" · using {', '.join(asked['using'])}"
    lines = [label("Question", line)]
    for name in ("model", "hardware"):
        found = names[name]
        if found["alternatives"] and text.text(found["asked"]).lower() != found["slug"]:
            read = f'"{found["asked"]}" read as {found["slug"]}; also '
            also = found["alternatives"][0]
            for other in found["alternatives"][1:]:
                if len(read) + len(also) + len(other) + 2 <= text.width() - LABEL:
                    also += f", {other}"
            lines.append(label("", read + also))
    return "\n".join(lines)


def memory(answer: Mapping[str, Any]) -> str:
    """A bar per format: what is needed against what is there."""
    baseline = answer["baseline"]["memory_bytes"]
    available = baseline["available"]
    rows = [(answer["scenario"]["weight_format"].upper(), baseline["total"])]
    found = answer["feasibility"]
    if found:
        rows += [(row["weights"].split(" ")[0], row["total_bytes"]) for row in found["formats"]]
    else:
        best = next((item for item in answer["recommendations"]), None)
        if best is not None:
            rows.append(("best", best["estimate"]["memory_bytes"]["total"]))
    devices = answer["scenario"]["devices"]
    there = f"{'' if devices == 1 else f'{devices} x '}{short(answer['resolved']['hardware']['name'])}"
    head = f"{there}: {text.gigabytes(available)}"
    lines = [label("Memory", head)]
    for name, total in rows:
        over = total - available
        state = f"over by {over / 1e9:,.1f}" if over > 0 else f"{-over / 1e9:,.1f} free"
        lines.append(f"  {name[:8]:<9}{text.gigabytes(total):>9}  {state:<15}{bar(total, available)}")
    return "\n".join(lines)


def bar(total: float, available: float) -> str:
    """`#` up to what is needed; `|` marks what is there; `>` where the bar runs off the page."""
    edge = BAR // 3
    length = round(total / available * edge) if available > 0 else BAR
    inside = "#" * min(length, edge)
    outside = "#" * max(0, min(length, BAR - 1) - edge)
    return f"{inside:<{edge}}|{outside}{'>' if length > BAR - 1 else ''}"


def options(answer: Mapping[str, Any]) -> str:
    """The ranked table."""
    objective = answer["scenario"]["objective"]
    metric = {"cost": "throughput"}.get(objective, objective)
    unit, field, scale = UNITS[objective]
    items = answer["recommendations"][: answer["scenario"]["top"]]
    if not items and not answer["feasibility"]:
        return label("Options", "nothing in the knowledge base gains here; --why-not lists every reason")
    shows_unit = objective != "memory"
    head = f"    {'Option':<{NAME}} {'Memory':>9} {unit if shows_unit else '':>9}  {'Gain':<18} Loss Papers"
    lines = [head.rstrip()]
    for item in items:
        others = len(item["members"]) - 1 if item["kind"] == "technique" else 0
        name = item["name"] + (f" (+{others} alike)" if others else "")
        value = item["estimate"][field] * scale if shows_unit else None
        lines += row(
            item["rank"],
            name,
            item["estimate"]["memory_bytes"]["total"],
            value,
            gain_text(item["gain"][metric], item["gain_interval"][metric]),
            LOSS[item["quality"]["lossless"]],
            len(item["papers"]),
        )
    extra = [change for change in (answer["feasibility"] or {}).get("changes", ()) if beyond(change, answer)]
    for change in extra[:3]:
        value = change[field] * scale if shows_unit else None
        loss = "some" if "weights" in change["change"] and "bit" in change["change"] else "none"
        words = (
            change["change"].replace(" weights, ", ", ").replace(" of weights in host memory", " on the host")
        )
        lines += row("", words, change["total_bytes"], value, "", loss, None)
    return "\n".join(lines)


def beyond(change: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """A way to make it fit that no technique's row shows: more devices, the host, a smaller workload."""
    asked = answer["scenario"]
    return (
        change["devices"] > asked["devices"]
        or "host memory" in change["change"]
        or change["batch"] < asked["batch"]
        or change["input_tokens"] < asked["input_tokens"]
    )


def row(
    rank: Any, name: str, total: float, value: Any, gain: str, loss: str, papers: int | None
) -> list[str]:
    """One option; a name that is too long goes on under itself."""
    import textwrap

    wrapped = textwrap.wrap(short(name), NAME) or [""]
    shown = "" if value is None else text.significant(value)
    first = (
        f"{rank!s:>2}  {wrapped[0]:<{NAME}} {text.gigabytes(total):>9} {shown:>9}  {gain:<18} {loss:<5}"
        f"{'' if papers is None else papers:>5}"
    )
    return [first.rstrip(), *(f"    {more}" for more in wrapped[1:])]


def gain_text(gain: float | None, interval: Sequence[float] | None) -> str:
    """2.16x (1.80-2.58)"""
    if gain is None:
        return ""
    shown = f"{gain:.2f}x" if gain < 100 else f"{gain:,.0f}x"
    return f"{shown} ({interval[0]:.2f}-{interval[1]:.2f})" if interval else shown


def do(answer: Mapping[str, Any]) -> str | None:
    """What to switch on, in order; the best entry's steps."""
    if not answer["recommendations"]:
        return None
    best, objective = answer["recommendations"][0], answer["scenario"]["objective"]
    metric = {"cost": "throughput"}.get(objective, objective)
    steps = best["steps"] or [
        {"technique": best["techniques"][0], "name": best["name"], "marginal_gain": None}
    ]
    lines = []
    for number, step in enumerate(steps, start=1):
        gain = (step.get("marginal_gain") or {}).get(metric) if len(steps) > 1 else None
        said = f"{number}. {step['name']}" + (f", {gain:.2f}x on top" if gain else "")
        how = how_to(step["technique"], best["engines"], best["engine"] or answer["scenario"]["engine"])
        lines.append(label("Do" if number == 1 else "", said + how))
    lines.append(label("Why", best["why"]))
    caveats = sorted(
        best["caveats"], key=lambda line: not line.startswith(("Stops paying", "Not a speed-up"))
    )
    but = best["disagreement"] or (caveats[0] if caveats else None)
    if but:
        lines.append(label("But", but))
    return "\n".join(lines)


def one_line(name: str, value: str) -> str:
    """A labelled line, cut to the width."""
    return f"{name:<{LABEL}}{text.shorten(value, text.width() - LABEL)}"


def how_to(slug: str, engines: Sequence[Mapping[str, Any]], engine: str) -> str:
    """` — vLLM: --quantization awq_marlin`"""
    mine = [entry for entry in engines if entry["technique"] == slug and entry["how"]]
    chosen = next((entry for entry in mine if entry["name"] == engine), None) or next(iter(mine), None)
    return "" if chosen is None else f" · {chosen['name']}: {chosen['how'].rstrip('.')}"


def rejected(answer: Mapping[str, Any]) -> str:
    """Why not the others: the few a reader would ask about, or all of them by code."""
    items = sorted(answer["rejected"], key=lambda item: (-item["prominence"], item["technique"]))
    if answer["scenario"]["why_not"]:
        return "\n" + all_rejected(answer["rejected"])
    seen: set[str] = set()
    shown: list[Mapping[str, Any]] = []
    for item in items:
        kind = item["mechanism"] or item["technique"]
        if kind not in seen and len(shown) < SHOWN_REASONS and item["code"] != "filtered-out":
            seen.add(kind)
            shown.append(item)
    lines = [label("Not" if i == 0 else "", item["reason"]) for i, item in enumerate(shown)]
    left = len(items) - len(shown)
    if left > 0:
        lines.append(one_line("" if lines else "Not", f"{left} more with their reasons: --why-not"))
    return "\n".join(lines)


def all_rejected(items: Sequence[Mapping[str, Any]]) -> str:
    """Every technique that is not recommended, by code."""
    by_code: dict[str, list[Mapping[str, Any]]] = {}
    for item in items:
        by_code.setdefault(item["code"], []).append(item)
    blocks = []
    for code, found in by_code.items():
        blocks.append(f"Not: {code} ({len(found)})")
        by_reason: dict[str, list[str]] = {}
        for item in found:
            name, _, reason = item["reason"].partition(": ")
            by_reason.setdefault(reason, []).append(name)
        for reason, names in by_reason.items():
            blocks.append(text.wrap(f"{', '.join(names)}: {reason}", indent=2, hang=4))
    return "\n".join(blocks)


def tail(answer: Mapping[str, Any]) -> str:
    """How sure, and where to go on."""
    sure, lines = answer["confidence"], []
    if sure.get("factor"):
        said = f"{sure['level']}: times within a factor {sure['factor']:.2f}; {sure['basis'].split(':')[0]}"
        lines.append(one_line("Confidence", said))
    lines += [label("Note", note) for note in answer["notes"]]
    best = answer["recommendations"][0]["techniques"][0] if answer["recommendations"] else None
    more = [f"kb show {best}"] if best else []
    asked, names = answer["scenario"], answer["resolved"]
    page = f"/recommend?hardware={names['hardware']['slug']}&model={names['model']['slug']}"
    page += f"&batch={asked['batch']}" if asked["batch"] > 1 else ""
    lines.append(label("Next", " · ".join([*more, "--why-not", "--json", "kb serve, then"])))
    lines.append(f"{'':<{LABEL}}{page}")
    return "\n".join(lines)
