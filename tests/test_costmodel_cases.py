"""What users of other estimators reported (cases by kind): bytes, names and capacity, with the right values."""

from __future__ import annotations

import pytest

from costmodel.catalogue import find_engine, find_hardware, find_model
from costmodel.errors import UnknownName
from costmodel.experts import touched_experts
from costmodel.kvcache import (
    block_bytes,
    blocks_that_fit,
    cache_width,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    kv_bytes_per_token_per_rank,
)
from costmodel.memory import memory
from costmodel.params import count_parameters
from costmodel.paths import supports
from costmodel.specs import Deployment, Workload
from costmodel.units import GIB
from costmodel.user_hardware import parse_hardware


def spec(name: str):
    return find_model(name).spec


def need(model: str, hardware: str, engine: str = "vllm", workload: Workload | None = None, **deployment):
    return memory(
        spec(model),
        find_hardware(hardware).spec,
        workload or Workload(),
        Deployment(**deployment),
        find_engine(engine).spec,
    )


# ---------------------------------------------------------------- cached bytes per token


@pytest.mark.parametrize(
    ("case", "model", "bytes_per_token"),
    [
        ("P02 keys and values of KV heads, per layer", "llama-2-70b", 80 * 16_777_216 / 4096),
        ("P27 windowed layers included", "gpt-oss-120b", 73_728),
        ("P31 explicit head size", "qwen3-4b", 147_456),
        ("P31 latent", "deepseek-v3", 70_272),
        ("P32 explicit head size", "mistral-small-24b", 163_840),
        ("P33 explicit head size", "qwen3-0.6b", 28 * 2 * 8 * 128 * 2),
        ("P32 explicit head size", "gpt-oss-20b", 24 * 2 * 8 * 64 * 2),
        ("P32 explicit head size", "gemma-3-12b", 48 * 2 * 8 * 256 * 2),
        ("P26 attention layers alone", "jamba-v0.1-52b", 4 * 2 * 8 * 128 * 2),
    ],
)
def test_bytes_per_token(case: str, model: str, bytes_per_token: float) -> None:
    assert kv_bytes_per_token(spec(model)) == bytes_per_token, case


@pytest.mark.parametrize(
    ("case", "model", "tokens", "gib"),
    [
        ("P33 mixed windows", "gemma-3-27b", 131_072, 10.41),
        ("P33 latent", "deepseek-v3", 163_840, 10.72),
        ("P33 explicit head size", "qwen3-0.6b", 40_960, 4.38),
    ],
)
def test_bytes_of_a_long_context(case: str, model: str, tokens: int, gib: float) -> None:
    assert kv_bytes_per_sequence(spec(model), tokens) / GIB == pytest.approx(gib, abs=0.006), case


def test_p27_tokens_that_fit_into_a_pool() -> None:
    """vLLM's log for gpt-oss-120b: 5.38 GiB hold 78 384 tokens when every layer keeps every token."""
    assert 5.38 * GIB / kv_bytes_per_token(spec("gpt-oss-120b")) == pytest.approx(78_384, rel=1e-3)


def test_p40_p41_cache_per_rank() -> None:
    assert kv_bytes_per_token_per_rank(spec("qwen3-32b"), 4) == 65_536
    total = kv_bytes_per_token(spec("llama-2-70b"))
    assert kv_bytes_per_token_per_rank(spec("llama-2-70b"), 16) == total / 8


def test_p61_blocks() -> None:
    assert block_bytes(spec("llama-3.1-8b"), 16) == 2_097_152
    assert blocks_that_fit(spec("llama-3.1-8b"), 10 * GIB, 16) == 10 * 2**30 // 2_097_152


def test_p53_a_narrower_cache_holds_twice_the_tokens() -> None:
    """Qwen3-8B on an A100: 389 872 tokens in FP16, 779 760 in FP8 (the capacity gain is exactly two)."""
    model = spec("qwen3-8b")
    assert kv_bytes_per_token(model, 16.0) / kv_bytes_per_token(model, 8.0) == 2.0
    wide = need("qwen3-8b", "a100", kv_format="fp16").max_batch
    narrow = need("qwen3-8b", "a100", kv_format="fp8").max_batch
    assert narrow == pytest.approx(2 * wide, rel=0.02)


