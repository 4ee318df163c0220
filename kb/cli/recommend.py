"""`kb recommend`: which techniques pay off for a model on a device, and why the others do not."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options
from kb.cli.scenario import rest, scenario, scenario_options

EPILOG = """\b
Examples:
  kb recommend --hw rtx3090 --model 70b
  kb recommend --hw h100 --model llama-3.1-8b --engine vllm --batch 64 --objective throughput
  kb recommend --hw a100 --model 13b --using awq --lossless --why-not
"""

COLUMNS = (
    "rank",
    "kind",
    "techniques",
    "name",
    "gain",
    "gain_low",
    "gain_high",
    "tpot_ms",
    "ttft_ms",
    "e2e_ms",
    "throughput_tok_s",
    "memory_bytes",
    "training",
    "lossless",
    "papers",
    "why",
)


@click.command(epilog=EPILOG)
@scenario_options
@click.option(
    "--objective", metavar="WHAT", help="latency, tpot, ttft, throughput, memory or cost [latency]."
)
@click.option(
    "--lossless", is_flag=True, default=None, help="Only techniques that leave outputs as they are."
)
@click.option("--max-training", metavar="WHAT", help="none, calibration, finetune or pretrain [calibration].")
@click.option("--max-quality-loss", metavar="POINTS", help="Leave out what is reported to lose more.")
@click.option("--ttft-slo-ms", metavar="MS", help="Time to the first token that must be kept.")
@click.option("--tpot-slo-ms", metavar="MS", help="Time per token that must be kept.")
@click.option(
    "--level", metavar="PATH", help="Only techniques at this level: model/compression, zhou:system …"
)
@click.option("--bottleneck", metavar="SLUG", help="Only techniques that address it (kb list bottlenecks).")
@click.option("--why-not", is_flag=True, default=None, help="Every technique left out, with its reason.")
@click.option("--top", metavar="N", help="Rows of the table [5].")
@click.option("--stack/--no-stack", default=None, help="Plans of several techniques [on].")
@output_options
def command(output: Output, **flags: Any) -> None:
    """Rank techniques for a model on a device; say by how much, why, and why not the others."""
    from recommender.question import Question
    from recommender.service import recommend

    question = Question.from_mapping({**scenario(flags), **rest(flags)})
    reader = open_reader(output)
    try:
        answer = recommend(reader, question, brief=not output.is_json)
    finally:
        reader.close()
    if output.is_json:
        output.print_json(answer.as_dict())
    elif output.format == "table":
        from kb.cli.render_recommend import render

        click.echo(render(answer.as_dict()))
    else:
        output.print_rows(COLUMNS, rows(answer.as_dict()))


def rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Recommendations as flat rows for CSV and Markdown."""
    metric = {"cost": "throughput"}.get(answer["scenario"]["objective"], answer["scenario"]["objective"])
    found = []
    for item in answer["recommendations"]:
        estimate = item["estimate"]
        low, high = item["gain_interval"][metric] or (None, None)
        found.append(
            {
                "rank": item["rank"],
                "kind": item["kind"],
                "techniques": item["techniques"],
                "name": item["name"],
                "gain": item["gain"][metric],
                "gain_low": low,
                "gain_high": high,
                "tpot_ms": estimate["tpot_ms"],
                "ttft_ms": estimate["ttft_ms"],
                "e2e_ms": estimate["e2e_ms"],
                "throughput_tok_s": estimate["throughput_tok_s"],
                "memory_bytes": estimate["memory_bytes"]["total"],
                "training": item["training"],
                "lossless": item["quality"]["lossless"],
                "papers": [paper["id"] for paper in item["papers"]],
                "why": item["why"],
            }
        )
    return found
