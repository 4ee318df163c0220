"""Fields as exports write them, made alike for every reader: names with suffixes, markup, pages, years, venues."""

from __future__ import annotations

import html
import re
from typing import Any

from ingest.names import VANCOUVER, Name, given_first, is_organisation, name

# Only what cannot be initials: "Smith, SA" and "Li, AG" are persons.
COMPANY = re.compile(
    r"^(?:inc|incorporated|ltd|limited|llc|corp|corporation|co\.|company|gmbh|plc|pty|pte)\b[\w\s.,&]*$", re.I
)
SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv|2nd|3rd)\.?$", re.IGNORECASE)
# Behind a given name also these are suffixes; alone they may be initials.
LATE_SUFFIX = re.compile(r"^(?:jr|sr|ii|iii|iv|v|vi|2nd|3rd|ph\.?\s?d|m\.?d|esq)\.?$", re.IGNORECASE)
AT_END = re.compile(r"^(.*\S)(?:\s*,\s*|\s+)((?:[JS]r\.?|II|III|IV))$", re.IGNORECASE)


def person(family: str, given: str = "", suffix: str = "") -> Name:
    """A name whose suffix stands by itself, wherever the source put it.

    >>> person("King", "Martin Luther, Jr."), person("Smith III", "J.")
    ({'family': 'King', 'given': 'Martin Luther', 'suffix': 'Jr.'}, {'family': 'Smith', 'given': 'J.', 'suffix': 'III'})
    """
    if not suffix and given:
        if match := AT_END.match(given):
            given, suffix = match.groups()
        elif match := AT_END.match(family):
            family, suffix = match.groups()
    found = name(family, given)
    suffix = suffix.strip(" ,")
    return {**found, "suffix": suffix} if suffix and found["family"] else found


def organisation(text: str) -> Name:
    """A name that is not to be taken apart: "Inc." keeps its stop."""
    return {"family": " ".join(text.split())}


def family_first(text: str) -> Name:
    """`Family, Given`, with a suffix in any of its places; EndNote's organisations; without a comma `Given Family`.

    >>> family_first("King, Jr., Martin"), family_first("OpenAI Team,"), family_first("Barnes,, Noble & Sons")
    ({'family': 'King', 'given': 'Martin', 'suffix': 'Jr.'}, {'family': 'OpenAI Team'}, {'family': 'Barnes, Noble & Sons'})
    >>> family_first("Acme, Inc."), family_first("Jan van der Berg")
    ({'family': 'Acme, Inc.'}, {'family': 'van der Berg', 'given': 'Jan'})
    """
    text = text.strip()
    if ",," in text:
        return organisation(text.replace(",,", ",").rstrip(", "))
    if text.endswith(",") and "," not in text[:-1]:
        return organisation(text[:-1])
    parts = [part for piece in text.split(",") if (part := piece.strip())]
    if len(parts) > 1 and COMPANY.match(parts[1]):
        return organisation(text.rstrip(", "))
    if len(parts) > 1:
        return from_parts(parts)
    if not is_organisation(text) and (vancouver := VANCOUVER.match(text)):
        return person(vancouver["family"], vancouver["given"])  # "Doe JA"
    return given_name_first(text)


def from_parts(parts: list[str]) -> Name:
    """What stood between commas: family, given and perhaps a suffix, as second part (BibTeX) or third (RIS)."""
    if len(parts) == 2:
        return person(parts[0], "", parts[1]) if SUFFIX.match(parts[1]) else person(*parts)
    if LATE_SUFFIX.match(parts[-1]) and not SUFFIX.match(parts[1]):
        return person(parts[0], parts[1], parts[-1])
    suffix = parts[1] if LATE_SUFFIX.match(parts[1]) else ""
    return person(parts[0], parts[-1] if suffix else ", ".join(parts[1:]), suffix)


