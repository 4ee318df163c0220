"""An Answer as text for 80 columns: the verdict first, then memory, options, what to do, what not, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb.cli import render as text
from recommender.knowledge import is_research_code

LABEL = 11
BAR = 35
NAME = 25
SHOWN_REASONS = 2
REASON_LINES = 4  # of the reasons shown together
SHOWN_WAYS = 2

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
        label("VERDICT", answer["verdict"]["text"]),
        memory(answer),
        "",
        options(answer),
        "",
        do(answer),
        rejected(answer),
        tail(answer),
    ]
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
    read = [
        (names[name]["asked"], names[name]["slug"], names[name]["alternatives"])
        for name in ("model", "hardware")
        if names[name]["alternatives"] and text.text(names[name]["asked"]).lower() != names[name]["slug"]
    ]
    said = [f'"{asked}" as {slug}, not {others[0]}' for asked, slug, others in read]
    if len(read) == 1:
        more = ", ".join(read[0][2][1:3])
        said[0] += f" or {more}" if more and len(said[0]) + len(more) < text.width() - LABEL - 9 else ""
    if len(read) > 1 and len("; ".join(said)) > text.width() - LABEL - 5:
        said = [f'"{asked}" as {slug}' for asked, slug, _ in read]
    lines += [label("", f"read {'; '.join(said)}")] if said else []
    return "\n".join(lines)


def memory(answer: Mapping[str, Any]) -> str:
    """A bar per format: what is needed against what is there."""
    baseline = answer["baseline"]["memory_bytes"]
    available = baseline["available"]
    rows = [(answer["verdict"]["weight_format"].upper(), baseline["total"])]
    found = answer["feasibility"]
    if found:
        rows += [(row["weights"], row["total_bytes"]) for row in nearest_formats(found["formats"])]
    else:
        best = next((item for item in answer["recommendations"]), None)
        if best is not None:
            rows.append(("best option", best["estimate"]["memory_bytes"]["total"]))
    devices = answer["scenario"]["devices"]
    there = f"{'' if devices == 1 else f'{devices} x '}{short(answer['resolved']['hardware']['name'])}"
    lines = [label("Memory", f"{there}: {text.gigabytes(available)}")]
    for name, total in rows:
        over = total - available
        amount = f"{abs(over) / 1e9:,.{1 if abs(over) < 1e12 else 0}f}"
        state = f"over by {amount}" if over > 0 else f"{amount} free"
        said = name.removeprefix("the published ").removesuffix(" weights")
        lines.append(
            f"  {text.shorten(said, 14):<15}{text.gigabytes(total):>9}  {state:<15}{bar(total, available)}"
        )
    return "\n".join(lines)


def nearest_formats(formats: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The widest weights that fit, and the next wider ones that do not."""
    fits = next((k for k, row in enumerate(formats) if row["fits"]), len(formats))
    return list(formats[max(0, fits - 1) : fits + 1])


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
    head = f"    {'Option':<{NAME}} {'Memory':>9} {unit if shows_unit else '':>9}  {'Gain':<17} {'Loss':<4} Papers"
    lines = [head.rstrip()]
    for item in items:
        others = len(item["members"]) - 1 if item["kind"] == "technique" else 0
        value = item["estimate"][field] * scale if shows_unit else None
        lines.append(
            row(
                item["rank"],
                option_name(item, others),
                item["estimate"]["memory_bytes"]["total"],
                value,
                gain_text(item["gain"][metric], item["gain_interval"][metric]),
                LOSS[item["quality"]["lossless"]],
                len(item["papers"]),
            )
        )
    extra = [change for change in (answer["feasibility"] or {}).get("changes", ()) if beyond(change, answer)]
    for change in extra[:SHOWN_WAYS]:
        value = change[field] * scale if shows_unit else None
        loss = "some" if "weights" in change["change"] and "bit" in change["change"] else "none"
        words = (
            change["change"].replace(" weights, ", ", ").replace(" of weights in host memory", " on the host")
        )
        words = words.split(" instead of ")[0]
        lines.append(row("", words, change["total_bytes"], value, "", loss, None))
    notes = ["smallest change first, then faster; offloading last"] if extra else []
    notes += ["* research code"] if any(is_research_code(item) for item in items) else []
    return "\n".join([*lines, *([f"    ({'; '.join(notes)})"] if notes else [])])


def option_name(item: Mapping[str, Any], others: int) -> str:
    """A name that fits its column: what it replaces, its relatives and `*` for research code as far as there is room."""
    mark = "*" if is_research_code(item) else ""
    name = short(item["name"]) + mark
    for more in (
        f" for {' and '.join(item['instead_of'])}" if item["instead_of"] else "",
        f" (+{others} alike)" if others else "",
    ):
        if len(name) + len(more) <= NAME:
            name += more
    return str(text.shorten(name, NAME))


