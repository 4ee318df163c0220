"""Many measured rows with different models, devices and engines as one vectorised estimate.

`times_of` does not care whether its numbers belong to one model or to a thousand: here every field becomes an array
over the rows, and the rates are looked up once for each distinct pair of device and engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel import memory
from costmodel.assembly import ALL_THREADS, Behaviour, assemble, behaviour_of
from costmodel.efficiency import Rates, make_rates
from costmodel.estimate import Times, times_of
from costmodel.formats import find_format, for_engine
from costmodel.layout import NETWORK_BYTES_PER_S, PCIE_BYTES_PER_S, Layout, layout_of, link_kind, node_devices
from costmodel.linear import Shape, shape_of
from costmodel.measured import MOST_SEQUENCES, Case
from costmodel.offload import HOST_FLOPS_PER_S, HOST_MEMORY_BYTES_PER_S
from costmodel.operators import Setup
from costmodel.paths import Path, make_path, peak_flops
from costmodel.specs import Deployment, Workload

Array = NDArray[np.float64]
RATE_FIELDS = tuple(f.name for f in fields(Rates) if f.name not in ("engine", "group"))
PATH_FIELDS = (
    "flops_per_s", "bandwidth_share", "weight_bytes", "head_bytes", "dequantize_factor", "widened_bytes",
    "host_factor", "thread_factor", "batched_share", "read_again", "tile_rows", "expert_tile_rows", "vector_factor",
)  # fmt: skip
NUMBERS = (
    "host_weight_share", "disk_weight_share", "offload_overlap", "active_experts_kept", "devices",
)  # fmt: skip


@dataclass(slots=True)
class Stack:
    """Rows in arrays; everything but the calibrated rates is settled."""

    cases: list[Case]
    shape: Shape
    bandwidth: Array
    host_bytes_per_s: Array
    attention_peak: Array
    behaviour: Behaviour
    workload: Workload
    deployment: Deployment
    tensor: Array
    pipeline: Array
    expert: Array
    serial: NDArray[np.bool_]
    wide: NDArray[np.bool_]
    link_bytes_per_s: Array
    link_names: list[str]
    link_index: NDArray[np.int64]
    combos: list[Callable[[Mapping[str, float]], tuple[Rates, Path]]]
    combo_index: NDArray[np.int64]


def largest_batch(case: Case) -> float:
    """Sequences in flight when every request is queued: what memory holds, up to the engine's own limit."""
    assert case.model and case.hardware and case.engine and case.deployment
    work = Workload(
        batch=1.0, input_tokens=case.input_tokens, output_tokens=case.output_tokens,
        context_tokens=case.context_tokens,
    )  # fmt: skip
    tensor = case.deployment.tensor_parallel or 1.0
    found = memory.memory(case.model, case.hardware, work, case.deployment, case.engine, _Tensor(tensor))
    most = found.max_batch
    if case.engine.family == "tensorrt":
        # the pool takes a share of what is free once the engine is loaded, not of the whole memory
        capacity = case.devices * case.hardware.memory_bytes
        free = capacity - found.overhead_bytes - found.weights_bytes - found.activation_bytes
        most = free * case.engine.memory_share / max(found.kv_cache_bytes, 1.0)
    return float(min(max(np.floor(most), 1.0), MOST_SEQUENCES.get(case.kind, 512.0)))


@dataclass(slots=True)
class _Tensor:
    tensor_parallel: Any


