"""What a record is matched by: identifiers, the title's key, a page's address; and its signature."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from ingest.identifiers import arxiv_id, doi_key, url_key
from ingest.names import family_key
from ingest.references import Reference
from kb.text import fold, title_key

SHORT_TITLE = 16  # letters; below, a title says little without its author ("Introduction", "Mamba")
COMPARED_AUTHORS = 10
EDITION = {"second": "2", "third": "3", "fourth": "4", "fifth": "5", "revised": "r"}
NOT_IDENTITY = frozenset(("number", "key", "notes", "links", "truncated", "date", "abstract"))

Key = tuple[str, str]  # scheme and value, as stored in the Identifier table


@dataclass(frozen=True, slots=True)
class Keys:
    """A record seen by the matcher."""

    strong: tuple[Key, ...] = ()  # arXiv, DOI, OpenAlex, Semantic Scholar, OpenReview
    title: str = ""
    page: str = ""  # the address of a web page or piece of software
    author: str = ""
    families: frozenset[str] = frozenset()
    complete: bool = False  # the author list was not cut and its borders are certain
    year: int | None = None
    web: bool = False
    soft: tuple[Key, ...] = ()
    all: tuple[Key, ...] = ()  # strong and soft: asked for a dozen times each


def keys_of(reference: Reference) -> Keys:
    """The keys of a reference.

    >>> keys_of(Reference(title="Mamba", authors=({"family": "Gu"},), arxiv_id="2312.00752")).all
    (('arxiv', '2312.00752'), ('title', 'mamba/gu'))
    """
    strong: list[Key] = []
    linked = arxiv_id(reference.url) if reference.url else None
    arxiv = reference.arxiv_id or (linked.id if linked else None)
    if arxiv:
        strong.append(("arxiv", arxiv))
    if key := doi_key(reference.doi):
        strong.append(("doi", key))
    if reference.openalex_id:
        strong.append(("openalex", reference.openalex_id))
    if reference.s2_id:
        strong.append(("s2", reference.s2_id))
    page = url_key(reference.url) if reference.url and not linked else ""
    web = bool(page) and not reference.is_paper
    if page.startswith("openreview.net/forum?id="):
        strong.append(("url", page))
        page, web = "", False
    families = tuple([family_key(author["family"]) for author in reference.authors[:COMPARED_AUTHORS]])
    author = families[0] if families else ""
    title = "" if reference.title_truncated else title_key(reference.title)
    if title and len(title) < SHORT_TITLE:
        title = f"{title}/{author}"
    if title and reference.edition:
        edition = fold(reference.edition)
        title += f"#{EDITION.get(edition, re.sub(r'[^0-9a-z]', '', edition.removesuffix('th')))}"
    page = page if web else ""
    soft: list[Key] = [("title", title)] if title else []
    if page:
        soft.append(("title", f"url:{page}"))
    return Keys(
        strong=tuple(strong),
        title=title,
        page=page,
        author=author,
        families=frozenset(families),
        complete=bool(families)
        and not reference.et_al
        and reference.authors_certain
        and not (reference.truncated and not reference.title)
        and len(reference.authors) <= COMPARED_AUTHORS,
        year=reference.year,
        web=web,
        soft=tuple(soft),
        all=(*strong, *soft),
    )


def signature(fields: dict[str, Any], rank: int) -> str:
    """Equal for records that say the same: they are one node for the matcher and for a work's fields.

    `fields` comes from `Reference.as_json`, whose order is fixed, so its text is a normal form.
    """
    relevant = [(key, value) for key, value in fields.items() if key not in NOT_IDENTITY]
    return hashlib.blake2b(repr((rank, relevant)).encode(), digest_size=12).hexdigest()


def identifier_rows(keys: Keys, reference: Reference) -> list[Key]:
    """What is stored for a record: its keys, and its address as an identifier that people may look up."""
    rows = list(dict.fromkeys(keys.all))
    if reference.url and (address := url_key(reference.url)) and ("url", address) not in rows:
        rows.append(("url", address))
    return rows
