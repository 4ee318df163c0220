"""RIS → references: with or without ER, repeated TY, continued lines, and the habits of EndNote and of databases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ingest.identifiers import clean_url, find_arxiv
from ingest.names import Name, given_first, name
from ingest.records import (
    BrokenRecord,
    Items,
    arxiv_and_doi,
    broken,
    clean,
    read_date,
    split_status,
    year_of,
)
from ingest.references import Reference

TAG = re.compile(r"^\s{0,3}([A-Z][A-Z0-9])\s{1,2}-(?:\s(.*))?$")
AUTHOR_TAGS = ("AU", "A1")
FURTHER_AUTHOR_TAGS = ("A2", "A3", "A4")
# In a part of a larger work the further authors are the larger work's editors.
PARTS = {"CHAP", "CONF", "CPAPER", "ECHAP", "BOOK", "EDBOOK", "EBOOK", "SER", "ENCYC", "DICT"}
KINDS = {
    "BOOK": "book", "EBOOK": "book", "EDBOOK": "book", "COMP": "software", "ELEC": "website", "WEB": "website",
    "BLOG": "website", "ICOMM": "website", "DATA": "website", "PAT": "product",
}  # fmt: skip
TITLE_TAGS = ("TI", "T1", "CT", "BT")
VENUE_TAGS = ("JF", "JO", "T2", "BT", "J2", "JA")
LINK_TAGS = ("UR", "L1", "L2", "LK")


@dataclass
class Entry:
    """One record: its tags in order, each with a value."""

    line: int
    values: list[tuple[str, str]] = field(default_factory=list)

    def all(self, *tags: str) -> list[str]:
        return [value for tag, value in self.values if tag in tags and value]

    def first(self, *tags: str) -> str:
        """The value of the first of these tags that has one."""
        for tag in tags:
            for found, value in self.values:
                if found == tag and value:
                    return value
        return ""


def parse_ris(lines: Iterable[str]) -> Items:
    """References of an RIS file, in order.

    >>> [r.first_author for r in parse_ris(["TY  - JOUR", "AU  - van de Schoot, R.", "TI  - T", "TY  - JOUR", "TI  - U"])]
    ['van de Schoot', '']
    """
    for number, entry in enumerate(entries(lines), start=1):
        try:
            yield to_reference(entry, number)
        except ValueError as error:
            text = " ".join(f"{tag} {value}" for tag, value in entry.values)
            yield broken(entry.first("ID") or f"line {entry.line}", str(error), text)


def entries(lines: Iterable[str]) -> Iterator[Entry]:
    """Records as written; TY begins one even if ER did not end the one before."""
    entry: Entry | None = None
    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip("\r\n").lstrip("\ufeff")
        match = TAG.match(line)
        if match is None:
            # A line without a tag goes on with the value above; before the first tag it is a database's banner.
            if entry is not None and entry.values and line.strip():
                tag, value = entry.values[-1]
                entry.values[-1] = (tag, f"{value} {line.strip()}".strip())
            continue
        tag, value = match[1], clean(match[2] or "")
        if tag == "TY":
            if entry is not None:
                yield entry
            entry = Entry(number, [(tag, value)])
        elif tag == "ER":
            if entry is not None:
                yield entry
            entry = None
        else:
            if entry is None:
                entry = Entry(number)
            entry.values.append((tag, value))
    if entry is not None:
        yield entry


def to_reference(entry: Entry, number: int) -> Reference:
    kind = entry.first("TY").upper()
    title, status = split_status(entry.first(*TITLE_TAGS))
    links = [
        clean_url(link) for value in entry.all(*LINK_TAGS) for link in re.split(r"\s*;\s*|\s+", value) if link
    ]
    accession = [value for value in entry.all("AN", "M1", "M3", "C7", "ID", "N1") if "arxiv" in value.lower()]
    stated_doi = entry.first("DO") or next(
        (v for v in entry.all("M3", "N1", "L3") if v.lower().startswith("doi")), ""
    )
    arxiv, version, doi = arxiv_and_doi(stated_doi, *accession, *links)
    if arxiv is None:
        told = find_arxiv(
            " ".join([*entry.all("JF", "JO", "T2", "PB", "N1", "M1", "M3", "JA"), entry.first("VL")])
        )
        if told is not None:
            arxiv, version = told.id, told.version
    if not title and not doi and not arxiv and not entry.all(*AUTHOR_TAGS):
        raise ValueError("neither title, author nor identifier")
    authors, notes = read_authors(entry, kind)
    date = best_date(entry)
    pages = "–".join(dict.fromkeys(part for part in (entry.first("SP"), entry.first("EP")) if part))
    page_links = [link for link in links if "doi.org/" not in link]
    venue = next((v for t in VENUE_TAGS if (v := entry.first(t)) and v != title), "")
    what = KINDS.get(kind, "paper")
    if what == "website" and (doi or arxiv):
        what = "paper"
    return Reference(
        title=title,
        authors=authors,
        year=year_of(date),
        date=date,
        venue=venue,
        volume=entry.first("VL"),
        issue=entry.first("IS", "CP"),
        pages=pages,
        publisher=entry.first("PB"),
        edition=entry.first("ET"),
        arxiv_id=arxiv,
        arxiv_version=version,
        doi=doi,
        url=page_links[0] if page_links else None,
        kind=what,
        key=entry.first("ID") or f"record {number}",
        status=status or ("retracted" if any("RETRACTED" in note for note in entry.all("N1")) else ""),
        abstract=entry.first("AB", "N2"),
        notes=tuple(notes),
    )


def read_authors(entry: Entry, kind: str) -> tuple[tuple[Name, ...], list[str]]:
    """Authors in the order of the file; what of A2 to A4 depends on the type."""
    tags: tuple[str, ...] = AUTHOR_TAGS
    if kind not in PARTS or not entry.all(*AUTHOR_TAGS):
        tags = (*AUTHOR_TAGS, *FURTHER_AUTHOR_TAGS)
    listed = entry.all(*tags) or entry.all("ED")
    notes = []
    found: list[Name] = []
    for value in listed:
        pieces = [piece.strip() for piece in value.split(";") if piece.strip()]
        if len(pieces) > 1:
            notes.append(f"{len(pieces)} authors stood in one line and were split at ';'")
        found.extend(read_name(piece) for piece in pieces)
    return tuple(one for one in found if one["family"]), notes


def read_name(text: str) -> Name:
    """`Family, Given, Suffix`, an organisation with EndNote's closing comma, or `Given Family`.

    >>> read_name("OpenAI Team,"), read_name("King, Martin Luther, Jr."), read_name("Jan van der Berg")
    ({'family': 'OpenAI Team'}, {'family': 'King', 'given': 'Martin Luther'}, {'family': 'van der Berg', 'given': 'Jan'})
    """
    if "," in text:
        parts = [part.strip() for part in text.split(",")]
        return name(parts[0], parts[1])
    family, given = given_first(text)
    return name(family, given)


def best_date(entry: Entry) -> str:
    """The year of PY or Y1, refined by DA where that says more about the same year."""
    main = read_date(entry.first("PY", "Y1"))
    fine = read_date(entry.first("DA"))
    if not main:
        return fine
    return fine if fine.startswith(main) and len(fine) > len(main) else main


__all__ = ["BrokenRecord", "parse_ris"]