def stack(cases: list[Case]) -> Stack:
    """Arrays over the cases, none of which may be refused or about memory."""
    for case in cases:
        if case.largest_batch:
            case.batch = largest_batch(case)
            case.largest_batch = False
    shapes = [shape_of(case.model) for case in cases if case.model]
    shape = Shape(*(np.array([getattr(s, f.name) for s in shapes]) for f in fields(Shape)))
    layouts, behaviours, links, link_names = [], [], [], []
    combos: dict[Any, int] = {}
    makers: list[Callable[[Mapping[str, float]], tuple[Rates, Path]]] = []
    combo_index = []
    for case in cases:
        assert case.model and case.hardware and case.engine and case.deployment
        rates = make_rates({}, case.group, case.kind)
        layouts.append(layout_of(case.hardware, case.deployment, case.engine, rates))
        behaviours.append(behaviour_of(case.deployment, case.engine, case.hardware))
        rate, name = link_kind(case.hardware, case.deployment.interconnect)  # type: ignore[arg-type]
        links.append(rate)
        link_names.append(name)
        key = (
            case.hardware,
            case.kind,
            case.engine.slug,
            case.deployment.weight_format,
            case.deployment.activation_format,
            case.deployment.weight_kernel,
        )
        if key not in combos:
            combos[key] = len(makers)
            makers.append(_maker(case))
        combo_index.append(combos[key])
    names = sorted(set(link_names))
    hardware = [case.hardware for case in cases if case.hardware]
    deployments = [case.deployment for case in cases if case.deployment]
    element = np.array([_element_format(d) for d in deployments])
    deployment = Deployment(
        kv_format=element,
        threads=np.array([float(d.threads or ALL_THREADS) for d in deployments]),
        host_memory_bytes_per_s=np.array(
            [float(d.host_memory_bytes_per_s or HOST_MEMORY_BYTES_PER_S) for d in deployments]
        ),
        host_flops_per_s=np.array([float(d.host_flops_per_s or HOST_FLOPS_PER_S) for d in deployments]),
        host_compute=np.array([bool(d.host_compute) for d in deployments]),
        **{name: np.array([float(getattr(d, name)) for d in deployments]) for name in NUMBERS},
    )
    return Stack(
        cases=cases,
        shape=shape,
        bandwidth=np.array([h.bandwidth_bytes_per_s for h in hardware]),
        host_bytes_per_s=np.array([h.host_bytes_per_s or PCIE_BYTES_PER_S for h in hardware]),
        attention_peak=np.array(
            [
                peak_flops(h, "fp16", accumulates_16=make_rates({}, c.group, c.kind).accumulates_16)
                for h, c in zip(hardware, cases, strict=True)
            ]
        ),
        behaviour=Behaviour(*(np.array([getattr(b, f.name) for b in behaviours]) for f in fields(Behaviour))),
        workload=Workload(
            batch=np.array([case.batch for case in cases]),
            input_tokens=np.array([case.input_tokens for case in cases]),
            output_tokens=np.array([case.output_tokens for case in cases]),
            context_tokens=np.array([case.context_tokens for case in cases]),
        ),
        deployment=deployment,
        tensor=np.array([float(x.tensor_parallel) for x in layouts]),
        pipeline=np.array([float(x.pipeline_parallel) for x in layouts]),
        expert=np.array([float(x.expert_parallel) for x in layouts]),
        serial=np.array([x.serial_stages for x in layouts]),
        wide=np.array(
            [x.tensor_parallel > node_devices(c.group) for x, c in zip(layouts, cases, strict=True)]
        ),
        link_bytes_per_s=np.array(links),
        link_names=names,
        link_index=np.array([names.index(n) for n in link_names]),
        combos=makers,
        combo_index=np.array(combo_index),
    )


def _element_format(deployment: Deployment) -> str:
    name = str(deployment.kv_format)
    return "fp16" if name.startswith("gguf-f") else name


def _maker(case: Case) -> Callable[[Mapping[str, float]], tuple[Rates, Path]]:
    hardware, engine, deployment = case.hardware, case.engine, case.deployment
    assert hardware and engine and deployment
    weights = find_format(for_engine(str(deployment.weight_format), engine.format_aliases))
    activations = find_format(str(deployment.activation_format), "activations", "activation_format")
    kernel = str(deployment.weight_kernel or engine.defaults.get("weight_kernel") or "tuned")
    group, kind = case.group, case.kind

    def make(values: Mapping[str, float]) -> tuple[Rates, Path]:
        rates = make_rates(values, group, kind)
        return rates, make_path(values, rates, hardware, weights, activations, kernel)

    return make


