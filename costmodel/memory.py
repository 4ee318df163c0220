"""Bytes on the devices: weights, KV cache, working buffers, what driver and engine keep; whether it all fits.

All sums are over all devices, replication by the layout included. Algorithmic need and engine reservation are told
apart: `total_bytes` is what the deployment needs, `reserved_bytes` what an engine that allocates its pool at the
start occupies whatever it needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from costmodel import formats
from costmodel.kvcache import (
    cache_width,
    head_replication,
    kept_tokens,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    state_bytes_per_sequence,
)
from costmodel.numeric import ceiling, is_zero, maximum, minimum, or_default, where
from costmodel.params import Parameters, count_parameters
from costmodel.specs import Deployment, Engine, Hardware, Model, Workload
from costmodel.units import BITS_PER_BYTE, GIB

PLAIN_BITS = 16.0  # norms, biases and routers stay in 16 bits
INDEX_BITS_2_4 = 2.0  # per kept value (Mishra et al. 2021, arXiv:2104.08378, section 3)
INDEX_BITS_UNSTRUCTURED = 1.0  # a bitmap: one bit per weight
HALF = 2.0  # bytes of a 16-bit activation
NO_LIMIT = 1e15
SINGLE = 4.0  # bytes of an FP32 logit or score

# What the operating system and the driver keep of a device (constants with their reasons, not fitted)
DRIVER_SHARE = 0.0115  # an 80 GB A100 offers 79.15 GiB, a 24 GB RTX 3090 23.7 GiB
INLINE_ECC_SHARE = 0.0625  # data-centre cards with GDDR keep check bits in the same memory: L4 22.5 of 24 GiB
HOST_SHARE = 0.05  # operating system and services, CPUs
UNIFIED_SHARE = 0.14  # APUs and boards share memory with the system: about 110 of 128 GiB usable
METAL_SMALL_SHARE, METAL_LARGE_SHARE = (
    1 / 3,
    1 / 4,
)  # Metal's recommended working set: 2/3 up to 36 GiB, then 3/4
METAL_LARGE_BYTES = 37 * GIB
PHONE_SHARE = 0.2

# Working buffers, where an engine states nothing of its own (Engine.workspace overrides)
DEFAULT_WORKSPACE = {
    "hidden_copies": 12.0,  # 16-bit vectors of the hidden size alive per token in flight
    "mlp_copies": 2.0,  # … of the MLP's width
    "score_copies": 1.5,  # 16-bit S×S matrices per head alive in an unfused attention
    "logit_copies": 1.5,  # FP32 vectors of the vocabulary's size per position that gets logits
    "logit_all_positions": 0.0,  # 1: logits of the whole prompt, as older Hugging Face models compute them
    "tokens_in_flight": 0.0,  # at most so many tokens prefilled at once; 0: the whole batch of prompts
    "weight_share": 0.0,  # scratch space that grows with the weights
    "replicated_copies": 2.0,  # 16-bit hidden vectors per token that every tensor-parallel device keeps
}


# ---------------------------------------------------------------- weights


def weight_bytes(model: Model, deployment: Deployment, engine: Engine | None = None) -> Any:
    """Bytes of the weights as stored, each part in its own format.

    bytes = (linear · b_w + input embedding · b_e + head · b_h + (norms, biases, router) · 16) / 8 and extra bytes.
    Pruned layers, channels and experts are gone; unstructured sparsity keeps a bitmap, 2:4 two bits per kept value.

    >>> llama = Model(slug="l", name="l", layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128,
    ...               intermediate=28672, vocab=32000)
    >>> weight_bytes(llama, Deployment())      # Llama-2-70B in FP16
    137953296384.0
    """
    name = formats.for_engine(deployment.weight_format, engine.format_aliases if engine else {})
    parts = count_parameters(model)
    bits, embedding_bits, head_bits = formats.stored_bits(name)
    linear = linear_weights(parts, deployment) * _sparse_bits(bits, deployment)
    if model.experts_only_quantized:
        # published in MXFP4, which its makers use for the experts alone
        four = formats.lookup(name, "family") == "fp4"
        kept = deployment.weights_kept * deployment.layers_kept
        linear = linear + where(four, kept * (parts.attention + parts.dense_mlp) * (PLAIN_BITS - bits), 0.0)
    plain = maximum(bits, PLAIN_BITS)
    rest = (parts.norms * deployment.layers_kept + parts.router * deployment.experts_kept) * plain
    if parts.head:
        tables = parts.embedding * embedding_bits + parts.head * head_bits
    else:  # one table serves as input and output; converters store it as the head
        tables = parts.embedding * head_bits
    tables = tables + parts.lookup * embedding_bits
    total = (linear + rest + tables) / BITS_PER_BYTE + deployment.extra_weight_bytes
    if is_zero(deployment.disaggregated):
        return total
    # the devices that process prompts and those that decode hold all of them each
    return total * where(deployment.disaggregated & (deployment.devices > 1), 2.0, 1.0)


def linear_weights(parts: Parameters, deployment: Deployment) -> Any:
    """Weights of the layers left after structured pruning."""
    kept = deployment.weights_kept * deployment.layers_kept
    dense = parts.attention + parts.mixer + parts.dense_mlp + parts.shared_experts
    return kept * (dense + parts.experts * deployment.experts_kept)


def _sparse_bits(bits: Any, deployment: Deployment) -> Any:
    """Bits per weight of the unpruned matrix when only a share of its values is stored."""
    density = deployment.weight_density
    if isinstance(density, int | float) and density >= 1.0:
        return bits
    pattern = deployment.sparsity_pattern
    if isinstance(pattern, str):
        index = {"2:4": INDEX_BITS_2_4 * density, "unstructured": INDEX_BITS_UNSTRUCTURED}.get(pattern, 0.0)
        stored = bits * density + index
        return bits if pattern == "none" else minimum(stored, bits)
    index = where(
        pattern == "2:4",
        INDEX_BITS_2_4 * density,
        where(pattern == "unstructured", INDEX_BITS_UNSTRUCTURED, 0.0),
    )
    return where(pattern == "none", bits, minimum(bits * density + index, bits))


def device_weight_share(deployment: Deployment) -> Any:
    """Share of the weights that lies in device memory: the rest is on the host or on disk."""
    return maximum(1.0 - deployment.host_weight_share - deployment.disk_weight_share, 0.0)


# ---------------------------------------------------------------- KV cache


def setting(deployment: Deployment, engine: Engine, name: str, fallback: Any) -> Any:
    """A Deployment field, or what the engine does where it is None."""
    value = getattr(deployment, name)
    default = engine.defaults.get(name)
    default = fallback if default is None else default
    return default if value is None else or_default(value, default)


def context_at_end(workload: Workload, deployment: Deployment) -> Any:
    """Tokens that a sequence has in the cache when its last token is generated."""
    prompt = workload.input_tokens * deployment.prompt_kept
    return workload.context_tokens + prompt + workload.output_tokens


class Cache(NamedTuple):
    """Cache of one sequence: keys and values, recurrent state, and the share reserved in vain."""

    kv: Any
    state: Any
    waste: Any

    @property
    def needed(self) -> Any:
        return self.kv + self.state

    @property
    def reserved(self) -> Any:
        return self.kv / (1.0 - self.waste) + self.state


def kv_bits(deployment: Deployment, engine: Engine) -> Any:
    """Bits of one cached number."""
    name = formats.for_engine(deployment.kv_format, engine.format_aliases, "kv")
    return formats.lookup(name, "bits_per_weight", "kv", "kv_format")


def cache_of_sequence(
    model: Model, workload: Workload, deployment: Deployment, engine: Engine, bits: Any
) -> Cache:  # fmt: skip
    """Keys, values and state of one sequence at its longest.

    bytes = kv(S · kept) · heads kept · layers kept · (1 − s + s/B) / (1 − waste) + state, where a share s of the
    context is stored once for the batch of B (shared prefixes).
    """
    tokens = kept_tokens(
        context_at_end(workload, deployment),
        tokens_kept=deployment.kv_tokens_kept,
        window_tokens=deployment.kv_window_tokens,
    )
    kv = kv_bytes_per_sequence(model, tokens, bits)
    kv = kv * deployment.kv_heads_kept * deployment.kv_layers_kept * deployment.layers_kept
    shared = deployment.kv_shared_share
    if not (isinstance(shared, int | float) and shared == 0.0):
        kv = kv * (1.0 - shared + shared / maximum(workload.batch, 1.0))
    waste = setting(deployment, engine, "kv_waste_share", 0.0)
    return Cache(kv, state_bytes_per_sequence(model) * deployment.layers_kept, waste)


# ---------------------------------------------------------------- working buffers


def workspace(engine: Engine, name: str) -> float:
    """A constant of the working buffers: the engine's own, or the default."""
    return float(engine.workspace.get(name, DEFAULT_WORKSPACE[name]))


