"""Time of collectives between devices."""

from __future__ import annotations

from typing import Any

from costmodel.numeric import logarithm2, maximum


def all_reduce_seconds(*, bytes_: Any, devices: Any, bytes_per_s: Any, latency_s: Any) -> Any:
    """One all-reduce over `devices`.

    seconds = latency · log₂(n) + 2 (n − 1) / n · bytes / bandwidth      (ring; Patarasuk and Yuan 2009)

    >>> all_reduce_seconds(bytes_=1e9, devices=2.0, bytes_per_s=1e9, latency_s=0.0)
    1.0
    """
    many = maximum(devices, 1.0)
    return latency_s * logarithm2(many) + 2.0 * (many - 1.0) / many * bytes_ / bytes_per_s


def all_to_all_seconds(*, bytes_: Any, devices: Any, bytes_per_s: Any, latency_s: Any) -> Any:
    """Tokens sent to the devices of their experts: (n − 1)/n of them leave the device."""
    many = maximum(devices, 1.0)
    return latency_s * (many > 1.0) + (many - 1.0) / many * bytes_ / bytes_per_s


def point_to_point_seconds(*, bytes_: Any, bytes_per_s: Any, latency_s: Any) -> Any:
    """Activations handed from one pipeline stage to the next."""
    return latency_s + bytes_ / bytes_per_s
