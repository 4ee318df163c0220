"""Layers of a config.json by kind: MLPs, experts, latent attention, recurrent mixers, windows, shared caches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from costmodel import state_space
from costmodel.hf_keys import SYNONYMS, Keys
from costmodel.params import attention_params

Values = dict[str, Any]
WINDOWED = ("sliding_attention", "chunked_attention", "local_attention", "local", "sliding")
FULL = ("full_attention", "attention", "global", "global_attention", "hybrid", "a")
RECURRENT = ("linear_attention", "mamba", "mamba2", "recurrent", "conv", "mamba_attention", "m")


def is_recurrent(family: Mapping[str, Any], kind: str) -> bool:
    """No attention at all: Mamba and RWKV, not the hybrids."""
    pure = family.get("mixer") in ("mamba", "rwkv4", "rwkv-matrix") or kind == "mamba2"
    return pure and not kind.startswith("zamba")


def count_layers(keys: Keys, kind: str) -> int:
    """Layers of the model; LongCat's have two attentions and two MLPs each, and Nemotron-H's may only be listed."""
    listed = keys.raw("layers_block_type", "hybrid_override_pattern")
    if isinstance(listed, list | str) and listed and keys.raw(*SYNONYMS["layers"]) is None:
        return len(listed)
    layers = keys.required("layers")
    return 2 * layers if kind == "longcat_flash" else layers


def gated(keys: Keys, family: Mapping[str, Any]) -> bool:
    """Three matrices per MLP, or two."""
    default = bool(family.get("gated", True))
    if str(keys.raw("mlp_type") or "").lower() in ("gelu", "plain", "default_mlp"):
        return False
    activation = str(keys.raw("mlp_hidden_act") or "")
    return default and activation not in ("relu2", "xielu")


def mlp_width(keys: Keys, family: Mapping[str, Any], kind: str, hidden: int) -> int:
    """Intermediate size of the dense MLP."""
    ratio = keys.raw("expansion_ratio", "mlp_ratio")
    if dense := keys.number("dense_intermediate_size"):
        return dense
    if kind == "llama4_text":
        return keys.number("intermediate_size_mlp") or keys.number("intermediate") or 0
    ffn = keys.raw("ffn_config")
    if isinstance(ffn, Mapping) and ffn.get("ffn_hidden_size"):
        return int(ffn["ffn_hidden_size"])
    width = keys.number("intermediate")
    if is_recurrent(family, kind) and not str(family.get("mixer")).startswith("rwkv"):
        return 0
    if width is None:
        if family.get("mixer") == "rwkv-matrix":
            return int(hidden * 3.5) // 32 * 32
        if family.get("gated", True) and not isinstance(ratio, int | float):
            if keys.number("expert_width"):
                return 0  # every MLP is a mixture of experts
            # only plain MLPs are four times as wide as the model by default
            return keys.required("intermediate")
        width = int(hidden * (ratio if isinstance(ratio, int | float) else 4))
    if family.get("half_intermediate") or kind == "recurrent_gemma":
        width //= 2  # the file counts gate and up together
    if kind.startswith("lfm2") and keys.flag("block_auto_adjust_ff_dim", default=True):
        factor = keys.raw("block_ffn_dim_multiplier") or 1.0
        multiple = keys.number("block_multiple_of") or 256
        width = -(-int(factor * int(2 * width / 3)) // multiple) * multiple
    return width


def latent_attention(keys: Keys, values: Values) -> Values:
    """Multi-head latent attention, where the file has a key-value rank."""
    rank = keys.number("kv_lora_rank")
    if not rank:
        kv, heads = values["kv_heads"], values["heads"]
        name = "SSM" if not heads else "MHA" if kv == heads else "MQA" if kv == 1 else "GQA"
        return {"attention": name}
    nope = keys.number("qk_nope_head_dim") or values["head_dim"]
    rope = keys.number("qk_rope_head_dim") or 64
    query = keys.raw("q_lora_rank")
    return {
        "attention": "MLA",
        "head_dim": nope + rope,
        "mla_q_lora_rank": int(query) if isinstance(query, int | float) else (
            0 if "q_lora_rank" in keys.data else keys.number("q_lora_rank") or 0
        ),
        "mla_kv_lora_rank": rank,
        "mla_qk_nope_dim": nope,
        "mla_qk_rope_dim": rope,
        "mla_v_head_dim": keys.number("v_head_dim") or values["hidden"] // max(values["heads"], 1),
    }  # fmt: skip


def mixture(keys: Keys, family: Mapping[str, Any], kind: str, layers: int, values: Values) -> Values:
    """Experts: how many, how wide, how many per token, shared ones, and in which layers."""
    ffn = keys.raw("ffn_config")
    experts, active = keys.number("experts"), keys.number("active")
    if isinstance(ffn, Mapping) and ffn.get("moe_num_experts"):
        experts, active = int(ffn["moe_num_experts"]), int(ffn.get("moe_top_k", 1))
    switch = keys.raw("enable_moe_block")
    if not experts or experts < 2 or switch is False or keys.raw("is_moe") is False:
        width = keys.number("shared_width")
        if width and kind in ("granitemoehybrid", "granitemoeshared"):
            return {"intermediate": width}  # no routed experts: the shared MLP is the MLP
        return {}
    width = keys.number("expert_width")
    if width is None:
        width = keys.number("intermediate") or values["intermediate"]
    shared = keys.number("shared") or 0
    shared_width = keys.number("shared_width") or 0
    if kind == "llama4_text":
        shared = 1
    if kind.startswith("gemma4"):  # a dense MLP runs beside the experts
        shared, shared_width = 1, values["intermediate"]
    if shared_width and not shared:
        shared = 1
    if shared_width and shared > 1 and kind in ("nemotron_h",):
        shared_width *= shared
    if kind == "longcat_flash":  # experts beside every second pair of attention and MLP
        return {
            "n_experts": experts,
            "active_experts": min(active or 1, experts),
            "expert_intermediate": width,
            "moe_layers": layers // 2,
            "dense_layers": layers,
            "mlp_layers": layers + layers // 2,
        }
    moe_layers = _moe_layers(keys, kind, layers)
    return {
        "n_experts": experts,
        "active_experts": min(active or 1, experts),
        "shared_experts": shared,
        "expert_intermediate": width,
        "shared_intermediate": shared_width,
        "moe_layers": moe_layers,
        "dense_layers": layers - moe_layers,
    }


def _moe_layers(keys: Keys, kind: str, layers: int) -> int:
    listed = keys.raw("moe_layers", "moe_layers_enum")
    if isinstance(listed, list) and listed:
        return len(listed)
    if isinstance(listed, str) and listed:
        return len([x for x in listed.split(",") if x.strip()])
    kinds = keys.strings("mlp_layer_types")
    if kinds:
        return len([k for k in kinds[:layers] if k != "dense"])
    pattern = keys.raw("moe_layer_freq")
    if isinstance(pattern, list):
        return sum(1 for x in pattern if x)
    period = keys.number("expert_layer_period")
    if period:
        offset = keys.number("expert_layer_offset") or 0
        return len([i for i in range(layers) if i % period == offset])
    if kind == "llama4_text":
        step = keys.number("interleave_moe_layer_step") or 1
        return len(range(step - 1, layers, step))
    first = keys.number("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", "first_k_dense")
    first = first or 0
    last = keys.number("moe_layer_end_index", least=-1)
    layers = layers if last is None or last < 0 else min(layers, last + 1)
    every = pattern if isinstance(pattern, int) and pattern else keys.number("moe_layer_interval") or 1
    sparse = keys.number("decoder_sparse_step")
    if sparse:
        plain = keys.raw("mlp_only_layers") or []
        return len([i for i in range(layers) if i not in plain and (i + 1) % sparse == 0])
    return len([i for i in range(first, layers) if (i - first) % every == 0])


def layer_kinds(keys: Keys, layers: int) -> list[str]:
    """The file's own list of layer kinds, cut to the number of layers; empty where it has none."""
    listed = keys.strings(
        "layer_types", "layers_block_type", "block_types", "_block_types", "attention_layers"
    )
    if not listed:
        return []
    repeated = (listed * (layers // len(listed) + 1))[:layers]
    return [kind.lower() for kind in repeated]


def mixers(keys: Keys, family: Mapping[str, Any], kind: str, values: Values, notes: list[str]) -> Values:
    """State-space and linear-attention layers: how many, their weights and state."""
    mixer = family.get("mixer")
    if not mixer and keys.data.get("linear_num_value_heads"):
        mixer = "gated-delta"  # a family yet unknown, with the keys of Qwen3-Next's
    if not mixer:
        return {}
    layers = values["layers"]
    attention, recurrent, mlps = _split(keys, kind, layers)
    result: Values = {"attention_layers": attention, "state_layers": recurrent}
    if mlps is not None:
        result["mlp_layers"] = mlps
        if values.get("n_experts"):
            result["moe_layers"] = values["moe_layers"] = _experts_in_pattern(keys) or mlps
            result["dense_layers"] = mlps - result["moe_layers"]
    elif not values["intermediate"] and not values.get("n_experts"):
        result["mlp_layers"] = 0
    weights, state = _mixer(keys, str(mixer), values)
    shared = 0.0
    if kind.startswith("zamba"):
        # one or two shared attention blocks, over twice the hidden size, serve all hybrid layers
        blocks = keys.number("num_mem_blocks") or 1
        h, width = values["hidden"], values["intermediate"]
        shared = blocks * (3 * (2 * h) * (2 * h) + 2 * h * h + 3 * h * width)
        # …while the counting of parameters sees an attention of its own in each of them
        shared -= attention * attention_params(
            hidden=h, heads=values["heads"], kv_heads=values["kv_heads"], head_dim=values["head_dim"]
        )
        shared /= max(recurrent, 1)
        result |= {"mlp_layers": 0, "attention_layers": attention}
        notes.append("shared attention blocks are counted once; adapters are not counted")
    result["state_layer_params"] = float(weights + shared)
    result["state_bytes_per_sequence"] = recurrent * state * state_space.STATE_BYTES
    if attention:
        result["attention"] = "hybrid" if values["attention"] != "MLA" else "MLA"
    else:
        result["attention"] = "linear-RNN" if str(mixer).startswith("rwkv") else "SSM"
    return result


def _experts_in_pattern(keys: Keys) -> int:
    pattern = keys.raw("hybrid_override_pattern")
    return str(pattern).count("E") if pattern else 0


def _split(keys: Keys, kind: str, layers: int) -> tuple[int, int, int | None]:
    """Attention layers, recurrent layers, and MLP layers where those are layers of their own."""
    pattern = keys.raw("hybrid_override_pattern")
    if isinstance(pattern, str):  # Nemotron-H: M mixer, * attention, - MLP, E experts
        return pattern.count("*"), pattern.count("M"), pattern.count("-") + pattern.count("E")
    if kind == "falcon_h1":
        return layers, layers, None  # both side by side in every layer
    if kind.startswith("zamba"):
        hybrid = keys.raw("hybrid_layer_ids")
        keys.raw("attn_layer_period", "attn_layer_offset", "n_mamba_heads")  # the same again
        kinds = layer_kinds(keys, layers)
        count = len(hybrid) if isinstance(hybrid, list) else kinds.count("hybrid") or layers // 6
        return count, layers, None
    blocks = keys.strings("layers_block_type")
    if kind == "nemotron_h" and blocks:
        recurrent = len([b for b in blocks if b in RECURRENT])
        attending = len([b for b in blocks if b in FULL])
        return attending, recurrent, len(blocks) - recurrent - attending
    group = keys.number("layer_group_size")
    if group:  # the last layer of each group attends in full
        return layers // group, layers - layers // group, None
    linear = keys.raw("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("full_attn_layers"), list):
        full = len(linear["full_attn_layers"])
        return full, layers - full, None
    kinds = layer_kinds(keys, layers)
    if kinds:
        recurrent = len([k for k in kinds if k in RECURRENT])
        return layers - recurrent, recurrent, None
    indices = keys.raw("attn_layer_indices", "full_attn_idxs")
    if isinstance(indices, list):
        return len(indices), layers - len(indices), None
    types = keys.raw("attn_type_list")
    if isinstance(types, list):
        full = len([t for t in types if t])
        return full, layers - full, None
    period = keys.number("attn_layer_period", "full_attention_interval")
    if period:
        offset = keys.number("attn_layer_offset")
        offset = period - 1 if offset is None else offset
        full = len([i for i in range(layers) if i % period == offset])
        return full, layers - full, None
    return 0, layers, None


def _mixer(keys: Keys, mixer: str, values: Values) -> tuple[int, int]:
    hidden = values["hidden"]
    expand = keys.number("expand", "mamba_expand") or 2
    conv = keys.number("conv_kernel", "mamba_d_conv", "conv_kernel_size", "linear_conv_kernel_dim") or 4
    state = keys.number("state_size", "mamba_d_state", "ssm_state_size", "d_state", "ssm_cfg_state") or 16
    if mixer in ("mamba", "mamba-norms"):
        inner = keys.number("d_inner", "mamba_d_ssm") or expand * hidden
        if not values["heads"]:  # in pure Mamba files intermediate_size is the inner width
            inner = keys.number("intermediate_size") or inner
        rank = keys.raw("mamba_dt_rank", "time_step_rank", "dt_rank")
        dt_rank = int(rank) if isinstance(rank, int | float) else -(-hidden // 16)
        return state_space.mamba(
            hidden=hidden, inner=inner, state=state, conv=conv, dt_rank=dt_rank, norms=mixer == "mamba-norms"
        )
    if mixer == "mamba2":
        inner = keys.number("mamba_d_ssm", "d_ssm") or expand * hidden
        heads = keys.number("mamba_n_heads", "mamba_num_heads", "n_mamba_heads")
        if heads is None and "mamba_d_state" not in keys.data:
            heads = keys.number("num_heads")
        head_dim = keys.number("mamba_d_head", "mamba_head_dim", "mamba_headdim")
        if head_dim is None and not values["heads"]:
            head_dim = keys.number("head_dim")
        heads = heads or inner // (head_dim or 64)
        groups = keys.number("n_groups", "mamba_n_groups", "mamba_ngroups", "mamba_num_groups") or 1
        return state_space.mamba2(
            hidden=hidden,
            heads=heads,
            head_dim=head_dim or inner // heads,
            state=keys.number("state_size", "mamba_d_state", "ssm_state_size") or 128,
            groups=groups,
            conv=conv,
        )
    if mixer == "gated-delta":
        return state_space.gated_delta(
            hidden=hidden,
            key_heads=keys.required("linear_num_key_heads"),
            value_heads=keys.required("linear_num_value_heads"),
            key_dim=keys.required("linear_key_head_dim"),
            value_dim=keys.required("linear_value_head_dim"),
            conv=conv,
        )
    if mixer == "kda":
        linear = keys.raw("linear_attn_config") or {}
        heads = int(linear.get("num_heads") or keys.number("linear_num_heads") or 32)
        dim = int(linear.get("head_dim") or keys.number("linear_head_dim") or 128)
        return state_space.gated_delta(
            hidden=hidden, key_heads=heads, value_heads=heads, key_dim=dim, value_dim=dim, conv=4
        )
    if mixer == "rg-lru":
        width = keys.number("lru_width") or hidden
        blocks = keys.number("num_attention_heads") or 10
        return state_space.rg_lru(
            hidden=hidden, width=width, conv=keys.number("conv1d_width") or 4, blocks=blocks
        )
    if mixer == "conv":
        return state_space.short_conv(hidden=hidden, conv=keys.number("conv_L_cache") or 3)
    if mixer == "lightning":
        own, own_dim = keys.number("linear_num_heads"), keys.number("linear_head_dim")
        if own and own_dim:
            return state_space.linear_attention(hidden=hidden, heads=own, head_dim=own_dim)
        return state_space.linear_attention(hidden=hidden, heads=values["heads"], head_dim=values["head_dim"])
    inner = keys.number("attention_hidden_size") or hidden
    if mixer == "rwkv4":
        return state_space.rwkv4(hidden=hidden, inner=inner)
    return state_space.rwkv_matrix(
        hidden=hidden, inner=inner, head_dim=keys.number("head_size", "head_dim") or 64, low_rank=64
    )


def windows(keys: Keys, family: Mapping[str, Any], kind: str, values: Values) -> Values:
    """Sliding or chunked windows: their width, and how many layers keep the whole context."""
    width = keys.number(
        "sliding_window",
        "attention_chunk_size",
        "window_size",
        "attention_window_size",
        "sliding_window_size",
    )
    rule = str(family.get("window", "none"))
    layers = values["layers"]
    attention = values.get("attention_layers", layers)
    listed = layer_kinds(keys, layers)
    if not width or not attention or (rule == "none" and not listed):
        return {}
    if rule == "qwen" and not keys.flag("use_sliding_window", default=False):
        return {}
    kinds = [k for k in listed if k not in RECURRENT]
    if any(k in WINDOWED for k in kinds):
        full = len([k for k in kinds if k not in WINDOWED])
    elif kinds and kind != "recurrent_gemma":
        return {}
    elif rule == "qwen":
        limit = keys.number("max_window_layers")
        full = min(layers if limit is None else limit, attention)
    elif rule == "alternate":
        full = attention // 2
    elif rule.startswith("every:"):
        full = attention // _period(keys, int(rule.split(":")[1]))
    else:
        full = 0
    return {} if full >= attention else {"sliding_window": width, "global_layers": full}


def _period(keys: Keys, default: int) -> int:
    """Every how many layers one is full: a number, or a word such as LLLG."""
    stated = keys.raw("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    if isinstance(stated, int) and stated > 0:
        return stated
    if isinstance(stated, str) and re.fullmatch(r"[LG]+", stated):
        return max(len(stated) // max(stated.count("G"), 1), 1)
    return default


def sharing(keys: Keys, kind: str, values: Values) -> Values:
    """Layers that reuse another layer's cache, other head shapes of full layers, per-layer embedding tables."""
    result: Values = {}
    attention = int(values.get("attention_layers", values["layers"]) or 0)
    shared = keys.number("num_kv_shared_layers")
    if shared:
        result["kv_layers"] = max(attention - shared, 1)
    factor = keys.number("cla_share_factor")
    if factor and factor > 1 and keys.flag("use_cla", default=True):
        result["kv_layers"] = -(-attention // factor)
    narrow = keys.number("swa_num_key_value_heads")
    if narrow and values.get("sliding_window"):
        result |= {
            "kv_heads": narrow,
            "global_kv_heads": values["kv_heads"],
            "head_dim": keys.number("swa_head_dim") or values["head_dim"],
            "global_head_dim": values["head_dim"],
        }
    if kind.startswith("gemma4"):
        dim = keys.number("global_head_dim") or 512
        heads = keys.number("num_global_key_value_heads")
        same = keys.flag("attention_k_eq_v", default=False)
        result |= {
            "global_head_dim": dim,
            "global_kv_heads": heads if same and heads else values["kv_heads"],
            "global_key_is_value": same,
        }
    width = keys.number("hidden_size_per_layer_input")
    if width:
        rows = keys.number("vocab_size_per_layer_input") or values["vocab"]
        result["lookup_params"] = float(values["layers"] * width * rows)
    return result
