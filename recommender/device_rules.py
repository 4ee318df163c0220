"""What a device rules out: units it lacks, vendors and classes a technique is made for, engines that do not run on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recommender import text
from recommender.engines import names, runnable
from recommender.knowledge import Knowledge
from recommender.refusals import Refusal
from recommender.situation import Situation
from taxonomy.model import Requirement, Technique

# Device families by NVIDIA compute capability, for sentences only.
_CAPABILITY_NAMES = {7.0: "Volta", 7.5: "Turing", 8.0: "Ampere", 8.9: "Ada", 9.0: "Hopper", 10.0: "Blackwell"}

# The first NVIDIA generation whose matrix units multiply a format.
FIRST_CAPABILITY = {"int8": 7.5, "int4": 7.5, "fp8": 8.9, "fp4": 10.0}

_NO_DEMAND = Requirement()


def device_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge
) -> list[Refusal]:
    """What the device cannot do and what nobody ships for it; the same in every question about this device."""
    return [
        *hardware_refusals(technique, changes, situation),
        *software_refusals(technique, changes, situation, knowledge),
    ]


def hardware_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation
) -> list[Refusal]:
    """What the device cannot do."""
    need, device = technique.requires, situation.hardware
    activation = changes.get("activation_format")
    narrow = isinstance(activation, str) and activation in ("fp8", "int8", "fp4", "int4")
    if need == _NO_DEMAND and not narrow:
        return []
    code, name_of_device = "unsupported-hardware", text.device(device.name)
    found = []
    wanted = list(need.compute_formats)
    if narrow and activation not in wanted:
        wanted.append(str(activation))
    capability = device.compute_capability
    for name in wanted:
        oldest = FIRST_CAPABILITY.get(name)
        if device.flops.get(name) and capability is not None and oldest and capability < oldest:
            # Pascal and Volta multiply 8-bit integers in their ordinary units, no faster than 16 bits.
            since = _CAPABILITY_NAMES[oldest]
            found.append(
                Refusal(code, f"{name_of_device} has no {name.upper()} matrix units; {since} was the first.")
            )
        elif not device.flops.get(name):
            known = text.rates(device.flops)
            found.append(
                Refusal(code, f"{name_of_device} has no {name.upper()} matrix units; it multiplies {known}.")
            )
    if need.sparsity_2_4 and not device.sparsity_2_4:
        since = f" ({device.architecture.capitalize()})" if capability is not None else ""
        found.append(
            Refusal(code, f"{name_of_device}{since} has no units for 2:4 sparsity; Ampere was the first.")
        )
    # A user's own device may leave its vendor open ("user"): then nothing is ruled out by it.
    vendors = [vendor.lower() for vendor in need.vendors]
    if vendors and device.vendor.lower() not in [*vendors, "user"]:
        found.append(
            Refusal(
                code,
                f"runs on {text.listed(list(need.vendors))} devices only; {name_of_device} is from {device.vendor}.",
            )
        )
    if need.device_classes and device.device_class not in need.device_classes:
        plural = text.listed([text.DEVICE_CLASSES[name][0] for name in need.device_classes])
        one = text.DEVICE_CLASSES[device.device_class][1]
        found.append(Refusal(code, f"is made for {plural}; {name_of_device} is {one}."))
    needed = need.min_compute_capability
    if needed is not None and device.compute_capability is not None and device.compute_capability < needed:
        family = max((value for value in _CAPABILITY_NAMES if value <= needed), default=None)
        name = f" ({_CAPABILITY_NAMES[family]})" if family else ""
        found.append(
            Refusal(
                code,
                f"needs compute capability {needed:.1f}{name}; {name_of_device} has {device.compute_capability:.1f}.",
            )
        )
    if need.host_link and not device.host_bytes_per_s:
        found.append(Refusal(code, f"{name_of_device} has no separate host memory to move data to."))
    return found


def software_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge
) -> list[Refusal]:
    """A technique that only engines for other devices ship."""
    offered = knowledge.shipped_by(technique.slug)
    device = situation.hardware
    able = runnable(device.vendor, device.device_class)
    if "weight_format" in changes and device.device_class in ("cpu", "apple"):
        able -= {"hf", "accelerate"}  # their quantized layers are CUDA kernels
    if not offered or able.intersection(offered):
        return []
    kind = "processors" if device.device_class == "cpu" else f"{device.vendor} devices"
    verb = "ship" if len(offered) > 1 else "ships"
    return [Refusal("unsupported-hardware", f"{names(offered[:3])} {verb} it, but not for {kind}.")]
