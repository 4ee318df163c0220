"""What readers yield: references, and records that could not be read, each with its place and reason."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingest.identifiers import arxiv_id, doi
from ingest.references import Reference
from kb.text import nfc

EXCERPT_CHARACTERS = 120


@dataclass(frozen=True)
class BrokenRecord:
    """A record that could not be read; the records around it were."""

    locator: str  # "line 12", "record 3", or the entry's key
    reason: str
    excerpt: str = ""
    hint: str = ""  # what to do about it, where there is something

    def as_json(self) -> dict[str, Any]:
        shown = {"locator": self.locator, "reason": self.reason, "excerpt": self.excerpt}
        return {**shown, "hint": self.hint} if self.hint else shown


Item = Reference | BrokenRecord
Items = Iterator[Item]


def broken(locator: str, reason: str, text: object = "", hint: str = "") -> BrokenRecord:
    excerpt = " ".join(str(text)[: 4 * EXCERPT_CHARACTERS].split())[:EXCERPT_CHARACTERS]
    return BrokenRecord(locator, reason, excerpt, hint)


def now() -> str:
    """The time as records, sources and decisions keep it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


YEAR = re.compile(r"(?<!\d)(1[5-9]\d\d|20\d\d)(?!\d)")
MONTHS = {
    name: n
    for n, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], start=1
    )
}


def month_number(text: str) -> int | None:
    """`mar`, `March`, `03`, `3`.

    >>> month_number("Sept."), month_number("11"), month_number("spring")
    (9, 11, None)
    """
    text = text.strip().lower()
    if match := re.match(r"0?(\d{1,2})(?!\d)", text):
        return int(match[1]) if 1 <= int(match[1]) <= 12 else None
    return MONTHS.get(text[:3])


def iso_date(year: int | None, month: int | None = None, day: int | None = None) -> str:
    """A date as precise as its parts: "2016-10"; "" without a year.

    >>> iso_date(2016, 10), iso_date(2024), iso_date(None, 3), iso_date(2018, 13, 1)
    ('2016-10', '2024', '', '2018')
    """
    if year is None:
        return ""
    if month is None or not 1 <= month <= 12:
        return f"{year:04d}"
    if day is None or not 1 <= day <= calendar.monthrange(year or 1, month)[1]:
        return f"{year:04d}-{month:02d}"
    return f"{year:04d}-{month:02d}-{day:02d}"


def date_from_parts(parts: Any) -> str:
    """CSL and Crossref `date-parts` of any completeness → ISO 8601; one list too few or floats do no harm.

    >>> date_from_parts([[2016, 10]]), date_from_parts([["2024"]]), date_from_parts([[None]]), date_from_parts([])
    ('2016-10', '2024', '', '')
    >>> date_from_parts(["2020"]), date_from_parts([2020.0, 5]), date_from_parts([[["2020", "03"]]]), date_from_parts([["x"]])
    ('2020', '2020-05', '2020-03', '')
    """
    while isinstance(parts, list) and parts and isinstance(parts[0], list):
        parts = parts[0]
    if isinstance(parts, str):
        return read_date(parts)
    if not isinstance(parts, list) or not parts:
        return ""
    if isinstance(parts[0], str) and len(parts[0].strip()) > 4:
        return read_date(parts[0])  # ["2020-05-01"]
    numbers = [date_number(part) for part in parts[:3]]
    year = numbers[0] if numbers[0] and 1000 <= numbers[0] <= 2200 else None
    return iso_date(year, *numbers[1:])


def date_number(part: Any) -> int | None:
    """One part of a date; None for what is no number."""
    if isinstance(part, bool):
        return None
    if isinstance(part, float):
        return int(part) if part.is_integer() else None
    match = re.fullmatch(r"\s*(\d{1,4})(?:\.0)?\s*", str(part)) if isinstance(part, int | str) else None
    return int(match[1]) if match else None


