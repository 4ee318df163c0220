"""Achieved share of the peak rates and the overheads, by what drives them; values from data/efficiency.csv.

A value is a product of factors: one for the device group, one for the engine class, and, where measurements demand
it, one for the pair. A device or an engine without measurements takes its group's, which is what its data can tell.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
HIGHEST_SHARE = 0.97  # no kernel reaches all of a data sheet's rate
CLASSES = (
    "roofline", "eager", "fused", "exllama", "compiled", "mlc", "serving", "tensorrt", "llama.cpp", "mlx", "gaudi",
    "tpu", "accelerator", "mobile",
)  # fmt: skip
# engines that kept their family's name while the runtime changed two- to threefold: class of releases before a year
OLD_CLASS = {
    "serving": ((2024.0, "serving-2023"),),
    "tensorrt": ((2024.1, "tensorrt-2023"), (2024.5, "tensorrt-2024")),
    "llama.cpp": ((2024.45, "llama.cpp-2023"),),
}
SLUG_CLASS = {
    "plain": "compiled",  # the surveys' baseline: kernels one by one, but no Python between them
    "fastertransformer": "ft",  # the static-batch ancestor of TensorRT-LLM
    "lmdeploy": "tensorrt-2023",  # TurboMind grew out of FasterTransformer
    "megatron": "megatron",
    "autoawq": "autoawq",
    "deepspeed": "deepspeed",
    "groq": "dataflow",  # weights in SRAM, the whole model one compiled program
    "cerebras": "dataflow",
    "sambanova": "dataflow",
    "ik_llama.cpp": "ik_llama.cpp",
}


def engine_class(engine: Engine) -> str:
    """The runtime type whose constants an engine takes: its family, or the nearest one with measurements.

    An engine outside the catalogue is placed by what its row says: no fusion is an eager framework, a layer-split
    one is of llama.cpp's kind, anything else a CUDA server.
    """
    if engine.slug in SLUG_CLASS:
        return SLUG_CLASS[engine.slug]
    family = NEAREST_CLASS.get(engine.family, engine.family)
    for before, older in OLD_CLASS.get(family, ()):
        if engine.year and engine.year < before:
            return older
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
        if hardware.slug.startswith("phone"):
            return "phone"
        return "cpu-arm" if hardware.architecture in ("arm", "riscv") else "cpu"
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


# classes that share what they do not have of their own with a relative
PARENT_CLASS = {
    "serving-2023": "serving", "tensorrt-2023": "tensorrt", "tensorrt-2024": "tensorrt-2023", "llama.cpp-2023": "llama.cpp",
    "ik_llama.cpp": "llama.cpp", "megatron": "eager", "autoawq": "fused", "deepspeed": "fused", "dataflow": "accelerator",
}  # fmt: skip


def engine_value(values: Mapping[str, float], kind: str, engine: str, default: float) -> float:
    """The value of an engine class, or of the class it descends from (`serving-2023` → `serving`)."""
    found = values.get(f"{kind}.engine.{engine}")
    while found is None and engine in PARENT_CLASS:
        engine = PARENT_CLASS[engine]
        found = values.get(f"{kind}.engine.{engine}")
    return default if found is None else found


def factor(values: Mapping[str, float], kind: str, group: str, engine: str, default: float) -> float:
    """Product of the factors of `kind` for a device group, an engine class and their pair.

    >>> factor({"x.device.a": 0.5, "x.engine.b": 0.8}, "x", "a", "b", 1.0)
    0.4
    """
    return (
        values.get(f"{kind}.device.{group}", values.get(f"{kind}.base", default))
        * engine_value(values, kind, engine, 1.0)
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
    expert_each_s: float  # per expert of a MoE layer, where each is launched by itself
    expert_share: float  # of the multiplication rate that experts' small groups reach
    mixer_layer_s: float  # state-space scan, per layer
    prefill_s: float  # once per prompt pass, beyond step_s
    score_factor: float  # traffic of an unfused S×S matrix over five 16-bit passes
    latency_factor: float  # of a collective step over the link's own latency
    stage_overlap: float  # share of a prompt's passes that stages of a split by layers overlap
    mixed_overlap: float  # of the shorter of decoding and prompt work, hidden in a mixed step
    grouped_reads_of_eight: float  # … where eight query heads share one
    grouped_reads: float  # 0: a shared cache head is read once; 1: once per query head
    thread_bytes_per_s: float  # one core of a CPU
    thread_flops_per_s: float
    vector_share: float  # of the multiplication rate that products with single vectors reach (CPUs)
    accumulates_16: bool  # FP16 accumulation where the device has a faster path for it
    integer_prefill: bool  # quantized weights are multiplied as INT8
    widens_first: bool  # quantized weights are written out in 16 bits before a large multiplication


IDEAL: dict[str, Any] = {
    "bandwidth_share": 1.0, "kv_bandwidth_share": 1.0, "compute_share": 1.0, "quantized_compute_share": 1.0,
    "attention_compute_share": 1.0, "exposed_share": 0.0, "half_tokens": 0.0, "layer_gap_s": 0.0,
    "layer_host_s": 0.0, "step_s": 0.0, "sequence_s": 0.0, "expert_layer_s": 0.0, "expert_each_s": 0.0, "expert_share": 1.0,
    "mixer_layer_s": 0.0, "prefill_s": 0.0, "score_factor": 1.0, "latency_factor": 1.0, "stage_overlap": 1.0,
    "mixed_overlap": 1.0, "grouped_reads": 0.0, "grouped_reads_of_eight": 0.0, "thread_bytes_per_s": 1e15, "thread_flops_per_s": 1e15,
    "vector_share": 1.0, "accumulates_16": True, "integer_prefill": True, "widens_first": False,
}  # fmt: skip


@lru_cache(maxsize=4096)
def rates_for(hardware: Hardware, engine: Engine) -> Rates:
    """The rates of one device under one engine."""
    return packaged_rates(device_group(hardware), engine_class(engine))


@lru_cache(maxsize=1024)
def packaged_rates(group: str, kind: str) -> Rates:
    """The rates of a device group under an engine class, from the values of data/efficiency.csv."""
    return make_rates(parameters(), group, kind)


def make_rates(values: Mapping[str, float], group: str, kind: str) -> Rates:
    """The rates of a device group under an engine class, from values like those of data/efficiency.csv."""
    if kind == "roofline":
        return Rates(engine=kind, group=group, **IDEAL)

    def get(name: str, default: float) -> float:
        return factor(values, name, group, kind, default)

    ggml = "llama.cpp" in kind
    tensor_cores = group in ("nvidia-hbm", "nvidia-gddr", "nvidia-edge", "amd-hbm")
    return Rates(
        engine=kind,
        group=group,
        bandwidth_share=min(get("bandwidth", 0.75), HIGHEST_SHARE),
        kv_bandwidth_share=min(get("kv_bandwidth", 0.6), HIGHEST_SHARE),
        compute_share=min(get("compute", 0.6), HIGHEST_SHARE),
        quantized_compute_share=min(get("compute", 0.6) * get("quantized", 0.8), HIGHEST_SHARE),
        attention_compute_share=min(get("attention_compute", 0.4), HIGHEST_SHARE),
        exposed_share=get("exposed", 0.1),
        half_tokens=get("half_tokens", 50.0),
        layer_gap_s=engine_value(values, "layer_gap_s", kind, 2e-5),
        layer_host_s=engine_value(values, "layer_host_s", kind, 0.0),
        step_s=engine_value(values, "step_s", kind, 1e-3),
        sequence_s=get("sequence_s", 2e-6),
        expert_layer_s=get("expert_layer_s", 4e-5),
        expert_each_s=engine_value(values, "expert_each_s", kind, 0.0),
        expert_share=min(get("expert_compute", 1.0), 1.0),
        mixer_layer_s=get("mixer_layer_s", 5e-5),
        prefill_s=engine_value(values, "prefill_s", kind, 0.0),
        score_factor=get("score_traffic", 1.0),
        latency_factor=get("link_latency", 1.0),
        stage_overlap=min(get("stage_overlap", 0.8), 1.0),
        mixed_overlap=min(get("mixed_overlap", 0.4), 1.0),
        grouped_reads=min(get("grouped_reads", 0.05), 1.0),
        # TensorRT-LLM's first grouped kernel (0.8) packed groups of eight, those of Llama-2-70B, and no others
        grouped_reads_of_eight=min(
            values.get("grouped_reads.base", 0.05) if kind == "tensorrt-2024" else get("grouped_reads", 0.05),
            1.0,
        ),
        thread_bytes_per_s=get("thread_bytes_per_s", 2.4e10),
        thread_flops_per_s=get("thread_flops_per_s", 1.2e11),
        vector_share=min(get("vector_compute", 0.4), 1.0) if group in ("cpu", "cpu-arm", "phone") else 1.0,
        accumulates_16=ggml or kind in ("fused", "exllama", "mlc", "autoawq"),
        # llama.cpp multiplies quantized weights as INT8 on CPUs and on GPUs without matrix units; with them it
        # did so from mid-2024 on, before it wrote the weights out in 16 bits first. Metal kernels widen on the fly
        integer_prefill=ggml and group != "apple" and (not tensor_cores or kind == "llama.cpp"),
        widens_first=ggml and tensor_cores and kind == "llama.cpp-2023",
    )
