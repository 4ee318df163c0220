"""BibTeX and BibLaTeX → references: what the fields of an entry say. The grammar is in `bibtex_syntax`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ingest.identifiers import clean_url, doi, find_arxiv, is_scholarly
from ingest.kinds import KINDS as OUR_KINDS
from ingest.kinds import kind_of_link
from ingest.latex import to_text
from ingest.records import (
    BrokenRecord,
    Items,
    arxiv_and_doi,
    broken,
    iso_date,
    month_number,
    read_date,
    split_status,
    year_of,
)
from ingest.references import Reference
from ingest.sources.bibtex_names import parse_names
from ingest.sources.bibtex_parents import with_parents
from ingest.sources.bibtex_syntax import STARTS_LINE, Entry, Unreadable, parse_entries
from ingest.sources.fields import entities, inline_text, pages_text, venue_text

__all__ = ["STARTS_LINE", "parse_bibtex"]

KINDS = {
    "book": "book", "inbook": "paper", "software": "software", "softwareversion": "software", "online": "website",
    "electronic": "website", "www": "website", "webpage": "website", "mvbook": "book", "manual": "product",
    "dataset": "website", "proceedings": "book", "collection": "book", "mvcollection": "book", "mvproceedings": "book",
    "softwaremodule": "software",
}  # fmt: skip
# Entries that appear with an institution instead of in a journal.
OF_INSTITUTIONS = ("phdthesis", "mastersthesis", "thesis", "techreport", "report")
LINK = re.compile(r"\\(?:url|href)\s*\{([^}]*)\}|(https?://[^\s}{\"]+)")
# What a page was found with, not where it appeared.
NO_VENUE = re.compile(
    r"(?:online|accessed|available|web ?(?:site|page)|blog|github|last |url|visited|self)\b", re.IGNORECASE
)


def parse_bibtex(lines: Iterable[str]) -> Items:
    r"""References of a bibliography, in order; entries that cannot be read as BrokenRecord.

    An entry that refers to a later one (`crossref`) comes with that one.

    >>> [r.title for r in parse_bibtex(["@string{b = {Big}}", "@misc{x, title = b # { {LLM}s}}"])]
    ['Big LLMs']
    """
    seen: dict[str, int] = {}
    for item in with_parents(parse_entries(lines)):
        if isinstance(item, BrokenRecord):
            yield item
            continue
        try:
            reference = to_reference(item)
        except Unreadable as error:
            yield broken(item.key or f"line {item.line}", str(error), item.fields)
            continue
        key = item.key or f"line {item.line}"
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            # Two works under one key are as frequent as one work twice; identity decides, not the key.
            reference = replace(
                reference,
                key=f"{key}#{seen[key]}",
                notes=(*reference.notes, f"key {key} is used by {seen[key]} entries"),
            )
        yield reference


def title_text(raw: str) -> str:
    """A title as text; formulas stay as written, for `kb.text.plain_title` to read."""
    if "$" not in raw:
        return to_text(raw)
    pieces = re.split(r"((?<!\\)\$[^$]*(?<!\\)\$)", raw)
    if len(pieces) == 1:
        return to_text(raw)
    kept = [piece if index % 2 else to_text(f"|{piece}|")[1:-1] for index, piece in enumerate(pieces)]
    return " ".join("".join(kept).split())


def url_text(raw: str) -> str:
    """A link: no LaTeX in it but escapes and \\url{…}."""
    link = re.sub(r"\\(?:url|href)\s*\{([^}]*)\}?.*", r"\1", raw.strip())
    return clean_url(re.sub(r"\\([_%&#$~{}])", r"\1", link).strip("{}<> "))


def link_in(raw: str) -> str:
    r"""The first link inside a field of text.

    >>> link_in(r"See \url{github.com/x/y_z}."), link_in("at https://a.org/b, 2020")
    ('https://github.com/x/y_z', 'https://a.org/b')
    """
    match = LINK.search(raw)
    link = url_text(match[1] or match[2]) if match else ""
    return link if not link or "://" in link else f"https://{link}"


def joined(*parts: str) -> str:
    """A title with its subtitle."""
    return ": ".join(part for part in parts if part)


def to_reference(entry: Entry) -> Reference:
    """The entry's fields as a Reference."""
    get = entry.fields.get

    def text(*names: str) -> str:
        """The first of these fields that says something, as plain text."""
        return next((found for name in names if (found := entities(to_text(get(name, ""))))), "")

    title, status = split_status(inline_text(title_text(get("title", ""))))
    if not title and not any(get(name) for name in ("author", "doi", "url", "eprint")):
        raise Unreadable("neither title, author nor identifier")
    title = joined(title, inline_text(title_text(get("subtitle", ""))))
    authors, et_al = parse_names(get("author") or get("editor") or "")
    venue = text("journal", "journaltitle", "shortjournal")
    venue = (
        joined(venue, text("journalsubtitle")) if venue else joined(text("booktitle"), text("booksubtitle"))
    )
    venue = venue_text(venue or text("maintitle", "eventtitle"))
    how = text("howpublished")
    url = url_text(get("url", "")) or next(
        (
            link
            for name in ("howpublished", "note", "ee", "link", "bdsk-url-1", "title")
            if (link := link_in(get(name, "")))
        ),
        "",
    )
    note = text("note", "annote", "addendum")
    archive = (get("archiveprefix") or get("eprinttype") or "").strip(" {}").lower()
    eprint = get("eprint", "").strip(" {}") if archive in ("", "arxiv") else ""
    if re.fullmatch(r"\d{7}(?:v\d+)?", eprint) and text("primaryclass", "eprintclass"):
        eprint = f"{text('primaryclass', 'eprintclass')}/{eprint}"  # an old id without its archive
    arxiv, version, stated_doi = arxiv_and_doi(eprint, get("doi", "").strip(" {}"), url, get("arxivid", ""))
    told_at = f"{text('journal', 'booktitle', 'institution', 'publisher')} {text('volume')} {text('number')}"
    if arxiv is None and (stated := find_arxiv(f"{told_at} {text('pages')} {text('eid')} {note} {how}")):
        arxiv, version = stated.id, stated.version
    if arxiv and version is None and (told := re.fullmatch(r"v?(\d{1,3})", text("version"))):
        version = int(told[1])
    if stated_doi is None and arxiv is None:
        stated_doi = doi(note) or doi(how)
    kind = KINDS.get(entry.type, "paper")
    if entry.type == "misc" and url and not (arxiv or stated_doi or venue) and not is_scholarly(url):
        kind = kind_of_link(url)
    if text("entrysubtype").lower() in OUR_KINDS:
        kind = text("entrysubtype").lower()
    institution = text("school", "institution", "organization")
    if not venue and entry.type in OF_INSTITUTIONS:
        venue = institution or text("publisher")
    if not venue and how and not link_in(get("howpublished", "")) and not NO_VENUE.match(how):
        venue = venue_text(how)
    date = date_of(text("date"), text("year"), text("month"), text("day"))
    for word, meaning in (("withdrawn", "withdrawn"), ("retracted", "retracted")):
        if word in note.lower():
            status = status or meaning
    return Reference(
        title=title,
        authors=authors,
        et_al=et_al,
        year=year_of(date),
        date=date,
        venue=venue,
        volume=text("volume"),
        issue=text("number", "issue"),
        pages="" if find_arxiv(text("pages")) else pages_text(text("pages")),
        publisher=text("publisher") or institution,
        edition=text("edition"),
        arxiv_id=arxiv,
        arxiv_version=version,
        doi=stated_doi,
        url=url or None,
        openalex_id=get("openalex") or None,
        s2_id=get("s2id") or None,
        kind=kind,
        key=entry.key or f"line {entry.line}",
        status=status,
        abstract=text("abstract"),
        notes=tuple(entry.notes),
    )


def date_of(date: str, year: str, month: str, day: str) -> str:
    """biblatex's `date`, or BibTeX's `year` with a month that may hold the day too.

    >>> date_of("", "2020", "10 jan", ""), date_of("", "2020", "march", "3"), date_of("2020-05/2020-06", "", "", "")
    ('2020-01-10', '2020-03-03', '2020-05')
    """
    found = read_date(date) or read_date(year)
    if len(found) != 4 or not month:
        return found
    named = re.search(r"[^\W\d_]{3,}", month)
    number = month_number(named[0] if named else month)
    stated = re.search(r"(?<!\d)(\d{1,2})(?!\d)", day or (month if named else ""))
    return iso_date(int(found), number, int(stated[1]) if stated else None)
