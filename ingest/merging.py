"""Merging and undoing by hand: a decision is added or taken back, and the records around it are resolved anew."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from ingest.decisions import load_decisions
from ingest.errors import StoreError
from ingest.matching import Plan, Restored, count_surveys, gather, settle, write_plan
from ingest.records import now
from ingest.tables import Ids, anchor_signatures, insert_rows, known_signatures, record_ids
from kb.errors import NotFound
from kb.identifiers import identify
from kb.models import USER

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlmodel import Session

# Rows elsewhere that name a work; a merge moves them, an undo moves them back.
LINKS = {"techniquework": "id", "evidence": "id", "survey": "slug"}
OWN_COLUMNS = ("id", "slug", "origin", "role", "role_reason")


def find_work(connection: Connection, asked: str) -> tuple[int, str]:
    """A work's id and slug, by slug or by any identifier."""
    row = connection.execute(
        text("SELECT id, slug FROM work WHERE slug = :slug"), {"slug": asked.strip().lower()}
    ).first()
    found = identify(asked)
    if row is None and found is not None:
        row = connection.execute(
            text(
                "SELECT work.id, work.slug FROM identifier JOIN work ON work.id = identifier.work_id"
                " WHERE scheme = :scheme AND value = :value ORDER BY work.id"
            ),
            found._asdict(),
        ).first()
    if row is None:
        slugs = [one[0] for one in connection.execute(text("SELECT slug FROM work"))]
        raise NotFound(
            "paper", asked, get_close_matches(asked.lower(), slugs, n=3), hint="see: kb search WORDS"
        )
    return row[0], row[1]


def record_name(connection: Connection, work: int) -> str:
    """The oldest record of a work, as decisions name it."""
    row = connection.execute(
        text(
            "SELECT source.slug, record.locator FROM record JOIN source ON source.id = record.source_id"
            " WHERE record.work_id = :work ORDER BY record.id"
        ),
        {"work": work},
    ).first()
    if row is None:
        raise StoreError(f"work {work} has no record", hint="rebuild with: kb db upgrade")
    return f"{row[0]}:{row[1]}"


def pair(connection: Connection, a: str, b: str) -> tuple[tuple[int, str], tuple[int, str]]:
    one, other = find_work(connection, a), find_work(connection, b)
    if one[0] == other[0]:
        raise StoreError(f"{a} and {b} are one work already ({one[1]})", hint="see: kb dedupe")
    return one, other


def decide(connection: Connection, kind: str, a: int, b: int, reason: str) -> int:
    """Writes a person's decision; its id."""
    decision = Ids(connection).next("decision")
    insert_rows(
        connection,
        "decision",
        [
            {
                "id": decision,
                "kind": kind,
                "a": record_name(connection, a),
                "b": record_name(connection, b),
                "status": "accepted",
                "basis": reason or "by hand",
                "score": None,
                "source": "user",
                "made_at": now(),
                "data": {},
                "origin": USER,
            }
        ],
    )
    return decision


def take_rows(connection: Connection, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(text(statement), parameters).mappings()]


def drop_proposals(connection: Connection, a: str, b: str) -> list[dict[str, Any]]:
    """Takes the waiting proposals about a pair off the list; the rows, for an undo."""
    one, other = sorted((a, b))
    found = take_rows(
        connection,
        "SELECT id, kind, a, b, status, basis, score, source, made_at, origin FROM decision"
        " WHERE status = 'proposed' AND a = :a AND b = :b",
        a=one,
        b=other,
    )
    for row in found:
        connection.execute(text("DELETE FROM decision WHERE id = :id"), {"id": row["id"]})
    return found


def merge(session: Session, a: str, b: str, *, reason: str = "") -> dict[str, Any]:
    """Makes two works one; the first one's slug stays. Returns the log's id and both slugs."""
    connection = session.connection()
    (kept, kept_slug), (gone, gone_slug) = pair(connection, a, b)
    decision = decide(connection, "same", kept, gone, reason)
    dropped = drop_proposals(connection, kept_slug, gone_slug)
    plan = plan_around(connection, Ids(connection), [kept, gone], keep={kept})
    # The plan may absorb more works than the one named; an undo needs all of them as they are now.
    before = {work: state_of(connection, work) for work in sorted({kept, gone, *plan.absorbed})}
    write(session, plan)
    row = {
        "kept": kept_slug,
        "absorbed": gone_slug,
        "made_at": now(),
        "undone_at": "",
        "data": {"decision": decision, "works": list(before.values()), "proposals": dropped},
        "origin": USER,
    }
    log = insert_log(connection, row)
    return {"id": log, "kept": kept_slug, "absorbed": gone_slug}


def insert_log(connection: Connection, row: dict[str, Any]) -> int:
    from sqlalchemy import insert

    import kb.models as tables

    number = (connection.execute(text("SELECT MAX(id) FROM mergelog")).scalar() or 0) + 1
    connection.execute(insert(tables.MergeLog), [{"id": number, **row}])
    return number


def state_of(connection: Connection, work: int) -> dict[str, Any]:
    """What an undo needs of a work: its own columns, its oldest record, and the rows that point to it."""
    columns = ", ".join(OWN_COLUMNS)
    own = take_rows(connection, f"SELECT {columns} FROM work WHERE id = :work", work=work)[0]
    links = {
        table: take_rows(
            connection,
            f"SELECT {'id, technique, role' if table == 'techniquework' else key} FROM {table} WHERE work_id = :work",
            work=work,
        )
        for table, key in LINKS.items()
    }
    return {"work": own, "anchor": anchor_signatures(connection, [work])[work], "links": links}


