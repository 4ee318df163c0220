"""Peak memory as benchmarks report it: what was allocated at the worst moment, in the unit that the source prints.

`memory.py` says what a deployment needs in order to run safely; a reported peak is a different quantity. Caches that
grow with the sequence are short when the prompt's buffers are large, tools of PyTorch do not see the CUDA context,
and tables print GB, GiB or thousands of MiB.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from costmodel import formats
from costmodel.memory import cache_of_sequence, kv_bits, weight_bytes, working_buffers, workspace
from costmodel.params import count_parameters
from costmodel.specs import Deployment, Engine, Hardware, Model, Workload
from costmodel.tables import read_table
from costmodel.units import BITS_PER_BYTE, GB, GIB, KILO, MIB

CONTEXT_BYTES = 0.5e9  # CUDA context and kernels of one process (nvidia-smi of an idle PyTorch process)
LIBRARY_BYTES = 0.2e9  # work areas of the matrix libraries, where an engine states nothing
COLUMNS = ("source", "bytes_per_unit", "includes_context", "note")


class Convention(NamedTuple):
    """How a source states memory."""

    bytes_per_unit: float
    includes_context: bool
    per_device: bool


@lru_cache(maxsize=1)
def _conventions() -> dict[str, tuple[float, bool]]:
    return {
        row["source"]: (float(row["bytes_per_unit"]), row["includes_context"] == "yes")
        for row in read_table("memory_units.csv", COLUMNS)
    }


def convention(source: str, notes: str) -> Convention:
    """The unit of a `peak_mem_gb` figure: the source's known habit, else what the notes say, else 10⁹ bytes.

    >>> convention("Lightning-AI/litgpt", "max per GPU (not total)")
    Convention(bytes_per_unit=1000000000.0, includes_context=False, per_device=True)
    """
    low = notes.lower()
    per_device = bool(re.search(r"per (gpu|device|chip|card|rank)", low)) and "summed" not in low
    base = source.split(" (")[0]
    if base in _conventions():
        unit, context = _conventions()[base]
        return Convention(unit, context, per_device)
    unit = GB
    if "to gb" not in low:
        if re.search(r"mi?b ?/ ?1000", low):
            unit = KILO * MIB
        elif "gib" in low or re.search(r"mi?b ?/ ?1024", low):
            unit = GIB
    context = any(word in low for word in ("nvidia-smi", "rss", "resident", "nvml", "system ram"))
    return Convention(unit, context, per_device)


def peak_bytes(
    model: Model,
    hardware: Hardware,
    workload: Workload,
    deployment: Deployment,
    engine: Engine,
    *,
    includes_context: bool = False,
    per_device: bool = False,
) -> float:
    """Largest number of bytes allocated while one batch is served; one scenario.

    growing cache:  weights·(1 + share) + max(kv(prompt) + buffers, g·kv(end))
    static cache:   weights·(1 + share) + kv(end) + buffers
    and a constant of the engine; g = 2 where every step copies the cache into a longer one. Engines that fuse the
    query, key and value matrices hold both forms while they load. The constants stand in data/engines.toml.
    """
    devices = float(deployment.devices)
    weights = float(weight_bytes(model, deployment, engine))
    fmt = formats.find_format(_weight_name(deployment, engine))
    quantized = fmt.is_quantized
    parts = count_parameters(model)
    if engine.workspace.get("unties_head") and not parts.head:
        weights += parts.embedding * (fmt.bits_per_weight if quantized else fmt.head_bits) / BITS_PER_BYTE
    share = _engine_share(engine, hardware, quantized)
    buffers = working_buffers(model, workload, deployment, engine, 0.0)
    working = float(buffers.at(workload.batch))
    if engine.workspace.get("buffers_per_device"):
        working *= devices  # layers lie on all devices, and each keeps its own largest buffers
    bits = kv_bits(deployment, engine)
    end = float(workload.batch * cache_of_sequence(model, workload, deployment, engine, bits).needed)
    growth = float(engine.workspace.get("cache_growth", 0.0))
    if growth:
        start = Workload(
            batch=workload.batch,
            input_tokens=workload.input_tokens,
            output_tokens=0.0,
            context_tokens=workload.context_tokens,
        )
        first = float(workload.batch * cache_of_sequence(model, start, deployment, engine, bits).needed)
        running = max(first + working, growth * end)
    else:
        running = end + working
    on_host = hardware.device_class == "cpu"
    if on_host and "host_weight_copies" in engine.workspace:
        running = end  # host kernels stream the scores
    elif engine.workspace.get("fuses_qkv") and model.gated_mlp:  # older families ship one fused matrix
        running = max(running, weights * _qkv_share(model))
    fixed = float(engine.workspace.get("peak_fixed_bytes", LIBRARY_BYTES))
    if on_host:
        fixed += float(engine.workspace.get("host_fixed_bytes", 0.0))
    if quantized:
        fixed += float(engine.workspace.get("quantized_fixed_bytes", 0.0))
    if includes_context:
        fixed += float(engine.workspace.get("context_bytes", CONTEXT_BYTES))
    if not per_device:
        return weights * (1.0 + share) + running + fixed * devices
    # the device with the embedding and the head holds them on top of its share of the layers
    tables = (parts.embedding * fmt.embedding_bits + parts.head * fmt.head_bits) / BITS_PER_BYTE
    layers = (weights - tables) / devices
    tensor = deployment.tensor_parallel or 1.0
    own_tables = tables if tensor == 1.0 else tables / 2 + tables / 2 / float(tensor)
    return (layers + own_tables) * (1.0 + share) + running / devices + fixed


def _weight_name(deployment: Deployment, engine: Engine) -> str:
    return str(formats.for_engine(str(deployment.weight_format), engine.format_aliases))


def _engine_share(engine: Engine, hardware: Hardware, quantized: bool) -> float:
    """Scratch and second copies that grow with the weights."""
    share = workspace(engine, "weight_share")
    if quantized:
        share += float(engine.workspace.get("quantized_weight_share", 0.0))
        if hardware.device_class == "cpu":
            share += float(engine.workspace.get("host_weight_copies", 0.0))
    return share


def _qkv_share(model: Model) -> float:
    """Share of the weights that query, key and value projections have."""
    parts = count_parameters(model)
    qkv = (model.heads + 2 * model.kv_heads) * model.head_dim * model.hidden * model.layers
    return float(qkv / max(parts.linear, 1.0))


def reported_peak(
    model: Model,
    hardware: Hardware,
    workload: Workload,
    deployment: Deployment,
    engine: Engine,
    *,
    source: str = "",
    notes: str = "",
) -> Any:
    """The figure that the source would print, in its own unit."""
    how = convention(source, notes)
    value = peak_bytes(
        model,
        hardware,
        workload,
        deployment,
        engine,
        includes_context=how.includes_context,
        per_device=how.per_device,
    )
    return value / how.bytes_per_unit
