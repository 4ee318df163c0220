"""CSL-JSON (Zotero, pandoc, Crossref's content negotiation) → references, one object at a time."""

from __future__ import annotations

import re
from typing import Any

from ingest.identifiers import find_arxiv
from ingest.names import Name, given_first, name
from ingest.records import arxiv_and_doi, clean, date_from_parts, read_date, split_status, year_of
from ingest.references import Reference

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
    "post": "website", "post-weblog": "website", "dataset": "website",
}  # fmt: skip


def looks_like_csl(data: Any) -> bool:
    """Whether a decoded object is a CSL item: one of its types, and a title, authors or a date as CSL has them."""
    if not isinstance(data, dict) or data.get("type") not in TYPES:
        return False
    return any(key in data for key in ("title", "author", "issued", "container-title", "DOI"))


def parse_csl_item(data: dict[str, Any], number: int = 0) -> Reference:
    """One item; raises ValueError where nothing in it says which work is meant.

    >>> parse_csl_item({"id": "a", "type": "book", "title": "T", "issued": {"date-parts": [["2016", 10]]}}).date
    '2016-10'
    """
    title, status = split_status(first_text(data.get("title")))
    url = clean(data.get("URL"))
    note = clean(data.get("note"))
    arxiv, version, doi = arxiv_and_doi(clean(data.get("DOI")), url, *arxiv_fields(data))
    if arxiv is None and (told := find_arxiv(f"{first_text(data.get('container-title'))} {note}")):
        arxiv, version = told.id, told.version
    if not title and not doi and not arxiv and not url:
        raise ValueError("neither title nor identifier")
    names = data.get("author") or data.get("editor") or []
    authors = tuple(
        one for author in (names if isinstance(names, list) else [names]) if (one := read_author(author))
    )
    date = read_issued(data.get("issued")) or read_issued(data.get("published"))
    kind = KINDS.get(str(data.get("type")), "paper")
    if kind == "website" and (doi or arxiv):
        kind = "paper"
    pages = clean(data.get("page")).replace("--", "–").replace("-", "–")
    return Reference(
        title=title,
        authors=tuple(one for one in authors if one["family"].lower() not in ("others", "et al.")),
        et_al=any(one["family"].lower() in ("others", "et al.") for one in authors),
        year=year_of(date),
        date=date,
        venue=first_text(data.get("container-title")),
        volume=clean(data.get("volume")),
        issue=clean(data.get("issue")),
        pages=pages,
        publisher=clean(data.get("publisher")),
        edition=clean(data.get("edition")),
        arxiv_id=arxiv,
        arxiv_version=version,
        doi=doi,
        url=url if url and "doi.org/" not in url else None,
        kind=kind,
        key=clean(data.get("id")) or clean(data.get("citation-key")) or f"record {number}",
        status=status or ("retracted" if re.search(r"\bRETRACTED\b", note) else ""),
        abstract=clean(re.sub(r"<[^>]+>", " ", first_text(data.get("abstract")))),
    )


def arxiv_fields(data: dict[str, Any]) -> list[str]:
    """Where programs put an arXiv id: `number` (Zotero), `archive_location`, "arXiv: …" in the note."""
    found = [clean(data.get("archive_location"))] if "arxiv" in clean(data.get("archive")).lower() else []
    for key in ("number", "arxiv", "eprint"):
        value = clean(data.get(key))
        if "arxiv" in value.lower() or (key != "number" and value):
            found.append(value)
    found += re.findall(r"arxiv\s*:\s*\S+", clean(data.get("note")), re.IGNORECASE)
    return found


def first_text(value: Any) -> str:
    """Crossref's CSL has lists where CSL has strings."""
    if isinstance(value, list):
        return clean(value[0]) if value else ""
    return clean(value)


def read_author(author: Any) -> Name | None:
    """A CSL name with particles in any of their places, an organisation, or plain text."""
    if isinstance(author, str):
        family, given = author.split(",", 1) if "," in author else given_first(author)
        return name(family, given)
    if not isinstance(author, dict):
        return None
    literal = clean(author.get("literal") or author.get("name"))
    if literal:
        return {"family": literal}
    particles = [clean(author.get(key)) for key in ("dropping-particle", "non-dropping-particle")]
    family = " ".join(part for part in (*particles, clean(author.get("family"))) if part)
    given = clean(author.get("given"))
    return name(family, given) if family or given else None


def read_issued(issued: Any) -> str:
    """`date-parts`, `raw`, `literal`, or plain text."""
    if isinstance(issued, dict):
        parts = date_from_parts(issued.get("date-parts"))
        return parts or read_date(clean(issued.get("raw") or issued.get("literal") or issued.get("year")))
    return read_date(clean(issued))
