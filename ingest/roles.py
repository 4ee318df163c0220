"""What each work of the surveys is: technique, survey, model, benchmark, system or background. Decided by hand.

`data/work_roles.csv` names every work once, by one of its references (`zhou:192`), with the reason in a few words.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import bindparam
from sqlmodel import select

import kb.models as tables
from ingest.catalogue_works import WorkIndex
from taxonomy.errors import DataError

if TYPE_CHECKING:
    from sqlmodel import Session

ROLES = ("technique", "survey", "model", "benchmark", "system", "background")
COLUMNS = ("reference", "role", "technique", "reason")


@dataclass(frozen=True, kw_only=True)
class RoleDecision:
    reference: str  # "zhou:192"
    role: str
    technique: str  # its slug, where the role is technique
    reason: str


def read_roles() -> tuple[RoleDecision, ...]:
    """Every decision of the packaged file, in its order."""
    text = (files("ingest") / "data" / "work_roles.csv").read_text(encoding="utf-8")
    reader = csv.DictReader(text.splitlines())
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise DataError(f"work_roles.csv has columns {reader.fieldnames}; they must be {', '.join(COLUMNS)}")
    decisions = tuple(RoleDecision(**row) for row in reader)
    for number, decision in enumerate(decisions, 2):
        if decision.role not in ROLES:
            raise DataError(
                f"work_roles.csv line {number}: role '{decision.role}'; allowed: {', '.join(ROLES)}"
            )
        if not decision.reason:
            raise DataError(f"work_roles.csv line {number}: {decision.reference} has no reason")
    return decisions


def load_roles(session: Session) -> None:
    """Write role and reason to every work; a work of the catalogue alone introduces its technique."""
    by_hand = session.exec(
        select(tables.Decision.id).where(
            tables.Decision.origin == tables.USER, tables.Decision.kind == "same"
        )
    ).first()
    found = decisions_by_work(
        WorkIndex(session).by_reference, read_roles(), united_by_hand=by_hand is not None
    )
    roles = {work_id: (decision.role, decision.reason) for work_id, decision in found.items()}
    introduced = session.exec(
        select(tables.TechniqueWork.work_id, tables.TechniqueWork.technique)
        .where(tables.TechniqueWork.role == "introduces")
        .order_by(tables.TechniqueWork.technique)
    ).all()
    for work_id, technique in reversed(introduced):
        if work_id not in found:
            roles[work_id] = ("technique", f"introduces {technique}")
    for work_id in session.exec(select(tables.Survey.work_id)).all():
        roles.setdefault(work_id, ("survey", "one of the surveys that the catalogue is drawn from"))
    table = tables.Work.__table__  # type: ignore[attr-defined]
    session.flush()
    # One statement with many parameters: five hundred single updates take longer than all the rest of the build.
    session.connection().execute(
        table.update()
        .where(table.c.id == bindparam("of"))
        .values(role=bindparam("as_"), role_reason=bindparam("why")),
        [{"of": work_id, "as_": role, "why": reason} for work_id, (role, reason) in sorted(roles.items())],
    )
    session.expire_all()


def decisions_by_work(
    by_reference: Mapping[str, int | None],
    decisions: Iterable[RoleDecision],
    *,
    united_by_hand: bool = False,
) -> dict[int, RoleDecision]:
    """Work id → its decision. Where the user has merged works, the first line about them counts.

    Raises
    ------
    taxonomy.errors.DataError
        For a reference that nobody lists, or two decisions on one work.
    """
    found: dict[int, RoleDecision] = {}
    for decision in decisions:
        work_id = by_reference.get(decision.reference)
        if work_id is None:
            raise DataError(f"work_roles.csv: no survey has the reference {decision.reference}")
        other = found.get(work_id)
        if other is not None and united_by_hand:
            continue
        if other is not None:
            raise DataError(
                f"work_roles.csv: {other.reference} and {decision.reference} are one work; keep one of the lines"
            )
        found[work_id] = decision
    return found
