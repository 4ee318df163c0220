"""estimate(model, hardware, workload, deployment, engine): memory, time and what bounds it, for one case or many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from costmodel import intervals, memory, report, throughput
from costmodel.assembly import Behaviour, build
from costmodel.efficiency import Rates
from costmodel.layout import Layout
from costmodel.numeric import is_zero, maximum, minimum, where
from costmodel.offload import exposed_seconds, transfer_seconds
from costmodel.operators import Operator, Setup, Work
from costmodel.paths import Path
from costmodel.phases import Pass, Phase, Prompts, decode, prefill, prompts_of, run_passes, steps_of
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
    prefill: Phase
    decode: Phase
    cost_per_million_tokens_usd: Any = None
    energy_j_per_token: Any = None
    ttft_interval_s: tuple[Any, Any] = (0.0, 0.0)
    tpot_interval_s: tuple[Any, Any] = (0.0, 0.0)
    interval_basis: str = ""

    @property
    def output_tokens(self) -> Any:
        return self.workload.output_tokens

    @property
    def tokens_per_step(self) -> Any:
        return self.deployment.tokens_per_step

    @property
    def prefill_terms(self) -> dict[str, Any]:
        return self.prefill.terms()

    @property
    def decode_terms(self) -> dict[str, Any]:
        return self.decode.terms()

    @property
    def prefill_operators(self) -> list[Operator]:
        return self.prefill.operators()

    @property
    def decode_operators(self) -> list[Operator]:
        return self.decode.operators()

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
    def host_bytes(self) -> Any:
        return self.memory.host_bytes

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
    prefill: Phase
    decode: Phase


ADMITTED_TOKENS = 8192.0  # prompt tokens that a step admits where the engine sets no chunk size


@dataclass(slots=True)
class Load:
    """What each request brings: numbers or arrays over the cases."""

    prompt: Any  # tokens of the prompt that are left after compression
    cached: Any  # … of which the engine has keys and values already
    steps: Any  # decode steps; output organisation writes parts of the answer side by side: fewer, of a larger batch
    stages: Any  # that work side by side on different requests


def load_of(layout: Layout, behaviour: Behaviour, workload: Workload, deployment: Deployment) -> Load:
    """Tokens and steps of one request."""
    prompt = workload.input_tokens * deployment.prompt_kept
    return Load(
        prompt=prompt,
        cached=where(behaviour.prefix_cache, prompt * workload.cache_hit_rate, 0.0),
        steps=maximum(workload.output_tokens * deployment.output_kept, 1.0),
        stages=1.0 if layout.serial_stages else layout.pipeline_parallel,
    )


class Loaded:
    """Passes of one engine under one load, for any number of sequences in flight."""

    def __init__(
        self, setup: Setup, behaviour: Behaviour, workload: Workload, deployment: Deployment, load: Load
    ) -> None:
        self.setup, self.behaviour, self.workload = setup, behaviour, workload
        self.deployment, self.load = deployment, load

    def prompts(self, sequences: Any) -> Prompts:
        """The prompts of so many requests, together."""
        return prompts_of(
            self.setup, self.workload, self.deployment, self.behaviour, sequences=sequences,
            prompt_tokens=self.load.prompt, cached_tokens=self.load.cached,
        )  # fmt: skip

    def steps(self, sequences: Any) -> list[Work]:
        """One decode step with so many requests in flight.

        Stages that work side by side each hold a micro-batch of B / stages, and a token takes the time of its
        micro-batch through all stages: t(B / stages), never t(B) / stages for nothing.
        """
        load = self.load
        return steps_of(
            self.setup, self.deployment, self.behaviour,
            sequences=maximum(sequences / load.stages, 1.0) / self.deployment.output_kept,
            first_context=self.workload.context_tokens + load.prompt, new_tokens=load.steps,
        )  # fmt: skip

    def admitted(self, sequences: Any) -> tuple[Any, Any]:
        """How many requests a full batch admits in one step, and how many it could.

        In steady state B requests of n output tokens end and begin at B / n per step; their prompts share a pass as
        far as its token budget goes.
        """
        chunk = self.behaviour.chunk_tokens
        budget = where(chunk > 0, maximum(chunk, 1.0), ADMITTED_TOKENS)
        room = budget / maximum(self.load.prompt - self.load.cached, 1.0)
        arriving = sequences / maximum(self.workload.output_tokens, 1.0)
        return maximum(minimum(arriving, room), 1.0), room

    def prefill(self, prompts: Prompts, one: Pass) -> Phase:
        return prefill(self.setup, self.behaviour, prompts, one)

    def in_flight(self, request_rate: Any) -> Any:
        """Sequences in flight where requests come at a rate, from the times of one alone and of a full batch."""
        full = self.workload.batch + 0.0
        prompts, one, many = self.prompts(1.0), self.steps(1.0), self.steps(full)
        first, *passes = run_passes(self.setup, self.deployment, [prompts.work, *one, *many])
        alone_s = self.prefill(prompts, first).seconds
        light_s = decode(self.deployment, passes[: len(one)]).seconds
        steps = self.load.steps / self.deployment.tokens_per_step
        slope = steps * (decode(self.deployment, passes[len(one) :]).seconds - light_s)
        slope = maximum(slope / maximum(full - 1.0, 1.0), 0.0)
        slope = slope + where(self.deployment.disaggregated, 0.0, alone_s)
        fixed = maximum(alone_s + steps * light_s - slope, 0.0)
        return throughput.sequences_at_rate(
            request_rate=request_rate, fixed_s=fixed, slope_s=slope, most=full
        )


def times_of(
    setup: Setup, layout: Layout, behaviour: Behaviour, workload: Workload, deployment: Deployment
) -> Times:
    """Times from rates that are already known; everything may be an array, models and devices included."""
    load = load_of(layout, behaviour, workload, deployment)
    loaded = Loaded(setup, behaviour, workload, deployment, load)
    prompt, cached, steps, stages = load.prompt, load.cached, load.steps, load.stages
    rate = workload.request_rate
    sequences = workload.batch + 0.0 if rate is None else loaded.in_flight(rate)
    prompts = loaded.prompts(where(behaviour.continuous, 1.0, sequences))
    works = [prompts.work, *loaded.steps(sequences)]
    passes_of_step = slice(1, len(works))
    interleaved = not (_scalar(sequences) and sequences <= 1.0) and not is_zero(behaviour.continuous)
    if interleaved:
        size, room = loaded.admitted(sequences)
        others = loaded.prompts(size)
        works.append(others.work)
    passes = run_passes(setup, deployment, works)
    first = loaded.prefill(prompts, passes[0])
    step = decode(deployment, passes[passes_of_step])

    waits: dict[str, Any] = {}  # what a prompt takes beyond its passes
    if not is_zero(deployment.prompt_overhead_share):
        waits["prompt_compression"] = (
            deployment.prompt_overhead_share * first.seconds / maximum(deployment.prompt_kept, 1e-9)
        )
    if not is_zero(deployment.cache_host_share):
        bytes_ = cached * (setup.shape.kv_elements + setup.shape.window_elements) * setup.kv_element_bytes
        waits["cache_transfer"] = exposed_seconds(
            transfer_s=transfer_seconds(
                host_bytes=bytes_ * deployment.cache_host_share * setup.kv_kept, disk_bytes=0.0,
                link_bytes_per_s=setup.host_bytes_per_s,
            ), device_s=first.device_s, overlap=0.0,
        )  # fmt: skip
    if not is_zero(deployment.disaggregated):
        bytes_ = prompt * (setup.shape.kv_elements + setup.shape.window_elements) * setup.kv_element_bytes
        waits["cache_transfer"] = waits.get("cache_transfer", 0.0) + where(
            deployment.disaggregated,
            bytes_ * setup.kv_kept / setup.link_bytes_per_s + setup.link_latency_s,
            0.0,
        )
    # stages of a split by layers can work on different chunks of the prompt
    prefill_s = first.seconds
    for seconds in waits.values():
        prefill_s = prefill_s + seconds

    # --- per output token
    share = deployment.output_kept / maximum(deployment.tokens_per_step, 1.0)
    pure_s = step.seconds * share
    mixes = behaviour.continuous & ~_boolean(deployment.disaggregated)
    mixed: Any = 0.0
    late: Any = 0.0
    if interleaved:
        group = loaded.prefill(others, passes[-1])
        # in a mixed step the prompt's multiplications use the weights that the decoding reads anyway
        hidden = setup.mixed_overlap * minimum(step.weights_s, group.device_s)
        # every stage computes its part of a prompt while the others work on something else
        share_s = maximum(group.seconds - hidden, 0.0) / size / stages
        if "prompt_compression" in waits:  # the other prompts pay it, too
            share_s = share_s + waits["prompt_compression"]
        wanted = throughput.interference_seconds(
            sequences=sequences, prefill_s=share_s, output_tokens=workload.output_tokens
        )
        # a step takes no more prompt tokens than its budget: what exceeds it waits in front of the first token
        mixed = where(mixes, minimum(wanted, share_s * room), 0.0)
        # all B − 1 prompts pass while the request is in the engine, the last of them with a single token to hide behind
        steps_with_others = maximum(workload.output_tokens - 1.0, 0.0)
        late = where(mixes, wanted * maximum(workload.output_tokens, 1.0) - mixed * steps_with_others, 0.0)
    tpot_s = pure_s + mixed
    ttft_s = prefill_s
    if not is_zero(late):
        waits["queue"] = late
        ttft_s = ttft_s + late
    if rate is not None:
        wait = throughput.waiting_seconds(
            request_rate=rate,
            service_s=prefill_s + where(behaviour.continuous, 0.0, steps * pure_s / maximum(sequences, 1.0)),
        )
        waits["queue"] = late + wait
        ttft_s = ttft_s + wait
    # a first token is sampled by the prefill; a chunked prompt shares its steps with the running decodes
    chunk_share = where(mixes & (behaviour.chunk_tokens > 0), pure_s * where(sequences > 1.0, 1.0, 0.0), 0.0)
    if not is_zero(chunk_share):
        waits["decode_of_others"] = chunk_share
        ttft_s = ttft_s + chunk_share

    scale: Any = 1.0
    if not is_zero(deployment.cascade_share):
        # every request tries the small model first; the rest goes on to the large one (FrugalGPT, arXiv:2305.05176)
        mean = deployment.cascade_size + (1.0 - deployment.cascade_share)
        scale = where(deployment.cascade_share > 0.0, mean, 1.0)
        ttft_s, tpot_s, pure_s = ttft_s * scale, tpot_s * scale, pure_s * scale
    first = first.extended(ttft_s, scale, {name: seconds * scale for name, seconds in waits.items()})
    step = step.extended(tpot_s, share * scale, {"prefill_of_others": mixed * scale})

    e2e_s = ttft_s + maximum(workload.output_tokens - 1.0, 0.0) * tpot_s
    tokens_s = sequences * workload.output_tokens / e2e_s
    if rate is not None:
        # below the limit the engine delivers what is asked of it
        asked = rate * workload.output_tokens
        tokens_s = where(sequences < workload.batch, asked, minimum(tokens_s, asked))
    return Times(
        ttft_s=ttft_s, tpot_s=tpot_s, e2e_s=e2e_s, throughput_tok_s=tokens_s, prefill_s=prefill_s,
        together=where(behaviour.continuous, 1.0, sequences), step_s=pure_s, sequences=sequences,
        prefill=first, decode=step,
    )  # fmt: skip


def estimate(
    model: Model, hardware: Hardware, workload: Workload, deployment: Deployment, engine: Engine
) -> Estimate:  # fmt: skip
    """Price one deployment, or many at once: every field of `workload` and `deployment` may be an array.

    Time to first token: one prompt's prefill under continuous batching, the batch's otherwise. Time per output token:
    the decode step, and under continuous batching the share of the other requests' prefills, in the steady state of a
    full batch; e2e = ttft + (n − 1) · tpot either way.
    """
    setup, layout, rates, behaviour, path = build(model, hardware, deployment, engine)
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
        prefill=times.prefill, decode=times.decode,
    )  # fmt: skip
    result.cost_per_million_tokens_usd, result.energy_j_per_token = report.cost_and_energy(result)
    intervals.attach(result)
    return result


def _scalar(value: Any) -> bool:
    return isinstance(value, int | float)


def _boolean(value: Any) -> Any:
    return np.bool_(value) if isinstance(value, bool) else value
