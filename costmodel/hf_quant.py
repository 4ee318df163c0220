"""Which number format a checkpoint's `quantization_config` describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def checkpoint_format(data: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """Name of a weight format (costmodel/formats.py) for a config.json, and remarks; None where it is not quantized.

    >>> checkpoint_format({"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}})
    ('gptq-4bit-g32', [])
    """
    config = data.get("quantization_config") or data.get("compression_config")
    if not isinstance(config, Mapping):
        return None, []
    method = str(config.get("quant_method") or config.get("quant_algo") or "").lower()
    bits = _whole(
        config.get("bits") or config.get("w_bit") or config.get("nbits") or config.get("weight_bits")
    )
    group = _whole(config.get("group_size") or config.get("q_group_size"))
    if method in ("gptq", "auto-round", "autoround", "gptqmodel", "marlin"):
        return _grouped("gptq", bits or 4, group)
    if method in ("awq", "autoawq"):
        return _grouped("awq", bits or 4, group)
    if method in ("fp8", "fbgemm_fp8", "finegrained_fp8"):
        return ("fp8-block" if config.get("weight_block_size") else "fp8"), []
    if method in ("bitsandbytes", "bnb") or "load_in_4bit" in config or "load_in_8bit" in config:
        return _bitsandbytes(config)
    if method == "compressed-tensors" or "config_groups" in config:
        return _compressed(config)
    if method in ("modelopt", "nvfp4") or "nvfp4" in str(config.get("quant_algo", "")).lower():
        algorithm = str(config.get("quant_algo") or "fp8").lower()
        return ("nvfp4" if "fp4" in algorithm else "fp8" if "fp8" in algorithm else "w8a8-int8"), []
    simple = {
        "mxfp4": "mxfp4",
        "aqlm": "aqlm-2bit-1x16" if _whole(config.get("nbits_per_codebook")) != 8 else "aqlm-2bit-2x8",
        "quip": "quip-sharp-2bit",
        "quip#": "quip-sharp-2bit",
        "quip_sharp": "quip-sharp-2bit",
        "vptq": "vptq-2bit",
        "spqr": "spqr-4bit",
        "bitnet": "ternary",
        "eetq": "int8",
        "fp_quant": "mxfp4",
    }
    if method in simple:
        return simple[method], []
    if method in ("hqq", "quanto", "torchao", "int8", "smoothquant", "higgs", "exl2", "exl3", "quark"):
        return _by_bits(method, config, bits, group)
    return None, [f"quantization_config: method {method or '(none)'!r} is not known; weights taken as 16-bit"]


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _grouped(method: str, bits: int, group: int | None) -> tuple[str, list[str]]:
    channel = group is None or group <= 0
    if bits == 8:
        return "int8" if channel else "int8-g128", []
    if bits == 4:
        known = {32, 64, 128}
        if channel:
            return "gptq-4bit", []
        near = group if group in known else 128
        note = [] if group in known else [f"group size {group} priced as {near}"]
        if method == "awq" and near != 32:
            return f"w4a16-awq-g{near}", note
        return f"gptq-4bit-g{near}", note
    if bits == 3:
        return "gptq-3bit-g128", []
    return f"{bits + (0 if channel else 20 / max(group or 128, 1)):g}bpw", []


def _bitsandbytes(config: Mapping[str, Any]) -> tuple[str, list[str]]:
    if config.get("load_in_8bit") or config.get("_load_in_8bit"):
        return "int8", []
    kind = str(config.get("bnb_4bit_quant_type") or "fp4").lower()
    double = bool(config.get("bnb_4bit_use_double_quant"))
    base = "nf4" if kind == "nf4" else "fp4-bnb"
    return base + ("-dq" if double else ""), []


def _compressed(config: Mapping[str, Any]) -> tuple[str | None, list[str]]:
    """Neural Magic's compressed-tensors: the first group's weights and input activations."""
    groups = config.get("config_groups")
    group: Any = next(iter(groups.values()), {}) if isinstance(groups, Mapping) else {}
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        return None, ["quantization_config: no weights in config_groups; taken as 16-bit"]
    bits = _whole(weights.get("num_bits")) or 8
    kind = str(weights.get("type") or "int").lower()
    size = _whole(weights.get("group_size"))
    activations = group.get("input_activations") or {}
    narrow = isinstance(activations, Mapping) and (_whole(activations.get("num_bits")) or 16) <= 8
    if kind == "float":
        if bits == 4:
            return "nvfp4" if (size or 16) == 16 else "mxfp4", []
        if weights.get("strategy") == "block":
            return "fp8-block", []
        return ("fp8-w8a8" if narrow else "fp8"), []
    if bits == 8:
        return ("w8a8-int8" if narrow else "int8"), []
    if narrow and bits == 4:
        return ("w4a8-g128" if (_whole(activations.get("num_bits")) or 8) == 8 else "w4a4"), []
    return _grouped("gptq", bits, size)


def _by_bits(
    method: str, config: Mapping[str, Any], bits: int | None, group: int | None
) -> tuple[str | None, list[str]]:
    text = str(config).lower()
    if method.startswith("exl"):
        stated = config.get("bits")
        if isinstance(stated, int | float):
            return f"exl2-{float(stated):g}bpw", []
    if bits is None:
        bits = 4 if "int4" in text else 8 if ("int8" in text or "float8" in text) else None
    if bits is None:
        return None, [f"quantization_config: {method} without a width; weights taken as 16-bit"]
    if bits == 8:
        return ("fp8" if "float8" in text or "fp8" in text else "int8"), []
    if bits == 4:
        return {64: "int4-g64", 32: "int4-g32"}.get(group or 128, "int4"), []
    return f"{bits + 32 / max(group or 64, 1):g}bpw", []
