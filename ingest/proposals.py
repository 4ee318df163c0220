"""Possible duplicates: pairs that look alike but that nothing proves; they wait for a person's word.

Candidates come from indexes: the same title key kept apart by its identifiers, the same address, the same first
three authors, and titles that start alike. Similarity alone never unites.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
    one, other = sorted((a, b), key=lambda work: work.slug)
    if one.title_key and one.title_key == other.title_key:
        both = bool(one.arxiv_id and other.arxiv_id and one.arxiv_id != other.arxiv_id) or bool(
            one.doi and other.doi and one.doi.lower() != other.doi.lower()
        )
        return Proposal(one.slug, other.slug, "title, identifiers differ" if both else "title", 1.0)
    if one.url_key and one.url_key == other.url_key:
        return Proposal(one.slug, other.slug, "url", 1.0)
    score = similarity(one.title, other.title)
    conflicting = bool(one.arxiv_id and other.arxiv_id) or bool(one.doi and other.doi)
    if one.authors_key and one.authors_key == other.authors_key and score >= SAME_AUTHORS_SIMILARITY:
        return (
            None
            if conflicting
            else Proposal(one.slug, other.slug, "authors and similar title", round(score, 3))
        )
    if score >= TITLE_SIMILARITY and one.first_author == other.first_author and not conflicting:
        return Proposal(one.slug, other.slug, "first author and similar title", round(score, 3))
    return None


def candidates_for(connection: Connection, works: Sequence[int]) -> dict[int, set[int]]:
    """work → works that share an indexed key with it."""
    near: dict[int, set[int]] = defaultdict(set)
    for column in ("title_key", "authors_key", "url_key"):
        for work, other in rows_in(
            connection,
            f"SELECT a.id, b.id FROM work AS a JOIN work AS b ON b.{column} = a.{column} AND b.id <> a.id"
            f" WHERE a.{column} <> '' AND a.id IN {{values}}",
            works,
        ):
            near[work].add(other)
    return {work: others for work, others in near.items() if len(others) <= CROWDED}


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


def find_proposals(connection: Connection, works: Sequence[int]) -> list[Proposal]:
    """Pairs worth a person's look in which one of `works` takes part."""
    near = candidates_for(connection, works)
    conflicts = disputed(connection, works)
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


def propose(connection: Connection, ids: Ids, works: Sequence[int], origin: str) -> int:
    """Writes the proposals that are new; how many."""
    found = find_proposals(connection, works)
    settled = decided_pairs(connection, [slug for one in found for slug in (one.a, one.b)])
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


def decided_pairs(connection: Connection, slugs: Iterable[str]) -> set[tuple[str, str]]:
    """Pairs of works that already are proposed or decided, whichever way decisions name them."""
    names = record_slugs(connection)
    wanted = set(slugs)
    pairs: set[tuple[str, str]] = set()
    if not wanted:
        return pairs
    for a, b in connection.execute(text("SELECT a, b FROM decision WHERE kind IN ('same', 'different')")):
        one, other = sorted((names.get(a, a), names.get(b, b)))
        if one in wanted or other in wanted:
            pairs.add((one, other))
    return pairs


def record_slugs(connection: Connection) -> dict[str, Any]:
    """ "zhou:27" → the slug of its work, for the records that decisions name."""
    named = {
        name
        for row in connection.execute(text("SELECT a, b FROM decision WHERE a LIKE '%:%'"))
        for name in row
    }
    if not named:
        return {}
    found = rows_in(
        connection,
        "SELECT source.slug || ':' || record.locator, work.slug FROM record JOIN source ON source.id = record.source_id"
        " JOIN work ON work.id = record.work_id WHERE record.locator IN {values}",
        {name.partition(":")[2] for name in named},
    )
    return {row[0]: row[1] for row in found if row[0] in named}
