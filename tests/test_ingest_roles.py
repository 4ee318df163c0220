"""Every work of the surveys has one decision: what it is, and why."""

import csv
import sqlite3
from importlib.resources import files

import pytest

from ingest.roles import ROLES, RoleDecision, decisions_by_work, read_roles
from taxonomy.errors import DataError
from taxonomy.load import load_techniques


def decide(reference: str, role: str = "survey") -> RoleDecision:
    return RoleDecision(reference=reference, role=role, technique="", reason="by hand")


def test_every_surveyed_work_has_exactly_one_decision(database):
    with sqlite3.connect(database) as connection:
        cited = dict(
            connection.execute(
                "SELECT DISTINCT work.id, work.role FROM work JOIN record ON record.work_id = work.id"
                " JOIN source ON source.id = record.source_id WHERE source.slug IN ('zhou', 'yuan', 'park')"
            )
        )
        unexplained = connection.execute(
            "SELECT slug FROM work WHERE role <> '' AND role_reason = ''"
        ).fetchall()
    # Each work that the surveys list once, and the surveys themselves.
    assert len(read_roles()) >= 530
    assert set(cited.values()) <= set(ROLES)
    assert not unexplained


def test_decided_techniques_are_in_the_catalogue():
    techniques = load_techniques()
    for decision in read_roles():
        assert (decision.technique in techniques) == (decision.role == "technique"), decision


def test_a_work_that_introduces_a_technique_is_decided_to_be_one():
    introduced = {
        work.reference
        for technique in load_techniques().values()
        for work in technique.works
        if work.role == "introduces" and work.reference
    }
    decided = {decision.reference: decision.role for decision in read_roles()}
    assert {decided[reference] for reference in introduced & decided.keys()} == {"technique"}
    assert len(introduced & decided.keys()) > 350


def test_catalogue_only_works_are_techniques(database):
    with sqlite3.connect(database) as connection:
        roles = connection.execute(
            "SELECT DISTINCT work.role FROM work JOIN techniquework ON techniquework.work_id = work.id"
            " WHERE techniquework.role = 'introduces' AND work.survey_count = 0"
        ).fetchall()
    assert roles == [("technique",)]


def test_the_file_is_sorted_by_survey_and_number():
    order = {"zhou": 0, "yuan": 1, "park": 2}
    with (files("ingest") / "data" / "work_roles.csv").open(encoding="utf-8", newline="") as text:
        keys = [row["reference"].split(":") for row in csv.DictReader(text)]
    numbers = [(order[survey], int(number)) for survey, number in keys]
    assert numbers == sorted(set(numbers))


def test_two_decisions_on_one_work_stop_the_build():
    with pytest.raises(DataError, match="yuan:54 are one work"):
        decisions_by_work({"zhou:192": 7, "yuan:54": 7}, [decide("zhou:192"), decide("yuan:54")])


def test_a_reference_that_nobody_lists_stops_the_build():
    with pytest.raises(DataError, match="zhou:999"):
        decisions_by_work({"zhou:1": 1}, [decide("zhou:999")])
