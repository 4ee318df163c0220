"""`kb dedupe`: possible duplicates with the basis; changes nothing."""

from __future__ import annotations

import click

from kb.cli.common import Output, open_reader, output_options

EPILOG = """\b
Answer a proposal with:
  kb merge A B               they are one work
  kb merge A B --different   they are not
"""


@click.command(epilog=EPILOG)
@click.option("--check", is_flag=True, help="Exit with 1 if a proposal waits.")
@output_options
def command(check: bool, output: Output) -> None:
    """List possible duplicates that wait for a person, with basis and score; changes nothing."""
    from kb.store_references import merges, proposals, united

    reader = open_reader(output)
    try:
        found, joined, done = proposals(reader), united(reader), merges(reader)
    finally:
        reader.close()
    if output.is_json:
        output.print_json({"total": len(found), "proposals": found, "united_by": joined, "merges": done})
    elif output.format in ("csv", "markdown"):
        output.print_rows(["a", "b", "basis", "score", "title_a", "title_b"], found)
    else:
        show(found, joined)
    if check and found:
        click.get_current_context().exit(1)


def show(found: list[dict], joined: dict[str, int]) -> None:
    from kb.cli.render import wrap

    if not found:
        click.echo("No possible duplicates wait for a decision.")
    for row in found:
        click.echo(wrap(f"{row['score']:.2f}  {row['basis']}"))
        for side in ("a", "b"):
            click.echo(
                wrap(
                    f"{row[side]}: {row['title_' + side]} ({row['year_' + side] or 'no year'})",
                    indent=6,
                    hang=8,
                )
            )
    if joined:
        what = ", ".join(f"{count} by {kind}" for kind, count in joined.items())
        click.echo(wrap(f"Groups of records already united: {what}."))
