"""Things side by side: properties in a fixed order and vocabulary, a source in each cell."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costmodel.catalogue import all_hardware, all_models
from costmodel.specs import Hardware, Model
from web import fitting
from web.facets import KIND_NAMES, LOSSLESS_NAMES
from web.formats import bytes_text, money, number, parameters, ratio, si
from web.records import effect_words, metric_name, requirement_words, source_of
from web.snapshot import SCHEME_NAMES, Snapshot

Item = dict[str, Any]
UNKNOWN = "–"
MOST = 8


@dataclass(frozen=True)
class Cell:
    text: str
    source: str = ""  # who says so: a paper's slug, a DOI, an arXiv id or a URL
    href: str = ""


@dataclass(frozen=True)
class Row:
    name: str
    cells: list[Cell]

    @property
    def differs(self) -> bool:
        return len({cell.text for cell in self.cells}) > 1


@dataclass(frozen=True)
class Table:
    kind: str
    heads: list[tuple[str, str]]  # name, slug
    rows: list[Row]


def technique_table(snapshot: Snapshot, items: Sequence[Item]) -> Table:
    """Techniques: classes, conditions, every declared effect, published figures, engines, papers."""
    rows = [
        *(
            Row(f"Class, {name}", [level_cell(snapshot, item, scheme) for item in items])
            for scheme, name in SCHEME_NAMES.items()
        ),
        plain_row("Relieves", items, lambda item: ", ".join(item["bottleneck_names"]), intro),
        plain_row("Phase", items, lambda item: item["phase"], intro),
        plain_row("Training", items, lambda item: item["training"], intro),
        plain_row(
            "Output", items, lambda item: LOSSLESS_NAMES.get(item["lossless"], item["lossless"]), intro
        ),
        plain_row("Kind", items, lambda item: KIND_NAMES.get(item["kind"], item["kind"]), intro),
        plain_row(
            "Needs",
            items,
            lambda item: (
                "; ".join(requirement_words((item["data"] or {}).get("requires") or {})) or "nothing special"
            ),
            intro,
        ),
        *effect_rows(items),
        *evidence_rows(snapshot, items),
        plain_row(
            "Runs in",
            items,
            lambda item: ", ".join(item["engine_slugs"]),
            lambda item: next((e.get("source", "") for e in item["engines"] if e.get("source")), ""),
        ),
        plain_row("Use when", items, lambda item: (item["data"] or {}).get("helps_when", ""), intro),
        plain_row("Skip when", items, lambda item: (item["data"] or {}).get("hurts_when", ""), intro),
        Row("Introduced by", [paper_cell(item) for item in items]),
        plain_row(
            "Cited by surveys",
            items,
            lambda item: ", ".join(
                sorted(
                    {
                        slug
                        for entry in item["work_links"]
                        if entry["role"] == "introduces"
                        for slug in entry["work"]["surveys"]
                    }
                )
            ),
            intro,
        ),
    ]
    return Table("technique", [(item["name"], item["slug"]) for item in items], rows)


def intro(item: Item) -> str:
    """The slug of the paper that introduces a technique: the source of what is said about it."""
    return next((entry["work"]["slug"] for entry in item["work_links"] if entry["role"] == "introduces"), "")


def plain_row(
    name: str, items: Sequence[Any], value: Callable[[Any], Any], source: Callable[[Any], str]
) -> Row:
    cells = []
    for item in items:
        text = str(value(item) or "") or UNKNOWN
        cells.append(Cell(text, source(item) if text != UNKNOWN else ""))
    return Row(name, cells)


def level_cell(snapshot: Snapshot, item: Item, scheme: str) -> Cell:
    paths = item["levels"].get(scheme, [])
    names = [
        snapshot.level_by_path[(scheme, path)]["name"]
        for path in paths
        if (scheme, path) in snapshot.level_by_path
    ]
    basis = "placed by us" if item["level_basis"].get(scheme) == "compiled" else scheme
    return Cell(", ".join(names) or UNKNOWN, basis if names else "")


def paper_cell(item: Item) -> Cell:
    for entry in item["work_links"]:
        if entry["role"] == "introduces":
            work = entry["work"]
            return Cell(
                f"{work['first_author']} {work['year'] or ''}".strip() or work["title"][:40], work["slug"]
            )
    return Cell(UNKNOWN)


def effect_rows(items: Sequence[Item]) -> list[Row]:
    """One row for each quantity that any of them changes."""
    changes = [
        {each["field"]: each for each in map(effect_words, (item["data"] or {}).get("effects") or [])}
        for item in items
    ]
    fields = list(dict.fromkeys(name for each in changes for name in each))
    return [
        Row(
            f"Changes {field}",
            [
                Cell(f"{found['operation']} {found['value']}", found["source"] or found["basis"])
                if (found := each.get(field))
                else Cell("unchanged")
                for each in changes
            ],
        )
        for field in fields
    ]


def evidence_rows(snapshot: Snapshot, items: Sequence[Item]) -> list[Row]:
    """Published ranges by metric, for the metrics that any of them has figures for."""
    by_item = [snapshot.evidence_by_technique.get(item["slug"], []) for item in items]
    metrics = sorted({row["metric"] for rows in by_item for row in rows if not row["suspect"]})
    found = []
    for metric in metrics:
        cells = []
        for rows in by_item:
            members = [row for row in rows if row["metric"] == metric and not row["suspect"]]
            if not members:
                cells.append(Cell(UNKNOWN))
                continue
            low, high = (
                min(row["value"] for row in members),
                max(row["value_hi"] or row["value"] for row in members),
            )
            if members[0]["unit"] == "x":
                text = ratio(high) if low == high else f"{ratio(low)[:-1]}–{ratio(high)}"
            else:
                text = (
                    number(high) if low == high else f"{number(low)} to {number(high)}"
                ) + f" {members[0]['unit']}"
            sources = list(dict.fromkeys(row["paper_id"] or source_of(row) for row in members))
            cells.append(
                Cell(
                    f"{text} ({len(members)})",
                    sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more",
                )
            )
        found.append(Row(f"Reported {metric_name(metric)} (rows)", cells))
    return found


def model_table(slugs: Sequence[str]) -> Table:
    models = [all_models()[slug] for slug in slugs]
    says: Callable[[Model], str] = lambda model: model.source  # noqa: E731
    rows = [
        plain_row("Parameters", models, lambda m: parameters(m.total_params), says),
        plain_row("Active parameters", models, lambda m: parameters(m.active_params), says),
        plain_row("FP16 weights", models, lambda m: bytes_text(m.total_params * 2), says),
        plain_row("Layers", models, lambda m: m.layers, says),
        plain_row("Width", models, lambda m: f"{m.hidden:,}", says),
        plain_row("Attention", models, lambda m: m.attention, says),
        plain_row("Heads", models, lambda m: m.heads, says),
        plain_row("Key-value heads", models, lambda m: m.kv_heads, says),
        plain_row("KV cache per token", models, lambda m: bytes_text(fitting.kv_bytes_per_token(m)), says),
        plain_row(
            "Experts",
            models,
            lambda m: f"{m.n_experts}, {m.active_experts} used" if m.is_moe else "none",
            says,
        ),
        plain_row("Positions", models, lambda m: f"{m.max_positions:,}" if m.max_positions else "", says),
        plain_row("Vocabulary", models, lambda m: f"{m.vocab:,}", says),
        plain_row("Native format", models, lambda m: m.native_weight_format, says),
    ]
    return Table("model", [(model.name, model.slug) for model in models], rows)


def hardware_table(slugs: Sequence[str]) -> Table:
    devices = [all_hardware()[slug] for slug in slugs]
    says: Callable[[Hardware], str] = lambda device: device.source  # noqa: E731
    formats = list(dict.fromkeys(name for device in devices for name in device.flops))
    rows = [
        plain_row("Memory", devices, lambda d: bytes_text(d.memory_bytes), says),
        plain_row("Bandwidth", devices, lambda d: si(d.bandwidth_bytes_per_s, "B/s"), says),
        *(plain_row(f"{name.upper()} peak, dense", devices, peak_of(name), says) for name in formats),
        plain_row(
            "FLOP per byte at the ridge (FP16)",
            devices,
            lambda d: number(d.flops["fp16"] / d.bandwidth_bytes_per_s) if "fp16" in d.flops else "",
            says,
        ),
        plain_row("Architecture", devices, lambda d: d.architecture, says),
        plain_row(
            "Link",
            devices,
            lambda d: (
                f"{d.interconnect}, {si(d.interconnect_bytes_per_s, 'B/s')}"
                if d.interconnect_bytes_per_s
                else d.interconnect
            ),
            says,
        ),
        plain_row(
            "Host link", devices, lambda d: si(d.host_bytes_per_s, "B/s") if d.host_bytes_per_s else "", says
        ),
        plain_row("Power", devices, lambda d: f"{number(d.tdp_w)} W" if d.tdp_w else "", says),
        plain_row("Launch price", devices, lambda d: money(d.price_usd) if d.price_usd else "", says),
        plain_row("Launched", devices, lambda d: d.launch_year or "", says),
    ]
    return Table("hardware", [(device.name, device.slug) for device in devices], rows)


def peak_of(name: str) -> Callable[[Hardware], str]:
    return lambda device: si(device.flops[name], "FLOP/s") if name in device.flops else "none"


def shown_rows(table: Table, everything: bool) -> list[Row]:
    """All rows, or those that tell the columns apart; rows that nobody fills are left out."""
    filled = [row for row in table.rows if any(cell.text != UNKNOWN for cell in row.cells)]
    return filled if everything or len(table.heads) < 2 else [row for row in filled if row.differs]


def as_csv(table: Table, rows: Sequence[Row]) -> str:
    """Each column followed by its sources."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["property", *(part for name, _ in table.heads for part in (name, f"{name}: source"))])
    for row in rows:
        writer.writerow([row.name, *(part for cell in row.cells for part in (cell.text, cell.source))])
    return out.getvalue()


