"""In which order the names of a list are written: given name first, family name first, or only the first turned round."""

from __future__ import annotations

import re

from ingest.names import (
    IS_INITIALS,
    PARTICLES,
    VANCOUVER,
    Names,
    is_organisation,
    name,
    parts,
    split_capital_families,
    split_family_first,
    split_given_first,
    split_run_together,
    split_vancouver,
    strip_et_al,
)  # fmt: skip

AND = re.compile(r"\s+(?:and|&)\s")
COMPANY = re.compile(r"[A-Z]\w+ AI\.?$")  # "Meta AI", "Mistral AI", alone in the place of the authors
DOTTED_INITIALS = re.compile(
    r"((?:[a-z]+ )*[^\W\d_]{2}[^\s.]*) ((?:[^\W\d_a-z]\.[\s-]?)*[^\W\d_a-z]\.?)$"
)  # "LeCun Y."
CAPITAL_FAMILY = re.compile(r"[A-ZÀ-Þ][A-ZÀ-Þ’' -]+, [A-ZÀ-Þ](?:[a-zà-ÿ]+|\. [A-ZÀ-Þ][a-zà-ÿ]+)")
CAMEL_NAME = re.compile(r"^(?:Le|De|Di|Du|La|Mc|Mac|Van|Fitz|O[’'])[A-Z][a-z]+$")  # LeCun, DeVito, McAuley


def read_names(text: str, run_together: bool = False) -> Names:
    """Chooses the order in which a list of names is written, from its first entries."""
    text = text.strip()
    if not text or not re.search(r"\w", text):
        return Names(())
    listed, et_al = strip_et_al(text)
    chunks = [chunk.strip() for chunk in listed.split(",") if chunk.strip()]
    if not chunks:
        return Names((), et_al)
    if len(chunks) == 1 and COMPANY.match(chunks[0]):
        return Names((name(chunks[0].rstrip(".")),), et_al)
    if len(chunks) > 1 and all(DOTTED_INITIALS.match(chunk) for chunk in chunks[:3]):
        pairs = [DOTTED_INITIALS.match(chunk) or (chunk, chunk, "") for chunk in parts(listed)]
        return Names(tuple(name(pair[1], pair[2]) for pair in pairs), et_al)
    if len(chunks) > 1 and CAPITAL_FAMILY.match(text):
        return split_capital_families(text)
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
    family_only = words == 1 or all(word in PARTICLES for word in chunks[0].split()[:-1])
    if len(chunks) > 1 and family_only and not is_organisation_like(chunks[0]):
        given, *others = re.split(
            r"\s+(?:and|&)\s+", listed.split(",", 1)[1].split(",", 1)[0].strip(), maxsplit=1
        )
        if len(given.split()) <= 2:
            # Chicago and MLA turn the first name round: "Vaswani, Ashish, Noam Shazeer, and Niki Parmar".
            behind = ", ".join([*others, *listed.split(",", 2)[2:]])
            rest = split_given_first(behind) if behind.strip(" ,") else Names(())
            return Names((name(chunks[0], given), *rest.names), et_al)
    first_piece = chunks[0].split(" and ")[0]
    if len(chunks) == 1 and sum(word not in PARTICLES for word in first_piece.split()) <= 3:
        return split_given_first(text.rstrip("."))  # one name with particles before the "and"
    if run_together and len(chunks) == 1 and words > 4 and not is_organisation(first_piece):
        return split_run_together(text)
    if words > 3 and run_together and re.search(r"\sand\s", chunks[0]) and len(chunks) == 1:
        return split_run_together(text)
    return split_given_first(text.rstrip("."))


def is_organisation_like(text: str) -> bool:
    """A single word that is no family name: "NVIDIA", "ggerganov", "vLLM"."""
    if CAMEL_NAME.match(text):
        return False
    return text.isupper() or text.islower() or bool(re.search(r"[a-z][A-Z]|\d", text))
