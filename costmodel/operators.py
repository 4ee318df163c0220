"""One forward pass as a list of operators: FLOPs, bytes, seconds and what bounds each.

The same code prices prefill (many tokens per sequence), decode (one) and mixed steps; only the numbers of tokens,
sequences and context tokens differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from costmodel.attention import score_matrix_bytes
from costmodel.comm import all_reduce_seconds, all_to_all_seconds, point_to_point_seconds
from costmodel.experts import touched_experts
from costmodel.linear import FLOPS_PER_WEIGHT, Shape
from costmodel.numeric import maximum, minimum, where
from costmodel.roofline import combine

ACTIVATION_BYTES = 2.0  # activations between operators stay in 16 bits
HOST_EXPOSED = 0.03  # of the shorter of host and device time shows even where one hides the other (assumed)
ONE_ROW = 1.5  # rows: up to here a matrix-vector kernel runs
# Rows of the smallest tile of matrix instructions (16 x 8 x 16 on NVIDIA's, 16 x 16 elsewhere): from here on kernels
# that know one tile only, processors, and products of one expert at a time have a full one. Assumed from that size: the
# measurements of dense models do not tell 16 from 64; those of DeepSeek-R1 in ik_llama.cpp and of Mixtral on Gaudi,
# whose experts see few rows each, ask for a small one.
WHOLE_ROWS = 16.0
SMALL_ROWS = 8.0  # up to here kernels for vectors run, which have no tiles to fill
NORM_TRANSFERS = 8.0  # hidden-sized reads and writes per layer: two norms, two residual additions


class Operator(NamedTuple):
    """Work and time of one kind of operator in one pass, all layers together, on the busiest device."""

    name: str
    count: Any
    flops: Any
    bytes: Any
    compute_s: Any
    memory_s: Any
    link_s: Any
    seconds: Any


@dataclass(slots=True)
class Setup:
    """Everything about model, device, engine and deployment that a pass needs; floats or arrays."""

    shape: Shape
    tensor_parallel: Any
    pipeline_parallel: Any
    expert_parallel: Any
    # rates, achieved
    weight_bytes_per_s: Any
    kv_bytes_per_s: Any
    linear_flops_per_s: Any
    attention_flops_per_s: Any
    exposed_share: Any
    tile_rows: Any  # rows from which on a multiplication is as underfilled as `half_tokens` says
    expert_tile_rows: Any  # the same of a multiplication of one expert
    batched_share: Any  # of the bandwidth, where several rows meet a weight
    half_tokens: Any  # tokens at which a multiplication reaches half of its best rate
    link_bytes_per_s: Any
    link_latency_s: Any
    layer_gap_s: Any  # on the device, per layer
    layer_host_s: Any  # on the host, per layer; hidden while the device is busy
    step_s: Any  # per pass: sampling, scheduling
    sequence_s: Any  # per sequence and pass: sampling, detokenising
    expert_layer_s: Any  # routing: per MoE layer
    expert_share: Any  # of the multiplication rate that experts' small groups reach
    mixer_layer_s: Any  # per state-space layer
    mixer_layers: Any
    prefill_s: Any  # per prompt
    score_factor: Any
    stage_overlap: Any
    stage_kernels: Any  # kernels per layer of a prompt pass
    vector_share: Any
    mixed_overlap: Any  # share of the shorter of decoding and prompt work that a mixed step hides
    grouped_reads: Any  # how far a kernel reads a shared cache head once per query head instead of once
    # weights
    weight_bytes: Any  # bytes per weight of the layers, as stored and read
    head_bytes: Any
    flops_share: Any  # share of a dense multiplication that is computed (structured sparsity)
    widen_s_per_weight: Any  # writing a weight out in 16 bits before a large multiplication
    weights_kept: Any
    layers_kept: Any
    experts: Any
    active_experts: Any
    # cache
    kv_element_bytes: Any
    kv_kept: Any  # heads × layers kept, of the unmodified cache
    elementwise_factor: Any  # 1 fused; more where every operator reads and writes its own
    # around the device
    host_bytes_per_s: Any  # link to the host, data sheet
    host_memory_bytes_per_s: Any
    host_flops_per_s: Any
    disk_bytes_per_s: Any
    ideal: bool = False  # the roofline: no kernels, no overheads
    counts: bool = True  # operators carry FLOPs and bytes; times alone are cheaper


@dataclass(slots=True)
class PerWeight:
    """What one weight costs in a pass in which every weight meets the same tokens: FLOPs, bytes, seconds."""

    flops: Any
    bytes: Any
    compute_s: Any
    memory_s: Any
    seconds: Any
    counts: bool

    def operator(self, name: str, weights: Any, devices: Any, count: Any) -> Operator:
        """A group of multiplications with so many `weights` on each of `devices`."""
        if is_zero(weights):
            return Operator(name, count, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        flops: Any = 0.0
        bytes_: Any = 0.0
        if self.counts:
            every = weights * devices
            flops, bytes_ = every * self.flops, every * self.bytes
        return Operator(
            name, count, flops, bytes_, weights * self.compute_s, weights * self.memory_s, 0.0, weights * self.seconds
        )  # fmt: skip


def per_weight(
    setup: Setup, tokens: Any, *, read_share: Any = 1.0, flops_share: Any = 1.0, bytes_per_weight: Any = None,
    rate_share: Any = 1.0, tile_rows: Any = None,
) -> PerWeight:  # fmt: skip
    """2 FLOPs per weight and token, each weight read once per pass.

    `read_share` of the weights is touched (experts); `flops_share` of them multiplies a given token.
    """
    flops = FLOPS_PER_WEIGHT * tokens * flops_share
    bytes_ = read_share * (setup.weight_bytes if bytes_per_weight is None else bytes_per_weight)
    # rows per matrix: an expert multiplies only the tokens routed to it
    rows = tokens * flops_share / read_share
    many = rows > SMALL_ROWS
    tile = setup.tile_rows if tile_rows is None else tile_rows
    alone_s = flops * setup.flops_share / setup.linear_flops_per_s
    if is_one(setup.vector_share):
        compute_s = tiled_seconds(setup, alone_s, rows, tile, rate_share)
    else:
        # processors and packed formats without matrix units: vector kernels up to SMALL_ROWS, or tiles where those win
        full_s = alone_s / rate_share * (1.0 + setup.half_tokens / rows)
        whole = filled(rows, WHOLE_ROWS)
        apart_s = whole * full_s + (1.0 - whole) * minimum(alone_s / setup.vector_share, full_s)
        compute_s = where(
            setup.vector_share == 1.0, tiled_seconds(setup, alone_s, rows, tile, rate_share), apart_s
        )
    if not is_zero(setup.widen_s_per_weight):
        compute_s = compute_s + read_share * setup.widen_s_per_weight * many
    memory_s = bytes_ / setup.weight_bytes_per_s
    if not is_one(setup.batched_share):
        memory_s = memory_s / where(rows > ONE_ROW, setup.batched_share, 1.0)
    seconds = combine(compute_s, memory_s, setup.exposed_share)
    return PerWeight(flops, bytes_, compute_s, memory_s, seconds, setup.counts)


def tiled_seconds(setup: Setup, alone_s: Any, rows: Any, tile: Any, rate_share: Any) -> Any:
    """Seconds of a multiplication with `rows` rows that would take `alone_s` on a full device.

    Too few rows leave a device underfilled, by `half_tokens` (fitted on prompts).
    """
    part = filled(rows, tile)
    underfilled = 1.0 + setup.half_tokens / maximum(rows, tile) * part
    if is_one(rate_share):
        return alone_s * underfilled
    return alone_s * underfilled / (1.0 - (1.0 - rate_share) * part)


def filled(rows: Any, tile: Any) -> Any:
    """How far the way from SMALL_ROWS to a whole tile has been gone, 0 to 1: one more row never costs a multiple."""
    return minimum(maximum((rows - SMALL_ROWS) / (tile - SMALL_ROWS), 0.0), 1.0)


def is_zero(value: Any) -> bool:
    """A plain zero: what it multiplies need not be worked out."""
    return isinstance(value, float) and value == 0.0


def is_one(value: Any) -> bool:
    """A plain one: nothing is shared out."""
    return isinstance(value, int | float) and value == 1


def run_pass(
    setup: Setup,
    *,
    tokens: Any,  # query tokens through the linear operators, all sequences
    sequences: Any,
    logit_rows: Any,  # tokens whose logits are computed
    kv_read_tokens: Any,  # cached tokens read per sequence
    pairs: Any,  # query × context pairs of attention, all sequences (full-attention layers)
    window_pairs: Any,
    decode: bool,
    unfused_attention: Any = False,
    attention_share: Any = 1.0,
    attention_parallel: Any = 1.0,  # share of the device's bandwidth that the attention kernel can use
    layers_run: Any = 1.0,
    weight_share: Any = 1.0,  # contextual sparsity: share of the linear weights that the pass touches
) -> list[Operator]:
    """The operators of one pass, in order of execution, each summed over the layers it occurs in.

    Seconds are those of the pass's latency: divided by tensor parallelism, not by pipeline parallelism, whose
    stages work one after another on the same tokens.
    """
    shape = setup.shape
    kept = setup.weights_kept * setup.layers_kept * layers_run * weight_share
    layers = shape.layers * setup.layers_kept * layers_run
    devices = setup.tensor_parallel
    share = kept / devices  # of the model's weights, on each device
    dense = per_weight(setup, tokens)
    operators = [dense.operator("qkv_projection", shape.qkv_params * share, devices, layers)]

    elements = shape.kv_elements * kv_read_tokens
    if not is_zero(shape.window_elements):
        elements = elements + shape.window_elements * minimum(kv_read_tokens, shape.window_tokens)
    # one cache head cannot be cut: tensor parallelism beyond the KV heads replicates them
    kv_split = minimum(setup.tensor_parallel, shape.kv_heads)
    kv_bytes = (
        elements
        * sequences
        * setup.kv_element_bytes
        * setup.kv_kept
        * setup.layers_kept
        * layers_run
        / kv_split
        + shape.state_bytes * sequences * 2.0 / setup.tensor_parallel
    )
    score = shape.decode_score_flops if decode else shape.score_flops
    flops = score * pairs
    if not is_zero(shape.window_score_flops):
        flops = flops + shape.window_score_flops * window_pairs
    if not is_one(attention_share):
        flops = flops * attention_share
    flops = flops * setup.layers_kept * layers_run / setup.tensor_parallel
    matrix_bytes = where(
        unfused_attention,
        score_matrix_bytes(pairs=pairs, score_heads=shape.score_heads) * setup.score_factor
        / setup.tensor_parallel * setup.layers_kept, 0.0,
    )  # fmt: skip
    compute_s = flops / setup.attention_flops_per_s
    repeated = 1.0 + setup.grouped_reads * (shape.heads / shape.kv_heads - 1.0) * (1.0 if decode else 0.0)
    memory_s = (
        kv_bytes * repeated / attention_parallel / setup.kv_bytes_per_s
        + matrix_bytes / setup.weight_bytes_per_s
    )
    done: Any = 0.0
    read: Any = 0.0
    if setup.counts:
        done = flops * setup.tensor_parallel
        read = (kv_bytes + matrix_bytes) * setup.tensor_parallel
    seconds = combine(compute_s, memory_s, setup.exposed_share)
    operators.append(Operator("attention", layers, done, read, compute_s, memory_s, 0.0, seconds))
    written = (shape.kv_elements + shape.window_elements) * tokens * setup.kv_element_bytes * setup.kv_kept
    written = written * setup.layers_kept * layers_run / kv_split
    write_s = written / setup.kv_bytes_per_s
    every = written * kv_split if setup.counts else 0.0
    operators.append(Operator("kv_write", layers, 0.0, every, 0.0, write_s, 0.0, write_s))
    operators.append(dense.operator("attention_output", shape.out_params * share, devices, layers))
    operators.append(dense.operator("mlp", (shape.mlp_params + shape.mixer_params) * share, devices, layers))
    operators += expert_operators(setup, tokens, share, layers_run)
    scan_s = setup.mixer_layers * setup.mixer_layer_s * setup.layers_kept * layers_run
    operators.append(Operator("state_scan", setup.mixer_layers, 0.0, 0.0, 0.0, 0.0, 0.0, scan_s))

    moved = (
        tokens
        * layers
        * ACTIVATION_BYTES
        * (NORM_TRANSFERS * shape.hidden + 3.0 * shape.mlp_width / setup.tensor_parallel)
    )
    moved = moved * setup.elementwise_factor
    moved_s = moved / setup.weight_bytes_per_s
    operators.append(Operator("norm_elementwise", layers, 0.0, moved, 0.0, moved_s, 0.0, moved_s))

    head = per_weight(setup, logit_rows, bytes_per_weight=setup.head_bytes)
    operators.append(head.operator("lm_head", shape.head_params / devices, devices, 1.0))
    return operators + link_operators(setup, tokens, layers)


def expert_operators(setup: Setup, tokens: Any, share: Any, layers_run: Any) -> list[Operator]:
    """Routed experts and their router; nothing in a dense model."""
    shape, devices = setup.shape, setup.tensor_parallel
    count = shape.moe_layers
    if is_zero(shape.expert_params) and is_zero(shape.router_params) and is_zero(count):
        return [Operator(name, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0) for name in ("experts", "router")]
    touched = touched_experts(experts=setup.experts, active_experts=setup.active_experts, tokens=tokens)
    routed = per_weight(
        setup, tokens, read_share=touched / setup.experts, flops_share=setup.active_experts / setup.experts,
        rate_share=setup.expert_share, tile_rows=setup.expert_tile_rows,
    )  # fmt: skip
    router = per_weight(setup, tokens, bytes_per_weight=ACTIVATION_BYTES).operator(
        "router", shape.router_params * share, devices, count
    )
    routing_s = router.seconds + setup.expert_layer_s * count * setup.layers_kept * layers_run
    return [
        routed.operator(
            "experts", shape.expert_params * setup.experts / shape.experts * share, devices, count
        ),
        router._replace(seconds=routing_s),
    ]


def link_operators(setup: Setup, tokens: Any, layers: Any) -> list[Operator]:
    """What goes between devices: all-reduces, hand-over between stages, tokens to their experts."""
    shape = setup.shape
    message = tokens * shape.hidden * ACTIVATION_BYTES
    return [
        reduce_operator(setup, message, layers),
        stage_operator(setup, message),
        exchange_operator(setup, message),
    ]


def reduce_operator(setup: Setup, message: Any, layers: Any) -> Operator:
    """Two all-reduces per layer among the devices that share it."""
    if is_one(setup.tensor_parallel):
        return Operator("all_reduce", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    reduce_s = all_reduce_seconds(
        bytes_=message, devices=setup.tensor_parallel, bytes_per_s=setup.link_bytes_per_s,
        latency_s=setup.link_latency_s,
    )  # fmt: skip
    collectives, several = 2.0 * layers, setup.tensor_parallel > 1.0
    seconds = reduce_s * collectives
    moved = message * collectives * several if setup.counts else 0.0
    return Operator("all_reduce", collectives * several, 0.0, moved, 0.0, 0.0, seconds, seconds)


def stage_operator(setup: Setup, message: Any) -> Operator:
    """Activations handed from stage to stage."""
    if is_one(setup.pipeline_parallel):
        return Operator("stage_transfer", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    stages = setup.pipeline_parallel - 1.0
    seconds = stages * point_to_point_seconds(
        bytes_=message, bytes_per_s=setup.link_bytes_per_s, latency_s=setup.link_latency_s
    )
    moved = message * stages if setup.counts else 0.0
    return Operator("stage_transfer", stages, 0.0, moved, 0.0, 0.0, seconds, seconds)


def exchange_operator(setup: Setup, message: Any) -> Operator:
    """Tokens sent to the devices of their experts and back."""
    layers = setup.shape.moe_layers
    if is_zero(layers) or is_one(setup.expert_parallel):
        return Operator("expert_exchange", layers, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    seconds = all_to_all_seconds(
        bytes_=2.0 * message * setup.active_experts, devices=setup.expert_parallel,
        bytes_per_s=setup.link_bytes_per_s, latency_s=2.0 * setup.link_latency_s,
    ) * where(layers > 0, layers, 0.0)  # fmt: skip
    return Operator("expert_exchange", layers, 0.0, 0.0, 0.0, 0.0, seconds, seconds)


def overheads(setup: Setup, device_s: Any, *, sequences: Any, layers_run: Any = 1.0) -> tuple[Any, Any]:
    """Launch and framework time of one pass that the device's work does not hide.

    Kernels leave gaps of `layer_gap_s` per layer. The host issues a layer's kernels in `layer_host_s`; it runs ahead
    of the device, so only what exceeds the device's own time shows.
    """
    layers = setup.shape.layers * setup.layers_kept * layers_run
    gaps = layers * setup.layer_gap_s
    host_s = layers * setup.layer_host_s
    waiting = maximum(host_s - device_s - gaps, 0.0) + HOST_EXPOSED * minimum(host_s, device_s)
    return gaps + waiting, setup.step_s + setup.sequence_s * sequences
