"""Seconds of prefill and of one decode step, with their terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from costmodel.assembly import EAGER_DECODE_COPIES, MICRO_BATCH_TOKENS, Behaviour
from costmodel.attention import causal_pairs, mean_context
from costmodel.experts import touched_experts
from costmodel.linear import FLOPS_PER_WEIGHT
from costmodel.numeric import ceiling, is_zero, maximum, minimum, where
from costmodel.offload import exposed_seconds, host_compute_seconds, transfer_seconds
from costmodel.operators import Group, Operator, Setup, Work, overheads, run_pass
from costmodel.specs import Deployment, Workload
from costmodel.speculative import draft_seconds

# of dense attention's time goes into choosing blocks (MInference, Jiang et al. 2024, arXiv:2407.02490: 5 to 20 %)
SPARSE_INDEX_SHARE = 0.1
FULL_ATTENTION_ROWS = 64.0  # cache heads × sequences at which a decode kernel without splits fills a device
MICRO_BATCH_COPIES = 4.0  # llama.cpp keeps at most four micro-batches in flight (GGML_SCHED_MAX_COPIES)
LAUNCH_QUEUE = 1024.0  # pending kernel launches of a CUDA context
BLOCKED_OVERLAP = 0.15
SMALLEST_SHARE = 0.25  # of the bandwidth that such a kernel still reaches with a single row


TERM_OF = {
    "attention": "attention",
    "kv_write": "attention",
    "norm_elementwise": "elementwise",
    "lm_head": "lm_head",
    "experts": "experts",
    "router": "experts",
    "state_scan": "elementwise",
    "all_reduce": "interconnect",
    "stage_transfer": "interconnect",
    "expert_exchange": "interconnect",
}


@dataclass(slots=True)
class Passes:
    """Passes that were worked out together: a row each, where arrays have one axis more than the cases' (`rank`)."""

    rank: int
    seconds: Any  # everything
    device_s: Any
    terms: dict[str, Any]
    groups: list[Group]


class Pass(NamedTuple):
    """One of them; times and amounts are cut out when asked for."""

    passes: Passes
    row: int

    def cut(self, value: Any) -> Any:
        """This pass's part of an array over passes and cases; what is the same for all of them, as it is."""
        if isinstance(value, np.ndarray) and value.ndim > self.passes.rank:
            return value[self.row]
        return value

    @property
    def seconds(self) -> Any:
        return self.cut(self.passes.seconds)

    @property
    def device_s(self) -> Any:
        return self.cut(self.passes.device_s)


def itself(value: Any) -> Any:
    return value


@dataclass(slots=True)
class Phase:
    """Time of one phase: passes that are alike, and what comes on top. Its terms are worked out when asked for."""

    seconds: Any  # sum of the terms
    one: Pass
    passes: Any = 1.0
    times: Any = 1.0  # seconds of each term over those of one pass
    added: dict[str, Any] = field(default_factory=dict)  # seconds on top, by term

    @property
    def device_s(self) -> Any:
        return self.one.device_s * self.passes

    @property
    def weights_s(self) -> Any:
        """Of one pass, in which the device multiplies weights."""
        terms = self.one.passes.terms
        return self.one.cut(terms["linear"]) + self.one.cut(terms["experts"])

    def extended(self, seconds: Any, scale: Any, added: Mapping[str, Any]) -> Phase:
        """The phase `scale` times as long and with further terms, which takes so many seconds in all."""
        on_top = {name: value * scale for name, value in self.added.items()}
        return Phase(seconds, self.one, self.passes, self.times * scale, {**on_top, **added})

    def terms(self, pick: Callable[[Any], Any] = itself) -> dict[str, Any]:
        """Seconds by term; of one case where `pick` takes that out of an array over the cases."""
        times, cut = pick(self.times), self.one.cut
        found = {name: pick(cut(seconds)) * times for name, seconds in self.one.passes.terms.items()}
        for name, seconds in self.added.items():
            found[name] = found.get(name, 0.0) + pick(seconds)
        return found

    def operators(self, pick: Callable[[Any], Any] = itself, *, counts: bool = True) -> list[Operator]:
        """Those of all passes together, likewise; without `counts` they have times alone."""
        known: dict[int, Any] = {}  # several operators share an array

        def plain(value: Any) -> Any:
            if type(value) is float:
                return value
            found = known.get(id(value))
            if found is None:
                found = known[id(value)] = pick(self.one.cut(value))
            return found

        times = plain(self.passes)
        return [group.operator(plain, times, counts=counts) for group in self.one.passes.groups]


