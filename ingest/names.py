"""Authors' names: splitting a list in any of the usual orders, particles, "et al.", organisations, keys.

A name is {"family": …, "given": …}; particles ("van", "de") belong to the family name, suffixes ("Jr.") do not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from kb.text import fold

Name = dict[str, str]

PARTICLES = frozenset(
    [
        "al",
        "as",
        "auf",
        "da",
        "dal",
        "das",
        "de",
        "degli",
        "dei",
        "del",
        "della",
        "den",
        "der",
        "des",
        "di",
        "do",
        "dos",
        "du",
        "el",
        "'el",
        "ibn",
        "la",
        "las",
        "le",
        "lo",
        "los",
        "san",
        "st",
        "ste",
        "te",
        "ten",
        "ter",
        "tho",
        "thor",
        "van",
        "vande",
        "vander",
        "vom",
        "von",
        "y",
        "zu",
        "zum",
        "zur",
        "'t",
        "’t",
        "'s",
        "’s",
        "tau",
        "bin",
        "ben",
    ]
)
FAMILY_BEGINS = frozenset(["De", "Del", "Van", "Von", "Di", "Da", "Dos", "Le", "El", "Della", "Ten", "Ó"])
DOUBLE_PARTICLES = frozenset(["Van Der", "Van Den", "Van De", "De La", "De Las", "De Los", "Von Der"])
# Surnames as often as particles, when capitalised: "Quoc Le", "Xin Li La". Only a lower-case one binds.
SUFFIXES = frozenset(["jr", "jr.", "sr", "sr.", "ii", "iii", "iv", "phd", "ph.d.", "md"])
INITIALS = r"(?:[^\W\d_]{1,2}\.(?:[-‐–]?\s?[^\W\d_]{1,3}\.)*)"
IS_INITIALS = re.compile(rf"^(?:{INITIALS}|[^\W\d_]\.?)(?:[\s-](?:{INITIALS}|[^\W\d_]\.?))*$")
IS_INITIAL = re.compile(r"^(?:[^\W\d_]{1,2}\.(?:[-‐–]?[^\W\d_]{1,3}\.)*(?:[-‐–][^\W\d_]{1,3}\.?)?|[^\W\d_])$")
VANCOUVER = re.compile(r"^(?P<family>.+?)\s+(?P<given>[A-ZÀ-ÞĀ-Ž]{1,3}|[A-ZÀ-ÞĀ-Ž]-[A-ZÀ-ÞĀ-Ž])$")
ET_AL = re.compile(
    r"[,;]?\s*\b(?:and|&)?\s*(?:et\s+al|et\s+alii|and\s+others|and\s+colleagues)\b\.?\s*$", re.IGNORECASE
)
SEPARATOR = re.compile(r"\s*[,;]?\s+(?:and|amd|und|y|et)\s+|\s*[,;]?\s*&\s*|\s*;\s*", re.IGNORECASE)
ORGANISATION = re.compile(
    r"\b(?:teams?|contributors|consortium|collaboration|corporation|inc|ltd|labs?|group|foundation|institute|"
    r"university|workshop|authors|developers|project|research|"
    r"deepmind|hugging ?face)\b",
    re.IGNORECASE,
)


RARE_SEPARATOR = re.compile(r"[;&]| (?:amd|und|y|et|AND|And) ")
MAY_END_ET_AL = re.compile(r"\bal\b|alii|others|colleagues", re.IGNORECASE)
COMMON = re.compile(r"((?:[^\W\d_]\.(?:-[^\W\d_]\.)? )+)([^\W\d_]{2,}(?:-[^\W\d_]{2,})?)")
SPELT_OUT = re.compile(
    r"[^\W\d_]{2,}[a-zà-ÿ]\s+(?:[^\W\d_]\.\s+)*[^\W\d_]{2,}$"
)  # "Zachary DeVito", "Norman P. Jouppi"
MIDDLE_NAME = re.compile(r"([^\W\d_a-z][^\W\d_]+) ([^\W\d_]+(?:-[^\W\d_]+)*)$")
FOOTNOTE = re.compile(r"(?<=[a-zà-ÿ])\d+$")  # "Lespiau1"


class Names(NamedTuple):
    """Authors in order; `et_al` if the source cut the list; `certain` is false where borders were guessed."""

    names: tuple[Name, ...]
    et_al: bool = False
    certain: bool = True


def name(family: str, given: str = "") -> Name:
    """A name without stray punctuation.

    >>> name("al-Hakim"), name("’s-Gravesande", "W. J.")
    ({'family': 'al-Hakim'}, {'family': '’s-Gravesande', 'given': 'W. J.'})
    """
    family = family.strip(" ,;:*†‡§")
    if len(family) > 3 or (len(family) == 3 and family[1].islower()):
        family = family.rstrip(".")
    if family[-1:].isdigit():
        family = FOOTNOTE.sub("", family)
    given = given.strip(" ,;:*†‡§")
    if not family:
        family, given = given, ""
    return {"family": family, "given": given} if given else {"family": family}


SUFFIX = re.compile(
    r"(?<=[^\W\d_])(?P<dot>\.?)(?:(?P<comma>,)\s*|\s+)(?:[JS]r\b(?P<stop>\.?)|(?:II|III|IV)\b(?P<roman>\.?))(?=[\s,;:(&]|$)"
)
BEGINS_WITH_FAMILY = re.compile(r"[^,]+,\s*(?:[^\W\d_]\.[\s-]?)+(?:,|\s|$)")
PERSON = re.compile(r"(?:[^\W\d_]\.[\s-]?|[^\W\d_a-z][^\W\d_]*[\s-])*[^\W\d_a-z][^\W\d_]+")
NAMES_FOLLOW = re.compile(r"\s*(?:[,;:(&]|and\b|et al)")
LONGEST_NAME = 120  # characters
END_OF_NAMES = re.compile(r"\b(?!(?:[JS]r|II|III|IV)\.)[^\W\d_]{2,}[.?!:]\s|[“„\"]|``|\d{4}")


def drop_suffixes(text: str) -> str:
    """The reference without "Jr.", "Sr.", "II" … behind its authors' names; those in the title stay.

    >>> drop_suffixes("Martin L. King, Jr. and Sammy Davis III. Part III. In ICML, 2020.")
    'Martin L. King and Sammy Davis. Part III. In ICML, 2020.'
    >>> drop_suffixes("King, M. L., Jr., Davis, S., III: Title"), drop_suffixes("King ML Jr., Davis S III. Title")
    ('King, M. L., Davis, S.: Title', 'King ML, Davis S. Title')
    """
    over = END_OF_NAMES.search(text)
    end = over.start() if over else len(text)
    out: list[str] = []
    done = 0
    for match in SUFFIX.finditer(text):
        start = match.start()
        if start > end:
            break
        numeral = match["roman"] is not None and not match["comma"]
        if numeral and not ends_a_name(
            text[:LONGEST_NAME], text[max(0, start - LONGEST_NAME) : start], text[match.end() :][:1]
        ):
            continue
        out.append(text[done:start])
        stop = match["dot"] or match["stop"] or match["roman"]
        # "King Jr. Title": the stop ends the list; "King Jr. and …", "King Jr., …": it is the suffix's own
        ends = not NAMES_FOLLOW.match(text, match.end())
        out.append("." if match["dot"] or (stop and ends) else "")
        done = match.end()
    return "".join(out) + text[done:] if out else text


def ends_a_name(beginning: str, before: str, after: str) -> bool:
    """Whether a numeral between the last two belongs to a name, not to a title such as "… S. Deep Part III"."""
    last = re.split(r"[,;&]|\band\b", before)[-1].strip()
    first = beginning.split(",", 1)[0]
    if suffix := SUFFIX.search(first):
        first = first[: suffix.start()]
    if VANCOUVER.match(first):
        return VANCOUVER.match(last) is not None
    if BEGINS_WITH_FAMILY.match(beginning):
        return after == ","
    return PERSON.fullmatch(last) is not None


@lru_cache(maxsize=65536)
def given_first(text: str) -> tuple[str, str]:
    """One name written "Given Family", as (family, given).

    >>> given_first("M. de Jong"), given_first("H. P. d. O. Pinto"), given_first("C. De Sa"), given_first("NVIDIA")
    (('de Jong', 'M.'), ('Pinto', 'H. P. d. O.'), ('De Sa', 'C.'), ('NVIDIA', ''))
    """
    tokens = text.split()
    while len(tokens) > 1 and tokens[-1].lower().strip(",") in SUFFIXES:
        tokens.pop()
    if len(tokens) == 1:
        return tokens[0], ""
    start = 0
    while start < len(tokens) - 1 and IS_INITIAL.match(tokens[start]) and tokens[start] != "Ó":
        start += 1
    if start:
        # "J. Zico Kolter" written "J. Z. Kolter" has no spelt-out given name; what follows initials is the family.
        return " ".join(tokens[start:]), " ".join(tokens[:start])
    start = len(tokens) - 1
    while start > 1 and (tokens[start - 1].lower() in PARTICLES and not tokens[start - 1].istitle()):
        start -= 1
    if start > 1 and tokens[start - 1] in FAMILY_BEGINS:
        start -= 1
    elif start > 2 and " ".join(tokens[start - 2 : start]) in DOUBLE_PARTICLES:
        start -= 2
    return " ".join(tokens[start:]), " ".join(tokens[:start])


def is_organisation(text: str) -> bool:
    """Whether a name as printed is an institution's rather than a person's.

    >>> is_organisation("NVIDIA"), is_organisation("vLLM Contributors"), is_organisation("Tri Dao")
    (True, True, False)
    """
    tokens = text.split()
    if not tokens or any(IS_INITIAL.match(token) for token in tokens[:-1]):
        return False
    return len(tokens) == 1 or bool(ORGANISATION.search(text))


def strip_et_al(text: str) -> tuple[str, bool]:
    if not MAY_END_ET_AL.search(text, max(0, len(text) - 24)):
        return text, False
    cut = ET_AL.sub("", text)
    return cut, len(cut) != len(text)


def parts(text: str) -> list[str]:
    """The pieces between "and", "&", ";" and ",": separators only, never names, never empty."""
    if RARE_SEPARATOR.search(text):
        pieces = [piece for chunk in SEPARATOR.split(text) for piece in chunk.split(",")]
    else:
        pieces = text.replace(" and ", ",").split(",")
    return [
        stripped
        for piece in pieces
        if (stripped := piece.strip(" .") if piece.strip() in (".", "") else piece.strip())
        and stripped.lower() not in ("and", "&", "editors", "eds.", "ed.")
    ]


def split_given_first(text: str) -> Names:
    """A list such as "A. Radford, I. Sutskever et al." or "Amey Agrawal, Nitin Kedia, and Ashish Panwar".

    >>> [n["family"] for n in split_given_first("A. Agrawal, N. Kedia, A. Tumanov, , and R. Ramjee").names]
    ['Agrawal', 'Kedia', 'Tumanov', 'Ramjee']
    """
    text, et_al = strip_et_al(text.strip().rstrip(","))
    found: list[Name] = []
    pieces = parts(text)
    # Among spelt-out names "J. Zico Kolter" is one, too; among initials "G. García Márquez" has two family names.
    spelt_out = any(SPELT_OUT.match(piece) for piece in pieces)
    for piece in pieces:
        if match := COMMON.fullmatch(piece):  # "A. B. Family": nearly all of them, and the fast way
            found.append({"family": match[2], "given": match[1].rstrip()})
            continue
        if found and piece.lower() in SUFFIXES:
            continue
        if is_organisation(piece):
            found.append(name(piece))
            continue
        family, given = given_first(piece)
        if spelt_out and given and (match := MIDDLE_NAME.match(family)) and match[1] not in FAMILY_BEGINS:
            family, given = match[2], f"{given} {match[1]}"
        found.append(name(family, given))
    return Names(tuple(found), et_al)


def split_family_first(text: str) -> Names:
    """A list such as "Abts, D., Kimmell, G., and de Las Casas, D., et al." or "Smith, John; Doe, Jane".

    >>> [n["family"] for n in split_family_first("Devvrit, Kudugunta, S., and van der Sluis, D.").names]
    ['Devvrit', 'Kudugunta', 'van der Sluis']
    """
    text, et_al = strip_et_al(text.strip())
    et_al = et_al or "..." in text or "…" in text  # "Kaplan, J., ... & Amodei, D.": some were left out
    found: list[Name] = []
    chunks = [chunk for chunk in SEPARATOR.split(text) if chunk.strip(" ,.")]
    spelt_out = len(chunks) > 1 and all(chunk.count(",") == 1 for chunk in chunks)
    for chunk in chunks:
        pieces = [piece.strip() for piece in chunk.split(",") if piece.strip(" .")]
        if spelt_out or (len(pieces) == 2 and len(chunks) == 1):
            found.append(name(pieces[0], pieces[1] if len(pieces) > 1 else ""))
            continue
        position = 0
        while position < len(pieces):
            family = pieces[position]
            if family[0] in "….":
                family = family.lstrip("… .") or family
            given = pieces[position + 1] if position + 1 < len(pieces) else ""
            position += 1
            if given and IS_INITIALS.match(given):
                position += 1
            else:
                given = ""
            if family.lower() in SUFFIXES:
                continue
            if not given and (match := VANCOUVER.match(family)) and len(pieces) > 1:
                family, given = match["family"], match["given"]
            elif not given and not is_organisation(family) and " " in family:
                family, given = given_first(family)
            found.append(name(family, given))
    return Names(tuple(found), et_al)


def split_vancouver(text: str) -> Names:
    """A list such as "Vaswani A, Shazeer N, Gomez AN, et al."

    >>> split_vancouver("Vaswani A, Gomez AN").names
    ({'family': 'Vaswani', 'given': 'A'}, {'family': 'Gomez', 'given': 'AN'})
    """
    text, et_al = strip_et_al(text.strip())
    found = [VANCOUVER.match(piece) or piece for piece in parts(text)]
    return Names(
        tuple(name(one) if isinstance(one, str) else name(one["family"], one["given"]) for one in found),
        et_al,
    )


def split_capital_families(text: str) -> Names:
    """A list such as "JOUPPI, Norman P. and DE JONG, Michiel" (ISO 690): capitals tell the family names.

    >>> split_capital_families("JOUPPI, Norman P., DE JONG, Michiel and LI, X.").names[1:]
    ({'family': 'DE JONG', 'given': 'Michiel'}, {'family': 'LI', 'given': 'X.'})
    """
    text, et_al = strip_et_al(text.strip())
    found: list[Name] = []
    for piece in parts(text):
        if found and "given" not in found[-1] and (not piece.isupper() or IS_INITIALS.match(piece)):
            found[-1] = name(found[-1]["family"], piece)
        else:
            found.append(name(piece))
    return Names(tuple(found), et_al)


def split_run_together(text: str) -> Names:
    """A list that lost its commas: "Tim Dettmers Mike Lewis Younes Belkada and Luke Zettlemoyer".

    Each name is taken as one given name, its initials, and a family name with particles: a guess, hence not
    `certain`; the first author and the last one are as a rule right.

    >>> [n["family"] for n in split_run_together("Albert Q. Jiang Diego de las Casas and William El Sayed").names]
    ['Jiang', 'de las Casas', 'El Sayed']
    """
    text, et_al = strip_et_al(text.strip())
    chunks = [chunk for chunk in SEPARATOR.split(text) if chunk.strip(" ,.")]
    found: list[Name] = []
    for number, chunk in enumerate(chunks):
        tokens = chunk.split()
        if number and number == len(chunks) - 1:
            family, given = given_first(" ".join(tokens))
            found.append(name(family, given))
            continue
        position = 0
        while position < len(tokens):
            start = position
            position += 1
            while position < len(tokens) - 1 and IS_INITIAL.match(tokens[position]):
                position += 1
            end = position
            while position < len(tokens) - 1 and tokens[position].lower() in PARTICLES:
                position += 1
            position += 1
            if len(tokens) - position == 1:  # one word left over belongs to this name
                end, position = (end, position + 1) if end > start + 1 else (end + 1, position + 1)
            found.append(name(" ".join(tokens[end:position]), " ".join(tokens[start:end])))
    return Names(tuple(found), et_al, certain=len(found) <= len(chunks))


@lru_cache(maxsize=65536)
def family_key(family: str) -> str:
    """What two spellings of one family name share: the last word, folded.

    >>> family_key("Del Corro") == family_key("Corro"), family_key("Kurtić"), family_key("Lee-Thorp")
    (True, 'kurtic', 'leethorp')
    """
    words = fold(family).replace("-", "").replace("’", "").replace("'", "").split()
    letters = re.sub(r"[^a-z0-9]", "", words[-1]) if words else ""
    return letters or re.sub(r"\W", "", fold(family))
