"""State-space and linear-attention mixers: their weights and the constant state that replaces a KV cache.

Every function gives (weights of one mixer, numbers of recurrent state of one sequence and layer).
"""

from __future__ import annotations

from costmodel.errors import InvalidValue

STATE_BYTES = 4.0  # recurrences accumulate in FP32 in llama.cpp, vLLM and mamba_ssm


def mamba(
    *, hidden: int, inner: int, state: int, conv: int, dt_rank: int, norms: bool = False
) -> tuple[int, int]:
    """Mamba-1 (Gu & Dao 2023, arXiv:2312.00752, Figure 3): in, conv, x, dt, A, D and out.

    weights = 2hD + D(c + 1) + D(r + 2N) + (r + 1)D + DN + D + Dh;  state = D·N + D(c − 1)
    with D inner channels, N states per channel, convolution width c, rank r of the step size.

    >>> mamba(hidden=768, inner=1536, state=16, conv=4, dt_rank=48)      # mamba-130m
    (3770880, 29184)
    """
    weights = 2 * hidden * inner + inner * (conv + 1) + inner * (dt_rank + 2 * state)
    weights += (dt_rank + 1) * inner + inner * state + inner + inner * hidden
    if norms:  # Jamba normalises the step size, B and C
        weights += dt_rank + 2 * state
    return weights, inner * state + inner * (conv - 1)


def mamba2(*, hidden: int, heads: int, head_dim: int, state: int, groups: int, conv: int) -> tuple[int, int]:
    """Mamba-2 (Dao & Gu 2024, arXiv:2405.21060, section 7): one projection to z, x, B, C and the step sizes.

    weights = h(2D + 2GN + H) + (D + 2GN)(c + 1) + 3H + D + Dh;  state = H·d·N + (D + 2GN)(c − 1), D = H·d

    >>> mamba2(hidden=2560, heads=80, head_dim=64, state=128, groups=1, conv=4)[1]
    671488
    """
    inner = heads * head_dim
    channels = inner + 2 * groups * state
    weights = hidden * (2 * inner + 2 * groups * state + heads) + channels * (conv + 1) + 3 * heads + inner
    return weights + inner * hidden, heads * head_dim * state + channels * (conv - 1)


def gated_delta(
    *, hidden: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int, conv: int
) -> tuple[int, int]:
    """Gated DeltaNet (Yang et al. 2024, arXiv:2412.06464) as in Qwen3-Next: q, k, v, gate z, b, a, conv, out.

    weights = h(2K + 2V + 2H_v) + (2K + V)c + 2H_v + d_v + Vh;  state = H_v·d_k·d_v + (2K + V)(c − 1)
    with K = H_k·d_k and V = H_v·d_v.

    >>> gated_delta(hidden=5120, key_heads=16, value_heads=48, key_dim=128, value_dim=128, conv=4)[1]
    817152
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    channels = 2 * keys + values
    weights = hidden * (2 * keys + 2 * values + 2 * value_heads) + channels * conv
    weights += 2 * value_heads + value_dim + values * hidden
    return weights, value_heads * key_dim * value_dim + channels * (conv - 1)


def rwkv4(*, hidden: int, inner: int) -> tuple[int, int]:
    """RWKV-4 (Peng et al. 2023, arXiv:2305.13048, section 3): receptance, key, value and output of time mixing.

    weights = 3hA + Ah + 2A + 3h (decay, bonus, mixing vectors), and h² + 2h of the channel mixing's receptance,
    whose key and value are the model's MLP;  state = 5h (two of them the last inputs)
    """
    return 3 * hidden * inner + inner * hidden + 2 * inner + 3 * hidden + hidden * (hidden + 2), 5 * hidden


def rwkv_matrix(*, hidden: int, inner: int, head_dim: int, low_rank: int) -> tuple[int, int]:
    """RWKV-5 to 7 time mixing (Peng et al. 2024, arXiv:2404.05892): five projections and low-rank mixing.

    weights = 5hA + 2hR·5;  state = A·d (a d×d matrix per head) + 2h
    """
    return 5 * hidden * inner + 10 * hidden * low_rank, inner * head_dim + 2 * hidden


def rg_lru(*, hidden: int, width: int, conv: int, blocks: int) -> tuple[int, int]:
    """RG-LRU block of Griffin / RecurrentGemma (De et al. 2024, arXiv:2402.19427, section 2.4).

    weights = 2hW + Wh + W(c + 1) + 2W²/blocks + 3W and biases;  state = W + W(c − 1)
    """
    weights = 3 * hidden * width + 2 * width + hidden + width * (conv + 1)
    weights += 2 * (width * width // blocks + width) + width
    return weights, width * conv


def short_conv(*, hidden: int, conv: int) -> tuple[int, int]:
    """Gated short convolution of LFM2: in (to three parts), depthwise convolution, out.

    weights = 3h² + hc + h²;  state = h(c − 1)
    """
    return 4 * hidden * hidden + hidden * conv, hidden * (conv - 1)


def linear_attention(*, hidden: int, heads: int, head_dim: int) -> tuple[int, int]:
    """Plain (lightning) linear attention of MiniMax: q, k, v, output gate, out (arXiv:2501.08313, section 2.2).

    weights = 5hA + A;  state = A·d
    """
    inner = heads * head_dim
    return 5 * hidden * inner + inner, inner * head_dim


def by_kind(kind: str, *, hidden: int, inner: int, state: int, conv: int, dt_rank: int) -> tuple[int, int]:
    """The mixer named in data/models.csv."""
    if kind in ("mamba", "mamba-norms"):
        return mamba(
            hidden=hidden, inner=inner, state=state, conv=conv, dt_rank=dt_rank, norms=kind == "mamba-norms"
        )
    if kind == "rwkv4":
        return rwkv4(hidden=hidden, inner=inner)
    raise InvalidValue(f"unknown state-space layer {kind!r}", hint="mamba, mamba-norms or rwkv4")
