"""How the devices share the work, and the links between them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from costmodel.efficiency import Rates, parameters
from costmodel.numeric import distinct, is_zero, maximum, minimum, where
from costmodel.specs import Deployment, Engine, Hardware

NODE_DEVICES = {"tpu": 256.0, "accelerator": 32.0}
NODE_DEFAULT = 8.0  # devices of one host
PCIE_BYTES_PER_S = 31.5e9  # PCIe 4.0 x16, per direction
NETWORK_BYTES_PER_S = 25e9  # 200 Gb/s InfiniBand for each device
NETWORKS = {
    "infiniband": 25e9, "ib": 25e9, "ib-hdr": 25e9, "ib-ndr": 50e9, "roce": 25e9, "ethernet": 12.5e9,
    "ethernet-10g": 1.25e9, "ethernet-25g": 3.1e9, "ethernet-100g": 12.5e9, "network": 25e9,
}  # fmt: skip


class Layout(NamedTuple):
    """Degrees of parallelism and the link that the collectives use."""

    devices: Any
    tensor_parallel: Any
    pipeline_parallel: Any
    expert_parallel: Any
    serial_stages: bool  # the stages of a split by layers wait for each other even when several requests run
    link_bytes_per_s: Any
    link_latency_s: Any


def link_of(hardware: Hardware, rates: Rates, interconnect: str | None) -> tuple[float, float]:
    """Achieved bytes/s per direction and the latency of one collective step, for a named link."""
    bandwidth, kind = link_kind(hardware, interconnect)
    if rates.engine == "roofline":
        return bandwidth, 0.0
    values = parameters()
    return bandwidth * values[f"link.{kind}"], values[f"link_latency_s.{kind}"]


def link_kind(hardware: Hardware, interconnect: str | None) -> tuple[float, str]:
    """Data-sheet bytes/s per direction of a named link, and its kind: fabric, pcie or network."""
    name = (interconnect or hardware.interconnect or "none").lower()
    own = "c2c" in hardware.host_link.lower()  # a link to the host that no other device shares
    pcie = PCIE_BYTES_PER_S if own else hardware.host_bytes_per_s or PCIE_BYTES_PER_S
    if name in NETWORKS:
        bandwidth, kind = NETWORKS[name], "network"
    elif name.startswith(("pcie", "none", "host")) or not hardware.interconnect_bytes_per_s:
        bandwidth, kind = pcie, "pcie"
    else:
        bandwidth, kind = hardware.interconnect_bytes_per_s, "fabric"
    return bandwidth, kind


def node_devices(group: str) -> float:
    """Devices of one host, or of one fabric, of a device group."""
    return NODE_DEVICES.get(group, NODE_DEFAULT)


def degrees(devices: Any, tensor: Any, pipeline: Any, *, node: float, splits_layers: bool) -> tuple[Any, Any]:
    """Tensor and pipeline parallelism; what is not named (None) follows from the other one or is the engine's.

    >>> degrees(16.0, None, None, node=8.0, splits_layers=False), degrees(4.0, 2.0, None, node=8.0, splits_layers=True)
    ((8.0, 2.0), (2.0, 2.0))
    """
    if tensor is None and pipeline is None:
        if splits_layers:
            return 1.0, devices
        tensor = minimum(devices, node)
        return tensor, maximum(devices / tensor, 1.0)
    if tensor is None:
        return maximum(devices / pipeline, 1.0), pipeline
    return tensor, maximum(devices / tensor, 1.0) if pipeline is None else pipeline


def named(degree: Any) -> tuple[Any, Any]:
    """A degree of parallelism of many cases as numbers, and where they name none (None, or not a number)."""
    values = np.asarray(np.nan if degree is None else degree, dtype=float)
    return values, np.isnan(values)


def degrees_of_each(
    devices: Any, tensor: Any, pipeline: Any, *, node: float, splits_layers: bool
) -> tuple[Any, Any]:
    """`degrees` for arrays in which some cases name a degree and others do not."""
    usual_tensor, usual_pipeline = degrees(devices, None, None, node=node, splits_layers=splits_layers)
    tensor, no_tensor = named(tensor)
    pipeline, no_pipeline = named(pipeline)
    return (
        np.where(no_tensor, np.where(no_pipeline, usual_tensor, maximum(devices / pipeline, 1.0)), tensor),
        np.where(no_pipeline, np.where(no_tensor, usual_pipeline, maximum(devices / tensor, 1.0)), pipeline),
    )


def layout_of(hardware: Hardware, deployment: Deployment, engine: Engine, rates: Rates) -> Layout:
    """The layout asked for, or the engine's usual one: layers split over the devices, or tensors within a host."""
    devices = deployment.devices
    tensor, pipeline = deployment.tensor_parallel, deployment.pipeline_parallel
    node = node_devices(rates.group)
    many = isinstance(tensor, np.ndarray) or isinstance(pipeline, np.ndarray)
    find = degrees_of_each if many else degrees
    tensor, pipeline = find(
        devices, tensor, pipeline, node=node, splits_layers=engine.layout in ("layer", "pipeline")
    )
    expert = 1.0 if deployment.expert_parallel is None else deployment.expert_parallel
    if not is_zero(deployment.disaggregated):
        # one half of the devices processes prompts, the other half decodes
        pool = where(deployment.disaggregated, maximum(devices / 2.0, 1.0), devices)
        tensor = minimum(tensor, pool)
        pipeline = minimum(pipeline, maximum(pool / tensor, 1.0))
        expert = minimum(expert, pool)
    names = deployment.interconnect
    if isinstance(names, np.ndarray):
        unique, inverse = distinct(names)
        found = np.array([link_of(hardware, rates, None if n == "None" else n) for n in unique])
        bandwidth: Any = found[inverse, 0].reshape(names.shape)
        latency: Any = found[inverse, 1].reshape(names.shape)
    else:
        bandwidth, latency = link_of(hardware, rates, names)
    # a tensor-parallel group wider than one host crosses the network
    wide = tensor > node
    if rates.engine != "roofline" and np.any(wide):
        values = parameters()
        latency = where(wide, maximum(latency, values["link_latency_s.network"]), latency)
        bandwidth = where(
            wide, minimum(bandwidth, NETWORK_BYTES_PER_S * 4.0 * values["link.network"]), bandwidth
        )
    return Layout(devices, tensor, pipeline, expert, engine.layout == "layer", bandwidth, latency)
