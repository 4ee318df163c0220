"""Weights and cache that lie outside the device: in host memory or on disk."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import maximum, minimum

HOST_LINK_SHARE = (
    0.8  # of PCIe's rate that pinned copies reach (NVIDIA bandwidthTest on gen4: 25 of 31.5 GB/s)
)
HOST_MEMORY_BYTES_PER_S = 80e9  # two channels of DDR5-5200, as in a desktop; achieved share below
HOST_MEMORY_SHARE = 0.5  # scattered experts over two sockets reach 0.35 (KTransformers), dense layers 0.75
HOST_FLOPS_PER_S = 1e12  # achieved by the vector units of a desktop processor
DISK_BYTES_PER_S = 3.5e9  # NVMe on PCIe 3.0 x4 (data sheet of the class)


def exposed_seconds(*, transfer_s: Any, device_s: Any, overlap: Any) -> Any:
    """Transfer time that shows: what is not hidden behind the device's own work.

    >>> exposed_seconds(transfer_s=10.0, device_s=4.0, overlap=0.5)
    8.0
    """
    return transfer_s - overlap * minimum(transfer_s, device_s)


def transfer_seconds(
    *, host_bytes: Any, disk_bytes: Any, link_bytes_per_s: Any, disk_bytes_per_s: Any = DISK_BYTES_PER_S
) -> Any:  # fmt: skip
    """Time to bring bytes from host memory over the link, and from disk through host memory.

    >>> transfer_seconds(host_bytes=25.2e9, disk_bytes=0.0, link_bytes_per_s=31.5e9)
    1.0
    """
    return host_bytes / (link_bytes_per_s * HOST_LINK_SHARE) + disk_bytes / minimum(
        disk_bytes_per_s, link_bytes_per_s * HOST_LINK_SHARE
    )


def host_compute_seconds(
    *, host_bytes: Any, flops: Any = 0.0, host_bytes_per_s: Any = HOST_MEMORY_BYTES_PER_S,
    host_flops_per_s: Any = HOST_FLOPS_PER_S,
) -> Any:  # fmt: skip
    """Time of the host's processor to multiply the weights in its memory: bound by that memory or by its units.

    >>> host_compute_seconds(host_bytes=40e9, host_bytes_per_s=80e9)
    1.0
    """
    return maximum(host_bytes / (host_bytes_per_s * HOST_MEMORY_SHARE), flops / host_flops_per_s)
