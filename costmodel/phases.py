"""Seconds of prefill and of one decode step, with their terms."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from costmodel.assembly import EAGER_DECODE_COPIES, MICRO_BATCH_TOKENS, Behaviour
from costmodel.attention import causal_pairs, mean_context
from costmodel.experts import touched_experts
from costmodel.linear import FLOPS_PER_WEIGHT
from costmodel.numeric import ceiling, maximum, minimum, where
from costmodel.offload import exposed_seconds, host_compute_seconds, transfer_seconds
from costmodel.operators import Operator, Setup, is_zero, overheads, run_pass
from costmodel.specs import Deployment, Workload
from costmodel.speculative import draft_seconds

# of dense attention's time goes into choosing blocks (MInference, Jiang et al. 2024, arXiv:2407.02490: 5 to 20 %)
SPARSE_INDEX_SHARE = 0.1
FULL_ATTENTION_ROWS = 64.0  # cache heads × sequences at which a decode kernel without splits fills a device
MICRO_BATCH_COPIES = 4.0  # llama.cpp keeps at most four micro-batches in flight (GGML_SCHED_MAX_COPIES)
LAUNCH_QUEUE = 1024.0  # pending kernel launches of a CUDA context
BLOCKED_OVERLAP = 0.15
SMALLEST_SHARE = 0.25  # of the bandwidth that such a kernel still reaches with a single row


@dataclass(slots=True)
class Phase:
    """Time of one phase: `seconds` is the sum of the terms."""

    seconds: Any
    terms: dict[str, Any]
    operators: list[Operator] = field(default_factory=list)
    device_s: Any = 0.0
    weight_memory_s: Any = 0.0  # time in which weights stream, available to other work in a mixed step


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


def sum_terms(operators: list[Operator]) -> dict[str, Any]:
    """Seconds by term; linear operators are one term."""
    terms: dict[str, Any] = {}
    for operator in operators:
        name = TERM_OF.get(operator.name, "linear")
        terms[name] = terms[name] + operator.seconds if name in terms else operator.seconds
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


def offload_seconds(setup: Setup, deployment: Deployment, device_s: Any, tokens: Any) -> Any:
    """What weights in host memory or on disk add to one pass over `tokens` tokens.

    Experts leave the device first, since a token touches few of them; what a pass does not touch does not move.
    """
    host, disk = deployment.host_weight_share, deployment.disk_weight_share
    if isinstance(host, int | float) and isinstance(disk, int | float) and host == 0 and disk == 0:
        return 0.0
    shape = setup.shape
    kept = setup.weights_kept * setup.layers_kept
    dense = (shape.qkv_params + shape.out_params + shape.mlp_params + shape.mixer_params) * kept
    experts = shape.expert_params * kept * setup.experts / shape.experts
    away = (dense + experts) * (host + disk)
    experts_away = minimum(away, experts)
    touched = touched_experts(experts=setup.experts, active_experts=setup.active_experts, tokens=tokens)
    streamed = 1.0 - deployment.hot_weight_share
    moved = (experts_away * touched / setup.experts + away - experts_away) * streamed * setup.weight_bytes
    from_disk_share = disk / maximum(host + disk, 1e-12)
    host_bytes, disk_bytes = moved * (1.0 - from_disk_share), moved * from_disk_share
    link, disk_rate = setup.host_bytes_per_s, setup.disk_bytes_per_s
    from_disk = transfer_seconds(
        host_bytes=0.0, disk_bytes=disk_bytes, link_bytes_per_s=link, disk_bytes_per_s=disk_rate
    )
    transfer = from_disk + transfer_seconds(host_bytes=host_bytes, disk_bytes=0.0, link_bytes_per_s=link)
    used = experts_away * setup.active_experts / setup.experts + away - experts_away
    on_host = from_disk + host_compute_seconds(
        host_bytes=host_bytes,
        flops=FLOPS_PER_WEIGHT * used * streamed * tokens,
        host_bytes_per_s=setup.host_memory_bytes_per_s,
        host_flops_per_s=setup.host_flops_per_s,
    )
    added = where(deployment.host_compute, on_host, transfer)
    return exposed_seconds(transfer_s=added, device_s=device_s, overlap=deployment.offload_overlap)


def times(operator: Operator, chunks: Any) -> Operator:
    """An operator of one chunk, for all of them; amounts that are one object stay one."""
    made: dict[int, Any] = {}
    amounts = []
    for amount in operator[1:]:
        if not is_zero(amount):
            known = made.get(id(amount))
            if known is None:
                known = made[id(amount)] = amount * chunks
            amount = known
        amounts.append(amount)
    return Operator(operator.name, *amounts)


def prefill(
    setup: Setup,
    workload: Workload,
    deployment: Deployment,
    behaviour: Behaviour,
    *,
    sequences: Any,
    prompt_tokens: Any,
    cached_tokens: Any,
    listed: bool = True,
) -> Phase:
    """Time to process the prompts of `sequences` requests, in chunks where the engine does so.

    With `listed` its operators are told, all chunks together.
    """
    shape = setup.shape
    new = maximum(prompt_tokens - cached_tokens, 1.0)
    past = workload.context_tokens + cached_tokens
    budget = behaviour.chunk_tokens
    tokens = new * sequences
    chunks = where(budget > 0, ceiling(tokens / maximum(budget, 1.0)), 1.0)
    pairs = causal_pairs(new_tokens=new, past_tokens=past, window_tokens=1e18) * sequences / chunks
    window_pairs: Any = 0.0
    if not is_zero(shape.window_score_flops):
        window_pairs = (
            causal_pairs(new_tokens=new, past_tokens=past, window_tokens=shape.window_tokens)
            * sequences
            / chunks
        )
    # every chunk reads the cache of the chunks before it again
    read_tokens = past / chunks + 0.5 * new * (chunks - 1.0) / chunks
    operators = run_pass(
        setup,
        tokens=tokens / chunks,
        sequences=sequences,
        logit_rows=maximum(sequences / chunks, 1.0),
        kv_read_tokens=read_tokens,
        pairs=pairs,
        window_pairs=window_pairs,
        decode=False,
        unfused_attention=behaviour.unfused_prefill,
        attention_share=sparse_share(deployment.prefill_attention_share),
    )
    terms = sum_terms(operators)
    device_s = total(terms)
    gaps, step = overheads(setup, device_s, sequences=sequences)
    terms["launch"] = gaps
    terms["framework"] = step + setup.prefill_s
    terms["offload"] = offload_seconds(setup, deployment, device_s, tokens / chunks)
    single = isinstance(chunks, float) and chunks == 1.0
    if not single:
        terms = {name: seconds * chunks for name, seconds in terms.items()}
        if listed:
            operators = [times(operator, chunks) for operator in operators]
    if not (isinstance(behaviour.stage_tokens, int | float) and behaviour.stage_tokens == 0):
        # stages of a split by layers work on different micro-batches of the prompt: (m + p − 1) / (m · p)
        # of the serial time (GPipe, Huang et al. 2019, arXiv:1811.06965)
        micro = maximum(ceiling(tokens / maximum(behaviour.stage_tokens, 1.0)), 1.0)
        stages = minimum(maximum(setup.pipeline_parallel, 1.0), MICRO_BATCH_COPIES)
        ideal = (micro + stages - 1.0) / (micro * stages)
        # the host cannot run ahead to the next stage once a stage's kernels fill the launch queue
        queued = setup.stage_kernels * setup.shape.layers / maximum(setup.pipeline_parallel, 1.0)
        blocked = (queued > LAUNCH_QUEUE) & (behaviour.stage_tokens == MICRO_BATCH_TOKENS)
        overlap = where(blocked, BLOCKED_OVERLAP, setup.stage_overlap)
        share = where(behaviour.stage_tokens > 0, 1.0 - overlap * (1.0 - ideal), 1.0)
        terms = {name: seconds * share for name, seconds in terms.items()}
    return Phase(total(terms), terms, operators, device_s=device_s * chunks)


def decode_step(
    setup: Setup,
    deployment: Deployment,
    behaviour: Behaviour,
    *,
    sequences: Any,
    first_context: Any,
    new_tokens: Any,
) -> Phase:
    """Time of one decoding step in the middle of the generation; per step, not per token."""
    shape = setup.shape
    context = mean_context(first_tokens=first_context, new_tokens=new_tokens)
    kept = context * deployment.kv_tokens_kept
    if deployment.kv_window_tokens is not None:
        kept = minimum(kept, deployment.kv_window_tokens)
    shared = deployment.kv_shared_share
    # a prefix stored once is read once for the whole batch
    read = kept * deployment.kv_read_share
    if not (isinstance(shared, int | float) and shared == 0):
        read = read * ((1.0 - shared) + shared / maximum(sequences, 1.0))
    verified = deployment.verify_tokens
    tokens = sequences * verified
    pairs = tokens * kept * deployment.kv_read_share
    windowed = not is_zero(shape.window_score_flops)
    window_pairs = tokens * minimum(kept, shape.window_tokens) if windowed else 0.0
    rows = sequences * minimum(shape.kv_heads / setup.tensor_parallel, 32.0)
    filled = minimum(maximum(rows / FULL_ATTENTION_ROWS, SMALLEST_SHARE), 1.0)
    parallel = where(behaviour.split_decode, 1.0, filled)
    if setup.ideal:
        parallel = 1.0
    # … and repeats each cached head for the queries that share it; a single head is broadcast instead
    sharing = where(shape.kv_heads > 1.0, shape.heads / shape.kv_heads, 1.0)
    copies = EAGER_DECODE_COPIES + 2.0 * sharing * (sharing > 1.0)
    eager_rate = setup.weight_bytes_per_s / setup.kv_bytes_per_s / copies
    parallel = where(behaviour.unfused_decode, eager_rate, parallel) / deployment.kv_read_factor

    def one(
        tokens: Any, pairs: Any, window_pairs: Any, verified: Any
    ) -> tuple[list[Operator], dict[str, Any], Any]:
        operators = run_pass(
            setup, tokens=tokens, sequences=sequences, logit_rows=tokens, kv_read_tokens=read, pairs=pairs,
            window_pairs=window_pairs, decode=True, attention_parallel=parallel,
            layers_run=deployment.layers_executed, weight_share=deployment.weight_read_share,
        )  # fmt: skip
        terms = sum_terms(operators)
        device_s = total(terms)
        gaps, step = overheads(setup, device_s, sequences=sequences, layers_run=deployment.layers_executed)
        terms["launch"], terms["framework"] = gaps, step
        terms["offload"] = offload_seconds(setup, deployment, device_s, tokens)
        if not (isinstance(deployment.host_kv_share, int | float) and deployment.host_kv_share == 0):
            cache = (
                shape.kv_elements * read + shape.window_elements * minimum(read, shape.window_tokens)
            ) * sequences
            cache = cache * setup.kv_element_bytes * setup.kv_kept * deployment.host_kv_share
            moved = transfer_seconds(
                host_bytes=cache, disk_bytes=0.0, link_bytes_per_s=setup.host_bytes_per_s
            )
            terms["offload"] = terms["offload"] + exposed_seconds(
                transfer_s=moved, device_s=device_s, overlap=deployment.offload_overlap
            )
        return operators, terms, device_s

    operators, terms, device_s = one(tokens, pairs, window_pairs, verified)
    drafts = deployment.draft_passes
    plain_scalar = isinstance(drafts, int | float) and drafts == 0
    overhead = deployment.draft_overhead_s
    if plain_scalar and isinstance(overhead, int | float) and overhead == 0:
        return Phase(total(terms), terms, operators, device_s=device_s)
    if plain_scalar:
        terms["draft"] = overhead
    else:
        ratio = maximum(verified, 1.0)
        _, plain_terms, _ = one(tokens / ratio, pairs / ratio, window_pairs / ratio, 1.0)
        terms["draft"] = draft_seconds(
            weight_share=deployment.draft_weight_share, passes=drafts, target_step_s=total(plain_terms),
            overhead_s=overhead, layer_share=deployment.draft_layer_share,
            issue_s=plain_terms["launch"] + plain_terms["framework"],
        )  # fmt: skip
    return Phase(total(terms), terms, operators, device_s=device_s)
