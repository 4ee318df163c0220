"""References into the knowledge base: any list of them, and the surveys that the package ships.

`ingest_records` is the one way in for every format. It works in batches, each one transaction: a killed import
leaves whole batches behind, and running it again continues, because a record is known by its source's content
and its place in it.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from ingest.decisions import Decisions, load_decisions
from ingest.matching import NewRecord, count_surveys, prepare, resolve_batch, store_records
from ingest.proposals import propose
from ingest.references import Reference
from ingest.tables import Ids, insert_rows, rows_in
from kb.models import PACKAGED, USER

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlmodel import Session

BATCH = 8000
BATCH_CHARACTERS = 8_000_000  # of abstracts in one batch: each is held several times while it is written
SUBJECT = "subject"
MAX_LISTED = 1000  # records and works that a report names; a file of any size is read in the same memory


@dataclass(frozen=True)
class SourceInfo:
    """Where references come from. `content_sha256` makes a second import of the same content a no-op."""

    kind: str  # survey | crossref-work | bibtex | ris | csl-json | arxiv | openalex | s2 | curated
    title: str
    locator: str = ""  # URL, DOI or file name
    retrieved_at: str = ""
    content_sha256: str = ""
    slug: str = ""  # chosen from the subject or the locator if empty
    method: str = ""  # how the records are read


@dataclass
class Report:
    """What an import did."""

    read: int = 0
    new: int = 0  # works made
    matched: int = 0  # the other records: their works were known, or came earlier in this import
    merged: int = 0  # works united by what the new records say
    proposed: int = 0  # possible duplicates that wait for a person
    known: int = 0  # of the matched: records that an earlier import of the same content had stored
    unresolved: list[dict[str, Any]] = field(default_factory=list)  # the first MAX_LISTED of them
    unlisted: int = 0  # how many more
    works: list[int] = field(default_factory=list)  # rows made or changed, the first MAX_LISTED of them

    def as_json(self) -> dict[str, Any]:
        return {
            "read": self.read,
            "new": self.new,
            "matched": self.matched,
            "merged": self.merged,
            "proposed": self.proposed,
            "known": self.known,
            "unresolved": self.unresolved,
        }


def ingest_records(
    session: Session,
    source: SourceInfo,
    references: Iterable[Reference],
    *,
    subject: Reference | None = None,
    survey: bool = True,
    origin: str = USER,
    commit: bool = True,
    proposals: bool = True,
    batch: int = BATCH,
    changed: Callable[[list[int]], None] = lambda _works: None,
) -> Report:
    """Stores references and finds the work of each; `subject` is the paper whose reference list they are.

    The subject is registered as a survey unless `survey` is False, as for any paper that a provider describes.

    With `commit`, each batch is a transaction of its own; the caller commits otherwise. `changed` is told the works
    that a batch made or changed, within its transaction.
    """
    report = Report()
    connection = session.connection()
    source_id, slug = source_row(connection, source, subject, origin)
    importer = Importer(source_id, slug, source, origin, load_decisions(connection), proposals)
    if subject is not None:
        importer.citing = importer.store(session, [replace(subject, key=SUBJECT)], 0, Report())[0]
        changed(importer.works)
        if survey:
            add_survey(connection, slug, importer.citing, source)
    position = 1
    for chunk in chunks(references, batch):
        report.read += len(chunk)
        with collector_paused():
            importer.store(session, chunk, position, report)
        changed(importer.works)
        report.works += importer.works[: MAX_LISTED - len(report.works)]
        position += len(chunk)
        if commit:
            session.commit()
    if importer.citing is not None:
        finish_survey(session.connection(), source_id, importer.citing)
    report.matched = report.read - report.new
    if commit:
        session.commit()
    return report


@contextmanager
def collector_paused() -> Iterator[None]:
    """A batch makes a million small objects and no cycles; looking for cycles among them costs a quarter of the time."""
    active = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if active:
            gc.enable()


def chunks(references: Iterable[Reference], size: int) -> Iterator[list[Reference]]:
    """Batches of `size` references, of fewer where their abstracts are long."""
    chunk: list[Reference] = []
    characters = 0
    for one in references:
        chunk.append(one)
        characters += len(one.abstract)
        if len(chunk) >= size or characters >= BATCH_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


@dataclass
class Importer:
    """One import in progress."""

    source_id: int
    slug: str
    source: SourceInfo
    origin: str
    decisions: Decisions
    proposals: bool = True
    citing: int | None = None  # the subject's record
    works: list[int] = field(default_factory=list)  # made or changed by the last batch

    def store(
        self, session: Session, references: Sequence[Reference], position: int, report: Report
    ) -> list[int]:
        """One batch: records, works, citations, proposals; the record ids in order, known ones included."""
        connection = session.connection()
        ids = Ids(connection)
        found, fresh = self.place(connection, ids, references, position)
        report.known += len(references) - len(fresh)
        self.works = []
        for record in fresh:
            if said_anything(record.reference):
                continue
            if len(report.unresolved) < MAX_LISTED:
                report.unresolved.append(unresolved(record))
            else:
                report.unlisted += 1
        if not fresh:
            return found
        plan = resolve_batch(connection, ids, fresh, self.decisions, self.origin)
        method = self.source.method or self.source.kind
        store_records(
            connection,
            ids,
            self.source_id,
            fresh,
            self.origin,
            method=method,
            retrieved_at=self.source.retrieved_at,
        )
        if self.citing is not None:
            cite(connection, ids, self.citing, fresh, self.origin)
            count_surveys(connection, plan.touched)
        report.new += len(plan.created)
        report.merged += len(plan.absorbed)
        # Absorbed works, too: what is written about them elsewhere has to go; and cited ones have a new citation.
        cited = plan.touched if self.citing is not None else ()
        self.works = sorted({*plan.created, *plan.updated, *plan.absorbed, *cited})
        if self.proposals:
            told = sorted({*plan.created, *plan.updated})
            report.proposed += propose(connection, ids, sorted(plan.changed), self.origin, told=told)
        return found

    def place(
        self, connection: Connection, ids: Ids, references: Sequence[Reference], position: int
    ) -> tuple[list[int], list[NewRecord]]:
        """Each reference's place in its source; those that an earlier import stored there are not stored again.

        A key that occurs twice in one file gets its position: "smith2020@17".
        """
        places = [(locator_of(one, position + i), position + i) for i, one in enumerate(references)]
        asked = {name for locator, number in places for name in (locator, f"{locator}@{number}")}
        stored = stored_locators(connection, self.source_id, asked)
        found: list[int] = []
        fresh: list[NewRecord] = []
        for (locator, number), reference in zip(places, references, strict=True):
            if locator in stored and stored[locator][1] != number:
                locator = f"{locator}@{number}"
            if locator not in stored:
                record = prepare(
                    ids.next("record"),
                    reference,
                    self.source.kind,
                    f"{self.slug}:{locator}",
                    position=number,
                    subject=locator == SUBJECT,
                )
                fresh.append(record)
                stored[locator] = (record.id, number)
            found.append(stored[locator][0])
        return found, fresh


def said_anything(reference: Reference) -> bool:
    return bool(
        reference.title or reference.url or reference.doi or reference.arxiv_id or reference.openalex_id
    )


def unresolved(record: NewRecord) -> dict[str, Any]:
    return {
        "number": record.reference.number,
        "locator": record.name.partition(":")[2],
        "reason": "no title, identifier or link was found",
    }


def locator_of(reference: Reference, position: int) -> str:
    """A record's place in its source: the subject, the number in the list, the entry's key, or its position."""
    if reference.key == SUBJECT:
        return SUBJECT
    if reference.number is not None:
        return str(reference.number)
    return reference.key or str(position)


def stored_locators(
    connection: Connection, source_id: int, locators: Iterable[str]
) -> dict[str, tuple[int, int]]:
    """locator → (record, position) of what the source has stored already."""
    found = rows_in(
        connection,
        "SELECT locator, id, position FROM record WHERE source_id = :source AND locator IN {values}",
        locators,
        source=source_id,
    )
    return {row[0]: (row[1], row[2]) for row in found}


def source_row(
    connection: Connection, source: SourceInfo, subject: Reference | None, origin: str
) -> tuple[int, str]:
    """The source's row; the same content finds the row of the earlier import."""
    if source.content_sha256:
        row = connection.execute(
            text("SELECT id, slug FROM source WHERE sha256 = :sha ORDER BY id"),
            {"sha": source.content_sha256},
        ).first()
        if row is not None:
            return row[0], row[1]
    slug = source.slug or suggest_slug(source, subject)
    taken = {row[0] for row in connection.execute(text("SELECT slug FROM source"))}
    number, wanted = 2, slug
    while slug in taken:
        slug, number = f"{wanted}-{number}", number + 1
    source_id = Ids(connection).next("source")
    insert_rows(
        connection,
        "source",
        [
            {
                "id": source_id,
                "slug": slug,
                "kind": source.kind,
                "title": source.title,
                "locator": source.locator,
                "retrieved_at": source.retrieved_at,
                "sha256": source.content_sha256,
                "origin": origin,
            }
        ],
    )
    return source_id, slug


