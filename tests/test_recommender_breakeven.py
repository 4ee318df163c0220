"""Break-evens against the cost model at the points they name; fit, compare and feasibility against their promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from recommender.assess import assess
from recommender.breakeven import crossing
from recommender.compare import compare
from recommender.errors import InvalidQuestion
from recommender.fit import check_targets, fit
from recommender.knowledge import Knowledge
from recommender.question import Question
from recommender.service import recommend_with
from recommender.situation import resolve
from taxonomy.load import load_relations, load_techniques


@pytest.fixture(scope="module")
def knowledge():
    return Knowledge(techniques=dict(sorted(load_techniques().items())), relations=tuple(load_relations()))


def test_crossing_nearest_to_the_question():
    points = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    gain = np.array([0.5, 2.0, 2.0, 0.5, 2.0])  # crosses near 1.4, 5.7 and 11.3
    assert crossing(points, gain, 1.0) == pytest.approx(math.sqrt(2))
    assert crossing(points, gain, 6.0) == pytest.approx(4 * math.sqrt(2))
    assert crossing(points, np.array([2.0, np.nan, 0.5, 0.5, 0.5]), 1.0) is None


def gain_at(knowledge, slug, **fields):
    question = Question.from_mapping(
        {"hardware": "a100", "model": "8b", "engine": "vllm", "objective": "tpot", **fields}
    )
    return assess(resolve(question, knowledge), knowledge).items[slug].gain["tpot"]


def test_the_gain_crosses_one_at_the_break_even(knowledge):
    question = Question.from_mapping(
        {"hardware": "a100", "model": "8b", "engine": "vllm", "objective": "tpot"}
    )
    answer = recommend_with(knowledge, question)
    checked = 0
    for slug in ("awq", "spec-decode", "prompt-lookup"):
        item = next((r for r in answer.recommendations if r.kind == "technique" and slug in r.members), None)
        batch = item.break_even["batch"] if item else None
        if batch and 2 < batch < 1000 and item.techniques[0] == slug:
            checked += 1
            assert gain_at(knowledge, slug, batch=max(1, round(batch / 2))) > 1.0, slug
            assert gain_at(knowledge, slug, batch=round(batch * 2)) < 1.03, slug
    assert checked


def test_acceptance_below_which_drafting_loses(knowledge):
    answer = recommend_with(
        knowledge, Question.from_mapping({"hardware": "a100", "model": "70b", "devices": 2, "engine": "vllm"})
    )
    item = next(r for r in answer.recommendations if r.kind == "technique" and "spec-decode" in r.members)
    least = item.break_even["acceptance_rate"]
    assert 0.0 < least < 0.6
    for rate, better in ((min(least + 0.2, 0.95), True), (max(least - 0.15, 0.0), False)):
        question = Question.from_mapping(
            {"hardware": "a100", "model": "70b", "devices": 2, "engine": "vllm", "acceptance_rate": rate}
        )
        gain = assess(resolve(question, knowledge), knowledge).items["spec-decode"].gain["latency"]
        assert (gain > 1.0) is better


def test_feasibility_lists_no_way_that_another_makes_pointless(knowledge):
    answer = recommend_with(knowledge, Question.from_mapping({"hardware": "rtx3090", "model": "70b"}))
    changes = answer.feasibility["changes"]
    assert all(change["fits"] and change["spare_bytes"] >= 0 for change in changes)
    devices = [change["devices"] for change in changes if "host memory" not in change["change"]]
    assert devices == sorted(devices)
    assert any("host memory" in change["change"] for change in changes[-2:])


def test_a_smaller_batch_is_a_way_too(knowledge):
    question = Question.from_mapping(
        {"hardware": "a100", "model": "llama-2-7b", "batch": 512, "input_tokens": 2048, "engine": "vllm"}
    )
    changes = recommend_with(knowledge, question).feasibility["changes"]
    batch = next(change for change in changes if change["change"].startswith("batch"))
    assert batch["batch"] < 512 and batch["fits"] and batch["devices"] == 1


def test_fit_reaches_its_target_cheapest_first():
    answer = fit({"model": "70b", "tpot_slo_ms": 50, "batch": 16})
    assert answer["options"]
    prices = [option["price_usd"] for option in answer["options"] if option["price_usd"] is not None]
    assert prices == sorted(prices)
    for option in answer["options"]:
        assert (
            option["fits"] and option["tpot_ms"] <= 50 and option["total_bytes"] <= option["available_bytes"]
        )


def test_fit_says_what_comes_nearest():
    answer = fit({"model": "llama-3.1-405b", "tpot_slo_ms": 0.01})
    assert answer["options"] == [] and answer["nearest"]["tpot_ms"] > 0.01


def test_fit_wants_a_target():
    with pytest.raises(InvalidQuestion, match="no target"):
        check_targets(Question.from_mapping({"hardware": "a100", "model": "8b"}))


def test_compare_has_a_source_in_each_cell(knowledge):
    answer = compare(["awq", "eagle-3"], knowledge)
    assert answer["techniques"] == ["awq", "eagle-3"]
    for row in answer["rows"]:
        for cell in row["cells"]:
            assert cell["source"] or cell["value"] in (None, "", []) or row["property"] == "engines", row[
                "property"
            ]


@pytest.mark.parametrize("asked", [["awq"], ["awq", "nobody"], ["awq"] * 9])
def test_compare_refuses(asked, knowledge):
    with pytest.raises(InvalidQuestion):
        compare(asked, knowledge)
