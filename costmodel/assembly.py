"""From model, device, engine and deployment to the `Setup` that a pass needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from costmodel.efficiency import Rates, engine_class, rates_for
from costmodel.formats import for_engine, lookup
from costmodel.layout import PCIE_BYTES_PER_S, Layout, layout_of
from costmodel.linear import Shape, shape_of
from costmodel.numeric import maximum, minimum, or_default, where
from costmodel.offload import DISK_BYTES_PER_S, HOST_FLOPS_PER_S, HOST_MEMORY_BYTES_PER_S
from costmodel.operators import Setup
from costmodel.paths import Path, paths, peak_flops
from costmodel.specs import Deployment, Engine, Hardware, Model
from costmodel.units import BITS_PER_BYTE, GIB

UNFUSED_TRANSFERS = 3.0  # elementwise operators that each read and write their own tensors
UNFUSED_GAPS = 2.0  # and twice the kernels per layer
GRAPHS_OFF_GAP_S = 3.0e-5  # per layer, when an engine that records CUDA graphs runs without them
ALL_THREADS = 1e6  # stands for "as many as the processor has" in arrays
EAGER_DECODE_COPIES = 3.0  # an unfused decode attention concatenates the cache: read, write, read again
LAYER_KERNELS = 32.0  # kernels of one layer of llama.cpp's graph on a prompt …
WIDENING_KERNELS = (
    54.0  # … with one more for each matrix that is written out in 16 bits first, and conversions
)
# vLLM's V1 engine budgets 8192 tokens a step on devices of Hopper's size and 2048 elsewhere (EngineArgs defaults)
LARGE_BYTES, LARGE_CHUNK_TOKENS = 70 * GIB, 8192.0
PIPELINE_TOKENS = 2048.0  # prompt tokens of one micro-batch of a pipelined static batch
MICRO_BATCH_TOKENS = 512.0  # llama.cpp's n_ubatch
# FLOP per byte of a device (an A100 under a usual engine) whose `half_tokens` is the calibrated one; one with more of
# them needs more tokens to fill its units. The square root lies between "not at all" and "in proportion", which fit
# the measured prompts equally well; wide verifications on small cards (arXiv:2401.15077, Table 7) rule out the first
USUAL_INTENSITY = 100.0
GRAPH_GAP_S = 1.0e-5  # per layer, when an engine without CUDA graphs records them


@dataclass(slots=True)
class Behaviour:
    """The engine's defaults with the deployment's own choices in front."""

    unfused_prefill: Any
    unfused_decode: Any
    split_decode: Any
    fused: Any
    cuda_graphs: Any
    continuous: Any
    chunk_tokens: Any  # 0: prompts are not chunked
    prefix_cache: Any
    stage_tokens: Any  # micro-batch with which stages overlap in prefill; 0: stages wait for each other


def choose(deployment: Deployment, engine: Engine, name: str, fallback: Any) -> Any:
    """The deployment's value of a field, else the engine's, else `fallback`; element by element for arrays."""
    value = getattr(deployment, name)
    default = engine.defaults.get(name, fallback)
    if value is None:
        return default
    if isinstance(value, np.ndarray) and value.dtype == object:
        missing: Any = value == np.array(None)  # element by element
        if missing.any():
            value = np.where(missing, np.array(default, dtype=object), value)
        first = value.ravel()[0] if value.size else default
        if isinstance(first, str):
            return value.astype(str)
        return value.astype(bool if isinstance(first, bool | np.bool_) else float)
    return or_default(value, default)


def given(value: Any, fallback: float) -> Any:
    """A field, or `fallback` where it is None."""
    return fallback if value is None else value


def behaviour_of(deployment: Deployment, engine: Engine, hardware: Hardware) -> Behaviour:
    """What runs: attention kernels, fusion, graphs, batching."""
    ggml = "llama.cpp" in engine_class(engine)
    micro = MICRO_BATCH_TOKENS if ggml else 0.0
    continuous = choose(deployment, engine, "continuous_batching", False)
    stage = micro if ggml else 0.0
    if engine.layout == "tensor":
        stage = where(continuous, stage, PIPELINE_TOKENS)
    decode = choose(deployment, engine, "decode_attention_kernel", "flash")
    chunk = choose(deployment, engine, "chunk_tokens", micro)
    usual = engine.defaults.get("chunk_tokens")
    large = hardware.memory_bytes >= LARGE_BYTES and hardware.architecture != "ampere"
    if engine.family == "serving" and usual and large:
        # a default that was filled in by name is still the engine's choice, which follows the device
        chunk = where(chunk == usual, maximum(usual, LARGE_CHUNK_TOKENS), chunk)
    return Behaviour(
        unfused_prefill=choose(deployment, engine, "attention_kernel", "flash") == "eager",
        unfused_decode=decode == "eager",
        split_decode=decode == "split",
        fused=choose(deployment, engine, "fused_operators", True),
        cuda_graphs=choose(deployment, engine, "cuda_graphs", False),
        continuous=continuous,
        chunk_tokens=chunk,
        prefix_cache=choose(deployment, engine, "prefix_cache", False),
        stage_tokens=stage,
    )


# 2:4 units double the peak; products of large models gain 1.6 (Sun et al. 2023, arXiv:2306.11695, table 5)
TWO_FOUR_TIME = 1.0 / 1.6


def sparsity(pattern: Any, density: Any, bits: Any) -> tuple[Any, Any]:
    """Bytes and multiplications left of a sparse weight matrix, as shares of the dense one.

    2:4 keeps half of the values and two bits of position each, and its units double the matrix rate (Mishra et al.
    2021, arXiv:2104.08378), of which TWO_FOUR_TIME is left in practice. Unstructured weights are stored with a bit map and multiplied dense (Flash-LLM, Xia et
    al. 2023, arXiv:2309.10285). Blocks leave both out.
    """
    if isinstance(pattern, str):
        if pattern == "none" or pattern == "":
            return 1.0, 1.0
        if pattern == "2:4":
            return 0.5 + 1.0 / bits, TWO_FOUR_TIME
        if pattern == "block":
            return density, density
        return minimum(density + 1.0 / bits, 1.0), 1.0
    two_four, block = pattern == "2:4", pattern == "block"
    loose = pattern == "unstructured"
    bytes_share = np.where(two_four, 0.5 + 1.0 / bits, np.where(block, density, 1.0))
    bytes_share = np.where(loose, np.minimum(density + 1.0 / bits, 1.0), bytes_share)
    return bytes_share, np.where(two_four, TWO_FOUR_TIME, np.where(block, density, 1.0))


def element_bytes(kv_format: Any) -> Any:
    """Bytes of one cached number."""
    if isinstance(kv_format, str) and kv_format.startswith("gguf-f"):
        return 2.0
    return lookup(kv_format, "bits_per_weight", "kv", "kv_format") / BITS_PER_BYTE


def build(
    model: Model, hardware: Hardware, deployment: Deployment, engine: Engine
) -> tuple[Setup, Layout, Rates, Behaviour, Path]:  # fmt: skip
    """Everything that does not depend on the workload."""
    rates = rates_for(hardware, engine)
    layout = layout_of(hardware, deployment, engine, rates)
    behaviour = behaviour_of(deployment, engine, hardware)
    shape: Shape = shape_of(model)
    weight_format = for_engine(deployment.weight_format, engine.format_aliases)
    path = paths(hardware, engine, weight_format, deployment.activation_format, deployment.weight_kernel)
    ideal = rates.engine == "roofline"
    default_fused = bool(engine.defaults.get("fused_operators", True))
    default_graphs = bool(engine.defaults.get("cuda_graphs", False))
    gap, host = rates.layer_gap_s, rates.layer_host_s * path.host_factor
    elementwise: Any = 1.0
    if not ideal:
        elementwise = where(behaviour.fused, 1.0, UNFUSED_TRANSFERS)
        if default_fused:
            gap = where(behaviour.fused, gap, gap * UNFUSED_GAPS)
        else:
            gap = where(behaviour.fused, gap / UNFUSED_GAPS, gap)
            host = where(behaviour.fused, host * 0.6, host)
        if default_graphs:
            gap = where(behaviour.cuda_graphs, gap, gap + GRAPHS_OFF_GAP_S)
        else:
            gap = where(behaviour.cuda_graphs, minimum(gap, GRAPH_GAP_S), gap)
            host = where(behaviour.cuda_graphs, 0.0, host)
    setup = assemble(
        shape, hardware.bandwidth_bytes_per_s, rates, path, layout, deployment,
        attention_peak=peak_flops(hardware, "fp16", accumulates_16=rates.accumulates_16),
        host_bytes_per_s=hardware.host_bytes_per_s or PCIE_BYTES_PER_S,
    )  # fmt: skip
    setup.layer_gap_s, setup.layer_host_s, setup.elementwise_factor = gap, host, elementwise
    setup.ideal = ideal
    return setup, layout, rates, behaviour, path


def assemble(
    shape: Shape,
    bandwidth_bytes_per_s: Any,
    rates: Rates,
    path: Path,
    layout: Layout,
    deployment: Deployment,
    *,
    attention_peak: Any,
    host_bytes_per_s: Any,
) -> Setup:
    """The `Setup`, from parts that may be arrays over models, devices and engines."""
    bytes_share, flops_share = sparsity(
        deployment.sparsity_pattern, deployment.weight_density, path.weight_bytes * BITS_PER_BYTE
    )
    experts = maximum(shape.experts * deployment.experts_kept, 1.0)
    weight_rate = bandwidth_bytes_per_s * path.bandwidth_share
    kv_rate = bandwidth_bytes_per_s * rates.kv_bandwidth_share
    linear_rate = path.flops_per_s / path.dequantize_factor
    if deployment.threads is not None:
        # a core has a limited number of reads in flight and a limited rate: both grow with the threads
        weight_rate = minimum(weight_rate, deployment.threads * rates.thread_bytes_per_s)
        kv_rate = minimum(kv_rate, deployment.threads * rates.thread_bytes_per_s)
        per_thread = rates.thread_flops_per_s * path.thread_factor / path.dequantize_factor
        linear_rate = where(deployment.threads < ALL_THREADS, deployment.threads * per_thread, linear_rate)
    return Setup(
        shape=shape,
        tensor_parallel=layout.tensor_parallel,
        pipeline_parallel=layout.pipeline_parallel,
        expert_parallel=layout.expert_parallel,
        weight_bytes_per_s=weight_rate,
        kv_bytes_per_s=kv_rate,
        linear_flops_per_s=linear_rate,
        attention_flops_per_s=attention_peak * rates.attention_compute_share,
        exposed_share=rates.exposed_share,
        batched_share=path.batched_share,
        read_again=path.read_again,
        tile_rows=path.tile_rows,
        expert_tile_rows=path.expert_tile_rows,
        half_tokens=rates.half_tokens * (path.flops_per_s / bandwidth_bytes_per_s / USUAL_INTENSITY) ** 0.5,
        link_bytes_per_s=layout.link_bytes_per_s,
        link_latency_s=layout.link_latency_s * rates.latency_factor,
        layer_gap_s=rates.layer_gap_s,
        layer_host_s=rates.layer_host_s * path.host_factor,
        step_s=rates.step_s,
        sequence_s=rates.sequence_s,
        expert_layer_s=rates.expert_layer_s + rates.expert_each_s * experts,
        expert_share=rates.expert_share,
        mixer_layer_s=rates.mixer_layer_s,
        mixer_layers=shape.mixer_layers,
        prefill_s=rates.prefill_s,
        score_factor=rates.score_factor,
        stage_overlap=rates.stage_overlap,
        stage_kernels=where(path.widened_bytes > 0.0, WIDENING_KERNELS, LAYER_KERNELS),
        vector_share=rates.vector_share * path.vector_factor,
        mixed_overlap=rates.mixed_overlap,
        grouped_reads=where(
            shape.heads == 8.0 * shape.kv_heads, rates.grouped_reads_of_eight, rates.grouped_reads
        ),
        weight_bytes=path.weight_bytes * bytes_share,
        head_bytes=path.head_bytes,
        flops_share=flops_share,
        widen_s_per_weight=path.widened_bytes / weight_rate,
        weights_kept=deployment.weights_kept,
        layers_kept=deployment.layers_kept,
        experts=experts,
        active_experts=maximum(minimum(shape.active_experts * deployment.active_experts_kept, experts), 1.0),
        kv_element_bytes=element_bytes(deployment.kv_format),
        kv_kept=deployment.kv_heads_kept * deployment.kv_layers_kept,
        elementwise_factor=1.0,
        host_bytes_per_s=host_bytes_per_s,
        host_memory_bytes_per_s=given(deployment.host_memory_bytes_per_s, HOST_MEMORY_BYTES_PER_S),
        host_flops_per_s=given(deployment.host_flops_per_s, HOST_FLOPS_PER_S),
        disk_bytes_per_s=DISK_BYTES_PER_S,
    )