class Buffers(NamedTuple):
    """Working buffers of prefill, all devices: T · token + B · sequence + fixed for T = min(B · prompt, limit)."""

    token: Any  # bytes per token in flight
    sequence: Any  # bytes per sequence: logits
    fixed: Any  # scratch space that grows with the weights
    prompt: Any  # tokens per sequence
    limit: Any  # most tokens in flight; infinity where the whole batch is prefilled together

    def at(self, batch: Any) -> Any:
        """Bytes for `batch` sequences."""
        tokens = minimum(batch * self.prompt, self.limit)
        return tokens * self.token + batch * self.sequence + self.fixed


def working_buffers(
    model: Model, workload: Workload, deployment: Deployment, engine: Engine, weights: Any
) -> Buffers:
    """What activations, score matrices and logits take at their largest, which is during prefill.

    bytes = T·[2(c_h·h + c_m·w) + (eager) 2·c_s·H·S] + B·4·c_l·V·(positions with logits) + weights · share
    for T = B·S tokens in flight (fewer under chunked prefill). FlashAttention keeps no S×S matrix
    (Dao et al. 2022, arXiv:2205.14135).
    """
    prompt = maximum(workload.input_tokens * deployment.prompt_kept, 1.0)
    width = HALF * (
        workspace(engine, "hidden_copies") * model.hidden
        + workspace(engine, "mlp_copies") * _mlp_width(model)
    )
    positions = prompt if workspace(engine, "logit_all_positions") else 1.0
    return Buffers(
        token=width + _score_bytes_per_token(model, prompt, deployment, engine),
        sequence=SINGLE * workspace(engine, "logit_copies") * model.vocab * positions,
        fixed=weights * workspace(engine, "weight_share"),
        prompt=prompt,
        limit=_most_tokens(deployment, engine),
    )


