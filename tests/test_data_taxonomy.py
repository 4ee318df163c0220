"""The catalogue's files against the rules of taxonomy/data/README.md and against the rest of the package."""

import dataclasses
import re
from collections import Counter, defaultdict

import pytest

from costmodel.formats import find_format
from costmodel.specs import Deployment
from taxonomy.effects import VARIABLES, effect_value, is_formula, knob_of, knob_values
from taxonomy.load import (
    data_root,
    load_bottlenecks,
    load_levels,
    load_mechanisms,
    load_relations,
    load_techniques,
)
from taxonomy.model import SCHEMES, Kind, Lossless, Phase, Training

TECHNIQUES = load_techniques()
KERNELS = {
    "attention_kernel": {"eager", "flash"},
    "decode_attention_kernel": {"eager", "flash", "split"},
    "weight_kernel": {"naive", "tuned", "lut"},
    "sparsity_pattern": {"none", "2:4", "unstructured", "block"},
}
FORMAT_USE = {"weight_format": "weights", "kv_format": "kv", "activation_format": "activations"}
SHARES = [
    "weights_kept", "layers_kept", "weight_density", "experts_kept", "active_experts_kept", "kv_heads_kept",
    "kv_layers_kept", "kv_tokens_kept", "kv_read_share", "kv_waste_share", "kv_shared_share", "prompt_kept",
    "prefill_attention_share", "output_kept", "layers_executed", "cascade_share",
    "host_weight_share", "disk_weight_share", "host_kv_share", "hot_weight_share", "offload_overlap",
]  # fmt: skip


class Model:
    """Llama-2-7B's dimensions, for formulas."""

    layers, hidden, heads, kv_heads, head_dim = 32, 4096, 32, 32, 128
    intermediate, vocab, n_experts, active_experts = 11008, 32000, 8, 2
    total_params = active_params = 6.74e9


class Workload:
    batch, input_tokens, output_tokens, context_tokens, cache_hit_rate = 4, 32768, 512, 33024, 0.5


class Layout:
    devices = 2


def values(technique):
    """field → value of every effect, formulas computed."""
    knobs = knob_values(technique.knobs)
    for effect in technique.effects:
        yield (
            effect,
            effect_value(effect, knobs, model=Model(), workload=Workload(), deployment=Layout()),
        )


def test_the_catalogue_is_wide():
    assert len(TECHNIQUES) >= 250
    assert list(TECHNIQUES) == sorted(TECHNIQUES)
    assert list(load_mechanisms()) == sorted(load_mechanisms())


def test_formula_variables_are_covered_by_this_test():
    assert all(hasattr(Model, name) for name in VARIABLES["model"])
    assert all(hasattr(Workload, name) for name in VARIABLES["workload"])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_class_of_every_scheme_has_a_technique(scheme):
    levels = load_levels()[scheme]
    used = {path for technique in TECHNIQUES.values() for path in technique.levels.get(scheme, ())}
    parents = {level.parent for level in levels}
    empty = [level.path for level in levels if level.path not in parents and level.path not in used]
    assert empty == []


def test_every_bottleneck_has_techniques():
    used = Counter(slug for technique in TECHNIQUES.values() for slug in technique.bottlenecks)
    assert [slug for slug in load_bottlenecks() if used[slug] < 3] == []


def test_levels_in_the_schemes_of_the_surveys_that_cite_it():
    missing = [
        (slug, work.reference)
        for slug, technique in TECHNIQUES.items()
        for work in technique.works
        if work.role == "introduces"
        and work.reference
        and work.reference.split(":")[0] in SCHEMES
        and work.reference.split(":")[0] not in technique.levels
    ]
    assert missing == []


def test_effect_fields_exist_and_change_something():
    known = {field.name: field.default for field in dataclasses.fields(Deployment)}
    wrong = [
        (technique.slug, effect.field)
        for technique in TECHNIQUES.values()
        for effect in technique.effects
        if effect.field not in known
    ]
    assert wrong == []
    idle = [
        technique.slug
        for technique in TECHNIQUES.values()
        if technique.effects
        and not technique.knobs  # a knob may wait for the user's word
        and all(value == known[effect.field] for effect, value in values(technique))
    ]
    assert idle == []


