"""`kb export FORMAT`: the bibliography or the citation graph."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

FORMATS = ("bibtex", "ris", "csl-json", "csv", "graphml", "json")
EPILOG = """\b
Examples:
  kb export bibtex --technique awq > awq.bib
  kb export ris --survey zhou --year 2023..
  kb export graphml -o citations.graphml
"""


@click.command(epilog=EPILOG)
@click.argument("target", type=click.Choice(FORMATS), metavar="FORMAT")
@click.argument("ids", nargs=-1, metavar="[ID]…")
@click.option("--query", default="", help="Papers that match a search.")
@click.option("--survey", multiple=True, help="Papers that a survey cites: zhou, yuan, park.")
@click.option("--year", multiple=True, metavar="YEAR", help="2023, 2022..2024, 2022.. or ..2020.")
@click.option("--technique", help="Papers of a technique.")
@click.option("--level", multiple=True, help="Papers that introduce techniques of a level.")
@click.option("--bottleneck", multiple=True, help="… of techniques against a bottleneck.")
@click.option("--kind", multiple=True, help="paper, book, software, website, product.")
@click.option("--role", multiple=True, help="technique, survey, model, benchmark, system, background.")
@click.option("-o", "--output-file", type=click.Path(dir_okay=False), help="Write here instead of to stdout.")
@output_options
def command(
    target: str, ids: tuple[str, ...], output_file: str | None, output: Output, **filters: Any
) -> None:
    """Export as FORMAT: bibtex, ris, csl-json, csv, json (papers) or graphml (citations)."""
    from kb.export import export

    reader = open_reader(output)
    try:
        pieces = export(reader, target, ids=list(ids) or None, **filters)
        output.write(pieces, output_file)
    finally:
        reader.close()
