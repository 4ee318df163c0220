"""Reading and checking technique files, formulas of effects, and the JSON form."""

import json
from types import SimpleNamespace

import pytest

from taxonomy.check import Faults, check_relations, check_technique
from taxonomy.effects import accepted, effect_value, knob_values, unknown_names
from taxonomy.errors import DataError
from taxonomy.jsonform import technique_from_json, technique_to_json
from taxonomy.load import load_levels, load_mechanisms, load_techniques, parse_technique
from taxonomy.model import Effect, Knob, Relation

SOUND = {
    "name": "Example",
    "summary": "Does one thing.",
    "bottlenecks": ["compute"],
    "levels": {"zhou": ["model/compression/quantization/ptq/weight-only"]},
    "level_basis": {"zhou": "survey"},
    "effects": [{"field": "weight_format", "value": "int4", "source": "arXiv:2306.00978"}],
    "works": [{"arxiv_id": "2306.00978"}],
}


def faults_of(**changes):
    """The report on SOUND with some fields changed (None removes one)."""
    table = {name: value for name, value in {**SOUND, **changes}.items() if value is not None}
    faults = Faults()
    technique = parse_technique(table, "example.toml", faults)
    if technique is not None:
        levels = {scheme: {level.path for level in found} for scheme, found in load_levels().items()}
        check_technique(technique, "example.toml", levels, load_mechanisms(), faults)
    return faults.lines


def test_a_sound_file_has_no_fault():
    assert faults_of() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"colour": "red"}, "example.toml · colour: is not a field; allowed: aliases,"),
        ({"name": None}, "example.toml · name: is missing"),
        ({"phase": "sometimes"}, "example.toml · phase: is 'sometimes'; allowed: prefill, decode, both"),
        ({"bottlenecks": ["fate"]}, "bottlenecks: 'fate' is unknown; allowed: weight-bandwidth"),
        ({"bottlenecks": []}, "bottlenecks: is empty"),
        ({"levels": {"zhou": ["model/magic"]}}, "'model/magic' is no level of schemes/zhou.toml"),
        ({"level_basis": {}}, "level_basis.zhou: must say who placed it; allowed: survey, compiled"),
        ({"effects": None}, "give effects or no_effect_reason, one of the two"),
        ({"no_effect_reason": "none"}, "give effects or no_effect_reason, one of the two"),
        ({"kind": "hardware"}, "a hardware design is not a software choice"),
        ({"works": []}, "works: is empty"),
        ({"works": [{"role": "cites", "title": "T"}]}, "works.role: is 'cites'; allowed: introduces"),
        ({"mechanism": "no-such"}, "mechanism: 'no-such' is not in mechanisms.toml"),
        ({"summary": "One. Two. Three. Four."}, "summary: must be one to three sentences"),
        ({"slug": "other"}, "slug: is the file's name; leave it out"),
        ({"effects": [{"field": "x", "op": "divide", "value": 1, "source": "arXiv:2306.00978"}]}, "op is 'divide'"),
        ({"effects": [{"field": "x", "value": 1}]}, "effects.x: has no source"),
        ({"effects": [{"field": "x", "value": "knob:k", "source": "s"}]}, "effects.x: names k, which nothing defines"),
        ({"effects": [{"field": "x", "value": "= model.soul", "source": "s"}]}, "names model.soul"),
        ({"effects": [{"field": "x", "value": "= print(1)", "source": "s"}]}, "names print"),
        ({"effects": [{"field": "x", "value": "= [1]", "source": "s"}]}, "uses List; allowed are + - * /"),
        ({"knobs": [{"name": "k", "default": 9, "low": 0, "high": 1}]}, "knobs.k: default 9 lies outside 0…1"),
        ({"knobs": [{"name": "k", "default": "c", "choices": ["a", "b"]}]}, "knobs.k: default 'c' is no choice"),
        ({"knobs": [{"name": "k", "default": 1, "high": "two"}]}, "knobs[0] high: is 'two'; allowed: float"),
        ({"requires": {"model": ["soul"]}}, "requires.model: 'soul' is unknown; allowed: moe"),
        ({"requires": {"min_devices": True}}, "requires min_devices: is True; allowed: int"),
    ],
)  # fmt: skip
def test_each_fault_names_file_field_and_what_is_allowed(changes, expected):
    assert any(expected in line for line in faults_of(**changes)), faults_of(**changes)


def test_all_faults_come_in_one_report():
    faults = Faults(faults_of(bottlenecks=[], works=[], mechanism="no-such"))
    with pytest.raises(DataError) as raised:
        faults.stop()
    assert raised.value.message.startswith("3 faults in taxonomy/data\n")
    assert "README" in raised.value.hint


def test_relations_are_checked():
    faults = Faults()
    pair = {"a": "gptq", "b": "awq", "source": "arXiv:2306.00978"}
    rows = [
        Relation(kind="likes", **pair),
        Relation(kind="composes", **pair),
        Relation(kind="composes", **pair),
    ]
    check_relations([*rows, Relation(a="gptq", b="ghost", kind="composes")], {"gptq", "awq"}, faults)
    report = "\n".join(faults.lines)
    assert "is 'likes'; allowed: requires, conflicts" in report
    assert "occurs twice" in report and "'ghost' is neither" in report and "source: is empty" in report


def test_accepted_tokens_follow_leviathan():
    """Equation 1 of arXiv:2211.17192: α = 0.8, γ = 5 gives (1 - 0.8^6) / 0.2 = 3.69."""
    assert accepted(0.8, 5) == pytest.approx(3.68928)
    assert accepted(1.0, 5) == 6
    assert accepted(0.0, 5) == 1


def test_formulas_read_knobs_model_and_workload():
    knobs = [Knob(name="groups", default=8, low=1, high=64)]
    model, workload = SimpleNamespace(kv_heads=32), SimpleNamespace(batch=4)

    def value(text, overrides=None):
        chosen = knob_values(knobs, overrides)
        return effect_value(Effect(field="f", value=text), chosen, model=model, workload=workload)

    assert value("= min(1, groups / model.kv_heads)") == 0.25
    assert value("= min(1, groups / model.kv_heads)", {"groups": 64}) == 1
    assert value("= 1 - 0.5 ** workload.batch") == 0.9375
    assert value("knob:groups", {"groups": 4, "unknown": 1}) == 4
    assert value("knob:groups", {"groups": None}) == 8
    assert value("fp8") == "fp8" and value(0.5) == 0.5
    assert unknown_names("= groups + depth", ["groups"]) == ["depth"]


def test_formulas_cannot_run_code():
    for text in (
        "= __import__('os')",
        "= (lambda: 1)()",
        "= knobs[0]",
        "= 'text'.join(a)",
        "= model.__class__",
    ):
        try:
            assert unknown_names(text, ["knobs", "a"]) != []
        except DataError as fault:
            assert "allowed are" in fault.message


def test_json_form_is_lossless_and_small():
    for technique in load_techniques().values():
        row = json.loads(json.dumps(technique_to_json(technique)))
        assert technique_from_json(row) == technique
        assert "aliases" not in row or row["aliases"]


def test_observations_belong_to_their_technique():
    notes = load_techniques()["kivi"].observations
    assert any("slower than 16 bits" in note.what for note in notes)
    assert all(note.technique == "kivi" and note.source for note in notes)
