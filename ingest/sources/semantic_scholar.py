"""Semantic Scholar papers → references; `fetch_s2` asks for papers in batches and for what they cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ingest.errors import RecordMissing
from ingest.identifiers import arxiv_id, doi, s2_id
from ingest.records import Item, Listing, broken, clean, read_date, split_status, year_of
from ingest.references import Reference
from ingest.sources.fields import (
    family_first,
    given_name_first,
    inline_text,
    pages_text,
    venue_text,
    year_number,
)

if TYPE_CHECKING:
    from ingest.http import Http

BATCH = 500  # https://api.semanticscholar.org/api-docs: papers in one POST
PAGE_SIZE = 1000
SMALL_FIELDS = (
    "paperId,corpusId,externalIds,title,year,publicationDate,authors,venue,journal,url,publicationTypes"
)
FIELDS = f"{SMALL_FIELDS},abstract,referenceCount"


def looks_like_s2(data: Any) -> bool:
    """Whether a decoded object is a Semantic Scholar paper, or one row of a reference or citation list."""
    if not isinstance(data, dict):
        return False
    inner = data.get("citedPaper") or data.get("citingPaper") or data
    return isinstance(inner, dict) and "paperId" in inner


def parse_s2_paper(data: Mapping[str, Any]) -> Reference:
    """One paper; raises ValueError where it has neither title nor identifier."""
    data = data.get("citedPaper") or data.get("citingPaper") or data
    ids = data.get("externalIds") if isinstance(data.get("externalIds"), dict) else {}
    assert isinstance(ids, dict)
    title, status = split_status(inline_text(clean(data.get("title"))))
    preprint = arxiv_id(clean(ids.get("ArXiv")))
    found_doi = doi(clean(ids.get("DOI")))
    if found_doi and (of_doi := arxiv_id(found_doi)):
        preprint, found_doi = preprint or of_doi, None
    if not title and not found_doi and preprint is None:
        raise ValueError("neither title nor identifier")
    journal = data.get("journal") if isinstance(data.get("journal"), dict) else {}
    assert isinstance(journal, dict)
    date = read_date(clean(data.get("publicationDate")))
    year = year_number(data.get("year")) or year_of(date)
    listed = data.get("authors")
    authors = [
        clean(author.get("name") if isinstance(author, dict) else author)
        for author in (listed if isinstance(listed, list) else [])
    ]
    identifier = s2_id(clean(data.get("paperId")))
    return Reference(
        title=title,
        authors=tuple(
            family_first(text) if "," in text else given_name_first(text) for text in authors if text
        ),
        year=year,
        date=date if year_of(date) == year else str(year or ""),
        venue=venue_text(inline_text(clean(data.get("venue")) or clean(journal.get("name")))),
        volume=clean(journal.get("volume")),
        pages=pages_text(clean(journal.get("pages")).replace(" ", "")),
        arxiv_id=preprint.id if preprint else None,
        doi=found_doi,
        s2_id=identifier,
        kind="book" if "Book" in (data.get("publicationTypes") or []) else "paper",
        key=identifier or "",
        status=status,
        abstract=clean(data.get("abstract")),
    )


def api_id(text: str) -> str | None:
    """An identifier as the API takes it: its own, a corpus id, a DOI or an arXiv id.

    >>> api_id("CorpusID:215416146"), api_id("2309.06180v1"), api_id("10.1145/3600006.3613165"), api_id("some words")
    ('CorpusId:215416146', 'ARXIV:2309.06180', 'DOI:10.1145/3600006.3613165', None)
    """
    if arxiv := arxiv_id(text):
        return f"ARXIV:{arxiv.id}"
    if found := doi(text):
        return f"DOI:{found}"
    if found := s2_id(text):
        return f"CorpusId:{found.removeprefix('corpus:')}" if found.startswith("corpus:") else found
    return None


def fetch_s2(http: Http, ids: list[str], *, cited: bool = True) -> Iterator[Item | Listing]:
    """Papers, five hundred in one request; then for each the papers that it cites."""
    known = {}
    for given in ids:
        identifier = api_id(given)
        if identifier is None:
            yield broken(f"s2:{given}", "not a Semantic Scholar id, DOI or arXiv id", given)
        else:
            known[identifier] = given
    wanted = list(known)
    for start in range(0, len(wanted), BATCH):
        part = wanted[start : start + BATCH]
        answer = http.post_json("s2", "/graph/v1/paper/batch", {"fields": FIELDS}, {"ids": part})
        papers = answer if isinstance(answer, list) else []
        for place, identifier in enumerate(part):
            data = papers[place] if place < len(papers) else None
            if not isinstance(data, dict):
                yield broken(f"s2:{known[identifier]}", "Semantic Scholar has no such paper")
                continue
            try:
                subject = parse_s2_paper(data)
            except ValueError as error:
                yield broken(f"s2:{known[identifier]}", str(error), data)
                continue
            expected = data.get("referenceCount")
            if not cited or not expected:
                yield Listing(subject, (), None)
                continue
            references = tuple(fetch_references(http, clean(data.get("paperId"))))
            yield Listing(subject, references, expected if isinstance(expected, int) else None)


def fetch_references(http: Http, paper: str) -> Iterator[Item]:
    """The papers that one paper cites, until the API says there are no more or sends an empty page."""
    offset, number = 0, 0
    while True:
        try:
            page = http.get_json(
                "s2", f"/graph/v1/paper/{paper}/references",
                {"fields": SMALL_FIELDS, "offset": offset, "limit": PAGE_SIZE},
            )  # fmt: skip
        except RecordMissing:
            return
        rows = page.get("data") if isinstance(page, dict) else None
        if not rows:
            return
        for row in rows:
            number += 1
            try:
                yield replace(parse_s2_paper(row), number=number)
            except (ValueError, AttributeError) as error:
                yield broken(f"s2:{paper} reference {number}", str(error), row)
        following = page.get("next")
        if not isinstance(following, int) or following <= offset:
            return
        offset = following
