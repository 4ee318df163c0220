"""`kb references SURVEY`: a survey's reference list as it was read."""

from __future__ import annotations

import click

from kb.cli.common import Output, open_reader, output_options

COLUMNS = ["number", "title", "first_author", "year", "arxiv_id", "doi", "url", "is_paper", "paper_id"]


@click.command()
@click.argument("survey", metavar="SURVEY")
@output_options
def command(survey: str, output: Output) -> None:
    """List the references of SURVEY (zhou, yuan, park, or one that you ingested) in its own order."""
    from kb.store_references import survey_references

    reader = open_reader(output)
    try:
        rows = survey_references(reader, survey)
    finally:
        reader.close()
    if output.is_json:
        output.print_json(rows)
    elif output.format in ("csv", "markdown"):
        output.print_rows(COLUMNS, rows)
    else:
        from kb.cli.render import table

        shown = [
            {**row, "title": row["work_title"] or row["url"] or row["doi"] or "(no title)"} for row in rows
        ]
        columns = [("number", "NO", 4), ("year", "YEAR", 4), ("title", "TITLE", None), ("paper_id", "ID", 32)]
        click.echo(table(columns, shown))
