"""Anything a person can name → the knowledge base: files, standard input, identifiers at a provider."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from ingest.errors import FetchError, IngestError, UnreadableSource
from ingest.identifiers import identify
from ingest.literature import MAX_LISTED, Report, SourceInfo, ingest_records
from ingest.records import BrokenRecord, Item, Listing, now
from ingest.references import Reference
from ingest.sources.detect import open_source

if TYPE_CHECKING:
    from sqlmodel import Session

    from ingest.http import Http

PREFIXES = ("doi", "arxiv", "openalex", "s2", "crossref")
MAX_PREVIEW = 50  # references that a dry run shows as they were read
MAX_LISTINGS = 50  # reference lists of a file of many works that are read as citations
BLOCK_BYTES = 1 << 20
METHODS = {
    "survey": "reference string", "crossref": "Crossref record", "bibtex": "BibTeX entry", "ris": "RIS record",
    "csl-json": "CSL-JSON item", "arxiv": "arXiv entry", "openalex": "OpenAlex record", "s2": "Semantic Scholar record",
    "json": "JSON record", "text": "reference string",
}  # fmt: skip


@dataclass
class Outcome:
    """What all sources together did."""

    report: Report = field(default_factory=Report)
    sources: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    hidden: int = 0  # unresolved records beyond MAX_LISTED
    preview: list[dict[str, Any]] = field(default_factory=list)  # of a dry run

    def add(self, name: str, kind: str, part: Report) -> None:
        for key in ("read", "new", "matched", "merged", "proposed", "known"):
            setattr(self.report, key, getattr(self.report, key) + getattr(part, key))
        self.report.works += part.works[: MAX_LISTED - len(self.report.works)]
        for one in part.unresolved:
            self.unresolved(name, **one)
        self.hidden += part.unlisted
        self.sources.append(
            {"source": name, "kind": kind, "read": part.read, "new": part.new, "known": part.known}
        )

    def unresolved(self, source: str, **what: Any) -> None:
        if len(self.report.unresolved) < MAX_LISTED:
            self.report.unresolved.append({"source": source, **what})
        else:
            self.hidden += 1

    def as_json(self) -> dict[str, Any]:
        return {
            **self.report.as_json(),
            "unresolved_not_listed": self.hidden,
            "sources": self.sources,
            "preview": self.preview,
            "notes": self.notes,
        }


def ingest(
    session: Session,
    sources: Sequence[str],
    *,
    dry_run: bool = False,
    stdin: BinaryIO | None = None,
    http: Http | None = None,
    note: Callable[[str], None] = lambda _text: None,
) -> Outcome:
    """Reads all sources in order. A source that fails is reported; if none can be read, its error is raised."""
    outcome = Outcome()
    errors: list[IngestError] = []
    for name, run in plan(sources, stdin, http, note):
        try:
            run(session, outcome, dry_run)
        except IngestError as error:
            errors.append(error)
            outcome.unresolved(name, locator=name, reason=error.message, hint=error.hint)
    if errors and not outcome.sources:
        raise errors[0]
    if dry_run:
        session.rollback()
    elif outcome.sources:
        from kb.search_index import update_new

        update_new(session)  # what else is missing there, from an import that an older version was killed in
        session.commit()
    return outcome


Step = Callable[["Session", Outcome, bool], None]


def plan(
    sources: Sequence[str], stdin: BinaryIO | None, http: Http | None, note: Callable[[str], None]
) -> Iterator[tuple[str, Step]]:
    """One step per source; identifiers of one provider that stand together are asked for together."""
    waiting: dict[str, list[str]] = {}

    def flush() -> Iterator[tuple[str, Step]]:
        for provider, ids in waiting.items():
            yield (
                ", ".join(ids[:3]) + (" …" if len(ids) > 3 else ""),
                fetch_step(provider, list(ids), http, note),
            )
        waiting.clear()

    for source in sources:
        provider, identifier = as_identifier(source)
        if provider:
            waiting.setdefault(provider, []).append(identifier)
            continue
        yield from flush()
        yield source, file_step(source, stdin)
    yield from flush()


def as_identifier(source: str) -> tuple[str, str]:
    """(provider, identifier) of `doi:…`, `arxiv:…` … or of a bare identifier that is no file; ("", "") for a file.

    >>> as_identifier("doi:10.48550/arXiv.2309.06180"), as_identifier("S2:CorpusID:1"), as_identifier("refs.bib")
    (('arxiv', '2309.06180'), ('s2', 'CorpusID:1'), ('', ''))
    """
    prefix, _, rest = source.strip().partition(":")
    if prefix.lower() in PREFIXES and rest.strip() and not Path(source).exists():
        provider, rest = prefix.lower(), rest.strip()
    elif (
        source != "-"
        and not Path(source).exists()
        and (found := identify(source))
        and found.scheme in PREFIXES
    ):
        provider, rest = found.scheme, found.value
    else:
        return "", ""
    found = identify(rest)
    if provider == "doi" and found is not None and found.scheme == "arxiv":
        return "arxiv", found.value  # arXiv's DOIs are DataCite's, which Crossref does not know
    return provider, rest


def file_step(source: str, stdin: BinaryIO | None) -> Step:
    def run(session: Session, outcome: Outcome, dry_run: bool) -> None:
        if source == "-":
            if stdin is None:
                raise UnreadableSource("there is no standard input", hint="give a file")
            with tempfile.TemporaryFile() as copy:
                digest = copy_and_hash(stdin, copy)
                copy.seek(0)
                read_stream(session, "standard input", copy, digest, outcome, dry_run)
            return
        path = Path(source).expanduser()
        if path.is_dir():
            raise UnreadableSource(f"{source} is a folder", hint="give the files in it")
        if not path.exists():
            raise UnreadableSource(
                f"no file {source!r}",
                hint="give a file, - for standard input, or doi:…, arxiv:…, openalex:…, s2:…",
            )
        with path.open("rb") as file:
            digest = copy_and_hash(file, None)
            file.seek(0)
            read_stream(session, source, file, digest, outcome, dry_run)

    return run


def copy_and_hash(stream: BinaryIO, copy: IO[bytes] | None) -> str:
    digest = hashlib.sha256()
    while block := stream.read(BLOCK_BYTES):
        digest.update(block)
        if copy is not None:
            copy.write(block)
    return digest.hexdigest()


def read_stream(
    session: Session, name: str, stream: Any, digest: str, outcome: Outcome, dry_run: bool
) -> None:
    """One file. A single work with references is a reference list; many works are a bibliography."""
    opened = open_source(stream)
    first = next(opened.items, None)
    second = next(opened.items, None) if isinstance(first, Listing) and first.references else None
    if isinstance(first, Listing) and first.references and second is None:
        store_listing(session, name, opened.kind, first, digest, outcome, dry_run, survey=True)
        return
    listings: list[Listing] = []
    skipped = 0

    def plain() -> Iterator[Reference]:
        nonlocal skipped
        for item in prepend([one for one in (first, second) if one is not None], opened.items):
            if isinstance(item, BrokenRecord):
                outcome.unresolved(name, **item.as_json())
                continue
            if isinstance(item, Listing):
                if item.references:
                    if len(listings) < MAX_LISTINGS:
                        listings.append(item)
                    else:
                        skipped += 1
                yield item.subject
                continue
            yield item

    store(session, name, source_info(name, opened.kind, digest), plain(), outcome, dry_run)
    for listing in listings:
        key = listing.subject.doi or listing.subject.key or listing.subject.title
        one = hashlib.sha256(f"{digest}:{key}".encode()).hexdigest()
        store_listing(session, f"{name}: {key}", opened.kind, listing, one, outcome, dry_run, survey=False)
    if skipped:
        outcome.notes.append(
            f"{name}: the reference lists of {skipped} further works were not read as citations; give those one per file"
        )


def prepend(first: Iterable[Item | Listing], rest: Iterator[Item | Listing]) -> Iterator[Item | Listing]:
    yield from first
    yield from rest


def source_info(name: str, kind: str, digest: str, *, listing: Listing | None = None) -> SourceInfo:
    # A Crossref record tells its own work well and the works that it cites badly; ranks differ (ingest/works.py).
    stored_kind = "crossref-work" if kind == "crossref" and listing is None else kind
    title = listing.subject.plain_title if listing is not None else Path(name).name
    return SourceInfo(
        kind=stored_kind,
        title=title or name,
        locator=name,
        retrieved_at=now(),
        content_sha256=digest,
        method=METHODS.get(kind, kind),
    )


def store(
    session: Session,
    name: str,
    source: SourceInfo,
    references: Iterable[Reference],
    outcome: Outcome,
    dry_run: bool,
    **options: Any,
) -> None:
    """Stores in batches. A dry run keeps all of it in one transaction, which `ingest` rolls back at the end."""
    if dry_run:
        references = watched(references, outcome.preview)
    else:
        from kb.search_index import update

        # Each batch brings its own documents, in its transaction: no list of works grows with the file.
        options["changed"] = lambda works: update(session, works)
    part = ingest_records(session, source, references, commit=not dry_run, **options)
    outcome.add(name, source.kind, part)


def watched(references: Iterable[Reference], preview: list[dict[str, Any]]) -> Iterator[Reference]:
    """Passes references on; the first of them are kept as they were read, for a person to look at."""
    for one in references:
        if len(preview) < MAX_PREVIEW:
            preview.append({**one.as_json(), "title": one.plain_title})
        yield one


def store_listing(
    session: Session,
    name: str,
    kind: str,
    listing: Listing,
    digest: str,
    outcome: Outcome,
    dry_run: bool,
    *,
    survey: bool,
) -> None:
    """A work and what it cites; what could not be read and what is missing is reported."""
    good = [item for item in listing.references if isinstance(item, Reference)]
    for item in listing.references:
        if isinstance(item, BrokenRecord):
            outcome.unresolved(name, **item.as_json())
    source = source_info(name, kind, digest, listing=listing)
    store(session, name, source, good, outcome, dry_run, subject=listing.subject, survey=survey)
    if listing.shortfall:
        outcome.unresolved(
            name,
            locator=name,
            reason=f"{listing.expected} references are promised, {len(good)} came",
            expected=listing.expected,
            fetched=len(good),
            complete=False,
        )


def fetch_step(provider: str, ids: list[str], http: Http | None, note: Callable[[str], None]) -> Step:
    def run(session: Session, outcome: Outcome, dry_run: bool) -> None:
        asking = http or polite_session(note)
        plain: list[Reference] = []
        listings: list[Listing] = []
        problems: list[BrokenRecord] = []
        name = f"{provider}:{','.join(ids)}"[:200]
        try:
            for item in fetch(asking, provider, ids):
                if isinstance(item, BrokenRecord):
                    problems.append(item)
                    continue
                if isinstance(item, Listing) and (item.references or item.expected):
                    listings.append(item)
                if not isinstance(item, Listing) or not item.references:
                    plain.append(item.subject if isinstance(item, Listing) else item)
        except FetchError as error:
            if not plain and not listings and not problems:
                raise
            # What came before the connection ended is kept; the rest is named.
            problems.append(BrokenRecord(name, f"not all was fetched: {error.message}", hint=error.hint))
        for one in problems:
            outcome.unresolved(f"{provider}:{one.locator.removeprefix(provider + ':')}", **one.as_json())
        if problems and not plain and not listings:
            last = problems[-1]
            raise IngestError(f"{last.locator}: {last.reason}", hint=last.hint or "check the identifier")
        if plain:
            kind = provider if provider != "doi" else "crossref"
            source = source_info(name, kind, content_digest(provider, plain))
            store(session, name, source, plain, outcome, dry_run)
        for listing in listings:
            kind = "crossref" if provider == "doi" else provider
            key = listing.subject.doi or listing.subject.key or listing.subject.arxiv_id or ""
            digest = content_digest(
                provider, [listing.subject, *(r for r in listing.references if isinstance(r, Reference))]
            )
            store_listing(session, f"{provider}:{key}", kind, listing, digest, outcome, dry_run, survey=False)

    return run


def content_digest(provider: str, references: Iterable[Reference]) -> str:
    """The same answer again is the same source; a changed answer is a new one."""
    digest = hashlib.sha256(provider.encode())
    for one in references:
        digest.update(json.dumps(one.as_json(), sort_keys=True).encode())
    return digest.hexdigest()


def fetch(http: Http, provider: str, ids: list[str]) -> Iterator[Item | Listing]:
    if provider == "doi":
        from ingest.sources.crossref_api import fetch_crossref

        return fetch_crossref(http, ids)
    if provider == "crossref":
        from ingest.sources.crossref_api import fetch_query

        return (item for query in ids for item in fetch_query(http, query))
    if provider == "arxiv":
        from ingest.sources.arxiv import fetch_arxiv

        return iter(fetch_arxiv(http, ids))
    if provider == "openalex":
        from ingest.sources.openalex import fetch_openalex

        return fetch_openalex(http, ids)
    from ingest.sources.semantic_scholar import fetch_s2

    return fetch_s2(http, ids)


def polite_session(note: Callable[[str], None]) -> Http:
    import os

    from ingest.http import Http
    from ingest.http_cache import Cache

    return Http(cache=Cache.of_user(os.environ), note=note)
