"""The bibliography out: BibTeX, RIS, CSL-JSON, CSV, JSON; and the citation graph as GraphML.

A work's key is its slug: given when the work was made, never changed, unique, letters, digits and hyphens only.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kb.errors import InvalidQuery
from kb.export_bibtex import bibtex_entry
from kb.reader import Reader, Row, loads

BIBLIOGRAPHIES = ("bibtex", "ris", "csl-json", "csv", "json")
FORMATS = (*BIBLIOGRAPHIES, "graphml")
MEDIA_TYPES = {
    "bibtex": "application/x-bibtex", "ris": "application/x-research-info-systems",
    "csl-json": "application/vnd.citationstyles.csl+json", "csv": "text/csv", "json": "application/json",
    "graphml": "application/graphml+xml",
}  # fmt: skip
CHUNK = 500

COLUMNS = "id, slug, title, authors, first_author, authors_truncated, year, venue, kind, arxiv_id, doi, url, abstract, role, status"


def export(
    reader: Reader, format_: str, *, ids: Sequence[str] | None = None, **filters: Any
) -> Iterator[str]:
    """The text of an export, in pieces; see `select_works` for the filters."""
    if format_ not in FORMATS:
        raise InvalidQuery(f"unknown format {format_!r}", hint=f"one of {', '.join(FORMATS)}", field="format")
    works = select_works(reader, ids=ids, **filters)
    if format_ == "graphml":
        from kb.export_graph import graphml

        return graphml(reader, None if not (ids or any(filters.values())) else {work["id"] for work in works})
    return WRITERS[format_](works)


def select_works(
    reader: Reader,
    *,
    ids: Sequence[str] | None = None,
    query: str = "",
    survey: Sequence[str] | str | None = None,
    year: Sequence[str] | str | None = None,
    technique: str | None = None,
    level: Sequence[str] | str | None = None,
    bottleneck: Sequence[str] | str | None = None,
    kind: Sequence[str] | str | None = None,
    role: Sequence[str] | str | None = None,
) -> list[Row]:
    """Works for an export, in the order of their keys; the filters are those of search, and all must hold."""
    rows = [decoded(row) for row in reader.rows(f"SELECT {COLUMNS} FROM work ORDER BY slug")]
    given = {
        name: [value] if isinstance(value, str) else list(value)
        for name, value in {"survey": survey, "year": year, "level": level, "bottleneck": bottleneck, "kind": kind, "role": role}.items()
        if value
    }  # fmt: skip
    if query or given:
        from kb.search import matching_works

        wanted = matching_works(reader, query, given)
        rows = [row for row in rows if row["id"] in wanted]
    if technique:
        from kb.store_techniques import find_technique

        slug = find_technique(reader, technique)["slug"]
        linked = {
            row["work_id"]
            for row in reader.rows(
                "SELECT work_id FROM techniquework WHERE technique = :slug", {"slug": slug}
            )
        }
        rows = [row for row in rows if row["id"] in linked]
    if ids:
        from kb.store_works import find_work

        wanted = {find_work(reader, one)["id"] for one in ids}
        rows = [row for row in rows if row["id"] in wanted]
    add_editions(reader, rows)
    return rows


def decoded(row: Row) -> Row:
    row["authors"] = loads(row["authors"]) or []
    row["authors_truncated"] = bool(row["authors_truncated"])
    return row


# What a record states about a volume is not a column of the work; the first record that says it is believed.
DETAILS = ("volume", "issue", "pages", "publisher", "edition", "date", "arxiv_version")


def add_editions(reader: Reader, rows: Sequence[Row]) -> None:
    """Volume, pages, publisher … of each work from its records, the oldest first."""
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        row.update(dict.fromkeys(DETAILS, ""))
    numbers = sorted(by_id)
    for start in range(0, len(numbers), CHUNK):
        listed = ", ".join(str(number) for number in numbers[start : start + CHUNK])
        for record in reader.rows(
            f"SELECT work_id, fields FROM record WHERE work_id IN ({listed}) ORDER BY work_id, id"
        ):
            work, fields = by_id[record["work_id"]], loads(record["fields"]) or {}
            for name in DETAILS:
                value = fields.get(name)
                if not value or work[name]:
                    continue
                # A date or a version belongs to the edition whose year or preprint the work shows.
                if name == "date" and not str(value).startswith(str(work["year"])):
                    continue
                if name == "arxiv_version" and fields.get("arxiv_id") != work["arxiv_id"]:
                    continue
                work[name] = value


SUFFIX = re.compile(r"^(.*\S)\s*,\s*((?:[JS]r\.?|II|III|IV))$", re.IGNORECASE)


def name_parts(author: Mapping[str, str]) -> tuple[str, str, str]:
    """Family, given name and suffix; a suffix that is still part of a person's family name is taken out.

    >>> name_parts({"family": "King, Jr.", "given": "Martin"}), name_parts({"family": "OpenAI Team"})
    (('King', 'Martin', 'Jr.'), ('OpenAI Team', '', ''))
    """
    family, given, suffix = (str(author.get(key) or "") for key in ("family", "given", "suffix"))
    if given and not suffix and (match := SUFFIX.match(family)):
        family, suffix = match.groups()
    return family, given, suffix


def name_text(author: Mapping[str, str]) -> str:
    """`Family, Given, Suffix`; an organisation has no given name."""
    return ", ".join(part for part in name_parts(author) if part)


def bibtex(works: Sequence[Row]) -> Iterator[str]:
    for work in works:
        yield bibtex_entry(work) + "\n"


RIS_TYPES = {"book": "BOOK", "software": "COMP", "website": "ELEC", "product": "GEN"}


def ris(works: Sequence[Row]) -> Iterator[str]:
    for work in works:
        yield ris_entry(work)


def ris_entry(work: Row) -> str:
    """One record; one AU per author."""
    type_ = RIS_TYPES.get(work["kind"]) or (
        "JOUR" if work["venue"] and not is_proceedings(work["venue"]) else "CONF"
    )
    if work["kind"] == "paper" and (not work["venue"] or work["venue"] == "arXiv"):
        type_ = "UNPB" if work["arxiv_id"] else "GEN"
    first, last = page_range(work["pages"])
    date = work["date"] if len(str(work["date"])) > 4 else ""
    pairs = [
        ("TY", type_),
        ("ID", work["slug"]),
        *(("AU", ris_name(author)) for author in work["authors"]),
        ("TI", work["title"]),
        ("PY", work["year"]),
        ("DA", "/".join([*str(date).split("-"), "", ""][:3]) + "/" if date else ""),
        ("T2", work["venue"]),
        ("VL", work["volume"]),
        ("IS", work["issue"]),
        ("SP", first),
        ("EP", last),
        ("PB", work["publisher"]),
        ("ET", work["edition"]),
        ("DO", work["doi"]),
        ("UR", work["url"] or (f"https://arxiv.org/abs/{work['arxiv_id']}" if work["arxiv_id"] else None)),
        ("AN", f"arXiv:{work['arxiv_id']}{version(work)}" if work["arxiv_id"] else ""),
        ("M3", "Product" if work["kind"] == "product" else ""),
        ("N1", "Author list incomplete (et al.)" if work["authors_truncated"] else ""),
        ("N1", retraction(work)),
        ("AB", work["abstract"]),
    ]
    lines = [f"{tag}  - {' '.join(str(value).split())}" for tag, value in pairs if value not in (None, "")]
    return "\n".join([*lines, "ER  - ", "", ""])


def ris_name(author: Mapping[str, str]) -> str:
    """EndNote's convention for an organisation: a closing comma if it has several words, its own first comma twice.

    >>> ris_name({"family": "OpenAI Team"}), ris_name({"family": "University of California, Irvine"}), ris_name({"family": "NVIDIA"})
    ('OpenAI Team,', 'University of California,, Irvine', 'NVIDIA')
    """
    text = name_text(author)
    if author.get("given") or author.get("suffix"):
        return text
    if "," in text:
        return text.replace(",", ",,", 1)
    return f"{text}," if " " in text else text


def version(work: Row) -> str:
    """The version of the preprint, "v2", where one is known."""
    return f"v{work['arxiv_version']}" if work.get("arxiv_version") and work["arxiv_id"] else ""


def page_range(pages: Any) -> tuple[str, str]:
    """First and last page; a hyphen counts between numbers only.

    >>> page_range("611–626"), page_range("12-15"), page_range("S-12"), page_range("e12--e15")
    (('611', '626'), ('12', '15'), ('S-12', ''), ('e12', 'e15'))
    """
    parts = re.split(r"\s*(?:--+|[–—]|(?<=\d)-(?=\d))\s*", str(pages or ""), maxsplit=1)
    return parts[0], parts[1] if len(parts) > 1 else ""


def is_proceedings(venue: str) -> bool:
    folded = venue.lower()
    return any(
        word in folded
        for word in ("proceedings", "conference", "symposium", "workshop", "advances in neural")
    )


def retraction(work: Row) -> str:
    """A retracted work says so in a note, never in its title."""
    status = str(work.get("status") or "")
    return {"retracted": "RETRACTED", "withdrawn": "WITHDRAWN"}.get(status, "")


CSL_TYPES = {"book": "book", "software": "software", "website": "webpage", "product": "document"}


def csl_item(work: Row) -> dict[str, Any]:
    """One item; organisations are `literal` names."""
    proceedings = bool(work["venue"]) and is_proceedings(work["venue"])
    type_ = CSL_TYPES.get(work["kind"]) or ("paper-conference" if proceedings else "article-journal")
    if work["kind"] == "paper" and work["venue"] in ("", "arXiv"):
        type_ = "article"
    item: dict[str, Any] = {
        "id": work["slug"],
        "citation-key": work["slug"],
        "type": type_,
        "title": work["title"],
    }
    item["author"] = [csl_name(author) for author in work["authors"]]
    if work["authors_truncated"]:
        item["author"].append({"literal": "others"})
    if work["kind"] == "product":
        item["genre"] = "Product"
    parts = [int(part) for part in str(work["date"] or work["year"] or "").split("-") if part.isdigit()]
    if parts:
        item["issued"] = {"date-parts": [parts]}
    link = work["url"] or (f"https://arxiv.org/abs/{work['arxiv_id']}" if work["arxiv_id"] else None)
    for key, value in (
        ("container-title", work["venue"]), ("volume", work["volume"]), ("issue", work["issue"]),
        ("page", "-".join(part for part in page_range(work["pages"]) if part)), ("publisher", work["publisher"]), ("edition", work["edition"]),
        ("DOI", work["doi"]), ("URL", link), ("number", f"arXiv:{work['arxiv_id']}" if work["arxiv_id"] else ""),
        ("version", str(work["arxiv_version"] or "") if work["arxiv_id"] else ""), ("note", retraction(work)),
        ("abstract", work["abstract"]),
    ):  # fmt: skip
        if value:
            item[key] = value
    if not item["author"]:
        del item["author"]
    return item


def csl_name(author: Mapping[str, str]) -> dict[str, str]:
    """A person in parts; an organisation as `literal`."""
    family, given, suffix = name_parts(author)
    if not given and not suffix:
        return {"literal": family}
    return {key: part for key, part in (("family", family), ("given", given), ("suffix", suffix)) if part}


def csl_json(works: Sequence[Row]) -> Iterator[str]:
    yield "["
    for number, work in enumerate(works):
        yield ("," if number else "") + "\n" + json.dumps(csl_item(work), ensure_ascii=False)
    yield "\n]\n"


CSV_COLUMNS = (
    "id", "title", "authors", "authors_truncated", "year", "date", "venue", "volume", "issue", "pages", "publisher",
    "kind", "role", "arxiv_id", "doi", "url", "status", "arxiv_version", "edition",
)  # fmt: skip


def csv_text(works: Sequence[Row]) -> Iterator[str]:
    """A row per work. A cell that a spreadsheet would run as a formula gets an apostrophe in front."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for work in works:
        row = {
            **work,
            "id": work["slug"],
            "authors": "; ".join(name_text(author) for author in work["authors"]),
        }
        writer.writerow([harmless(row.get(column)) for column in CSV_COLUMNS])
        if buffer.tell() > 1 << 16:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def harmless(value: Any) -> str:
    """
    >>> harmless("=cmd()"), harmless(None), harmless(True), harmless("-1")
    ("'=cmd()", '', 'true', "'-1")
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def plain_item(work: Row) -> dict[str, Any]:
    """The work under the keys that `kb ingest` reads back."""
    item = {
        name: work[name]
        for name in ("title", "authors", "year", "venue", "kind", "arxiv_id", "doi", "url", "status", "role")
    }
    item.update({name: work[name] or None for name in DETAILS})
    item = {name: value for name, value in item.items() if value not in (None, "", [])}
    return {
        "id": work["slug"],
        "key": work["slug"],
        "title": work["title"],
        **item,
        "et_al": work["authors_truncated"],
        "abstract": work["abstract"],
    }


def json_text(works: Sequence[Row]) -> Iterator[str]:
    yield "["
    for number, work in enumerate(works):
        yield ("," if number else "") + "\n" + json.dumps(plain_item(work), ensure_ascii=False)
    yield "\n]\n"


Writer = Callable[[Sequence[Row]], Iterator[str]]
WRITERS: dict[str, Writer] = {
    "bibtex": bibtex,
    "ris": ris,
    "csl-json": csl_json,
    "csv": csv_text,
    "json": json_text,
}
