"""Effects on deployments: operations, formulas, overrides, composition, struct of arrays, "already in use"."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from costmodel.catalogue import all_models, find_engine, find_model
from costmodel.specs import Deployment, Workload
from recommender import effects
from recommender.knowledge import Knowledge
from taxonomy.load import load_techniques
from taxonomy.model import Effect, EngineSupport, Knob, Technique

MODEL = find_model("llama-2-70b").spec
PLAIN = find_engine("plain").spec
VLLM = find_engine("vllm").spec
WORK = effects.formula_workload(Workload(batch=4, input_tokens=1000, output_tokens=200))


def technique(slug, *changes, knobs=()):
    return Technique(
        slug=slug,
        name=slug,
        summary="A test.",
        effects=tuple(Effect(field=field, op=op, value=value) for field, op, value in changes),
        knobs=tuple(knobs),
    )


def changes(item, base=None, **overrides):
    base = base or effects.baseline_fields(PLAIN, {})
    return effects.changes_of(item, base, model=MODEL, workload=WORK, overrides=overrides)


def test_baseline_is_defaults_then_engine_then_question():
    base = effects.baseline_fields(VLLM, {"weight_format": "int8", "devices": 2, "interconnect": None})
    assert base["attention_kernel"] == "flash"  # the engine's
    assert base["weight_format"] == "int8" and base["devices"] == 2
    assert base["interconnect"] is None


def test_operations_start_from_the_deployment():
    item = technique(
        "all",
        ("weights_kept", "multiply", 0.5),
        ("extra_weight_bytes", "add", 10.0),
        ("kv_tokens_kept", "min", 0.2),
    )
    base = {**effects.baseline_fields(PLAIN, {}), "weights_kept": 0.8, "extra_weight_bytes": 5.0}
    assert changes(item, base) == {"weights_kept": 0.4, "extra_weight_bytes": 15.0, "kv_tokens_kept": 0.2}


def test_a_user_turns_a_knob():
    item = technique(
        "draft",
        ("tokens_per_step", "set", "= accepted(acceptance_rate, draft_tokens)"),
        knobs=[Knob(name="acceptance_rate", default=0.7), Knob(name="draft_tokens", default=4)],
    )
    # (1 - a^5) / (1 - a), Leviathan et al. 2023 equation 1
    assert changes(item)["tokens_per_step"] == pytest.approx((1 - 0.7**5) / 0.3)
    assert changes(item, acceptance_rate=0.5)["tokens_per_step"] == pytest.approx((1 - 0.5**5) / 0.5)
    assert changes(item, acceptance_rate=1.0)["tokens_per_step"] == 5
    assert changes(item, nonsense=3)["tokens_per_step"] == pytest.approx((1 - 0.7**5) / 0.3)


def test_formulas_see_model_and_workload():
    item = technique("window", ("kv_tokens_kept", "set", "= min(1, 512 / workload.context_tokens)"))
    assert changes(item)["kv_tokens_kept"] == pytest.approx(512 / 1100)  # prompt + half of the output
    grid = effects.formula_workload(Workload(input_tokens=np.array([100.0, 1000.0]), output_tokens=0))
    found = effects.changes_of(item, effects.baseline_fields(PLAIN, {}), model=MODEL, workload=grid)
    np.testing.assert_allclose(found["kv_tokens_kept"], [1.0, 0.512])


def test_what_changes_nothing_is_empty_and_covered():
    flash = technique("flash", ("attention_kernel", "set", "flash"))
    assert changes(flash, effects.baseline_fields(VLLM, {})) == {}
    assert changes(flash) == {"attention_kernel": "flash"}


@pytest.mark.parametrize(
    ("present", "wanted", "covered"),
    [
        ({"kv_waste_share": 0.02}, {"kv_waste_share": 0.04}, True),  # the engine wastes less already
        ({"kv_waste_share": 0.6}, {"kv_waste_share": 0.04}, False),
        ({"decode_attention_kernel": "split"}, {"decode_attention_kernel": "flash"}, True),
        ({"decode_attention_kernel": "eager"}, {"decode_attention_kernel": "flash"}, False),
        ({"kv_format": "fp16"}, {"kv_format": "fp8"}, False),
        ({"cuda_graphs": True}, {"cuda_graphs": True}, True),
    ],
)
def test_covered_means_at_least_as_much(present, wanted, covered):
    assert effects.is_covered(wanted, present) is covered


def test_composition_multiplies_shares_and_keeps_the_last_setting():
    base = effects.baseline_fields(PLAIN, {})
    a = technique("a", ("weights_kept", "multiply", 0.5))
    b = technique("b", ("weights_kept", "multiply", 0.5), ("kv_format", "set", "fp8"))
    found = effects.compose([a, b], base, model=MODEL, workload=WORK)
    assert found == {"weights_kept": 0.25, "kv_format": "fp8"}


def test_alternatives_collide_and_multipliers_do_not():
    a = technique("a", ("weight_format", "set", "int8"), ("weights_kept", "multiply", 0.5))
    b = technique("b", ("weight_format", "set", "int4"))
    c = technique("c", ("weights_kept", "multiply", 0.9))
    sets = {item.slug: effects.settings_of(item) for item in (a, b, c)}
    assert effects.collide(changes(a), sets["a"], changes(b), sets["b"])
    assert not effects.collide(changes(a), sets["a"], changes(c), sets["c"])


def test_struct_of_arrays_keeps_types():
    base = effects.baseline_fields(PLAIN, {})
    found = effects.deployments(
        base,
        [
            {},
            {"weight_format": "int4", "kv_window_tokens": 512.0},
            {"cuda_graphs": True, "weights_kept": 0.5},
        ],
    )
    assert found.weight_format.tolist() == ["fp16", "int4", "fp16"]
    assert found.kv_window_tokens.tolist() == [np.inf, 512.0, np.inf]
    assert found.cuda_graphs.tolist() == [False, False, True]
    assert found.weights_kept.tolist() == [1.0, 1.0, 0.5]
    assert found.kv_format == "fp16"  # untouched fields stay scalars


def test_formula_workload_passes_arrays():
    seen = effects.formula_workload(Workload(batch=np.array([1.0, 2.0])))
    assert isinstance(seen, SimpleNamespace)
    np.testing.assert_allclose(seen.batch, [1.0, 2.0])


def test_an_engine_may_set_a_knob_or_a_field_otherwise():
    item = Technique(
        slug="drafts",
        name="Drafts",
        summary="A test.",
        effects=(Effect(field="verify_tokens", value="knob:tree_tokens"),),
        knobs=(Knob(name="tree_tokens", default=26),),
        engines=(
            EngineSupport(engine="vllm", sets={"tree_tokens": 1, "weight_kernel": "naive"}),
            EngineSupport(engine="sglang"),
        ),
    )
    knowledge = Knowledge(techniques={"drafts": item})
    own = knowledge.on_engine("vllm")["drafts"]
    assert own.knobs[0].default == 1
    assert [(effect.field, effect.value) for effect in own.effects[1:]] == [("weight_kernel", "naive")]
    assert knowledge.on_engine("sglang") is knowledge.techniques


def test_what_engines_set_otherwise_exists():
    fields = {item.name for item in dataclasses.fields(Deployment)}
    for item in load_techniques().values():
        knobs = {knob.name for knob in item.knobs}
        for support in item.engines:
            assert set(support.sets) <= knobs | fields, (item.slug, support.engine)


def test_published_checkpoints_are_of_models_of_the_catalogue():
    for item in load_techniques().values():
        for checkpoint in item.checkpoints:
            assert checkpoint.model in all_models() and checkpoint.name and checkpoint.source, item.slug
