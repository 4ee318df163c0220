"""RIS → references: with or without ER, repeated TY, continued lines, and the habits of EndNote and of databases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ingest.identifiers import clean_url, find_arxiv
from ingest.kinds import KINDS as OUR_KINDS
from ingest.names import Name, split_family_first
from ingest.records import (
    Items,
    arxiv_and_doi,
    broken,
    clean,
    read_date,
    split_status,
    year_of,
)
from ingest.references import Reference
from ingest.sources.fields import entities, family_first, inline_text, pages_text, venue_text

TAG = re.compile(r"^\s{0,3}([A-Z][A-Z0-9])  -(?:\s(.*))?$")
# What programs make of "TY  - ": one blank, tabs, lower case, no blank behind, no hyphen between tabs.
LOOSE_TAG = re.compile(r"^\s{0,3}([A-Za-z][A-Za-z0-9])(?:\s{1,4}-|\s*\t)\s*(.*)$")
KNOWN_TAGS = frozenset(
    [
        "A1",
        "A2",
        "A3",
        "A4",
        "A5",
        "A6",
        "AB",
        "AD",
        "AN",
        "AU",
        "BT",
        "C1",
        "C2",
        "C3",
        "C4",
        "C5",
        "C6",
        "C7",
        "C8",
        "CA",
        "CN",
        "CP",
        "CT",
        "CY",
        "DA",
        "DB",
        "DO",
        "DP",
        "ED",
        "EP",
        "ER",
        "ET",
        "H1",
        "H2",
        "ID",
        "IP",
        "IS",
        "J1",
        "J2",
        "JA",
        "JF",
        "JO",
        "K1",
        "KW",
        "L1",
        "L2",
        "L3",
        "L4",
        "LA",
        "LB",
        "LK",
        "M1",
        "M2",
        "M3",
        "N1",
        "N2",
        "NV",
        "OP",
        "PB",
        "PP",
        "PY",
        "RI",
        "RN",
        "RP",
        "SE",
        "SN",
        "SP",
        "ST",
        "T1",
        "T2",
        "T3",
        "TA",
        "TI",
        "TT",
        "TY",
        "U1",
        "U2",
        "U3",
        "U4",
        "U5",
        "UR",
        "VL",
        "VO",
        "WP",
        "WT",
        "WV",
        "Y1",
        "Y2",
    ]
)
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
OF_INSTITUTIONS = ("THES", "RPRT")
FREE_TEXT = ("AB", "N1", "N2")
CUT_LIST = re.compile(r"author list (?:is )?incomplete|\(et al\.?\)", re.IGNORECASE)
OTHERS = re.compile(r"^(?:[Ee]t al\.?|others|and others)$|,?\s+et al\.?$")  # "Others" may be somebody's name


def tag_of(line: str, loose: bool) -> tuple[str, str] | None:
    r"""Tag and value of a line, or None; a loosely written one only with a tag that RIS has.

    >>> tag_of("TI  - A title", False), tag_of("ti\t-\tA title", True), tag_of("AI - is no tag", True)
    (('TI', 'A title'), ('TI', 'A title'), None)
    """
    if match := TAG.match(line):
        return match[1], match[2] or ""
    if (match := LOOSE_TAG.match(line)) and match[1].upper() in KNOWN_TAGS:
        tag = match[1].upper()
        # Only the ends of a record are sure signs in a file that is otherwise strict.
        if loose or tag == "TY" or (tag == "ER" and not match[2]):
            return tag, match[2]
    return None


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
    loose = True  # until a TY shows how the file is written
    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip("\r\n").lstrip("\ufeff")
        # A strict file may hold a loose line; but inside free text "ID - …" is text.
        free = entry is None or (bool(entry.values) and entry.values[-1][0] in FREE_TEXT)
        found = tag_of(line, loose or (not free and line.lstrip()[:2].isupper()))
        if found is None:
            # A line without a tag goes on with the value above; before the first tag it is a database's banner.
            if entry is not None and entry.values and line.strip():
                tag, value = entry.values[-1]
                entry.values[-1] = (tag, f"{value} {clean(line)}".strip())
            continue
        tag, value = found[0], clean(found[1])
        if tag == "TY":
            loose = TAG.match(line) is None
            # An ID that comes before its TY belongs to it.
            early = entry.values if entry and not entry.all("TY", *TITLE_TAGS) else []
            if entry is not None and not early:
                yield entry
            entry = Entry(number, [(tag, value), *early])
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
    title, status = split_status(inline_text(entry.first(*TITLE_TAGS)))
    links = [
        clean_url(link) for value in entry.all(*LINK_TAGS) for link in re.split(r"\s*;\s*|\s+", value) if link
    ]
    accession = [value for value in entry.all("AN", "M1", "M3", "C7", "ID", "N1") if "arxiv" in value.lower()]
    stated_doi = entry.first("DO") or next(
        (v for v in entry.all("M3", "N1", "L3", "AN") if v.lower().startswith(("doi", "10."))), ""
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
    authors, et_al, notes = read_authors(entry, kind)
    date = best_date(entry)
    pages = pages_text(
        "–".join(dict.fromkeys(part for part in (entry.first("SP"), entry.first("EP")) if part))
    )
    page_links = list(dict.fromkeys(link for link in links if IS_LINK.match(link) and "doi.org/" not in link))
    if len(page_links) > 1:
        notes.append(f"further links: {' '.join(page_links[1:])}")
    venue = next((v for t in VENUE_TAGS if (v := entry.first(t)) and v != title), "")
    publisher = entities(entry.first("PB"))
    if not venue and kind in OF_INSTITUTIONS:
        venue = publisher
    what = KINDS.get(kind, "paper")
    if what == "website" and (doi or arxiv):
        what = "paper"
    if entry.first("M3").lower() in OUR_KINDS:
        what = entry.first("M3").lower()
    return Reference(
        title=title,
        authors=authors,
        et_al=et_al,
        year=year_of(date),
        date=date,
        venue=venue_text(entities(venue)),
        volume=entry.first("VL"),
        issue=entry.first("IS", "CP"),
        pages=pages,
        publisher=publisher,
        edition=entry.first("ET"),
        arxiv_id=arxiv,
        arxiv_version=version,
        doi=doi,
        url=page_links[0] if page_links else None,
        kind=what,
        key=entry.first("ID") or f"record {number}",
        status=status or stated_status(entry),
        abstract=entities(entry.first("AB", "N2")),
        notes=tuple(notes),
    )


def stated_status(entry: Entry) -> str:
    notes = " ".join(entry.all("N1", "C1"))
    return next((word.lower() for word in ("RETRACTED", "WITHDRAWN") if word in notes), "")


def read_authors(entry: Entry, kind: str) -> tuple[tuple[Name, ...], bool, list[str]]:
    """Authors in the order of the file, whether the list was cut, notes; what of A2 to A4 depends on the type."""
    tags: tuple[str, ...] = AUTHOR_TAGS
    if kind not in PARTS or not entry.all(*AUTHOR_TAGS):
        tags = (*AUTHOR_TAGS, *FURTHER_AUTHOR_TAGS)
    listed = [entities(value) for value in entry.all(*tags) or entry.all("ED")]
    et_al = any(CUT_LIST.search(note) for note in entry.all("N1"))
    notes = []
    found: list[Name] = []
    for value in listed:
        pieces = [piece for part in JOINED.split(value) if (piece := part.strip())]
        if len(pieces) > 1:
            notes.append(f"{len(pieces)} authors stood in one line and were split")
        for piece in pieces:
            text = OTHERS.sub("", piece)
            et_al = et_al or text != piece
            if LIST.match(text):
                found.extend(split_family_first(text).names)
            elif text.strip(" ,"):
                found.append(family_first(text))
    return tuple(one for one in found if one["family"]), et_al, notes


IS_LINK = re.compile(r"(?:https?://|ftp://|www\.)\S", re.IGNORECASE)
# "Doe, J., Roe, R." and "Doe, J. & Roe, R."
LIST = re.compile(r"[^,]+,\s*(?:[^\W\d_]\.[\s-]?)+\s*(?:,|&)\s*[^,]+,\s*(?:[^\W\d_]\.[\s-]?)+")
# " and " only behind initials: "Smith, J. and Doe, A." are two, "Barnes and Noble" is one.
JOINED = re.compile(r"\s*;\s*|(?<=\.)\s+and\s+(?=[^,]+,)")


def best_date(entry: Entry) -> str:
    """The year of PY or Y1, refined by DA where that says more about the same year."""
    main = read_date(entry.first("PY", "Y1", "YR"))
    fine = read_date(entry.first("DA"))
    if not main:
        return fine
    return fine if fine.startswith(main) and len(fine) > len(main) else main
