"""A device of the user's own, strictly read: `--hw my-card.toml`, or its constants in one line."""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from costmodel.errors import InvalidFile
from costmodel.specs import Hardware
from costmodel.tables import read_users_file
from costmodel.units import GIB, GIGA, MIB, TERA

CLASSES = ("datacenter", "consumer", "workstation", "cpu", "apple", "accelerator", "tpu", "edge", "apu")
RATES = ("fp32", "fp16", "fp16_acc16", "bf16", "int8", "fp8", "fp4", "int4")
# key → (Hardware field, factor to base units)
QUANTITIES: dict[str, tuple[str, float]] = {
    "memory_gib": ("memory_bytes", GIB),
    "memory_gb": ("memory_bytes", GIB),  # a card sold as 24 GB holds 24 GiB
    "memory_bytes": ("memory_bytes", 1.0),
    "bandwidth_gb_s": ("bandwidth_bytes_per_s", GIGA),
    "bandwidth_bytes_per_s": ("bandwidth_bytes_per_s", 1.0),
    "interconnect_gb_s": ("interconnect_bytes_per_s", GIGA),
    "interconnect_bytes_per_s": ("interconnect_bytes_per_s", 1.0),
    "host_gb_s": ("host_bytes_per_s", GIGA),
    "host_bytes_per_s": ("host_bytes_per_s", 1.0),
    "cache_mb": ("cache_bytes", MIB),
    "cache_bytes": ("cache_bytes", 1.0),
    "tdp_w": ("tdp_w", 1.0),
    "price_usd": ("price_usd", 1.0),
    "compute_capability": ("compute_capability", 1.0),
    "launch_year": ("launch_year", 1.0),
}
# keys under which data sheets and other tools' files state the same
SYNONYMS = {
    "memory_bw_gbs": "bandwidth_gb_s",
    "bandwidth_gbs": "bandwidth_gb_s",
    "memory_bandwidth_gb_s": "bandwidth_gb_s",
    "vram_gb": "memory_gb",
    "interconnect_gbs_per_dir": "interconnect_gb_s",
    "pcie_gbs_per_dir": "host_gb_s",
    "pcie_gb_s": "host_gb_s",
    "l2_or_sram_mb": "cache_mb",
    "class": "device_class",
    "device_name": "name",
    "note": "notes",
    "fp16_tflops_dense_fp32acc": "fp16_tflops",
    "fp16_tflops_dense_fp16acc": "fp16_acc16_tflops",
    "bf16_tflops_dense": "bf16_tflops",
    "int8_tops_dense": "int8_tflops",
    "fp8_tflops_dense": "fp8_tflops",
    "fp4_tflops_dense": "fp4_tflops",
    "int4_tops_dense": "int4_tflops",
    "int8_tops": "int8_tflops",
    "int4_tops": "int4_tflops",
}
TEXTS = ("name", "slug", "vendor", "device_class", "architecture", "interconnect", "memory_type", "host_link")
OTHERS = ("sparsity_2_4", "tflops", "flops", "source", "notes")
KEYS = (
    *(*QUANTITIES, *TEXTS, *OTHERS),
    *(f"{rate}_{unit}" for rate in RATES for unit in ("tflops", "flops", "ops")),
)
INLINE_EXAMPLE = "My card: memory_gb=24, bandwidth_gb_s=1008, fp16_tflops=165.2"
MAX_LINE = 600  # characters of a device in one line
EXAMPLE = 'name = "My card", memory_gb = 24, bandwidth_gb_s = 1008, [tflops] fp16 = 165.2'


def load_hardware(path: Path) -> Hardware:
    """Reads a hardware.toml.

    Raises
    ------
    InvalidFile
        the file cannot be read, a key is unknown, or memory, bandwidth or every rate is missing.
    """
    text = read_users_file(
        path, what="a hardware file", kind="TOML", name="hardware.toml", most_mb=1, field="hardware"
    )
    return parse_hardware(text, path.name, default_name=path.stem)


def parse_hardware(text: str, name: str = "hardware.toml", *, default_name: str = "my device") -> Hardware:
    """TOML text → Hardware. Memory in GB means GiB, as on the box; rates are dense TFLOP/s (TOP/s for integers).

    >>> card = parse_hardware('memory_gb = 24\\nbandwidth_gb_s = 1008\\n[tflops]\\nfp16 = 165.2')
    >>> card.memory_bytes, card.bandwidth_bytes_per_s, card.flops
    (25769803776.0, 1008000000000.0, {'fp16': 165200000000000.0})
    """
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidFile(
            f"{name}: not TOML ({str(error) or 'nested too deeply'})",
            hint=f"for example {EXAMPLE}",
            field="hardware",
        ) from None
    if list(data) == ["hardware"] and isinstance(data["hardware"], dict):
        data = data["hardware"]
    return read_hardware(data, name, default_name)