def run_passes(setup: Setup, deployment: Deployment, works: Sequence[Work]) -> list[Pass]:
    """What several passes take.

    Arrays of many cases are put above one another and all passes are worked out at once: they are small, so that a
    step of the arithmetic costs its call and hardly more with four times the numbers.
    """
    rank = axes(vars(deployment).values())
    for work in works:
        rank = max(rank, axes([getattr(work, name) for name in Work.__slots__]))
    if not rank or len(works) == 1:
        return [Pass(run(setup, deployment, work, rank), 0) for work in works]
    found = run(setup, deployment, stacked(works, rank), rank)
    return [Pass(found, row) for row in range(len(works))]


def axes(values: Iterable[Any]) -> int:
    """The most axes that an array among the values has; 0 where all are plain numbers."""
    return max([value.ndim for value in values if isinstance(value, np.ndarray)], default=0)


def stacked(works: Sequence[Work], rank: int) -> Work:
    """Several passes as one, a row each; what is the same number or array in all of them stays that."""
    return Work(*(rows([getattr(work, name) for work in works], rank) for name in Work.__slots__))


def rows(values: Sequence[Any], rank: int) -> Any:
    """Numbers or arrays above one another, with `rank` axes each."""
    arrays = [value for value in values if isinstance(value, np.ndarray)]
    first = values[0]
    if not arrays:
        if values.count(first) == len(values):
            return first
        return np.array(values, dtype=float).reshape((-1,) + (1,) * rank)
    if len(arrays) == len(values) and len(set(map(id, arrays))) == 1:
        return first
    shape = arrays[0].shape if len(arrays) == 1 else np.broadcast(*arrays).shape
    found = np.empty((len(values),) + (1,) * (rank - len(shape)) + shape)
    for row, value in zip(found, values, strict=True):
        row[...] = value
    return found


def run(setup: Setup, deployment: Deployment, work: Work, rank: int) -> Passes:
    """Operators and times of one pass, or of several that are `stacked`."""
    groups = run_pass(setup, work)
    terms = sum_terms(groups)
    device_s = total(terms)
    launch, framework = overheads(setup, work, device_s)
    offload = offload_seconds(setup, deployment, work, device_s)
    terms["launch"], terms["framework"], terms["offload"] = launch, framework, offload
    seconds = device_s + launch + framework
    return Passes(rank, seconds if is_zero(offload) else seconds + offload, device_s, terms, groups)


def sum_terms(groups: Sequence[Group]) -> dict[str, Any]:
    """Seconds by term. The weights of the linear operators are added before they are multiplied by their time."""
    first = groups[0]
    units = sum(group.units for group in groups if group.cost is first.cost)
    terms = {"linear": Group("linear", first.count, first.cost, units, first.share).seconds}
    for group in groups:
        if group.cost is first.cost:
            continue
        name, seconds = TERM_OF[group.name], group.seconds
        known = terms.get(name, 0.0)
        terms[name] = seconds if is_zero(known) else known if is_zero(seconds) else known + seconds
    return terms


def total(terms: dict[str, Any]) -> Any:
    """Sum of the terms; small arrays first, so that few additions run over a whole grid."""
    values = [value for value in terms.values() if not isinstance(value, np.ndarray)]
    arrays = [value for value in terms.values() if isinstance(value, np.ndarray)]
    if len({value.size for value in arrays}) > 1:
        arrays.sort(key=np.size)
    result: Any = 0.0
    for value in (*values, *arrays):
        result = result + value
    return result


def sparse_share(computed: Any) -> Any:
    """Time of sparse attention over dense: the scores computed, and finding which (never more than dense).

    >>> sparse_share(1.0), sparse_share(0.25)
    (1.0, 0.35)
    """
    return minimum(computed + where(computed < 1.0, SPARSE_INDEX_SHARE, 0.0), 1.0)


def offload_seconds(setup: Setup, deployment: Deployment, work: Work, device_s: Any) -> Any:
    """What weights and cache in host memory or on disk add to one pass that keeps the device busy for `device_s`.

    Experts leave the device first, since a token touches few of them; what a pass does not touch does not move.
    """
    added: Any = 0.0
    overlap = deployment.offload_overlap
    if not (is_zero(deployment.host_weight_share) and is_zero(deployment.disk_weight_share)):
        added = exposed_seconds(
            transfer_s=weights_away_seconds(setup, deployment, work.tokens),
            device_s=device_s,
            overlap=overlap,
        )
    if not is_zero(work.host_cache_bytes):
        moved = transfer_seconds(
            host_bytes=work.host_cache_bytes, disk_bytes=0.0, link_bytes_per_s=setup.host_bytes_per_s
        )
        added = added + exposed_seconds(transfer_s=moved, device_s=device_s, overlap=overlap)
    return added


