"""A device that the catalogue does not hold: the form's fields and the one line in which a link carries them.

`hardware=My card: memory_gb=48, bandwidth_gb_s=900, fp16_tflops=180` is read by the cost model itself, so that pages,
REST and command line take the same text and refuse the same faults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# (key of the cost model, label, placeholder)
CONSTANTS = (
    ("memory_gb", "Memory, GB", "24"),
    ("bandwidth_gb_s", "Memory bandwidth, GB/s", "1008"),
    ("fp16_tflops", "FP16, dense TFLOP/s", "165"),
    ("int8_tflops", "INT8, dense TOP/s", "none"),
    ("fp8_tflops", "FP8, dense TFLOP/s", "none"),
    ("interconnect_gb_s", "Link between devices, GB/s", "none"),
    ("host_gb_s", "Link to the host, GB/s", "usual"),
)
NAMES = tuple(name for name, _, _ in CONSTANTS)
PUNCTUATION = re.compile(r"[:=,;+/\\\s]+")


def is_inline(hardware: object) -> bool:
    """Whether a hardware text carries constants rather than a name."""
    return "=" in str(hardware or "")


def composed(given: Mapping[str, str]) -> str:
    """The one line of a name and the form's constants; empty where no constant is given.

    >>> composed({"hardware": "My card", "memory_gb": "48", "fp16_tflops": "180", "int8_tflops": ""})
    'My card: memory_gb=48, fp16_tflops=180'
    """
    constants = [
        f"{name}={' '.join(PUNCTUATION.split(given[name])).strip()}"
        for name in NAMES
        if given.get(name, "").strip()
    ]
    if not constants:
        return ""
    name = " ".join(PUNCTUATION.split(given.get("hardware", ""))).strip() or "your device"
    return f"{name}: {', '.join(constants)}"


def taken_apart(hardware: object) -> tuple[str, dict[str, str]]:
    """A hardware text as the form shows it: the name, and the constants that the form has fields for.

    Where the line holds more than the form has fields for, it stays whole in the name's field.

    >>> taken_apart("My card: memory_gb=48, fp16_tflops=180")
    ('My card', {'memory_gb': '48', 'fp16_tflops': '180'})
    >>> taken_apart("rtx-3090")
    ('rtx-3090', {})
    """
    text = str(hardware or "")
    name, colon, tail = text.partition(":")
    pairs = [part.partition("=") for part in re.split(r"[,;]", tail) if part.strip()]
    if not is_inline(text) or not colon or any(key.strip() not in NAMES for key, _, _ in pairs):
        return text, {}
    return name.strip(), {key.strip(): value.strip() for key, _, value in pairs}


def fields(hardware: object) -> dict[str, Any]:
    """What the form's template needs."""
    name, values = taken_apart(hardware)
    return {
        "hardware_name": name,
        "constants": [(key, label, hint, values.get(key, "")) for key, label, hint in CONSTANTS],
        "constants_open": bool(values),
    }
