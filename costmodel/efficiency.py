"""Achieved share of the peak rates and the overheads, by what drives them; values from data/efficiency.csv.

A value is a product of factors: one for the device group, one for the engine class, and, where measurements demand
it, one for the pair. A device or an engine without measurements takes its group's, which is what its data can tell.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import lru_cache

from costmodel.specs import Engine, Hardware
from costmodel.tables import read_text

# families of data/engines.toml without measurements of their own take those of the nearest runtime
NEAREST_CLASS = {
    "offload": "eager",
    "petals": "eager",
    "ktransformers": "llama.cpp",
    "neuron": "accelerator",
}
DEFAULT_CLASS = "serving"
CLASSES = (
    "roofline", "eager", "fused", "exllama", "compiled", "serving", "tensorrt", "llama.cpp", "mlx", "gaudi", "tpu",
    "accelerator", "mobile",
)  # fmt: skip


def engine_class(engine: Engine) -> str:
    """The runtime type whose constants an engine takes: its family, or the nearest one with measurements.

    An engine outside the catalogue is placed by what its row says: no fusion is an eager framework, a layer-split
    one is of llama.cpp's kind, anything else a CUDA server.
    """
    family = NEAREST_CLASS.get(engine.family, engine.family)
    if family in CLASSES:
        return family
    if engine.layout == "layer":
        return "llama.cpp"
    if not engine.defaults.get("fused_operators", True):
        return "eager"
    return DEFAULT_CLASS


def device_group(hardware: Hardware) -> str:
    """The group of devices whose memory systems and matrix units behave alike."""
    kind = hardware.device_class
    memory = hardware.memory_type.upper()
    vendor = hardware.vendor.lower()
    if kind == "cpu":
        return "phone" if hardware.slug.startswith("phone") else "cpu"
    if kind in ("apple", "tpu", "apu"):
        return kind
    if kind == "accelerator":
        return "accelerator"
    if "gaudi" in hardware.architecture:
        return "gaudi"
    if vendor == "nvidia":
        if hardware.architecture == "pascal":
            return "nvidia-simt"
        if kind == "edge" or "LPDDR" in memory:
            return "nvidia-edge"
        return "nvidia-hbm" if "HBM" in memory else "nvidia-gddr"
    if vendor == "amd":
        return "amd-hbm" if "HBM" in memory else "amd-gddr"
    if vendor == "intel":
        return "intel-gpu"
    return "nvidia-hbm" if "HBM" in memory else "nvidia-gddr"


@lru_cache(maxsize=1)
def parameters() -> dict[str, float]:
    """name → value of data/efficiency.csv."""
    rows = csv.DictReader(io.StringIO(read_text("efficiency.csv")))
    return {row["name"]: float(row["value"]) for row in rows}


def factor(values: dict[str, float], kind: str, group: str, engine: str, default: float) -> float:
    """Product of the factors of `kind` for a device group, an engine class and their pair.

    >>> factor({"x.device.a": 0.5, "x.engine.b": 0.8}, "x", "a", "b", 1.0)
    0.4
    """
    return (
        values.get(f"{kind}.device.{group}", values.get(f"{kind}.base", default))
        * values.get(f"{kind}.engine.{engine}", 1.0)
        * values.get(f"{kind}.pair.{group}.{engine}", 1.0)
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """What one device reaches under one engine. Shares are of the data sheet's peaks."""

    engine: str
    group: str
    bandwidth_share: float
    kv_bandwidth_share: float
    compute_share: float
    quantized_compute_share: float  # of the path a quantized format takes
    attention_compute_share: float
    exposed_share: float
    half_tokens: float
    layer_gap_s: float
    layer_host_s: float
    step_s: float
    sequence_s: float
    expert_layer_s: float
    link_share: float
    link_latency_s: float
    accumulates_16: bool  # FP16 accumulation where the device has a faster path for it
    integer_prefill: bool  # quantized weights are multiplied as INT8


@lru_cache(maxsize=4096)
def rates_for(hardware: Hardware, engine: Engine) -> Rates:
    """The rates of one device under one engine."""
    kind = engine_class(engine)
    group = device_group(hardware)
    if kind == "roofline":
        return Rates(
            kind, group, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, True, True
        )
    values = parameters()

    def get(name: str, default: float) -> float:
        return factor(values, name, group, kind, default)

    return Rates(
        engine=kind,
        group=group,
        bandwidth_share=min(get("bandwidth", 0.75), 0.97),
        kv_bandwidth_share=min(get("kv_bandwidth", 0.6), 0.97),
        compute_share=min(get("compute", 0.6), 0.97),
        quantized_compute_share=min(get("quantized_compute", 0.5), 0.97),
        attention_compute_share=min(get("attention_compute", 0.4), 0.97),
        exposed_share=get("exposed", 0.1),
        half_tokens=get("half_tokens", 50.0),
        layer_gap_s=get("layer_gap_s", 2e-5),
        layer_host_s=get("layer_host_s", 0.0),
        step_s=get("step_s", 3e-4),
        sequence_s=get("sequence_s", 2e-6),
        expert_layer_s=get("expert_layer_s", 4e-5),
        link_share=get("link", 0.7),
        link_latency_s=get("link_latency_s", 1e-5),
        accumulates_16=kind in ("llama.cpp", "fused", "exllama"),
        integer_prefill=kind == "llama.cpp",
    )