def given_name_first(text: str) -> Name:
    """A name for display, `Given Family`, or an organisation.

    >>> given_name_first("Gemini Team"), given_name_first("Martin Luther King Jr.")
    ({'family': 'Gemini Team'}, {'family': 'King', 'given': 'Martin Luther', 'suffix': 'Jr.'})
    """
    text = " ".join(text.split())
    if is_organisation(text):
        return organisation(text)
    suffix = ""
    if (match := AT_END.match(text)) and " " in match[1]:
        text, suffix = match[1].rstrip(","), match[2]
    return person(*given_first(text), suffix)


ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});")
INLINE = re.compile(
    r"</?(?:jats:)?(?:i|b|u|em|strong|italic|bold|sub|sup|inf|sc|scp|tt|small|span|underline|monospace|roman|"
    r"styled-content|inline-formula|alternatives|title)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
BREAK = re.compile(r"</?(?:jats:)?(?:br|p|sec)(?:\s[^<>]*)?/?>", re.IGNORECASE)
FORMULA = re.compile(r"<(mml:)?math\b.*?</(?:mml:)?math>", re.DOTALL | re.IGNORECASE)
TWICE_SAID = re.compile(r"<((?:mml:)?annotation|(?:jats:)?tex-math)\b.*?</\1>", re.DOTALL | re.IGNORECASE)
AROUND_TAG = re.compile(r"\s*(</?[A-Za-z][^<>]*>)\s*")


def entities(text: str) -> str:
    """HTML's entities as characters, also where a database escaped them twice.

    >>> entities("A &amp;amp; B &#233; AT&T; R&D")
    'A & B é AT&T; R&D'
    """
    for _ in range(2 if "&" in text else 0):
        text = ENTITY.sub(lambda match: html.unescape(match[0]), text)
    return text


def inline_text(text: str) -> str:
    """A title without the markup of its letters. MathML stays, as formulas of BibTeX do, without blanks inside.

    >>> inline_text("A <jats:italic>b</jats:italic> &amp; H<sub>2</sub>O <br/>x < 3")
    'A b & H2O x < 3'
    """
    text = entities(text)
    if "<" not in text:
        return " ".join(text.split())
    if "math" in text:
        text = TWICE_SAID.sub("", text)
        text = FORMULA.sub(lambda match: AROUND_TAG.sub(r"\1", match[0]), text)
    return " ".join(INLINE.sub("", BREAK.sub(" ", text)).split())


RANGE = re.compile(r"(?<=\w)\s*(?:--+|[–—]|(?<=\d)-(?=\w?\d))\s*(?=\w)")


def pages_text(text: str) -> str:
    """A range of pages with an en dash; a hyphen inside a page's own number stays.

    >>> pages_text("611--626"), pages_text("12-15, 20-22"), pages_text("S-12"), pages_text("1:1--1:24")
    ('611–626', '12–15, 20–22', 'S-12', '1:1–1:24')
    """
    return RANGE.sub("–", text)


ARXIV_VENUE = re.compile(
    r"^(?:arxiv(?:\.org)?|corr|computing research repository)\b(?:\s*(?:\(cornell university\)|e-?prints?|preprints?|server))*"
    r"[\s:,;]*(?:(?:arxiv:|abs/)?[\w.-]*/?\d[\d.]*(?:v\d+)?)?(?:\s*\[[\w., -]+\])?\W*$",
    re.IGNORECASE,
)


def venue_text(text: str) -> str:
    """A venue as it is; the many ways to name the preprint server are one.

    >>> venue_text("arXiv preprint arXiv:2305.12345v2"), venue_text("CoRR"), venue_text("Corr. Sci.")
    ('arXiv', 'arXiv', 'Corr. Sci.')
    """
    return "arXiv" if ARXIV_VENUE.match(text) else text


def year_number(value: Any) -> int | None:
    """A year that came as number, as float or as text.

    >>> year_number("2020"), year_number(2020.0), year_number(True), year_number("n.d."), year_number("²")
    (2020, 2020, None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    match = re.match(r"\s*(\d{4})(?!\d)", str(value)) if isinstance(value, int | str) else None
    return int(match[1]) if match and 1000 <= int(match[1]) <= 2200 else None