def times(rows: Stack, values: Mapping[str, float], *, ideal: bool = False) -> tuple[Times, Setup]:
    """Times of all rows under the given rates; `ideal`: the bare roofline."""
    made = [make(values) for make in rows.combos]
    index = rows.combo_index
    gathered: dict[str, Any] = {f: np.array([getattr(r, f) for r, _ in made])[index] for f in RATE_FIELDS}
    rates = Rates(engine="many", group="many", **gathered)
    found: dict[str, Any] = {f: np.array([getattr(p, f) for _, p in made])[index] for f in PATH_FIELDS}
    path = Path(path="many", weight_only=False, **found)
    share = np.array([values[f"link.{n}"] for n in rows.link_names])[rows.link_index]
    latency = np.array([values[f"link_latency_s.{n}"] for n in rows.link_names])[rows.link_index]
    bandwidth = rows.link_bytes_per_s * share
    network = values["link.network"] * NETWORK_BYTES_PER_S * 4.0
    layout = Layout(
        rows.deployment.devices, rows.tensor, rows.pipeline, rows.expert, bool(rows.serial.all()),
        np.where(rows.wide, np.minimum(bandwidth, network), bandwidth),
        np.where(rows.wide, np.maximum(latency, values["link_latency_s.network"]), latency),
    )  # fmt: skip
    setup = assemble(
        rows.shape, rows.bandwidth, rates, path, layout, rows.deployment,
        attention_peak=rows.attention_peak, host_bytes_per_s=rows.host_bytes_per_s,
    )  # fmt: skip
    setup.ideal = ideal
    setup.elementwise_factor = np.where(rows.behaviour.fused, 1.0, 3.0)
    serial = rows.serial
    layout = layout._replace(pipeline_parallel=np.where(serial, 1.0, rows.pipeline), serial_stages=False)
    return times_of(setup, layout, rows.behaviour, rows.workload, rows.deployment), setup


def in_metric(rows: Stack, result: Times) -> Array:
    """Predictions in each row's own metric and unit."""
    batch = np.asarray(rows.workload.batch)
    n_in, n_out = np.asarray(rows.workload.input_tokens), np.asarray(rows.workload.output_tokens)
    devices = np.asarray(rows.deployment.devices)
    by_metric: dict[str, Any] = {
        "decode_tok_s_per_seq": 1.0 / result.tpot_s,
        "decode_tok_s_total": batch / result.tpot_s,
        "tpot_ms": result.tpot_s * 1e3,
        "ttft_ms": result.ttft_s * 1e3,
        "prefill_tok_s": result.together * n_in / result.ttft_s,
        "e2e_latency_ms": result.e2e_s * 1e3,
        "throughput_out_tok_s": result.throughput_tok_s,
        "throughput_out_tok_s_per_gpu": result.throughput_tok_s / devices,
        "throughput_total_tok_s": result.throughput_tok_s * (n_in + n_out) / n_out,
        "throughput_total_tok_s_per_gpu": result.throughput_tok_s * (n_in + n_out) / n_out / devices,
        "req_s": result.throughput_tok_s / n_out,
        "ms_per_out_token_amortized": 1e3 / result.throughput_tok_s,
    }
    replicas = np.array([case.replicas for case in rows.cases])
    for name in ("throughput_out_tok_s", "throughput_total_tok_s", "req_s"):
        by_metric[name] = by_metric[name] * replicas
    full = {name: np.broadcast_to(value, (len(rows.cases),)) for name, value in by_metric.items()}
    return np.array([full[case.metric][i] for i, case in enumerate(rows.cases)])