def test_formats_and_kernels_are_names_that_the_cost_model_knows():
    wrong = []
    for technique in TECHNIQUES.values():
        for effect, value in values(technique):
            if effect.field in FORMAT_USE:
                find_format(str(value), FORMAT_USE[effect.field])
            elif effect.field in KERNELS and value not in KERNELS[effect.field]:
                wrong.append((technique.slug, effect.field, value))
    assert wrong == []


def test_shares_lie_between_nought_and_one():
    wrong = [
        (technique.slug, effect.field, value)
        for technique in TECHNIQUES.values()
        for effect, value in values(technique)
        if effect.field in SHARES and effect.op == "set" and not 0 <= value <= 1
    ]
    assert wrong == []


def test_drafting_gains_no_more_tokens_than_it_verifies():
    wrong = []
    for technique in TECHNIQUES.values():
        found = {effect.field: value for effect, value in values(technique)}
        gained, fed = found.get("tokens_per_step", 1.0), found.get("verify_tokens", 1.0)
        if not 1.0 <= gained <= fed + 1e-9:
            wrong.append((technique.slug, gained, fed))
    assert wrong == []


def test_every_knob_matters_or_says_what_it_is():
    silent = [
        (technique.slug, knob.name)
        for technique in TECHNIQUES.values()
        for knob in technique.knobs
        if not knob.description or not knob.source
    ]
    assert silent == []


def test_lossless_means_exact():
    """Fewer bits, weights, tokens or layers are never lossless (the README's rule)."""
    lossy = {
        "weights_kept", "layers_kept", "weight_density", "experts_kept", "active_experts_kept", "kv_heads_kept",
        "kv_layers_kept", "kv_tokens_kept", "kv_window_tokens", "kv_read_share", "prompt_kept", "layers_executed",
        "weight_read_share", "cascade_share", "prefill_attention_share", "weight_format", "kv_format",
        "activation_format", "output_kept",
    }  # fmt: skip
    wrong = [
        technique.slug
        for technique in TECHNIQUES.values()
        if technique.lossless is Lossless.YES and lossy & {effect.field for effect in technique.effects}
    ]
    assert wrong == []


def test_another_model_is_never_lossless_or_free():
    wrong = [
        technique.slug
        for technique in TECHNIQUES.values()
        if technique.kind is Kind.MODEL
        and (
            technique.lossless is Lossless.YES or technique.training in (Training.NONE, Training.CALIBRATION)
        )
    ]
    assert wrong == []


def test_phase_agrees_with_the_effects():
    """What only touches the prompt speeds up prefill; what only touches drafting speeds up decoding."""
    wrong = []
    for technique in TECHNIQUES.values():
        fields = {effect.field for effect in technique.effects}
        if fields and fields <= {"tokens_per_step", "verify_tokens", "draft_passes", "draft_weight_share",
                                 "draft_overhead_s", "extra_weight_bytes"} and technique.phase is Phase.PREFILL:  # fmt: skip
            wrong.append(technique.slug)
        if fields == {"prefill_attention_share"} and technique.phase is Phase.DECODE:
            wrong.append(technique.slug)
    assert wrong == []


def test_hardware_designs_are_no_software_choice():
    for technique in TECHNIQUES.values():
        if technique.kind is Kind.HARDWARE:
            assert technique.effects == ()
            assert technique.no_effect_reason, technique.slug


def test_members_of_a_mechanism_change_the_same_fields():
    """Otherwise they are not one mechanism; fields that only refine the common effect may differ."""
    minor = {"weight_kernel", "extra_weight_bytes", "kv_format", "offload_overlap", "attention_kernel"}
    groups = defaultdict(list)
    for technique in TECHNIQUES.values():
        if technique.mechanism and technique.effects:
            groups[technique.mechanism].append(technique)
    lonely = []
    for mechanism, members in groups.items():
        common = set.intersection(*({effect.field for effect in member.effects} for member in members))
        if not common - minor and not common:
            lonely.append((mechanism, [member.slug for member in members]))
    assert lonely == []


