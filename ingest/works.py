"""A work's own columns as a function of its records' fields, and its slug."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ingest.identifiers import url_key
from ingest.names import family_key
from ingest.references import Reference
from kb.text import fold, plain_title, title_key

STOPWORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "on",
        "in",
        "for",
        "to",
        "and",
        "or",
        "with",
        "from",
        "by",
        "via",
        "is",
        "are",
        "be",
        "at",
        "as",
        "towards",
        "toward",
        "into",
        "using",
        "use",
        "its",
        "it",
        "this",
        "that",
        "what",
        "how",
        "why",
        "can",
        "do",
        "does",
        "did",
        "you",
        "we",
        "your",
        "our",
        "not",
        "all",
    ]
)
RANKS = {
    "curated": 4,
    "crossref-work": 3,
    "openalex": 3,
    "arxiv": 3,
    "s2": 3,
    "bibtex": 2,
    "ris": 2,
    "csl-json": 2,
}


def source_rank(kind: str, subject: bool = False) -> int:
    """How far a source is trusted for a field's spelling: look-ups, records about the work, reference lists.

    A Crossref record describes its own work well and the works it cites badly.
    """
    return 3 if subject else RANKS.get(kind, 1)


def work_fields(statements: Sequence[tuple[int, Reference]]) -> dict[str, Any]:
    """The columns of a work from (rank, reference) of each of its records; the order does not matter."""
    if len(statements) == 1:
        return single_fields(statements[0][1])
    references = [reference for _, reference in statements]
    title = best(statements, title_quality, lambda one: one.plain_title)
    who = best_reference(statements, authors_quality)
    arxiv = sorted({one.arxiv_id for one in references if one.arxiv_id})
    dois = sorted({one.doi for one in references if one.doi}, key=lambda value: (value.lower(), value))
    urls = sorted({one.url for one in references if one.url}, key=lambda value: (len(value), value))
    return {
        "title": title or "",
        "title_key": title_key(title or ""),
        **author_fields(who),
        "year": min((one.year for one in references if one.year), default=None),
        "venue": best(statements, venue_quality, lambda one: one.venue) or "",
        "kind": kind_of_work(references),
        "arxiv_id": arxiv[0] if arxiv else None,
        "doi": dois[0] if dois else None,
        "url": urls[0] if urls else None,
        "url_key": url_key(urls[0]) if urls else "",
        "status": max((one.status for one in references), default=""),
        "abstract": max((one.abstract for one in references), key=lambda text: (len(text), text), default=""),
    }


def single_fields(one: Reference) -> dict[str, Any]:
    """The columns of a work that one record states."""
    title = one.plain_title
    return {
        "title": title,
        "title_key": title_key(title),
        **author_fields(one if one.authors else None),
        "year": one.year,
        "venue": one.venue,
        "kind": one.kind,
        "arxiv_id": one.arxiv_id,
        "doi": one.doi,
        "url": one.url,
        "url_key": url_key(one.url),
        "status": one.status,
        "abstract": one.abstract,
    }


def author_fields(who: Reference | None) -> dict[str, Any]:
    """The columns about authors, from the record with the best list."""
    authors = list(who.authors) if who else []
    return {
        "authors": authors,
        "first_author": authors[0]["family"] if authors else "",
        "authors_truncated": bool(who and (who.et_al or (who.truncated and not who.year))),
        "authors_key": "+".join(family_key(author["family"]) for author in authors[:3])
        if len(authors) > 1
        else "",
    }


Quality = Callable[[int, Reference], tuple[Any, ...] | None]


def best_reference(statements: Iterable[tuple[int, Reference]], quality: Quality) -> Reference | None:
    rated = [
        (found, reference)
        for rank, reference in statements
        if (found := quality(rank, reference)) is not None
    ]
    return max(rated, key=lambda pair: pair[0])[1] if rated else None


def best(
    statements: Iterable[tuple[int, Reference]], quality: Quality, value: Callable[[Reference], str]
) -> str | None:
    found = best_reference(statements, quality)
    return value(found) if found else None


def title_quality(rank: int, one: Reference) -> tuple[Any, ...] | None:
    """Whole titles first, then better sources, then the spelling that kept its capitals ("AWQ", not "Awq")."""
    if not one.title:
        return None
    plain = one.plain_title
    capitals = sum(map(str.isupper, plain))
    shouting = capitals > 0.6 * sum(map(str.isalpha, plain))
    return (not one.title_truncated, rank, not shouting, capitals, plain == one.title, plain)


def authors_quality(rank: int, one: Reference) -> tuple[Any, ...] | None:
    if not one.authors:
        return None
    spelt = sum(len(author.get("given", "")) for author in one.authors)
    names = "|".join(f"{author['family']},{author.get('given', '')}" for author in one.authors)
    return (
        rank > 3,
        one.authors_certain,
        not one.et_al and not one.truncated,
        rank,
        len(one.authors),
        spelt,
        names,
    )


def venue_quality(rank: int, one: Reference) -> tuple[Any, ...] | None:
    if not one.venue:
        return None
    return (one.venue != "arXiv", not one.truncated, rank, len(one.venue), one.venue)


def kind_of_work(references: Sequence[Reference]) -> str:
    """A link says more than silence: a page stays a page unless a record gives a paper's identifier."""
    kinds = {one.kind for one in references}
    if "book" in kinds:
        return "book"
    pages = sorted(kinds - {"paper"})
    if pages and not any(one.arxiv_id or one.doi for one in references):
        return pages[0]
    return "paper"


def slug_words(title: str) -> list[str]:
    """Words of a title; hyphens stay ("ultra-performance")."""
    return re.findall(r"[^\W_]+(?:-[^\W_]+)*", fold(title))


def slug_candidates(fields: dict[str, Any]) -> Iterable[str]:
    """Readable slugs from short to long: `lin-2023-awq`, `vaswani-2017-attention`, then with more words.

    >>> next(iter(slug_candidates({"title": "AWQ: Activation-aware", "first_author": "Lin", "year": 2023})))
    'lin-2023-awq'
    """
    author = re.sub(r"[^a-z0-9]+", "-", fold(fields["first_author"])).strip("-") or "anonymous"
    year = str(fields["year"] or "nd")
    title = plain_title(fields["title"])
    head = slug_words(title.split(":")[0]) if ":" in title else []
    start = head if 0 < len(head) <= 3 and sum(map(len, head)) <= 24 else []
    words = [word for word in slug_words(title) if word not in STOPWORDS]
    if not words and not start:
        tail = re.sub(
            r"[^a-z0-9]+", "-", fold(fields.get("url_key") or fields.get("doi") or "untitled")
        ).strip("-")
        start = ["-".join(tail.split("-")[-3:])]
    base = start or words[:1]
    rest = words[len(base) :]
    yield "-".join([author, year, *base])
    for count in range(1, 5):
        if count <= len(rest):
            yield "-".join([author, year, *base, *rest[:count]])
    full = "-".join([author, year, *base, *rest[:4]])
    for number in range(2, 10):
        yield f"{full}-{number}"
    said = json.dumps([title, fields.get("arxiv_id"), fields.get("doi"), fields.get("url_key")])
    mark = hashlib.blake2b(said.encode(), digest_size=3).hexdigest()
    yield f"{full}-{mark}"
    for number in itertools.count(2):
        yield f"{full}-{mark}-{number}"