def suggest_slug(source: SourceInfo, subject: Reference | None) -> str:
    """`zhou` for a survey by Zhou et al., else from the file's name; digits of the content keep it apart."""
    import re

    from kb.text import fold

    if subject is not None and subject.first_author:
        return re.sub(r"[^a-z0-9]+", "-", fold(subject.first_author)).strip("-")
    name = source.locator.rstrip("/").rpartition("/")[2].rpartition(":")[2] or source.kind
    slug = re.sub(r"[^a-z0-9]+", "-", fold(name)).strip("-") or source.kind
    digest = source.content_sha256 or hashlib.sha256(source.locator.encode()).hexdigest()
    return f"{slug[:40]}-{digest[:6]}"


def cite(connection: Connection, ids: Ids, citing: int, records: Sequence[NewRecord], origin: str) -> None:
    """The subject's work cites the work of each record."""
    work = connection.execute(text("SELECT work_id FROM record WHERE id = :id"), {"id": citing}).scalar_one()
    insert_rows(
        connection,
        "citation",
        [
            {
                "id": ids.next("citation"),
                "citing_record_id": citing,
                "citing_id": work,
                "cited_id": record.work_id,
                "record_id": record.id,
                "number": record.reference.number,
                "page": "",
                "origin": origin,
            }
            for record in records
        ],
    )


