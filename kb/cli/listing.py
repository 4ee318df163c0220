"""`kb list KIND`: what the knowledge base and the catalogues hold."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

KINDS = (
    "techniques",
    "papers",
    "surveys",
    "models",
    "hardware",
    "engines",
    "bottlenecks",
    "levels",
    "evidence",
)
FILTERS = {
    "techniques": ("level", "bottleneck", "phase", "training", "lossless", "mechanism", "kind"),
    "papers": ("survey", "year", "kind", "role", "technique", "level", "bottleneck", "sort"),
    "levels": ("scheme",),
    "evidence": ("technique", "metric", "paper"),
    "models": ("family",),
    "hardware": ("vendor", "device_class"),
}
COLUMNS: dict[str, list[tuple[str, str, int | None]]] = {
    "techniques": [
        ("slug", "TECHNIQUE", 28),
        ("phase", "PHASE", 8),
        ("training", "TRAINING", 12),
        ("lossless", "LOSSLESS", 8),
        ("bottleneck", "BOTTLENECK", None),
    ],
    "papers": [("id", "ID", 34), ("year", "YEAR", 4), ("cited", "SURVEYS", 15), ("title", "TITLE", None)],
    "surveys": [
        ("slug", "SURVEY", 8),
        ("year", "YEAR", 4),
        ("references", "REFERENCES", 10),
        ("title", "TITLE", None),
    ],
    "models": [
        ("slug", "MODEL", 30),
        ("parameters", "PARAMS", 9),
        ("attention", "ATTENTION", 10),
        ("kv", "KV B/TOKEN", 10),
        ("family", "FAMILY", None),
    ],
    "hardware": [
        ("slug", "DEVICE", 32),
        ("memory", "GB", 6),
        ("bandwidth", "GB/S", 6),
        ("fp16", "FP16 TFLOP/S", 12),
        ("class", "CLASS", None),
    ],
    "engines": [("slug", "ENGINE", 22), ("version", "VERSION", 16), ("name", "NAME", None)],
    "bottlenecks": [
        ("slug", "BOTTLENECK", 20),
        ("techniques", "TECHNIQUES", 10),
        ("description", "MEANING", None),
    ],
    "levels": [("scheme", "SCHEME", 6), ("path", "LEVEL", None), ("techniques", "TECHNIQUES", 10)],
    "evidence": [
        ("id", "ID", 6),
        ("technique", "TECHNIQUE", 22),
        ("metric", "METRIC", 18),
        ("value", "VALUE", 8),
        ("unit", "UNIT", 8),
        ("where", "MODEL, HARDWARE", None),
    ],
}


@click.command()
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.option("--level", help="techniques, papers: a level's path, e.g. model/compression/quantization.")
@click.option("--bottleneck", help="techniques, papers: a bottleneck, e.g. kv-bandwidth.")
@click.option("--phase", type=click.Choice(["prefill", "decode", "both"]), help="techniques.")
@click.option(
    "--training", type=click.Choice(["none", "calibration", "finetune", "pretrain"]), help="techniques."
)
@click.option("--lossless", type=click.Choice(["yes", "approx", "no"]), help="techniques.")
@click.option("--mechanism", help="techniques of one mechanism.")
@click.option(
    "--kind", "kind_filter", help="techniques: software, hardware, model; papers: paper, book, software …"
)
@click.option("--survey", help="papers that a survey cites: zhou, yuan, park.")
@click.option("--year", type=int, help="papers of a year.")
@click.option("--role", help="papers: technique, survey, model, benchmark, system, background.")
@click.option("--technique", help="papers or evidence of a technique.")
@click.option("--metric", help="evidence of a metric.")
@click.option("--paper", help="evidence from a paper.")
@click.option("--scheme", help="levels of a scheme: zhou, yuan, park.")
@click.option("--family", help="models of a family, e.g. llama.")
@click.option("--vendor", help="hardware of a vendor.")
@click.option("--device-class", help="hardware of a class: datacenter, consumer, cpu …")
@click.option("--sort", help="papers: year, title, surveys.")
@click.option("--limit", type=int, help="At most so many (1 … 200).")
@click.option("--cursor", help="Go on from `next` of a previous page.")
@output_options
def command(
    kind: str, kind_filter: str | None, limit: int | None, cursor: str | None, output: Output, **given: Any
) -> None:
    """List KIND: techniques, papers, surveys, models, hardware, engines, bottlenecks, levels or evidence."""
    filters = {name: value for name, value in {**given, "kind": kind_filter}.items() if value is not None}
    allowed = FILTERS.get(kind, ())
    for name in filters:
        if name not in allowed:
            options = ", ".join("--" + other.replace("_", "-") for other in allowed) or "none"
            raise click.UsageError(
                f"--{name.replace('_', '-')} does not apply to {kind} — its filters: {options}"
            )
    page = catalogue_page(kind, filters, limit, cursor) if kind in ("models", "hardware", "engines") else None
    if page is None:
        from kb import store

        reader = open_reader(output)
        page = getattr(store, f"list_{kind}")(reader, **filters, limit=limit, cursor=cursor)
        reader.close()
    show_page(kind, page, output)


def catalogue_page(
    kind: str, filters: dict[str, str], limit: int | None, cursor: str | None
) -> dict[str, Any]:
    """Models, hardware and engines come from the cost model's catalogues; no database is opened."""
    from costmodel import catalogue
    from kb.store import page_of, spec_item

    specs = getattr(catalogue, f"all_{kind}")().values()
    items = [
        spec_item(spec)
        for spec in specs
        if all(value.lower() in str(getattr(spec, name)).lower() for name, value in filters.items())
    ]
    return page_of(items, limit, cursor)


