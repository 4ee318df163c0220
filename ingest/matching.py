"""Resolving a batch of new records against the store: look up keys, cluster what they touch, write the result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import text

from ingest.decisions import Decisions
from ingest.keys import Key, Keys, identifier_rows, keys_of, signature
from ingest.references import Reference
from ingest.resolve import Node, partition
from ingest.tables import (
    Ids,
    StoredRecord,
    anchor_signatures,
    insert_rows,
    known_signatures,
    move_records,
    record_ids,
    records_of,
    replace_work,
    run_in,
    taken_slugs,
    update_works,
    works_with,
)
from ingest.works import slug_candidates, source_rank, work_fields
from kb.text import RETRACTION

if TYPE_CHECKING:
    from sqlalchemy import Connection


@dataclass(slots=True)
class NewRecord:
    """A record about to be stored."""

    id: int
    reference: Reference
    fields: dict[str, Any]
    signature: str
    rank: int
    name: str  # "zhou:27"
    position: int = 0
    work_id: int = 0
    keys: Keys = field(default_factory=Keys)


class Restored(NamedTuple):
    """A work that an undo brings back: the columns that do not follow from records."""

    id: int
    slug: str
    origin: str
    role: str = ""
    role_reason: str = ""


@dataclass(slots=True)
class Plan:
    """What resolving a batch will write, in this order; `keep` and `restore` are a person's wishes."""

    created: dict[int, dict[str, Any]] = field(default_factory=dict)  # work → fields
    updated: dict[int, dict[str, Any]] = field(
        default_factory=dict
    )  # told again; not all come out differently
    changed: set[int] = field(
        default_factory=set
    )  # works whose fields are new, known once the plan is written
    moves: dict[int, int] = field(default_factory=dict)  # record → work
    absorbed: dict[int, int] = field(default_factory=dict)  # work → the work that takes it
    touched: set[int] = field(default_factory=set)
    keep: set[int] = field(default_factory=set)  # works whose id stays where several meet
    restore: dict[str, Restored] = field(default_factory=dict)  # signature of the oldest record → work


@dataclass(slots=True)
class Group:
    """Stored and new records that share keys, directly or through others."""

    nodes: dict[str, Node] = field(default_factory=dict)  # by signature
    statements: dict[str, tuple[int, Reference]] = field(default_factory=dict)
    stored: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))  # signature → works
    names: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # signature → "zhou:27"
    new: dict[str, list[NewRecord]] = field(default_factory=lambda: defaultdict(list))
    first: dict[str, int] = field(default_factory=dict)  # signature → smallest record id


def prepare(
    record_id: int, reference: Reference, kind: str, name: str, *, position: int = 0, subject: bool = False
) -> NewRecord:
    """A reference as a record to be stored. A flag that a source puts before the title becomes the status."""
    if match := RETRACTION.match(reference.title):
        status = reference.status or ("withdrawn" if "withdrawn" in match[0].lower() else "retracted")
        reference = replace(reference, title=reference.title[match.end() :].strip(), status=status)
    fields = reference.as_json()
    rank = source_rank(kind, subject)
    return NewRecord(record_id, reference, fields, signature(fields, rank), rank, name, position)


def resolve_batch(
    connection: Connection, ids: Ids, batch: Sequence[NewRecord], decisions: Decisions, origin: str
) -> Plan:
    """Finds each new record's work, making, uniting and splitting works where the new records say so."""
    plan = Plan()
    twins = known_signatures(connection, {record.signature for record in batch})
    pending: list[NewRecord] = []
    for record in batch:
        if record.signature in twins and record.name not in decisions.named:
            record.work_id = twins[record.signature]  # the same statement again changes nothing
            plan.touched.add(record.work_id)
        else:
            pending.append(record)
    if pending:
        resolve_pending(connection, ids, pending, decisions, plan)
    write_plan(connection, plan, origin)
    for record in batch:  # a twin's work may have been absorbed by this very batch
        record.work_id = plan.absorbed.get(record.work_id, record.work_id)
    return plan


