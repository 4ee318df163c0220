"""Facets, sorting and paging over lists that lie in memory; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from web.urls import Pairs, link, toggled

Item = Mapping[str, Any]
PAGE_SIZE = 25
SHOWN_VALUES = 10


@dataclass(frozen=True)
class Facet:
    """One dimension: which values an item has, what they are called, in which order they stand."""

    name: str
    title: str
    values: Callable[[Item], Iterable[str]]
    label: Callable[[str], str] = str
    order: Callable[[str], Any] | None = None  # None: most frequent first
    shown: int = SHOWN_VALUES
    depth: Callable[[str], int] | None = None  # trees: indentation


@dataclass(frozen=True)
class Value:
    value: str
    label: str
    count: int
    chosen: bool
    href: str
    deep: bool = False


@dataclass(frozen=True)
class Group:
    """A facet as the page shows it."""

    name: str
    title: str
    values: list[Value]
    hidden: list[Value]


def select(
    items: Sequence[Item], facets: Sequence[Facet], chosen: Mapping[str, Sequence[str]]
) -> tuple[list[Item], dict[str, Counter[str]]]:
    """Items that have, for every facet with chosen values, at least one of them; and counts.

    A facet's counts ignore its own choice, so that they say what choosing another value would give.
    """
    active = {facet.name: set(chosen.get(facet.name, ())) for facet in facets}
    counts: dict[str, Counter[str]] = {facet.name: Counter() for facet in facets}
    kept: list[Item] = []
    for item in items:
        values = {facet.name: list(dict.fromkeys(facet.values(item))) for facet in facets}
        failed = [name for name, wanted in active.items() if wanted and not wanted.intersection(values[name])]
        if not failed:
            kept.append(item)
            for name, found in values.items():
                counts[name].update(found)
        elif len(failed) == 1:
            counts[failed[0]].update(values[failed[0]])
    return kept, counts


def groups(
    facets: Sequence[Facet],
    counts: Mapping[str, Counter[str]],
    chosen: Mapping[str, Sequence[str]],
    path: str,
    pairs: Pairs,
) -> list[Group]:
    """Facet values with their counts as links that toggle them."""
    found = []
    for facet in facets:
        picked = set(chosen.get(facet.name, ()))
        counted = counts[facet.name]
        names = set(counted) | picked
        order = facet.order or frequent_first(counted)
        values = [
            Value(
                value,
                facet.label(value),
                counted[value],
                value in picked,
                link(path, toggled(pairs, facet.name, value)),
                bool(facet.depth and facet.depth(value) > 0),
            )
            for value in sorted(names, key=order)
        ]
        if facet.depth is None:
            shown = [value for index, value in enumerate(values) if index < facet.shown or value.chosen]
        else:  # a tree folds to its top, opened below what is chosen
            shown = [
                value
                for value in values
                if facet.depth(value.value) == 0
                or value.chosen
                or any(
                    parent_of(value.value) == each or value.value.startswith(each + "/") for each in picked
                )
            ]
        hidden = [value for value in values if value not in shown]
        if values and (len(values) > 1 or picked):
            found.append(Group(facet.name, facet.title, shown, hidden))
    return found


def frequent_first(counted: Mapping[str, int]) -> Callable[[str], Any]:
    return lambda value: (-counted.get(value, 0), value)


def parent_of(path: str) -> str:
    return path.rpartition("/")[0]


@dataclass(frozen=True)
class Page:
    """One page of results, numbered from 1, with links that keep the state."""

    items: list[Any]
    total: int
    number: int
    pages: int
    first: int
    last: int
    previous: str
    following: str


def paged(items: Sequence[Any], number: int, path: str, pairs: Pairs, size: int = PAGE_SIZE) -> Page:
    """The page `number`, the last one where there are fewer."""
    total = len(items)
    pages = max(1, -(-total // size))
    number = min(max(1, number), pages)
    start = (number - 1) * size
    rest = [pair for pair in pairs if pair[0] != "page"]

    def to(target: int) -> str:
        return link(path, rest if target == 1 else [*rest, ("page", str(target))])

    return Page(
        list(items[start : start + size]),
        total,
        number,
        pages,
        start + 1 if total else 0,
        min(start + size, total),
        to(number - 1) if number > 1 else "",
        to(number + 1) if number < pages else "",
    )