def parse_inline(text: str) -> Hardware:
    """A device in one line, `name: key=value, key=value`: what a link or a form can carry instead of a file.

    Its slug ends in a digest of the line, so that two devices of one name never share anything kept.

    >>> card = parse_inline("My card: memory_gb=24, bandwidth_gb_s=1008, fp16_tflops=165.2")
    >>> card.name, card.memory_bytes, card.flops
    ('My card', 25769803776.0, {'fp16': 165200000000000.0})
    """
    if len(text) > MAX_LINE:
        raise InvalidFile(
            f"a device in one line has {len(text):,} characters",
            hint=f"at most {MAX_LINE}",
            field="hardware",
        )
    head, colon, tail = text.partition(":")
    if not colon or "=" in head:
        head, tail = "", text
    title = head.strip() or "your device"
    data: dict[str, Any] = {}
    for part in re.split(r"[,;]", tail):
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or not value:
            raise InvalidFile(
                f"{title[:60]}: {part.strip()[:60]!r} is not key=value",
                hint=f"for example {INLINE_EXAMPLE}",
                field="hardware",
            )
        if key in data:
            raise InvalidFile(
                f"{title[:60]}: {key[:60]} is given twice", hint="give it once", field="hardware"
            )
        data[key] = _value(value)
    device = read_hardware({"name": title, **data}, title[:60], title)
    digest = hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:6]
    return replace(device, slug=f"{device.slug[:40]}-{digest}", source="constants given with the question")


def _value(text: str) -> float | bool | str:
    """A number or a switch where the text is one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return float(text)
    except ValueError:
        return text


def read_hardware(data: Mapping[str, Any], name: str, default_name: str) -> Hardware:
    """Keys and values → Hardware; `name` is what messages call their origin."""
    given, data = dict(data), {}
    for key, value in given.items():
        known = SYNONYMS.get(key, key)
        if known not in KEYS:
            raise _unknown(name, key)
        if known in data:
            raise InvalidFile(f"{name}: {known} is given twice", hint="give it once", field="hardware")
        data[known] = value
    values: dict[str, Any] = {}
    for key, (field, factor) in QUANTITIES.items():
        if key in data:
            if field in values:
                raise InvalidFile(f"{name}: {field} is given twice", hint="give it once", field="hardware")
            values[field] = _number(name, key, data[key]) * factor
    for key in TEXTS:
        if key in data:
            if not isinstance(data[key], str):
                raise InvalidFile(f"{name}: {key} must be text in quotes", field="hardware")
            values[key] = data[key]
    flops = _rates(name, data)
    for field, hint in (
        ("memory_bytes", "memory_gb = 24"),
        ("bandwidth_bytes_per_s", "bandwidth_gb_s = 1008"),
    ):
        if field not in values:
            raise InvalidFile(f"{name}: no {field}", hint=f"for example {hint}", field="hardware")
    if not flops:
        raise InvalidFile(
            f"{name}: no rate", hint="for example [tflops] fp16 = 165.2 (dense)", field="hardware"
        )
    kind = values.get("device_class", "consumer")
    if kind not in CLASSES:
        raise InvalidFile(
            f"{name}: device_class {kind!r}", hint=f"one of {', '.join(CLASSES)}", field="hardware"
        )
    sparse = data.get("sparsity_2_4", False)
    if not isinstance(sparse, bool):
        raise InvalidFile(f"{name}: sparsity_2_4 must be true or false", field="hardware")
    title = values.pop("name", default_name)
    slug = re.sub(r"[^a-z0-9.]+", "-", values.pop("slug", title).lower()).strip("-") or "my-device"
    if "launch_year" in values:
        values["launch_year"] = int(values["launch_year"])
    return Hardware(
        slug=slug,
        name=title,
        vendor=values.pop("vendor", "user"),
        device_class=values.pop("device_class", "consumer"),
        flops=flops,
        sparsity_2_4=sparse,
        source=str(data.get("source") or f"the user's file {name}"),
        notes=str(data.get("notes") or ""),
        **values,
    )


def _unknown(name: str, key: str) -> InvalidFile:
    near = difflib.get_close_matches(key, KEYS, n=2)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return InvalidFile(
        f"{name}: unknown key {key[:60]!r}",
        hint=f"{hint}keys are: {', '.join(sorted(KEYS))}",
        field="hardware",
    )


def _number(name: str, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidFile(f"{name}: {key} must be a number, got {str(value)[:40]!r}", field="hardware")
    if not 0 < value < 1e21:
        raise InvalidFile(f"{name}: {key} must be above 0, got {value}", field="hardware")
    return float(value)


def _rates(name: str, data: Mapping[str, Any]) -> dict[str, float]:
    """Rates from a [tflops] or [flops] table, or from keys such as fp16_tflops."""
    found: dict[str, float] = {}
    for table, factor in (("tflops", TERA), ("flops", 1.0)):
        rates = data.get(table, {})
        if not isinstance(rates, dict):
            raise InvalidFile(
                f"{name}: {table} must be a table of rates", hint=f"[{table}] fp16 = …", field="hardware"
            )
        for rate, value in rates.items():
            if rate not in RATES:
                raise InvalidFile(
                    f"{name}: unknown rate {rate!r} in [{table}]",
                    hint=f"one of {', '.join(RATES)}",
                    field="hardware",
                )
            found[rate] = _number(name, f"{table}.{rate}", value) * factor
    for rate in RATES:
        for key, factor in ((f"{rate}_tflops", TERA), (f"{rate}_flops", 1.0), (f"{rate}_ops", 1.0)):
            if key in data:
                found[rate] = _number(name, key, data[key]) * factor
    return found
