"""Parameters from dimensions against published totals."""

from __future__ import annotations

import pytest

from costmodel.catalogue import all_models, find_model, model_rows
from costmodel.linear import shape_of
from costmodel.params import count_parameters, layer_counts

# rows whose published total counts something that decoder dimensions cannot: reason
PUBLISHED_OTHERWISE = {
    "t0pp-11b": "an encoder-decoder with cross-attention",
}
# rows where the shared catalogue left out biases, positions, tables or an untied head that the published total has
CATALOGUE_ROUGH = {
    *("ft-gpt-350m", "ft-gpt-1.3b", "ft-gpt-6.7b", "gemma-4-26b-a4b", "gemma-4-e4b", "gpt2", "mamba-130m"),
    *("opt-125m", "phi-1.5", "phi-2", "starcoder2-15b"),
}


@pytest.mark.parametrize("slug", sorted(all_models()))
def test_the_total_follows_from_the_dimensions(slug: str) -> None:
    model, row = all_models()[slug], model_rows()[slug]
    if slug not in CATALOGUE_ROUGH:
        assert model.total_params == pytest.approx(float(row["catalogue_params"]), rel=1e-3)
    if row["published_params"] and slug not in PUBLISHED_OTHERWISE:
        assert model.total_params == pytest.approx(float(row["published_params"]), rel=0.02)


@pytest.mark.parametrize(
    ("slug", "total"),
    [
        # exact numbers of weights in the published checkpoints
        ("llama-2-7b", 6_738_415_616),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3.1-8b", 8_030_261_248),
        ("mixtral-8x7b", 46_702_792_704),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen3-0.6b", 596_049_920),
        ("gemma-2-9b", 9_241_705_984),
        ("gpt2", 124_439_808),
        ("phi-2", 2_779_683_840),
    ],
)
def test_exact_totals(slug: str, total: int) -> None:
    assert find_model(slug).spec.total_params == total


def test_parts_of_llama_2_70b() -> None:
    parts = count_parameters(find_model("70b").spec)
    assert parts.embedding == parts.head == 32000 * 8192
    assert parts.attention == 80 * (2 * 8192 * 8192 + 2 * 8192 * 1024)
    assert parts.dense_mlp == 80 * 3 * 8192 * 28672
    assert parts.norms == 161 * 8192
    assert parts.total == sum((parts.embedding, parts.head, parts.attention, parts.dense_mlp, parts.norms))


def test_experts_in_memory_and_in_use() -> None:
    """Mixtral 8x7B: 46.7B in memory, 12.9B multiplied per token (Jiang et al. 2024, arXiv:2401.04088)."""
    parts = count_parameters(find_model("mixtral-8x7b").spec)
    assert parts.experts == 32 * 8 * 3 * 4096 * 14336
    assert parts.active == pytest.approx(12.9e9, rel=0.005)


@pytest.mark.parametrize(
    ("slug", "active"),
    [("deepseek-v3", 37e9), ("qwen3-30b-a3b", 3.3e9), ("llama-4-scout", 17e9), ("jamba-v0.1-52b", 12e9)],
)
def test_active_parameters(slug: str, active: float) -> None:
    assert find_model(slug).spec.active_params == pytest.approx(active, rel=0.03)


def test_a_tied_table_is_counted_once() -> None:
    parts = count_parameters(find_model("llama-3.2-1b").spec)
    assert parts.head == 0 and parts.embedding == 128256 * 2048


def test_hybrids_count_each_kind_of_layer() -> None:
    counts = layer_counts(find_model("jamba-v0.1-52b").spec)
    assert (counts.attention, counts.mixers, counts.moe, counts.mlp) == (4, 28, 16, 16)
    gemma = layer_counts(find_model("gemma-3-27b").spec)
    assert (gemma.full_attention, gemma.windowed) == (10, 52)


@pytest.mark.parametrize("slug", sorted(all_models()))
def test_time_and_memory_see_the_same_weights(slug: str) -> None:
    """The operators' shapes (linear.py) and the parts (params.py) are two readings of the same dimensions."""
    model = all_models()[slug]
    shape, parts = shape_of(model), count_parameters(model)
    operators = (
        shape.qkv_params + shape.out_params + shape.mlp_params + shape.expert_params + shape.mixer_params
    )
    assert operators == pytest.approx(parts.linear, rel=0.02)
