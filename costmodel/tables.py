"""Reads the packaged CSV tables strictly: columns must be exactly the ones that the reader knows."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from costmodel.errors import InvalidFile

DATA = Path(__file__).parent / "data"  # importlib.resources would import archives and temporary files first
PROVENANCE = ("source", "locator", "retrieved", "basis", "note")
BASES = ("vendor", "paper", "measured", "derived", "assumed")


def read_text(name: str) -> str:
    """The text of a file in costmodel/data."""
    return (DATA / name).read_text(encoding="utf-8")


def read_users_file(path: Path, *, what: str, kind: str, name: str, most_mb: int, field: str) -> str:
    """The text of a file of the user's own: `what` ("a hardware file") is `kind` ("TOML"), such as `name`."""
    try:
        if path.stat().st_size > most_mb * 1_000_000:
            raise InvalidFile(f"{path}: too large for {what}", hint=f"at most {most_mb} MB", field=field)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidFile(
            f"cannot read {path}: {error.strerror or error}", hint=f"give a readable {name}", field=field
        ) from None
    except UnicodeDecodeError:
        raise InvalidFile(f"{path}: not a text file", hint=f"{what} is {kind}", field=field) from None


def read_table(name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows of costmodel/data/`name`; raises InvalidFile when a column is missing, unknown or misplaced."""
    return parse_table(read_text(name), name, columns)


def parse_table(text: str, name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """Rows of a CSV text whose header must hold exactly `columns`.

    >>> parse_table("slug,size\\na,1\\n", "x.csv", ("slug", "size"))
    [{'slug': 'a', 'size': '1'}]
    """
    reader = csv.DictReader(io.StringIO(text))
    header = tuple(reader.fieldnames or ())
    unknown = [c for c in header if c not in columns]
    missing = [c for c in columns if c not in header]
    if unknown or missing:
        parts = [f"unknown columns {', '.join(unknown)}"] if unknown else []
        parts += [f"missing columns {', '.join(missing)}"] if missing else []
        raise InvalidFile(f"{name}: {'; '.join(parts)}", hint=f"columns are: {', '.join(columns)}")
    rows = []
    for number, row in enumerate(reader, start=2):
        if None in row or None in row.values():
            raise InvalidFile(f"{name}: line {number} does not have {len(columns)} cells")
        rows.append(row)
    return rows


def number(row: dict[str, str], column: str, table: str) -> float | None:
    """A cell as a number; None where it is empty. Says which row is at fault."""
    cell = row[column]
    if cell == "":
        return None
    try:
        return float(cell)
    except ValueError:
        raise InvalidFile(
            f"{table}: row {row.get('slug', '?')!r}, {column}: {cell!r} is not a number"
        ) from None


def flag(row: dict[str, str], column: str, table: str) -> bool:
    """A yes/no cell; empty is no."""
    cell = row[column]
    if cell not in ("", "yes", "no"):
        raise InvalidFile(f"{table}: row {row.get('slug', '?')!r}, {column}: {cell!r} is neither yes nor no")
    return cell == "yes"
