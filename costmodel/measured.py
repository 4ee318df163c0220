"""One measured row (columns of data/measurements.csv) as a scenario, and the quantity that its metric means."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from costmodel.catalogue import find_devices, find_model
from costmodel.efficiency import device_group, engine_class
from costmodel.engine_names import read_engine_name
from costmodel.errors import CostModelError
from costmodel.formats import find_format
from costmodel.paths import peak_flops, supports
from costmodel.specs import Deployment, Engine, Hardware, Model
from costmodel.units import GIB

# what is assumed where a source does not say; stated in the row's reason
PROMPT_UNKNOWN = 64.0
OUTPUT_UNKNOWN = 128.0
TIME_METRICS = {
    "decode_tok_s_per_seq": "decode", "decode_tok_s_total": "decode", "tpot_ms": "decode",
    "ms_per_out_token_amortized": "throughput", "prefill_tok_s": "prefill", "ttft_ms": "prefill",
    "throughput_out_tok_s": "throughput", "throughput_out_tok_s_per_gpu": "throughput",
    "throughput_total_tok_s": "throughput", "throughput_total_tok_s_per_gpu": "throughput",
    "req_s": "throughput", "e2e_latency_ms": "e2e",
}  # fmt: skip
MEMORY_METRICS = ("peak_mem_gb", "oom")
MLPERF_TOKENS = 294.0  # mean prompt of OpenOrca, MLPerf's data for Llama-2-70B
SHAREGPT_TOKENS = (161.0, 338.0)  # mean prompt and answer (Kwon et al. 2023, arXiv:2309.06180, Figure 11)
HOST_UNITS_SHARE = (
    0.03  # of a server's matrix rate that experts reach on it (KTransformers: 4 to 10 of 262 TFLOP/s)
)
BITS_APART = 1.0  # a format named inside a longer name is taken where its width is near the stated one
HOST_MEMORY_BYTES = 200e9  # of a host that offloads, where a source does not say
ROOM_SHARE = 0.65  # of the memory that weights may fill in a replica tuned for throughput
FLASH_DEFAULT_YEAR = 2025.6  # llama.cpp ran unfused attention unless told otherwise
UNKNOWN = "?"  # stands for an engine that no list holds
LARGEST = "max"  # batch: as many as memory holds
MOST_SEQUENCES = {"serving": 256.0, "serving-2023": 256.0, "tensorrt": 2048.0}  # engines' own default limits
STATIC_FAMILIES = ("roofline", "eager", "fused", "exllama", "compiled", "mlc", "gaudi", "mobile", "ft", "mlx")
# first release of a year, for engines that name versions only
VERSION_YEARS: dict[str, tuple[tuple[tuple[int, ...], float], ...]] = {
    "vllm": (((0, 1), 2023.5), ((0, 3), 2024.1), ((0, 5), 2024.5), ((0, 7), 2025.1), ((0, 12), 2026.0)),
    "tensorrt-llm": (
        ((0, 5), 2023.8),
        ((0, 8), 2024.2),
        ((0, 10), 2024.5),
        ((0, 16), 2025.0),
        ((1, 0), 2025.7),
    ),
    "sglang": (((0, 1), 2024.1), ((0, 3), 2024.7), ((0, 4), 2025.0)),
    "tgi": (((0, 8), 2023.5), ((1, 0), 2023.6), ((2, 0), 2024.3), ((3, 0), 2025.0)),
}


@dataclass(slots=True)
class Case:
    """One row, ready to be priced; `reason` says why it cannot be, or what was assumed."""

    id: str
    metric: str
    measured: float | None
    source: str
    engine_name: str
    hardware_name: str
    phase: str = ""  # decode | prefill | throughput | e2e | memory
    model: Model | None = None
    hardware: Hardware | None = None
    engine: Engine | None = None
    kind: str = ""  # engine class
    group: str = ""  # device group
    batch: float = 1.0
    largest_batch: bool = False
    input_tokens: float = 0.0
    output_tokens: float = 1.0
    context_tokens: float = 0.0
    devices: float = 1.0
    replicas: float = 1.0  # independent copies of the model that share the load
    deployment: Deployment | None = None
    memory_override: float | None = None  # bytes of one device, where the row says so
    familiar: bool = True  # the engine's name is known
    refused: bool = False
    reason: str = ""

    @property
    def engine_key(self) -> str:
        """Engine and runtime class: an engine of another era has no measurements of its own, nor has an unknown one."""
        if not self.familiar:
            return f"{UNKNOWN}/{self.kind}"
        return f"{self.engine.slug if self.engine else ''}/{self.kind}"

    notes: str = ""
    output_stated: bool = False  # the row says how many tokens were generated


def year_of(engine: str, version: str, dated: str) -> float:
    """Release year of an engine: from its version number, a date in the version, or the source's date; 0 unknown."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version.strip())
    if numbers and engine in VERSION_YEARS:
        key = (int(numbers[1]), int(numbers[2]))
        years = [year for first, year in VERSION_YEARS[engine] if first <= key]
        if years:
            return years[-1]
    for text in (version, dated):
        month = re.search(r"(20[12]\d)[-/.](\d\d)", text)
        if month:
            return int(month[1]) + (min(int(month[2]), 12) - 1) / 12
    plain = re.search(r"(20[12]\d)", f"{version} {dated}")
    return float(plain[1]) if plain else 0.0


