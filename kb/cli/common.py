"""What every command shares: output options, the database, notes on stderr."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from kb.reader import Reader

F = TypeVar("F", bound=Callable[..., Any])
FORMATS = ("table", "json", "csv", "markdown")


@dataclass(frozen=True)
class Output:
    """How and where to answer."""

    format: str = "table"
    db: str | None = None
    quiet: bool = False

    @property
    def is_json(self) -> bool:
        return self.format == "json"

    def note(self, text: str) -> None:
        """A remark for the person at the terminal; never on stdout."""
        if not self.quiet:
            print(text, file=sys.stderr)

    def print_json(self, data: Any) -> None:
        """Plain JSON: NaN and infinities become null, never a string."""
        json.dump(plain(data), sys.stdout, ensure_ascii=False, indent=None if not sys.stdout.isatty() else 2)
        sys.stdout.write("\n")

    def print_rows(self, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
        """Rows as CSV or Markdown."""
        if self.format == "csv":
            import csv

            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
            return
        print("| " + " | ".join(columns) + " |")
        print("|" + "|".join(" --- " for _ in columns) + "|")
        for row in rows:
            print("| " + " | ".join(cell(row.get(column)).replace("|", "\\|") for column in columns) + " |")

    def print_fields(self, record: Mapping[str, Any]) -> None:
        """One record as CSV or Markdown, a field a row."""
        self.print_rows(["key", "value"], ({"key": key, "value": value} for key, value in record.items()))

    def write(self, pieces: Iterable[str], file: str | None) -> None:
        """A document of another format, to a file or to stdout; UTF-8 whatever the terminal's locale is."""
        if file:
            from pathlib import Path

            with Path(file).open("w", encoding="utf-8", newline="") as written:
                written.writelines(pieces)
            self.note(f"written: {file}")
            return
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8")
        sys.stdout.writelines(pieces)


def plain(value: Any) -> Any:
    """Data that json can write: no NaN, no numpy scalars, no tuples."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, str | bool) or value is None:
        return value
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def cell(value: Any) -> str:
    """One CSV or Markdown cell."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "; ".join(cell(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(plain(value), ensure_ascii=False)
    return " ".join(str(value).split())


def output_options(function: F) -> F:
    """Adds --json, --format, --db and --quiet, also accepted before the command; passes `output`."""

    @click.option("--json", "as_json", is_flag=True, help="JSON on stdout, nothing else.")
    @click.option("--format", "format_", type=click.Choice(FORMATS), help="Output format.")
    @click.option("--db", metavar="URL", help="Database: a file or an SQLAlchemy URL.")
    @click.option("--quiet", is_flag=True, help="No notes or progress on stderr.")
    @functools.wraps(function)
    def wrapper(
        *args: Any, as_json: bool, format_: str | None, db: str | None, quiet: bool, **rest: Any
    ) -> Any:
        parent = click.get_current_context().find_root().params
        chosen = (
            "json"
            if as_json
            else format_ or ("json" if parent.get("as_json") else parent.get("format_")) or "table"
        )
        output = Output(format=chosen, db=db or parent.get("db"), quiet=quiet or bool(parent.get("quiet")))
        return function(*args, output=output, **rest)

    return wrapper  # type: ignore[return-value]


def prepare_database(output: Output, *, force: bool = False) -> str:
    """Builds or upgrades the database where needed; its URL."""
    from ingest.build import build, data_version
    from kb.db import database_url, ensure

    url = database_url(output.db)
    ensure(url, data_version(), build, announce=lambda text: output.note(f"{text} …"), force=force)
    return url


def open_reader(output: Output) -> Reader:
    """The knowledge base for reading, built on first use."""
    from kb import db

    return db.open_reader(prepare_database(output))
