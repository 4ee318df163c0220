"""`kb compare`: techniques side by side, a source in each cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

EPILOG = """\b
Examples:
  kb compare awq gptq
  kb compare eagle-3 medusa spec-decode --hw h100 --model llama-3.1-8b
  kb compare awq fp8-w8a8 --format markdown
"""


@click.command(epilog=EPILOG)
@click.argument("techniques", nargs=-1, required=True, metavar="A B …")
@click.option("--hw", "hardware", metavar="DEVICE", help="With --model: the gain on this device.")
@click.option("--model", metavar="MODEL", help="With --hw.")
@click.option("--batch", metavar="N", help="With --hw and --model [1].")
@click.option("--engine", metavar="ENGINE", help="With --hw and --model [plain].")
@click.option("--sources", is_flag=True, help="The source under every value.")
@output_options
def command(
    techniques: tuple[str, ...],
    hardware: str | None,
    model: str | None,
    batch: str | None,
    engine: str | None,
    sources: bool,
    output: Output,
) -> None:
    """Put techniques A, B … side by side."""
    from recommender.compare import compare
    from recommender.knowledge import load_knowledge
    from recommender.service import outcomes

    if bool(hardware) != bool(model):
        raise click.UsageError("--hw and --model belong together — give both to see gains, or neither")
    reader = open_reader(output)
    try:
        knowledge = load_knowledge(reader)
    finally:
        reader.close()
    found = None
    if hardware and model:
        found = outcomes(knowledge, {"hardware": hardware, "model": model, "batch": batch, "engine": engine})
    answer = compare(techniques, knowledge, found)
    if output.is_json:
        output.print_json(answer)
    elif output.format == "table":
        click.echo(render(answer, sources=sources))
    else:
        columns = ["property", *answer["techniques"], *(f"{slug} source" for slug in answer["techniques"])]
        output.print_rows(columns, (flat(row, answer["techniques"]) for row in answer["rows"]))


def flat(row: Mapping[str, Any], slugs: list[str]) -> dict[str, Any]:
    cells = dict(zip(slugs, row["cells"], strict=True))
    return {
        "property": row["property"],
        **{slug: cell["value"] for slug, cell in cells.items()},
        **{f"{slug} source": cell["source"] for slug, cell in cells.items()},
    }


def render(answer: Mapping[str, Any], *, sources: bool = False) -> str:
    """One block per property, one line per technique: values may be long, and 80 columns are few."""
    from kb.cli import render as text

    width = max(len(slug) for slug in answer["techniques"]) + 2
    lines = []
    for row in answer["rows"]:
        lines.append(row["property"])
        for slug, cell in zip(answer["techniques"], row["cells"], strict=True):
            value = cell["value"]
            shown = (
                ", ".join(map(str, value))
                if isinstance(value, list)
                else "-"
                if value is None
                else str(value)
            )
            if sources and cell["source"]:
                shown += f" [{cell['source']}]"
            lines.append(
                f"  {slug:<{width}}" + text.wrap(shown or "-", indent=width + 2, hang=width + 2).lstrip()
            )
    return text.printable("\n".join(lines))
