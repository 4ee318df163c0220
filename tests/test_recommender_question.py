"""Question.from_mapping: every field checked, one line that says what is allowed."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recommender.errors import InvalidQuestion
from recommender.question import CHECKS, Question

MINIMAL = {"hardware": "rtx-3090", "model": "70b"}


def test_defaults_are_those_of_the_interface():
    question = Question.from_mapping(MINIMAL)
    assert (question.devices, question.batch, question.input_tokens, question.output_tokens) == (
        1,
        1,
        1024,
        512,
    )
    assert (question.engine, question.weight_format, question.objective) == ("plain", "fp16", "latency")
    assert (question.max_training, question.lossless, question.top, question.stack) == (
        "calibration",
        False,
        5,
        True,
    )
    assert (
        question.request_rate is None and question.cache_hit_rate == 0.0 and question.acceptance_rate is None
    )


def test_text_numbers_of_a_query_string_are_numbers():
    question = Question.from_mapping({**MINIMAL, "batch": "8", "cache_hit_rate": "0.5", "lossless": "true"})
    assert (question.batch, question.cache_hit_rate, question.lossless) == (8, 0.5, True)


def test_blank_fields_of_a_form_mean_the_default():
    question = Question.from_mapping({**MINIMAL, "batch": "", "request_rate": None, "engine": " "})
    assert (question.batch, question.request_rate, question.engine) == (1, None, "plain")


def test_using_is_a_list_or_text_with_commas():
    assert Question.from_mapping({**MINIMAL, "using": "awq, fp8-kv,awq"}).using == ("awq", "fp8-kv")
    assert Question.from_mapping({**MINIMAL, "using": ["AWQ"]}).using == ("awq",)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch", 0),
        ("batch", -1),
        ("batch", 1.5),
        ("batch", 10**12),
        ("batch", float("nan")),
        ("batch", float("inf")),
        ("batch", True),
        ("batch", [1]),
        ("batch", "many"),
        ("input_tokens", 0),
        ("output_tokens", 10**15),
        ("devices", 0),
        ("cache_hit_rate", 1.1),
        ("cache_hit_rate", -0.1),
        ("acceptance_rate", 2),
        ("request_rate", 0),
        ("request_rate", "1e400"),
        ("objective", "speed"),
        ("bottleneck", "everything"),
        ("max_training", "some"),
        ("lossless", "maybe"),
        ("hardware", 3090),
        ("using", 5),
        ("tpot_slo_ms", 0),
        ("tensor_parallel", 2),  # one device
        ("model", "a\nb"),
    ],
)
def test_impossible_values_are_refused_with_the_field_and_a_hint(field, value):
    with pytest.raises(InvalidQuestion) as caught:
        Question.from_mapping({**MINIMAL, field: value})
    assert caught.value.field == field
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_unknown_field_names_its_neighbour():
    with pytest.raises(InvalidQuestion, match="unknown field 'batchsize'") as caught:
        Question.from_mapping({**MINIMAL, "batchsize": 3})
    assert "batch" in caught.value.hint


@pytest.mark.parametrize("missing", ["hardware", "model"])
def test_required_fields(missing):
    given_fields = {name: value for name, value in MINIMAL.items() if name != missing}
    with pytest.raises(InvalidQuestion, match=f"{missing} is missing"):
        Question.from_mapping(given_fields)


def test_a_list_is_no_scenario():
    with pytest.raises(InvalidQuestion, match="object of fields"):
        Question.from_mapping([1, 2])  # type: ignore[arg-type]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from([*CHECKS, "nonsense"]),
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text("abcXYZ 019.-,\n\0é", max_size=20),
            st.lists(st.integers(), max_size=3),
        ),
        max_size=6,
    )
)
def test_anything_gives_a_question_or_an_invalid_question(fields):
    try:
        question = Question.from_mapping({**MINIMAL, **fields})
    except InvalidQuestion as error:
        assert error.message and "\n" not in error.message
    else:
        assert question.batch >= 1 and math.isfinite(question.cache_hit_rate)
        assert Question.from_mapping(question.scenario()) == question
