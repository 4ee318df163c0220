"""URLs as the state of a page: defaults left out, unknown parameters noticed, one canonical spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

Pairs = list[tuple[str, str]]


def pairs_of(values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> Pairs:
    """Parameters to write: nothing empty, nothing that equals its default; lists repeat the name."""
    defaults = defaults or {}
    pairs: Pairs = []
    for name, value in values.items():
        if value is None or value == "" or value is False or value == defaults.get(name):
            continue
        if isinstance(value, list | tuple):
            pairs += [(name, str(each)) for each in value if each not in ("", None)]
        else:
            pairs.append(
                (name, "1" if value is True else f"{value:g}" if isinstance(value, float) else str(value))
            )
    return pairs


def link(
    path: str, values: Mapping[str, Any] | Pairs | None = None, defaults: Mapping[str, Any] | None = None
) -> str:
    """
    >>> link("/recommend", {"hardware": "rtx-3090", "batch": 1, "lossless": False}, {"batch": 1})
    '/recommend?hardware=rtx-3090'
    """
    pairs = list(values) if isinstance(values, list) else pairs_of(dict(values or {}), defaults)
    return f"{path}?{urlencode(pairs, safe=':/,+')}" if pairs else path


def record_path(kind: str, ident: str) -> str:
    """The page of one record; identifiers keep their slashes (DOIs) and lose nothing else."""
    return f"/{kind}/{quote(ident, safe='/:@!$,;=()~')}"


def unknown_parameters(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Names in the query string that this page does not know, once each, in order."""
    allowed = set(known)
    return list(dict.fromkeys(name for name in given if name not in allowed))


def toggled(pairs: Pairs, name: str, value: str, dropped: Iterable[str] = ("page", "cursor")) -> Pairs:
    """The same state with one facet value switched on or off, back on the first page."""
    skip = set(dropped)
    kept = [(n, v) for n, v in pairs if n not in skip]
    if (name, value) in kept:
        return [pair for pair in kept if pair != (name, value)]
    return [*kept, (name, value)]


def replaced(pairs: Pairs, dropped: Iterable[str] = ("page", "cursor"), **values: Any) -> Pairs:
    """The same state with some parameters set (or removed, with None or "")."""
    skip = set(dropped) | set(values)
    return [(n, v) for n, v in pairs if n not in skip] + [
        (n, str(v)) for n, v in values.items() if v not in (None, "")
    ]


REFERENCES_PER_PAGE = 100


def reference_path(survey: str, number: int | str | None) -> str:
    """The line of one reference in a survey's list, which is shown a hundred at a time.

    >>> reference_path("zhou", 27), reference_path("zhou", "192")
    ('/surveys/zhou#r27', '/surveys/zhou?page=2#r192')
    """
    if number is None or not str(number).isdigit():
        return f"/surveys/{survey}"
    page = (max(1, int(number)) - 1) // REFERENCES_PER_PAGE + 1
    return f"/surveys/{survey}{f'?page={page}' if page > 1 else ''}#r{number}"
