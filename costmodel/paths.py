"""Which matrix path a weight format takes on a device, how fast it is, and what decoding the weights costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from costmodel.efficiency import HIGHEST_SHARE, Rates, packaged_rates, parameters, rates_for
from costmodel.formats import Format, find_format
from costmodel.numeric import distinct
from costmodel.operators import WHOLE_ROWS
from costmodel.specs import Engine, Hardware
from costmodel.tables import PROVENANCE, read_table
from costmodel.units import BITS_PER_BYTE

# FLOP per byte of bandwidth where a data sheet states no rate at all: processors of 2017 to 2024 have 15 to 30
FLOPS_PER_BYTE_UNKNOWN = 20.0
# Marlin and its kin use asynchronous copies of compute capability 8.0 (Frantar et al. 2024, arXiv:2408.11743)
TUNED_CAPABILITY = 8.0
TUNED_FAMILIES = ("awq", "gptq", "int4", "hqq", "fp4", "int")
# releases before such kernels came in (vLLM: Marlin for GPTQ with 0.4, for AWQ with 0.5.3, both of 2024)
BEFORE_TUNED = ("serving-2023",)
# runtimes whose own kernels are written for every device that they run on; the others borrow CUDA's
OWN_KERNELS = ("llama.cpp", "llama.cpp-2023", "ik_llama.cpp", "exllama", "mlc", "roofline")
WITHOUT_CUDA = ("amd-hbm", "amd-gddr", "intel-gpu")
# AMX peaks over the vector units' on which llama.cpp's formats are multiplied. data/hardware.csv derives its peaks with
# 2048 FLOP or 4096 integer operations per core and cycle; two AVX-512 units do 64, or 256 with VNNI (Intel's figures)
AMX_OVER_VECTOR = {"int8": 16.0}
AMX_OVER_VECTOR_FLOAT = 32.0
# MLX multiplies a few rows with quantized weights row after row: 4 rows take 3.3 times as long as one, 8 take 6.1, in
# 4 and in 8 bits, on an M3 Ultra (ml-explore/mlx#4265); releases from 0.32 read them once on the newest devices
MLX_READ_AGAIN = 0.74
NARROW_BITS = 6.0  # weights that mixed-precision kernels for few tokens are written for
# Those kernels divide the depth of a matrix among the multiprocessors, so that 16 to 32 rows are still read near the
# memory's rate (github.com/IST-DASLab/marlin; effects.csv E0817, E0818: 3.87x at 1 and at 16 rows on A10): as good as
# with one tile.
# 64 and 128 differ by less than 2 % on the shown measurements.
SPLIT_ROWS = 64.0
# Assumed: two of the smallest tiles, which libraries take for few rows; the shown rows do not decide between 16 and 64
# (the medians of `kb validate` are the same).
TILE_ROWS = 32.0
# Engines that multiply all experts in one kernel with such tiles, as their sources do; assumed of the roofline. The
# others run one product for each expert.
GROUPED_EXPERTS = ("serving", "tensorrt", "roofline")
ULTRA_BYTES_PER_S = 600e9  # two dies of Apple's Ultra parts behind one address space
# two memory channels of a desktop (DDR5-8000: 128 GB/s), which a few cores keep busy; a server has eight or more
FEW_CHANNELS_BYTES_PER_S = 130e9
# GGUF formats with scales of scales and packed minima, or code books: many instructions to unpack one weight
SUPER_BLOCKS = ("_k", "-iq")


class Path(NamedTuple):
    """How one pair of weight and activation formats is multiplied."""

    path: str  # fp16 | fp8 | fp4 | int8 | int4 | fp32
    flops_per_s: float  # achieved at large size
    bandwidth_share: float  # of the data sheet's, reading these weights
    weight_bytes: float
    head_bytes: float
    weight_only: bool  # narrower than 16 bits but multiplied in 16
    dequantize_factor: float  # time of the multiplication over that of plain 16-bit weights
    widened_bytes: float  # traffic per weight of writing it out in 16 bits before a large multiplication
    host_factor: float  # host time to issue a layer over that of plain weights
    thread_factor: float  # rate of a CPU core over that of plain formats
    batched_share: float  # of the bandwidth, where several tokens meet a weight
    read_again: float  # share of the weights' reading that each further row of a few costs anew
    expert_tile_rows: float  # the same of a multiplication of one expert
    tile_rows: float  # rows from which on a multiplication is underfilled as on prompts
    vector_factor: float  # rate of products with single vectors over that of plain weights


def peak_flops(hardware: Hardware, path: str, *, accumulates_16: bool = False) -> float:
    """Dense peak of one path, or of the next wider one where the device lacks it.

    Consumer cards multiply FP16 with FP32 accumulation at half the rate of FP16 accumulation (NVIDIA Ada
    whitepaper, appendix A); a part without matrix units runs FP16 at its FP32 rate.
    """
    flops = hardware.flops
    if path in ("fp4", "int4") and path not in flops:
        path = "fp8" if path == "fp4" else "int8"
    if path in ("fp8", "int8", "fp4", "int4") and flops.get(path):
        return flops[path]
    if path == "fp32" and flops.get("fp32"):
        return flops["fp32"]
    choices = [flops.get("fp16"), flops.get("bf16")]
    if accumulates_16:
        choices.insert(0, flops.get("fp16_acc16"))
    choices += [flops.get("fp32"), flops.get("fp16_acc16")]
    known = next((rate for rate in choices if rate), None)
    return known or hardware.bandwidth_bytes_per_s * FLOPS_PER_BYTE_UNKNOWN


def supports(hardware: Hardware, path: str) -> bool:
    """Whether the device multiplies this format without widening it."""
    return bool(hardware.flops.get(path))


class Units(NamedTuple):
    """What a device multiplies of narrow numbers without widening them."""

    paths: frozenset[str]
    integers_pay: (
        bool  # integer products are at least as fast as 16-bit ones: not on Volta, which has FP16 units only
    )


@lru_cache(maxsize=1024)
def units_of(hardware: Hardware) -> Units:
    """The narrow formats that the device has a rate for."""
    integer = hardware.flops.get("int8")
    pay = not integer or integer >= (hardware.flops.get("fp16") or 0.0)
    return Units(frozenset(path for path in NARROW_PATHS if supports(hardware, path)), pay)


NARROW_PATHS = ("fp8", "fp4", "int8", "int4")


def choose_path(units: Units, rates: Rates, weights: Format, activations: Format) -> str:
    """The path of the multiplication: as narrow as both operands and the device allow."""
    asked = weights.activation or activations.direct or "fp16"
    asked = find_format(asked, "activations").direct or "fp16"
    if weights.family == "gguf" and weights.is_quantized:
        # llama.cpp quantizes the activations itself where it multiplies in integers
        asked = "int8" if rates.integer_prefill and units.integers_pay else "fp16"
    if asked in ("fp16", "bf16") or weights.bits_per_weight >= 16:
        return "fp32" if weights.bits_per_weight >= 32 else "fp16"
    if asked in ("fp8", "fp4") and weights.direct in ("fp8", "fp4"):
        path = asked if weights.direct == asked else "fp8"
        return path if path in units.paths else "fp16"
    if asked in ("int8", "int4"):
        return asked if asked in units.paths else "int8" if "int8" in units.paths else "fp16"
    return "fp16"


@lru_cache(maxsize=1)
def format_rates() -> dict[tuple[str, str], float]:
    """(decode | multiply, format) → the format's own factor where its scheme's does not hold (data/format_rates.csv)."""
    rows = read_table("format_rates.csv", ("format", "what", "factor", *PROVENANCE))
    return {(row["what"], row["format"]): float(row["factor"]) for row in rows}


Formats = tuple[str, str, str | None]  # of weights and activations, and the kernel


@lru_cache(maxsize=1024)
def known_paths(hardware: Hardware, engine: str, kernel: str) -> dict[Formats, Path]:
    """A place for the paths of one device under one engine class with its usual kernel, to be filled."""
    return {}


def path_for(
    hardware: Hardware, engine: Engine, weight_format: str, activation_format: str, weight_kernel: str | None
) -> Path:
    """The path of one pair of formats on one device under one engine."""
    return paths_for(hardware, engine, [(weight_format, activation_format, weight_kernel)])[0]


def paths_for(hardware: Hardware, engine: Engine, wanted: Sequence[Formats]) -> list[Path]:
    """The paths of several pairs of formats on one device under one engine."""
    rates = rates_for(hardware, engine)
    usual = str(engine.defaults.get("weight_kernel") or "tuned")
    known = known_paths(hardware, rates.engine, usual)
    missing = [formats for formats in wanted if formats not in known]
    if missing:
        if len(known) >= KEPT_PATHS:
            known.clear()
            missing = list(wanted)
        units, old = units_of(hardware), has_old_kernels(rates, hardware)
        shares = [
            shares_of(rates.group, rates.engine, units, old, weights, activations, kernel or usual)
            for weights, activations, kernel in missing
        ]
        known.update(zip(missing, on_device(parameters(), rates, hardware, shares), strict=True))
    return [known[formats] for formats in wanted]


@lru_cache(maxsize=16384)
def shares_of(
    group: str, engine: str, units: Units, old: bool, weights: str, activations: str, kernel: str
) -> Path:
    """`of_format` for a device group and an engine class under the packaged values: devices of a group share it."""
    values, stored = parameters(), find_format(weights)
    rates = packaged_rates(group, engine)
    multiplied = find_format(activations, "activations", "activation_format")
    return of_format(values, rates, stored, choose_path(units, rates, stored, multiplied), kernel, old)


KEPT_PATHS = 512  # of one device and engine class; widths that a user states are without number


def host_family(weights: Format) -> str:
    """Formats that cost a Python framework alike: LLM.int8 splits off outliers, group-wise INT8 is GPTQ's."""
    if not weights.is_quantized:
        return "plain"
    if weights.family == "int8":
        return "gptq" if weights.group_size else "llm_int8"
    return weights.family


