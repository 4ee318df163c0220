"""`kb search QUERY`: one box over papers, techniques, surveys, models and hardware."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

TYPES = ("paper", "technique", "survey", "model", "hardware")
EPILOG = """\b
Words must all occur. "two words" in order, -word not, a OR b, begin*.
Fields: title: author: venue: year:2022..2024 level: bottleneck: survey: type:
  phase: training: kind: role: tag: doi: arxiv: id:
An arXiv id, DOI, key or survey number (zhou:27) gives that record first.

\b
Examples:
  kb search "speculative decoding" --year 2023..
  kb search 'quant* -training level:quantization' --type technique
"""


@click.command(epilog=EPILOG)
@click.argument("query", nargs=-1, metavar="QUERY")
@click.option("--type", "type_", type=click.Choice(TYPES), multiple=True, help="Only this kind of record.")
@click.option("--level", multiple=True, help="A level of a scheme, e.g. zhou:model/compression.")
@click.option("--bottleneck", multiple=True, help="A bottleneck, e.g. kv-bandwidth.")
@click.option("--year", multiple=True, metavar="YEAR", help="2023, 2022..2024, 2022.. or ..2020.")
@click.option("--survey", multiple=True, help="Cited by a survey: zhou, yuan, park.")
@click.option("--author", multiple=True, help="An author's name.")
@click.option("--phase", multiple=True, help="prefill or decode.")
@click.option("--training", multiple=True, help="none, calibration, finetune, pretrain.")
@click.option("--kind", multiple=True, help="paper, book, software, website …")
@click.option(
    "--sort",
    type=click.Choice(["relevance", "year", "cited", "title"]),
    default="relevance",
    help="Order of the results.",
)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Most rows.")
@click.option("--cursor", help="Go on from `next` of a previous page.")
@click.option("--facets", is_flag=True, help="Also the counts of every facet value.")
@output_options
def command(
    query: tuple[str, ...],
    type_: tuple[str, ...],
    sort: str,
    limit: int,
    cursor: str | None,
    facets: bool,
    output: Output,
    **filters: Any,
) -> None:
    """Search papers, techniques, surveys, models and hardware."""
    from kb.paging import decode_cursor
    from kb.search import search

    wanted = {name: list(values) for name, values in {**filters, "type": type_}.items() if values}
    reader = open_reader(output)
    try:
        answer = search(
            reader,
            join(query),
            filters=wanted,
            sort=sort,
            limit=limit,
            offset=decode_cursor(cursor),
            facets=facets,
        )
    finally:
        reader.close()
    show(answer, output)


def join(words: tuple[str, ...]) -> str:
    """Arguments as one query; a shell has eaten the quotes of an argument with blanks, so it is a phrase again."""
    if len(words) == 1:
        return words[0]
    return " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)


def show(answer: dict[str, Any], output: Output) -> None:
    if output.is_json:
        output.print_json(answer)
        return
    if output.format in ("csv", "markdown"):
        output.print_rows(["type", "id", "title", "year", "score", "snippet"], answer["results"])
        return
    from kb.cli.render import table

    columns = [("type", "TYPE", 9), ("id", "ID", 36), ("year", "YEAR", 4), ("title", "TITLE", None)]
    if answer["results"]:
        click.echo(table(columns, answer["results"]))
    for facet in answer.get("facets", ()):
        values = "  ".join(f"{value['value']} ({value['count']})" for value in facet["values"][:8])
        click.echo(f"{facet['name']}: {values}")
    for note in answer["notes"]:
        output.note(f"note: {note}")
    if answer["did_you_mean"]:
        output.note(f"did you mean: {answer['did_you_mean']}")
    more = (
        f", showing {len(answer['results'])}; go on with --cursor {answer['next']}" if answer["next"] else ""
    )
    output.note(f"{answer['total']} found{more}")
