"""`kb merge A B`: a person's word that two works are one, or are not."""

from __future__ import annotations

import click

from kb.cli.common import Output, output_options, prepare_database


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--different", is_flag=True, help="Declare that they are two works, and drop the proposal.")
@click.option("--reason", default="", help="Why; kept with the decision.")
@output_options
def command(a: str, b: str, different: bool, reason: str, output: Output) -> None:
    """Unite works A and B (slug, arXiv id or DOI); A's slug stays. Undo with: kb unmerge ID."""
    from ingest.merging import declare_different, merge
    from kb.db import open_session

    with open_session(prepare_database(output)) as session:
        answer = (declare_different if different else merge)(session, a, b, reason=reason)
    if output.is_json:
        output.print_json(answer)
    elif output.format in ("csv", "markdown"):
        output.print_rows(list(answer), [answer])
    elif different:
        click.echo(f"{answer['a']} and {answer['b']} stay two works.")
    else:
        click.echo(f"{answer['absorbed']} is now part of {answer['kept']}. Undo: kb unmerge {answer['id']}")
