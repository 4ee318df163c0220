"""One reference string → a `Reference`: authors, title, year, venue, identifiers, kind.

Quoted styles (IEEE, Chicago, MLA), year in brackets after the authors (APA, natbib), year between full stops
(ACM, Harvard), year at the end (plain, Vancouver, LNCS). Nothing is completed: what the string does not say stays
empty, and a string that was cut is marked `truncated`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Any

from ingest.identifiers import ARXIV, arxiv_id, doi, find_arxiv, find_urls
from ingest.kinds import kind_of
from ingest.names import (
    IS_INITIALS,
    VANCOUVER,
    Name,
    Names,
    is_organisation,
    name,
    split_family_first,
    split_given_first,
    split_run_together,
    split_vancouver,
    strip_et_al,
)
from ingest.tail import read_tail, split_title
from kb.text import nfc, plain_title

__all__ = ["Reference", "parse_reference", "reference_from_json"]

LONGEST = (
    12_000  # characters; the longest author lists of physics stay below, what lies above is no reference
)
WORD_LENGTH = 40
STYLES = ("quoted", "author-year", "acm", "lncs", "plain")
MARKER = re.compile(r"^\s*(?:\[(?:\d{1,4}|[A-Z][\w+]{1,12})\]|\(\d{1,4}\)|\d{1,4}[.)](?=\s+[^\s\d]))\s*")
ELLIPSIS = re.compile(r"(?:…|\.\.\.)\s*$")
# What a survey's web page adds to a row: links, "find", an arrow, an arXiv link behind a dash.
PAGE_MARKS = re.compile(r"\]\(|(?<=[.…])\s+find$|↗$|— \[?arXiv:\S+$")
# Page numbers of the citing document behind the last full stop: "arXiv:2306.13649. 12, 13".
BACK_REFERENCES = re.compile(r"(?<=[.…])\s+\d{1,3}(?:,\s*\d{1,3})*\s*$")
YEAR = r"(?:1[6-9]|20)\d\d"
YEAR_IN_BRACKETS = re.compile(rf"\(\s*(?P<year>{YEAR})[a-z]?(?:,[^()]*)?\)\s*[.,:]?\s+|\(n\.\s?d\.\)\.?\s+")
YEAR_BETWEEN_STOPS = re.compile(rf"[.,]\s+\(?(?P<year>{YEAR})[a-z]?\)?\.\s+")
CLOSING = re.compile('[”“»"]')
CLOSING_TEX = re.compile("''|[\"”]")
QUOTED = re.compile(r"(?:^|[\s,.;:(])(?P<open>[“„«\"]|``)(?=\S)")
AFTER_TITLE = re.compile(r"(?:Accessed|URL|https?:|arXiv|doi|DOI|Available|Retrieved|\[Online)")
LONG_WORD_AND_STOP = re.compile(r"[^\W\d_]{3,}\.\s")
SENTENCE = re.compile(r"[.?!]\s+[^\W\d_]{4,}\s+(?!(?:and|amd|und)\b)[a-z]{3,}")
FAMILY_FIRST = r"[^\W\d_][^,.;:\d]{0,40},\s+(?:[^\W\d_]{1,2}\.[\s-]?)+"
FAMILY_FIRST_LIST = re.compile(
    rf"{FAMILY_FIRST}(?:(?:,\s*|\s*)(?:(?:and|&)\s+)?{FAMILY_FIRST})*(?:,?\s*et al\.?,?\s+)?"
)
EDITION_IN_TITLE = re.compile(
    r"[,.]?\s*\(?((?:\d+(?:st|nd|rd|th)|second|third|fourth|fifth|revised)\s+ed)\w*\.?\)?$", re.IGNORECASE
)
YEAR_AT_END = re.compile(rf"(?:,\s*|\s*\.\s*)\(?({YEAR})\)?$")
YEAR_BEFORE_QUOTE = re.compile(rf"[.,\s]\(?({YEAR})[a-z]?\)?$")
AND = re.compile(r"\s+(?:and|&)\s")
LNCS = re.compile(r"^(?P<authors>[^:“\"?]{3,2000}?(?:[^\W\d_]\.|et al\.?)):\s+(?=\S)")


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
        for key in NAMES:
            value = getattr(self, key)
            if value is None or value == "" or value is False or value == ():
                continue
            data[key] = list(value) if type(value) is tuple else value
        if self.authors_certain:
            del data["authors_certain"]
        else:
            data["authors_certain"] = False
        return data


NAMES = tuple(field.name for field in fields(Reference))
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
    if match := EDITION_IN_TITLE.search(title):
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


def detect_style(text: str, *, truncated: bool = False) -> str:
    """Which of STYLES a reference is written in."""
    brackets, stops = YEAR_IN_BRACKETS.search(text), YEAR_BETWEEN_STOPS.search(text)
    if (match := QUOTED.search(text)) and closing_quote(text, match.end("open"), match["open"]) is not None:
        # A quotation inside a title is not the title: "Smith, J. (2020). The “what-if” question. …"
        start = match.start("open")
        if all(year is None or year.end() >= start for year in (brackets, stops)):
            return "quoted"
    lncs = LNCS.match(text)
    if lncs and not (brackets and brackets.start() < lncs.end()):
        return "lncs"
    if brackets and len(text) - brackets.end() > 8 and not (stops and stops.start() < brackets.start()):
        return "author-year"
    if stops:
        before = text[: stops.start()]
        titled = AFTER_TITLE.match(text, stops.end()) and LONG_WORD_AND_STOP.search(before)
        if not titled and "://" not in before and not SENTENCE.search(before):
            return "acm"
    first = text.split(",", 2)
    if truncated and not stops and len(first) > 2 and IS_INITIALS.match(first[1].strip()):
        return "author-year"  # cut inside the author list
    return "plain"


def closing_quote(text: str, start: int, opening: str) -> int | None:
    """Where the title that opened at `start` closes: the outermost quotation wins over quotes inside the title.

    A closing mark ends the title if the title's punctuation stands before it; else the last mark does.
    """
    last = None
    for match in (CLOSING_TEX if opening == "``" else CLOSING).finditer(text, start):
        position, mark = match.start(), match[0]
        after = text[match.end() : match.end() + 1]
        if text[position - 1] in ",.?!" and (not after or after in " ,.;:)[("):
            return position
        if mark != opening or not after or not after.isalnum():
            last = position
    return last


def split_quoted(text: str) -> tuple[Names, str, str, int | None]:
    match = QUOTED.search(text)
    if match is None:
        return split_plain(text)
    end = closing_quote(text, match.end("open"), match["open"])
    if end is None:
        return split_plain(text)
    before = text[: match.start("open")].strip(" ,.(")
    year = None
    if dated := YEAR_BEFORE_QUOTE.search(before):  # Chicago author-date
        year, before = int(dated[1]), before[: dated.start()]
    return read_names(before), text[match.end("open") : end], text[end:].lstrip("”“»\"'"), year


def split_author_year(text: str) -> tuple[Names, str, str, int | None]:
    match = YEAR_IN_BRACKETS.search(text)
    if match is None:
        cut = text.split("(")[0] if text.count("(") and re.search(r"\(\d{0,4}$", text) else text
        return read_names(cut.strip(" .")), "", "", None
    title, tail = split_title(text[match.end() :])
    return (
        read_names(text[: match.start()].strip(" ,")),
        title,
        tail,
        int(match["year"]) if match["year"] else None,
    )


def split_acm(text: str) -> tuple[Names, str, str, int | None]:
    match = YEAR_BETWEEN_STOPS.search(text)
    if match is None:
        return split_plain(text)
    title, tail = split_title(text[match.end() :])
    return (
        read_names(text[: match.start() + 1].strip(" ,"), run_together=True),
        title,
        tail,
        int(match["year"]),
    )


def split_lncs(text: str) -> tuple[Names, str, str, int | None]:
    match = LNCS.match(text)
    if match is None:
        return split_plain(text)
    title, tail = split_title(text[match.end() :])
    return read_names(match["authors"]), title, tail, None


def split_plain(text: str) -> tuple[Names, str, str, int | None]:
    """Authors. Title. Venue, year. The authors end at the first full stop that no initial owns."""
    if match := FAMILY_FIRST_LIST.match(text):
        title, tail = split_title(text[match.end() :])
        if title:
            return split_family_first(match[0].strip(" ,")), title, tail, None
    if (cut := end_of_initials(text)) is not None:
        title, tail = split_title(text[cut:])
        return split_given_first(text[:cut].rstrip(", ")), *split_book_title(title, tail), None
    vancouver = bool(VANCOUVER.match(text.split(",")[0].split(".")[0]))
    for match in re.finditer(r"\.\s+", text):
        before = text[: match.start()]
        last = re.split(r"[\s.]", before[-WORD_LENGTH:])[-1]
        initial = len(last) <= 2 and last[:1].isupper() and not (vancouver and before[-2:-1] != ".")
        if initial and not (vancouver and VANCOUVER.match(before.split(",")[-1].strip())):
            continue
        title, tail = split_title(text[match.end() :])
        if not title:
            break
        return read_names(before, run_together=False), title, tail, None
    if find_urls(text) or re.search(YEAR, text):
        title, tail = split_title(text)
        return Names(()), title, tail, None
    return Names(()), text.strip(" ."), "", None


def end_of_initials(text: str) -> int | None:
    """Where a title starts behind a comma: "I. Goodfellow, Y. Bengio, and A. Courville, Deep Learning. MIT Press"."""
    position = 0
    for chunk in text.split(","):
        name_like = re.sub(r"^\s*(?:and|&)\s+", "", chunk.strip())
        if not position and not re.match(r"(?:[^\W\d_]\.[\s-]?)+[^\W\d_]", name_like):
            return None
        words = name_like.split()
        if position and words and words[0][-1:] != "." and name_like[0].isupper():
            # A full stop inside is a title's end, unless it closes the list of names.
            return position + len(chunk) - len(chunk.lstrip()) if len(words[0]) > 2 else None
        if re.search(r"[^\W\d_]{3,}\.\s", chunk) or "et al" in chunk:
            return None
        position += len(chunk) + 1
    return None


def split_book_title(title: str, tail: str) -> tuple[str, str]:
    """The title before an edition that follows behind a comma: "Programming, 3rd ed., vol. 1"."""
    if match := re.search(
        r",\s*(?=(?:\d+(?:st|nd|rd|th)|second|third|revised)\s+ed\b)", title, re.IGNORECASE
    ):
        return title[: match.start()], f"{title[match.end() :]}. {tail}"
    return title, tail


SPLITTERS = {
    "quoted": split_quoted,
    "author-year": split_author_year,
    "acm": split_acm,
    "lncs": split_lncs,
    "plain": split_plain,
}


def read_names(text: str, run_together: bool = False) -> Names:
    """Chooses the order in which a list of names is written, from its first entries."""
    text = text.strip()
    if not text or not re.search(r"\w", text):
        return Names(())
    listed, et_al = strip_et_al(text)
    chunks = [chunk.strip() for chunk in listed.split(",") if chunk.strip()]
    if not chunks:
        return Names((), et_al)
    if len(chunks) > 1 and IS_INITIALS.match(AND.split(chunks[1])[0].strip()):
        return split_family_first(text)
    if IS_INITIALS.match(chunks[0].split()[0]) and len(chunks[0].split()) > 1:
        if run_together and len(chunks) == 1 and len(re.findall(r"[^\W\d_]\.\s+[^\W\d_]{2,}", listed)) > 2:
            return split_run_together(text)
        return split_given_first(text.rstrip("."))
    if all(VANCOUVER.match(chunk) for chunk in chunks[:3]) and not is_organisation(chunks[0]):
        return split_vancouver(text)
    if len(chunks) > 1 and ";" in listed:
        return split_family_first(text)
    words = len(chunks[0].split())
    if len(chunks) > 1 and words == 1 and not is_organisation_like(chunks[0]) and len(chunks[1].split()) <= 2:
        # Chicago and MLA turn the first name round: "Vaswani, Ashish, Noam Shazeer, and Niki Parmar".
        first = name(chunks[0], re.split(r"\s+and\s", chunks[1])[0])
        rest = split_given_first(listed.split(",", 2)[2]) if len(chunks) > 2 else Names(())
        return Names((first, *rest.names), et_al)
    if run_together and len(chunks) == 1 and words > 4 and not is_organisation(chunks[0].split(" and ")[0]):
        return split_run_together(text)
    if words > 3 and run_together and re.search(r"\sand\s", chunks[0]) and len(chunks) == 1:
        return split_run_together(text)
    return split_given_first(text.rstrip("."))


def is_organisation_like(text: str) -> bool:
    """A single word that is no family name: "NVIDIA", "ggerganov", "vLLM"."""
    return text.isupper() or text.islower() or bool(re.search(r"[a-z][A-Z]|\d", text))


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
