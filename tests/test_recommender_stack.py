"""The planner against brute force, and the Pareto front against its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recommender import stack
from recommender.stack import Part

FIELDS = ("weight_format", "kv_format", "tokens_per_step", "attention_kernel", "prompt_kept")


@st.composite
def catalogues(draw):
    """Up to six parts, each setting one field to a value, with random exclusions and training needs."""
    count = draw(st.integers(1, 6))
    parts = []
    for number in range(count):
        field = draw(st.sampled_from(FIELDS))
        value = draw(st.sampled_from(["a", "b"]))
        excludes = draw(st.sets(st.sampled_from([f"t{i}" for i in range(count)]), max_size=1))
        parts.append(
            Part(
                slug=f"t{number}",
                changes={field: value},
                settings=frozenset({field}),
                training=draw(st.sampled_from(["none", "calibration", "finetune"])),
                lossless=draw(st.sampled_from(["yes", "approx", "no"])),
                score=draw(st.floats(-0.2, 1.0)),
                excludes=frozenset(excludes - {f"t{number}"}),
                requires=frozenset(
                    draw(st.sets(st.sampled_from([f"t{i}" for i in range(count)]), max_size=1))
                ),
            )
        )
    return parts


def value_of(parts, chosen):
    """A made-up gain with diminishing returns, so that plans are more than sums."""
    return math.exp(sum(parts[i].score for i in chosen) * 0.9 ** (len(chosen) - 1))


def brute_force(parts, training):
    best, key = None, None
    budget = stack.TRAINING_STEP[training]
    for size in range(1, len(parts) + 1):
        for chosen in itertools.combinations(range(len(parts)), size):
            members = [parts[i] for i in chosen]
            slugs = {part.slug for part in members}
            if any(stack.TRAINING_STEP[part.training] > budget for part in members):
                continue
            if any(part.requires and not part.requires & slugs for part in members):
                continue
            if any(
                a.slug in b.excludes or b.slug in a.excludes for a, b in itertools.combinations(members, 2)
            ):
                continue
            if any(
                field in b.changes and (a.changes[field] != b.changes[field] or field in stack._EXCLUSIVE)
                for a, b in itertools.combinations(members, 2)
                for field in a.changes
            ):
                continue
            now = (
                -round(math.log(value_of(parts, chosen)) - stack.STEP_PRICE * size, 9),
                size,
                tuple(sorted(slugs)),
            )
            if key is None or now < key:
                best, key = chosen, now
    return best


@settings(deadline=None, max_examples=150)
@given(catalogues(), st.sampled_from(["none", "calibration", "finetune"]))
def test_the_search_equals_brute_force(parts, training):
    sets = stack.candidate_sets(parts, max_steps=len(parts), limit=10_000)
    gain = np.array([value_of(parts, chosen) for chosen in sets])
    scores = stack.plan_scores(gain, np.ones(len(sets), dtype=bool), stack.set_prices(parts, sets))
    found = stack.best(parts, sets, scores, training=training)
    assert (None if found is None else sets[found]) == brute_force(parts, training)


@settings(deadline=None, max_examples=60)
@given(catalogues())
def test_every_prefix_of_a_set_is_a_set(parts):
    sets = set(stack.candidate_sets(parts, max_steps=len(parts), limit=10_000))
    for chosen in sets:
        for i in range(len(chosen)):
            rest = chosen[:i] + chosen[i + 1 :]
            assert not rest or rest in sets


def test_a_plan_that_does_not_fit_has_no_score():
    scores = stack.plan_scores(np.array([2.0, 3.0, np.nan]), np.array([True, False, True]), np.zeros(3))
    assert scores[0] == math.log(2.0)
    assert scores[1] == scores[2] == -math.inf


def test_deployment_order_is_cheapest_to_undo_first():
    def part(slug, training, lossless, score):
        return Part(
            slug=slug, changes={}, settings=frozenset(), training=training, lossless=lossless, score=score
        )

    parts = [
        part("heads", "finetune", "yes", 2.0),
        part("int4", "calibration", "approx", 1.0),
        part("flash", "none", "yes", 0.1),
        part("graphs", "none", "yes", 0.3),
        part("kv8", "none", "approx", 0.9),
    ]
    order = [parts[i].slug for i in stack.deployment_order(parts, range(5))]
    assert order == ["graphs", "flash", "kv8", "int4", "heads"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_pareto_front_by_definition(rows):
    columns = [np.array(column, dtype=float) for column in zip(*rows, strict=True)]
    front = stack.pareto_front(columns)
    for i, row in enumerate(rows):
        beaten = any(
            all(a <= b for a, b in zip(other, row, strict=True)) and (other != row or k < i)
            for k, other in enumerate(rows)
            if k != i
        )
        assert front[i] == (not beaten)