def resolve_pending(
    connection: Connection, ids: Ids, pending: Sequence[NewRecord], decisions: Decisions, plan: Plan
) -> None:
    groups, works = gather(connection, pending, decisions)
    anchors = anchor_signatures(connection, works)
    members = record_ids(connection, works)
    for group in groups:
        settle(ids, group, decisions, anchors, members, plan)


def write_plan(connection: Connection, plan: Plan, origin: str) -> None:
    """Works first, then what points to them."""
    back = {one.id: one for one in plan.restore.values() if one.id in plan.created}
    slugs = free_slugs(connection, {work: one for work, one in plan.created.items() if work not in back})
    rows = []
    for work, fields in plan.created.items():
        own = back[work]._asdict() if work in back else {"id": work, "slug": slugs[work], "origin": origin}
        rows.append({"role": "", "role_reason": "", **own, **fields})
    insert_rows(connection, "work", rows)
    plan.changed = {*plan.created, *update_works(connection, plan.updated)}
    move_records(connection, plan.moves)
    for old, new in plan.absorbed.items():
        replace_work(connection, old, new)
    plan.touched -= plan.absorbed.keys()


def gather(
    connection: Connection, pending: Iterable[NewRecord], decisions: Decisions, start: Iterable[int] = ()
) -> tuple[list[Group], set[int]]:
    """Everything that shares a key with the new records, closed under sharing, as independent groups."""
    entries: list[tuple[Keys, NewRecord | StoredRecord]] = []
    for record in pending:
        record.keys = keys_of(record.reference)
        entries.append((record.keys, record))
    wanted: set[Key] = {key for keys, _ in entries for key in keys.all}
    asked: set[Key] = set()
    loaded: set[int] = set()
    linked = set(start) | decisions.works_near(connection, {record.name for record in pending})
    while wanted or linked:
        works = set(linked)
        for found in works_with(connection, wanted).values():
            works |= found
        asked |= wanted
        wanted, linked = set(), set()
        fresh = works - loaded
        if not fresh:
            break
        loaded |= fresh
        stored = records_of(connection, fresh)
        for one in stored:
            keys = keys_of(one.stated)
            entries.append((keys, one))
            wanted |= {key for key in keys.all if key not in asked}
        linked = decisions.works_near(connection, {one.reference for one in stored}) - loaded
    return split_groups(entries, decisions), loaded


def split_groups(entries: list[tuple[Keys, NewRecord | StoredRecord]], decisions: Decisions) -> list[Group]:
    """Connected components over shared keys, shared works and a person's "same"."""
    parent = list(range(len(entries)))

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    owner: dict[Any, int] = {}
    by_name: dict[str, int] = {}
    for index, (keys, entry) in enumerate(entries):
        marks: list[Any] = [*keys.all, entry.signature]
        if isinstance(entry, StoredRecord):
            marks.append(entry.work_id)
            by_name[entry.reference] = index
        else:
            by_name[entry.name] = index
        for mark in marks:
            first = owner.setdefault(mark, index)
            if first != index:
                parent[find(index)] = find(first)
    for a, b in decisions.same | decisions.different:
        if a in by_name and b in by_name:
            parent[find(by_name[a])] = find(by_name[b])
    groups: dict[int, Group] = defaultdict(Group)
    for index, (keys, entry) in enumerate(entries):
        group = groups[find(index)]
        mark = entry.signature
        if isinstance(entry, StoredRecord):
            group.stored[mark].add(entry.work_id)
            group.names[mark].append(entry.reference)
            reference, rank = entry.stated, source_rank(entry.kind, entry.subject)
        else:
            group.new[mark].append(entry)
            group.names[mark].append(entry.name)
            reference, rank = entry.reference, entry.rank
        group.first[mark] = min(group.first.get(mark, entry.id), entry.id)
        if mark not in group.nodes:
            group.nodes[mark] = Node(mark, keys, reference.title)
            group.statements[mark] = (rank, reference)
    return list(groups.values())