def make_path(
    values: Mapping[str, float],
    rates: Rates,
    hardware: Hardware,
    weights: Format,
    activations: Format,
    kernel: str,
) -> Path:
    """The path, from the values of data/efficiency.csv."""
    path = choose_path(units_of(hardware), rates, weights, activations)
    shares = of_format(values, rates, weights, path, kernel, has_old_kernels(rates, hardware))
    return on_device(values, rates, hardware, [shares])[0]


def on_device(
    values: Mapping[str, float], rates: Rates, hardware: Hardware, found: Sequence[Path]
) -> list[Path]:
    """Paths of `of_format` with the rates of the device: FLOP/s, and the share of its bandwidth."""
    bandwidth = rates.bandwidth_share
    if rates.engine != "roofline":
        if rates.group == "apple" and hardware.bandwidth_bytes_per_s > ULTRA_BYTES_PER_S:
            bandwidth *= values.get("bandwidth.ultra", 1.0)
        if rates.group == "cpu":
            if hardware.slug.endswith("-2s"):
                bandwidth *= values.get("bandwidth.two_sockets", 1.0)
            if hardware.bandwidth_bytes_per_s < FEW_CHANNELS_BYTES_PER_S:
                bandwidth = min(bandwidth * values.get("bandwidth.few_channels", 1.0), HIGHEST_SHARE)
    peaks = {}
    for path in {shares.path for shares in found}:
        peaks[path] = peak_flops(hardware, path, accumulates_16=rates.accumulates_16)
        if hardware.architecture == "x86-amx" and "llama.cpp" in rates.engine:
            peaks[path] /= AMX_OVER_VECTOR.get(path, AMX_OVER_VECTOR_FLOAT)
    return [
        shares._replace(
            flops_per_s=peaks[shares.path] * shares.flops_per_s,
            bandwidth_share=bandwidth * shares.bandwidth_share,
        )
        for shares in found
    ]


