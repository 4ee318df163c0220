"""`kb fit`: which hardware and formats reach a target, cheapest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kb.cli.common import Output, output_options
from kb.cli.scenario import FLAGS, rest, scenario

EPILOG = """\b
Examples:
  kb fit --model 70b --tpot-slo-ms 50 --batch 16
  kb fit --model llama-3.1-8b --ttft-slo-ms 200 --input-tokens 4096
  kb fit --model 70b --hw h100 --tpot-slo-ms 20 --json
"""
COLUMNS = (
    "hardware", "devices", "weights", "engine", "ttft_ms", "tpot_ms", "throughput_tok_s", "max_batch",
    "total_bytes", "price_usd", "cost_per_million_tokens_usd", "power_w", "techniques",
)  # fmt: skip


# Where a flag means something else here than for one scenario.
HELP = {
    "hardware": "Only this device [every device of the catalogue].",
    "engine": "What serves the model [the usual engine of each device: vllm, or llama.cpp on small ones].",
}


def options(function: Any) -> Any:
    """The scenario's flags; a device may be named but need not be."""
    for flag in reversed(FLAGS):
        if flag.field in ("devices", "using", "tensor_parallel", "pipeline_parallel", "expert_parallel"):
            continue
        required = flag.field == "model"
        text = HELP.get(flag.field, flag.help)
        function = click.option(*flag.names, flag.field, metavar=flag.metavar, required=required, help=text)(
            function
        )
    return function


@click.command(epilog=EPILOG)
@options
@click.option("--ttft-slo-ms", metavar="MS", help="Time to the first token that must be kept.")
@click.option("--tpot-slo-ms", metavar="MS", help="Time per token that must be kept.")
@click.option("--top", metavar="N", help="Rows of the table [10].")
@output_options
def command(output: Output, top: str | None, **flags: Any) -> None:
    """Which hardware and formats reach a target for a model, cheapest first."""
    from recommender.fit import check_targets, fit
    from recommender.question import Question

    given = {**scenario(flags), **rest(flags)}
    checked = Question.from_mapping({"hardware": "any", **given, **({"top": top} if top else {})})
    check_targets(checked)
    answer = fit(given)
    if output.is_json:
        output.print_json(answer)
    elif output.format == "table":
        click.echo(render(answer, checked.top if top else 10))
    else:
        output.print_rows(COLUMNS, answer["options"])


def render(answer: Mapping[str, Any], top: int) -> str:
    """The options as a table, or what comes nearest."""
    from kb.cli import render as text
    from recommender.text import device

    targets = answer["targets"]
    wanted = [
        f"{name} ≤ {value:g} ms"
        for name, value in (("TTFT", targets["ttft_ms"]), ("TPOT", targets["tpot_ms"]))
        if value
    ]
    head = f"{answer['resolved']['model']['name']} at batch {targets['batch']}, {', '.join(wanted)}"
    if not answer["options"]:
        near = answer["nearest"]
        lines = [head, "", "Nothing in the catalogue reaches it."]
        if near:
            lines.append(
                f"Nearest: {near['devices']} x {device(near['name'])}, {near['weights']}: "
                f"TPOT {near['tpot_ms']:.3g} ms, TTFT {near['ttft_ms']:.3g} ms."
            )
        return text.printable("\n".join(lines))
    rows = [
        {
            "where": f"{option['devices']} x {device(option['name'])}{'' if option['sure'] else ' ~'}",
            "weights": option["weights"].replace(" weights and activations", " W8A8").replace(" weights", ""),
            "ttft": text.significant(option["ttft_ms"]),
            "tpot": text.significant(option["tpot_ms"]),
            "range": "–".join(text.significant(bound) for bound in option["tpot_interval_ms"] or ()),
            "tokens": text.significant(option["throughput_tok_s"]),
            "price": "?" if option["price_usd"] is None else f"{option['price_usd']:,.0f}",
        }
        for option in answer["options"][:top]
    ]
    columns = [
        ("where", "Devices", 28), ("weights", "Weights", 11), ("ttft", "TTFT ms", None), ("tpot", "TPOT ms", 8), ("range", "80 %", 11),
        ("tokens", "tok/s", 8), ("price", "USD", 9),
    ]  # fmt: skip
    left = len(answer["options"]) - len(rows)
    lines = [head, "", text.table(columns, rows), ""]
    if left > 0:
        lines.append(f"{left} more: --top {len(answer['options'])}")
    if not all(option["sure"] for option in answer["options"][:top]):
        lines.append("~ The 80 % interval reaches beyond the target: measure before you buy.")
    lines.append(answer["notes"][0])
    return text.printable("\n".join(lines))
