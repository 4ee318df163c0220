"""Crossref work JSON: a work and its reference list.

In a reference, the DOI decides identity and the `unstructured` text wins over the split fields, which are often
wrong: an author list as `volume-title`, a year taken from an arXiv id.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, NamedTuple

from ingest.errors import UnreadableSource
from ingest.identifiers import arxiv_id, doi, find_arxiv
from ingest.names import Name, name
from ingest.records import clean, date_from_parts, split_status
from ingest.references import Reference, parse_reference
from ingest.sources.fields import entities, inline_text, organisation, pages_text, person, venue_text
from kb.text import nfc

# The best statement of when a work appeared; a later entry only refines the same month.
DATES = ("issued", "published", "published-print", "published-online", "posted")
BOOKS = ("book", "monograph", "edited-book", "reference-book")
MOJIBAKE = re.compile(r"(?<=\w)\?(?=\w)|\w\?(?=\s[A-Z][a-z]+\b)")


class CrossrefWork(NamedTuple):
    """A work, its references in order, and how many Crossref says it has."""

    subject: Reference
    references: tuple[Reference, ...]
    stated_count: int | None = None


def looks_like_crossref(data: Any) -> bool:
    """Whether decoded JSON is one Crossref work, with or without the API's envelope."""
    message = data.get("message", data) if isinstance(data, dict) else None
    return isinstance(message, dict) and "DOI" in message and ("type" in message or "reference" in message)


def parse_crossref(content: str | bytes | dict[str, Any]) -> CrossrefWork:
    """Reads one Crossref work."""
    try:
        data = json.loads(content) if isinstance(content, str | bytes) else content
    except ValueError as error:
        raise UnreadableSource(f"not JSON ({error})", hint="give a Crossref work as JSON") from error
    if not looks_like_crossref(data):
        raise UnreadableSource(
            "not a Crossref work", hint="expected the answer of https://api.crossref.org/works/DOI"
        )
    message = data.get("message", data)
    listed = message.get("reference")
    # A null keeps its number, and the count that Crossref states shows that it is missing.
    references = tuple(
        parse_listed(entry, number)
        for number, entry in enumerate(listed if isinstance(listed, list) else [], 1)
        if isinstance(entry, dict)
    )
    stated = clean(message.get("reference-count", message.get("references-count")))
    return CrossrefWork(parse_work(message), references, int(stated) if stated.isdecimal() else None)


def parse_work(message: dict[str, Any]) -> Reference:
    """The work itself."""
    printed_doi = doi(message.get("DOI"))
    preprint = arxiv_id(printed_doi)
    date = date_of(message)
    titles, subtitles = texts(message.get("title")), texts(message.get("subtitle"))
    title, marked = split_status(next(iter(titles or texts(message.get("original-title"))), ""))
    if title and subtitles and subtitles[0].lower() not in title.lower():
        title = f"{title}: {subtitles[0]}"
    container = texts(message.get("container-title"))
    kind = "book" if message.get("type") in BOOKS else "paper"
    return Reference(
        title=title,
        authors=tuple(
            author_name(author) for author in objects(message.get("author")) if author_text(author)
        ),
        year=int(date[:4]) if date else None,
        date=date,
        venue=venue_text(container[0]) if container else "",
        volume=clean(message.get("volume")),
        issue=clean(message.get("issue")),
        pages=pages_text(clean(message.get("page"))),
        publisher=entities(clean(message.get("publisher"))),
        edition=clean(message.get("edition-number")),
        arxiv_id=preprint.id if preprint else None,
        doi=None if preprint else printed_doi,
        url=None,
        kind=kind,
        key="subject",
        status=status_of(message, printed_doi) or marked,
        abstract=nfc(re.sub(r"<[A-Za-z/][^>]*>", " ", entities(clean(message.get("abstract"))))),
    )