def test_every_mechanism_has_a_member():
    used = {technique.mechanism for technique in TECHNIQUES.values()}
    assert [slug for slug in load_mechanisms() if slug not in used] == []


def test_texts_are_short_and_differ():
    summaries = Counter(technique.summary for technique in TECHNIQUES.values())
    assert [text for text, count in summaries.items() if count > 1] == []
    too_long = [slug for slug, technique in TECHNIQUES.items() if len(technique.summary) > 420]
    assert too_long == []
    for technique in TECHNIQUES.values():
        assert not technique.helps_when.endswith("."), technique.slug
        assert "  " not in technique.summary, technique.slug


def test_no_two_files_introduce_the_same_thing():
    """Same introducing works and same effects would be one technique under two names."""
    seen = defaultdict(list)
    for technique in TECHNIQUES.values():
        works = frozenset(
            work.arxiv_id or work.doi or work.reference or work.title
            for work in technique.works
            if work.role == "introduces"
        )
        effects = tuple((effect.field, str(effect.value)) for effect in technique.effects)
        seen[works, effects].append(technique.slug)
    assert [slugs for slugs in seen.values() if len(slugs) > 1] == []


def test_sources_of_effects_and_relations_can_be_looked_up():
    pattern = re.compile(
        r"arXiv:\d{4}\.\d{4,5}|https?://\S+|doi:\S+|(zhou|yuan|park):\d+|[A-Z]\w+ .+|derived .+|[\w.-]+/[\w.-]+.*"
    )
    loose = [
        (technique.slug, effect.source)
        for technique in TECHNIQUES.values()
        for effect in technique.effects
        if not pattern.fullmatch(effect.source)
    ]
    loose += [(r.a, r.source) for r in load_relations() if not pattern.fullmatch(r.source)]
    assert loose == []


def test_a_checked_flag_names_what_was_read():
    wrong = [
        (technique.slug, support.engine)
        for technique in TECHNIQUES.values()
        for support in technique.engines
        if support.checked and not support.source
    ]
    assert wrong == []


def test_relations_do_not_contradict_each_other():
    kinds = defaultdict(set)
    for relation in load_relations():
        kinds[frozenset((relation.a, relation.b))].add(relation.kind)
    assert [pair for pair, found in kinds.items() if {"conflicts", "composes"} <= found] == []
    assert all(relation.a != relation.b for relation in load_relations())


def test_formulas_name_a_knob_that_exists():
    for technique in TECHNIQUES.values():
        names = {knob.name for knob in technique.knobs}
        for effect in technique.effects:
            if knob_of(effect.value) is not None:
                assert knob_of(effect.value) in names
            assert not is_formula(effect.value) or effect.basis != "vendor", technique.slug


def test_the_editor_schema_is_current():
    """Regenerate with: python -m taxonomy.schema"""
    from taxonomy.schema import schema_text

    assert (data_root() / "technique.schema.json").read_text(encoding="utf-8") == schema_text()
    assert all((data_root() / "techniques" / f"{name}.toml").is_file() for name in TECHNIQUES)


def test_kernels_for_one_vendor_say_whose_they_are():
    """Weights below 16 bits that no engine multiplies everywhere need kernels, and those exist for some devices."""
    everywhere = {"gguf-k-quants", "int4-weight-only", "omniquant", "spinquant", "fp8-w8a8", "t-mac", "tsld"}
    changed = {
        technique.slug
        for technique in TECHNIQUES.values()
        if technique.kind is Kind.SOFTWARE
        and any(effect.field == "weight_format" for effect in technique.effects)
    }
    ungated = {slug for slug in changed if not TECHNIQUES[slug].requires.vendors}
    assert ungated <= everywhere


@pytest.mark.parametrize(
    ("slug", "oldest"),
    # docs.vllm.ai/en/v0.11.2/features/quantization: the first NVIDIA generation with a tick
    [("awq", 7.5), ("marlin", 8.0), ("smoothquant", 7.5), ("fp8-weight-only", 7.5), ("hqq", 8.0)],
)
def test_oldest_nvidia_generation(slug, oldest):
    need = TECHNIQUES[slug].requires
    assert need.min_compute_capability == oldest
    assert "NVIDIA" in need.vendors and "Apple" not in need.vendors
