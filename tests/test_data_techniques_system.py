"""The data- and system-level techniques: coverage, sane effects, and drafts that match the reported acceptance."""

import csv
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

from costmodel.specs import Deployment
from taxonomy.effects import effect_value, knob_values
from taxonomy.load import load_techniques
from taxonomy.model import Kind, Technique

REFERENCE = Path(__file__).parent / "reference"

# Published dimensions (config.json of each model): layers, hidden, heads, kv_heads, intermediate, vocabulary.
MODELS = {
    "llama-2-7b": (32, 4096, 32, 32, 11008, 32000, 6.74e9, 0, 0),
    "llama-2-70b": (80, 8192, 64, 8, 28672, 32000, 68.98e9, 0, 0),
    "llama-3.1-8b": (32, 4096, 32, 8, 14336, 128256, 8.03e9, 0, 0),
    "mixtral-8x7b": (32, 4096, 32, 8, 14336, 32000, 46.7e9, 8, 2),
}
WORKLOAD = SimpleNamespace(
    batch=4, input_tokens=1024, output_tokens=256, context_tokens=1152, cache_hit_rate=0.5
)


def model(slug: str) -> SimpleNamespace:
    layers, hidden, heads, kv_heads, intermediate, vocab, params, experts, active = MODELS[slug]
    return SimpleNamespace(
        layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=hidden // heads,
        intermediate=intermediate, vocab=vocab, total_params=params, n_experts=experts, active_experts=active,
        active_params=params if not experts else 12.9e9,
    )  # fmt: skip


def changes(technique: Technique, slug: str = "llama-2-7b", **knobs: float) -> dict[str, object]:
    values = knob_values(technique.knobs, knobs)
    return {
        effect.field: effect_value(
            effect,
            values,
            model=model(slug),
            workload=WORKLOAD,
            deployment=SimpleNamespace(devices=4),
        )
        for effect in technique.effects
    }


def system_and_data() -> list[Technique]:
    return [
        technique
        for technique in load_techniques().values()
        if any(path.split("/")[0] in ("data", "system") for path in technique.levels.get("zhou", ()))
    ]


def test_every_class_of_the_two_levels_is_covered():
    wanted = {
        "data/input-compression/prompt-pruning", "data/input-compression/prompt-summary",
        "data/input-compression/soft-prompt-compression", "data/input-compression/retrieval-augmented-generation",
        "data/output-organization", "system/inference-engine/speculative-decoding",
        "system/inference-engine/offloading", "system/serving-system/memory-management",
        "system/serving-system/continuous-batching", "system/serving-system/scheduling-strategy",
        "system/serving-system/distributed-systems", "system/hardware-accelerator",
        "system/inference-engine/graph-operator-optimization/attention-operators",
        "system/inference-engine/graph-operator-optimization/linear-operators",
    }  # fmt: skip
    found = {path for technique in system_and_data() for path in technique.levels["zhou"]}
    assert wanted <= found


def test_effects_change_fields_that_a_deployment_has():
    known = {field.name for field in fields(Deployment)}
    unknown = {
        f"{technique.slug}: {effect.field}"
        for technique in load_techniques().values()
        for effect in technique.effects
        if effect.field not in known
    }
    assert not unknown


@pytest.mark.parametrize("slug", MODELS)
def test_effects_stay_within_physical_bounds(slug):
    faults = []
    for technique in system_and_data():
        if technique.requires.model == ("moe",) and slug != "mixtral-8x7b":
            continue
        for name, value in changes(technique, slug).items():
            if isinstance(value, bool | str):
                continue
            at_least_one = name in ("tokens_per_step", "verify_tokens", "chunk_tokens") or name.endswith(
                "_parallel"
            )
            low, high = (1, 1024) if at_least_one else (0, 1)
            if name == "draft_passes":
                low, high = 0, 32
            if name == "extra_weight_bytes":
                # a draft, heads or adapters: never more than half of the 16-bit weights
                low, high = 0, model(slug).total_params
            if not low <= value <= high:
                faults.append(f"{technique.slug}: {name} = {value}")
    assert not faults


def test_no_draft_yields_more_tokens_than_it_verifies():
    for technique in system_and_data():
        found = changes(technique)
        if "tokens_per_step" in found and technique.slug != "copy-generator":
            assert 1 < found["tokens_per_step"] <= found["verify_tokens"], technique.slug


