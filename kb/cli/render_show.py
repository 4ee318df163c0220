"""Text of `kb show`, one function for each type of record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kb.cli.render import authors, field, gigabytes, printable, shorten, significant, table, wrap

Data = Mapping[str, Any]
SYMBOLS = {"set": "=", "multiply": "×", "add": "+", "min": "at most", "max": "at least"}


def render(data: Data, *, provenance: bool = False) -> str:
    if data["type"] == "technique":
        return technique(data)
    if data["type"] == "paper":
        return paper(data, provenance=provenance)
    if data["type"] == "survey":
        return survey(data)
    return model(data) if data["type"] == "model" else hardware(data)


def heading(title: str) -> str:
    return f"\n{title}"


def technique(data: Data) -> str:
    levels = "; ".join(f"{scheme}: {', '.join(paths)}" for scheme, paths in data["levels"].items())
    effects = "; ".join(
        f"{effect['field'].replace('_', ' ')} {SYMBOLS[effect.get('op', 'set')]} {effect['value']}"
        for effect in data.get("effects", [])
    )
    parts = [
        wrap(f"{data['name']} ({data['slug']})"),
        wrap(data["summary"]),
        "",
        field("Levels", levels),
        field("Bottleneck", ", ".join(data.get("bottlenecks", []))),
        field("Phase", data.get("phase")),
        field("Training", data.get("training")),
        field("Lossless", data.get("lossless")),
        field("Mechanism", data.get("mechanism")),
        field("Members", ", ".join(slug for slug in data.get("members", []) if slug != data["slug"])),
        field("Helps when", data.get("helps_when")),
        field("Hurts when", data.get("hurts_when")),
        field("Effect", effects or data.get("no_effect_reason")),
        field("Knobs", "; ".join(f"{knob['name']} = {knob['default']}" for knob in data.get("knobs", []))),
        field("Engines", "; ".join(engine_text(engine) for engine in data.get("engines", []))),
    ]
    if data.get("gain"):
        from kb.cli.render_curve import curve

        parts += [heading("Gain here"), curve(data["gain"])]
    if data["papers"]:
        parts.append(heading("Papers"))
        parts += [wrap(paper_line(item), indent=2, hang=4) for item in data["papers"]]
    if data["evidence"]:
        parts += [
            heading(f"Reported figures ({len(data['evidence'])})"),
            evidence_table(data["evidence"][:12]),
        ]
        if len(data["evidence"]) > 12:
            parts.append(
                f"  … {len(data['evidence']) - 12} more: kb list evidence --technique {data['slug']}"
            )
    if data.get("observations"):
        parts.append(heading("Seen in practice"))
        parts += [wrap(observation_text(item), indent=2, hang=4) for item in data["observations"]]
    if data["relations"]:
        parts.append(heading("Together with others"))
        parts += [wrap(relation_text(item), indent=2, hang=4) for item in data["relations"][:12]]
    return lines(parts)


def lines(parts: Sequence[str]) -> str:
    """The parts without the fields that are empty; the third is the blank line under the title."""
    return printable("\n".join(part for index, part in enumerate(parts) if part or index == 2))


def engine_text(engine: Data) -> str:
    how = f" {engine['how']}" if engine.get("how") else ""
    since = f" (since {engine['since']})" if engine.get("since") else ""
    return f"{engine['engine']}{how}{since}"


def paper_line(item: Data) -> str:
    cited = ", ".join(f"{found['survey']} {found['number']}" for found in item["surveys"])
    parts = [authors(item["authors"]), str(item["year"] or "n.d."), item["title"], item["url"] or ""]
    return (
        f"{item['role']}: {'. '.join(part.rstrip('.') for part in parts if part)}"
        + (f" [{cited}]" if cited else "")
        + (f" · kb show {item['id']}")
    )


def observation_text(item: Data) -> str:
    seen = ", ".join(item[name] for name in ("condition", "figure") if item.get(name))
    return f"{item['what']}{f' ({seen})' if seen else ''}; {item['source']}"


def relation_text(item: Data) -> str:
    condition = f" ({item['condition']})" if item["condition"] else ""
    return f"{item['a']} {item['kind']} {item['b']}{condition}; {item['source']}"


def evidence_table(rows: Sequence[Data]) -> str:
    return table(
        [
            ("id", "ID", 6),
            ("metric", "METRIC", 15),
            ("value", "VALUE", 7),
            ("unit", "UNIT", 5),
            ("model", "MODEL", 13),
            ("hardware", "HARDWARE", 13),
            ("batch", "BATCH", 5),
            ("locator", "WHERE", None),
        ],
        rows,
    )


def paper(data: Data, *, provenance: bool) -> str:
    cited = ", ".join(f"{found['survey']} as {found['number']}" for found in data["surveys"])
    parts = [
        wrap(data["title"]),
        wrap(
            f"{authors(data['authors'], limit=6)} · {data['year'] or 'no year'} · {data['venue'] or data['kind']}"
        ),
        "",
        field("Id", data["id"]),
        field("arXiv", data["arxiv_id"]),
        field("DOI", data["doi"]),
        field("Link", data["url"]),
        field("Role", data["role"]),
        field("Cited by", cited or ", ".join(item["id"] for item in data["cited_by"])),
        field("Techniques", ", ".join(f"{item['slug']} ({item['role']})" for item in data["techniques"])),
        field("References", str(len(data["references"])) if data["references"] else ""),
    ]
    if data["evidence"]:
        parts += [
            heading(f"Reported figures ({len(data['evidence'])})"),
            evidence_table(data["evidence"][:12]),
        ]
    if provenance:
        parts.append(heading("Who says so"))
        parts += [wrap(provenance_text(item), indent=2, hang=4) for item in data["provenance"]]
    return lines(parts)


def provenance_text(item: Data) -> str:
    value = shorten(item.get("value"), 60)
    where = ", ".join(str(item[key]) for key in ("locator", "method", "retrieved_at") if item.get(key))
    return f"{item['field']} = {value}: {item['source']} ({where})"


def survey(data: Data) -> str:
    levels = [
        {"level": "  " * item["path"].count("/") + item["name"], "techniques": item["techniques"]}
        for item in data["levels"]
    ]
    parts = [
        wrap(data["title"]),
        wrap(data["paper"]["url"]),
        "",
        field(
            "Survey", f"{data['slug']}, {data['references']} references; see: kb references {data['slug']}"
        ),
        heading("Its scheme"),
        table([("level", "LEVEL", None), ("techniques", "TECHNIQUES", 10)], levels),
    ]
    return lines(parts)


def model(data: Data) -> str:
    experts = f"{data['n_experts']}, {data['active_experts']} per token" if data["n_experts"] else ""
    parts = [
        wrap(f"{data['name']} ({data['slug']})"),
        wrap(f"{data['family']} {data['hf_id']}"),
        "",
        field(
            "Parameters", f"{data['total_params'] / 1e9:.3f} B, {data['active_params'] / 1e9:.3f} B active"
        ),
        field(
            "Layers",
            f"{data['layers']}, hidden {data['hidden']}, MLP {data['intermediate']}, vocabulary {data['vocab']}",
        ),
        field(
            "Attention",
            f"{data['attention']}: {data['heads']} heads, {data['kv_heads']} KV heads of {data['head_dim']}",
        ),
        field("Experts", experts),
        field("Window", data["sliding_window"]),
        field("Positions", data["max_positions"]),
        field("Source", data["source"]),
        field("Notes", data["notes"]),
        field("Also", ", ".join(data["alternatives"])),
    ]
    return lines(parts)


def hardware(data: Data) -> str:
    rates = ", ".join(f"{name} {significant(rate / 1e12)}" for name, rate in data["flops"].items())
    link = data["interconnect_bytes_per_s"]
    price = data["price_usd"]
    parts = [
        wrap(f"{data['name']} ({data['slug']})"),
        wrap(f"{data['vendor']} {data['device_class']} {data['architecture']}"),
        "",
        field("Memory", f"{gigabytes(data['memory_bytes'])} ({data['memory_bytes'] / 2**30:.0f} GiB)"),
        field("Bandwidth", f"{significant(data['bandwidth_bytes_per_s'] / 1e9)} GB/s"),
        field("Dense peak", f"{rates} TFLOP/s (TOP/s for integers)"),
        field("2:4 sparsity", "yes" if data["sparsity_2_4"] else "no"),
        field(
            "Link", f"{data['interconnect']} {significant(link / 1e9)} GB/s per direction" if link else "none"
        ),
        field(
            "Host link",
            f"{significant(data['host_bytes_per_s'] / 1e9)} GB/s" if data["host_bytes_per_s"] else "",
        ),
        field("Power", f"{data['tdp_w']:.0f} W" if data["tdp_w"] else ""),
        field("Price", f"about {price:,.0f} USD" if price else ""),
        field("Source", data["source"]),
        field("Notes", data["notes"]),
        field("Also", ", ".join(data["alternatives"])),
    ]
    return lines(parts)
