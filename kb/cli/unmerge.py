"""`kb unmerge ID`: undoes a merge exactly."""

from __future__ import annotations

import click

from kb.cli.common import Output, output_options, prepare_database


@click.command()
@click.argument("id_", metavar="ID")
@output_options
def command(id_: str, output: Output) -> None:
    """Undo merge ID (the number that `kb merge` printed, or the slug of the absorbed work)."""
    from ingest.merging import unmerge
    from kb.db import open_session

    with open_session(prepare_database(output)) as session:
        answer = unmerge(session, id_)
    if output.is_json:
        output.print_json(answer)
    elif output.format in ("csv", "markdown"):
        output.print_rows(list(answer), [answer])
    else:
        click.echo(f"{answer['absorbed']} is a work of its own again; {answer['kept']} is as it was before.")