def weights_away_seconds(setup: Setup, deployment: Deployment, tokens: Any) -> Any:
    """Time to bring the weights that are not on the device for one pass over `tokens`, or to multiply them there."""
    shape = setup.shape
    host, disk = deployment.host_weight_share, deployment.disk_weight_share
    kept = setup.weights_kept * setup.layers_kept
    dense = (shape.qkv_params + shape.out_params + shape.mlp_params + shape.mixer_params) * kept
    streamed = 1.0 - deployment.hot_weight_share
    if is_zero(shape.expert_params):
        used = dense * (host + disk) * streamed
        moved = used * setup.weight_bytes
    else:
        experts = shape.expert_params * kept * setup.experts / shape.experts
        away = (dense + experts) * (host + disk)
        experts_away = minimum(away, experts)
        touched = touched_experts(experts=setup.experts, active_experts=setup.active_experts, tokens=tokens)
        others = away - experts_away
        moved = (touched * (experts_away / setup.experts) + others) * (streamed * setup.weight_bytes)
        used = (experts_away * setup.active_experts / setup.experts + others) * streamed
    link = setup.host_bytes_per_s
    on_disk = disk / maximum(host + disk, 1e-12)
    host_bytes = moved * (1.0 - on_disk)
    from_disk: Any = 0.0
    if not is_zero(disk):
        from_disk = transfer_seconds(
            host_bytes=0.0, disk_bytes=moved * on_disk, link_bytes_per_s=link,
            disk_bytes_per_s=setup.disk_bytes_per_s,
        )  # fmt: skip
    seconds = transfer_seconds(host_bytes=host_bytes, disk_bytes=0.0, link_bytes_per_s=link)
    if deployment.host_compute is not False:
        on_host = host_compute_seconds(
            host_bytes=host_bytes, flops=tokens * (FLOPS_PER_WEIGHT * used),
            host_bytes_per_s=setup.host_memory_bytes_per_s, host_flops_per_s=setup.host_flops_per_s,
        )  # fmt: skip
        seconds = where(deployment.host_compute, on_host, seconds)
    return seconds + from_disk


@dataclass(slots=True)
class Prompts:
    """Prompts to be processed: the pass of one chunk, and how many there are."""

    work: Work
    chunks: Any
    tokens: Any  # of all prompts


def prompts_of(
    setup: Setup, workload: Workload, deployment: Deployment, behaviour: Behaviour, *, sequences: Any,
    prompt_tokens: Any, cached_tokens: Any,
) -> Prompts:  # fmt: skip
    """The passes over the prompts of `sequences` requests, in chunks where the engine does so."""
    shape = setup.shape
    new = maximum(prompt_tokens - cached_tokens, 1.0)
    past = workload.context_tokens + cached_tokens
    budget = behaviour.chunk_tokens
    tokens = new * sequences
    chunks = where(budget > 0, ceiling(tokens / maximum(budget, 1.0)), 1.0)
    share = sequences / chunks
    window_pairs: Any = 0.0
    if not is_zero(shape.window_score_flops):
        window_pairs = share * causal_pairs(
            new_tokens=new, past_tokens=past, window_tokens=shape.window_tokens
        )
    work = Work(
        tokens=tokens / chunks,
        sequences=sequences,
        logit_rows=maximum(share, 1.0),
        # every chunk reads the cache of the chunks before it again
        kv_read_tokens=past / chunks + 0.5 * new * (chunks - 1.0) / chunks,
        pairs=share * causal_pairs(new_tokens=new, past_tokens=past, window_tokens=1e18),
        window_pairs=window_pairs,
        score_flops=shape.score_flops,
        unfused_attention=behaviour.unfused_prefill,
        attention_share=sparse_share(deployment.prefill_attention_share),
    )
    return Prompts(work, chunks, tokens)


def prefill(setup: Setup, behaviour: Behaviour, prompts: Prompts, one: Pass) -> Phase:
    """Time to process the prompts, `one` chunk of which is known."""
    times = prompts.chunks
    if not is_zero(behaviour.stage_tokens):
        times = times * stage_share(setup, behaviour, prompts.tokens)
    if is_zero(setup.prefill_s):
        return Phase(one.seconds * times, one, prompts.chunks, times)
    on_top = setup.prefill_s * times
    return Phase(one.seconds * times + on_top, one, prompts.chunks, times, {"framework": on_top})


