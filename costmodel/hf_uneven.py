"""Models whose layers differ, as architecture search leaves them: DeciLM and Nemotron-NAS (`block_configs`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WIDTH_MULTIPLE = 256


def uneven_layers(data: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of a Llama-like config.json that has the same totals: layers that attend, layers with an MLP, mean width.

    Parameters are linear in the width, so the mean width keeps their number; so does the count of cached tokens,
    because all layers that attend have the same number of key-value heads in the models published so far.

    >>> blocks = [{"attention": {"n_heads_in_group": 8}, "ffn": {"ffn_mult": 1.5}},
    ...           {"attention": {"no_op": True}, "ffn": {"ffn_mult": 3.0}}]
    >>> uneven_layers({"hidden_size": 1024, "num_attention_heads": 16, "block_configs": blocks})
    {'attention_layers': 1, 'mlp_layers': 2, 'intermediate_size': 1536, 'num_key_value_heads': 2}
    """
    blocks = data.get("block_configs")
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        return {}
    hidden, heads = int(data["hidden_size"]), int(data["num_attention_heads"])
    attentions = [block.get("attention") or {} for block in blocks]
    attending = [a for a in attentions if not a.get("no_op") and not a.get("replace_with_linear")]
    widths = [_width(hidden, block.get("ffn") or {}) for block in blocks]
    widths = [width for width in widths if width]
    found: dict[str, Any] = {"attention_layers": len(attending), "mlp_layers": len(widths)}
    if widths:
        found["intermediate_size"] = round(sum(widths) / len(widths))
    groups = [int(a["n_heads_in_group"]) for a in attending if a.get("n_heads_in_group")]
    if groups:
        found["num_key_value_heads"] = max(heads // groups[0], 1)
    return found


def _width(hidden: int, ffn: Mapping[str, Any]) -> int:
    """Two thirds of twice the multiplied hidden size, rounded up to a multiple of 256, as Llama's are."""
    if ffn.get("no_op") or ffn.get("replace_with_linear"):
        return 0
    if ffn.get("intermediate_size"):
        return int(ffn["intermediate_size"])
    raw = int(2 * float(ffn.get("ffn_mult") or 0.0) * hidden / 3)
    return -(-raw // WIDTH_MULTIPLE) * WIDTH_MULTIPLE
