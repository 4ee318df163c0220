"""Plain text for a terminal of 80 columns: tables, wrapped paragraphs, numbers with units."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MAX_WIDTH = 80


def width() -> int:
    """Columns to use: the terminal's, never more than 80, which is also what a pipe gets."""
    return max(40, min(MAX_WIDTH, shutil.get_terminal_size((MAX_WIDTH, 24)).columns))


def unicode_ok() -> bool:
    """Whether stdout can print what lies beyond ASCII."""
    return (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "") in ("utf8", "utf16")


def text(value: Any) -> str:
    """A value on one line, in characters that stdout can print."""
    return printable(" ".join(str("" if value is None else value).split()))


def printable(block: str) -> str:
    """The same text in characters that stdout can print."""
    if unicode_ok():
        return block
    import unicodedata

    return unicodedata.normalize("NFKD", block).encode("ascii", "replace").decode()


def wrap(value: Any, *, indent: int = 0, hang: int | None = None) -> str:
    """A paragraph, wrapped; identifiers and links are never cut."""
    return textwrap.fill(
        text(value),
        width=width(),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent if hang is None else hang),
        break_long_words=False,
        break_on_hyphens=False,
    )


def shorten(value: Any, limit: int) -> str:
    line = text(value)
    if len(line) <= limit:
        return line
    ellipsis = "…" if unicode_ok() else "..."
    return line[: max(0, limit - len(ellipsis))].rstrip() + ellipsis


def field(name: str, value: Any, *, label_width: int = 13) -> str:
    """`name   value`, wrapped under the value; nothing where there is no value."""
    if value in (None, "", [], {}):
        return ""
    return f"{name:<{label_width}}" + wrap(value, indent=label_width, hang=label_width).lstrip()


def table(columns: Sequence[tuple[str, str, int | None]], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows under headers. A column is (key, header, limit); one column's limit may be None: it takes what is left."""
    data = [[cell(row.get(key)) for key, _header, _limit in columns] for row in rows]
    widths = [
        max([len(header), *(len(line[index]) for line in data)])
        for index, (_key, header, _limit) in enumerate(columns)
    ]
    for index, (_key, header, limit) in enumerate(columns):
        if limit is not None:
            widths[index] = max(len(header), min(widths[index], limit))
    for index, (_key, header, limit) in enumerate(columns):
        if limit is None:
            others = sum(size for other, size in enumerate(widths) if other != index) + 2 * (len(widths) - 1)
            widths[index] = max(len(header), min(widths[index], width() - others))
    numeric = [
        bool(data) and all(is_number(line[index]) or not line[index] for line in data)
        for index in range(len(columns))
    ]

    def line(cells: Sequence[str]) -> str:
        parts = []
        for index, value in enumerate(cells):
            short = shorten(value, widths[index])
            parts.append(short.rjust(widths[index]) if numeric[index] else short.ljust(widths[index]))
        return "  ".join(parts).rstrip()

    return "\n".join([line([header for _key, header, _limit in columns]), *(line(cells) for cells in data)])


def cell(value: Any) -> str:
    """A value on one line; spaces in front are kept, because trees are drawn with them."""
    indent = len(value) - len(value.lstrip()) if isinstance(value, str) else 0
    return " " * indent + text(value)


def is_number(value: str) -> bool:
    try:
        float(value.replace(",", ""))
    except ValueError:
        return False
    return True


def significant(value: float | None, digits: int = 3) -> str:
    """Three significant digits with thousands separators.

    >>> significant(1234.5), significant(0.012345), significant(99.96)
    ('1,234', '0.0123', '100')
    """
    if value is None or value != value:
        return "?"
    if value in (float("inf"), float("-inf")):
        return "inf"
    if value == 0:
        return "0"
    from math import floor, log10

    decimals = digits - 1 - floor(log10(abs(value)))
    rounded = round(value, decimals)
    decimals = digits - 1 - floor(log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(0, decimals)}f}"


def gigabytes(value: float | None) -> str:
    """Bytes as GB (10⁹).

    >>> gigabytes(137.95e9)
    '138.0 GB'
    """
    if value is None or value != value:
        return "?"
    return f"{value / 1e9:,.1f} GB"


def duration(seconds: float | None) -> str:
    """Seconds in the unit that a person would choose.

    >>> duration(0.0338), duration(12e-6), duration(125)
    ('33.8 ms', '12.0 µs', '125 s')
    """
    if seconds is None or seconds != seconds:
        return "?"
    for limit, factor, unit in (
        (1e-6, 1e9, "ns"),
        (1e-3, 1e6, "µs" if unicode_ok() else "us"),
        (1.0, 1e3, "ms"),
    ):
        if seconds < limit:
            return f"{significant(seconds * factor)} {unit}"
    return f"{significant(seconds)} s" if seconds < 600 else f"{significant(seconds / 60)} min"


def authors(people: Sequence[Mapping[str, str]], *, limit: int = 3, truncated: bool = False) -> str:
    """Family names, "et al." after the first few.

    >>> authors([{"family": "Lin", "given": "Ji"}, {"family": "Tang", "given": "J."}])
    'Lin, Tang'
    """
    names = [person.get("family") or person.get("given") or "" for person in people]
    if len(names) > limit or truncated:
        return f"{', '.join(names[: 1 if len(names) > limit else limit])} et al."
    return ", ".join(names)
