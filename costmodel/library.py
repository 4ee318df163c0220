"""The packaged tables as frozen specs: devices, models, engines."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from functools import lru_cache
from typing import Any

from costmodel import state_space
from costmodel.errors import InvalidFile
from costmodel.params import count_parameters
from costmodel.specs import Deployment, Engine, Hardware, Model
from costmodel.tables import PROVENANCE, flag, number, read_table, read_text

FLOPS_COLUMNS = {
    "fp32": "fp32_flops",
    "fp16": "fp16_flops",
    "fp16_acc16": "fp16_acc16_flops",
    "bf16": "bf16_flops",
    "int8": "int8_ops",
    "fp8": "fp8_flops",
    "fp4": "fp4_flops",
    "int4": "int4_ops",
}
HARDWARE_COLUMNS = (
    *("slug", "name", "vendor", "device_class", "architecture", "compute_capability", "memory_bytes"),
    *("memory_type", "bandwidth_bytes_per_s", *FLOPS_COLUMNS.values(), "sparsity_2_4", "cache_bytes"),
    *("interconnect", "interconnect_bytes_per_s", "host_link", "host_bytes_per_s", "tdp_w", "launch_year"),
    *("price_usd", *PROVENANCE),
)
MODEL_TEXT = ("slug", "name", "family", "hf_id", "attention", "native_weight_format")
MODEL_FLAGS = (
    *("tied_embeddings", "gated_mlp", "attention_bias", "attention_output_bias", "mlp_bias", "head_bias"),
    *("norm_bias", "qk_norm", "global_key_is_value", "experts_only_quantized", "attention_gate"),
)
MODEL_NUMBERS = (
    *("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab", "norms_per_layer"),
    *("position_rows", "n_experts", "active_experts", "shared_experts", "expert_intermediate"),
    *("shared_intermediate", "dense_layers", "moe_layers", "lookup_params", "mla_q_lora_rank"),
    *("mla_kv_lora_rank", "mla_qk_nope_dim", "mla_qk_rope_dim", "mla_v_head_dim"),
)
MODEL_OPTIONAL = (
    *("mlp_layers", "sliding_window", "global_layers", "attention_layers", "kv_layers", "global_kv_heads"),
    *("global_head_dim", "max_positions"),
)
STATE_COLUMNS = (
    *("state_kind", "state_inner", "state_size", "state_conv", "state_dt_rank"),
    *(
        "state_layers",
        "state_params",
        "state_numbers",
    ),  # of one mixer, where the kind has more dimensions than these columns
)
CHECK_COLUMNS = (
    *("catalogue_params", "published_params", "catalogue_active_params", "published_active_params"),
    "catalogue_kv_bytes_per_token",
)
MODEL_COLUMNS = (
    *MODEL_TEXT, *MODEL_FLAGS, *MODEL_NUMBERS, *MODEL_OPTIONAL, *STATE_COLUMNS, *CHECK_COLUMNS, *PROVENANCE
)  # fmt: skip


@lru_cache(maxsize=1)
def all_hardware() -> dict[str, Hardware]:
    """Slug → Hardware of data/hardware.csv."""
    table = "hardware.csv"
    devices = {}
    for row in read_table(table, HARDWARE_COLUMNS):
        memory, bandwidth = (
            number(row, "memory_bytes", table),
            number(row, "bandwidth_bytes_per_s", table),
        )
        if memory is None or bandwidth is None:
            raise InvalidFile(f"{table}: row {row['slug']!r} needs memory_bytes and bandwidth_bytes_per_s")
        rates = {fmt: number(row, column, table) for fmt, column in FLOPS_COLUMNS.items()}
        year = number(row, "launch_year", table)
        devices[row["slug"]] = Hardware(
            slug=row["slug"],
            name=row["name"],
            vendor=row["vendor"],
            device_class=row["device_class"],
            architecture=row["architecture"],
            compute_capability=number(row, "compute_capability", table),
            memory_bytes=memory,
            memory_type=row["memory_type"],
            bandwidth_bytes_per_s=bandwidth,
            flops={fmt: rate for fmt, rate in rates.items() if rate is not None},
            sparsity_2_4=flag(row, "sparsity_2_4", table),
            cache_bytes=number(row, "cache_bytes", table),
            interconnect=row["interconnect"] or "none",
            interconnect_bytes_per_s=number(row, "interconnect_bytes_per_s", table),
            host_link=row["host_link"],
            host_bytes_per_s=number(row, "host_bytes_per_s", table),
            tdp_w=number(row, "tdp_w", table),
            launch_year=None if year is None else int(year),
            price_usd=number(row, "price_usd", table),
            source=row["source"],
            notes=row["note"],
        )
    return devices


@lru_cache(maxsize=1)
def model_rows() -> dict[str, dict[str, str]]:
    """Slug → row of data/models.csv as text, with the columns that only checks use."""
    return {row["slug"]: row for row in read_table("models.csv", MODEL_COLUMNS)}


@lru_cache(maxsize=1)
def all_models() -> dict[str, Model]:
    """Slug → Model of data/models.csv; total and active parameters are counted from the dimensions."""
    return {slug: _model(row) for slug, row in model_rows().items()}


def _model(row: dict[str, str]) -> Model:
    table = "models.csv"
    values: dict[str, Any] = {name: row[name] for name in MODEL_TEXT}
    values |= {name: flag(row, name, table) for name in MODEL_FLAGS}
    values |= {name: int(number(row, name, table) or 0) for name in MODEL_NUMBERS}
    for name in MODEL_OPTIONAL:
        cell = number(row, name, table)
        values[name] = None if cell is None else int(cell)
    values |= {"source": row["source"], "notes": row["note"]}
    if row["state_params"]:
        layers = int(number(row, "state_layers", table) or 0)
        state_numbers = number(row, "state_numbers", table) or 0.0
        values |= {
            "state_layers": layers,
            "state_layer_params": number(row, "state_params", table) or 0.0,
            "state_bytes_per_sequence": layers * state_numbers * state_space.STATE_BYTES,
        }
    elif row["state_kind"]:
        weights, state = state_space.by_kind(
            row["state_kind"],
            hidden=values["hidden"],
            inner=int(number(row, "state_inner", table) or 0),
            state=int(number(row, "state_size", table) or 0),
            conv=int(number(row, "state_conv", table) or 0),
            dt_rank=int(number(row, "state_dt_rank", table) or 0),
        )
        layers = values["layers"] - (values["attention_layers"] or 0)
        values |= {
            "state_layers": layers,
            "state_layer_params": float(weights),
            "state_bytes_per_sequence": layers * state * state_space.STATE_BYTES,
        }
    return with_counts(Model(**values))


def with_counts(model: Model) -> Model:
    """`model` with total and active parameters counted from its dimensions."""
    counted = count_parameters(model)
    values = {f.name: getattr(model, f.name) for f in fields(model)}
    return Model(**(values | {"total_params": counted.total, "active_params": counted.active}))


ENGINE_KEYS = {f.name for f in fields(Engine)} - {"slug"}
DEPLOYMENT_FIELDS = {f.name for f in fields(Deployment)}


@lru_cache(maxsize=1)
def all_engines() -> dict[str, Engine]:
    """Slug → Engine of data/engines.toml."""
    return parse_engines(read_text("engines.toml"))


def parse_engines(text: str) -> dict[str, Engine]:
    """Engines from TOML text; unknown keys and unknown Deployment fields are errors."""
    engines = {}
    for slug, table in tomllib.loads(text).items():
        if unknown := sorted(set(table) - ENGINE_KEYS):
            raise InvalidFile(f"engines.toml: [{slug}] has unknown keys {', '.join(unknown)}")
        if unknown := sorted(set(table.get("defaults", {})) - DEPLOYMENT_FIELDS):
            raise InvalidFile(
                f"engines.toml: [{slug}] defaults: no such Deployment field: {', '.join(unknown)}"
            )
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
        engines[slug] = Engine(slug=slug, **values)
    return engines
