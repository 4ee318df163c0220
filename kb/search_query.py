"""The query language of search: text in, a small tree out. Nothing a person can type is an error.

word            both words must occur, accents and case do not matter
"two words"     next to each other            quant*          beginning of a word
-word, NOT word must not occur                a OR b          either        a AND b  the same as a b
field:value     title: author: venue: are text; the others in FIELDS are filters
year:2022..2024 also 2022.., ..2024, >=2023, <2020, 2022-2024
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from itertools import pairwise

from kb.identifiers import identify
from kb.text import fold

TEXT_FIELDS = ("title", "author", "venue")
RANGE_FIELDS = ("year", "surveys")
FACET_FIELDS = ("level", "bottleneck", "phase", "training", "lossless", "survey", "kind", "role", "type")
OTHER_FIELDS = ("doi", "arxiv", "id", "key", "tag")
FIELDS = TEXT_FIELDS + RANGE_FIELDS + FACET_FIELDS + OTHER_FIELDS
FIELD_ALIASES = {
    "authors": "author", "au": "author", "ti": "title", "journal": "venue", "booktitle": "venue",
    "date": "year", "levels": "level", "bottlenecks": "bottleneck", "cited": "surveys", "slug": "id",
}  # fmt: skip

MAX_TERMS = 40  # a longer query is cut, with a note: more words cannot make a search of titles more precise
MAX_CHARACTERS = 2_000

WORD = re.compile(r"[^\W_]+")
SYMBOLS = {"#": "sharp", "+": "plus"}
WITH_SYMBOLS = re.compile(r"(?<![^\W_])[^\W_]+[#+]+(?![^\W_])")
CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+|[^\W_A-Za-z\d]+")


def words(text: str) -> list[str]:
    """The folded words of a text: what the index and a query compare.

    >>> words("LLM.int8(): 8-bit Matrix Multiplication")
    ['llm', 'int8', '8', 'bit', 'matrix', 'multiplication']
    """
    return WORD.findall(fold(text))


def spellings(text: str) -> list[str]:
    """Other ways to type the words of a title, kept beside them in the index.

    >>> spellings("FlashAttention-2"), spellings("Llama 2 and QuIP#")
    (['flashattention2', 'flash', 'attention', 'flashattention2'], ['quipsharp', 'qu', 'ip', 'llama2'])
    """
    found: list[str] = []
    for token in WITH_SYMBOLS.findall(text):
        found.append(symbol_word(token))
    for token in text.split():
        parts = WORD.findall(token)
        if len(parts) > 1:
            found.append(fold("".join(parts)))
        for part in parts:
            pieces = CAMEL.findall(part)
            if len(pieces) > 1:
                found.extend(fold(piece) for piece in pieces)
    plain = words(text)
    for left, right in pairwise(plain):
        if left.isalpha() and right.isdigit():
            found.append(left + right)
    return found


def split_name(text: str) -> list[str]:
    """The words of a name with its inner capitals taken apart.

    >>> split_name("FlashAttention"), split_name("SmoothQuant+")
    (['flash', 'attention'], ['smooth', 'quant'])
    """
    return [fold(piece) for part in WORD.findall(text) for piece in CAMEL.findall(part)]


def symbol_word(token: str) -> str:
    """`C++` → `cplusplus`, `QuIP#` → `quipsharp`: words that full-text indexes would cut."""
    return fold("".join(SYMBOLS.get(character, character) for character in token))


@dataclass(frozen=True)
class Term:
    """Words next to each other; the last one may be the beginning of a word."""

    words: tuple[str, ...]
    prefix: bool = False
    field: str = ""  # "" or one of TEXT_FIELDS
    exact: str = ""  # the spelling with its symbols, such as cplusplus
    shown: str = ""


@dataclass(frozen=True)
class Filter:
    """A facet value or a range."""

    field: str
    value: str = ""
    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Clause:
    """Alternatives of which one must hold, or none if negated."""

    options: tuple[Term | Filter, ...]
    negated: bool = False


@dataclass(frozen=True)
class Query:
    text: str
    clauses: tuple[Clause, ...] = ()
    notes: tuple[str, ...] = ()
    lookups: tuple[str, ...] = ()  # what the whole query is if it is an identifier, a key or an exact name

    @property
    def terms(self) -> list[Term]:
        """The positive words, for snippets and suggestions."""
        return [o for c in self.clauses if not c.negated for o in c.options if isinstance(o, Term)]


# (optional minus)(optional field:)(quoted text | anything without blanks)
PIECE = re.compile(
    r'(?P<minus>-)?(?:(?P<field>[A-Za-z]{2,12}):(?!:))?(?:"(?P<phrase>[^"]*)"(?P<star>\*)?|(?P<bare>[^\s"]+))'
)
QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "’": "'", "‘": "'"})
DASHES = str.maketrans(
    {"\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-", "\u2212": "-"}
)


@dataclass
class Reading:
    """What is gathered while a query is read."""

    clauses: list[Clause] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def parse_query(text: str) -> Query:
    """Reads a query; what cannot be meant as syntax is text.

    >>> parse_query('"kv cache" -training year:2022..2024').clauses[0].options[0].words
    ('kv', 'cache')
    """
    original = text
    text = unicodedata.normalize("NFC", text.encode("utf-8", "replace").decode()).replace("\0", " ")
    text = text.translate(QUOTES).translate(DASHES).strip()
    reading = Reading()
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS]
        reading.notes.append(f"only the first {MAX_CHARACTERS} characters were used")
    if text.count('"') % 2:
        head, _, tail = text.rpartition('"')
        text = f"{head} {tail}"
        reading.notes.append("a quotation mark without its partner was read as text; close it for a phrase")
    either = refused = False
    for match in PIECE.finditer(text):
        operator = match["bare"] if not match["minus"] and not match["field"] else ""
        if operator == "OR":
            either = bool(reading.clauses) and not reading.clauses[-1].negated
        elif operator == "NOT":
            refused = True
        if operator in ("OR", "NOT", "AND"):
            continue
        option = read_piece(match, reading)
        if option is None:
            continue
        negated, refused = bool(match["minus"]) or refused, False
        if not either and Clause((option,), negated) in reading.clauses:
            continue
        if either and not negated:
            last = reading.clauses.pop()
            reading.clauses.append(Clause((*last.options, option)))
        else:
            reading.clauses.append(Clause((option,), negated))
        either = False
        if len(reading.clauses) >= MAX_TERMS:
            reading.notes.append(f"only the first {MAX_TERMS} terms were used")
            break
    # What must not occur is never what was meant by name: "-awq" is not AWQ.
    named = [] if any(clause.negated for clause in reading.clauses) else lookups(text)
    return Query(original, tuple(reading.clauses), tuple(reading.notes), tuple(named))


def read_piece(match: re.Match[str], reading: Reading) -> Term | Filter | None:
    """One piece of a query as a term or a filter; None where nothing searchable is in it."""
    name = (match["field"] or "").lower()
    name = FIELD_ALIASES.get(name, name)
    quoted = match["phrase"] is not None
    value = match["phrase"] if quoted else match["bare"]
    if match["field"] and name not in FIELDS:
        value, name = f"{match['field']}:{value}", ""
    if name in RANGE_FIELDS:
        found = read_range(name, value)
        if found is not None:
            return found
        reading.notes.append(
            f"{match['field']}:{value} is not a number or a range such as {name}:2022..2024; read as text"
        )
        value, name = f"{match['field']} {value}", ""
    if name in FACET_FIELDS or name in OTHER_FIELDS:
        return Filter(name, value.strip()) if value.strip() else None
    prefix = bool(match["star"]) if quoted else len(value) > 1 and value.endswith("*")
    found_words = tuple(words(value))
    if not found_words:
        return None
    symbols = WITH_SYMBOLS.search(value)
    exact = symbol_word(symbols[0]) if symbols and len(found_words) == 1 else ""
    return Term(found_words, prefix, name, exact, value.rstrip("*"))


def read_range(name: str, value: str) -> Filter | None:
    """`2023`, `2022..2024`, `2022-2024`, `2022..`, `..2024`, `>=2022`, `<2020`."""
    value = value.strip()
    if match := re.fullmatch(r"(>=|<=|>|<|=)?(\d{1,6})", value):
        number = int(match[2])
        match match[1]:
            case ">=":
                return Filter(name, low=number)
            case ">":
                return Filter(name, low=number + 1)
            case "<=":
                return Filter(name, high=number)
            case "<":
                return Filter(name, high=number - 1)
        return Filter(name, low=number, high=number)
    if match := re.fullmatch(r"(\d{1,6})?\s*(?:\.\.+|-|…)\s*(\d{1,6})?", value):
        low, high = (int(bound) if bound else None for bound in match.groups())
        if low is None and high is None:
            return None
        if low is not None and high is not None and low > high:
            low, high = high, low
        return Filter(name, low=low, high=high)
    return None


def lookups(text: str) -> list[str]:
    """The index keys that this text may be: identifiers first, then the text itself as a name.

    >>> lookups("https://arxiv.org/pdf/2309.06180v2.pdf")[0], lookups("doi:10.1145/3600006.3613165")[0]
    ('2309.06180', '10.1145/3600006.3613165')
    """
    text = unicodedata.normalize("NFKC", text).strip().strip('"')  # full-width digits are digits
    if not text or len(text) > 400:
        return []
    found: list[str] = []
    if identified := identify(text):
        found.append(identified.value.lower())
    if " " not in text:
        lowered = text.lower()
        found.append(lowered)
        for prefix in ("id:", "key:", "s2:", "openalex:", "arxiv:", "doi:"):
            if lowered.startswith(prefix):
                found.append(lowered.removeprefix(prefix))
    found.append(" ".join(words(text)))
    return [key for key in dict.fromkeys(found) if key]