def beyond(change: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """A way to make it fit that no technique's row shows: more devices, the host, a smaller workload."""
    asked = answer["scenario"]
    return (
        change["devices"] > asked["devices"]
        or "host memory" in change["change"]
        or change["batch"] < asked["batch"]
        or change["input_tokens"] < asked["input_tokens"]
    )


def row(rank: Any, name: str, total: float, value: Any, gain: str, loss: str, papers: int | None) -> str:
    """One option on one line."""
    shown = "" if value is None else text.significant(value)
    line = (
        f"{rank!s:>2}  {text.shorten(name, NAME):<{NAME}} {text.gigabytes(total):>9} {shown:>9}  {gain:<17} {loss:<4}"
        f"{'' if papers is None else papers:>5}"
    )
    return line.rstrip()


def gain_text(gain: float | None, interval: Sequence[float] | None) -> str:
    """2.16x (1.80-2.58)"""
    if gain is None:
        return ""
    shown = f"{gain:.2f}x" if gain < 100 else f"{gain:,.0f}x"
    if not interval:
        return shown
    low, high = (f"{bound:.2f}" if bound < 10 else f"{bound:.1f}" for bound in interval)
    return f"{shown} ({low}-{high})"


def do(answer: Mapping[str, Any]) -> str | None:
    """What to switch on, in order; the best entry's steps."""
    if not answer["recommendations"]:
        return None
    best, objective = answer["recommendations"][0], answer["scenario"]["objective"]
    metric = {"cost": "throughput"}.get(objective, objective)
    way = smaller_load(answer)
    if way is not None and (best["gain"][metric] or 0.0) < 1.0:
        _, field, scale = UNITS[objective]
        speed = f", {text.significant(way[field] * scale)} {UNITS[objective][0]}" if field else ""
        return label("Do", f"Ask for {way['change']}: {text.gigabytes(way['total_bytes'])}{speed}.")
    steps = best["steps"] or [
        {"technique": best["techniques"][0], "name": best["name"], "marginal_gain": None}
    ]
    lines = []
    for number, step in enumerate(steps, start=1):
        gain = (step.get("marginal_gain") or {}).get(metric) if len(steps) > 1 else None
        said = f"{number}. {step['name']}" + (
            f", {gain:.2f}x{' on top' if number > 1 else ''}" if gain else ""
        )
        if number == 1 and best["instead_of"]:
            said += f" instead of {' and '.join(best['instead_of'])}"
        how = how_to(step["technique"], best["engines"], best["engine"] or answer["scenario"]["engine"])
        lines.append(label("Do" if number == 1 else "", said + how))
    lines.append(label("Why", best["why"]))
    caveats = sorted(best["caveats"], key=weight_of_caveat)
    but = [best["disagreement"]] if best["disagreement"] else [line.split("; ")[0] for line in caveats[:1]]
    lines += [label("But", line) for line in but]
    return "\n".join(lines)


def smaller_load(answer: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first way to make it fit, where that is a smaller batch or a shorter prompt."""
    way = next(iter((answer["feasibility"] or {}).get("changes", ())), None)
    asked = answer["scenario"]
    if way is None or (way["batch"] == asked["batch"] and way["input_tokens"] == asked["input_tokens"]):
        return None
    return way


# What a reader must know first, by the beginning of the caveat.
FIRST_CAVEATS = (
    "No serving engine",
    "Host memory",
    "Weights of",
    "Not a speed-up",
    "Stops paying",
    "Starts paying",
    "Changes what",
    "Each token",
    "The prompt takes",
    "Pays only where",
    "Changes outputs",
    "Needs",
)


def weight_of_caveat(line: str) -> int:
    """Its place among the caveats; those of a plan's part begin with the part's name, good news comes last."""
    if "are published: " in line or "is published in this format" in line:
        return len(FIRST_CAVEATS) + 1
    said = [line.lower(), line.split(": ", 1)[-1].lower()]
    found = [
        k for k, start in enumerate(FIRST_CAVEATS) if any(part.startswith(start.lower()) for part in said)
    ]
    return found[0] if found else len(FIRST_CAVEATS)


def one_line(name: str, value: str) -> str:
    """A labelled line, cut to the width."""
    return f"{name:<{LABEL}}{text.shorten(value, text.width() - LABEL)}"


def how_to(slug: str, engines: Sequence[Mapping[str, Any]], engine: str) -> str:
    """` · vllm: --quantization hqq (since 0.5.5)`"""
    mine = [entry for entry in engines if entry["technique"] == slug and entry["how"]]
    chosen = next((entry for entry in mine if entry["name"] == engine), None) or next(iter(mine), None)
    if chosen is None:
        return ""
    since = f" (since {chosen['since']})" if chosen["since"] else ""
    how = chosen["how"].rstrip(".")
    if len(how) > text.width() - LABEL and " (" in how:
        how = how[: how.rindex(" (")]  # remarks in brackets
    return f" · {chosen['name']}: {how}{since}"


def rejected(answer: Mapping[str, Any]) -> str:
    """Why not the others: the few a reader would ask about, or all of them by code."""
    items = sorted(
        answer["rejected"], key=lambda item: (is_dull(item), -item["prominence"], item["technique"])
    )
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
    while len(lines) > 1 and sum(line.count("\n") + 1 for line in lines) > REASON_LINES:
        lines.pop()
    shown = shown[: len(lines)]
    left = len(items) - len(shown)
    if left > 0:
        lines.append(one_line("" if lines else "Not", f"{left} more with their reasons: --why-not"))
    return "\n".join(lines)


def is_dull(item: Mapping[str, Any]) -> bool:
    """Reasons that every reader expects: what runs already, and what does nothing about a lack of memory."""
    return item["code"] in ("already-in-use", "not-applicable") or " no memory" in item["reason"]


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
        basis = sure["basis"].split(":")[0].replace("only with a release of another year", "in another year")
        said = f"{sure['level']}: times within {sure['factor']:.2f}x; {basis}"
        lines.append(one_line("Confidence", said))
    said = answer["verdict"]["text"]  # the verdict names the flag already
    notes = [note for note in answer["notes"] if not (" is published in " in note and "(--weights " in said)]
    lines += [label("Note", note) for note in notes]
    best = answer["recommendations"][0]["techniques"][0] if answer["recommendations"] else None
    more = [f"kb show {best}"] if best else []
    lines.append(label("Next", " · ".join([*more, "--why-not", "--json", "kb serve"])))
    return "\n".join(lines)
