"""What a BibTeX entry takes from another one: `crossref` and biblatex's `xdata`.

The other entry may come first (biblatex) or later (BibTeX asks for that): an entry waits until what it names was
read, at the latest until the end. Memory: the fields of container entries and of what waits, both up to a limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ingest.records import BrokenRecord
from ingest.sources.bibtex_syntax import Entry

CONTAINERS = frozenset(
    [
        "book",
        "bookinbook",
        "collection",
        "conference",
        "inbook",
        "mvbook",
        "mvcollection",
        "mvproceedings",
        "mvreference",
        "periodical",
        "proceedings",
        "reference",
        "xdata",
    ]
)
BOOKS = ("book", "mvbook")
# What names one work, or says something about this one only, is never a part's.
OWN = frozenset(
    [
        "title",
        "subtitle",
        "titleaddon",
        "author",
        "shorttitle",
        "sorttitle",
        "doi",
        "url",
        "eprint",
        "archiveprefix",
        "eprinttype",
        "eprintclass",
        "arxivid",
        "abstract",
        "note",
        "pages",
        "crossref",
        "xdata",
        "xref",
        "ids",
        "key",
        "label",
        "keywords",
        "file",
        "pubstate",
        "addendum",
        "annote",
        "howpublished",
    ]
)
AS_PART = {"title": "booktitle", "subtitle": "booksubtitle", "titleaddon": "booktitleaddon"}
MAX_PARENTS = 50_000
MAX_WAITING = 20_000


def with_parents(items: Iterable[Entry | BrokenRecord]) -> Iterator[Entry | BrokenRecord]:
    """The same entries with what they inherit; `xdata` entries are no works and end here."""
    parents: dict[str, Entry] = {}
    waiting: dict[str, list[Entry]] = {}
    waits = 0
    for item in items:
        if isinstance(item, BrokenRecord):
            yield item
            continue
        ready = [item]
        while ready:
            entry = ready.pop(0)
            missing = next((name for name in needed(entry) if name not in parents), None)
            if missing is not None and waits < MAX_WAITING:
                waiting.setdefault(missing, []).append(entry)
                waits += 1
                continue
            inherit(entry, parents)
            key = entry.key.lower()
            if key and key not in parents and (entry.type in CONTAINERS or key in waiting):
                parents[key] = entry
                if len(parents) > MAX_PARENTS:
                    del parents[next(iter(parents))]
            children = waiting.pop(key, [])
            waits -= len(children)
            ready += children
            if entry.type != "xdata":
                yield entry
    for entries in waiting.values():
        for entry in entries:
            inherit(entry, parents)
            if entry.type != "xdata":
                yield entry


def needed(entry: Entry) -> list[str]:
    """Keys of the entries that this one refers to; BibTeX compares keys without regard to case."""
    names = f"{entry.fields.get('crossref', '')},{entry.fields.get('xdata', '')}".split(",")
    return [name.strip(" {}").lower() for name in names if name.strip(" {}")]


def inherit(entry: Entry, parents: dict[str, Entry]) -> None:
    """Adds what the entry does not say itself."""
    for name in needed(entry):
        parent = parents.get(name)
        if parent is None or parent is entry:
            entry.notes.append(f"the entry {name} that it refers to is missing")
            continue
        dated = "year" in entry.fields or "date" in entry.fields
        for field, value in parent.fields.items():
            if dated and field in ("year", "date", "month", "day"):
                continue
            if parent.type == "xdata" or (
                field == "author" and parent.type in BOOKS and entry.type not in ("incollection", *BOOKS)
            ):
                entry.fields.setdefault(field, value)
            elif field in AS_PART and entry.type not in BOOKS:
                periodical = parent.type == "periodical" and field == "title"
                entry.fields.setdefault("journaltitle" if periodical else AS_PART[field], value)
            elif field not in OWN:
                entry.fields.setdefault(field, value)
