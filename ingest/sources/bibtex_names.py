"""Author fields of BibTeX and biblatex, and what people write there instead."""

from __future__ import annotations

import re

from ingest.latex import to_text
from ingest.names import (
    IS_INITIAL,
    IS_INITIALS,
    VANCOUVER,
    Name,
    is_organisation,
    split_family_first,
    split_vancouver,
    strip_et_al,
)
from ingest.sources.fields import (
    COMPANY,
    LATE_SUFFIX,
    entities,
    from_parts,
    given_name_first,
    organisation,
    person,
)

AND = re.compile(r"\s+and\s+|\s*(?<!\\);\s*", re.IGNORECASE)
AMPERSAND = re.compile(r"\s+\\?&\s+")
COMMA = re.compile(r",")
KEYED = re.compile(r"\s*(?:family|given|prefix|suffix)(?:-i)?\s*=", re.IGNORECASE)
OTHERS = ("others", "et al", "et al.", "...", "…")


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
    """An author list; True if it ends in "and others".

    >>> parse_names("van der Berg, Jan and {OpenAI Team} and Smith, Jr., Ann and others")
    (({'family': 'van der Berg', 'given': 'Jan'}, {'family': 'OpenAI Team'}, {'family': 'Smith', 'given': 'Ann', 'suffix': 'Jr.'}), True)
    >>> parse_names("family=Berg, given=Jan, prefix={van der}")[0], parse_names("Smith, J.; Doe, A.")[0]
    (({'family': 'van der Berg', 'given': 'Jan'},), ({'family': 'Smith', 'given': 'J.'}, {'family': 'Doe', 'given': 'A.'}))
    """
    found: list[Name] = []
    et_al = False
    text = unwrapped(" ".join(entities(text).split()))
    for part in split_at_depth_zero(f" {text} ".replace(" and and ", " and "), AND):
        piece, cut = strip_et_al(part.strip(" ,;"))
        et_al = et_al or cut or piece.lower() in OTHERS
        piece = piece.strip(" ,;")
        if piece and piece.lower() not in OTHERS:
            found += read_piece(piece)
    return tuple(one for one in found if one["family"]), et_al


def unwrapped(text: str) -> str:
    """A list of persons without the second pair of braces that some programs put around every field."""
    if not is_braced(text):
        return text
    inner = text[1:-1].strip()
    pieces = split_at_depth_zero(inner, AND)
    persons = [looks_like_person(piece) for piece in pieces]
    return (
        inner
        if all(persons) and (len(pieces) > 1 or IS_INITIALS.match(inner.partition(",")[2].strip()))
        else text
    )


def looks_like_person(text: str) -> bool:
    family, comma, given = text.strip().partition(",")
    if comma:
        return not COMPANY.match(given.strip()) and len(given.split()) <= 3
    words = family.split()
    return 2 <= len(words) <= 4 and not is_organisation(text) and all(word[:1].isupper() for word in words)


def read_piece(piece: str) -> list[Name]:
    """What stands between two "and": one name as a rule, a list where people separated with commas."""
    if is_braced(piece):
        return [organisation(to_text(piece))]
    if KEYED.match(piece):
        return [keyed(piece)]
    sides = split_at_depth_zero(piece, AMPERSAND)
    if len(sides) > 1 and all(
        "," in side or IS_INITIAL.match(side.split()[0]) for side in sides if side.strip()
    ):
        return [name for side in sides if side.strip() for name in read_piece(side.strip())]
    parts = [part for each in split_at_depth_zero(piece, COMMA) if (part := each.strip())]
    if len(parts) == 1:
        return [first_von_last(parts[0])]
    if COMPANY.match(parts[1]):
        return [organisation(to_text(piece))]
    plain = [to_text(part) for part in parts]
    if all(VANCOUVER.match(part) for part in plain):
        return list(split_vancouver(", ".join(plain)).names)
    if len(parts) > 2 and not any(LATE_SUFFIX.match(part) for part in plain[1:]):
        if IS_INITIALS.match(plain[1]) and len(parts) > 3:
            return list(split_family_first(", ".join(plain)).names)
        if all(" " in part for part in plain):
            return [first_von_last(part) for part in parts]
    elif IS_INITIAL.match(plain[0].split()[0]) and all(" " in part for part in plain):
        return [first_von_last(part) for part in parts]  # "A. Radford, I. Sutskever"
    return [from_parts(plain)]


def keyed(piece: str) -> Name:
    """biblatex's `family=…, given=…, prefix=…, suffix=…`."""
    values = {}
    for part in split_at_depth_zero(piece, COMMA):
        key, _, value = part.partition("=")
        values[key.strip().lower()] = to_text(value.strip(' "'))
    family = f"{values.get('prefix', '')} {values.get('family', '')}".strip()
    return person(family, values.get("given") or values.get("given-i", ""), values.get("suffix", ""))


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


def first_von_last(text: str) -> Name:
    """A name without commas: `First von Last`; lower-case words in the middle begin the family name."""
    words = split_at_depth_zero(text, re.compile(r"[\s~]+"))
    plain = [to_text(word) for word in words]
    if len(words) == 1:
        return person(plain[0])
    for index, word in enumerate(plain[1:-1], start=1):
        if word[:1].islower():
            return person(" ".join(plain[index:]), " ".join(plain[:index]))
    if plain[0][:1].islower():
        return person(" ".join(plain))
    if words[-1].startswith("{") and not words[-1].startswith("{\\"):
        return person(plain[-1], " ".join(plain[:-1]))
    return given_name_first(" ".join(plain))
