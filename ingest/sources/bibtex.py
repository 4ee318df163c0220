r"""BibTeX and BibLaTeX → references. Reads what people have, not only what the grammar allows.

Strings, `#` concatenation, month macros, nested braces, quotes, brackets instead of braces, missing commas,
missing or repeated keys, comments and text between entries; an entry that cannot be read is reported and the next
one is read. Why an own parser: docs/decisions/ (measured beside bibtexparser 2.1 and pybtex 0.26).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from ingest.identifiers import clean_url, find_arxiv, is_scholarly
from ingest.kinds import kind_of_link
from ingest.latex import to_text
from ingest.names import Name, given_first, name
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

START = re.compile(r"@\s*([A-Za-z][\w-]*)\s*([{(])")
STARTS_LINE = re.compile(r"^\s*@\s*[A-Za-z][\w-]*\s*[{(]")
FIELD_NAME = re.compile(r"[\s,]*([A-Za-z][\w:.+/-]*)\s*=\s*")
BARE_VALUE = re.compile(r"[^\s,{}()\"#=]+")
NOT_ENTRIES = ("comment", "preamble", "string")
MONTH_MACROS = {
    name: name
    for name in ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
}
KINDS = {
    "book": "book", "inbook": "paper", "software": "software", "softwareversion": "software", "online": "website",
    "electronic": "website", "www": "website", "webpage": "website", "mvbook": "book", "manual": "product",
    "dataset": "website",
}  # fmt: skip
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


def parse_bibtex(lines: Iterable[str]) -> Items:
    r"""References of a bibliography, in order; entries that cannot be read as BrokenRecord.

    >>> [r.title for r in parse_bibtex(["@string{b = {Big}}", "@misc{x, title = b # { {LLM}s}}"])]
    ['Big LLMs']
    """
    seen: dict[str, int] = {}
    for item in parse_entries(lines):
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


def parse_entries(lines: Iterable[str]) -> Iterator[Entry | BrokenRecord]:
    """Entries as written, with strings replaced."""
    macros = dict(MONTH_MACROS)
    for line, text in blocks(lines):
        position = 0
        while match := START.search(text, position):
            kind = match[1].lower()
            if kind == "comment":
                position = match.end()
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


def blocks(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Pieces of the file, cut where a line begins an entry: bounded memory, and an unclosed entry ends there."""
    buffer: list[str] = []
    first = 1
    size = 0
    for number, line in enumerate(lines, start=1):
        if (STARTS_LINE.match(line) and buffer) or size > MAX_ENTRY_CHARACTERS:
            yield first, "".join(buffer)
            buffer, first, size = [], number, 0
        buffer.append(line if line.endswith("\n") else line + "\n")
        size += len(line)
    if buffer:
        yield first, "".join(buffer)


def parse_entry(text: str, start: re.Match[str], macros: dict[str, str], line: int) -> tuple[Entry, int]:
    """The entry that begins at `start`, and the position behind it."""
    kind = start[1].lower()
    closing = "}" if start[2] == "{" else ")"
    position = start.end()
    entry = Entry(kind, "", line)
    if kind == "preamble":
        return entry, skip_group(text, start.end() - 1)
    if kind != "string":
        key = re.compile(r"\s*([^,={}()\"#%]*?)\s*(,|(?=[})]))").match(text, position)
        if key is None:
            # No key but fields at once: "@misc{title = …}".
            if FIELD_NAME.match(text, position) is None:
                raise Unreadable("no key and no field after the entry's type")
        else:
            entry.key, position = key[1].strip(), key.end()
    while True:
        position = skip_space(text, position)
        if position >= len(text):
            if entry.fields and not any(SWALLOWED.search(value) for value in entry.fields.values()):
                return entry, position  # only the closing brace of the entry is missing
            raise Unreadable("the entry is not closed")
        if text[position] == closing:
            return entry, position + 1
        found = FIELD_NAME.match(text, position)
        if found is None:
            rest = text[position : position + 40].splitlines()[0]
            raise Unreadable(f"expected a field or the end of the entry at {rest!r}")
        value, position = parse_value(text, found.end(), macros, closing)
        entry.fields.setdefault(found[1].lower(), value)


def skip_space(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text[position] == ","):
        position += 1
    return position


def skip_group(text: str, position: int) -> int:
    """Behind the brace that closes the one at `position`."""
    depth = 0
    for index in range(position, len(text)):
        character = text[index]
        if character == "{" and text[index - 1] != "\\":
            depth += 1
        elif character == "}" and text[index - 1] != "\\":
            depth -= 1
            if depth == 0:
                return index + 1
    raise Unreadable("a brace is not closed")


BRACES_OR_QUOTE = re.compile(r"[{}\"\\]")


def parse_value(text: str, position: int, macros: dict[str, str], closing: str) -> tuple[str, int]:
    """A value: groups, quoted strings, numbers and macros, joined by `#`."""
    parts: list[str] = []
    while True:
        while position < len(text) and text[position].isspace():
            position += 1
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
        while position < len(text) and text[position].isspace():
            position += 1
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


AND = re.compile(r"\s+and\s+", re.IGNORECASE)


def split_at_depth_zero(text: str, separator: re.Pattern[str]) -> list[str]:
    """Pieces between separators that stand outside braces."""
    if "{" not in text:
        return separator.split(text)
    pieces, depth, start, index = [], 0, 0, 0
    while index < len(text):
        if text[index] == "{":
            depth += 1
        elif text[index] == "}":
            depth -= 1
        elif depth == 0 and (match := separator.match(text, index)):
            pieces.append(text[start:index])
            start = index = match.end()
            continue
        index += 1
    return [*pieces, text[start:]]


