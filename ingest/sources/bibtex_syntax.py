"""BibTeX as written → entries: strings, `#`, braces, quotes, comments and what people leave out.

Strings, `#` concatenation, month macros, nested braces, quotes, brackets instead of braces, missing commas,
missing or repeated keys, comments and text between entries; an entry that cannot be read is reported and the next
one is read. Why an own parser: docs/decisions/ (measured beside bibtexparser 2.1 and pybtex 0.26).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ingest.records import BrokenRecord, broken

START = re.compile(r"@\s*([A-Za-z][\w-]*)\s*([{(])")
STARTS_LINE = re.compile(r"^\s*@\s*([A-Za-z][\w-]*)\s*[{(]")
FIELD_NAME = re.compile(r"[\s,]*([A-Za-z][\w:.+/-]*)\s*=\s*")
KEY = {
    closing: re.compile(rf"\s*([^,={{}}\n]*?)\s*(,|(?=\{closing}))") for closing in "})"
}  # "smith (2020)" is a key between braces
# Without a comma behind it a key is one word, and a field follows.
KEY_WITHOUT_COMMA = re.compile(r"\s*([^\s,={}\"]+)(?=\s+[A-Za-z][\w:.+/-]*\s*=)")
SPACE = re.compile(r"(?:\s+|%[^\n]*)*")
SPACE_OR_COMMA = re.compile(r"(?:[\s,;]+|%[^\n]*)*")
# Fields behind the brace that should have been the last: one brace too many inside.
GOES_ON = re.compile(r"\s*,\s*[A-Za-z][\w:.+/-]*\s*=\s*[{\"\d]")
TYPES = frozenset(
    [
        "article",
        "artwork",
        "audio",
        "bibnote",
        "book",
        "bookinbook",
        "booklet",
        "collection",
        "comment",
        "commentary",
        "conference",
        "customa",
        "customb",
        "customc",
        "dataset",
        "electronic",
        "image",
        "inbook",
        "incollection",
        "inproceedings",
        "inreference",
        "jurisdiction",
        "legal",
        "legislation",
        "letter",
        "manual",
        "mastersthesis",
        "misc",
        "movie",
        "music",
        "mvbook",
        "mvcollection",
        "mvproceedings",
        "mvreference",
        "online",
        "patent",
        "performance",
        "periodical",
        "phdthesis",
        "preamble",
        "preprint",
        "proceedings",
        "reference",
        "report",
        "review",
        "set",
        "software",
        "softwaremodule",
        "softwareversion",
        "standard",
        "string",
        "suppbook",
        "suppcollection",
        "suppperiodical",
        "techreport",
        "thesis",
        "unpublished",
        "video",
        "webpage",
        "www",
        "xdata",
    ]
)
BARE_VALUE = re.compile(r"[^\s,{}()\"#=]+")
NOT_ENTRIES = ("comment", "preamble", "string")
MONTH_MACROS = {
    name: name
    for name in ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
}
SWALLOWED = re.compile(
    r",\s*[a-z]+\s*=\s*[\"{\d]"
)  # a field inside a value: an inner brace is missing, not the last
MAX_ENTRY_CHARACTERS = 4_000_000


class Unreadable(ValueError):
    """Why one entry cannot be read."""


@dataclass
class Entry:
    """One entry as written: values with their braces and macros, concatenated, not yet decoded."""

    type: str
    key: str
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def parse_entries(lines: Iterable[str]) -> Iterator[Entry | BrokenRecord]:
    """Entries as written, with strings replaced."""
    macros = dict(MONTH_MACROS)
    for line, text in blocks(lines):
        position = 0
        while match := START.search(text, position):
            kind = match[1].lower()
            if kind == "comment" or commented_out(text, match.start()):
                position = behind_comment(text, match)
                continue
            number = line + text.count("\n", 0, match.start())
            try:
                entry, position = parse_entry(text, match, macros, number)
            except Unreadable as error:
                key = re.match(r"\s*([^\s,={}\"]+)\s*,", text[match.end() :])
                where = f"{key[1]} (line {number})" if key else f"line {number}"
                yield broken(where, str(error), text[match.start() :])
                position = next_start(text, match.end())
                continue
            if kind == "string":
                macros.update({name.lower(): value for name, value in entry.fields.items()})
            elif kind not in NOT_ENTRIES:
                yield entry


def next_start(text: str, position: int) -> int:
    """Where the next entry begins a line; the end of the text if none does."""
    match = re.compile(STARTS_LINE.pattern, re.MULTILINE).search(text, position)
    return match.start() if match else len(text)


def commented_out(text: str, position: int) -> bool:
    """Whether a `%` begins the line, and the next one too or the entry ends on this one."""
    start = text.rfind("\n", 0, position) + 1
    if not text[start:position].lstrip().startswith("%"):
        return False
    line, _, following = text[position:].partition("\n")
    return following.lstrip().startswith("%") or line.count("{") == line.count("}")


def behind_comment(text: str, match: re.Match[str]) -> int:
    """Behind a comment's braces, if they are closed; else only behind the word."""
    if match[1].lower() != "comment":
        end = text.find("\n", match.end())
        return len(text) if end < 0 else end
    try:
        return skip_group(text, match.end() - 1) if match[2] == "{" else match.end()
    except Unreadable:
        return match.end()