def settle(
    ids: Ids,
    group: Group,
    decisions: Decisions,
    anchors: dict[int, str],
    members: dict[tuple[int, str], list[int]],
    plan: Plan,
) -> None:
    """Clusters a group and plans which record belongs to which work.

    A work's id and slug stay with its oldest record; where several works meet, the oldest work keeps its id.
    """
    if len(group.nodes) == 1 and not group.stored:
        (mark,) = group.nodes
        work = ids.next("work")
        plan.created[work] = work_fields([group.statements[mark]])
        plan.touched.add(work)
        for record in group.new[mark]:
            record.work_id = work
        return
    marks = sorted(group.nodes, key=lambda mark: group.first[mark])
    clusters = cluster_group(group, marks, decisions)
    works = sorted({work for found in group.stored.values() for work in found})
    cluster_of = {marks[index]: number for number, cluster in enumerate(clusters) for index in cluster}
    claims: dict[int, list[int]] = defaultdict(list)
    for work in works:
        claims[cluster_of[anchors[work]]].append(work)
    assigned: list[int] = []
    for number, cluster in enumerate(clusters):
        held = sorted(claims.get(number, []), key=lambda work: (work not in plan.keep, work))
        back = next(
            (plan.restore[marks[index]].id for index in cluster if marks[index] in plan.restore), None
        )
        work = back or (held[0] if held else ids.next("work"))
        fields = work_fields([group.statements[marks[index]] for index in cluster])
        (plan.updated if work in works else plan.created)[work] = fields
        assigned.append(work)
        plan.touched.add(work)
        for index in cluster:
            mark = marks[index]
            for record in group.new.get(mark, ()):
                record.work_id = work
            for old in group.stored.get(mark, ()):
                if old != work:
                    plan.moves.update(dict.fromkeys(members[old, mark], work))
    for work in works:
        if work not in assigned:
            plan.absorbed[work] = assigned[cluster_of[anchors[work]]]


def cluster_group(group: Group, marks: list[str], decisions: Decisions) -> list[list[int]]:
    """Positions in `marks` by work, works in the order of their oldest record."""
    if len(marks) == 1:
        return [[0]]
    position = {name: index for index, mark in enumerate(marks) for name in group.names[mark]}
    same, different = decisions.within(position)
    clusters = partition([group.nodes[mark] for mark in marks], same, different)
    return sorted(clusters, key=lambda cluster: min(group.first[marks[index]] for index in cluster))


def free_slugs(connection: Connection, created: dict[int, dict[str, Any]]) -> dict[int, str]:
    """A slug that nobody has for each new work, the shortest readable one, in the order of the works."""
    candidates = {work: iter(slug_candidates(fields)) for work, fields in created.items()}
    found: dict[int, str] = {}
    given: set[str] = set()
    while candidates:
        offers = {work: next(offer) for work, offer in candidates.items()}
        taken = taken_slugs(connection, set(offers.values()))
        for work, slug in offers.items():
            if slug not in taken and slug not in given:
                found[work] = slug
                given.add(slug)
                del candidates[work]
    return found


def store_records(
    connection: Connection, ids: Ids, source_id: int, batch: Sequence[NewRecord], origin: str, **common: Any
) -> None:
    """Writes resolved records and their identifiers."""
    records, identifiers = [], []
    for record in batch:
        records.append(
            {
                "id": record.id,
                "source_id": source_id,
                "locator": record.name.split(":", 1)[1],
                "position": record.position,
                "fields": record.fields,
                "signature": record.signature,
                "work_id": record.work_id,
                "origin": origin,
                **common,
            }
        )
        keys = record.keys if record.keys.all else keys_of(record.reference)
        identifiers += [
            {
                "id": ids.next("identifier"),
                "scheme": scheme,
                "value": value,
                "record_id": record.id,
                "work_id": record.work_id,
            }
            for scheme, value in identifier_rows(keys, record.reference)
        ]
    insert_rows(connection, "record", records)
    insert_rows(connection, "identifier", identifiers)


def count_surveys(connection: Connection, works: Iterable[int] | None = None) -> None:
    """How many surveys cite each work; of some works, or of all."""
    count = (
        "UPDATE work SET survey_count = (SELECT COUNT(DISTINCT survey.work_id) FROM citation"
        " JOIN survey ON survey.work_id = citation.citing_id WHERE citation.cited_id = work.id)"
    )
    if works is None:
        connection.execute(text(count))
    else:
        run_in(connection, count + " WHERE work.id IN {values}", sorted(works))
