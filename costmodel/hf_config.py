"""A Hugging Face config.json → Model, for every decoder family that `data/hf_families.toml` names."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from costmodel import hf_layers
from costmodel.errors import CostModelError, InvalidFile
from costmodel.hf_keys import Keys
from costmodel.hf_quant import checkpoint_format
from costmodel.hf_uneven import uneven_layers
from costmodel.params import count_parameters
from costmodel.specs import Model
from costmodel.tables import read_text, read_users_file

MOST = 1e18  # parameters or bytes of state beyond this are a slip
NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "text_model_config")
DTYPES = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "half": "fp16"}
ENCODERS = frozenset(
    """t5 mt5 umt5 bart mbart pegasus marian m2m_100 whisper bert roberta bert_generation big_bird camembert
    data2vec_text electra ernie megatron_bert rembert roberta_prelayernorm roc_bert roformer xlm_roberta
    xlm_roberta_xl xlnet xmod xlm git deberta deberta_v2 distilbert mpnet albert nomic_bert modernbert clip siglip
    vit reformer longformer layoutlm mobilebert squeezebert trocr""".split()  # noqa: SIM905
)
FAMILY_KEYS = {
    *("defaults", "gated", "tied", "qkv_bias", "out_bias", "mlp_bias", "norms", "norm_bias", "qk_norm"),
    *("head_bias", "window", "like", "mixer", "gate", "positions", "position_offset", "half_intermediate"),
    *("experts_only", "native"),
}


@dataclass(frozen=True)
class Loaded:
    """The model, and what a reader should know about how the file was understood."""

    model: Model
    notes: tuple[str, ...]


@lru_cache(maxsize=1)
def families() -> dict[str, dict[str, Any]]:
    """model_type → facts and defaults, `like` resolved."""
    raw = tomllib.loads(read_text("hf_families.toml"))
    found: dict[str, dict[str, Any]] = {}

    def resolve(name: str) -> dict[str, Any]:
        if name not in found:
            table = raw[name]
            if unknown := sorted(set(table) - FAMILY_KEYS):
                raise InvalidFile(f"hf_families.toml: [{name}] has unknown keys {', '.join(unknown)}")
            parent = resolve(table["like"]) if "like" in table else {}
            merged = {**parent, **table}
            # a parent's default dimensions belong to the parent's model; only small facts are handed down
            merged["defaults"] = table.get("defaults", {})
            found[name] = merged
        return found[name]

    for name in raw:
        resolve(name)
    return found


def load_config(path: Path) -> Loaded:
    """Reads a config.json.

    Raises
    ------
    InvalidFile
        the file is missing, is not JSON, or does not describe a decoder-only language model.
    """
    text = read_users_file(
        path, what="a config.json", kind="UTF-8 JSON", name="config.json", most_mb=20, field="model"
    )
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidFile(
            f"{path}: not JSON (line {error.lineno}: {error.msg})", hint="give a config.json", field="model"
        ) from None
    except RecursionError:
        raise InvalidFile(f"{path}: nested too deeply for a config.json", field="model") from None
    title = path.resolve().parent.name if path.stem.lower() == "config" else path.stem
    return parse_config(data, path.name, default_name=title)


def parse_config(data: Any, name: str = "config.json", *, default_name: str = "") -> Loaded:
    """A parsed config.json → Model and notes; `name` is for messages."""
    if not isinstance(data, Mapping):
        raise InvalidFile(
            f"{name}: a config.json is an object of settings, not {type(data).__name__}", field="model"
        )
    notes: list[str] = []
    text, outer = _language_part(data, notes)
    kind = _model_type(text, data)
    if bool(data.get("is_encoder_decoder")) or kind in ENCODERS:
        raise InvalidFile(
            f"{name}: {kind or 'this model'} is not a decoder-only language model",
            hint="encoders and encoder-decoders are not priced",
            field="model",
        )
    known = families()
    family = known.get(kind)
    if family is None:
        near = next((k for k in sorted(known, key=len, reverse=True) if kind.startswith(k)), "")
        family = {**known[near or "llama"], "defaults": {}}
        said = f"model_type {kind!r} is not known" if kind else "no model_type"
        notes.append(f"{said}: read as {near or 'a Llama-like decoder'}; check the counted parameters")
    try:
        uneven = uneven_layers(text)
        if uneven:
            notes.append("layers differ (block_configs): counted together, widths by their mean")
        keys = Keys({**text, **uneven}, family["defaults"], name)
        keys.used.update(("block_configs", "attention_layers", "mlp_layers"))
        model = _model(keys, family, kind, outer, default_name, notes)
    except CostModelError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, ArithmeticError) as error:
        raise InvalidFile(
            f"{name}: a setting has a form that no {kind or 'known'} configuration has ({error})",
            hint="give the config.json that the model was published with",
            field="model",
        ) from error
    if keys.defaulted:
        notes.append(
            f"left out by the file, taken from the {kind} configuration: {', '.join(keys.defaulted)}"
        )
    if unread := keys.unread():
        notes.append(f"not used: {', '.join(unread[:8])}{' …' if len(unread) > 8 else ''}")
    return Loaded(model, tuple(notes))


def _language_part(data: Mapping[str, Any], notes: list[str]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The settings of the language model: the file's own, or those nested in a multimodal one."""
    for key in NESTED:
        inner = data.get(key)
        if isinstance(inner, Mapping):
            while isinstance(inner.get("text_config"), Mapping):
                inner = inner["text_config"]
            notes.append(f"language model only ({key}): vision and audio parts are not counted")
            merged = dict(inner)
            for shared in ("tie_word_embeddings", "quantization_config", "torch_dtype", "dtype"):
                if merged.get(shared) is None and data.get(shared) is not None:
                    merged[shared] = data[shared]
            return merged, data
    return dict(data), data


