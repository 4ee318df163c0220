"""arXiv's Atom answers → references; `fetch_arxiv` asks for ids, many at a time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from ingest.identifiers import arxiv_id
from ingest.records import Item, Items, arxiv_and_doi, broken, clean, read_date, split_status, year_of
from ingest.references import Reference
from ingest.sources.fields import given_name_first, venue_text

if TYPE_CHECKING:
    from ingest.http import Http

ATOM = "{http://www.w3.org/2005/Atom}"
ARXIV = "{http://arxiv.org/schemas/atom}"
NAMESPACES = {
    "": "http://www.w3.org/2005/Atom",
    "arxiv": "http://arxiv.org/schemas/atom",
    "opensearch": "http://a9.com/-/spec/opensearch/1.1/",
}
DECLARED = re.compile(r"xmlns(?::([\w.-]+))?\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
FEED = re.compile(r"<(?:[\w.-]+:)?(?:feed|entry)\b")
ENTRY = re.compile(r"<((?:[\w.-]+:)?entry)\b([^>]*)>(.*?)</\1\s*>", re.DOTALL)
OPENING = re.compile(r"<(?:[\w.-]+:)?entry\b[^>]*>")
CLOSING = re.compile(r"</(?:[\w.-]+:)?entry\s*>")
TOTAL = re.compile(r"<(?:[\w.-]+:)?totalResults[^>]*>\s*(\d+)")
# Letters that XML does not allow, and an ampersand that begins no entity.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BARE_AMPERSAND = re.compile(r"&(?!#\d+;|#x[0-9a-fA-F]+;|\w+;)")
NAMED_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z]\w*);")
MAX_ENTRY_CHARACTERS = 2_000_000
PAGE_SIZE = 100


def looks_like_arxiv(text: str) -> bool:
    """Whether the beginning of a text is an Atom feed."""
    head = text.lstrip("\ufeff \t\r\n")[:4000]
    return head.startswith("<") and FEED.search(head) is not None and "http://www.w3.org/2005/Atom" in head


def parse_arxiv(lines: Iterable[str]) -> Items:
    """Entries of a feed, one by one: a broken one does not hide the others; any prefix may stand for Atom."""
    buffer = ""
    number = 0
    declared = dict(NAMESPACES)
    for line in lines:
        buffer += line
        if CLOSING.search(line) is None:
            if len(buffer) > MAX_ENTRY_CHARACTERS:
                number += 1
                yield broken(f"entry {number}", "the entry is not closed", buffer[-400:])
                buffer = ""
            continue
        while match := ENTRY.search(buffer):
            number += 1
            declared |= declarations(buffer[: match.start()])
            # A second <entry> inside means that the first one lost its end.
            attributes, inner = match[2], match[3]
            if again := list(OPENING.finditer(inner)):
                yield broken(f"entry {number}", "the entry is not closed", inner)
                number += 1
                attributes, inner = again[-1][0], inner[again[-1].end() :]
            yield parse_entry(inner, number, declared | declarations(attributes))
            buffer = buffer[match.end() :]
    if left := OPENING.search(buffer):
        yield broken(f"entry {number + 1}", "the entry is not closed", buffer[left.start() :])


def declarations(text: str) -> dict[str, str]:
    """The namespaces that a piece of XML declares, by prefix."""
    return {match[1] or "": match[2] or match[3] or "" for match in DECLARED.finditer(text)}


def total_results(text: str) -> int | None:
    """How many entries the feed says there are, over all pages."""
    match = TOTAL.search(text)
    return int(match[1]) if match else None


def parse_entry(inner: str, number: int, namespaces: Mapping[str, str] = NAMESPACES) -> Item:
    text = NAMED_ENTITY.sub(lambda match: html.unescape(match[0]), BARE_AMPERSAND.sub("&amp;", inner))
    text = NOT_XML.sub(" ", text)
    declared = " ".join(
        f"xmlns{':' if prefix else ''}{prefix}={quoteattr(uri)}" for prefix, uri in namespaces.items()
    )
    try:
        entry = ElementTree.fromstring(f"<entry {declared}>{text}</entry>")
    except ElementTree.ParseError as error:
        return broken(f"entry {number}", f"not well-formed XML ({error})", inner)
    identifier = clean(entry.findtext(f"{ATOM}id"))
    title, marked = split_status(clean(entry.findtext(f"{ATOM}title")))
    summary = clean(entry.findtext(f"{ATOM}summary"))
    if "/api/errors" in identifier or title == "Error":
        return broken(identifier or f"entry {number}", summary or "arXiv reports an error", inner)
    found = arxiv_id(identifier)
    if found is None or not title:
        return broken(identifier or f"entry {number}", "no arXiv id or no title", inner)
    names = [clean(author.findtext(f"{ATOM}name")) for author in entry.findall(f"{ATOM}author")]
    comment = clean(entry.findtext(f"{ARXIV}comment"))
    date = read_date(clean(entry.findtext(f"{ATOM}published"))[:10])
    _id, _version, doi = arxiv_and_doi(clean(entry.findtext(f"{ARXIV}doi")).split(" ")[0])
    return Reference(
        title=title,
        authors=tuple(given_name_first(text) for text in names if text and text != ":"),
        year=year_of(date),
        date=date,
        venue=venue_text(clean(entry.findtext(f"{ARXIV}journal_ref"))) or "arXiv",
        arxiv_id=found.id,
        arxiv_version=found.version,
        doi=doi,
        key=found.id,
        status="withdrawn" if re.search(r"\bwithdrawn\b", comment, re.IGNORECASE) else marked,
        abstract=summary,
    )


def fetch_arxiv(http: Http, ids: list[str]) -> Iterator[Item]:
    """Asks arXiv for these ids, a hundred at a time; an id that does not come back is reported."""
    for start in range(0, len(ids), PAGE_SIZE):
        part = ids[start : start + PAGE_SIZE]
        wanted = {base: given for given in part if (found := arxiv_id(given)) and (base := found.id)}
        for given in part:
            if arxiv_id(given) is None:
                yield broken(f"arxiv:{given}", "not an arXiv id", given)
        if not wanted:
            continue
        for item in pages(http, list(wanted), list(wanted.values())):
            if isinstance(item, Reference) and item.arxiv_id:
                wanted.pop(item.arxiv_id, None)
            yield item
        for base in wanted:
            yield broken(f"arxiv:{base}", "arXiv has no such paper, or did not send it")


def pages(http: Http, bases: list[str], given: list[str]) -> Iterator[Item]:
    """Pages until everything asked for came; an empty page before that is asked for once more."""
    seen: set[str] = set()
    retried = False
    while len(seen) < len(bases):
        answer = http.get_text(
            "arxiv",
            "/api/query",
            {"id_list": ",".join(bare(one) for one in given), "start": len(seen), "max_results": PAGE_SIZE},
            fresh=retried,
        )
        new = []
        for item in parse_arxiv(answer.splitlines(keepends=True)):
            if isinstance(item, Reference):
                if item.arxiv_id in seen:
                    continue
                seen.add(item.arxiv_id or "")
                new.append(item)
            yield item
        total = total_results(answer)
        if not new:
            if retried or total is None or len(seen) >= total:
                return
            retried = True
        else:
            retried = False
            if total is not None and len(seen) >= total:
                return


def bare(text: str) -> str:
    """An id as the API takes it, with its version if one was asked for."""
    found = arxiv_id(text)
    if found is None:
        return text
    return found.id + (f"v{found.version}" if found.version else "")
