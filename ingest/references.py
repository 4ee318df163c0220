"""One reference string → a `Reference`: authors, title, year, venue, identifiers, kind.

Quoted styles (IEEE, Chicago, MLA), year in brackets after the authors (APA, natbib), year between full stops
(ACM, Harvard), year at the end (plain, Vancouver, LNCS). Nothing is completed: what the string does not say stays
empty, and a string that was cut is marked `truncated`.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from ingest.identifiers import ARXIV, arxiv_id, doi, find_arxiv, find_urls
from ingest.kinds import kind_of
from ingest.latex import to_text
from ingest.names import Name, drop_suffixes
from ingest.styles import SPLITTERS, STYLES, YEAR, detect_style
from ingest.tail import read_tail
from kb.text import nfc, plain_title

__all__ = ["Reference", "parse_reference", "reference_from_json"]

LONGEST = (
    12_000  # characters; the longest author lists of physics stay below, what lies above is no reference
)
MARKER = re.compile(
    # [12], [DFE+22], [Dao et al., 2022], [Dao and Gu (2024a)], (12), 12.
    r"^\s*(?:\[(?:\d{1,4}|[A-Z][\w+]{1,12}|[^\[\]\d]{2,60}\(?(?:19|20)\d\d[a-z]?\)?)\]|\(\d{1,4}\)|"
    r"\d{1,4}[.)](?=\s+[^\s\d]))\s*"
)
ELLIPSIS = re.compile(r"(?:…|\.\.\.)\s*$")
# What a survey's web page adds to a row: links, "find", an arrow, an arXiv link behind a dash.
PAGE_MARKS = re.compile(r"\]\(|(?<=[.…])\s+find$|↗$|— \[?arXiv:\S+$")
# Page numbers of the citing document behind the last full stop: "arXiv:2306.13649. 12, 13".
BACK_REFERENCES = re.compile(r"(?<=[.…])\s+\d{1,3}(?:,\s*\d{1,3})*\s*$")
EDITION_IN_TITLE = re.compile(
    r"[,.]?\s*\(?((?:\d+(?:st|nd|rd|th)|second|third|fourth|fifth|revised)\s+ed)\w*\.?\)?$", re.IGNORECASE
)
ENTITY = re.compile(r"&(?:#\d{1,6}|#[xX][\da-fA-F]{1,6}|[A-Za-z]{2,8});")
# "{\'e}", "\\v{c}", "{\\o}", "\\&": letters that lost their spelling to LaTeX; braces that keep capitals stay.
TEX_ACCENTED = r"""\\(?:[`'^"~=.]\s?(?:\{\\?[A-Za-z]\}|\\?[A-Za-z])|[uvHcdkrb](?:\{\\?[A-Za-z]\}|\s[A-Za-z])|(?:ss|[oOlL]|ae|AE|oe|OE|aa|AA|i)(?:\{\}|\b))"""
TEX_LETTER = re.compile(rf"\{{{TEX_ACCENTED}\}}|{TEX_ACCENTED}")
MAY_HOLD_SUFFIX = re.compile(r"[,\s](?:[JS]r|II|III|IV)\b")
YEAR_AT_END = re.compile(rf"(?:,\s*|\s*\.\s*)\(?({YEAR})\)?$")


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference or entry as one source states it. `title` is literal; `plain_title` is for readers."""

    title: str = ""
    authors: tuple[Name, ...] = ()
    et_al: bool = False
    authors_certain: bool = True  # False where a list had lost its commas and borders were guessed
    year: int | None = None
    date: str = ""  # ISO 8601, as precise as the source: "2016-10"
    venue: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    publisher: str = ""
    edition: str = ""
    arxiv_id: str | None = None
    arxiv_version: int | None = None
    doi: str | None = None
    url: str | None = None
    openalex_id: str | None = None
    s2_id: str | None = None
    kind: str = "paper"  # paper | book | software | website | product
    number: int | None = None  # position in the source's list
    key: str = ""  # the entry's own key
    truncated: bool = False  # the source cut this row
    title_truncated: bool = False
    status: str = ""  # "retracted" or "withdrawn"
    abstract: str = ""
    links: tuple[dict[str, str], ...] = ()  # evidence beside the row, such as a card on a survey page
    notes: tuple[str, ...] = ()

    @property
    def plain_title(self) -> str:
        return plain_title(self.title)

    @property
    def is_paper(self) -> bool:
        return self.kind in ("paper", "book")

    @property
    def first_author(self) -> str:
        return self.authors[0]["family"] if self.authors else ""

    def as_json(self) -> dict[str, Any]:
        """The fields that say something, for `Record.fields`; always in the same order."""
        data: dict[str, Any] = {}
        for key, value in zip(NAMES, VALUES(self), strict=True):
            if value or (value == 0 and value is not False):
                data[key] = list(value) if type(value) is tuple else value
        if self.authors_certain:
            del data["authors_certain"]
        else:
            data["authors_certain"] = False
        return data


NAMES = tuple(field.name for field in fields(Reference))
VALUES = attrgetter(*NAMES)
FIELDS = frozenset(NAMES)


def reference_from_json(data: dict[str, Any]) -> Reference:
    """The inverse of `Reference.as_json`; unknown keys are ignored."""
    known = {key: value for key, value in data.items() if key in FIELDS}
    for key in ("authors", "links", "notes"):
        if key in known:
            known[key] = tuple(known[key])
    return Reference(**known)


def parse_reference(text: str, style: str | None = None, number: int | None = None) -> Reference:
    """Reads one reference of a reference list.

    >>> r = parse_reference("T. Dao, “Flashattention-2: Faster attention,” arXiv preprint arXiv:2307.08691, 2023.")
    >>> r.title, r.first_author, r.year, r.arxiv_id, r.venue
    ('Flashattention-2: Faster attention', 'Dao', 2023, '2307.08691', 'arXiv')
    >>> r = parse_reference("Smith, J. (2020). Alpha [Computer software]. https://doi.org/10.5281/zenodo.1234567")
    >>> r.title, r.year, r.doi
    ('Alpha [Computer software]', 2020, '10.5281/zenodo.1234567')
    """
    cut = len(text) > LONGEST
    text = nfc(text[:LONGEST])
    marked = "](" in text or "— " in text or text.endswith(("find", "↗"))
    if marked and PAGE_MARKS.search(text):  # a row pasted from a web page, with the page's links
        from ingest.sources.survey_page import strip_additions

        text, _ = strip_additions(text)
    text = MARKER.sub("", text, count=1)
    if "&" in text and ";" in text:
        text = ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if "\\" in text:
        text = TEX_LETTER.sub(lambda match: to_text(match[0]), text)
    if MAY_HOLD_SUFFIX.search(text):
        text = drop_suffixes(text)
    if text[-1:].isdigit():
        text = BACK_REFERENCES.sub("", text)
    truncated = cut or text.endswith(("…", "..."))
    if truncated:
        text = ELLIPSIS.sub("", text)
    urls = find_urls(text)
    found = find_arxiv(text)
    style = style if style in STYLES else detect_style(text, truncated=truncated)
    names, title, tail_text, year = SPLITTERS[style](text)
    title, title_year = trim_title(title, tail_text)
    edition = ""
    if "ed" in title[-12:].lower() and (match := EDITION_IN_TITLE.search(title)):
        edition, title = match[1].split()[0], title[: match.start()].rstrip(" ,(")
    title_truncated = truncated and bool(title) and not tail_text.strip(" .,")
    tail = read_tail(tail_text, arxiv=found is not None, year_known=year is not None)
    year = year or tail.year or title_year
    url = main_url(text, urls, truncated=truncated and not tail.after_url)
    printed_doi = doi(text)
    if printed_doi and arxiv_id(printed_doi):
        found, printed_doi = found or arxiv_id(printed_doi), None
    reference = Reference(
        title=title,
        authors=names.names,
        et_al=names.et_al,
        authors_certain=names.certain,
        year=year,
        date=str(year) if year else "",
        venue=tail.venue,
        volume=tail.volume,
        issue=tail.issue,
        pages=tail.pages,
        publisher=tail.publisher,
        edition=edition or tail.edition,
        arxiv_id=found.id if found else None,
        arxiv_version=found.version if found else None,
        doi=printed_doi,
        url=url,
        number=number,
        truncated=truncated,
        title_truncated=title_truncated,
    )
    # An address that was cut does not count as link but still tells the host.
    kind = kind_of(reference, tail_text, url or (urls[-1] if urls else None))
    return reference if kind == "paper" else replace(reference, kind=kind)


def trim_title(title: str, tail: str) -> tuple[str, int | None]:
    """The title without closing punctuation, and without a year that the source set inside the quotes."""
    title = title.strip().rstrip(",;:").strip()
    title = title.rstrip(".").strip()
    year = None
    if title[-1:] in "0123456789)" and (match := YEAR_AT_END.search(title)):
        stated = re.findall(rf"\b{YEAR}\b", re.sub(ARXIV, "", tail))
        if not stated or match[1] in stated:
            year, title = int(match[1]), title[: match.start()].rstrip(" ,.")
    return title, year


def main_url(text: str, urls: list[str], *, truncated: bool) -> str | None:
    """The link that the reference gives; None where the string was cut inside it."""
    if not urls:
        return None
    if truncated and text.rstrip().endswith(urls[-1]):
        urls = urls[:-1]
    # A single word behind the address at the very end is what is left of an underscore ("…/open llama").
    lost = re.search(r"Available:\s*(https?://\S+)\s+([a-z]\w*)$", text)
    if lost and urls and lost[1] == urls[-1]:
        return f"{urls[-1]}_{lost[2]}"
    kept = [url for url in urls if not re.search(r"//(?:dx\.)?doi\.org/", url)]
    return kept[-1] if kept else None
