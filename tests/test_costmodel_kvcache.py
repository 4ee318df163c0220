"""Cached bytes: every kind of attention against figures that engines log or users worked out."""

from __future__ import annotations

import numpy as np
import pytest

from costmodel.catalogue import all_models, find_model, model_rows
from costmodel.kvcache import (
    block_bytes,
    blocks_that_fit,
    cache_width,
    head_replication,
    kept_tokens,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    kv_bytes_per_token_per_rank,
)
from costmodel.units import GIB


@pytest.mark.parametrize("slug", sorted(all_models()))
def test_bytes_per_token_agree_with_the_catalogue(slug: str) -> None:
    assert kv_bytes_per_token(all_models()[slug]) == float(model_rows()[slug]["catalogue_kv_bytes_per_token"])


@pytest.mark.parametrize(
    ("slug", "bytes_per_token"),
    [
        ("llama-2-7b", 2 * 32 * 32 * 128 * 2),  # multi-head
        ("llama-2-70b", 327_680),  # grouped
        ("falcon-7b", 2 * 32 * 1 * 64 * 2),  # multi-query
        ("qwen3-4b", 147_456),  # its own head_dim: 128, not 2560 / 32
        ("mistral-small-24b", 163_840),
        ("deepseek-v3", 61 * (512 + 64) * 2),  # latent
        ("jamba-v0.1-52b", 2 * 4 * 8 * 128 * 2),  # 4 of 32 layers attend
        ("mamba-2.8b", 0),
    ],
)
def test_bytes_per_token_by_hand(slug: str, bytes_per_token: int) -> None:
    assert kv_bytes_per_token(find_model(slug).spec) == bytes_per_token


def test_windowed_layers_count_up_to_their_window() -> None:
    gpt_oss = find_model("gpt-oss-120b").spec
    per_layer = 2 * 8 * 64 * 2
    assert kv_bytes_per_sequence(gpt_oss, 1) == 36 * per_layer
    assert kv_bytes_per_sequence(gpt_oss, 100) == 36 * per_layer * 100
    assert kv_bytes_per_sequence(gpt_oss, 1000) == 18 * per_layer * 1000 + 18 * per_layer * 128


@pytest.mark.parametrize(
    ("slug", "tokens", "gib"),
    [("gemma-3-27b", 131072, 10.41), ("deepseek-v3", 163840, 10.72), ("qwen3-0.6b", 40960, 4.38)],
)
def test_longest_contexts(slug: str, tokens: int, gib: float) -> None:
    assert kv_bytes_per_sequence(find_model(slug).spec, tokens) / GIB == pytest.approx(gib, abs=0.006)


def test_recurrent_state_does_not_grow() -> None:
    """mamba-2.8b: 64 layers of 5120 channels with 16 states and 3 convolution inputs, in FP32."""
    mamba = find_model("mamba-2.8b").spec
    assert mamba.state_bytes_per_sequence == 64 * 5120 * (16 + 3) * 4
    assert kv_bytes_per_sequence(mamba, 10**6) == 0


def test_layers_that_share_a_cache_keep_one() -> None:
    """Gemma 4 E4B: 18 of 42 layers reuse another's cache; 20 windowed and 4 full ones keep theirs."""
    width = cache_width(find_model("gemma-4-e4b").spec)
    assert width.windowed == 20 * 2 * 2 * 256
    assert width.full == 4 * 2 * 2 * 512


def test_heads_are_replicated_beyond_their_number() -> None:
    llama = find_model("llama-2-70b").spec  # 8 KV heads
    assert head_replication(llama, np.array([1, 4, 8, 16, 32])).tolist() == [1, 1, 1, 2, 4]
    assert kv_bytes_per_token_per_rank(llama, 16) == 327_680 / 8
    assert kv_bytes_per_token_per_rank(llama, 8) == 327_680 / 8
    # a latent cannot be split at all
    assert head_replication(find_model("deepseek-v3").spec, 8) == 8


def test_blocks() -> None:
    llama = find_model("llama-3.1-8b").spec
    assert block_bytes(llama, 16) == 2_097_152
    assert blocks_that_fit(llama, 10 * 2_097_152 - 1) == 9
    assert blocks_that_fit(llama, -5.0) == 0
    assert kv_bytes_per_sequence(llama, 17, 16.0, 16) == 32 * 131_072


def test_narrower_caches_are_smaller_in_proportion() -> None:
    llama = find_model("llama-3.1-8b").spec
    bits = np.array([16, 8, 4])
    assert kv_bytes_per_token(llama, bits).tolist() == [131072, 65536, 32768]


def test_eviction_and_imposed_windows() -> None:
    assert kept_tokens(4096, tokens_kept=0.25) == 1024
    assert kept_tokens(4096, window_tokens=512) == 512
    assert kept_tokens(np.array([100, 4096]), window_tokens=512).tolist() == [100, 512]


def test_bytes_follow_kv_heads_and_not_query_heads() -> None:
    from dataclasses import replace

    llama = find_model("llama-2-70b").spec
    assert kv_bytes_per_token(replace(llama, heads=128)) == kv_bytes_per_token(llama)
    assert kv_bytes_per_token(replace(llama, kv_heads=16)) == 2 * kv_bytes_per_token(llama)