def test_p53_tokens_in_the_pool_of_an_engine() -> None:
    """vLLM logs 389 872 tokens for Qwen3-8B in FP16 on an A100-80GB."""
    wide, narrow = (need("qwen3-8b", "a100", kv_format=name).kv_capacity_tokens for name in ("fp16", "fp8"))
    assert wide == pytest.approx(389_872, rel=0.05)
    assert narrow == pytest.approx(2 * wide, abs=1)


def test_p35_recurrent_state_is_constant() -> None:
    jamba = spec("jamba-v0.1-52b")
    assert cache_width(jamba).full == 4 * 2 * 8 * 128
    short, long = (
        need("jamba-v0.1-52b", "h100", workload=Workload(input_tokens=n)) for n in (1_000, 100_000)
    )
    grown = long.kv_cache_bytes - short.kv_cache_bytes
    assert grown == pytest.approx(99_000 * 4 * 2 * 8 * 128 * 2 / (1 - 0.04), rel=0.01)


# ---------------------------------------------------------------- experts


@pytest.mark.parametrize(
    ("experts", "active", "batch", "touched"),
    [
        (8, 2, 1, 2.0),
        (8, 2, 3, 4.625),
        (8, 2, 16, 7.92),
        (256, 8, 32, 163.3),
        (256, 8, 64, 222.4),
        (128, 8, 32, 111.8),
    ],
)
def test_p42_p43_touched_experts(experts: int, active: int, batch: int, touched: float) -> None:
    found = touched_experts(experts=experts, active_experts=active, tokens=batch)
    assert found == pytest.approx(touched, rel=0.001)


def test_p44_flops_follow_the_experts_in_use() -> None:
    assert count_parameters(spec("mixtral-8x7b")).active == pytest.approx(12.9e9, rel=0.005)


# ---------------------------------------------------------------- what fits


def test_p14_a_model_that_does_not_fit_says_how_many_devices_it_needs() -> None:
    found = need("deepseek-v3", "h200", devices=2, weight_format="fp8")
    assert not found.fits and found.min_devices >= 5


def test_p30_need_and_reservation_are_told_apart() -> None:
    found = need("llama-3.1-8b", "h100", weight_format="fp8")
    assert found.weights_bytes == pytest.approx(9.1e9, rel=0.02)
    assert found.reserved_bytes / GIB == pytest.approx(72, rel=0.01)
    parts = (found.weights_bytes, found.kv_cache_bytes, found.activation_bytes, found.overhead_bytes)
    assert all(part > 0 for part in parts) and sum(parts) == pytest.approx(found.total_bytes)


# ---------------------------------------------------------------- names and devices


def test_p03_popular_models_are_built_in() -> None:
    model = find_model("meta-llama/Llama-2-7b-hf").spec
    dimensions = (model.layers, model.hidden, model.heads, model.kv_heads, model.intermediate, model.vocab)
    assert dimensions == (32, 4096, 32, 32, 11008, 32000)


def test_p18_any_card_can_be_described() -> None:
    mine = parse_hardware("memory_gb = 24\nbandwidth_gb_s = 1008\n[tflops]\nfp16 = 165.2\n")
    known = find_hardware("rtx-4090").spec
    assert mine.memory_bytes == known.memory_bytes
    assert mine.bandwidth_bytes_per_s == known.bandwidth_bytes_per_s
    assert mine.flops["fp16"] == known.flops["fp16"]


def test_p62_an_unknown_gpu_lists_near_matches() -> None:
    with pytest.raises(UnknownName) as caught:
        find_hardware("a1000")
    assert caught.value.suggestions


@pytest.mark.parametrize(
    ("hardware", "has_fp8"),
    [
        ("a100", False),
        ("rtx-a6000", False),
        ("rtx-3090", False),
        ("l4", True),
        ("rtx-4090", True),
        ("h100", True),
    ],
)
def test_p55_p56_fp8_needs_ada_or_hopper(hardware: str, has_fp8: bool) -> None:
    device = find_hardware(hardware).spec
    assert supports(device, "fp8") is has_fp8
    assert (device.compute_capability >= 8.9) is has_fp8
    # the cache can be kept in FP8 on either: storage needs no matrix unit
    assert need("llama-3.1-8b", hardware, kv_format="fp8").kv_cache_bytes > 0
