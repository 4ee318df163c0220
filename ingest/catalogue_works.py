"""Works that techniques name: found in the knowledge base by any identifier, or added as catalogue records.

A catalogue record is also added where a survey cites a work without its arXiv id and a technique knows it: the
record repeats the work's title and authors, so the resolver joins the two and `kb show <arXiv id>` finds the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sqlmodel import select

import kb.models as tables
from kb.identifiers import doi_key, url_key
from kb.text import title_key
from taxonomy.model import WorkRef

if TYPE_CHECKING:
    from sqlmodel import Session

    from ingest.references import Reference

SOURCE = "catalogue"


class WorkIndex:
    """Every identifier of every known work, read once."""

    def __init__(self, session: Session) -> None:
        rows = session.exec(
            select(tables.Identifier.scheme, tables.Identifier.value, tables.Identifier.work_id)
        ).all()
        self.by_identifier = {(scheme, value): work_id for scheme, value, work_id in rows}
        records: Any = tables.Record
        sources: Any = tables.Source
        listed = session.exec(
            select(sources.slug, records.locator, records.work_id).where(sources.id == records.source_id)
        ).all()
        self.by_reference = {f"{slug}:{locator}": work_id for slug, locator, work_id in listed}

    def find(self, work: WorkRef) -> int | None:
        """The work's id; the strongest identifier decides: arXiv, DOI, survey reference, title, link."""
        doi = doi_key(work.doi) if work.doi else None
        for scheme, value in (("arxiv", work.arxiv_id), ("doi", doi)):
            if value and (scheme, value) in self.by_identifier:
                return self.by_identifier[scheme, value]
        if work.reference and self.by_reference.get(work.reference) is not None:
            return self.by_reference[work.reference]
        if work.title and ("title", title_key(work.title)) in self.by_identifier:
            return self.by_identifier["title", title_key(work.title)]
        return self.by_identifier.get(("url", url_key(work.url))) if work.url else None

    def lacks_arxiv(self, work: WorkRef) -> bool:
        """Whether the technique knows an arXiv id that no record states."""
        return bool(work.arxiv_id) and ("arxiv", work.arxiv_id) not in self.by_identifier


def add_works(session: Session, works: Iterable[WorkRef], index: WorkIndex) -> bool:
    """Adds a catalogue record for every work that is unknown or known without its arXiv id; True if any."""
    from ingest.literature import SourceInfo, ingest_records

    references = list(_references(session, works, index))
    if references:
        source = SourceInfo(
            kind=SOURCE, title="The catalogue of techniques", slug=SOURCE, locator="taxonomy/data/techniques"
        )
        ingest_records(session, source, references, origin=tables.PACKAGED, commit=False)
    return bool(references)


def _references(session: Session, works: Iterable[WorkRef], index: WorkIndex) -> Iterator[Reference]:
    """One reference per work, in the order of their keys, so that every build numbers them alike."""
    wanted: dict[str, WorkRef] = {}
    for work in works:
        if index.find(work) is not None and not index.lacks_arxiv(work):
            continue
        key = work.arxiv_id or work.doi or work.title or work.url
        if not key:
            continue
        known = wanted.get(key)
        if known is None or (not known.title and work.title) or len(known.authors) < len(work.authors):
            wanted[key] = work
    for key in sorted(wanted):
        found = index.find(wanted[key])
        row = session.get(tables.Work, found) if found is not None else None
        if row is None or row.kind == "paper":  # a repository or a blog post is not the paper about it
            yield _reference(wanted[key], key, row)


def _reference(work: WorkRef, key: str, row: tables.Work | None) -> Reference:
    from ingest.names import split_given_first
    from ingest.references import Reference

    if row is not None:
        title, year = row.title, row.year
        authors: tuple[Any, ...] = tuple(row.authors)
    else:
        title, year = work.title or "", work.year
        authors = tuple(split_given_first(", ".join(work.authors)).names) if work.authors else ()
    return Reference(
        title=title,
        authors=authors,
        et_al=row is None and len(work.authors) > 1,
        year=year,
        arxiv_id=work.arxiv_id,
        doi=work.doi,
        url=work.url,
        kind="paper" if work.arxiv_id or work.doi else "website",
        key=key,
    )