def parse_names(text: str) -> tuple[tuple[Name, ...], bool]:
    """A BibTeX author list; True if it ends in "and others".

    >>> parse_names("van der Berg, Jan and {OpenAI Team} and Smith, Jr., Ann and others")
    (({'family': 'van der Berg', 'given': 'Jan'}, {'family': 'OpenAI Team'}, {'family': 'Smith', 'given': 'Ann'}), True)
    """
    found: list[Name] = []
    et_al = False
    text = " ".join(text.split())
    for piece in split_at_depth_zero(f" {text} ".replace(" and and ", " and "), AND):
        piece = piece.strip(" ,;")
        if not piece:
            continue
        if piece.lower() in ("others", "et al", "et al."):
            et_al = True
            continue
        if is_braced(piece):
            found.append({"family": to_text(piece)})  # as it is: "Inc." keeps its stop
            continue
        parts = [part.strip() for part in split_at_depth_zero(piece, re.compile(","))]
        parts = [part for part in parts if part]
        if len(parts) == 1:
            family, given = first_von_last(parts[0])
        elif len(parts) == 2:
            family, given = parts
        else:  # von Last, Jr, First
            family, given = parts[0], parts[-1]
        found.append(name(to_text(family), to_text(given)))
    return tuple(found), et_al


def is_braced(text: str) -> bool:
    """Whether one pair of braces encloses everything: an organisation, not to be taken apart."""
    if not (text.startswith("{") and text.endswith("}")) or text.startswith("{\\"):
        return False
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return index == len(text) - 1
    return False


def first_von_last(text: str) -> tuple[str, str]:
    """A name without commas: `First von Last`; lower-case words in the middle begin the family name."""
    words = split_at_depth_zero(text, re.compile(r"[\s~]+"))
    if len(words) == 1:
        return words[0], ""
    for index, word in enumerate(words[1:-1], start=1):
        plain = to_text(word)
        if plain[:1].islower():
            return " ".join(words[index:]), " ".join(words[:index])
    if len(words) > 1 and to_text(words[0])[:1].islower():
        return " ".join(words), ""
    if any("{" in word for word in words):
        return words[-1], " ".join(words[:-1])
    family, given = given_first(" ".join(words))
    return family, given


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


def to_reference(entry: Entry) -> Reference:
    """The entry's fields as a Reference."""
    get = entry.fields.get
    title, status = split_status(title_text(get("title", "")))
    if not title and not get("author") and not get("doi") and not get("url") and not get("eprint"):
        raise Unreadable("neither title, author nor identifier")
    subtitle = title_text(get("subtitle", ""))
    if subtitle:
        title = f"{title}: {subtitle}" if title else subtitle
    authors, et_al = parse_names(get("author") or get("editor") or "")
    venue = to_text(get("journal") or get("journaltitle") or get("booktitle") or get("maintitle") or "")
    url = url_text(get("url", "")) or next(iter(re.findall(r"https?://[^\s}]+", get("howpublished", ""))), "")
    url = url_text(url) if url else ""
    note = to_text(get("note", ""))
    archive = (get("archiveprefix") or get("eprinttype") or "").strip(" {}").lower()
    eprint = get("eprint", "").strip(" {}") if archive in ("", "arxiv") else ""
    arxiv, version, doi = arxiv_and_doi(eprint, get("doi", "").strip(" {}"), url, get("arxivid", ""))
    if arxiv is None and (
        stated := find_arxiv(f"{venue} {get('volume', '')} {note} {to_text(get('howpublished', ''))}")
    ):
        arxiv, version = stated.id, stated.version
    date = read_date(to_text(get("date", ""))) if get("date") else ""
    if not date and get("year"):
        date = read_date(to_text(get("year", "")))
        month = month_number(to_text(get("month", ""))) if get("month") else None
        if month and len(date) == 4:
            day = re.search(r"(?<!\d)(\d{1,2})(?!\d)", to_text(get("day", "") or get("month", "")))
            named = day if day and not get("month", "").strip().isdigit() else None
            date = iso_date(int(date), month, int(named[1]) if named else None)
    if "retracted" in note.lower() or "withdrawn" in note.lower():
        status = status or ("retracted" if "retracted" in note.lower() else "withdrawn")
    kind = KINDS.get(entry.type, "paper")
    if entry.type == "misc" and url and not (arxiv or doi or venue) and not is_scholarly(url):
        kind = kind_of_link(url)
    return Reference(
        title=title,
        authors=authors,
        et_al=et_al,
        year=year_of(date),
        date=date,
        venue=venue,
        volume=to_text(get("volume", "")),
        issue=to_text(get("number", "") or get("issue", "")),
        pages=to_text(get("pages", "")),
        publisher=to_text(
            get("publisher") or get("institution") or get("organization") or get("school") or ""
        ),
        edition=to_text(get("edition", "")),
        arxiv_id=arxiv,
        arxiv_version=version,
        doi=doi,
        url=url or None,
        openalex_id=get("openalex") or None,
        s2_id=get("s2id") or None,
        kind=kind,
        key=entry.key or f"line {entry.line}",
        status=status,
        abstract=to_text(get("abstract", "")),
    )
