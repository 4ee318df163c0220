"""What people decided: two records are the same work, or are not. Loaded once per import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from sqlalchemy import Connection

Pair = tuple[str, str]


@dataclass
class Decisions:
    """Accepted decisions between records, each named "source:locator"."""

    same: set[Pair] = field(default_factory=set)
    different: set[Pair] = field(default_factory=set)
    partners: dict[str, set[str]] = field(default_factory=dict)

    @property
    def named(self) -> Mapping[str, set[str]]:
        return self.partners

    def add(self, kind: str, a: str, b: str) -> None:
        (self.same if kind == "same" else self.different).add((a, b))
        self.partners.setdefault(a, set()).add(b)
        self.partners.setdefault(b, set()).add(a)

    def works_near(self, connection: Connection, names: Iterable[str]) -> set[int]:
        """Works of stored records that a decision ties to the given ones."""
        if not self.partners:
            return set()
        wanted = {partner for name in names for partner in self.partners.get(name, ())}
        found = set()
        for name in sorted(wanted):
            slug, _, locator = name.partition(":")
            row = connection.execute(
                text(
                    "SELECT record.work_id FROM record JOIN source ON source.id = record.source_id"
                    " WHERE source.slug = :slug AND record.locator = :locator"
                ),
                {"slug": slug, "locator": locator},
            ).first()
            if row is not None and row[0] is not None:
                found.add(row[0])
        return found

    def within(self, position: Mapping[str, int]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """The decisions between records of one group, by their positions."""
        if not self.partners:
            return [], []

        def pairs(decided: set[Pair]) -> list[tuple[int, int]]:
            return sorted((position[a], position[b]) for a, b in decided if a in position and b in position)

        return pairs(self.same), pairs(self.different)


def load_decisions(connection: Connection) -> Decisions:
    """Accepted decisions, a rejected proposal of sameness counting as "different"."""
    decisions = Decisions()
    rows = connection.execute(
        text("SELECT kind, a, b, status FROM decision WHERE status IN ('accepted', 'rejected') ORDER BY id")
    )
    for kind, a, b, status in rows:
        if kind not in ("same", "different") or ":" not in a or ":" not in b:
            continue
        if status == "accepted":
            decisions.add(kind, a, b)
        elif kind == "same":
            decisions.add("different", a, b)
    return decisions