@lru_cache(maxsize=512)
def dated_engine(
    name: str, version: str, dated: str, group: str = "", weight_format: str = ""
) -> tuple[Engine, bool]:
    """The engine a row names, with the row's version and year, and whether its name is known."""
    engine, in_name, familiar = read_engine_name(name, group, weight_format)
    version = version or in_name
    year = year_of(engine.slug, version, dated)
    return replace(engine, version=version or engine.version, year=year), familiar


@lru_cache(maxsize=512)
def devices_named(text: str) -> tuple[Hardware, ...]:
    """Devices of a row, `a+b` for mixed machines."""
    return tuple(found.spec for found in find_devices(text))


@lru_cache(maxsize=1024)
def model_named(text: str) -> Model:
    """The model a row names."""
    return find_model(text).spec


@lru_cache(maxsize=1024)
def format_named(text: str, bits: str) -> str:
    """A weight format's slug; where the name is unknown, that of a format named in it, or the stated width.

    >>> format_named("int4-awq", ""), format_named("my-format", "3.5")
    ('w4a16-awq-g128', '3.5bpw')
    """
    try:
        return find_format(text).slug or text
    except CostModelError:
        width = _number(bits)
        for word in sorted(re.split(r"[\s\-_/()+,]+", text.lower()), key=_generic_word):
            try:
                found = find_format(word)
            except CostModelError:
                continue
            if word and (width is None or abs(found.bits_per_weight - width) < BITS_APART):
                return found.slug
        if width and width > 0:
            return find_format(f"{width:g}bpw").slug or f"{width:g}bpw"
        stated = re.search(r"(?:int|fp|w|q)_?(\d{1,2})(?!\d)", text.lower())
        if stated and 1 <= int(stated[1]) <= 32:
            return f"{stated[1]}bpw"
        raise


def _generic_word(word: str) -> bool:
    """True for words that say a width only, which a method's name beside them makes precise."""
    return re.fullmatch(r"(int|fp|w|q)?\d+(bits?|wo)?", word) is not None


def mixed_device(parts: tuple[Hardware, ...]) -> Hardware:
    """One device standing for several different ones that split the layers evenly: harmonic means of the rates."""
    first = parts[0]
    count = len(parts)
    flops = {}
    for path in first.flops:
        rates = [part.flops.get(path) for part in parts]
        if all(rates):
            flops[path] = count / sum(1.0 / rate for rate in rates if rate)
    return replace(
        first,
        slug="+".join(part.slug for part in parts),
        name=" + ".join(part.name for part in parts),
        memory_bytes=min(part.memory_bytes for part in parts),
        bandwidth_bytes_per_s=count / sum(1.0 / part.bandwidth_bytes_per_s for part in parts),
        flops=flops,
    )