def status_of(message: dict[str, Any], own: str | None) -> str:
    """Whether the work is "retracted" or "withdrawn", by a notice about it; errata and concerns do not count.

    `updated-by` lists notices about the work. `update-to` makes the record itself a notice about another work,
    unless it names the work's own DOI.
    """
    notices = objects(message.get("updated-by"))
    for update in objects(message.get("update-to")):
        about = doi(update.get("DOI"))
        if about is None or (own and about.lower() == own.lower()):
            notices.append(update)
    types = {str(notice.get("type", "")).lower() for notice in notices}
    if "retraction" in types or "removal" in types:
        return "retracted"
    return "withdrawn" if "withdrawal" in types else ""


def parse_listed(entry: dict[str, Any], number: int) -> Reference:
    """One entry of a reference list."""
    unstructured = clean(entry.get("unstructured"))
    reference = parse_reference(unstructured, number=number) if unstructured else from_fields(entry, number)
    stated = doi(entry.get("DOI"))
    if stated:
        preprint = arxiv_id(stated)
        if preprint:
            reference = replace(reference, arxiv_id=reference.arxiv_id or preprint.id)
        else:
            reference = replace(reference, doi=stated, kind="book" if reference.kind == "book" else "paper")
    notes = list(reference.notes)
    if any(MOJIBAKE.search(f"{one.get('given', '')} {one['family']}") for one in reference.authors):
        notes.append("authors: letters were lost in the source ('?')")
    return replace(reference, key=str(entry.get("key") or ""), notes=tuple(notes))


def from_fields(entry: dict[str, Any], number: int) -> Reference:
    """An entry without text: the split fields are all there is."""
    get = {key: clean(value) for key, value in entry.items()}.get
    title = next(
        (
            text
            for key in ("article-title", "volume-title", "series-title")
            if (text := inline_text(get(key, "")))
        ),
        "",
    )
    year = re.search(r"(?:1[6-9]|20)\d\d", get("year", ""))
    author = entities(get("author", ""))
    book = bool(get("volume-title")) and not get("article-title")
    venue = inline_text(get("journal-title", ""))
    stated = find_arxiv(f"{venue} {get('volume', '')}")
    return Reference(
        title=title.rstrip("."),
        authors=(split_author(author),) if author else (),
        et_al=bool(author),  # Crossref keeps the first author only
        year=int(year[0]) if year else None,
        date=year[0] if year else "",
        venue=venue_text(venue),
        volume=get("volume", ""),
        issue=get("issue", ""),
        pages=get("first-page", ""),
        edition=get("edition", ""),
        arxiv_id=stated.id if stated else None,
        arxiv_version=stated.version if stated else None,
        kind="book" if book and not venue else "paper",
        number=number,
    )


def split_author(text: str) -> Name:
    """Crossref writes the first author "Family Given" or "Family, G."."""
    family, _, given = text.partition(",") if "," in text else text.partition(" ")
    return name(family, given)


def objects(listed: Any) -> list[dict[str, Any]]:
    """The objects of a list, without the nulls that a deposit left in it."""
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def author_name(author: dict[str, Any]) -> Name:
    if author.get("name"):
        return organisation(entities(clean(author["name"])))
    family, given, suffix = (entities(clean(author.get(key))) for key in ("family", "given", "suffix"))
    return person(family, given, suffix)


def author_text(author: dict[str, Any]) -> str:
    return str(author.get("name") or author.get("family") or author.get("given") or "").strip()


def texts(value: Any) -> list[str]:
    """Strings of a Crossref list field, without the markup of letters."""
    values = value if isinstance(value, list) else [value]
    return [text for one in values if (text := inline_text(clean(one)))]


def date_of(message: dict[str, Any]) -> str:
    """ISO date, as precise as the record: the first of DATES, refined by any other date of the same month or year.

    >>> date_of({"issued": {"date-parts": [[2018, 1]]}, "published-online": {"date-parts": [[2018, 1, 24]]}})
    '2018-01-24'
    >>> date_of({"issued": {"date-parts": [[None]]}}), date_of({"issued": {"date-parts": [[2024]]}})
    ('', '2024')
    """
    dates = [
        date_from_parts(value.get("date-parts")) if isinstance(value := message.get(key), dict) else ""
        for key in DATES
    ]
    stated = next((date for date in dates if date), "")
    if len(stated) == 7:  # a day is only taken from the same month
        stated = next((date for date in dates if len(date) == 10 and date.startswith(stated)), stated)
    return stated
