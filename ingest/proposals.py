"""Possible duplicates: pairs that look alike but that nothing proves; they wait for a person's word.

Candidates come from indexes: the same title key kept apart by its identifiers, the same address, the same first
three authors, and titles that start alike. Similarity alone never unites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import text

from ingest.resolve import similarity
from ingest.tables import Ids, insert_rows, rows_in

if TYPE_CHECKING:
    from sqlalchemy import Connection

TITLE_SIMILARITY = 0.6
SAME_AUTHORS_SIMILARITY = 0.5
CROWDED = 50  # works that share a key; beyond, the key says nothing


class Candidate(NamedTuple):
    """A work as the proposer sees it."""

    id: int
    slug: str
    title: str
    title_key: str
    authors_key: str
    first_author: str
    url_key: str
    arxiv_id: str | None
    doi: str | None
    year: int | None


class Proposal(NamedTuple):
    """Two works, why they may be one, and how alike they are (0 … 1)."""

    a: str
    b: str
    basis: str
    score: float


COLUMNS = "id, slug, title, title_key, authors_key, first_author, url_key, arxiv_id, doi, year"


def compare(a: Candidate, b: Candidate) -> Proposal | None:
    """Judges one pair of candidates."""
    alike = likeness(a, b)
    if alike is None:
        return None
    one, other = sorted((a.slug, b.slug))
    return Proposal(one, other, *alike)


def likeness(a: Candidate, b: Candidate) -> tuple[str, float] | None:
    """Why two works may be one and how alike they are; None where nothing says so. Asked for many pairs."""
    if a.title_key and a.title_key == b.title_key:
        both = bool(a.arxiv_id and b.arxiv_id and a.arxiv_id != b.arxiv_id) or bool(
            a.doi and b.doi and a.doi.lower() != b.doi.lower()
        )
        return ("title, identifiers differ" if both else "title", 1.0)
    if a.url_key and a.url_key == b.url_key:
        return ("url", 1.0)
    if (a.arxiv_id and b.arxiv_id) or (a.doi and b.doi):
        return None  # each has its own identifier
    authors = bool(a.authors_key) and a.authors_key == b.authors_key
    if not authors and a.first_author != b.first_author:
        return None
    score = similarity(a.title, b.title)
    if authors and score >= SAME_AUTHORS_SIMILARITY:
        return ("authors and similar title", round(score, 3))
    if a.first_author == b.first_author and score >= TITLE_SIMILARITY:
        return ("first author and similar title", round(score, 3))
    return None


def candidates_for(connection: Connection, works: Sequence[int]) -> dict[int, set[int]]:
    """work → works that share an indexed key with it."""
    near: dict[int, set[int]] = defaultdict(set)
    for column in ("title_key", "authors_key", "url_key"):
        for work, other in rows_in(
            connection,
            f"SELECT a.id, b.id FROM work AS a JOIN work AS b ON b.{column} = a.{column} AND b.id <> a.id"
            f" WHERE a.{column} <> '' AND a.id IN {{values}} AND NOT EXISTS"
            # Asked before the join, which would read every work of a name that thousands share.
            f" (SELECT 1 FROM work AS c WHERE c.{column} = a.{column} LIMIT 1 OFFSET {CROWDED + 1})",
            works,
        ):
            near[work].add(other)
    return near


def disputed(connection: Connection, works: Sequence[int]) -> dict[tuple[int, int], str]:
    """Pairs of works that state one identifier although neither titles nor authors agree: one of them errs."""
    # `|| ''` keeps SQLite from starting at the schemes, which are few, instead of the works, which are fewer.
    rows = rows_in(
        connection,
        "SELECT a.work_id, b.work_id, a.scheme FROM identifier AS a JOIN identifier AS b ON b.scheme = a.scheme"
        " AND b.value = a.value AND b.work_id <> a.work_id"
        " WHERE a.scheme || '' IN ('arxiv', 'doi', 'openalex', 's2') AND a.work_id IN {values}",
        works,
    )
    return {(row[0], row[1]): row[2] for row in rows}


def find_proposals(connection: Connection, works: Sequence[int], told: Sequence[int] = ()) -> list[Proposal]:
    """Pairs worth a person's look in which one of `works` takes part, or a disputed identifier of one of `told`."""
    near = candidates_for(connection, works)
    conflicts = disputed(connection, told or works)
    wanted = sorted({*near, *(other for others in near.values() for other in others), *sum(conflicts, ())})
    rows = rows_in(connection, f"SELECT {COLUMNS} FROM work WHERE id IN {{values}}", wanted)
    known = {row[0]: Candidate(*row) for row in rows}
    found = set()
    for (work, other), scheme in conflicts.items():
        one, two = sorted((known[work], known[other]), key=lambda candidate: candidate.slug)
        score = round(similarity(one.title, two.title), 3)
        found.add(Proposal(one.slug, two.slug, f"same {scheme}, but titles and authors differ", score))
    for work, others in near.items():
        for other in others:
            if (work, other) in conflicts or (other, work) in conflicts:
                continue
            proposal = compare(known[work], known[other])
            if proposal is not None:
                found.add(proposal)
    return sorted(found)


def propose(
    connection: Connection, ids: Ids, works: Sequence[int], origin: str, told: Sequence[int] = ()
) -> int:
    """Writes the proposals that are new about works whose columns changed (or whose records did: `told`); how many."""
    found = find_proposals(connection, works, told)
    settled = decided_pairs(connection, found)
    rows = [
        {
            "id": ids.next("decision"),
            "kind": "same",
            "a": one.a,
            "b": one.b,
            "status": "proposed",
            "basis": one.basis,
            "score": one.score,
            "source": "resolver",
            "made_at": "",
            "data": {},
            "origin": origin,
        }
        for one in found
        if (one.a, one.b) not in settled
    ]
    insert_rows(connection, "decision", rows)
    return len(rows)


def decided_pairs(connection: Connection, found: Iterable[Proposal]) -> set[tuple[str, str]]:
    """Pairs of works that already are proposed or decided, whichever way decisions name them.

    The resolver's own proposals, of which there may be very many, name works, and are looked up by the first of the
    two; people's decisions, which are few, name records.
    """
    rows = rows_in(
        connection,
        "SELECT a, b FROM decision WHERE a IN {values} AND kind IN ('same', 'different')",
        {one.a for one in found},
    )
    pairs = {(row[0], row[1]) for row in rows}
    if not found:
        return pairs
    decided = connection.execute(
        text(
            "SELECT a, b FROM decision WHERE status IN ('accepted', 'rejected') AND kind IN ('same', 'different')"
        )
    ).fetchall()
    names = record_slugs(connection, {name for row in decided for name in row if ":" in name})
    for a, b in decided:
        one, other = sorted((names.get(a, a), names.get(b, b)))
        pairs.add((one, other))
    return pairs


def record_slugs(connection: Connection, named: Iterable[str]) -> dict[str, str]:
    """ "zhou:27" → the slug of its work, for the records that decisions name."""
    by_source: dict[str, list[str]] = defaultdict(list)
    for name in sorted(named):
        source, _, locator = name.partition(":")
        by_source[source].append(locator)
    found: dict[str, str] = {}
    for source, locators in by_source.items():
        for locator, slug in rows_in(
            connection,
            "SELECT record.locator, work.slug FROM source JOIN record ON record.source_id = source.id"
            " JOIN work ON work.id = record.work_id WHERE source.slug = :source AND record.locator IN {values}",
            locators,
            source=source,
        ):
            found[f"{source}:{locator}"] = slug
    return found