def blocks(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Pieces of the file, cut where a line begins an entry: bounded memory, and an unclosed entry ends there."""
    buffer: list[str] = []
    first = 1
    size = 0
    for number, line in enumerate(lines, start=1):
        start = STARTS_LINE.match(line) if buffer else None
        if (start and begins_entry(start[1], buffer)) or size > MAX_ENTRY_CHARACTERS:
            yield first, "".join(buffer)
            buffer, first, size = [], number, 0
        buffer.append(line if line.endswith("\n") else line + "\n")
        size += len(line)
    if buffer:
        yield first, "".join(buffer)


def begins_entry(kind: str, above: list[str]) -> bool:
    """Whether a line such as "@foo{" begins an entry; inside a value it does not, unless its type is a known one."""
    if kind.lower() in TYPES:
        return True
    text = "".join(above)
    return text.count("{") <= text.count("}")


def parse_entry(text: str, start: re.Match[str], macros: dict[str, str], line: int) -> tuple[Entry, int]:
    """The entry that begins at `start`, and the position behind it."""
    kind = start[1].lower()
    closing = "}" if start[2] == "{" else ")"
    position = start.end()
    entry = Entry(kind, "", line)
    if kind == "preamble":
        return entry, skip_group(text, start.end() - 1)
    if kind != "string":
        key = KEY[closing].match(text, position) or KEY_WITHOUT_COMMA.match(text, position)
        if key is not None:
            entry.key, position = key[1].strip(), key.end()
        elif FIELD_NAME.match(text, position) is None:  # without a key: "@misc{title = …}"
            raise Unreadable("no key and no field after the entry's type")
    while True:
        position = skip_space(text, position)
        if position >= len(text):
            if entry.fields and not any(SWALLOWED.search(value) for value in entry.fields.values()):
                return entry, position  # only the closing brace of the entry is missing
            raise Unreadable("the entry is not closed")
        if text[position] == closing:
            if entry.fields and GOES_ON.match(text, position + 1):
                position += 1
                continue
            return entry, position + 1
        found = FIELD_NAME.match(text, position)
        if found is None:
            rest = text[position : position + 40].splitlines()[0]
            raise Unreadable(f"expected a field or the end of the entry at {rest!r}")
        value, position = parse_value(text, found.end(), macros)
        entry.fields.setdefault(found[1].lower(), value)


def skip_space(text: str, position: int, pattern: re.Pattern[str] = SPACE_OR_COMMA) -> int:
    """Behind blanks, commas and comments from `%` to the end of the line."""
    match = pattern.match(text, position)
    return match.end() if match else position


BRACE = re.compile(r"(?<!\\)[{}]")


def skip_group(text: str, position: int) -> int:
    """Behind the brace that closes the one at `position`."""
    depth = 0
    for match in BRACE.finditer(text, position):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return match.end()
    raise Unreadable("a brace is not closed")


BRACES_OR_QUOTE = re.compile(r"[{}\"\\]")


def parse_value(text: str, position: int, macros: dict[str, str]) -> tuple[str, int]:
    """A value: groups, quoted strings, numbers and macros, joined by `#`."""
    parts: list[str] = []
    while True:
        position = skip_space(text, position, SPACE)
        if position >= len(text):
            raise Unreadable("the entry ends inside a field")
        character = text[position]
        if character == "{":
            end = skip_group(text, position)
            parts.append(text[position + 1 : end - 1])
        elif character == '"':
            end = end_of_quoted(text, position)
            parts.append(text[position + 1 : end - 1])
        else:
            bare = BARE_VALUE.match(text, position)
            if bare is None:
                if character in ",})":  # "year = ,": an empty value
                    return "".join(parts), position
                raise Unreadable(f"no value before {text[position : position + 20]!r}")
            end = bare.end()
            word = bare[0]
            parts.append(word if word.isdigit() else macros.get(word.lower(), word))
        position = end
        position = skip_space(text, position, SPACE)
        if position < len(text) and text[position] == "#":
            position += 1
            continue
        return "".join(parts), position


def end_of_quoted(text: str, position: int) -> int:
    """Behind the quote that closes the one at `position`; quotes inside braces and escaped ones do not count."""
    depth = 0
    index = position + 1
    while match := BRACES_OR_QUOTE.search(text, index):
        index = match.end()
        if match[0] == "\\":
            # \"o inside a quoted value is BibTeX's own trap: the quote would close it. People mean the accent.
            index += 1
        elif match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth < 0:
                raise Unreadable("a closing brace inside a quoted value")
        elif depth == 0:
            return index
    raise Unreadable("a quoted value is not closed")
