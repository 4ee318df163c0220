"""Public reports from outside the shared files, each against the answer to its scenario: tests/reference/outside_cases.csv.

`value` bounds the gain and leaves the report's figure (`measured`) some room; what a report does not state is in
`assumed`, further fields of the question in `given`. `code` and `says` are the rejection and the words that its reason
must have. Rows with `wrong_because` are answered wrongly still, and say why: once right, they lose that entry.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from recommender.knowledge import Knowledge
from recommender.question import Question
from recommender.service import recommend_with
from taxonomy.load import load_relations, load_techniques

TABLE = Path(__file__).parent / "reference" / "outside_cases.csv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))
RIGHT = [row for row in ROWS if not row["wrong_because"]]
WRONG = [row for row in ROWS if row["wrong_because"]]
FIELDS = ("devices", "model", "batch", "input_tokens", "output_tokens", "engine", "weights", "objective")


@pytest.fixture(scope="module")
def knowledge():
    return Knowledge(techniques=dict(sorted(load_techniques().items())), relations=tuple(load_relations()))


def question_of(row):
    given = dict(pair.split("=") for pair in row["given"].split())
    return Question.from_mapping({"hw": row["hw"], **{name: row[name] for name in FIELDS}, **given})


def said_of(answer, slug, metric):
    """What is said of a technique: (rank or None, rejection code, gain in a metric, sentence)."""
    for item in answer.recommendations:
        if item.kind == "technique" and slug in item.members:
            return item.rank, "", item.member_gains[slug].get(metric), item.why
    refused = next(item for item in answer.rejected if item.technique == slug)
    return None, refused.code, (refused.gain or {}).get(metric), refused.reason


def holds(row, answer):
    """Whether the answer gives a row's verdict; a technique that is rejected gains at most anything."""
    rank, code, gain, _ = said_of(answer, row["technique"], row["metric"])
    verdict = row["verdict"]
    if verdict == "gain-at-most":
        return bool(code) or gain <= float(row["value"])
    if verdict == "gain-at-least":
        return not code and gain >= float(row["value"])
    if verdict == "rejected":
        return code == row["value"]
    if verdict == "not-rejected":
        return not code
    other, *_ = said_of(answer, row["value"], row["metric"])
    assert verdict == "above", verdict
    return rank is not None and (other is None or rank < other)


@pytest.mark.parametrize("row", RIGHT, ids=[row["id"] for row in RIGHT])
def test_verdict_and_reason(row, knowledge):
    answer = recommend_with(knowledge, question_of(row))
    _, code, gain, sentence = said_of(answer, row["technique"], row["metric"])
    assert holds(row, answer), (code, gain, sentence)
    assert code == row["code"], sentence
    assert re.search(row["says"], sentence), sentence


@pytest.mark.parametrize("row", WRONG, ids=[row["id"] for row in WRONG])
def test_what_is_answered_wrongly_is_said_to_be(row, knowledge):
    answer = recommend_with(knowledge, question_of(row))
    assert not holds(row, answer), (
        f"right now: take {row['id']}'s wrong_because out and give it code and says"
    )


def test_every_case_has_a_source_and_states_its_measurement():
    assert len(ROWS) >= 30 and len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row["source"].startswith("https://"), row["id"]
        assert row["measured"] or row["verdict"] == "rejected", row["id"]
