"""One forward pass as a list of operators: FLOPs, bytes, seconds and what bounds each.

The same code prices prefill (many tokens per sequence), decode (one) and mixed steps; only the numbers of tokens,
sequences and context tokens differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from costmodel.attention import score_matrix_bytes
from costmodel.comm import all_reduce_seconds, all_to_all_seconds, point_to_point_seconds
from costmodel.experts import touched_experts
from costmodel.linear import FLOPS_PER_WEIGHT, Shape
from costmodel.numeric import is_one, is_zero, maximum, minimum, where
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


@dataclass(slots=True)
class Cost:
    """Work and time of one unit: FLOPs and bytes of it, seconds on the device that does it. Numbers or arrays."""

    flops: Any = 0.0
    bytes: Any = 0.0
    compute_s: Any = 0.0
    memory_s: Any = 0.0
    link_s: Any = 0.0
    seconds: Any = 0.0


class Operator(NamedTuple):
    """Work and time of one kind of operator in one pass, all layers together, on the busiest device."""

    name: str
    count: Any
    flops: Any  # of all devices, as are the bytes
    bytes: Any
    compute_s: Any
    memory_s: Any
    link_s: Any
    seconds: Any


@dataclass(slots=True)
class Group:
    """An operator whose amounts are not worked out yet: `units` of the model, each device has a `share`, at a `cost`."""

    name: str
    count: Any
    cost: Cost
    units: Any = 1.0
    share: Any = 1.0
    devices: Any = 1.0

    @property
    def seconds(self) -> Any:
        seconds = self.cost.seconds
        if is_zero(seconds) or is_zero(self.units):
            return 0.0
        if not is_one(self.units):
            seconds = seconds * self.units
        return seconds if is_one(self.share) else seconds * self.share

    def operator(self, cut: Callable[[Any], Any], times: Any = 1.0, *, counts: bool = True) -> Operator:
        """Its amounts, of what `cut` leaves of every number, so many times over.

        Without `counts` they are seconds alone: no FLOPs, no bytes.
        """
        cost = self.cost
        count: Any = 0.0
        flops: Any = 0.0
        bytes_: Any = 0.0
        if counts:
            count = cut(self.count) * times
        if cost is NO_COST or is_zero(self.units):
            return Operator(self.name, count, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        each = cut(self.units) * cut(self.share) * times
        if counts:
            every = each * cut(self.devices)
            flops, bytes_ = cut(cost.flops) * every, cut(cost.bytes) * every
        return Operator(
            self.name, count, flops, bytes_, cut(cost.compute_s) * each, cut(cost.memory_s) * each,
            cut(cost.link_s) * each, cut(cost.seconds) * each,
        )  # fmt: skip


NO_COST = Cost()


@dataclass(slots=True)
class Work:
    """What one forward pass is asked to do; numbers or arrays over the cases."""

    tokens: Any  # query tokens through the linear operators, all sequences
    sequences: Any
    logit_rows: Any  # tokens whose logits are computed
    kv_read_tokens: Any  # cached tokens read per sequence
    pairs: Any  # query × context pairs of attention, all sequences (full-attention layers)
    window_pairs: Any
    score_flops: Any  # per pair, all full-attention layers
    kv_read_factor: Any = 1.0  # time of reading the cache over that of its bytes at the kernels' usual rate
    unfused_attention: Any = False
    attention_share: Any = 1.0
    layers_run: Any = 1.0
    weight_share: Any = 1.0  # contextual sparsity: share of the linear weights that the pass touches
    host_cache_bytes: Any = 0.0  # of keys and values that come from host memory


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
    read_again: Any  # share of the weights' reading that each further row costs anew, up to SMALL_ROWS
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


def per_weight(
    setup: Setup, tokens: Any, *, read_share: Any = 1.0, flops_share: Any = 1.0, bytes_per_weight: Any = None,
    rate_share: Any = 1.0, tile_rows: Any = None,
) -> Cost:  # fmt: skip
    """What one weight costs: 2 FLOPs for each token, one reading for each pass.

    `read_share` of the weights is touched (experts); `flops_share` of them multiplies a given token.
    """
    bytes_ = setup.weight_bytes if bytes_per_weight is None else bytes_per_weight
    rows = each = tokens
    if not is_one(flops_share):
        rows = each = tokens * flops_share
    if not is_one(read_share):
        bytes_ = read_share * bytes_
        rows = each / read_share  # an expert multiplies only the tokens routed to it
    tile = setup.tile_rows if tile_rows is None else tile_rows
    alone_s = each * (FLOPS_PER_WEIGHT * setup.flops_share / setup.linear_flops_per_s)
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
        compute_s = compute_s + read_share * setup.widen_s_per_weight * (rows > SMALL_ROWS)
    memory_s = bytes_ / setup.weight_bytes_per_s
    if not is_one(setup.batched_share):
        memory_s = memory_s / where(rows > ONE_ROW, setup.batched_share, 1.0)
    if not is_zero(setup.read_again):
        memory_s = memory_s * (1.0 + setup.read_again * (minimum(maximum(rows, 1.0), SMALL_ROWS) - 1.0))
    return Cost(
        FLOPS_PER_WEIGHT * each, bytes_, compute_s, memory_s, 0.0, combine(compute_s, memory_s, setup.exposed_share)
    )  # fmt: skip


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


def run_pass(setup: Setup, work: Work) -> list[Group]:
    """The operators of one pass, in order of execution, each summed over the layers it occurs in.

    Seconds are those of the pass's latency: divided by tensor parallelism, not by pipeline parallelism, whose
    stages work one after another on the same tokens.
    """
    shape, devices, tokens = setup.shape, setup.tensor_parallel, work.tokens
    kept = setup.layers_kept * work.layers_run
    layers = shape.layers * kept
    share = setup.weights_kept / devices * kept * work.weight_share  # of the model's weights, on each device
    # one cache head cannot be cut: tensor parallelism beyond the KV heads replicates them
    kv_split = minimum(devices, shape.kv_heads)
    linear = per_weight(setup, tokens)
    operators = [
        Group("qkv_projection", layers, linear, shape.qkv_params, share, devices),
        Group("attention", layers, attention_cost(setup, work, kept, kv_split), devices=devices),
        Group("kv_write", layers, kv_write_cost(setup, tokens, kept / kv_split), devices=kv_split),
        Group("attention_output", layers, linear, shape.out_params, share, devices),
        Group("mlp", layers, linear, shape.mlp_params + shape.mixer_params, share, devices),
        *expert_operators(setup, tokens, share, kept),
    ]
    scan_s = 0.0 if is_zero(setup.mixer_layers) else setup.mixer_layers * setup.mixer_layer_s * kept
    operators.append(Group("state_scan", setup.mixer_layers, Cost(seconds=scan_s)))
    width = NORM_TRANSFERS * shape.hidden + 3.0 * shape.mlp_width / devices
    moved = tokens * layers * (ACTIVATION_BYTES * width * setup.elementwise_factor)
    moved_s = moved / setup.weight_bytes_per_s
    operators.append(Group("norm_elementwise", layers, Cost(bytes=moved, memory_s=moved_s, seconds=moved_s)))
    head = per_weight(setup, work.logit_rows, bytes_per_weight=setup.head_bytes)
    operators.append(Group("lm_head", 1.0, head, shape.head_params, 1.0 / devices, devices))
    return operators + link_operators(setup, tokens, layers)


def attention_cost(setup: Setup, work: Work, kept: Any, kv_split: Any) -> Cost:
    """Scores and values of all layers on one device, and reading the cache and the state."""
    shape, devices = setup.shape, setup.tensor_parallel
    elements = shape.kv_elements * work.kv_read_tokens
    if not is_zero(shape.window_elements):
        elements = elements + shape.window_elements * minimum(work.kv_read_tokens, shape.window_tokens)
    read = elements * work.sequences * kept * (setup.kv_element_bytes * setup.kv_kept / kv_split)
    if not is_zero(shape.state_bytes):
        read = read + shape.state_bytes * work.sequences * 2.0 / devices
    flops = work.score_flops * work.pairs
    if not is_zero(shape.window_score_flops):
        flops = flops + shape.window_score_flops * work.window_pairs
    if not is_one(work.attention_share):
        flops = flops * work.attention_share
    flops = flops * kept / devices
    compute_s = flops / setup.attention_flops_per_s
    memory_s = read * work.kv_read_factor / setup.kv_bytes_per_s
    if work.unfused_attention is not False:
        matrix = score_matrix_bytes(pairs=work.pairs, score_heads=shape.score_heads) * (
            setup.score_factor / devices * setup.layers_kept
        )
        matrix = where(work.unfused_attention, matrix, 0.0)
        read = read + matrix
        memory_s = memory_s + matrix / setup.weight_bytes_per_s
    return Cost(flops, read, compute_s, memory_s, 0.0, combine(compute_s, memory_s, setup.exposed_share))


def kv_write_cost(setup: Setup, tokens: Any, kept: Any) -> Cost:
    """Keys and values of the new tokens, written by one device that has a share `kept` of the heads and layers."""
    shape = setup.shape
    each = (shape.kv_elements + shape.window_elements) * setup.kv_element_bytes * setup.kv_kept
    written = tokens * kept * each
    seconds = written / setup.kv_bytes_per_s
    return Cost(bytes=written, memory_s=seconds, seconds=seconds)


def expert_operators(setup: Setup, tokens: Any, share: Any, kept: Any) -> list[Group]:
    """Routed experts and their router; nothing in a dense model."""
    shape, devices = setup.shape, setup.tensor_parallel
    count = shape.moe_layers
    if is_zero(shape.expert_params) and is_zero(shape.router_params) and is_zero(count):
        return [Group("experts", 0.0, NO_COST), Group("router", 0.0, NO_COST)]
    touched = touched_experts(experts=setup.experts, active_experts=setup.active_experts, tokens=tokens)
    routed = per_weight(
        setup, tokens, read_share=touched / setup.experts, flops_share=setup.active_experts / setup.experts,
        rate_share=setup.expert_share, tile_rows=setup.expert_tile_rows,
    )  # fmt: skip
    weights = shape.router_params * share
    each = per_weight(setup, tokens, bytes_per_weight=ACTIVATION_BYTES)
    router = Cost(
        each.flops * weights, each.bytes * weights, each.compute_s * weights, each.memory_s * weights, 0.0,
        each.seconds * weights + setup.expert_layer_s * count * kept,
    )  # fmt: skip
    return [
        Group("experts", count, routed, shape.expert_params * setup.experts / shape.experts, share, devices),
        Group("router", count, router, devices=devices),
    ]


def link_operators(setup: Setup, tokens: Any, layers: Any) -> list[Group]:
    """What goes between devices: all-reduces, hand-over between stages, tokens to their experts."""
    message = tokens * (setup.shape.hidden * ACTIVATION_BYTES)
    return [
        reduce_operator(setup, message, layers),
        stage_operator(setup, message),
        exchange_operator(setup, message),
    ]


def reduce_operator(setup: Setup, message: Any, layers: Any) -> Group:
    """Two all-reduces per layer among the devices that share it."""
    if is_one(setup.tensor_parallel):
        return Group("all_reduce", 0.0, NO_COST)
    reduce_s = all_reduce_seconds(
        bytes_=message, devices=setup.tensor_parallel, bytes_per_s=setup.link_bytes_per_s,
        latency_s=setup.link_latency_s,
    )  # fmt: skip
    collectives = 2.0 * layers * (setup.tensor_parallel > 1.0)
    cost = Cost(bytes=message, link_s=reduce_s, seconds=reduce_s)
    return Group("all_reduce", collectives, cost, collectives)


def stage_operator(setup: Setup, message: Any) -> Group:
    """Activations handed from stage to stage."""
    if is_one(setup.pipeline_parallel):
        return Group("stage_transfer", 0.0, NO_COST)
    stages = setup.pipeline_parallel - 1.0
    seconds = point_to_point_seconds(
        bytes_=message, bytes_per_s=setup.link_bytes_per_s, latency_s=setup.link_latency_s
    )
    return Group("stage_transfer", stages, Cost(bytes=message, link_s=seconds, seconds=seconds), stages)


def exchange_operator(setup: Setup, message: Any) -> Group:
    """Tokens sent to the devices of their experts and back."""
    layers = setup.shape.moe_layers
    if is_zero(layers) or is_one(setup.expert_parallel):
        return Group("expert_exchange", layers, NO_COST)
    seconds = all_to_all_seconds(
        bytes_=2.0 * message * setup.active_experts, devices=setup.expert_parallel,
        bytes_per_s=setup.link_bytes_per_s, latency_s=2.0 * setup.link_latency_s,
    )  # fmt: skip
    return Group("expert_exchange", layers, Cost(link_s=seconds, seconds=seconds), maximum(layers, 0.0))


def overheads(setup: Setup, work: Work, device_s: Any) -> tuple[Any, Any]:
    """Launch and framework time of one pass that the device's work of `device_s` does not hide.

    Kernels leave gaps of `layer_gap_s` per layer. The host issues a layer's kernels in `layer_host_s`; it runs ahead
    of the device, so only what exceeds the device's own time shows.
    """
    layers = setup.shape.layers * (setup.layers_kept * work.layers_run)
    launch = layers * setup.layer_gap_s
    if not is_zero(setup.layer_host_s):
        host_s = layers * setup.layer_host_s
        launch = launch + maximum(host_s - device_s - launch, 0.0) + HOST_EXPOSED * minimum(host_s, device_s)
    return launch, setup.step_s + setup.sequence_s * work.sequences
