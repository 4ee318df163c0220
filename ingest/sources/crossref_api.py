"""Asking Crossref: works by DOI, and every page of a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

from ingest.errors import NoNetwork, RecordMissing
from ingest.identifiers import doi
from ingest.records import Item, Listing, broken
from ingest.sources.crossref import parse_crossref

if TYPE_CHECKING:
    from ingest.http import Http

ROWS = 1000  # https://api.crossref.org: the most per page


def fetch_crossref(http: Http, ids: list[str]) -> Iterator[Item | Listing]:
    """Works with their reference lists as far as Crossref has them."""
    for given in ids:
        found = doi(given)
        if found is None:
            yield broken(f"doi:{given}", "not a DOI such as 10.1145/3600006.3613165", given)
            continue
        try:
            work = parse_crossref(http.get_json("crossref", f"/works/{quote(found, safe='')}"))
        except RecordMissing:
            yield broken(f"doi:{given}", "Crossref does not know this DOI")
            continue
        except NoNetwork:
            raise  # no use in asking for the others
        except ValueError as error:
            yield broken(
                f"doi:{given}", str(getattr(error, "message", error)), hint=getattr(error, "hint", "")
            )
            continue
        expected = work.stated_count if work.references else None
        yield Listing(work.subject, work.references, expected)


def fetch_query(http: Http, text: str) -> Iterator[Item | Listing]:
    """Every work of a query such as `query.bibliographic=paged attention&filter=from-pub-date:2023`; no reference
    lists, since those of thousands of works are not what a search asks for."""
    read, promised = 0, 0
    for data, total in fetch_pages(http, dict(parse_qsl(text))):
        promised = max(promised, total)
        read += 1
        try:
            yield parse_crossref(data).subject
        except ValueError as error:
            yield broken(f"crossref:{data.get('DOI', read)}", str(getattr(error, "message", error)), data)
    if read < promised:
        yield broken(f"crossref:{text}", f"{promised} works are promised, {read} came")


def fetch_pages(http: Http, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """(work, how many there are) of every page. The cursor never ends by itself at Crossref: an empty page is the end."""
    cursor = "*"
    while True:
        answer = http.get_json("crossref", "/works", {**parameters, "rows": ROWS, "cursor": cursor})
        message = answer.get("message") if isinstance(answer, dict) else None
        items = message.get("items") if isinstance(message, dict) else None
        if not isinstance(message, dict) or not items:
            return
        total = message.get("total-results")
        for item in items:
            yield item, total if isinstance(total, int) else 0
        cursor = message.get("next-cursor") or ""
        if not cursor:
            return
