"""Numbers and terms in words, the same in every sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

TERM_NAMES = {
    "linear": "matrix products",
    "experts": "experts",
    "attention": "attention",
    "elementwise": "elementwise operators",
    "lm_head": "the output head",
    "interconnect": "collectives",
    "launch": "kernel launches",
    "framework": "sampling and scheduling",
    "offload": "transfers from host memory",
    "draft": "drafting",
    "prefill_of_others": "prefilling other requests",
    "decode_of_others": "sharing steps with running requests",
    "prompt_compression": "extra work on the prompt",
    "cache_transfer": "moving the KV cache",
    "queue": "waiting in the queue",
}

PLURAL = frozenset(
    {
        "matrix products",
        "experts",
        "elementwise operators",
        "collectives",
        "kernel launches",
        "sampling and scheduling",
        "transfers from host memory",
    }
)


def term(name: str) -> str:
    """A term of the cost model as a reader would say it."""
    return TERM_NAMES.get(name, name.replace("_", " "))


def number(value: float, digits: int = 3) -> str:
    """Three significant digits, thousands separated, no exponent: 1234567 → 1,230,000."""
    if not math.isfinite(value):
        return "unbounded"
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    if places >= 0:  # formatting rounds as `round` does
        return f"{value:,.{places}f}"
    rounded = round(value, places)
    return f"{rounded:,.0f}" if abs(rounded) < 1e15 else f"{rounded:.2e}"


def bytes_(value: float) -> str:
    """Decimal units, as on a data sheet: 25769803776 → 25.8 GB."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:.0f} bytes"


def seconds(value: float) -> str:
    """With the unit that leaves a number a person can hold."""
    if not math.isfinite(value):
        return "forever"
    if value >= 7200:
        return f"{number(value / 3600)} h"
    if value >= 120:
        return f"{number(value / 60)} min"
    if value == 0:
        return "0 s"
    if value >= 1:
        return f"{number(value)} s"
    if value >= 1e-3:
        return f"{number(value * 1e3)} ms"
    return f"{number(value * 1e6)} us"


def percent(share: float) -> str:
    """Whole percent, with a decimal below 10."""
    value = share * 100
    return f"{value:.1f} %" if abs(value) < 10 else f"{value:.0f} %"


def factor(value: float) -> str:
    """2.31x, 11.7x, 250x."""
    return f"{value:.2f}x" if value < 10 else f"{value:.1f}x" if value < 100 else f"{value:,.0f}x"


# What a gain is, in words: "1.31x faster per token".
_GAINS = {
    "latency": "faster end to end",
    "tpot": "faster per token",
    "ttft": "faster to the first token",
    "throughput": "the throughput",
    "memory": "less memory",
    "cost": "the tokens per dollar",
}


def gain(objective: str, value: float) -> str:
    """The gain under an objective: "1.41x the throughput"."""
    return f"{factor(value)} {_GAINS[objective]}"


def listed(items: list[str], last: str = "and") -> str:
    """a, b and c."""
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + f" {last} " + items[-1]


_VENDOR_WORDS = ("NVIDIA ", "GeForce ", "AMD ", "Instinct ", "Intel ", "Apple ", "Google ")


@lru_cache(maxsize=1024)
def device(name: str) -> str:
    """A device without its vendor's words: NVIDIA GeForce RTX 3090 → RTX 3090."""
    for word in _VENDOR_WORDS:
        name = name.replace(word, "")
    return name


# A class of devices, and one device of it.
DEVICE_CLASSES = {
    "cpu": ("processors", "a processor"),
    "apple": ("Apple chips", "an Apple chip"),
    "edge": ("edge boards", "an edge board"),
    "apu": ("APUs", "an APU"),
    "consumer": ("consumer cards", "a consumer card"),
    "workstation": ("workstation cards", "a workstation card"),
    "datacenter": ("datacenter accelerators", "a datacenter accelerator"),
    "tpu": ("TPUs", "a TPU"),
    "accelerator": ("accelerators", "an accelerator"),
}


def rates(flops: Mapping[str, Any]) -> str:
    """The formats that a device multiplies: BF16, FP16 and INT8."""
    names = sorted({name.removesuffix("_acc16").upper() for name, rate in flops.items() if rate})
    return listed(names) or "none that is stated"


def format_name(name: str) -> str:
    """A format without its remarks: "KIVI 2-bit (keys per channel, …)" → KIVI 2-bit."""
    return name.split(" (")[0].split(",")[0].removesuffix(" KV cache")


def engine(name: str) -> str:
    """An engine without its remark in brackets: Plain FP16 (no fused kernels …) → Plain FP16."""
    return name.split(" (")[0]
