"""`kb db init|upgrade|status`."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.common import Output, output_options, prepare_database


@click.group()
def command() -> None:
    """Create, upgrade or describe the database."""


@command.command()
@click.option("--empty", is_flag=True, help="Without the packaged literature and techniques.")
@output_options
def init(empty: bool, output: Output) -> None:
    """Create the database from packaged data (every command does so on first use)."""
    report(output, create_empty(output) if empty else prepare_database(output))


def create_empty(output: Output) -> str:
    """A new database that holds only what will be ingested into it."""
    from ingest.build import build_empty, data_version
    from kb.db import database_url, ensure, read_meta
    from kb.errors import DatabaseError

    url = database_url(output.db)
    if read_meta(url):
        raise DatabaseError(f"{url} exists already", hint="give a new file with --db PATH", field="db")
    ensure(url, data_version(), build_empty)
    return url


@command.command()
@output_options
def upgrade(output: Output) -> None:
    """Rebuild the packaged rows; what you ingested is kept."""
    report(output, prepare_database(output, force=True))


@command.command()
@output_options
def status(output: Output) -> None:
    """Where the database is and what it holds."""
    report(output, prepare_database(output))


def report(output: Output, url: str) -> None:
    from kb import store
    from kb.db import open_reader, sqlite_path

    reader = open_reader(url)
    data = {"url": url, **store.status(reader)}
    path = sqlite_path(url)
    data["size_bytes"] = path.stat().st_size if path is not None and Path(path).exists() else None
    reader.close()
    if output.is_json:
        output.print_json(data)
    elif output.format in ("csv", "markdown"):
        output.print_fields(data)
    else:
        width = max(len(key) for key in data)
        for key, value in data.items():
            click.echo(f"{key.replace('_', ' '):{width}}  {value}")
