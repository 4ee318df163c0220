"""Replacing packaged rows while the user's stay: what has to go before the package's data is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from ingest.decisions import load_decisions
from ingest.keys import keys_of
from ingest.matching import Plan, free_slugs, settle, split_groups, write_plan
from ingest.tables import Ids, anchor_signatures, record_ids, records_of
from kb.models import PACKAGED, USER

if TYPE_CHECKING:
    from sqlalchemy import Connection


def remove_packaged(connection: Connection) -> None:
    """Deletes packaged sources, records, citations and decisions; works that only they stated go with them.

    Works that the user's records also state keep their row and slug and are told again from those records alone,
    so that what the package no longer says is forgotten.
    """
    if connection.execute(text("SELECT 1 FROM record LIMIT 1")).first() is None:
        return
    packaged = {"origin": PACKAGED}
    shared = [
        row[0]
        for row in connection.execute(
            text(
                "SELECT DISTINCT mine.work_id FROM record AS mine JOIN record AS theirs ON theirs.work_id = mine.work_id"
                " WHERE mine.origin = :user AND theirs.origin = :origin ORDER BY mine.work_id"
            ),
            {"user": USER, **packaged},
        )
    ]
    # The catalogue's links are written again by ingest.catalogue.
    connection.execute(text("DELETE FROM techniquework"))
    connection.execute(text("UPDATE evidence SET work_id = NULL"))
    connection.execute(text("DELETE FROM decision WHERE origin = :origin"), packaged)
    for statement in (
        "DELETE FROM citation WHERE origin = :origin",
        "DELETE FROM identifier WHERE record_id IN (SELECT id FROM record WHERE origin = :origin)",
        "DELETE FROM survey WHERE slug IN (SELECT slug FROM source WHERE origin = :origin)",
        "DELETE FROM record WHERE origin = :origin",
        "DELETE FROM source WHERE origin = :origin",
        "DELETE FROM work WHERE NOT EXISTS (SELECT 1 FROM record WHERE record.work_id = work.id)",
    ):
        connection.execute(text(statement), packaged)
    retell(connection, shared)


def retell(connection: Connection, works: list[int]) -> None:
    """Partitions the records of some works anew: without the packaged records they may fall apart."""
    if not works:
        return
    ids, decisions = Ids(connection), load_decisions(connection)
    entries = [(keys_of(one.stated), one) for one in records_of(connection, works)]
    plan = Plan()
    anchors, members = anchor_signatures(connection, works), record_ids(connection, works)
    for group in split_groups(list(entries), decisions):
        settle(ids, group, decisions, anchors, members, plan)
    write_plan(connection, plan, USER)


def name_packaged(connection: Connection) -> None:
    """Slugs of works that only the package states, from what all surveys together say of them.

    While sources are read one by one, a slug rests on the first: QLoRA would carry the year of its reprint.
    """
    rows = connection.execute(
        text(
            "SELECT id, title, first_author, year, url_key, doi, arxiv_id FROM work WHERE NOT EXISTS"
            " (SELECT 1 FROM record WHERE record.work_id = work.id AND record.origin = :user) ORDER BY id"
        ),
        {"user": USER},
    ).mappings()
    fields = {row["id"]: dict(row) for row in rows}
    if not fields:
        return
    connection.execute(
        text("UPDATE work SET slug = '~' || id WHERE id = :id"), [{"id": work} for work in fields]
    )
    slugs = free_slugs(connection, fields)
    connection.execute(
        text("UPDATE work SET slug = :slug WHERE id = :id"),
        [{"id": work, "slug": slug} for work, slug in slugs.items()],
    )
