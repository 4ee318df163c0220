"""What an estimate says: what bounds it, its operators, its assumptions, and the JSON body of `kb estimate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from costmodel.efficiency import device_group, engine_class
from costmodel.numeric import is_scalar, maximum, where
from costmodel.operators import Operator
from costmodel.units import MILLISECONDS_PER_SECOND

if TYPE_CHECKING:
    from costmodel.estimate import Estimate

BOUNDS = ("compute", "memory", "interconnect", "overhead")
OVERHEAD_TERMS = ("launch", "framework", "draft", "queue", "prompt_compression")
LINK_TERMS = ("interconnect", "offload", "cache_transfer")
BOTTLENECKS = (
    "weight-bandwidth", "kv-bandwidth", "compute", "weight-capacity", "kv-capacity", "attention-io",
    "sequential-decoding", "scheduling", "interconnect", "prompt-length", "launch-overhead",
)  # fmt: skip

# rough: a card draws this share of its TDP while it serves; it is written off over three years; US retail power
POWER_SHARE = 0.7
LIFETIME_S = 3 * 365 * 86400.0
USD_PER_JOULE = 0.12 / 3.6e6
TOKENS_PER_PRICE = 1e6


def _largest(names: tuple[str, ...], amounts: list[Any]) -> Any:
    """Name of the largest amount, for one case or for each of many."""
    if is_scalar(*amounts):
        return names[amounts.index(max(amounts))]
    stacked = np.stack(np.broadcast_arrays(*amounts))
    return np.array(names)[np.argmax(stacked, axis=0)]


@dataclass(slots=True)
class Case:
    """Where the time of one case of an estimate goes, in plain numbers; seconds and bytes."""

    output_tokens: float
    tokens_per_step: float
    fits: bool
    weights_bytes: float
    available_bytes: float
    prefill_terms: dict[str, float]
    decode_terms: dict[str, float]
    prefill_operators: list[Operator]
    decode_operators: list[Operator]


def case_of(estimate: Estimate, pick: Callable[[Any], Any], *, counts: bool = True) -> Case:
    """The case that `pick` takes out of an array over the cases; without `counts` operators have times alone."""
    return Case(
        output_tokens=pick(estimate.output_tokens),
        tokens_per_step=pick(estimate.tokens_per_step),
        fits=pick(estimate.fits),
        weights_bytes=pick(estimate.weights_bytes),
        available_bytes=pick(estimate.available_bytes),
        prefill_terms=estimate.prefill.terms(pick),
        decode_terms=estimate.decode.terms(pick),
        prefill_operators=estimate.prefill.operators(pick, counts=counts),
        decode_operators=estimate.decode.operators(pick, counts=counts),
    )


def bound_of(operators: list[Operator], terms: dict[str, Any]) -> Any:
    """Which of compute, memory, interconnect and overhead takes most of a phase."""
    compute: Any = 0.0
    memory: Any = 0.0
    for operator in operators:
        limited = operator.compute_s > operator.memory_s
        compute = compute + operator.seconds * limited * (operator.link_s == 0.0)
        memory = memory + operator.seconds * (limited == 0) * (operator.link_s == 0.0)
    link = sum((terms[name] for name in LINK_TERMS if name in terms), 0.0)
    overhead = sum((terms[name] for name in OVERHEAD_TERMS if name in terms), 0.0)
    return _largest(BOUNDS, [compute, memory, link, overhead])


def bottleneck_of(estimate: Estimate | Case) -> Any:
    """The bottleneck, in the taxonomy's words, that costs most of a request's time; capacity first if it lacks."""
    steps = maximum(estimate.output_tokens - 1.0, 0.0)
    amounts: dict[str, Any] = dict.fromkeys(BOTTLENECKS, 0.0)

    def add(name: str, amount: Any) -> None:
        amounts[name] = amounts[name] + amount

    accepted = maximum(estimate.tokens_per_step, 1.0)
    for operator in estimate.decode_operators:
        limited = operator.compute_s > operator.memory_s
        seconds = operator.seconds * steps / accepted
        memory_name = "kv-bandwidth" if operator.name in ("attention", "kv_write") else "weight-bandwidth"
        if operator.name in ("all_reduce", "stage_transfer", "expert_exchange"):
            add("interconnect", seconds)
        elif operator.name == "norm_elementwise":
            add("launch-overhead", seconds)
        else:
            add("compute", seconds * limited)
            add(memory_name, seconds * (limited == 0))
    for operator in estimate.prefill_operators:
        limited = operator.compute_s > operator.memory_s
        if operator.name in ("all_reduce", "stage_transfer", "expert_exchange"):
            add("interconnect", operator.seconds)
        elif operator.name == "attention":
            add("prompt-length", operator.seconds * limited)
            add("attention-io", operator.seconds * (limited == 0))
        else:
            add("compute", operator.seconds * limited)
            add("weight-bandwidth", operator.seconds * (limited == 0))
    for terms, times in ((estimate.prefill_terms, 1.0), (estimate.decode_terms, steps)):
        for name, bottleneck in (
            ("launch", "launch-overhead"), ("framework", "launch-overhead"), ("offload", "weight-capacity"),
            ("queue", "scheduling"), ("draft", "sequential-decoding"), ("prefill_of_others", "prompt-length"),
            ("decode_of_others", "scheduling"), ("cache_transfer", "interconnect"),
        ):  # fmt: skip
            if name in terms:
                add(bottleneck, terms[name] * times)
    slowest = _largest(BOTTLENECKS, [amounts[name] for name in BOTTLENECKS])
    lacking = where(estimate.weights_bytes >= estimate.available_bytes, "weight-capacity", "kv-capacity")
    return where(estimate.fits, slowest, lacking)


def cost_and_energy(estimate: Estimate) -> tuple[Any, Any]:
    """US dollars per million tokens and joules per token; rough, from list price and TDP; None where unknown."""
    devices = estimate.layout.devices
    energy = None
    cost = None
    with np.errstate(over="ignore", divide="ignore"):  # a token that takes for ever costs infinitely much
        if estimate.hardware.tdp_w:
            energy = devices * estimate.hardware.tdp_w * POWER_SHARE / estimate.throughput_tok_s
        if estimate.hardware.price_usd:
            hardware = devices * estimate.hardware.price_usd / LIFETIME_S / estimate.throughput_tok_s
            power = 0.0 if energy is None else energy * USD_PER_JOULE
            cost = (hardware + power) * TOKENS_PER_PRICE
    return cost, energy


def pick(value: Any, index: Any, shape: tuple[int, ...]) -> Any:
    """One case's plain Python value out of a float or a broadcastable array."""
    if not isinstance(value, np.ndarray):
        return value.item() if isinstance(value, np.generic) else value
    if value.size == 1:
        return value.item()
    if index is None:
        raise IndexError("the estimate holds many cases: as_dict needs an index")
    return (value if value.shape == shape else np.broadcast_to(value, shape)).item(index)