def _most_tokens(deployment: Deployment, engine: Engine) -> Any:
    limit = setting(deployment, engine, "chunk_tokens", 0.0)
    usual = workspace(engine, "tokens_in_flight") or NO_LIMIT
    if isinstance(limit, int | float):
        return limit or usual
    return where(limit > 0.0, limit, usual)  # some of many candidates chunk their prompts


def _mlp_width(model: Model) -> float:
    """Intermediate values of one token in one layer."""
    if not model.n_experts:
        return float(model.intermediate)
    expert = model.expert_intermediate or model.intermediate
    shared = model.shared_intermediate or model.shared_experts * expert
    return float(model.active_experts * expert + shared)


def _score_bytes_per_token(model: Model, prompt: Any, deployment: Deployment, engine: Engine) -> Any:
    kernel = setting(deployment, engine, "attention_kernel", "flash")
    if deployment.attention_kernel is None and "score_copies" in engine.workspace:
        kernel = "eager"  # measured peaks show the matrices, whatever the kernel is called
    if isinstance(kernel, str) and kernel != "eager":
        return 0.0
    scores = HALF * workspace(engine, "score_copies") * model.heads * prompt
    return scores if isinstance(kernel, str) else where(kernel == "eager", scores, 0.0)


# ---------------------------------------------------------------- what is not available


