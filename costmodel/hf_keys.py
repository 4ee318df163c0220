"""A config.json as a reader sees it: synonyms, defaults, checked numbers, and which keys nobody looked at."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from costmodel.errors import InvalidFile
from costmodel.tables import read_text

SYNONYMS: dict[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "model_dim", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "num_attention_groups"),
    "intermediate": (
        "intermediate_size",
        "n_inner",
        "ffn_dim",
        "ffn_hidden_size",
        "d_ff",
        "inner_hidden_size",
    ),
    "vocab": ("padded_vocab_size", "vocab_size"),
    "positions": (
        *(
            "max_position_embeddings",
            "n_positions",
            "n_ctx",
            "max_seq_len",
            "seq_length",
            "max_sequence_length",
        ),
        *("context_length", "model_max_length"),
    ),
    "head_dim": ("head_dim", "attention_head_dim", "kv_channels", "d_head", "head_size"),
    "experts": (
        *("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts"),
    ),
    "active": (
        *("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "moe_top_k", "moe_k", "moe_topk"),
        *("num_selected_experts", "experts_per_token", "router_topk"),
    ),
    "expert_width": ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_intermediate_size"),
    "shared": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "shared_width": (
        *(
            "shared_expert_intermediate_size",
            "shared_intermediate_size",
            "moe_shared_expert_intermediate_size",
        ),
        "share_expert_dim",
    ),
}

LARGEST = 1_000_000_000  # no dimension of a model is larger
STRUCTURAL = (
    *("expert", "layer", "head", "dim", "rank", "window", "state", "conv", "size", "share", "loop", "recur"),
    *("block", "group", "expand", "kernel", "compress", "latent", "index_topk", "depth", "mtp"),
)


@lru_cache(maxsize=1)
def harmless() -> frozenset[str]:
    """Keys that change neither bytes nor FLOPs by more than a rounding error, or that describe training."""
    return frozenset(read_text("hf_harmless_keys.txt").split())


class Keys:
    """Looks keys up by synonym and remembers which were used."""

    def __init__(self, data: Mapping[str, Any], defaults: Mapping[str, Any], name: str) -> None:
        self.data = data
        self.defaults = defaults
        self.name = name
        self.used: set[str] = set()
        self.defaulted: list[str] = []

    def raw(self, *keys: str) -> Any:
        """The first of `keys` that the file holds and that is not null."""
        self.used.update(keys)
        return next((self.data[key] for key in keys if self.data.get(key) is not None), None)

    def number(self, what: str, *extra: str, least: int = 0) -> int | None:
        """A whole number by its own name or a synonym; a list gives its first entry; then the family's default."""
        keys = (*extra, *SYNONYMS.get(what, (what,)))
        value = self.raw(*keys)
        if value is None:
            key = next((k for k in keys if k in self.defaults), None)
            if key is None:
                return None
            self.defaulted.append(f"{key} = {self.defaults[key]}")
            value = self.defaults[key]
        key = next((k for k in keys if self.data.get(k) is not None), keys[0])
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise InvalidFile(
                f"{self.name}: {key} must be a whole number, got {str(value)[:40]!r}", field="model"
            )
        if not least <= value <= LARGEST:
            raise InvalidFile(
                f"{self.name}: {key} = {int(value)} is out of range", hint=f"{least} to 10^9", field="model"
            )
        return int(value)

    def required(self, what: str) -> int:
        """As `number`, at least 1; the file cannot be read without it."""
        value = self.number(what, least=1)
        if value is None:
            names = " or ".join(SYNONYMS.get(what, (what,))[:3])
            raise InvalidFile(
                f"{self.name}: no {names}",
                hint="a config.json of a decoder-only language model states its dimensions",
                field="model",
            )
        return value

    def flag(self, *keys: str, default: bool) -> bool:
        value = self.raw(*keys)
        return default if value is None else bool(value)

    def strings(self, *keys: str) -> list[str]:
        """A list of words, or nothing."""
        value = self.raw(*keys)
        return [str(item) for item in value] if isinstance(value, list) else []

    def unread(self) -> list[str]:
        """Keys with a number or list that nobody looked at and that may describe the architecture."""
        found = []
        for key, value in self.data.items():
            if key in self.used or key in harmless() or value in (None, False, 0, 0.0, "", [], {}):
                continue
            if isinstance(value, str | bool):
                continue
            if any(word in key for word in STRUCTURAL) and not key.endswith(
                ("_id", "_ids", "_prob", "_coef")
            ):
                shown = str(value)
                found.append(f"{key} = {shown[:30]}{'…' if len(shown) > 30 else ''}")
        return found