def shape_of_cases(estimate: Estimate) -> tuple[int, ...]:
    """Shape over which the estimate's fields broadcast."""
    parts = (estimate.ttft_s, estimate.tpot_s, estimate.total_bytes, estimate.fits, estimate.e2e_s)
    return np.broadcast_shapes(*(np.shape(part) for part in parts))


def assumptions(estimate: Estimate, index: Any, shape: tuple[int, ...]) -> list[dict[str, Any]]:
    """What the figures rest on beyond the scenario, each with where it comes from."""
    engine, rates = estimate.engine, estimate.rates
    version = f" {engine.version}" if engine.version else ""
    rows: list[tuple[str, Any, str, str]] = [
        ("engine", f"{engine.name}{version}", engine.source, "the engine and version the overheads stand for"),
        ("engine class", engine_class(engine), "costmodel/data/efficiency.csv", "whose measured constants apply"),
        ("device group", device_group(estimate.hardware), "costmodel/data/efficiency.csv", "likewise"),
        ("device", estimate.hardware.name, estimate.hardware.source, "data sheet rates, dense"),
        ("matrix path", pick(estimate.path.path, index, shape), "costmodel/paths.py", "format the units multiply"),
        ("bandwidth share", pick(estimate.path.bandwidth_share, index, shape), "costmodel/data/efficiency.csv",
         "of the data sheet's, reading weights"),
        ("compute share", rates.compute_share, "costmodel/data/efficiency.csv", "of the path's peak, large sizes"),
        ("tensor parallel", pick(estimate.layout.tensor_parallel, index, shape), "layout", "devices sharing a layer"),
        ("pipeline parallel", pick(estimate.layout.pipeline_parallel, index, shape), "layout",
         "groups of layers, one after another"),
        ("power and price", f"{POWER_SHARE:g} of TDP, list price over 3 years, 0.12 USD/kWh", "rough", "assumed"),
    ]  # fmt: skip
    return [{"name": n, "value": v, "source": s, "basis": b} for n, v, s, b in rows]