def _model_type(text: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    kind = str(text.get("model_type") or "").lower().replace("-", "_")
    if not kind:
        names = text.get("architectures") or data.get("architectures") or []
        first = str(names[0]) if isinstance(names, list) and names else ""
        kind = re.sub(r"(ForCausalLM|LMHeadModel|ForConditionalGeneration|Model)$", "", first).lower()
        compact = {k.replace("_", ""): k for k in families()}
        kind = compact.get(kind, kind)
    if kind not in families() and f"{kind}_text" in families():
        kind = f"{kind}_text"
    return kind


def _model(
    keys: Keys,
    family: Mapping[str, Any],
    kind: str,
    outer: Mapping[str, Any],
    default_name: str,
    notes: list[str],
) -> Model:
    hidden, layers = keys.required("hidden"), hf_layers.count_layers(keys, kind)
    vocab = keys.required("vocab")
    heads, kv_heads, head_dim = (
        (0, 0, 0) if hf_layers.is_recurrent(family, kind) else _heads(keys, kind, hidden)
    )
    values: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "vocab": vocab,
        "intermediate": hf_layers.mlp_width(keys, family, kind, hidden),
        "tied_embeddings": keys.flag("tie_word_embeddings", default=bool(family.get("tied", False))),
        "gated_mlp": hf_layers.gated(keys, family),
        "attention_bias": keys.flag(
            "attention_bias", "qkv_bias", "add_qkv_bias", default=bool(family.get("qkv_bias", False))
        ),
        "attention_output_bias": bool(family.get("out_bias", False)),
        "mlp_bias": keys.flag("mlp_bias", default=bool(family.get("mlp_bias", False))),
        "head_bias": bool(family.get("head_bias", False)),
        "norms_per_layer": int(family.get("norms", 2)),
        "norm_bias": bool(family.get("norm_bias", False)),
        "qk_norm": bool(family.get("qk_norm", False)),
        "attention_gate": keys.flag("attn_output_gate", default=bool(family.get("gate", False))),
        "max_positions": keys.number("positions"),
        "experts_only_quantized": bool(family.get("experts_only", False)),
    }
    if kind in ("falcon", "refinedwebmodel") and kv_heads == 1:
        values["norms_per_layer"] = 1  # attention and MLP run side by side behind one norm
    if family.get("positions"):
        values["position_rows"] = (values["max_positions"] or 0) + int(family.get("position_offset", 0))
    values |= hf_layers.latent_attention(keys, values)
    values |= hf_layers.mixture(keys, family, kind, layers, values)
    values |= hf_layers.mixers(keys, family, kind, values, notes)
    values |= {k: keys.data[k] for k in ("attention_layers", "mlp_layers") if "block_configs" in keys.data}
    values |= hf_layers.windows(keys, family, kind, values)
    values |= hf_layers.sharing(keys, kind, values)
    stored, remarks = checkpoint_format(outer)
    if stored is None and outer is not keys.data:
        stored, more = checkpoint_format(keys.data)
        remarks = remarks or more
    notes.extend(remarks)
    dtype = DTYPES.get(str(keys.raw("torch_dtype", "dtype") or "").replace("torch.", ""), "bf16")
    title = str(outer.get("_name_or_path") or keys.data.get("_name_or_path") or "").rstrip("/")
    title = title.split("/")[-1] or default_name or kind or "model"
    draft = Model(
        slug=re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-") or "model",
        name=title,
        family=kind,
        native_weight_format=stored or family.get("native") or dtype,
        source=f"config.json: {title}",
        notes="dimensions read from the user's file",
        **values,
    )
    counted = count_parameters(draft)
    wrong = [k for k, v in draft.__dict__.items() if isinstance(v, int | float) and not 0 <= v < MOST]
    if wrong or not 0 < counted.total < MOST:
        raise InvalidFile(
            f"{keys.name}: {', '.join(wrong) or 'the number of parameters'} comes out negative or absurd",
            hint="check the dimensions in the file",
            field="model",
        )
    return Model(**{**draft.__dict__, "total_params": counted.total, "active_params": counted.active})


def _heads(keys: Keys, kind: str, hidden: int) -> tuple[int, int, int]:
    """Query heads, key-value heads and the size of one head."""
    heads = keys.required("heads")
    kv = keys.number("kv_heads", "num_kv_heads", least=1)
    attention = keys.raw("attn_config")
    if kv is None and isinstance(attention, Mapping) and attention.get("kv_n_heads"):
        kv = int(attention["kv_n_heads"])
    if (
        kind in ("falcon", "refinedweb", "refinedwebmodel")
        and not keys.flag("new_decoder_architecture", default=False)
    ) or kind == "gpt_bigcode":
        kv = 1 if keys.flag("multi_query", default=True) else heads
    elif keys.flag("multi_query_attention", default=False):
        kv = keys.number("multi_query_group_num", least=1) or 1
    kv = heads if kv is None else kv
    if kv > heads or heads % kv:
        raise InvalidFile(
            f"{keys.name}: {kv} key-value heads do not divide {heads} attention heads", field="model"
        )
    head_dim = keys.number("head_dim", least=1)
    if head_dim is None:
        if hidden % heads and not keys.raw("kv_lora_rank"):
            raise InvalidFile(
                f"{keys.name}: hidden size {hidden} is not a multiple of {heads} heads",
                hint="state head_dim",
                field="model",
            )
        head_dim = hidden // heads
    return heads, kv, head_dim
