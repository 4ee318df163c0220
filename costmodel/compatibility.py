"""What a device or an engine cannot do, in words: such a case is priced all the same, and the estimate says so."""

from __future__ import annotations

from costmodel.formats import find_format
from costmodel.specs import Engine, Hardware

# first NVIDIA compute capability whose matrix units multiply a format (CUDA programming guide, arithmetic tables)
FIRST_CAPABILITY = {"fp8": (8.9, "Ada or Hopper"), "fp4": (10.0, "Blackwell"), "int8": (7.5, "Turing")}


def lacks_path(hardware: Hardware, path: str) -> str | None:
    """Why the device does not multiply `path` (fp8, fp4, int8 …) as it is; None where it does.

    >>> from costmodel.specs import Hardware
    >>> a6000 = Hardware(slug="a6000", name="RTX A6000", vendor="NVIDIA", device_class="workstation",
    ...                  compute_capability=8.6, memory_bytes=1.0, bandwidth_bytes_per_s=1.0, flops={"fp16": 1.0})
    >>> lacks_path(a6000, "fp8")
    'RTX A6000 has no FP8 matrix units (SM 8.6; needs SM 8.9 or later: Ada or Hopper)'
    """
    if path in ("", "fp16", "bf16", "fp32") or hardware.flops.get(path):
        return None
    needs = ""
    if hardware.compute_capability and path in FIRST_CAPABILITY:
        first, names = FIRST_CAPABILITY[path]
        needs = f" (SM {hardware.compute_capability:g}; needs SM {first:g} or later: {names})"
    return f"{hardware.name} has no {path.upper()} matrix units{needs}"


def mismatches(
    hardware: Hardware,
    engine: Engine,
    *,
    weight_format: str = "fp16",
    kv_format: str = "fp16",
    activation_format: str = "fp16",
) -> list[str]:
    """Remarks on a deployment that this engine or this device does not offer."""
    found = []
    weights = find_format(engine.format_aliases.get(weight_format.lower(), weight_format))
    if engine.formats and weights.family not in engine.formats and weights.family != "float":
        found.append(f"{engine.name} does not load {weights.slug}; priced as if it did")
    cache = find_format(kv_format, "kv", "kv_format").slug
    own = {find_format(name, "kv").slug for name in engine.kv_formats} | {"fp16", "bf16"}
    if engine.kv_formats and cache not in own:
        found.append(f"{engine.name} does not keep its KV cache in {cache}; priced as if it did")
    activations = weights.activation or activation_format
    path = find_format(activations, "activations", "activation_format").direct
    reason = lacks_path(hardware, path)
    if reason:
        found.append(f"{reason}: weights are widened and multiplied in 16 bits")
    return found
