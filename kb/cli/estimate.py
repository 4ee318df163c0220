"""`kb estimate`: time, memory and bottleneck of one deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kb.cli.common import Output, output_options
from kb.cli.scenario import scenario, scenario_options

EPILOG = """\b
Examples:
  kb estimate --hw rtx3090 --devices 2 --model 70b --weights w4a16-awq-g128
  kb estimate --hw h100 --model llama-3.1-8b --engine vllm --batch 64 --json
  kb estimate --hw my-card.toml --model ./config.json
"""
LABEL = 12
TOP_OPERATORS = 6
BAR = 24


@click.command(epilog=EPILOG)
@scenario_options
@click.option("--operators", is_flag=True, help="Every operator, not only the slowest.")
@output_options
def command(output: Output, operators: bool, **flags: Any) -> None:
    """Time, memory and bottleneck of one deployment."""
    from recommender.service import estimate

    answer = estimate(scenario(flags))
    if output.is_json:
        output.print_json(answer)
    elif output.format == "table":
        click.echo(render(answer, all_operators=operators))
    else:
        output.print_rows(("quantity", "value", "unit"), rows(answer))


def rows(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures of an estimate as rows, for CSV and Markdown."""
    found: list[tuple[str, Any, str]] = [
        ("fits", answer["fits"], ""),
        ("min_devices", answer["min_devices"], "devices"),
        ("max_batch", answer["max_batch"], "sequences"),
    ]
    found += [(f"memory_{name}", value, "bytes") for name, value in answer["memory_bytes"].items()]
    for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
        found.append((name, answer[name], "ms"))
    for name in ("tpot_ms", "ttft_ms"):
        low, high = answer["interval"][name]
        found += [(f"{name}_low", low, "ms"), (f"{name}_high", high, "ms")]
    found += [
        ("throughput_tok_s", answer["throughput_tok_s"], "tokens/s"),
        ("prefill_tok_s", answer["prefill_tok_s"], "tokens/s"),
        ("requests_s", answer["requests_s"], "requests/s"),
        ("cost_per_million_tokens_usd", answer["cost_per_million_tokens_usd"], "USD"),
        ("energy_j_per_token", answer["energy_j_per_token"], "J"),
        ("bottleneck", answer["bottleneck"], ""),
    ]
    return [{"quantity": name, "value": value, "unit": unit} for name, value, unit in found]


def render(answer: Mapping[str, Any], *, all_operators: bool = False) -> str:
    """The estimate as text for 80 columns."""
    from kb.cli import render as text

    blocks = [_question(answer), "", _memory(answer), "", _times(answer)]
    blocks += ["", _phases(answer), "", _operators(answer, all_operators)]
    notes = [text.wrap(note, indent=LABEL, hang=LABEL).lstrip() for note in answer.get("notes", [])]
    if notes:
        blocks += ["", f"{'Note':<{LABEL}}" + f"\n{'':<{LABEL}}".join(notes)]
    return text.printable("\n".join(block for block in blocks if block is not None))


def _line(name: str, value: str) -> str:
    from kb.cli import render as text

    return text.field(name, value, label_width=LABEL)


def _question(answer: Mapping[str, Any]) -> str:
    asked, resolved = answer["scenario"], answer["resolved"]
    model, hardware = resolved["model"], resolved["hardware"]
    lines = [
        _line(
            "Estimate",
            f"{model['name']} on {asked['devices']} x {hardware['name']}, engine {asked['engine']}",
        ),
        _line(
            "",
            f"{asked['input_tokens']:,} tokens in, {asked['output_tokens']:,} out, batch {asked['batch']:,}; "
            f"weights {asked['weight_format']}, KV {asked['kv_format']}",
        ),
    ]
    for part in (model, hardware):
        if part["alternatives"]:
            lines.append(
                _line(
                    "",
                    f'"{part["asked"]}" read as {part["slug"]}; also {", ".join(part["alternatives"][:4])}',
                )
            )
    return "\n".join(lines)