def has_old_kernels(rates: Rates, hardware: Hardware) -> bool:
    """Whether the tuned kernels for narrow weights do not run on the device, or came after the engine's release."""
    old = hardware.compute_capability is not None and hardware.compute_capability < TUNED_CAPABILITY
    borrowed = rates.group in WITHOUT_CUDA and rates.engine not in OWN_KERNELS
    return old or borrowed or rates.engine in BEFORE_TUNED


def of_format(
    values: Mapping[str, float], rates: Rates, weights: Format, path: str, kernel: str, old: bool
) -> Path:
    """A path as far as the format decides: `flops_per_s` is a share of the peak, `bandwidth_share` of the plain one."""
    ideal = rates.engine == "roofline"
    weight_only = weights.is_quantized and path in ("fp16", "fp32")
    narrow = weights.is_quantized and not weight_only
    share = rates.quantized_compute_share if narrow else rates.compute_share
    if narrow and not ideal:
        share *= format_rates().get(("multiply", weights.slug), 1.0)
    if weights.scheme == "codebook" and kernel != "naive":
        kernel = "lut"
    if kernel == "tuned" and old and weights.family in TUNED_FAMILIES:
        kernel = "naive"
    bandwidth = dequantize = 1.0
    if weights.is_quantized and not ideal:
        scheme = values.get(f"decode_scheme.{weights.scheme}", 1.0)
        bandwidth = format_rates().get(("decode", weights.slug), scheme) * values.get(
            f"decode_kernel.{kernel}", 1.0
        )
        if weight_only and not rates.widens_first:
            dequantize = values.get(f"dequantize.{kernel}", 1.1)
    small_tables = weights.scheme == "lut" and weights.bits_per_weight < 4.0
    host_cost = values.get(f"host_format.{host_family(weights)}", 1.0)
    # kernels for a few tokens and narrow weights (Marlin's kind) read them slower than a matrix-vector kernel does
    small_tiles = (
        weight_only
        and not ideal
        and kernel == "tuned"
        and weights.bits_per_weight < NARROW_BITS
        and weights.family != "gguf"
        and not rates.group.startswith("cpu")
    )
    tile_rows = SPLIT_ROWS if small_tiles else WHOLE_ROWS if weight_only and kernel == "naive" else TILE_ROWS
    packed = weights.family == "gguf" and weights.bits_per_weight < BITS_PER_BYTE
    packing = "super" if any(mark in weights.slug for mark in SUPER_BLOCKS) else "plain"
    # without matrix units the same lanes unpack and multiply: unpacking shows where the memory is fast for the lanes
    unpack = values.get(f"vector_unpack.{packing}.{rates.group}", share) if packed and not ideal else share
    return Path(
        path=path,
        flops_per_s=share,
        bandwidth_share=bandwidth,
        weight_bytes=weights.bits_per_weight / BITS_PER_BYTE,
        head_bytes=weights.head_bits / BITS_PER_BYTE,
        weight_only=weight_only,
        dequantize_factor=dequantize,
        # read as stored, write 16 bits, read them back
        widened_bytes=weights.bits_per_weight / BITS_PER_BYTE + 4.0
        if weight_only and rates.widens_first
        else 0.0,
        host_factor=1.0 if ideal or rates.group.startswith("cpu") else host_cost,
        thread_factor=values.get(f"thread_scheme.small_lut.{rates.engine}", 1.0) if small_tables else 1.0,
        batched_share=values.get("decode_kernel.batched", 1.0) if small_tiles else 1.0,
        read_again=MLX_READ_AGAIN if rates.engine == "mlx" and weights.is_quantized else 0.0,
        tile_rows=tile_rows,
        expert_tile_rows=tile_rows if rates.engine in GROUPED_EXPERTS else WHOLE_ROWS,
        vector_factor=unpack / share,
    )


