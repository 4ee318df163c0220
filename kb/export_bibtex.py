r"""One work as a BibTeX entry that classic BibTeX, biber and other readers give back unchanged.

Text is escaped for LaTeX, links and identifiers are not. Words with inner capitals are braced so that
styles do not lower their case; the rest of the title is left to the style.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

ESCAPES = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
}  # fmt: skip
TYPES = {"book": "book", "software": "software", "website": "online", "product": "misc"}
# What TeX's fonts would join to a dash or a curly quote
LIGATURES = re.compile(r"-(?=-)|[`?!](?=`)|'(?=')")
# "GPT-4", "LLaMA", "V2": a style would lower them; "8-bit" and "x_1" have nothing to lower
PROTECTED = re.compile(r"\S[A-Z]|[A-Z]\d")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def escape(text: str) -> str:
    r"""
    >>> print(escape("A & B 100% of x_1 #2"))
    A \& B 100\% of x\_1 \#2
    >>> print(escape("--flag"), escape("a---b"))
    -{}-flag a-{}-{}-b
    """
    text = "".join(ESCAPES.get(character, character) for character in unicodedata.normalize("NFC", text))
    return LIGATURES.sub(r"\g<0>{}", text)


def title_value(title: str) -> str:
    r"""A title with the words braced whose case matters.

    >>> print(title_value("LLM.int8(): 8-bit Matrix Multiplication"))
    {LLM.int8()}: 8-bit Matrix Multiplication
    """
    words = []
    for word in title.split(" "):
        core = re.match(r"^([(\[“‘\"']*)(.*?)([:;,.!?”’\"']*)$", word, re.DOTALL)
        before, middle, after = core.groups() if core else ("", word, "")
        middle = "{" + escape(middle) + "}" if PROTECTED.search(middle) else escape(middle)
        words.append(escape(before) + middle + escape(after))
    return " ".join(words)


def author_value(authors: list[Mapping[str, str]], truncated: bool) -> str:
    r"""`Family, Given and {Organisation} and others`.

    >>> author_value([{"family": "van der Berg", "given": "Jan"}, {"family": "OpenAI Team"}], True)
    'van der Berg, Jan and {OpenAI Team} and others'
    """
    from kb.export import name_parts

    names = []
    for author in authors:
        family, given, suffix = (escape(part) for part in name_parts(author))
        if given or suffix:
            # A comma, a semicolon or "and" inside a part would be read as structure.
            parts = [
                "{" + part + "}" if re.search(r"[,;]|\band\b", part) else part
                for part in (family, suffix, given)
            ]
            names.append(", ".join(part for part in parts if part))
        elif re.fullmatch(r"\w+", family) and family.lower() not in ("and", "others"):
            names.append(family)
        else:
            names.append("{" + family + "}")
    if truncated:
        names.append("others")
    return " and ".join(names)


def bibtex_entry(work: dict[str, Any]) -> str:
    """The entry of a work with decoded authors."""
    from kb.export import is_proceedings, page_range, retraction

    venue = work["venue"] or ""
    preprint = venue in ("", "arXiv")
    type_ = TYPES.get(work["kind"])
    if type_ is None:
        type_ = "misc" if preprint else "inproceedings" if is_proceedings(venue) else "article"
    fields: list[tuple[str, str]] = [("title", title_value(work["title"]))]
    if work["authors"]:
        fields.append(("author", author_value(work["authors"], work["authors_truncated"])))
    if work["year"]:
        fields.append(("year", str(work["year"])))
    parts = str(work.get("date") or "").split("-")
    if len(parts) > 1 and parts[1].isdigit():
        fields.append(("month", MONTHS[int(parts[1]) - 1]))
        if len(parts) > 2:
            fields.append(("day", str(int(parts[2]))))
    if venue and (not preprint or type_ in ("misc", "online", "software")):
        fields.append(
            ({"inproceedings": "booktitle", "article": "journal"}.get(type_, "howpublished"), escape(venue))
        )
    first, last = page_range(work.get("pages"))
    for name, value in (
        ("volume", work.get("volume")), ("number", work.get("issue")),
        ("publisher", work.get("publisher")), ("edition", work.get("edition")),
    ):  # fmt: skip
        if value:
            fields.append((name, escape(str(value))))
    if first:
        fields.append(("pages", "--".join(escape(part) for part in (first, last) if part)))
    if work["doi"]:
        fields.append(("doi", verbatim(work["doi"])))
    if work["arxiv_id"]:
        fields += [("eprint", work["arxiv_id"]), ("archiveprefix", "arXiv")]
        if work.get("arxiv_version"):
            fields.append(("version", str(work["arxiv_version"])))
    if work["url"]:
        fields.append(("url", verbatim(work["url"])))
    if type_ == "misc" and (work["kind"] == "product" or work["url"]):
        fields.append(("entrysubtype", work["kind"]))  # the link alone does not tell
    if note := retraction(work):
        fields.append(("note", note))
    if work.get("abstract"):
        fields.append(("abstract", escape(work["abstract"])))
    lines = [
        f"  {name} = {value}" if name == "month" else f"  {name} = {{{value}}}" for name, value in fields
    ]
    return f"@{type_}{{{key(work['slug'])},\n" + ",\n".join(lines) + "\n}\n"


def verbatim(text: str) -> str:
    """A link or DOI: as it is, but for what would end the field early."""
    return text.replace("{", "%7B").replace("}", "%7D").replace(" ", "%20")


def key(slug: str) -> str:
    """A citation key of letters, digits, colon, underscore and hyphen.

    >>> key("lin-2023-awq"), key("100%{X}")
    ('lin-2023-awq', '100X')
    """
    return re.sub(r"[^A-Za-z0-9:_-]", "", slug) or "work"
