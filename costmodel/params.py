"""Parameters from a model's dimensions, split into the parts that checkpoints store in different formats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from costmodel.specs import Model


@dataclass(frozen=True)
class Parameters:
    """Numbers of weights of one model. `total` is their sum; biases and norms stay in 16 bits."""

    embedding: float  # input embedding, and learned positions
    head: float  # output embedding; 0 where it is tied to the input
    attention: float  # linear weights of attention
    mixer: float  # state-space and linear-attention mixers
    dense_mlp: float
    experts: float  # all routed experts
    shared_experts: float
    router: float
    norms: float  # norms and biases
    lookup: float  # per-layer embedding tables
    active: float  # weights that one token multiplies, and the embeddings

    @property
    def linear(self) -> float:
        """Weights of the layers that weight quantization quantizes."""
        return self.attention + self.mixer + self.dense_mlp + self.experts + self.shared_experts

    @property
    def total(self) -> float:
        return self.embedding + self.head + self.linear + self.router + self.norms + self.lookup

    @property
    def streamed(self) -> float:
        """Weights that a decode step multiplies when all experts are touched: no input embedding, no tables."""
        return self.linear + self.router + (self.head or self.embedding)


def mlp_params(*, hidden: int, intermediate: int, gated: bool) -> int:
    """Weights of one MLP: gate, up and down (SwiGLU, Shazeer 2020, arXiv:2002.05202), or up and down.

    >>> mlp_params(hidden=4096, intermediate=11008, gated=True)      # Llama-2-7B
    135266304
    """
    return (3 if gated else 2) * hidden * intermediate


def attention_params(*, hidden: int, heads: int, kv_heads: int, head_dim: int, gate: bool = False) -> int:
    """Weights of one attention layer with multi-head, grouped or multi-query attention.

    h·H·d (query) + 2·h·h_kv·d (keys, values) + H·d·h (output); Ainslie et al. 2023, arXiv:2305.13245.

    >>> attention_params(hidden=8192, heads=64, kv_heads=8, head_dim=128)      # Llama-2-70B
    150994944
    """
    query = hidden * heads * head_dim * (2 if gate else 1)
    return query + 2 * hidden * kv_heads * head_dim + heads * head_dim * hidden


def latent_attention_params(
    *, hidden: int, heads: int, q_rank: int, kv_rank: int, nope_dim: int, rope_dim: int, value_dim: int
) -> int:
    """Weights of one layer of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    >>> latent_attention_params(hidden=7168, heads=128, q_rank=1536, kv_rank=512, nope_dim=128, rope_dim=64,
    ...                         value_dim=128)      # DeepSeek-V3
    187105280
    """
    key_dim = nope_dim + rope_dim
    query = hidden * q_rank + q_rank * heads * key_dim if q_rank else hidden * heads * key_dim
    return (
        query
        + hidden * (kv_rank + rope_dim)
        + kv_rank * heads * (nope_dim + value_dim)
        + heads * value_dim * hidden
    )


@dataclass(frozen=True)
class Layers:
    """How many layers of each kind a model has."""

    attention: int
    full_attention: int
    windowed: int
    mixers: int
    mlp: int  # dense MLPs
    moe: int


def layer_counts(model: Model) -> Layers:
    """Layers by kind: attention (full, windowed), state-space mixers, dense MLPs, mixtures of experts."""
    attention = model.layers if model.attention_layers is None else model.attention_layers
    full = attention if not model.sliding_window else min(attention, model.global_layers or 0)
    mlp = model.layers if model.mlp_layers is None else model.mlp_layers
    moe = 0
    if model.n_experts:
        moe = model.moe_layers or max(mlp - model.dense_layers, 0)
    return Layers(
        attention=attention,
        full_attention=full,
        windowed=attention - full,
        mixers=model.state_layers,
        mlp=mlp - moe,
        moe=moe,
    )


@lru_cache(maxsize=1024)
def count_parameters(model: Model) -> Parameters:
    """Parameters of `model` by part, from its dimensions.

    >>> llama = Model(slug="l", name="l", layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
    ...               intermediate=28672, vocab=32000)
    >>> count_parameters(llama).total      # Llama-2-70B: 68 976 648 192 as published
    68976648192.0
    """
    n = layer_counts(model)
    h = model.hidden
    attention = n.attention * _attention_layer(model)
    if n.full_attention and (model.global_kv_heads or model.global_head_dim):
        wide = attention_params(
            hidden=h,
            heads=model.heads,
            kv_heads=model.global_kv_heads or model.kv_heads,
            head_dim=model.global_head_dim or model.head_dim,
            gate=model.attention_gate,
        )
        if model.global_key_is_value:
            wide -= h * (model.global_kv_heads or model.kv_heads) * (model.global_head_dim or model.head_dim)
        attention += n.full_attention * (wide - _attention_layer(model))
    per_mlp = mlp_params(hidden=h, intermediate=model.intermediate, gated=model.gated_mlp)
    expert_width = model.expert_intermediate or model.intermediate
    per_expert = mlp_params(hidden=h, intermediate=expert_width, gated=model.gated_mlp)
    shared_width = model.shared_intermediate or model.shared_experts * expert_width
    shared = n.moe * mlp_params(hidden=h, intermediate=shared_width, gated=model.gated_mlp)
    experts = n.moe * model.n_experts * per_expert
    table = model.vocab * h
    embedding = table + model.position_rows * h
    head = 0 if model.tied_embeddings else table
    norms = _norms_and_biases(model, n)
    mixer = n.mixers * model.state_layer_params
    router = n.moe * h * model.n_experts
    fixed = attention + mixer + n.mlp * per_mlp + shared + router + norms + embedding + head
    return Parameters(
        embedding=float(embedding),
        head=float(head),
        attention=float(attention),
        mixer=float(mixer),
        dense_mlp=float(n.mlp * per_mlp),
        experts=float(experts),
        shared_experts=float(shared),
        router=float(router),
        norms=float(norms),
        lookup=float(model.lookup_params),
        active=float(fixed + n.moe * model.active_experts * per_expert),
    )


def _attention_layer(model: Model) -> int:
    if model.attention == "MLA":
        return latent_attention_params(
            hidden=model.hidden,
            heads=model.heads,
            q_rank=model.mla_q_lora_rank,
            kv_rank=model.mla_kv_lora_rank,
            nope_dim=model.mla_qk_nope_dim,
            rope_dim=model.mla_qk_rope_dim,
            value_dim=model.mla_v_head_dim,
        )
    return attention_params(
        hidden=model.hidden,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_dim=model.head_dim,
        gate=model.attention_gate,
    )


def _norms_and_biases(model: Model, n: Layers) -> int:
    """Norm weights (and biases), projection biases; below 0.1 % of any model but the smallest."""
    h = model.hidden
    norm = 2 * h if model.norm_bias else h
    total = (model.layers * model.norms_per_layer + 1) * norm
    if model.attention == "MLA":
        total += n.attention * (model.mla_q_lora_rank + model.mla_kv_lora_rank)
    if model.qk_norm:
        total += n.attention * 2 * model.head_dim
    if model.attention_bias:
        total += n.attention * (model.heads + 2 * model.kv_heads) * model.head_dim
    if model.attention_output_bias:
        total += n.attention * h
    if model.mlp_bias:
        up = 2 if model.gated_mlp else 1
        total += n.mlp * (up * model.intermediate + h)
        width = model.expert_intermediate or model.intermediate
        total += n.moe * model.n_experts * (up * width + h + 1)
    if model.head_bias:
        total += model.vocab
    return total
