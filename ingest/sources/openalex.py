"""OpenAlex works → references; `fetch_openalex` asks for works with what they cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from ingest.errors import RecordMissing
from ingest.identifiers import arxiv_id, doi, openalex_id
from ingest.records import Item, Listing, broken, clean, read_date, split_status, year_of
from ingest.references import Reference
from ingest.sources.fields import family_first, given_name_first, inline_text, venue_text, year_number

if TYPE_CHECKING:
    from ingest.http import Http

KINDS = {"book": "book", "software": "software", "dataset": "website"}
BATCH = 50  # values that one filter takes: https://docs.openalex.org
PAGE_SIZE = 100
MAX_SINGLE_REQUESTS = 25  # works missing from a batch that are looked up one by one, to follow merged ids
FIELDS = (
    "id,doi,title,display_name,publication_year,publication_date,ids,type,authorships,primary_location,locations,"
    "biblio,is_retracted,abstract_inverted_index,referenced_works,referenced_works_count"
)


def looks_like_openalex(data: Any) -> bool:
    """Whether a decoded object is an OpenAlex work."""
    return isinstance(data, dict) and (
        openalex_id(str(data.get("id") or "")) is not None
        and ("authorships" in data or "display_name" in data or "title" in data)
    )


def parse_openalex_work(data: Mapping[str, Any]) -> Reference:
    """One work; raises ValueError where it has neither title nor identifier."""
    title, status = split_status(inline_text(clean(data.get("title") or data.get("display_name"))))
    found_doi = doi(clean(data.get("doi") or mapping(data.get("ids")).get("doi")))
    preprint = arxiv_id(found_doi)
    for location in listed(data.get("locations")):
        preprint = preprint or arxiv_id(clean(mapping(location).get("landing_page_url")))
    if not title and not found_doi and preprint is None:
        raise ValueError("neither title nor identifier")
    authors = []
    for authorship in listed(data.get("authorships")):
        text = clean(mapping(mapping(authorship).get("author")).get("display_name")) or clean(
            mapping(authorship).get("raw_author_name")
        )
        if text:
            authors.append(family_first(text) if "," in text else given_name_first(text))
    biblio = mapping(data.get("biblio"))
    pages = "–".join(
        dict.fromkeys(p for p in (clean(biblio.get("first_page")), clean(biblio.get("last_page"))) if p)
    )
    source = mapping(mapping(data.get("primary_location")).get("source"))
    date = read_date(clean(data.get("publication_date")))
    year = year_number(data.get("publication_year")) or year_of(date)
    url = clean(mapping(data.get("primary_location")).get("landing_page_url"))
    return Reference(
        title=title,
        authors=tuple(authors),
        year=year,
        date=date if year_of(date) == year else str(year or ""),
        venue=venue_text(inline_text(clean(source.get("display_name")))),
        volume=clean(biblio.get("volume")),
        issue=clean(biblio.get("issue")),
        pages=pages,
        arxiv_id=preprint.id if preprint else None,
        arxiv_version=preprint.version if preprint else None,
        doi=None if arxiv_id(found_doi) else found_doi,
        url=url if url and "doi.org/" not in url and arxiv_id(url) is None else None,
        openalex_id=openalex_id(clean(data.get("id"))),
        kind=KINDS.get(clean(data.get("type")), "paper"),
        key=openalex_id(clean(data.get("id"))) or "",
        status="retracted" if data.get("is_retracted") else status,
        abstract=abstract(data.get("abstract_inverted_index")),
    )


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def abstract(index: Any) -> str:
    """OpenAlex keeps an abstract as word → positions.

    >>> abstract({"is": [1], "This": [0], "it": [2]})
    'This is it'
    """
    if not isinstance(index, dict):
        return ""
    places = [
        (place, word)
        for word, found in index.items()
        for place in listed(found)
        if isinstance(place, int) and isinstance(word, str)
    ]
    return clean(" ".join(word for _place, word in sorted(places)))


def fetch_openalex(http: Http, ids: list[str], *, cited: bool = True) -> Iterator[Item | Listing]:
    """Works by OpenAlex id, DOI or arXiv id; with the works that they cite."""
    for given in ids:
        if "=" in given:
            yield from fetch_query(http, given)
            continue
        work = openalex_id(given)
        path = f"/works/{work}" if work else f"/works/doi:{doi(given)}" if doi(given) else None
        if path is None:
            yield broken(f"openalex:{given}", "not an OpenAlex id such as W2741809807, nor a DOI", given)
            continue
        try:
            data = http.get_json("openalex", path, {"select": FIELDS})
            subject = parse_openalex_work(data)
        except RecordMissing as error:
            yield broken(f"openalex:{given}", error.message)
            continue
        citing = [found for one in listed(data.get("referenced_works")) if (found := openalex_id(clean(one)))]
        references = tuple(fetch_works(http, citing)) if cited and citing else ()
        expected = data.get("referenced_works_count") if cited else None
        yield Listing(subject, references, expected if isinstance(expected, int) else None)


def fetch_works(http: Http, ids: list[str]) -> Iterator[Item]:
    """Many works by id, in the order of `ids`: batches first, then one by one what they left out.

    OpenAlex lists works that it has since deleted (404) or merged into another (301): the latter are followed, the
    former reported.
    """
    found: dict[str, Item] = {}
    for start in range(0, len(ids), BATCH):
        part = ids[start : start + BATCH]
        for data, _total in fetch_pages(http, {"filter": f"openalex_id:{'|'.join(part)}"}):
            identifier = openalex_id(clean(mapping(data).get("id")))
            if identifier:
                found[identifier] = safe(data, identifier)
    missing = [one for one in ids if one not in found]
    for count, one in enumerate(missing):
        if count >= MAX_SINGLE_REQUESTS:
            found[one] = broken(f"openalex:{one}", "not among the works that OpenAlex sent")
            continue
        try:
            found[one] = safe(http.get_json("openalex", f"/works/{one}", {"select": FIELDS}), one)
        except RecordMissing:
            found[one] = broken(f"openalex:{one}", "OpenAlex lists this work but no longer has it (404)")
    for number, one in enumerate(ids, start=1):
        item = found[one]
        yield item if not isinstance(item, Reference) else numbered(item, number)


def numbered(reference: Reference, number: int) -> Reference:
    from dataclasses import replace

    return replace(reference, number=number)


def safe(data: Any, identifier: str) -> Item:
    try:
        return parse_openalex_work(mapping(data))
    except ValueError as error:
        return broken(f"openalex:{identifier}", str(error), data)


def fetch_query(http: Http, text: str) -> Iterator[Item]:
    """Every work of a query such as `filter=cites:W2741809807` or `search=paged attention`."""
    read, promised = 0, 0
    for data, total in fetch_pages(http, dict(parse_qsl(text))):
        promised = max(promised, total)
        read += 1
        yield safe(data, str(read))
    if read < promised:
        yield broken(f"openalex:{text}", f"{promised} works are promised, {read} came")


def fetch_pages(http: Http, parameters: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """(work, how many there are) page by page with the cursor, until a page is empty or the cursor ends."""
    cursor: str | None = "*"
    seen: set[str] = set()
    while cursor and cursor not in seen:
        seen.add(cursor)  # a cursor that comes twice would never end
        page = mapping(
            http.get_json(
                "openalex",
                "/works",
                {**parameters, "select": FIELDS, "per-page": PAGE_SIZE, "cursor": cursor},
            )
        )
        results, meta = page.get("results") or [], mapping(page.get("meta"))
        for one in results:
            yield one, meta["count"] if isinstance(meta.get("count"), int) else 0
        if not results:
            return
        cursor = meta.get("next_cursor")
