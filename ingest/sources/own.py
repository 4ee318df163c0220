"""Our own records as JSON: what `kb export json`, `kb list papers --json` and the survey files hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ingest.identifiers import arxiv_id, doi
from ingest.kinds import KINDS
from ingest.names import Name
from ingest.records import clean
from ingest.references import Reference, reference_from_json
from ingest.sources.fields import year_number

TEXTS = ("date", "venue", "volume", "issue", "pages", "publisher", "edition", "status", "key")


def is_own(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("title"), str) and any(
        key in data for key in ("authors", "arxiv_id", "doi", "year", "kind")
    )


def parse_own(data: Mapping[str, Any], number: int) -> Reference:
    """One record; a field of another type than ours is read as far as it can be, else left out.

    >>> parse_own({"title": "T", "year": "2020", "authors": {"family": "Bee"}, "links": 5}, 1).year
    2020
    """
    known: dict[str, Any] = {**data, "title": clean(data["title"])}
    known |= {key: clean(data[key]) for key in TEXTS if key in data}
    known["year"] = year_number(data.get("year")) or year_number(known.get("date", "")[:4])
    known["date"] = known.get("date") or str(known["year"] or "")
    known["abstract"] = data["abstract"] if isinstance(data.get("abstract"), str) else ""
    preprint = arxiv_id(clean(data.get("arxiv_id")))
    known["arxiv_id"] = preprint.id if preprint else None
    version = clean(data.get("arxiv_version")).removeprefix("v")
    known["arxiv_version"] = int(version) if version.isdecimal() else preprint.version if preprint else None
    known["doi"] = doi(clean(data.get("doi")))
    for key in ("url", "openalex_id", "s2_id"):
        known[key] = clean(data.get(key)) or None
    known["kind"] = data["kind"] if data.get("kind") in KINDS else "paper"
    known["number"] = data["number"] if type(data.get("number")) is int else None
    known["links"] = [one for one in many(data.get("links")) if isinstance(one, dict)]
    known["notes"] = [one for one in many(data.get("notes")) if isinstance(one, str)]
    known["authors"] = read_authors(data.get("authors"))
    reference = reference_from_json(known)
    if not reference.title and not reference.doi and not reference.arxiv_id:
        raise ValueError("neither title nor identifier")
    return replace(reference, key=reference.key or clean(data.get("id")) or f"record {number}")


def many(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [value] if value else []


def read_authors(value: Any) -> list[Name]:
    """Names as objects, or as text with ";" between them."""
    found: list[Name] = []
    for one in value.split(";") if isinstance(value, str) else many(value):
        name = (
            {key: clean(part) for key, part in one.items()}
            if isinstance(one, dict)
            else {"family": clean(one)}
        )
        if not name.get("family"):
            if name.get("given"):
                name["family"] = name.pop("given")
            elif name:
                raise ValueError("an author without a family name")
        found.append({key: part for key, part in name.items() if part})
    return found
