"""Pages of a list behind an opaque cursor, and the small pieces of SQL that lists share."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from kb.errors import InvalidQuery

MAX_LIMIT = 200


def encode_cursor(offset: int) -> str:
    return base64.urlsafe_b64encode(f"o{offset}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> int:
    """The offset in a cursor.

    >>> decode_cursor(encode_cursor(50))
    50
    """
    if not cursor:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        if not text.startswith("o"):
            raise ValueError
        return int(text[1:10])
    except ValueError as error:
        raise InvalidQuery(
            f"cursor {cursor[:40]!r} is not one of ours",
            hint="take it from `next` of a previous page",
            field="cursor",
        ) from error


def page_of(items: Sequence[Any], limit: int | None, cursor: str | None) -> dict[str, Any]:
    """One page of a list: {"total", "items", "next"}; `limit` None gives everything."""
    start = decode_cursor(cursor)
    if limit is None:
        return {"total": len(items), "items": list(items[start:]), "next": None}
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidQuery(
            f"limit {limit} is not in 1 … {MAX_LIMIT}", hint="page on with the cursor", field="limit"
        )
    end = start + limit
    return {
        "total": len(items),
        "items": list(items[start:end]),
        "next": encode_cursor(end) if end < len(items) else None,
    }


def placeholders(values: Sequence[Any], prefix: str, parameters: dict[str, Any]) -> str:
    """`:p0, :p1 …` for an IN list, the values put into `parameters`."""
    names = []
    for index, value in enumerate(values):
        parameters[f"{prefix}{index}"] = value
        names.append(f":{prefix}{index}")
    return ", ".join(names) or "NULL"