def declare_different(session: Session, a: str, b: str, *, reason: str = "") -> dict[str, Any]:
    """Keeps two works apart for good and takes the proposal off the list."""
    connection = session.connection()
    (one, one_slug), (other, other_slug) = pair(connection, a, b)
    decision = decide(connection, "different", one, other, reason)
    drop_proposals(connection, one_slug, other_slug)
    return {"id": decision, "a": one_slug, "b": other_slug}


def plan_around(
    connection: Connection,
    ids: Ids,
    works: Iterable[int],
    *,
    keep: Iterable[int] = (),
    restore: dict[str, Restored] | None = None,
) -> Plan:
    """Partitions the records of some works and of all they touch anew."""
    decisions = load_decisions(connection)
    groups, loaded = gather(connection, [], decisions, start=works)
    plan = Plan(keep=set(keep), restore=restore or {})
    anchors, members = anchor_signatures(connection, loaded), record_ids(connection, loaded)
    for group in groups:
        settle(ids, group, decisions, anchors, members, plan)
    return plan


def write(session: Session, plan: Plan) -> None:
    """Writes a plan and tells the search index about every work that changed or went."""
    from kb.search_index import update

    connection = session.connection()
    write_plan(connection, plan, USER)
    count_surveys(connection, plan.touched)
    update(session, {*plan.touched, *plan.absorbed})


def find_merge(connection: Connection, asked: str) -> dict[str, Any]:
    """A merge that is not undone, by its number or by the absorbed work's slug."""
    rows = take_rows(connection, "SELECT id, kept, absorbed, data, undone_at FROM mergelog ORDER BY id DESC")
    for row in rows:
        if asked in (str(row["id"]), row["absorbed"]):
            if row["undone_at"]:
                raise StoreError(
                    f"merge {row['id']} was undone at {row['undone_at']}", hint="see: kb dedupe --json"
                )
            row["data"] = json.loads(row["data"]) if isinstance(row["data"], str) else row["data"]
            return row
    listed = [str(row["id"]) for row in rows if not row["undone_at"]]
    raise NotFound("merge", asked, listed[:5], hint="see: kb dedupe --json (merges)")


def unmerge(session: Session, asked: str) -> dict[str, Any]:
    """Takes a merge back: decision, works, slugs, links and proposals are as they were."""
    connection = session.connection()
    log = find_merge(connection, asked)
    data = log["data"]
    connection.execute(text("DELETE FROM decision WHERE id = :id"), {"id": data["decision"]})
    states = data["works"]
    ids = Ids(connection)
    restore = works_to_restore(connection, ids, log)
    plan = plan_around(connection, ids, known_signatures(connection, restore).values(), restore=restore)
    if missing := [one.slug for one in restore.values() if one.id not in plan.touched]:
        raise StoreError(
            f"{', '.join(missing)} cannot be told apart again: records that came later join the works",
            hint=f"say so with: kb merge {log['kept']} {log['absorbed']} --different",
        )
    write(session, plan)
    for state in states:
        put_links_back(connection, state, restore[state["anchor"]].id)
    if data["proposals"]:
        insert_rows(connection, "decision", [{**row, "data": {}} for row in data["proposals"]])
    connection.execute(
        text("UPDATE mergelog SET undone_at = :now WHERE id = :id"), {"now": now(), "id": log["id"]}
    )
    return {"id": log["id"], "kept": log["kept"], "absorbed": log["absorbed"]}


def works_to_restore(connection: Connection, ids: Ids, log: dict[str, Any]) -> dict[str, Restored]:
    """anchor → the work as it was; ids and slugs that a rebuild has given away since are replaced."""
    states = log["data"]["works"]
    current = known_signatures(connection, [state["anchor"] for state in states])
    together = set(current.values())
    restore: dict[str, Restored] = {}
    for state in states:
        own = dict(state["work"])
        if own["slug"] == log["kept"]:
            own["id"] = current.get(state["anchor"], own["id"])
        elif take_rows(connection, "SELECT 1 FROM work WHERE id = :id", id=own["id"]):
            own["id"] = ids.next("work")
        slug = take_rows(connection, "SELECT id FROM work WHERE slug = :slug", slug=own["slug"])
        if slug and slug[0]["id"] not in together:
            own["slug"] = f"{own['slug']}-{own['id']}"
        restore[state["anchor"]] = Restored(**own)
    return restore


def put_links_back(connection: Connection, state: dict[str, Any], work: int) -> None:
    """Rows of other tables point to the restored work again; a link that the merge had doubled is made anew."""
    for table, key in LINKS.items():
        for row in state["links"][table]:
            done = connection.execute(
                text(f"UPDATE {table} SET work_id = :work WHERE {key} = :key"),
                {"work": work, "key": row[key]},
            )
            if not done.rowcount and table == "techniquework":
                connection.execute(
                    text(
                        "INSERT INTO techniquework (id, technique, work_id, role)"
                        " VALUES (:id, :technique, :work, :role)"
                    ),
                    {**row, "work": work},
                )


def keep_merged_slugs(connection: Connection) -> None:
    """After a rebuild: works that a person united carry the slug they had."""
    rows = take_rows(connection, "SELECT kept, data FROM mergelog WHERE undone_at = '' ORDER BY id")
    for row in rows:
        data = json.loads(row["data"]) if isinstance(row["data"], str) else row["data"]
        anchors = {state["work"]["slug"]: state["anchor"] for state in data["works"]}
        current = known_signatures(connection, [anchors[row["kept"]]]) if row["kept"] in anchors else {}
        taken = take_rows(connection, "SELECT 1 FROM work WHERE slug = :slug", slug=row["kept"])
        for work in () if taken else current.values():
            connection.execute(
                text("UPDATE work SET slug = :slug WHERE id = :work"), {"slug": row["kept"], "work": work}
            )
