"""`kb parse-ref STRING`: what a reference string says, before anything is stored."""

from __future__ import annotations

import sys
from typing import Any

import click

from kb.cli.common import Output, output_options

COLUMNS = ["authors", "title", "year", "venue", "arxiv_id", "doi", "url", "kind"]
EPILOG = """\b
Without STRING, one reference per line is read from standard input. To store
references, pipe them into: kb ingest -

\b
Example:
  kb parse-ref 'T. Dao, "FlashAttention-2: Faster attention," arXiv:2307.08691, 2023.'
"""


@click.command(epilog=EPILOG)
@click.argument("strings", nargs=-1, metavar="[STRING]…")
@output_options
def command(strings: tuple[str, ...], output: Output) -> None:
    """Show how reference STRINGs are read: authors, title, year, venue, identifiers, kind."""
    from ingest.references import parse_reference

    lines = strings or tuple(line for line in sys.stdin if line.strip())
    if not lines:
        raise click.UsageError("no reference given — pass one as STRING or pipe one per line")
    found = [parse_reference(line) for line in lines]
    if output.is_json:
        output.print_json([one.as_json() for one in found])
        return
    rows: list[dict[str, Any]] = [
        {**{name: getattr(one, name) for name in COLUMNS}, "authors": names(one)} for one in found
    ]
    if output.format in ("csv", "markdown"):
        output.print_rows(COLUMNS, rows)
        return
    from kb.cli.render import field

    for number, row in enumerate(rows):
        if number:
            click.echo()
        for name in COLUMNS:
            if line := field(name.replace("_", " "), row[name]):
                click.echo(line)
        if found[number].truncated:
            click.echo(field("note", "the string is cut; what it does not say is left empty"))


def names(reference: Any) -> str:
    """Authors as text, with "et al." where the string cut them."""
    listed = ", ".join(f"{one.get('given', '')} {one['family']}".strip() for one in reference.authors)
    return f"{listed} et al." if reference.et_al else listed