ESCAPES = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "≤": r"$\leq$",
    "µ": r"\textmu{}",
}


def latex(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> latex("2.0–2.4×, 50 % of A_B")
    '2.0--2.4$\\times$, 50 \\% of A\\_B'
    """
    return "".join(ESCAPES.get(character, character) for character in text)


def as_latex(table: Table, rows: Sequence[Row], address: str) -> str:
    """A booktabs table; sources stand as comments above each row."""
    lines = [
        f"% {address}",
        r"\begin{tabular}{l" + "l" * len(table.heads) + "}",
        r"\toprule",
        " & ".join(["", *(latex(name) for name, _ in table.heads)]) + r" \\",
        r"\midrule",
    ]
    for row in rows:
        lines.append("% sources: " + " | ".join(cell.source or "-" for cell in row.cells).replace("\n", " "))
        lines.append(" & ".join([latex(row.name), *(latex(cell.text) for cell in row.cells)]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def table_of(snapshot: Snapshot, kind: str, slugs: Sequence[str]) -> Table:
    if kind == "model":
        return model_table(slugs)
    if kind == "hardware":
        return hardware_table(slugs)
    return technique_table(snapshot, [snapshot.technique_by_slug[slug] for slug in slugs])


EXAMPLES: Mapping[str, Sequence[tuple[str, str]]] = {
    "technique": (
        ("4-bit weights", "awq,gptq,omniquant,spqr"),
        ("Below 3 bits", "aqlm,quip-sharp,quip"),
        ("8-bit weights and activations", "smoothquant,fp8-w8a8,llm-int8"),
        ("Drafting", "spec-decode,medusa,eagle,lookahead"),
        ("Attention kernels", "flashattention,flashattention-2,flashattention-3,flash-decoding"),
    ),
    "model": (
        ("Llama by size", "llama-2-7b,llama-2-13b,llama-2-70b"),
        ("70 B and beyond", "llama-3.1-70b,qwen2.5-72b,mixtral-8x22b"),
    ),
    "hardware": (
        ("24 GB cards", "rtx-3090,rtx-4090,a10"),
        ("Data-centre", "a100-80gb-sxm,h100-sxm,h200-sxm,mi300x"),
    ),
}