def host_reserved_bytes(hardware: Hardware) -> float:
    """What the operating system keeps of a memory that it shares with the device: it was never available."""
    kind = hardware.device_class
    if kind == "cpu":
        share = PHONE_SHARE if hardware.slug.startswith("phone") else HOST_SHARE
    elif kind == "apple":
        small = hardware.memory_bytes < METAL_LARGE_BYTES
        share = METAL_SMALL_SHARE if small else METAL_LARGE_SHARE
    elif kind in ("apu", "edge") or "unified" in hardware.memory_type:
        share = UNIFIED_SHARE
    else:
        share = 0.0
    return hardware.memory_bytes * share


def driver_bytes(hardware: Hardware) -> float:
    """What driver and error correction keep of the memory of a card of its own."""
    kind = hardware.device_class
    if host_reserved_bytes(hardware) or "SRAM" in hardware.memory_type:
        return 0.0
    share = DRIVER_SHARE
    if kind == "datacenter" and hardware.memory_type.startswith("GDDR6"):
        share += INLINE_ECC_SHARE
    return hardware.memory_bytes * share


def overhead_bytes_per_device(hardware: Hardware, engine: Engine) -> float:
    """Driver, context and libraries on one device; the roofline has none."""
    if engine.family == "roofline":
        return 0.0
    context = 0.0 if hardware.device_class in ("cpu", "apple") else engine.reserved_bytes
    return driver_bytes(hardware) + context


# ---------------------------------------------------------------- all together


def largest_batch(room: Any, cache_per_sequence: Any, buffers: Buffers) -> Any:
    """Most sequences B with B·cache + buffers(B) ≤ room.

    min(B·p, L)·t ≤ x means B·p·t ≤ x or L·t ≤ x, so the larger of the two solutions is the answer.

    >>> largest_batch(100.0, 10.0, Buffers(token=1.0, sequence=0.0, fixed=0.0, prompt=5.0, limit=20.0))
    8.0
    """
    left = room - buffers.fixed
    each = cache_per_sequence + buffers.sequence
    together = left // maximum(each + buffers.prompt * buffers.token, 1.0)
    chunked = (left - minimum(buffers.limit, NO_LIMIT) * buffers.token) // maximum(each, 1.0)
    return maximum(maximum(together, chunked), 0.0)