def stage_share(setup: Setup, behaviour: Behaviour, tokens: Any) -> Any:
    """Time of a prompt whose micro-batches the stages of a split by layers work on, over that without such overlap.

    (m + p − 1) / (m · p) of the serial time at best (GPipe, Huang et al. 2019, arXiv:1811.06965).
    """
    micro = maximum(ceiling(tokens / maximum(behaviour.stage_tokens, 1.0)), 1.0)
    stages = minimum(maximum(setup.pipeline_parallel, 1.0), MICRO_BATCH_COPIES)
    ideal = (micro + stages - 1.0) / (micro * stages)
    # the host cannot run ahead to the next stage once a stage's kernels fill the launch queue
    queued = setup.stage_kernels * setup.shape.layers / maximum(setup.pipeline_parallel, 1.0)
    blocked = (queued > LAUNCH_QUEUE) & (behaviour.stage_tokens == MICRO_BATCH_TOKENS)
    overlap = where(blocked, BLOCKED_OVERLAP, setup.stage_overlap)
    return where(behaviour.stage_tokens > 0, 1.0 - overlap * (1.0 - ideal), 1.0)


def steps_of(
    setup: Setup, deployment: Deployment, behaviour: Behaviour, *, sequences: Any, first_context: Any,
    new_tokens: Any,
) -> list[Work]:  # fmt: skip
    """One decoding step in the middle of the generation; where a model drafts, also one that verifies nothing."""
    shape = setup.shape
    context = mean_context(first_tokens=first_context, new_tokens=new_tokens)
    kept = context * deployment.kv_tokens_kept
    if deployment.kv_window_tokens is not None:
        kept = minimum(kept, deployment.kv_window_tokens)
    seen = kept * deployment.kv_read_share
    read, shared = seen, deployment.kv_shared_share
    if not is_zero(shared):
        # a prefix stored once is read once for the whole batch
        read = read * ((1.0 - shared) + shared / maximum(sequences, 1.0))

    def work(tokens: Any) -> Work:
        return Work(
            tokens=tokens,
            sequences=sequences,
            logit_rows=tokens,
            kv_read_tokens=read,
            pairs=tokens * seen,
            window_pairs=0.0 if windows is None else tokens * windows,
            score_flops=shape.decode_score_flops,
            kv_read_factor=factor,
            layers_run=deployment.layers_executed,
            weight_share=deployment.weight_read_share,
            host_cache_bytes=away,
        )

    windows = None if is_zero(shape.window_score_flops) else minimum(kept, shape.window_tokens)
    factor = decode_read_factor(setup, deployment, behaviour, sequences)
    away: Any = 0.0
    if not is_zero(deployment.host_kv_share):
        elements = shape.kv_elements * read + shape.window_elements * minimum(read, shape.window_tokens)
        each = setup.kv_element_bytes * setup.kv_kept * deployment.host_kv_share
        away = elements * sequences * each
    verified = deployment.verify_tokens
    works = [work(sequences * verified)]
    if not is_zero(deployment.draft_passes):
        works.append(work(sequences * verified / maximum(verified, 1.0)))
    return works


def decode_read_factor(setup: Setup, deployment: Deployment, behaviour: Behaviour, sequences: Any) -> Any:
    """Time in which a decode kernel reads the cache over that of its bytes at the usual rate."""
    shape = setup.shape
    repeated = 1.0 + setup.grouped_reads * (shape.heads / shape.kv_heads - 1.0)
    parallel: Any = 1.0
    if not setup.ideal:
        rows = sequences * minimum(shape.kv_heads / setup.tensor_parallel, 32.0)
        filled = minimum(maximum(rows / FULL_ATTENTION_ROWS, SMALLEST_SHARE), 1.0)
        parallel = where(behaviour.split_decode, 1.0, filled)
    if not is_zero(behaviour.unfused_decode):
        # it concatenates the cache and repeats each head for the queries that share it; a single one is broadcast
        sharing = where(shape.kv_heads > 1.0, shape.heads / shape.kv_heads, 1.0)
        copies = EAGER_DECODE_COPIES + 2.0 * sharing * (sharing > 1.0)
        eager_rate = setup.weight_bytes_per_s / setup.kv_bytes_per_s / copies
        parallel = where(behaviour.unfused_decode, eager_rate, parallel)
    return repeated / parallel * deployment.kv_read_factor


def decode(deployment: Deployment, passes: Sequence[Pass]) -> Phase:
    """Time of one decoding step from the passes of `steps_of`; per step, not per token."""
    step = passes[0]
    draft: Any = deployment.draft_overhead_s
    if len(passes) > 1:
        plain = passes[1]
        issued = plain.cut(plain.passes.terms["launch"]) + plain.cut(plain.passes.terms["framework"])
        draft = draft_seconds(
            weight_share=deployment.draft_weight_share, passes=deployment.draft_passes,
            target_step_s=plain.seconds, overhead_s=draft, layer_share=deployment.draft_layer_share,
            issue_s=issued,
        )  # fmt: skip
    if is_zero(draft):
        return Phase(step.seconds, step)
    return Phase(step.seconds + draft, step, added={"draft": draft})