def add_survey(connection: Connection, slug: str, subject_record: int, source: SourceInfo) -> None:
    """Registers a paper whose reference list is stored under its source's slug; once, whatever pages tell of it."""
    known = connection.execute(
        text(
            "SELECT 1 FROM survey WHERE slug = :slug OR work_id ="
            " (SELECT work_id FROM record WHERE id = :record)"
        ),
        {"slug": slug, "record": subject_record},
    ).first()
    if known is None:
        connection.execute(
            text(
                "INSERT INTO survey (slug, work_id, name, reference_count)"
                " SELECT :slug, work_id, :name, 0 FROM record WHERE id = :record"
            ),
            {"slug": slug, "name": source.title, "record": subject_record},
        )


def finish_survey(connection: Connection, source_id: int, subject_record: int) -> None:
    """The number of references, and how many surveys cite each of the works."""
    connection.execute(
        text(
            "UPDATE survey SET reference_count = (SELECT COUNT(*) FROM citation WHERE citing_record_id = :record)"
            " WHERE work_id = (SELECT work_id FROM record WHERE id = :record) AND slug ="
            " (SELECT slug FROM source WHERE id = :source)"
        ),
        {"record": subject_record, "source": source_id},
    )
    count_surveys(
        connection,
        [
            row[0]
            for row in connection.execute(
                text("SELECT DISTINCT cited_id FROM citation WHERE citing_record_id = :record"),
                {"record": subject_record},
            )
        ],
    )


def load_surveys(session: Session) -> None:
    """Package data → Source, Work, Record, Identifier, Citation, Survey, Decision rows; the user's rows stay."""
    from ingest.curated import packaged_decisions, packaged_sources
    from ingest.merging import keep_merged_slugs
    from ingest.rebuild import name_packaged, remove_packaged

    connection = session.connection()
    remove_packaged(connection)
    insert_rows(connection, "decision", packaged_decisions(Ids(connection)))
    for source, subject, references in packaged_sources():
        ingest_records(
            session, source, references, subject=subject, origin=PACKAGED, commit=False, proposals=False
        )
    name_packaged(connection)
    keep_merged_slugs(connection)
    stated = text("SELECT DISTINCT work_id FROM record WHERE origin = :origin ORDER BY work_id")
    works = [row[0] for row in connection.execute(stated, {"origin": PACKAGED})]
    propose(connection, Ids(connection), works, PACKAGED)
    session.flush()