def paths(
    hardware: Hardware, engine: Engine, weight_format: Any, activation_format: Any, weight_kernel: Any
) -> Path:
    """`path_for`, broadcast over arrays of format names; every field an array then."""
    if not any(isinstance(value, np.ndarray) for value in (weight_format, activation_format, weight_kernel)):
        return path_for(hardware, engine, weight_format, activation_format, weight_kernel)
    names: list[Any] = []
    codes: list[Any] = []
    for value in (weight_format, activation_format, weight_kernel):
        if isinstance(value, np.ndarray):
            unique, inverse = distinct(value)
            names.append([None if name == "None" else name for name in unique])
            codes.append(inverse.reshape(value.shape))
        else:
            names.append([value])
            codes.append(np.zeros((), dtype=int))
    second, third = len(names[1]), len(names[2])
    index = (codes[0] * second + codes[1]) * third + codes[2]
    # of all combinations only those that occur
    occurs = np.zeros(len(names[0]) * second * third, dtype=bool)
    occurs[index] = True
    place = (np.cumsum(occurs) - 1)[index]
    wanted = [
        (names[0][i // (second * third)], names[1][i // third % second], names[2][i % third])
        for i in np.flatnonzero(occurs).tolist()
    ]
    return Path(*(spread(column, place) for column in zip(*paths_for(hardware, engine, wanted), strict=True)))


def spread(column: Sequence[Any], place: Any) -> Any:
    """`column[i]` for each i of `place`; the value itself where all are the same."""
    return column[0] if len(set(column)) == 1 else np.array(column)[place]