def _number(text: str | None) -> float | None:
    """A finite number of a cell, else None; thousands may be set off by commas."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _count_of(text: str) -> tuple[float, str]:
    """`2x A100` → 2 and the device; products whose name begins with a digit keep it.

    >>> _count_of("8 x H100-SXM"), _count_of("4090")
    ((8.0, 'H100-SXM'), (1.0, '4090'))
    """
    found = re.fullmatch(r"\s*(\d{1,3})\s*[x×*]\s*(\D.*|\d{4}.*)", text, re.I)
    return (float(found[1]), found[2]) if found else (1.0, text)


def _count_text(text: str | None) -> str:
    """`2x`, `x2`, `2 GPUs` → `2`."""
    found = re.fullmatch(
        r"\s*x?\s*(\d+(?:\.\d+)?)\s*(?:x|×|gpus?|devices?|chips?|cards?)?\s*", text or "", re.I
    )
    return found[1] if found else (text or "")


def _layout(row: dict[str, str], devices: float, engine: Engine) -> dict[str, Any]:
    text = (row.get("parallelism") or "").lower()
    found = re.fullmatch(r"tp[ =]?(\d+)?(?:[ ,+x]*pp[ =]?(\d+))?(?:[ ,+x]*ep[ =]?(\d+))?.*", text)
    if text.startswith("pp") and "unspecified" not in text:
        stages = re.match(r"pp(\d+)", text)
        return {"tensor_parallel": 1.0, "pipeline_parallel": float(stages[1]) if stages else devices}
    if found and devices > 1:
        groups = float(found[2] or 1)
        tensor = float(found[1] or devices / groups)
        fields: dict[str, Any] = {"tensor_parallel": tensor, "pipeline_parallel": max(devices / tensor, 1.0)}
        if found[3]:
            fields["expert_parallel"] = float(found[3])
        return fields
    if "tp" in text and devices > 1 and not text.startswith("pp/"):
        return {"tensor_parallel": devices, "pipeline_parallel": 1.0}
    return {}


def _link(text: str) -> str | None:
    low = text.lower()
    if not low:
        return None
    if low.startswith("pcie"):
        return "pcie"
    if "ethernet" in low:
        return "ethernet"
    return None


def _activations(row: dict[str, str], kind: str, hardware: Hardware, weight_format: str) -> str:
    fmt = find_format(weight_format)
    notes = f"{row.get('technique_notes', '')} {row.get('notes', '')}".lower()
    if fmt.direct == "fp8" and supports(hardware, "fp8"):
        return "fp8"
    if fmt.direct == "fp4" and supports(hardware, "fp4") and fmt.slug == "nvfp4":
        return "nvfp4"
    if "smoothquant" in notes or "w8a8" in notes:
        return "int8"
    return "fp16"


def read_case(row: dict[str, str]) -> Case:
    """The scenario of one row; refused with a reason where something has no price."""
    metric = (row.get("metric") or "").strip()
    case = Case(
        id=row.get("id", ""), metric=metric, measured=_number(row.get("value")), source=row.get("source", ""),
        engine_name=row.get("engine", ""), hardware_name=row.get("hardware", ""),
        notes=row.get("notes", ""), output_stated=bool((row.get("output_tokens") or "").strip()),
    )  # fmt: skip
    try:
        _fill(case, row)
    except CostModelError as error:
        case.refused = True
        case.reason = f"{error.message}: {error.hint}" if error.hint else error.message
    return case


def _fill(case: Case, row: dict[str, str]) -> None:
    metric = case.metric
    if metric not in TIME_METRICS and metric not in MEMORY_METRICS:
        known = ", ".join((*TIME_METRICS, *MEMORY_METRICS))
        raise CostModelError(f"metric {metric!r} is not one that is priced", hint=f"known: {known}")
    case.phase = TIME_METRICS.get(metric, "memory")
    several, names = _count_of(row.get("hardware") or "")
    parts = devices_named(names)
    hosts = [part for part in parts if part.device_class == "cpu"]
    cards = [part for part in parts if part.device_class != "cpu"]
    hybrid = bool(hosts and cards)
    hardware = (cards or hosts)[0] if len(cards or hosts) == 1 else mixed_device(tuple(cards or hosts))
    model = model_named(row.get("model") or "")
    weight_format = format_named(row.get("weight_format") or "fp16", row.get("bits_per_weight") or "")
    case.group = device_group(hardware)
    engine, case.familiar = dated_engine(
        row.get("engine") or "", row.get("engine_version") or "", row.get("source_date_or_commit") or "",
        case.group, weight_format,
    )  # fmt: skip
    case.model, case.hardware, case.engine = model, hardware, engine
    case.kind = engine_class(engine)
    case.devices = max(_number(_count_text(row.get("n_devices"))) or several, 1.0)
    notes = f"{row.get('technique_notes') or ''} {row.get('notes') or ''}".lower()

    batch_text = (row.get("batch_or_concurrency") or "").strip().lower()
    case.largest_batch = batch_text.startswith(LARGEST)
    if not batch_text and case.phase == "throughput" and engine.preallocates:
        case.largest_batch = True
        assumed_batch = ["batch: as many as memory holds assumed"]
    else:
        assumed_batch = []
    case.batch = 1.0 if case.largest_batch else (_number(batch_text) or 1.0)
    given_in, given_out = _number(row.get("input_tokens")), _number(row.get("output_tokens"))
    case.context_tokens = _number(row.get("context_depth_tokens")) or 0.0
    if given_in is None and given_out is None and "sharegpt" in notes:
        given_in, given_out = SHAREGPT_TOKENS
        if not (row.get("batch_or_concurrency") or "").strip():
            case.largest_batch = True
    assumed = assumed_batch
    if given_in is None and engine.slug.startswith("mlperf"):
        given_in = MLPERF_TOKENS
    if given_in is None and metric not in MEMORY_METRICS:
        assumed.append(f"input_tokens {PROMPT_UNKNOWN:g} assumed")
    if given_out is None and case.phase != "prefill" and metric not in MEMORY_METRICS:
        assumed.append(f"output_tokens {OUTPUT_UNKNOWN:g} assumed")
    case.input_tokens = PROMPT_UNKNOWN if given_in is None else given_in
    case.output_tokens = OUTPUT_UNKNOWN if given_out is None else given_out
    if not case.familiar or engine.slug.startswith("mlperf-"):
        assumed.append(f"engine {row.get('engine')!r} priced as {engine.name}")

    stated = (row.get("parallelism") or "").strip().lower()
    free_layout = not stated or "unspecified" in stated
    copies = re.search(r"dp[ =x]?(\d+)", stated)
    if copies and case.phase == "throughput":
        case.replicas = max(min(float(copies[1]), case.devices), 1.0)
    elif case.phase == "throughput" and case.devices > 1 and case.largest_batch and free_layout:
        case.replicas = case.devices / smallest_group(model, hardware, weight_format, case.devices)
        assumed.append(f"{case.replicas:g} independent replicas assumed")
    case.devices = case.devices / case.replicas
    fields: dict[str, Any] = _layout(row, case.devices, engine)
    kv = (row.get("kv_format") or "").strip()
    if kv:
        try:
            find_format(kv, "kv", "kv_format")
        except CostModelError:
            assumed.append(f"KV format {kv!r} is unknown: 16 bits assumed")
            kv = ""
    static = "static" in notes or case.kind in STATIC_FAMILIES or case.kind.startswith("llama.cpp")
    fields.update(
        weight_format=weight_format, kv_format=kv or str(engine.defaults.get("kv_format") or "fp16"),
        activation_format=_activations(row, case.kind, hardware, weight_format), devices=case.devices,
        interconnect=_link(row.get("interconnect") or ""),
    )  # fmt: skip
    if static and case.phase != "memory":
        fields["continuous_batching"] = False
    chunk = re.search(r"(?:chunked prefill|microbatch|ubatch) (\d+)", notes)
    if chunk:
        fields["chunk_tokens"] = float(chunk[1])
    experts = re.search(r"(\d+) experts", notes)
    if experts and model.active_experts and float(experts[1]) < model.active_experts:
        fields["active_experts_kept"] = float(experts[1]) / model.active_experts
    memory = re.search(r"machine memory (\d+) ?gb", notes)
    if memory:
        case.memory_override = float(memory[1]) * GIB
    if hybrid:
        fields.update(host_share(model, hardware, weight_format, case.devices), host_compute=True)
        fields.update(
            host_memory_bytes_per_s=hosts[0].bandwidth_bytes_per_s,
            host_flops_per_s=peak_flops(hosts[0], "fp16") * HOST_UNITS_SHARE,
        )
        assumed.append("weights beyond the cards' memory are multiplied by the host's processor")
    if "kernel=gemv" in notes:
        fields["weight_kernel"] = "gemv"
    elif "kernel=gemm" in notes:
        fields["weight_kernel"] = "naive"
    if "generator=hf" in notes:
        fields["decode_attention_kernel"] = fields["attention_kernel"] = "eager"
    if engine.family == "llama.cpp" and engine.year < FLASH_DEFAULT_YEAR and "fa=1" not in notes:
        fields["attention_kernel"] = "eager"
    if not hybrid and ("offload" in notes or engine.family == "offload"):
        placed = host_share(model, hardware, weight_format, case.devices)
        stored = model.total_params * find_format(weight_format).bytes_per_weight
        on_disk = max(0.0, placed["host_weight_share"] - HOST_MEMORY_BYTES / max(stored, 1.0))
        fields.update(host_weight_share=placed["host_weight_share"] - on_disk, disk_weight_share=on_disk)
        fields["offload_overlap"] = float(engine.defaults.get("offload_overlap", 0.0))
        assumed.append("weights beyond the cards' memory stream from the host, beyond 200 GB from disk")
    threads = _number(row.get("threads"))
    if threads and hardware.device_class == "cpu":
        fields["threads"] = threads
    case.deployment = Deployment(**fields)
    case.reason = "; ".join(assumed)


def smallest_group(model: Model, hardware: Hardware, weight_format: str, devices: float) -> float:
    """Fewest devices (a power of two) on which the weights leave a third of the memory to the cache."""
    from costmodel.params import count_parameters

    stored = count_parameters(model).total * find_format(weight_format).bytes_per_weight
    group = 1.0
    while group < devices and stored > ROOM_SHARE * hardware.memory_bytes * group:
        group *= 2.0
    return group


def host_share(model: Model, hardware: Hardware, weight_format: str, devices: float) -> dict[str, Any]:
    """What a machine of cards and processors keeps on the host: experts, or the layers beyond the cards' memory."""
    from costmodel.params import count_parameters

    counts = count_parameters(model)
    if counts.experts:
        share = counts.experts / counts.linear
    else:
        stored = counts.linear * find_format(weight_format).bytes_per_weight
        room = 0.85 * hardware.memory_bytes * devices
        share = max(0.0, 1.0 - room / stored)
    return {"host_weight_share": share}