def show_page(kind: str, page: dict[str, Any], output: Output) -> None:
    if output.is_json:
        output.print_json(page)
        return
    if output.format in ("csv", "markdown"):
        columns = list(page["items"][0]) if page["items"] else [key for key, _header, _limit in COLUMNS[kind]]
        output.print_rows(columns, page["items"])
        return
    from kb.cli.render import table

    click.echo(table(COLUMNS[kind], [table_row(kind, item) for item in page["items"]]))
    shown = len(page["items"])
    more = f", showing {shown}; go on with --cursor {page['next']}" if page["next"] else ""
    output.note(f"{page['total']} {kind}{more}")


def table_row(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """A list item with the short forms that the table shows."""
    row = dict(item)
    if kind == "techniques":
        row["bottleneck"] = ", ".join(item["bottlenecks"])
    elif kind == "papers":
        row["cited"] = " ".join(dict.fromkeys(cited["survey"] for cited in item["surveys"]))
    elif kind == "models":
        from costmodel.catalogue import all_models
        from costmodel.kvcache import kv_bytes_per_token

        row["parameters"] = f"{item['total_params'] / 1e9:.2f} B"
        row["kv"] = f"{float(kv_bytes_per_token(all_models()[item['slug']])):,.0f}"
    elif kind == "hardware":
        row["memory"] = f"{item['memory_bytes'] / 1e9:.1f}"
        row["bandwidth"] = f"{item['bandwidth_bytes_per_s'] / 1e9:.0f}"
        rate = item["flops"].get("fp16") or item["flops"].get("bf16")
        row["fp16"] = f"{rate / 1e12:.1f}" if rate else ""
        row["class"] = f"{item['device_class']}, {item['vendor']}"
    elif kind == "levels":
        row["path"] = "  " * item["path"].count("/") + item["path"].rpartition("/")[2]
        if item["basis"] != "survey":
            row["path"] += f" ({item['basis']})"
    elif kind == "evidence":
        row["where"] = ", ".join(str(part) for part in (item["model"], item["hardware"]) if part)
    return row