@dataclass
class Memory:
    """Bytes over all devices; numbers or arrays. What follows from them is worked out when asked for."""

    weights_bytes: Any
    kv_cache_bytes: Any
    activation_bytes: Any
    overhead_bytes: Any
    total_bytes: Any
    available_bytes: Any
    model: Model
    deployment: Deployment
    preallocates: bool
    batch: Any
    stored_bytes: Any  # of all weights, wherever they lie
    cache: Cache  # of one sequence, without copies
    kv_bits: Any
    replication: Any  # copies of the cache
    buffers: Buffers
    free_per_device: Any  # for weights, cache and buffers

    @cached_property
    def fits(self) -> Any:
        """total ≤ available."""
        return self.total_bytes <= self.available_bytes

    @cached_property
    def reserved_bytes(self) -> Any:
        """Occupied in practice: the total, or an engine's whole pool."""
        return maximum(self.total_bytes, self.available_bytes) if self.preallocates else self.total_bytes

    @property
    def kv_bytes_per_sequence(self) -> Any:
        """On the devices, without copies."""
        return self.cache.reserved * self._on_device

    @cached_property
    def kv_algorithmic_bytes(self) -> Any:
        """Keys, values and state that attention needs, without what is reserved in vain."""
        return self.batch * self.replication * self.cache.needed * self._on_device

    @cached_property
    def host_bytes(self) -> Any:
        """Weights and cache moved to host memory; whether the machine has as much is not checked."""
        cache = self.batch * self.cache.reserved * self.replication * self.deployment.host_kv_share
        return self.stored_bytes * self.deployment.host_weight_share + cache

    @cached_property
    def min_devices(self) -> Any:
        """The fewest whose memory together holds weights, cache and buffers, layers split freely.

        ⌈(weights + cache + buffers) / (memory · share − overhead)⌉
        """
        alone = self.weights_bytes + self.batch * self.kv_bytes_per_sequence + self.activation_bytes
        return maximum(ceiling(alone / maximum(self.free_per_device, 1.0)), 1.0)

    @cached_property
    def max_batch(self) -> Any:
        """How many sequences fit into the devices at hand."""
        sequence = self.kv_bytes_per_sequence * self.replication
        return largest_batch(self._room, sequence, self.buffers)

    @cached_property
    def kv_capacity_tokens(self) -> Any:
        """Tokens that the memory left over can cache, as engines log it at their start.

        ⌊room / (bytes per token · copies)⌋; infinite for models that cache none.
        """
        kept = self.deployment
        each = kv_bytes_per_token(self.model, self.kv_bits) * self.replication
        each = each * kept.kv_heads_kept * kept.kv_layers_kept * kept.layers_kept
        room = maximum(self._room - self.activation_bytes, 0.0)
        return where(each > 0.0, room // maximum(each, 1e-9), float("inf"))

    @property
    def _room(self) -> Any:
        """Beside weights and what driver and engine keep."""
        return self.available_bytes - self.weights_bytes - self.overhead_bytes

    @property
    def _on_device(self) -> Any:
        return 1.0 - self.deployment.host_kv_share


def memory(
    model: Model,
    hardware: Hardware,
    workload: Workload,
    deployment: Deployment,
    engine: Engine,
    layout: Any = None,
) -> Memory:
    """What one deployment, or many, needs; `layout` has tensor_parallel (or None: no replication)."""
    devices, batch = deployment.devices, workload.batch
    tensor_parallel = 1.0 if layout is None else layout.tensor_parallel
    stored = weight_bytes(model, deployment, engine)
    held = stored * device_weight_share(deployment)
    bits = kv_bits(deployment, engine)
    cache = cache_of_sequence(model, workload, deployment, engine, bits)
    width = cache_width(model)
    replication = head_replication(model, tensor_parallel) if width.full + width.windowed else 1.0
    cached = batch * (cache.reserved * (1.0 - deployment.host_kv_share)) * replication
    working = working_buffers(model, workload, deployment, engine, held)
    copies = HALF * workspace(engine, "replicated_copies") * model.hidden * (tensor_parallel - 1.0)
    working = working._replace(token=working.token + copies)
    activations = working.at(batch)
    per_device = overhead_bytes_per_device(hardware, engine)
    # engines whose pool is a share of what is free after loading can use more than that share of the whole
    usable = hardware.memory_bytes * engine.workspace.get("usable_share", engine.memory_share)
    if engine.family != "roofline":
        usable -= host_reserved_bytes(hardware)
    overhead = devices * per_device
    return Memory(
        weights_bytes=held,
        kv_cache_bytes=cached,
        activation_bytes=activations,
        overhead_bytes=overhead,
        total_bytes=held + cached + activations + overhead,
        available_bytes=devices * usable,
        model=model,
        deployment=deployment,
        preallocates=engine.preallocates,
        batch=batch,
        stored_bytes=stored,
        cache=cache,
        kv_bits=bits,
        replication=replication,
        buffers=working,
        free_per_device=usable - per_device,
    )
