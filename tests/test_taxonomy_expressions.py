"""Expressions in effect values: arithmetic only, over knobs and objects, numbers and arrays."""

from types import SimpleNamespace

import numpy as np
import pytest

from taxonomy.errors import TaxonomyError
from taxonomy.expressions import evaluate, expected_tokens, is_expression, names


def test_expected_tokens_matches_the_sum_it_stands_for():
    for acceptance in (0.0, 0.35, 0.8, 1.0):
        for drafted in (1, 3, 7):
            by_hand = sum(acceptance**position for position in range(drafted + 1))
            assert expected_tokens(acceptance, drafted) == pytest.approx(by_hand, rel=1e-6)


def test_knobs_and_objects_are_read():
    values = {"heads": 4, "model": SimpleNamespace(vocab=100, hidden=10)}
    assert evaluate("= heads * model.hidden * (model.hidden + model.vocab) * 2", values) == 8800


def test_arrays_broadcast():
    got = evaluate("= max(0, 1 - share)", {"share": np.array([0.25, 1.5])})
    assert got.tolist() == [0.75, 0.0]


def test_names_lists_what_is_needed():
    assert names("= expected_tokens(acceptance, draft_tokens) - workload.batch") == {
        "acceptance",
        "draft_tokens",
        "workload.batch",
    }


def test_only_a_leading_equals_sign_makes_an_expression():
    assert is_expression("= 1") and not is_expression("knob:ratio") and not is_expression(3.0)


@pytest.mark.parametrize(
    "text",
    [
        "= __import__('os')",
        "= model.__class__.__name__",
        "= model.__class__",
        "= open('x')",
        "= ratio if ratio else 1",
        "= [1, 2]",
        "= 'text'",
        "= ratio and 1",
        "= secret.field",
        "= 1 +",
    ],
)
def test_everything_but_arithmetic_is_refused(text):
    with pytest.raises(TaxonomyError):
        evaluate(text, {"ratio": 2, "model": SimpleNamespace()})


def test_a_missing_name_says_what_was_given():
    with pytest.raises(TaxonomyError, match="needs 'ratio'; given: samples"):
        evaluate("= 1 / ratio", {"samples": 3})