def read_date(text: str) -> str:
    """A date in one of the ways that exports write it, as ISO 8601 of the same precision.

    >>> read_date("2020///"), read_date("2023/04/01/Spring"), read_date("15 March 2021"), read_date("2019-07")
    ('2020', '2023-04-01', '2021-03-15', '2019-07')
    >>> read_date("03/15/2021"), read_date("n.d."), read_date("c2017")
    ('2021-03-15', '', '2017')
    """
    text = text.strip()
    if match := re.match(r"(\d{4})(?:[-/.](\d{1,2})?(?:[-/.](\d{1,2})?)?)?(?![\d-])(?!\s+[A-Za-z]{3})", text):
        return iso_date(*(int(g) if g else None for g in match.groups()))
    if match := re.match(r"(\d{1,2})/(\d{1,2})/(\d{4})$", text):
        first, second, year = (int(g) for g in match.groups())
        return iso_date(year, second, first) if first > 12 else iso_date(year, first, second)
    if match := re.match(r"(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})$", text):
        return iso_date(int(match[3]), int(match[2]), int(match[1]))
    year_match = YEAR.search(text)
    if year_match is None:
        return ""
    year = int(year_match[0])
    for word in re.findall(r"[A-Za-z]{3,}", text):
        if month := MONTHS.get(word[:3].lower()):
            rest = text.replace(year_match[0], " ", 1)
            day = re.search(r"(?<!\d)(\d{1,2})(?!\d)", rest)
            return iso_date(year, month, int(day[1]) if day else None)
    return str(year)


def year_of(date: str) -> int | None:
    return int(date[:4]) if date[:4].isdigit() else None


RETRACTED = re.compile(r"^\W*(retracted|withdrawn)\b(?:\s+(?:article|paper))?\W*", re.IGNORECASE)


RETRACTED_BEHIND = re.compile(
    r"(?<=\S)\s*[\[(](retracted|withdrawn)(?:\s+(?:article|paper))?[\])]\W*$", re.IGNORECASE
)


def split_status(title: str) -> tuple[str, str]:
    """A title without a retraction mark in front or behind, and the status that it states.

    >>> split_status("RETRACTED: A finding"), split_status("Retracted Nature of things"), split_status("A paper [Retracted]")
    (('A finding', 'retracted'), ('Retracted Nature of things', ''), ('A paper', 'retracted'))
    """
    if behind := RETRACTED_BEHIND.search(title):
        return title[: behind.start()], behind[1].lower()
    match = RETRACTED.match(title)
    if match is None or not re.search(r"[:\-–—\]]\s*$", match[0]):
        return title, ""
    return title[match.end() :], match[1].lower()


def arxiv_and_doi(*texts: str) -> tuple[str | None, int | None, str | None]:
    """The arXiv id with version and the DOI that any of these fields states; arXiv's own DOIs are arXiv ids."""
    identifier: str | None = None
    version: int | None = None
    found_doi: str | None = None
    for text in texts:
        if not text:
            continue
        arxiv = arxiv_id(text)
        if arxiv is not None:
            if identifier in (None, arxiv.id):
                identifier, version = arxiv.id, version or arxiv.version
            continue
        found_doi = found_doi or doi(text)
    return identifier, version, found_doi


NOT_TEXT = re.compile("[\0\ud800-\udfff]")


def sound(text: str) -> str:
    """Text that a database takes: a NUL is a blank, half of a surrogate pair is a replacement character.

    >>> sound("a\\0b"), sound("a\\ud800b")
    ('a b', 'a\ufffdb')
    """
    if text.isascii() and "\0" not in text:  # nearly all
        return text
    return NOT_TEXT.sub(lambda match: " " if match[0] == "\0" else "\ufffd", text)


def clean(text: Any) -> str:
    """Any scalar as one line of NFC text; "" for what is no scalar. A whole float is written without its point."""
    if text is None:
        return ""
    if isinstance(text, str):
        return nfc(sound(text)) if text else ""
    if isinstance(text, float) and not math.isfinite(text):
        return ""
    if isinstance(text, float) and text.is_integer():
        text = int(text)
    return str(text) if isinstance(text, int | float) and not isinstance(text, bool) else ""


@dataclass(frozen=True)
class Listing:
    """A work with the works that it cites, as one source lists them."""

    subject: Reference
    references: tuple[Item, ...] = ()
    expected: int | None = None  # how many the source says there are

    @property
    def shortfall(self) -> int:
        """How many fewer than promised were read."""
        read = sum(isinstance(item, Reference) for item in self.references)
        return max(0, (self.expected or 0) - read)
