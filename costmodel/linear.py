"""Weights and multiplications of the linear operators, from a model's dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from costmodel.kvcache import cache_width
from costmodel.params import count_parameters, layer_counts
from costmodel.specs import Model

NO_WINDOW = 1e12  # tokens; a finite stand-in keeps the arithmetic free of infinities
FLOPS_PER_WEIGHT = 2.0  # one multiplication and one addition


@dataclass(frozen=True, slots=True)
class Shape:
    """Sums over the layers of one model: what the time formulas need. Fields may be arrays over many models."""

    layers: Any
    hidden: Any
    vocab: Any
    qkv_params: Any  # query, key, value projections (MLA: down and up projections)
    out_params: Any  # attention output projection
    mlp_params: Any  # dense MLPs and shared experts
    router_params: Any
    expert_params: Any  # all routed experts of all layers
    mixer_params: Any  # state-space and linear-attention mixers
    head_params: Any  # language-model head, read once per step
    experts: Any
    active_experts: Any
    moe_layers: Any
    mixer_layers: Any
    attention_layers: Any
    heads: Any
    kv_heads: Any
    kv_elements: Any  # cached numbers per token, layers with full attention
    window_elements: Any  # … layers with a sliding window
    window_tokens: Any
    score_flops: Any  # per query token and context token, layers with full attention
    window_score_flops: Any
    decode_score_flops: Any  # MLA decodes in the latent space
    score_heads: Any  # heads × attention layers: rows of the S×S matrix that an unfused kernel writes
    state_bytes: Any
    mlp_width: Any  # mean intermediate size: activations between the MLP's matrices
    total_params: Any


@lru_cache(maxsize=1024)
def shape_of(model: Model) -> Shape:
    """The sums for one model; weights by `params`, cached numbers by `kvcache`.

    >>> from costmodel.specs import Model
    >>> llama = Model(slug="l", name="l", layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
    ...               intermediate=28672, vocab=32000)
    >>> shape = shape_of(llama)      # Llama-2-70B: all but the input embedding and the norms
    >>> shape.qkv_params + shape.out_params + shape.mlp_params + shape.head_params
    68713185280.0
    """
    counts, layers, cache = count_parameters(model), layer_counts(model), cache_width(model)
    wide_dim = model.global_head_dim or model.head_dim
    if model.attention == "MLA":
        value_dim = model.mla_v_head_dim
        latent = model.mla_kv_lora_rank + model.mla_qk_rope_dim
        score = (
            2.0 * layers.attention * model.heads * (model.mla_qk_nope_dim + model.mla_qk_rope_dim + value_dim)
        )
        window_score = 0.0
        # decoding absorbs the expansions: scores and values in the latent space (arXiv:2405.04434, section 2.1.2)
        decode_score = 2.0 * layers.attention * model.heads * (latent + model.mla_kv_lora_rank)
    else:
        value_dim = model.head_dim
        score = decode_score = 4.0 * layers.full_attention * model.heads * wide_dim
        window_score = 4.0 * layers.windowed * model.heads * model.head_dim
    out = layers.windowed * value_dim + layers.full_attention * (
        wide_dim if model.attention != "MLA" else value_dim
    )
    out_params = float(out * model.heads * model.hidden)
    expert_width = model.expert_intermediate or model.intermediate
    shared_width = model.shared_intermediate or model.shared_experts * expert_width
    width = (
        layers.moe * (model.active_experts * expert_width + shared_width) + layers.mlp * model.intermediate
    )
    return Shape(
        layers=float(model.layers),
        hidden=float(model.hidden),
        vocab=float(model.vocab),
        qkv_params=counts.attention - out_params,
        out_params=out_params,
        mlp_params=counts.dense_mlp + counts.shared_experts,
        router_params=counts.router,
        expert_params=counts.experts,
        mixer_params=counts.mixer,
        head_params=float(model.vocab * model.hidden),
        experts=float(max(model.n_experts, 1)),
        active_experts=float(max(model.active_experts, 1)),
        moe_layers=float(layers.moe),
        mixer_layers=float(layers.mixers),
        attention_layers=float(layers.attention),
        heads=float(model.heads),
        kv_heads=cache.kv_heads,
        kv_elements=cache.full,
        window_elements=cache.windowed,
        window_tokens=min(cache.window_tokens, NO_WINDOW),
        score_flops=score,
        window_score_flops=window_score,
        decode_score_flops=decode_score,
        score_heads=float(model.heads * layers.attention),
        state_bytes=float(model.state_bytes_per_sequence),
        mlp_width=width / model.layers,
        total_params=counts.total,
    )