def _memory(answer: Mapping[str, Any]) -> str:
    from kb.cli import render as text

    memory = answer["memory_bytes"]
    total, available = memory["total"], memory["available"]
    gap = available - total
    verdict = (
        f"fits, {text.gigabytes(gap)} free"
        if answer["fits"]
        else f"DOES NOT FIT, {text.gigabytes(-gap)} too many"
    )
    lines = [_line("Memory", f"{text.gigabytes(total)} of {text.gigabytes(available)}: {verdict}")]
    names = (
        ("weights", "weights"),
        ("kv_cache", "KV cache"),
        ("activations", "buffers"),
        ("overhead", "driver, engine"),
    )
    largest = max(available, total)
    for key, name in names:
        bar = "#" * round(BAR * memory[key] / largest)
        lines.append(f"{'':<{LABEL}}{name:<15}{text.gigabytes(memory[key]):>11}  {bar}".rstrip())
    reserved = memory.get("reserved") or 0.0
    if reserved > 1.01 * total:
        lines.append(
            _line("", f"the engine takes {text.gigabytes(reserved)} at the start, whatever it needs")
        )
    if answer["fits"]:
        lines.append(_line("", _capacity(answer)))
    else:
        lines.append(
            _line(
                "",
                f"needs {answer['min_devices']} such devices (layers split freely); the times below are those it "
                "would have with enough memory",
            )
        )
    return "\n".join(lines)


def _capacity(answer: Mapping[str, Any]) -> str:
    tokens = answer.get("kv_capacity_tokens") or 0
    cached = f"; the rest of the memory caches {tokens:,} tokens" if 0 < tokens < 1_000_000_000 else ""
    return f"at most {answer['max_batch']:,} sequences of this length fit{cached}"


def _times(answer: Mapping[str, Any]) -> str:
    from kb.cli import render as text

    interval = answer["interval"]

    def span(name: str) -> str:
        low, high = interval[name]
        return f"({_ms(low)} to {_ms(high)})" if low is not None else ""

    lines = [
        f"{'Time':<{LABEL}}{'first token':<19}{_ms(answer['ttft_ms']):>10}  {span('ttft_ms')}",
        f"{'':<{LABEL}}{'per output token':<19}{_ms(answer['tpot_ms']):>10}  {span('tpot_ms')}",
        f"{'':<{LABEL}}{'whole request':<19}{_ms(answer['e2e_ms']):>10}",
        f"{'':<{LABEL}}{'generated':<19}{text.significant(answer['throughput_tok_s']):>10} tokens/s, all sequences",
    ]
    cost, energy = answer["cost_per_million_tokens_usd"], answer["energy_j_per_token"]
    rough = []
    if cost is not None:
        rough.append(f"{text.significant(cost)} USD per million tokens")
    if energy is not None:
        rough.append(f"{text.significant(energy)} J per token")
    if rough:
        lines.append(_line("", f"roughly {', '.join(rough)}"))
    share = round(100 * interval.get("confidence", 0.8))
    lines.append(_line("", f"in brackets {share} % interval: {interval['basis']}"))
    return "\n".join(lines)


def _phases(answer: Mapping[str, Any]) -> str:
    lines = []
    for name, label in (("prefill", "Prefill"), ("decode", "Decode")):
        phase = answer[name]
        terms = sorted(phase["terms"].items(), key=lambda item: -item[1])
        whole = sum(value for _name, value in terms) or 1.0
        shares = [
            f"{term.replace('_', ' ')} {100 * ms / whole:.0f} %" for term, ms in terms if ms / whole >= 0.005
        ]
        lines.append(_line(label, f"bound by {phase['bound']}: {', '.join(shares)}"))
    lines.append(_line("Bottleneck", answer["bottleneck"]))
    return "\n".join(lines)


def _operators(answer: Mapping[str, Any], everything: bool) -> str:
    from kb.cli import render as text

    found = sorted(answer["operators"], key=lambda item: (item["phase"] != "decode", -item["ms"]))
    if not everything:
        found = [op for op in found if op["phase"] == "decode"][:TOP_OPERATORS]
    columns = [
        ("phase", "Phase", 8),
        ("name", "Operator", None),
        ("time", "Time", 10),
        ("bound", "Bound", 12),
        ("bytes", "GB", 9),
        ("flops", "GFLOP", 9),
        ("intensity", "FLOP/B", 8),
    ]
    data = [
        {
            "phase": op["phase"],
            "name": op["name"].replace("_", " "),
            "time": _ms(op["ms"]),
            "bound": op["bound"],
            "bytes": text.significant(op["bytes"] / 1e9),
            "flops": text.significant(op["flops"] / 1e9),
            "intensity": text.significant(op["intensity"]),
        }
        for op in found
    ]
    return text.table(columns, data)


def _ms(value: float | None) -> str:
    from kb.cli import render as text

    return text.duration(None if value is None else value / 1e3)
