"""Users' reports of what paid off and what did not: tests/reference/technique_cases.csv, one test per row.

The rows are from public issue trackers and discussions (column `source`) or closed forms; `value` bounds the
predicted gain. Each test also checks that the answer gives the reason that the row states.
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

TABLE = Path(__file__).parent / "reference" / "technique_cases.csv"
REPORTED = list(
    csv.DictReader(TABLE.with_name("reported_cases.csv").read_text(encoding="utf-8").splitlines())
)
CASES = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines()))

# What the sentence must say, per case; the row's own `reason` in the words of the answer.
REASONS = {
    "C006": r"compute-bound.*adds \d.*\(matrix products",
    "C012": r"overhead-bound|kernel launches|sampling",
    "C018": r"Memory goes from 1[4-9]\.?\d* GB to [78]\.\d+ GB",
    "C025": r"collectives|kernel launches",
    "C026": r"interconnect-bound|collectives|overhead-bound",
    "C028": r"attention over the KV cache",
    "C029": r"falls? from",
    "C034": r"saves \d.*attention over the KV cache",
    "C048": r"fine-tuning|drafting|batch",
    "C056": r"batch of 2 or more|sharing steps|no gain|prompt",
    "C067": r"--cache-hit is 0",
    "C086": r"attention falls from",
    "C090": r"spends \d\d % on transfers from host memory",
    "C091": r"adds \d+ ms \(transfers from host memory",
    "X001": r"no FP8 matrix units",
    "X004": r"no units for 2:4 sparsity",
    "X005": r"81\d GB \(81\d GB of weights\), 7\d\d GB too many for one H100",
}


@pytest.fixture(scope="module")
def knowledge():
    return Knowledge(techniques=dict(sorted(load_techniques().items())), relations=tuple(load_relations()))


def outcome(answer, slug):
    """(recommendation or None, rejection or None) of a technique."""
    found = [item for item in answer.recommendations if item.kind == "technique" and slug in item.members]
    refused = [item for item in answer.rejected if item.technique == slug]
    assert bool(found) != bool(refused), f"{slug} is neither recommended nor rejected, or both"
    return (found or [None])[0], (refused or [None])[0]


@pytest.mark.parametrize("row", CASES, ids=[row["id"] for row in CASES])
def test_case(row, knowledge):
    fields = ("devices", "model", "batch", "input_tokens", "output_tokens", "engine", "objective")
    question = Question.from_mapping(
        {**{name: row[name] for name in fields}, "hardware": row["hw"], "weights": row["weights"]}
    )
    check(row, recommend_with(knowledge, question), REASONS[row["id"]])


@pytest.mark.parametrize("row", REPORTED, ids=[row["id"] for row in REPORTED])
def test_reported_case(row, knowledge):
    """Further public reports and closed forms (reported_cases.csv); its column `says` is what the sentence must say."""
    fields = ("devices", "model", "batch", "input_tokens", "output_tokens", "engine", "objective")
    question = Question.from_mapping(
        {**{name: row[name] for name in fields}, "hardware": row["hw"], "weights": row["weights"]}
    )
    check(row, recommend_with(knowledge, question), row["says"])


def check(row, answer, says):
    """The verdict of a row, and its reason."""
    item, refused = outcome(answer, row["technique"])
    gain = (item.member_gains[row["technique"]] if item else refused.gain) or {}
    value, verdict = gain.get(row["metric"]), row["verdict"]
    if verdict == "gain-at-most":
        assert refused or value <= float(row["value"])
    elif verdict == "gain-at-least":
        assert item and value >= float(row["value"])
    elif verdict == "rejected":
        assert refused and refused.code == row["value"]
    elif verdict == "not-rejected":
        assert item
    else:
        other, _ = outcome(answer, row["value"])
        assert verdict == "above" and item and (other is None or item.rank < other.rank)
    said = item.why if item else refused.reason
    assert re.search(says, said), said