def rows() -> list[dict[str, str]]:
    with (REFERENCE / "acceptance_lengths.csv").open(encoding="utf-8") as text:
        return list(csv.DictReader(text))


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row['technique']}-{row['tokens_per_step']}")
def test_tokens_per_step_match_the_reported_acceptance_length(row):
    knobs = {
        name: float(value) for name, value in (part.split("=") for part in row["knobs"].split(";") if part)
    }
    found = changes(load_techniques()[row["technique"]], **knobs)["tokens_per_step"]
    assert found == pytest.approx(float(row["tokens_per_step"]), rel=float(row["tolerance"]))


def test_a_better_acceptance_never_yields_fewer_tokens():
    for technique in system_and_data():
        names = [knob.name for knob in technique.knobs]
        if "acceptance_rate" in names:
            gained = [
                changes(technique, acceptance_rate=rate)["tokens_per_step"] for rate in (0.2, 0.5, 0.8, 0.95)
            ]
            assert gained == sorted(gained), technique.slug


def test_medusa_heads_weigh_what_their_layers_do():
    # Four heads on Llama-2-7B, each a 4096 x 4096 layer and a 4096 x 32000 head, in 16 bits.
    found = changes(load_techniques()["medusa"])
    assert found["extra_weight_bytes"] == 2 * 4 * 4096 * (4096 + 32000)


def test_offloading_moves_the_share_that_does_not_fit():
    for slug in ("flexgen", "accelerate-offload", "llamacpp"):
        assert changes(load_techniques()[slug], host_share=0.4)["host_weight_share"] == pytest.approx(0.4)


def test_compression_ratio_and_share_are_the_same_number():
    assert changes(load_techniques()["llmlingua"], ratio=5)["prompt_kept"] == pytest.approx(0.2)
    # Six questions behind examples that make up half of the prompt (WORKLOAD): 1 - 0.5 * 5 / 6.
    assert changes(load_techniques()["batch-prompting"])["prompt_kept"] == pytest.approx(7 / 12)


def test_hardware_designs_are_no_software_choice():
    designs = [technique for technique in system_and_data() if technique.kind is Kind.HARDWARE]
    assert len(designs) >= 10
    assert all(not technique.effects and technique.no_effect_reason for technique in designs)


def test_techniques_that_need_reuse_say_so():
    for slug in (
        "prefix-caching",
        "radix-attention",
        "kv-offload",
        "mooncake",
        "shared-prefix-attention",
        "gist",
    ):
        assert load_techniques()[slug].requires.reuse, slug


def test_checked_engine_switches_name_where_they_were_seen():
    unsourced = [
        f"{technique.slug}: {support.engine}"
        for technique in load_techniques().values()
        for support in technique.engines
        if support.checked and not support.source
    ]
    assert not unsourced


def test_places_are_called_a_surveys_own_only_where_it_cites_a_work_on_the_technique(reader):
    """And a survey that cites a technique's work has a place for it in its scheme."""
    cited: dict[str, set[str]] = {}
    introduced: dict[str, set[str]] = {}
    for row in reader.rows(
        "SELECT techniquework.technique, techniquework.role, source.slug FROM techniquework"
        " JOIN record ON record.work_id = techniquework.work_id JOIN source ON source.id = record.source_id"
        " WHERE source.slug IN ('zhou', 'yuan', 'park')"
    ):
        cited.setdefault(row["technique"], set()).add(row["slug"])
        if row["role"] == "introduces":
            introduced.setdefault(row["technique"], set()).add(row["slug"])
    techniques = load_techniques()
    claimed = {
        (technique.slug, scheme)
        for technique in techniques.values()
        for scheme, basis in technique.level_basis.items()
        if basis == "survey" and scheme not in cited.get(technique.slug, set())
    }
    # Yuan et al. give fusion a section of its own without naming one paper for it.
    assert claimed <= {("operator-fusion", "yuan"), ("mxfp4-weights", "yuan")}
    missing = {
        (slug, survey)
        for slug, surveys in introduced.items()
        for survey in surveys
        if survey not in techniques[slug].levels
    }
    assert not missing
