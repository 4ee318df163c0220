"""estimate(model, hardware, workload, deployment, engine): memory, time and what bounds it, for one case or many."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from costmodel import intervals, memory, report, throughput
from costmodel.assembly import Behaviour, build
from costmodel.efficiency import Rates
from costmodel.layout import Layout
from costmodel.numeric import maximum, minimum, where
from costmodel.offload import exposed_seconds, transfer_seconds
from costmodel.operators import Operator, Setup
from costmodel.paths import Path
from costmodel.phases import Phase, decode_step, prefill, total
from costmodel.specs import Deployment, Engine, Hardware, Model, Workload


@dataclass(slots=True)
class Estimate:
    """What `estimate` returns. Fields are floats, or arrays over the cases."""

    model: Model
    hardware: Hardware
    workload: Workload
    deployment: Deployment
    engine: Engine
    layout: Layout
    path: Path
    rates: Rates
    memory: Any  # costmodel.memory's result
    ttft_s: Any
    tpot_s: Any
    e2e_s: Any
    throughput_tok_s: Any
    prefill_tok_s: Any
    requests_s: Any
    sequences: Any  # decoded together
    step_s: Any  # one decode step, without interleaved prefills
    prefill_terms: dict[str, Any] = field(default_factory=dict)
    decode_terms: dict[str, Any] = field(default_factory=dict)
    prefill_operators: list[Operator] = field(default_factory=list)
    decode_operators: list[Operator] = field(default_factory=list)
    cost_per_million_tokens_usd: Any = None
    energy_j_per_token: Any = None
    ttft_interval_s: tuple[Any, Any] = (0.0, 0.0)
    tpot_interval_s: tuple[Any, Any] = (0.0, 0.0)
    interval_basis: str = ""

    @property
    def weights_bytes(self) -> Any:
        return self.memory.weights_bytes

    @property
    def kv_cache_bytes(self) -> Any:
        return self.memory.kv_cache_bytes

    @property
    def activation_bytes(self) -> Any:
        return self.memory.activation_bytes

    @property
    def overhead_bytes(self) -> Any:
        return self.memory.overhead_bytes

    @property
    def total_bytes(self) -> Any:
        return self.memory.total_bytes

    @property
    def available_bytes(self) -> Any:
        return self.memory.available_bytes

    @property
    def fits(self) -> Any:
        return self.memory.fits

    @property
    def min_devices(self) -> Any:
        return self.memory.min_devices

    @property
    def max_batch(self) -> Any:
        return self.memory.max_batch

    @property
    def bound(self) -> Any:
        """What bounds the decode phase: compute, memory, interconnect or overhead."""
        return report.bound_of(self.decode_operators, self.decode_terms)

    @property
    def prefill_bound(self) -> Any:
        return report.bound_of(self.prefill_operators, self.prefill_terms)

    @property
    def bottleneck(self) -> Any:
        """Slug of the taxonomy's bottleneck that costs most of a request's time."""
        return report.bottleneck_of(self)

    def as_dict(self, index: Any = None) -> dict[str, Any]:
        """The `kb estimate` JSON body for one case (`index` into arrays), without scenario and resolved names."""
        return report.as_dict(self, index)


@dataclass(slots=True)
class Times:
    """The times of one or many cases; `estimate` adds memory, cost and intervals."""

    ttft_s: Any
    tpot_s: Any
    e2e_s: Any
    throughput_tok_s: Any
    prefill_s: Any  # without queueing and without others' decoding
    together: Any  # prompts prefilled in one go
    step_s: Any
    sequences: Any
    prefill_terms: dict[str, Any]
    decode_terms: dict[str, Any]
    prefill_operators: list[Operator]
    decode_operators: list[Operator]


ADMITTED_TOKENS = 8192.0  # prompt tokens that a step admits where the engine sets no chunk size


def _admitted(
    setup: Setup, workload: Workload, deployment: Deployment, behaviour: Behaviour, sequences: Any, prompt: Any,
    cached: Any,
) -> tuple[Phase, Any, Any]:  # fmt: skip
    """Prefill of the requests that a full batch admits in one step, how many they are, and how many could be.

    In steady state B requests of n output tokens end and begin at B / n per step; their prompts share a pass as far
    as its token budget goes.
    """
    budget = where(behaviour.chunk_tokens > 0, maximum(behaviour.chunk_tokens, 1.0), ADMITTED_TOKENS)
    new = maximum(prompt - cached, 1.0)
    arriving = sequences / maximum(workload.output_tokens, 1.0)
    group = maximum(minimum(arriving, budget / new), 1.0)
    phase = prefill(
        setup, workload, deployment, behaviour, sequences=group, prompt_tokens=prompt, cached_tokens=cached,
        listed=False,
    )  # fmt: skip
    return phase, group, budget / new


def _phases(
    setup: Setup,
    workload: Workload,
    deployment: Deployment,
    behaviour: Behaviour,
    sequences: Any,
    stages: Any,
) -> tuple[Phase, Phase, Any, Any, Any]:
    """Prefill of what is prefilled together, one decode step, prompt and cached tokens, and decode steps.

    `sequences` are all that are in flight. Stages that work side by side each hold a micro-batch of B / stages, and
    a token takes the time of its micro-batch through all stages: t(B / stages), never t(B) / stages for nothing.
    """
    prompt = workload.input_tokens * deployment.prompt_kept
    cached = where(behaviour.prefix_cache, prompt * workload.cache_hit_rate, 0.0)
    together = where(behaviour.continuous, 1.0, sequences)
    first = prefill(
        setup, workload, deployment, behaviour,
        sequences=together, prompt_tokens=prompt, cached_tokens=cached,
    )  # fmt: skip
    # output organisation writes parts of the answer side by side: fewer steps of a larger batch
    steps = maximum(workload.output_tokens * deployment.output_kept, 1.0)
    step = decode_step(
        setup, deployment, behaviour,
        sequences=maximum(sequences / stages, 1.0) / deployment.output_kept,
        first_context=workload.context_tokens + prompt, new_tokens=steps,
    )  # fmt: skip
    return first, step, prompt, cached, steps


def times_of(
    setup: Setup, layout: Layout, behaviour: Behaviour, workload: Workload, deployment: Deployment
) -> Times:
    """Times from rates that are already known; everything may be an array, models and devices included."""
    sequences = workload.batch + 0.0
    stages = 1.0 if layout.serial_stages else layout.pipeline_parallel
    first, step, prompt, cached, steps = _phases(setup, workload, deployment, behaviour, sequences, stages)
    rate = workload.request_rate
    if rate is not None:
        alone, light, *_ = _phases(setup, workload, deployment, behaviour, 1.0, stages)
        tokens = deployment.tokens_per_step
        full_s = steps * step.seconds / tokens
        slope = (full_s - steps * light.seconds / tokens) / maximum(sequences - 1.0, 1.0)
        slope = maximum(slope, 0.0) + where(deployment.disaggregated, 0.0, alone.seconds)
        fixed = maximum(alone.seconds + steps * light.seconds / tokens - slope, 0.0)
        sequences = throughput.sequences_at_rate(
            request_rate=rate, fixed_s=fixed, slope_s=slope, most=workload.batch + 0.0
        )
        first, step, prompt, cached, steps = _phases(
            setup, workload, deployment, behaviour, sequences, stages
        )

    prefill_terms = dict(first.terms)
    if not _zero(deployment.prompt_overhead_share):
        prefill_terms["prompt_compression"] = (
            deployment.prompt_overhead_share * first.seconds / maximum(deployment.prompt_kept, 1e-9)
        )
    if not _zero(deployment.cache_host_share):
        bytes_ = cached * (setup.shape.kv_elements + setup.shape.window_elements) * setup.kv_element_bytes
        prefill_terms["cache_transfer"] = exposed_seconds(
            transfer_s=transfer_seconds(
                host_bytes=bytes_ * deployment.cache_host_share * setup.kv_kept, disk_bytes=0.0,
                link_bytes_per_s=setup.host_bytes_per_s,
            ), device_s=first.device_s, overlap=0.0,
        )  # fmt: skip
    if not _zero(deployment.disaggregated):
        bytes_ = prompt * (setup.shape.kv_elements + setup.shape.window_elements) * setup.kv_element_bytes
        prefill_terms["cache_transfer"] = prefill_terms.get("cache_transfer", 0.0) + where(
            deployment.disaggregated,
            bytes_ * setup.kv_kept / setup.link_bytes_per_s + setup.link_latency_s,
            0.0,
        )
    # stages of a split by layers can work on different chunks of the prompt
    prefill_s = total(prefill_terms)

    # --- per output token
    accepted = maximum(deployment.tokens_per_step, 1.0)
    decode_terms = {name: seconds / accepted for name, seconds in step.terms.items()}
    if not (_scalar(deployment.output_kept) and deployment.output_kept == 1.0):
        decode_terms = {name: seconds * deployment.output_kept for name, seconds in decode_terms.items()}
    pure_s = total(decode_terms)
    mixes = behaviour.continuous & ~_boolean(deployment.disaggregated)
    mixed: Any = 0.0
    late: Any = 0.0
    if not (_scalar(sequences) and sequences <= 1.0) and not (_zero(behaviour.continuous)):
        group, size, room = _admitted(setup, workload, deployment, behaviour, sequences, prompt, cached)
        # in a mixed step the prompt's multiplications use the weights that the decoding reads anyway
        weights_s = step.terms["linear"] + step.terms["experts"]
        hidden = setup.mixed_overlap * minimum(weights_s, group.device_s)
        # every stage computes its part of a prompt while the others work on something else
        share_s = maximum(group.seconds - hidden, 0.0) / size / stages
        if "prompt_compression" in prefill_terms:  # the other prompts pay it, too
            share_s = share_s + prefill_terms["prompt_compression"]
        wanted = throughput.interference_seconds(
            sequences=sequences, prefill_s=share_s, output_tokens=workload.output_tokens
        )
        # a step takes no more prompt tokens than its budget: what exceeds it waits in front of the first token
        mixed = where(mixes, minimum(wanted, share_s * room), 0.0)
        # all B − 1 prompts pass while the request is in the engine, the last of them with a single token to hide behind
        steps_with_others = maximum(workload.output_tokens - 1.0, 0.0)
        late = where(mixes, wanted * maximum(workload.output_tokens, 1.0) - mixed * steps_with_others, 0.0)
    decode_terms["prefill_of_others"] = mixed
    tpot_s = total(decode_terms)
    ttft_s = prefill_s
    if not _zero(late):
        prefill_terms["queue"] = late
        ttft_s = ttft_s + late
    if rate is not None:
        wait = throughput.waiting_seconds(
            request_rate=rate,
            service_s=prefill_s + where(behaviour.continuous, 0.0, steps * pure_s / maximum(sequences, 1.0)),
        )
        prefill_terms["queue"] = late + wait
        ttft_s = ttft_s + wait
    # a first token is sampled by the prefill; a chunked prompt shares its steps with the running decodes
    chunk_share = where(mixes & (behaviour.chunk_tokens > 0), pure_s * where(sequences > 1.0, 1.0, 0.0), 0.0)
    if not _zero(chunk_share):
        prefill_terms["decode_of_others"] = chunk_share
        ttft_s = ttft_s + chunk_share

    if not _zero(deployment.cascade_share):
        # every request tries the small model first; the rest goes on to the large one (FrugalGPT, arXiv:2305.05176)
        mean = deployment.cascade_size + (1.0 - deployment.cascade_share)
        scale = where(deployment.cascade_share > 0.0, mean, 1.0)
        prefill_terms = {name: seconds * scale for name, seconds in prefill_terms.items()}
        decode_terms = {name: seconds * scale for name, seconds in decode_terms.items()}
        ttft_s, tpot_s, pure_s = ttft_s * scale, tpot_s * scale, pure_s * scale

    e2e_s = ttft_s + maximum(workload.output_tokens - 1.0, 0.0) * tpot_s
    tokens_s = sequences * workload.output_tokens / e2e_s
    if rate is not None:
        # below the limit the engine delivers what is asked of it
        asked = rate * workload.output_tokens
        tokens_s = where(sequences < workload.batch, asked, minimum(tokens_s, asked))
    return Times(
        ttft_s=ttft_s, tpot_s=tpot_s, e2e_s=e2e_s, throughput_tok_s=tokens_s, prefill_s=prefill_s,
        together=where(behaviour.continuous, 1.0, sequences), step_s=pure_s, sequences=sequences,
        prefill_terms=prefill_terms, decode_terms=decode_terms,
        prefill_operators=first.operators, decode_operators=step.operators,
    )  # fmt: skip


def estimate(
    model: Model, hardware: Hardware, workload: Workload, deployment: Deployment, engine: Engine, *,
    counts: bool = True,
) -> Estimate:  # fmt: skip
    """Price one deployment, or many at once: every field of `workload` and `deployment` may be an array.

    Without `counts` the operators carry their times alone, no FLOPs and no bytes, which is cheaper for many.

    Time to first token: one prompt's prefill under continuous batching, the batch's otherwise. Time per output token:
    the decode step, and under continuous batching the share of the other requests' prefills, in the steady state of a
    full batch; e2e = ttft + (n − 1) · tpot either way.
    """
    setup, layout, rates, behaviour, path = build(model, hardware, deployment, engine)
    setup.counts = counts
    needed = memory.memory(model, hardware, workload, deployment, engine, layout)
    times = times_of(setup, layout, behaviour, workload, deployment)
    if workload.request_rate is not None:
        # the cache of the sequences that are really in flight; what fits at most stays the same
        busy = replace(workload, batch=times.sequences)
        needed = memory.memory(model, hardware, busy, deployment, engine, layout)
    result = Estimate(
        model=model, hardware=hardware, workload=workload, deployment=deployment, engine=engine, layout=layout,
        path=path, rates=rates, memory=needed, ttft_s=times.ttft_s, tpot_s=times.tpot_s, e2e_s=times.e2e_s,
        throughput_tok_s=times.throughput_tok_s,
        prefill_tok_s=times.together * workload.input_tokens / times.prefill_s,
        requests_s=times.throughput_tok_s / maximum(workload.output_tokens, 1.0),
        sequences=times.sequences, step_s=times.step_s,
        prefill_terms=times.prefill_terms, decode_terms=times.decode_terms,
        prefill_operators=times.prefill_operators, decode_operators=times.decode_operators,
    )  # fmt: skip
    result.cost_per_million_tokens_usd, result.energy_j_per_token = report.cost_and_energy(result)
    intervals.attach(result)
    return result


def _scalar(value: Any) -> bool:
    return isinstance(value, int | float)


def _zero(value: Any) -> bool:
    """True where a scalar is zero or False: the term is then left out."""
    return isinstance(value, bool | int | float | np.bool_) and not value


def _boolean(value: Any) -> Any:
    return np.bool_(value) if isinstance(value, bool) else value