def as_dict(estimate: Estimate, index: Any = None) -> dict[str, Any]:
    """The `kb estimate` JSON body (INTERFACE.md) without `scenario` and `resolved`."""
    shape = shape_of_cases(estimate)
    case = case_of(estimate, lambda value: pick(value, index, shape))

    def one(value: Any) -> Any:
        return pick(value, index, shape)

    def ms(value: Any) -> Any:
        seconds = one(value)
        return None if seconds is None else seconds * MILLISECONDS_PER_SECOND

    def whole(value: Any) -> int:
        return int(min(one(value), 2**53))

    def terms(values: dict[str, Any]) -> dict[str, float]:
        return {name: value * MILLISECONDS_PER_SECOND for name, value in values.items() if value}

    operators = []
    for phase, found in (("prefill", case.prefill_operators), ("decode", case.decode_operators)):
        for operator in found:
            _, count, flops, bytes_, compute, memory, link, seconds = operator
            if not seconds and not flops:
                continue
            if link:
                bound = "interconnect"
            elif seconds > 2.0 * (compute + memory):
                bound = "overhead"
            else:
                bound = "compute" if compute > memory else "memory"
            operators.append(
                {
                    "name": operator.name, "phase": phase, "count": round(count), "flops": flops,
                    "bytes": bytes_, "intensity": flops / bytes_ if bytes_ else None,
                    "ms": seconds * MILLISECONDS_PER_SECOND, "bound": bound,
                }
            )  # fmt: skip
    return {
        "fits": bool(one(estimate.fits)),
        "min_devices": whole(estimate.min_devices),
        "max_batch": whole(estimate.max_batch),
        "host_bytes": one(estimate.host_bytes),
        "kv_capacity_tokens": whole(estimate.memory.kv_capacity_tokens),
        "memory_bytes": {
            "weights": one(estimate.weights_bytes), "kv_cache": one(estimate.kv_cache_bytes),
            "activations": one(estimate.activation_bytes), "overhead": one(estimate.overhead_bytes),
            "total": one(estimate.total_bytes), "available": one(estimate.available_bytes),
            "kv_cache_algorithmic": one(estimate.memory.kv_algorithmic_bytes),  # nothing reserved in vain
            "reserved": one(estimate.memory.reserved_bytes),  # an engine's whole pool, taken at the start
        },
        "ttft_ms": ms(estimate.ttft_s),
        "tpot_ms": ms(estimate.tpot_s),
        "e2e_ms": ms(estimate.e2e_s),
        "throughput_tok_s": one(estimate.throughput_tok_s),
        "prefill_tok_s": one(estimate.prefill_tok_s),
        "requests_s": one(estimate.requests_s),
        "cost_per_million_tokens_usd": one(estimate.cost_per_million_tokens_usd),
        "energy_j_per_token": one(estimate.energy_j_per_token),
        "interval": {
            "tpot_ms": [ms(bound) for bound in estimate.tpot_interval_s],
            "ttft_ms": [ms(bound) for bound in estimate.ttft_interval_s],
            "confidence": 0.8,
            "basis": estimate.interval_basis,
        },
        "prefill": {
            "ms": ms(estimate.ttft_s), "bound": bound_of(case.prefill_operators, case.prefill_terms),
            "terms": terms(case.prefill_terms),
        },
        "decode": {
            "ms": ms(estimate.tpot_s), "bound": bound_of(case.decode_operators, case.decode_terms),
            "terms": terms(case.decode_terms),
        },
        "bottleneck": bottleneck_of(case),
        "operators": operators,
        "assumptions": assumptions(estimate, index, shape),
    }  # fmt: skip
