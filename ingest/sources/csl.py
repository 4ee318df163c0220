"""CSL-JSON (Zotero, pandoc, Crossref's content negotiation) → references, one object at a time."""

from __future__ import annotations

import re
from typing import Any

from ingest.identifiers import find_arxiv
from ingest.names import Name
from ingest.records import arxiv_and_doi, clean, date_from_parts, read_date, split_status, year_of
from ingest.references import Reference
from ingest.sources.fields import (
    entities,
    family_first,
    inline_text,
    organisation,
    pages_text,
    person,
    venue_text,
)

TYPES = frozenset(
    [
        "article",
        "article-journal",
        "article-magazine",
        "article-newspaper",
        "bill",
        "book",
        "broadcast",
        "chapter",
        "classic",
        "collection",
        "dataset",
        "document",
        "entry",
        "entry-dictionary",
        "entry-encyclopedia",
        "event",
        "figure",
        "graphic",
        "hearing",
        "interview",
        "legal_case",
        "legislation",
        "manuscript",
        "map",
        "motion_picture",
        "musical_score",
        "pamphlet",
        "paper-conference",
        "patent",
        "performance",
        "periodical",
        "personal_communication",
        "post",
        "post-weblog",
        "preprint",
        "regulation",
        "report",
        "review",
        "review-book",
        "software",
        "song",
        "speech",
        "standard",
        "thesis",
        "treaty",
        "webpage",
    ]
)
KINDS = {
    "book": "book", "collection": "book", "classic": "book", "software": "software", "webpage": "website",
    "post": "website", "post-weblog": "website", "dataset": "website", "monograph": "book", "edited-book": "book",
    "reference-book": "book", "proceedings": "book",
}  # fmt: skip


def looks_like_csl(data: Any) -> bool:
    """Whether a decoded object is a CSL item: one of its types, and a title, authors or a date as CSL has them.

    Without a type that CSL knows, its way to write names, dates or the venue has to show.
    """
    if not isinstance(data, dict):
        return False
    if clean(data.get("type")) in TYPES:
        return any(key in data for key in ("title", "author", "issued", "container-title", "DOI"))
    authors = data.get("author")
    named = isinstance(authors, list) and any(
        isinstance(one, dict) and {"family", "literal", "given"} & one.keys() for one in authors
    )
    shown = named or isinstance(data.get("issued"), dict) or "container-title" in data
    return shown and any(key in data for key in ("title", "DOI", "URL"))


def parse_csl_item(data: dict[str, Any], number: int = 0) -> Reference:
    """One item; raises ValueError where nothing in it says which work is meant.

    >>> parse_csl_item({"id": "a", "type": "book", "title": "T", "issued": {"date-parts": [["2016", 10]]}}).date
    '2016-10'
    """
    title, status = split_status(inline_text(first_text(data.get("title"))))
    url = clean(data.get("URL"))
    note = first_text(data.get("note"))
    venue = inline_text(first_text(data.get("container-title")))
    arxiv, version, doi = arxiv_and_doi(clean(data.get("DOI")), url, *arxiv_fields(data))
    if arxiv is None and (told := find_arxiv(f"{venue} {note}")):
        arxiv, version = told.id, told.version
    if doi is None and (told_doi := re.search(r"^\s*DOI\s*:\s*(\S+)", note, re.IGNORECASE)):
        doi = arxiv_and_doi(told_doi[1])[2]
    if arxiv and version is None and (stated := re.fullmatch(r"v?(\d{1,3})", clean(data.get("version")))):
        version = int(stated[1])
    if not title and not doi and not arxiv and not url:
        raise ValueError("neither title nor identifier")
    names = data.get("author") or data.get("editor") or []
    found = [read_author(one) for one in (names if isinstance(names, list) else [names])]
    authors = tuple(one for one in found if one)
    date = next(
        (date for key in ("issued", "published", "submitted") if (date := read_issued(data.get(key)))), ""
    )
    type_ = clean(data.get("type"))
    kind = KINDS.get(type_, "paper")
    if kind == "website" and (doi or arxiv):
        kind = "paper"
    if clean(data.get("genre")).lower() == "product":
        kind = "product"
    publisher = inline_text(clean(data.get("publisher")))
    return Reference(
        title=title,
        authors=tuple(one for one in authors if one != OTHERS),
        et_al=OTHERS in authors,
        year=year_of(date),
        date=date,
        # A thesis or a report appears with its institution.
        venue=venue_text(venue or (publisher if type_ in ("thesis", "report") else "")),
        volume=clean(data.get("volume")),
        issue=clean(data.get("issue")),
        pages=pages_text(clean(data.get("page"))),
        publisher=publisher,
        edition=clean(data.get("edition")),
        arxiv_id=arxiv,
        arxiv_version=version,
        doi=doi,
        url=url if url and "doi.org/" not in url else None,
        kind=kind,
        key=clean(data.get("id")) or clean(data.get("citation-key")) or f"record {number}",
        status=status
        or (
            "retracted"
            if re.search(r"\bRETRACTED\b", note)
            else "withdrawn"
            if re.search(r"\bWITHDRAWN\b", note)
            else ""
        ),
        abstract=clean(re.sub(r"<[A-Za-z/][^>]*>", " ", entities(first_text(data.get("abstract"))))),
    )


OTHERS: Name = {"family": "et al."}


def arxiv_fields(data: dict[str, Any]) -> list[str]:
    """Where programs put an arXiv id: `number` (Zotero), `archive_location`, "arXiv: …" in the note."""
    found = [clean(data.get("archive_location"))] if "arxiv" in clean(data.get("archive")).lower() else []
    if "arxiv" in (clean(data.get("publisher")).lower(), clean(data.get("archive")).lower()):
        found.append(clean(data.get("number")))
    for key in ("number", "arxiv", "eprint"):
        value = clean(data.get(key))
        if "arxiv" in value.lower() or (key != "number" and value):
            found.append(value)
    found += re.findall(r"arxiv\s*:\s*\S+", first_text(data.get("note")), re.IGNORECASE)
    return found


def first_text(value: Any) -> str:
    """Crossref's CSL has lists where CSL has strings."""
    if isinstance(value, list):
        return clean(value[0]) if value else ""
    return clean(value)


def read_author(author: Any) -> Name | None:
    """A CSL name with particles in any of their places, an organisation, or plain text."""
    text = author if isinstance(author, str) else ""
    if isinstance(author, dict):
        text = clean(author.get("literal") or author.get("name"))
    if text.strip() in ("others", "et al.", "et al", "and others"):  # "Others" may be somebody's name
        return OTHERS
    if isinstance(author, str):
        return family_first(clean(author)) if author.strip() else None
    if not isinstance(author, dict):
        return None
    if text:
        return organisation(text)
    particles = [clean(author.get(key)) for key in ("dropping-particle", "non-dropping-particle")]
    family = " ".join(part for part in (*particles, clean(author.get("family"))) if part)
    given = clean(author.get("given"))
    return person(family, given, clean(author.get("suffix"))) if family or given else None


def read_issued(issued: Any) -> str:
    """`date-parts`, `raw`, `literal`, or plain text."""
    if isinstance(issued, list):
        return date_from_parts(issued)
    if isinstance(issued, dict):
        parts = date_from_parts(issued.get("date-parts"))
        return parts or read_date(clean(issued.get("raw") or issued.get("literal") or issued.get("year")))
    return read_date(clean(issued))
