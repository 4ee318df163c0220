"""What the cost model is told: Hardware, Model, Engine, Workload and Deployment (frozen, units in the names)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Number = float | NDArray[np.float64]
Text = str | NDArray[np.str_]


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """One device as its vendor describes it. Rates are dense; `None` is unknown or absent, never zero."""

    slug: str
    name: str
    vendor: str
    device_class: str  # datacenter | consumer | workstation | cpu | apple | accelerator | tpu | edge | apu
    architecture: str = ""  # pascal volta turing ampere ada hopper blackwell cdna3 rdna3 apple …
    compute_capability: float | None = None  # NVIDIA only, e.g. 8.9
    memory_bytes: float
    bandwidth_bytes_per_s: float
    flops: dict[str, float] = field(default_factory=dict)
    """Dense peak in FLOP/s (OP/s for integers) by compute format: fp32, fp16 (FP32 accumulation), fp16_acc16,
    bf16, int8, fp8, fp4, int4."""
    sparsity_2_4: bool = False
    cache_bytes: float | None = None
    interconnect: str = "none"  # name of the device-to-device link: NVLink4, none …
    interconnect_bytes_per_s: float | None = None  # per direction
    host_bytes_per_s: float | None = None  # PCIe or a link of its own, per direction
    tdp_w: float | None = None
    launch_year: int | None = None
    price_usd: float | None = None
    memory_type: str = ""
    host_link: str = ""  # "PCIe gen4 x16", "soc" where the host's memory is the device's
    source: str = ""
    notes: str = ""

    def __hash__(self) -> int:  # the rates are a dict; equal devices share these
        return hash((self.slug, self.memory_bytes, self.bandwidth_bytes_per_s))


@dataclass(frozen=True, kw_only=True)
class Model:
    """One decoder-only language model from its published dimensions."""

    slug: str
    name: str
    family: str = ""
    hf_id: str = ""
    attention: str = "GQA"  # MHA | GQA | MQA | MLA | SSM | linear-RNN | hybrid
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied_embeddings: bool = False
    gated_mlp: bool = True
    attention_bias: bool = False
    mlp_bias: bool = False
    n_experts: int = 0
    active_experts: int = 0
    shared_experts: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0
    dense_layers: int = 0  # layers with a plain MLP in front of the MoE layers
    moe_layers: int = 0  # 0 and n_experts > 0: every layer but dense_layers
    sliding_window: int | None = None
    global_layers: int | None = None  # layers with full attention where sliding_window is set
    attention_layers: int | None = None  # None: all; fewer in hybrids, 0 in pure state-space models
    kv_layers: int | None = None  # layers that own a KV cache where layers share it; None: attention_layers
    state_bytes_per_sequence: float = 0.0  # constant recurrent state, all layers
    state_layers: int = 0  # layers whose mixer is a state-space or linear-attention one
    state_layer_params: float = 0.0  # weights of one such mixer
    mlp_layers: int | None = (
        None  # layers with an MLP or experts; None: all (fewer where MLPs are layers of their own)
    )
    global_kv_heads: int | None = (
        None  # of the full-attention layers, where they differ from the windowed ones
    )
    global_head_dim: int | None = None
    global_key_is_value: bool = False  # full-attention layers project and store keys only
    attention_gate: bool = False  # a gate of the query's size on the attention output
    attention_output_bias: bool = False
    head_bias: bool = False  # bias of the output embedding
    norms_per_layer: int = 2
    norm_bias: bool = False  # LayerNorm with a bias rather than RMSNorm
    qk_norm: bool = False
    position_rows: int = 0  # rows of a learned position table
    lookup_params: float = 0.0  # per-layer embedding tables: read by row, they take memory but no bandwidth
    mla_q_lora_rank: int = 0
    mla_kv_lora_rank: int = 0
    mla_qk_nope_dim: int = 0
    mla_qk_rope_dim: int = 0
    mla_v_head_dim: int = 0
    max_positions: int | None = None
    total_params: float = 0.0
    active_params: float = 0.0
    native_weight_format: str = "fp16"  # the format in which the publisher ships the weights
    experts_only_quantized: bool = False  # …which leaves attention in 16 bits (gpt-oss: MXFP4 experts)
    source: str = ""
    notes: str = ""

    def __hash__(self) -> int:
        # a few fields tell models apart; hashing all of them would cost more than a whole formula
        return hash((self.slug, self.layers, self.hidden, self.vocab, self.total_params))

    @property
    def is_moe(self) -> bool:
        return self.n_experts > 0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What the users send. Every field may be an array; fields broadcast against the Deployment's."""

    batch: Number = 1
    input_tokens: Number = 1024
    output_tokens: Number = 512
    request_rate: Number | None = None  # requests per second; None: the batch is always full
    cache_hit_rate: Number = 0.0
    context_tokens: Number = 0  # tokens already in the cache before the prompt


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """How the model is run. Techniques are changes of these fields and of nothing else.

    Every field may be an array (numbers or strings); fields broadcast, so a thousand candidate deployments are
    one call of `estimate`. `None` means "what the engine does". Shares are of the unmodified model, in 0…1.
    """

    # --- number formats (names of costmodel/data/formats.csv, or "4.5bpw")
    weight_format: Text = "fp16"
    kv_format: Text = "fp16"
    activation_format: Text = (
        "fp16"  # what the matrix units multiply; fp16 with narrower weights = weight-only
    )
    # --- layout
    devices: Number = 1
    tensor_parallel: Number | None = None  # None: the engine's best split of `devices`
    pipeline_parallel: Number | None = None
    expert_parallel: Number | None = None
    interconnect: Text | None = None
    # --- weights
    weights_kept: Number = 1.0  # structured: share of linear weights left; bytes and FLOPs shrink alike
    layers_kept: Number = 1.0  # share of layers left in the model (depth pruning)
    weight_density: Number = 1.0  # unstructured or N:M: share of non-zero weights
    sparsity_pattern: Text = "none"  # none | 2:4 | unstructured | block
    experts_kept: Number = 1.0  # share of experts left in memory
    active_experts_kept: Number = 1.0  # share of the top-k experts that are evaluated
    extra_weight_bytes: Number = 0.0  # drafts, heads, adapters, outlier tables
    # --- KV cache
    kv_heads_kept: Number = 1.0  # MQA/GQA/MLA conversion: share of the KV width left
    kv_layers_kept: Number = 1.0  # cross-layer sharing
    kv_tokens_kept: Number = 1.0  # eviction: share of context tokens kept (memory and traffic)
    kv_window_tokens: Number | None = None  # keep at most this many tokens per sequence
    kv_read_share: Number = 1.0  # sparse reading: share of the kept cache that a decode step reads
    kv_read_factor: Number = (
        1.0  # time of reading the cache over that of its bytes (codes unpacked outside fast kernels)
    )
    kv_waste_share: Number | None = (
        None  # reserved but unused share of KV memory (0.6 contiguous, <0.04 paged)
    )
    kv_shared_share: Number = 0.0  # share of context tokens stored once for the whole batch (shared prefix)
    # --- attention and activations
    attention_kernel: Text | None = None  # eager | flash
    decode_attention_kernel: Text | None = None  # eager | flash | split (Flash-Decoding)
    prefill_attention_share: Number = 1.0  # sparse attention: share of the S×S scores computed
    # --- tokens
    prompt_kept: Number = 1.0  # prompt compression: share of prompt tokens left
    prompt_overhead_share: Number = 0.0  # cost of compressing, as a share of the uncompressed prefill
    output_kept: Number = 1.0  # output organisation: share of output tokens generated one after another
    # --- sequential decoding
    tokens_per_step: Number = 1.0  # mean tokens accepted per verification step (≥ 1)
    verify_tokens: Number = (
        1  # tokens that one step feeds through the target model (drafted + 1, or tree size)
    )
    draft_weight_share: Number = (
        0.0  # weights of the draft ÷ weights of the target (traffic of one draft pass)
    )
    draft_layer_share: Number = (
        0.0  # layers of one draft pass ÷ layers of the target; 0: a model of its own (√ of its weights)
    )
    draft_passes: Number = 0.0  # sequential draft passes per verification step
    draft_overhead_s: Number = 0.0  # host-side drafting (n-gram look-up, retrieval) per step
    # --- depth and cascades
    layers_executed: Number = 1.0  # early exit: mean share of layers run per decoded token
    weight_read_share: Number = (
        1.0  # contextual sparsity: share of the linear weights that a decode step reads
    )
    cascade_share: Number = 0.0  # share of requests answered by the small model alone
    cascade_size: Number = 0.1  # its size relative to the model
    # --- engine behaviour
    fused_operators: bool | NDArray[np.bool_] | None = None
    cuda_graphs: bool | NDArray[np.bool_] | None = None
    continuous_batching: bool | NDArray[np.bool_] | None = None
    chunk_tokens: Number | None = None  # chunked prefill: tokens per mixed step
    disaggregated: bool | NDArray[np.bool_] = False  # prefill and decode on separate devices
    prefix_cache: bool | NDArray[np.bool_] | None = None  # reuses cached prefixes (Workload.cache_hit_rate)
    cache_host_share: Number = (
        0.0  # share of the reused prefix whose KV comes over the host link, once per request
    )
    # --- kernels
    weight_kernel: Text | None = None  # naive | tuned (Marlin class) | lut ; dequantization cost class
    # --- placement
    host_weight_share: Number = 0.0  # weights streamed from host memory every step
    host_compute: bool | NDArray[np.bool_] = False  # …or multiplied by the host CPU where they lie
    host_memory_bytes_per_s: Number | None = None  # of the host's processor; None: a desktop's
    host_flops_per_s: Number | None = None  # that it achieves
    disk_weight_share: Number = 0.0
    host_kv_share: Number = 0.0
    hot_weight_share: Number = 0.0  # of the host weights, share never touched in a step (activation locality)
    threads: Number | None = None  # of the processor, where the device is a CPU; None: all of its cores
    offload_overlap: Number = 0.0  # share of transfer hidden behind compute, 0…1

    def changed(self, **changes: Any) -> Deployment:
        """A copy with some fields replaced."""
        return replace(self, **changes)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What serving software already does, and what it costs. One table of costmodel/data/engines.toml."""

    slug: str
    name: str
    version: str = ""
    defaults: dict[str, Any] = field(default_factory=dict)
    """Deployment fields that this engine already sets (attention_kernel, fused_operators, cuda_graphs,
    continuous_batching, kv_waste_share …)."""
    layout: str = "tensor"  # tensor | layer (layers split over devices, one works at a time) | pipeline
    formats: tuple[str, ...] = ()  # families of weight formats it can load; empty: any
    kv_formats: tuple[str, ...] = ()
    device_vendors: tuple[str, ...] = ()
    memory_share: float = 1.0  # share of device memory it may use
    reserved_bytes: float = 0.0  # driver and context, per device
    year: float = 0.0  # of the release, 2024.5 is mid-2024; 0: current
    family: str = ""  # kernel class that its efficiencies belong to; several engines share one
    preallocates: bool = False  # takes memory_share of the device at start, whatever it needs
    format_aliases: dict[str, str] = field(default_factory=dict)
    """What a generic format name means there: int4 in llama.cpp is gguf-q4_k_m."""
    workspace: dict[str, float] = field(default_factory=dict)
    """Constants of costmodel/memory.py: fixed_bytes, weight_share, score_copies, hidden_copies, logit_copies …"""
    aliases: tuple[str, ...] = ()
    notes: str = ""
    source: str = ""

    def __hash__(self) -> int:  # the defaults are a dict; equal engines share these
        return hash((self.slug, self.version, self.family, self.year))
