"""Bytes of keys, values and recurrent state: per token, per sequence, per device.

Algorithmic bytes are what the attention needs; what an engine reserves on top of it is `memory.py`'s business.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from costmodel.numeric import ceiling, maximum, minimum, where
from costmodel.params import layer_counts
from costmodel.specs import Model
from costmodel.units import BITS_PER_BYTE

DEFAULT_BLOCK_TOKENS = 16  # vLLM's page, Kwon et al. 2023, arXiv:2309.06180
REPLICATION_FREE = 1.0


class CacheWidth(NamedTuple):
    """Numbers cached per token: by layers that keep every token, and by layers with a sliding window."""

    full: float
    windowed: float
    window_tokens: float  # infinity where no layer has a window
    kv_heads: float  # heads that tensor parallelism can split; 1 for a latent, which cannot be split


@lru_cache(maxsize=1024)
def cache_width(model: Model) -> CacheWidth:
    """Cached numbers per token of all layers.

    Grouped-query: 2·h_kv·d per layer (Ainslie et al. 2023, arXiv:2305.13245; head_dim is the model's own, not
    hidden/heads). Latent: one compressed vector and one rotary key per layer (DeepSeek-V2, arXiv:2405.04434).
    Layers that share another's cache (kv_layers) and state-space layers keep none.

    >>> llama = Model(slug="l", name="l", layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
    ...               intermediate=28672, vocab=32000)
    >>> cache_width(llama).full      # Llama-2-70B: times two bytes is 327 680
    163840.0
    """
    n = layer_counts(model)
    if model.attention == "MLA":
        latent = model.mla_kv_lora_rank + model.mla_qk_rope_dim
        kept = n.attention if model.kv_layers is None else min(model.kv_layers, n.attention)
        return CacheWidth(float(kept * latent), 0.0, float("inf"), 1.0)
    share = 1.0
    if model.kv_layers is not None and n.attention:
        # the layers that own a cache are full and windowed in the model's own proportion
        share = min(model.kv_layers, n.attention) / n.attention
    full_layers = round(n.full_attention * share)
    windowed_layers = round(n.attention * share) - full_layers
    wide = (model.global_kv_heads or model.kv_heads) * (model.global_head_dim or model.head_dim)
    narrow = model.kv_heads * model.head_dim
    if not model.sliding_window:
        wide = narrow
    per_token = (1 if model.global_key_is_value else 2) * wide
    return CacheWidth(
        float(full_layers * per_token),
        float(windowed_layers * 2 * narrow),
        float(model.sliding_window or "inf"),
        float(max(model.kv_heads, 1)),
    )


def kv_bytes_per_token(model: Model, kv_bits: Any = 16.0) -> Any:
    """Bytes that one more token adds while it is inside every window.

    bytes = numbers per token · bits / 8

    >>> gpt_oss = Model(slug="g", name="g", layers=36, hidden=2880, heads=64, kv_heads=8, head_dim=64,
    ...                 intermediate=2880, vocab=201088, sliding_window=128, global_layers=18)
    >>> kv_bytes_per_token(gpt_oss)      # gpt-oss-120b: windowed layers count too
    73728.0
    """
    width = cache_width(model)
    return (width.full + width.windowed) * kv_bits / BITS_PER_BYTE


def kv_bytes_per_sequence(
    model: Model, context_tokens: Any, kv_bits: Any = 16.0, block_tokens: Any = 1
) -> Any:
    """Bytes that one sequence of `context_tokens` keeps, recurrent state excluded.

    bytes = (full · S + windowed · min(S, w)) · bits / 8, with S rounded up to whole blocks

    >>> gemma = Model(slug="g", name="g", layers=62, hidden=5376, heads=32, kv_heads=16, head_dim=128,
    ...               intermediate=21504, vocab=262144, sliding_window=1024, global_layers=10)
    >>> round(kv_bytes_per_sequence(gemma, 131072) / 2**30, 2)      # Gemma-3-27B
    10.41
    """
    width = cache_width(model)
    tokens = context_tokens
    if not (isinstance(block_tokens, int | float) and block_tokens <= 1):
        tokens = ceiling(tokens / block_tokens) * block_tokens
    numbers = width.full * tokens
    if width.windowed:
        numbers = numbers + width.windowed * minimum(tokens, width.window_tokens)
    return numbers * kv_bits / BITS_PER_BYTE


def state_bytes_per_sequence(model: Model) -> float:
    """Constant recurrent state of one sequence, all layers; it does not grow with the context."""
    return model.state_bytes_per_sequence


def head_replication(model: Model, tensor_parallel: Any) -> Any:
    """Copies of the cache that tensor parallelism keeps: max(1, tp / h_kv); a latent is copied to every device.

    Heads cannot be split further than one per device (Pope et al. 2022, arXiv:2211.05102, section 3.3).

    >>> llama = Model(slug="l", name="l", layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
    ...               intermediate=28672, vocab=32000)
    >>> head_replication(llama, 16), head_replication(llama, 4)
    (2.0, 1.0)
    """
    return maximum(tensor_parallel / cache_width(model).kv_heads, REPLICATION_FREE)


def kv_bytes_per_token_per_rank(model: Model, tensor_parallel: Any, kv_bits: Any = 16.0) -> Any:
    """Bytes per token on one of `tensor_parallel` devices.

    >>> qwen = Model(slug="q", name="q", layers=64, hidden=5120, heads=64, kv_heads=8, head_dim=128,
    ...              intermediate=25600, vocab=151936)
    >>> kv_bytes_per_token_per_rank(qwen, 4)      # Qwen3-32B
    65536.0
    """
    share = head_replication(model, tensor_parallel) / tensor_parallel
    return kv_bytes_per_token(model, kv_bits) * share


def block_bytes(model: Model, block_tokens: int = DEFAULT_BLOCK_TOKENS, kv_bits: Any = 16.0) -> Any:
    """Bytes of one block of a paged cache, all layers.

    >>> llama = Model(slug="l", name="l", layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128,
    ...               intermediate=14336, vocab=128256)
    >>> block_bytes(llama)      # Llama-3.1-8B
    2097152.0
    """
    return block_tokens * kv_bytes_per_token(model, kv_bits)


def blocks_that_fit(
    model: Model, free_bytes: Any, block_tokens: int = DEFAULT_BLOCK_TOKENS, kv_bits: Any = 16.0
) -> Any:
    """Whole blocks in `free_bytes`: floor(free / (block · bytes per token)).

    >>> llama = Model(slug="l", name="l", layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128,
    ...               intermediate=14336, vocab=128256)
    >>> blocks_that_fit(llama, 2097152 * 10 + 5)
    10.0
    """
    size = block_bytes(model, block_tokens, kv_bits)
    if not isinstance(size, float) or size > 0:
        return where(free_bytes > 0, free_bytes // size, 0.0)
    return float("inf")


def kept_tokens(context_tokens: Any, *, tokens_kept: Any = 1.0, window_tokens: Any = None) -> Any:
    """Tokens left in the cache after eviction and an imposed window (Deployment.kv_tokens_kept, kv_window_tokens)."""
    kept = context_tokens * tokens_kept
    return kept if window_tokens is None else minimum(kept, window_tokens)
