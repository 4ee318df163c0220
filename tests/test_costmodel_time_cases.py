"""What users of other estimators reported about time (cases by kind), with the right behaviour or value."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from costmodel.catalogue import find_engine, find_hardware, find_model
from costmodel.estimate import Estimate, estimate
from costmodel.specs import Deployment, Workload


def run(
    model: str, device: str, engine: str = "vllm", work: Workload | None = None, **deployment: object
) -> Estimate:
    return estimate(
        find_model(model).spec, find_hardware(device).spec, work or Workload(), Deployment(**deployment),
        find_engine(engine).spec,
    )  # fmt: skip


# ---------------------------------------------------------------- load


def test_p05_p06_time_per_token_grows_with_the_batch() -> None:
    # aiconfigurator 1146, 1148: Qwen3-8B, H200, 9000 in, 30 out; measured 93.6, 236.8 and 308.8 ms at 16, 32 and 64
    found = [
        run("qwen3-8b", "h200", work=Workload(batch=b, input_tokens=9000, output_tokens=30)).tpot_s
        for b in (16, 32, 64)
    ]
    assert found[0] < found[1] < found[2]
    assert found[2] == pytest.approx(308.8e-3, rel=0.15)


def test_p07_a_mixed_step_costs_less_than_two_passes() -> None:
    work = Workload(batch=16, input_tokens=4096, output_tokens=128)
    mixed = run("qwen3-8b", "h200", work=work)
    alone = run("qwen3-8b", "h200", work=Workload(batch=1, input_tokens=4096, output_tokens=128))
    apart = alone.ttft_s * 15 / 128 + mixed.step_s
    assert mixed.step_s < mixed.tpot_s < apart


def test_p46_throughput_saturates() -> None:
    batch = np.array([1.0, 64, 256, 1024])
    tokens = run(
        "llama-2-7b", "h100-sxm", work=Workload(batch=batch, input_tokens=32, output_tokens=32)
    ).throughput_tok_s
    assert (np.diff(tokens) > 0).all()
    assert tokens[3] / tokens[2] < 2.0  # reported: 15 964 → 16 471 tokens/s for four times the requests


@pytest.mark.parametrize("engine", ["plain", "vllm", "llama.cpp", "tensorrt-llm"])
def test_p45_first_token_follows_the_prompt(engine: str) -> None:
    lengths = np.array([1.0, 64, 512, 2048, 8192])
    first = run("llama-2-7b", "a100-80gb", engine, Workload(input_tokens=lengths)).ttft_s
    assert (np.diff(first) > 0).all()
    if engine != "plain":
        assert first[3] > 10 * first[0]


def test_p47_disaggregation_adds_a_transfer_to_the_first_token() -> None:
    together = run("llama-2-7b", "a100-80gb")
    apart = run("llama-2-7b", "a100-80gb", disaggregated=True)
    assert apart.ttft_s > together.ttft_s
    busy = Workload(batch=32)
    assert (
        run("llama-2-7b", "a100-80gb", work=busy, disaggregated=True).tpot_s
        < run("llama-2-7b", "a100-80gb", work=busy).tpot_s
    )


def test_disaggregation_gives_each_phase_half_of_the_devices() -> None:
    """Prompts take as long as on two of four devices, but for the transfer; each half holds all weights."""
    apart = run("llama-2-7b", "a100-80gb", devices=4, disaggregated=True)
    half = run("llama-2-7b", "a100-80gb", devices=2)
    whole = run("llama-2-7b", "a100-80gb", devices=4)
    assert apart.ttft_s > half.ttft_s > whole.ttft_s
    assert apart.tpot_s == pytest.approx(half.tpot_s)
    assert apart.memory.weights_bytes == pytest.approx(2 * whole.memory.weights_bytes)


def test_mlx_reads_quantized_weights_again_for_each_of_a_few_rows() -> None:
    """ml-explore/mlx#4265: 3.26 times as long for 4 rows as for one, 6.12 for 8 (M3 Ultra, 4 bits)."""
    one, four, eight = (
        run(
            "llama-3.1-8b",
            "m3-ultra-80c",
            "mlx",
            Workload(batch=1),
            weight_format="mlx-4bit",
            verify_tokens=rows,
        ).tpot_s
        for rows in (1, 4, 8)
    )
    assert 2.4 < four / one < 3.5 and 4.5 < eight / one < 6.5


def test_grace_hopper_reaches_its_host_memory_over_its_own_link() -> None:
    """vllm-project/vllm#6317: 4.6 tokens/s of Llama-3-70B in 16 bits with what does not fit on the host; PCIe allows 1."""
    found = run("llama-3-70b", "gh200-96gb", "vllm", Workload(batch=1), host_weight_share=0.4)
    assert 0.1 < found.tpot_s < 1 / 3


def test_a_queue_lengthens_the_first_token_with_the_rate() -> None:
    rates = np.array([0.1, 1.0, 4.0, 10.0])
    found = run("llama-3.1-8b", "a100-80gb", work=Workload(batch=64, request_rate=rates))
    assert (np.diff(found.ttft_s) > 0).all() and (np.diff(found.tpot_s) >= 0).all()
    assert found.throughput_tok_s[0] == pytest.approx(0.1 * 512)


def test_chunked_prefill_delays_the_first_token_at_low_load() -> None:
    work = Workload(batch=1, input_tokens=8192)
    whole = run("llama-3.1-8b", "a100-80gb", work=work, chunk_tokens=1e9)
    chunked = run("llama-3.1-8b", "a100-80gb", work=work, chunk_tokens=512)
    assert chunked.ttft_s > whole.ttft_s


# ---------------------------------------------------------------- weight-only quantization


def gain(
    model: str, device: str, work: Workload, name: str = "tpot_s", engine: str = "vllm", **deployment: object
) -> float:
    before = getattr(run(model, device, engine, work), name)
    after = getattr(run(model, device, engine, work, **deployment), name)
    return after / before if name == "throughput_tok_s" else before / after


AWQ = {"weight_format": "w4a16-awq-g128"}


def test_p48_gain_shrinks_to_none_with_the_batch() -> None:
    gains = [gain("llama-2-13b", "a100-80gb", Workload(batch=b), **AWQ) for b in (1, 32, 256)]
    assert gains[0] > 1.5 and gains[0] > gains[1] > gains[2] and gains[2] <= 1.0


def test_p49_gain_is_small_where_weights_are_not_the_bottleneck() -> None:
    work = Workload(batch=32, input_tokens=3000, output_tokens=512)
    assert 1.0 <= gain("gemma-2-9b", "a100-80gb", work, "throughput_tok_s", "tensorrt-llm", **AWQ) <= 1.4


def test_p50_the_crossover_lies_between_single_requests_and_full_batches() -> None:
    batches = np.array([1.0, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    gains = [gain("llama-3-8b", "h100-sxm", Workload(batch=float(b)), **AWQ) for b in batches]
    below = [b for b, g in zip(batches, gains, strict=True) if g <= 1.0]
    assert below and 8 <= below[0] <= 512


def test_p51_an_immature_kernel_is_slower() -> None:
    work = Workload(batch=16)
    tuned = run("llama-2-7b", "a100-80gb", work=work, **AWQ).tpot_s
    naive = run("llama-2-7b", "a100-80gb", work=work, weight_kernel="naive", **AWQ).tpot_s
    assert naive > tuned and naive > run("llama-2-7b", "a100-80gb", work=work).tpot_s


@pytest.mark.parametrize("device", ["rtx-4090", "a100-80gb", "h100-sxm", "l40s"])
def test_p52_prompts_gain_nothing(device: str) -> None:
    assert gain("llama-2-7b", device, Workload(input_tokens=2048), "ttft_s", **AWQ) <= 1.05


def test_fp8_gains_little_where_overheads_rule() -> None:
    # a small model cut over eight devices: the shards take microseconds, launches and collectives the rest
    work = Workload(batch=1, input_tokens=256)
    fp8 = {"weight_format": "fp8", "activation_format": "fp8"}
    before = run("llama-3.2-1b", "h100-sxm", work=work, devices=8)
    after = run("llama-3.2-1b", "h100-sxm", work=work, devices=8, **fp8)
    assert before.tpot_s / after.tpot_s < 1.15
    assert after.bound in ("overhead", "interconnect")


# ---------------------------------------------------------------- cache and experts


def test_p53_a_narrower_cache_hardly_speeds_up_short_contexts() -> None:
    work = Workload(batch=8)
    assert 1.0 <= gain("qwen3-8b", "a100-80gb", work, kv_format="fp8") <= 1.06
    assert gain("qwen3-8b", "a100-80gb", work, "ttft_s", kv_format="fp8") <= 1.01


def test_p54_its_gain_grows_with_the_context() -> None:
    # vLLM PR 49050: L4, Qwen3-4B, batch 1: +1 % at 2k, +21 % at 32k
    short, long = (
        gain("qwen3-4b", "l4", Workload(input_tokens=n, output_tokens=1), kv_format="fp8")
        for n in (2048, 32768)
    )
    assert short == pytest.approx(1.01, abs=0.03)
    assert long == pytest.approx(1.21, abs=0.08)


@pytest.mark.parametrize("device", ["rtx-4090", "rtx-5090"])
def test_p23_a_mixture_of_experts_is_not_free_at_batch_one(device: str) -> None:
    # llmfit 449: Qwen3-30B-A3B in 4 bits: at most half of what its active bytes allow
    work = Workload(input_tokens=512)
    found = run("qwen3-30b-a3b", device, "llama.cpp", work, weight_format="gguf-q4_k_m")
    limit = run("qwen3-30b-a3b", device, "roofline", work, weight_format="gguf-q4_k_m")
    assert 1 / found.tpot_s <= 0.5 / limit.tpot_s


def test_p58_speculation_gains_less_in_batches() -> None:
    drafted = {"tokens_per_step": 2.0, "verify_tokens": 4, "draft_weight_share": 0.02, "draft_passes": 3}
    gains = [gain("llama-3.1-8b", "h100-sxm", Workload(batch=b), **drafted) for b in (1, 16, 64, 256)]
    assert gains[0] > 1.1 and all(a >= b for a, b in pairwise(gains))


# ---------------------------------------------------------------- what the answer says


def test_p16_the_answer_names_engine_and_version() -> None:
    assumptions = {row["name"]: row for row in run("llama-2-7b", "a100-80gb").as_dict()["assumptions"]}
    assert assumptions["engine"]["value"].startswith("vLLM 0") and assumptions["engine"]["source"]


def test_the_body_of_kb_estimate() -> None:
    body = run("llama-2-70b", "rtx-3090").as_dict()
    assert body["fits"] is False and body["min_devices"] >= 6 and body["bottleneck"] == "weight-capacity"
    assert set(body["memory_bytes"]) >= {
        "weights",
        "kv_cache",
        "activations",
        "overhead",
        "total",
        "available",
    }
    assert body["interval"]["confidence"] == 0.8
    assert body["interval"]["tpot_ms"][0] < body["tpot_ms"] < body["interval"]["tpot_ms"][1]
    assert body["decode"]["bound"] in ("compute", "memory", "interconnect", "overhead")
    assert sum(body["decode"]["terms"].values()) == pytest.approx(body["tpot_ms"])
    for row in body["operators"]:
        assert set(row) == {"name", "phase", "count", "flops", "bytes", "intensity", "ms", "bound"}


@pytest.mark.parametrize(
    ("model", "device", "work", "deployment", "bottleneck"),
    [
        ("llama-3.1-8b", "a100-80gb", Workload(), {}, "weight-bandwidth"),
        ("llama-2-7b", "a100-80gb", Workload(batch=64, input_tokens=3000), {}, "kv-capacity"),
        ("llama-3.1-8b", "h200", Workload(batch=48, input_tokens=8000, output_tokens=4000), {}, "kv-bandwidth"),
        ("llama-3.1-8b", "a100-80gb", Workload(batch=1, input_tokens=2000, output_tokens=2), {}, "compute"),
        ("llama-2-70b", "rtx-3090", Workload(), {"host_weight_share": 0.9}, "weight-capacity"),
        ("llama-3.2-1b", "h100-sxm", Workload(input_tokens=64), {"cuda_graphs": False}, "launch-overhead"),
    ],
)  # fmt: skip
def test_bottlenecks(
    model: str, device: str, work: Workload, deployment: dict[str, object], bottleneck: str
) -> None:
    assert run(model, device, work=work, **deployment).bottleneck == bottleneck


# ---------------------------------------------------------------- stages and rates


def test_pipeline_stages_share_the_sequences_in_flight() -> None:
    # batch is all that is in flight: four stages hold a quarter each, and a token takes t(B / 4) through them all
    whole = Workload(batch=64, input_tokens=16, output_tokens=512)
    split = run("llama-3.1-70b", "h100-sxm", work=whole, devices=4, tensor_parallel=1, pipeline_parallel=4)
    part = run("llama-3.1-70b", "h100-sxm", work=Workload(batch=16, input_tokens=16, output_tokens=512))
    assert split.step_s == pytest.approx(part.step_s, rel=0.02)
    assert split.throughput_tok_s < 4.0 * part.throughput_tok_s
    assert split.throughput_tok_s == pytest.approx(64 * 512 / split.e2e_s)


def test_a_request_rate_counts_the_sequences_really_in_flight() -> None:
    found = run("llama-3.1-8b", "h100-sxm", work=Workload(batch=256, request_rate=2.0))
    full = run("llama-3.1-8b", "h100-sxm", work=Workload(batch=256))
    assert 1 < found.sequences < 50
    assert found.kv_cache_bytes == pytest.approx(full.kv_cache_bytes * found.sequences / 256)
    assert found.max_batch == full.max_batch
    assert found.requests_s == pytest.approx(2.0) and found.throughput_tok_s == pytest.approx(2.0 * 512)
    overloaded = run("llama-3.1-8b", "h100-sxm", work=Workload(batch=8, request_rate=1000.0))
    assert overloaded.sequences == 8 and overloaded.requests_s < 1000


def test_a_filled_in_default_is_still_the_engines_choice() -> None:
    # the recommender hands over effective fields: the budget of a step follows the device all the same
    work = Workload(batch=64, input_tokens=9000, output_tokens=30)
    usual = find_engine("vllm").spec.defaults["chunk_tokens"]
    assert (
        run("qwen3-8b", "h200", work=work, chunk_tokens=usual).tpot_s
        == run("qwen3-8b", "h200", work=work).tpot_s
    )
    many = run("qwen3-8b", "h200", work=work, chunk_tokens=np.array([usual, 512.0])).tpot_s
    assert many[0] == run("qwen3-8b", "h200", work=work).tpot_s and many[1] < many[0]


def decode_gain(device: str, format_: str) -> float:
    """Time per token of Llama-3-8B under llama.cpp in 16 bits over that in `format_`, short context."""
    work, engine = Workload(batch=1, input_tokens=16, output_tokens=64), find_engine("llama.cpp").spec
    model, card = find_model("llama-3-8b").spec, find_hardware(device).spec
    plain, packed = (
        estimate(model, card, work, Deployment(weight_format=name), engine) for name in ("fp16", format_)
    )
    return float(plain.tpot_s / packed.tpot_s)


def test_unpacking_super_blocks_shows_where_lanes_are_few_for_the_memory() -> None:
    """XiongjieDai/GPU-Benchmarks-on-LLM-Inference, Llama-3-8B: M1 Max 35.7 against 18.8 tok/s (1.9), RTX 4090 131
    against 55 (2.4); the bytes alone would give 3.3 on both."""
    assert decode_gain("m1-max-32c", "gguf-q4_k_m") == pytest.approx(35.73 / 18.75, rel=0.15)
    assert decode_gain("m1-max-32c", "gguf-q4_k_m") < 0.8 * decode_gain("rtx-4090", "gguf-q4_k_m")
    assert decode_gain("m1-max-32c", "gguf-q4_k_m") < decode_gain("m1-max-32c", "gguf-q4_0")


def test_two_channels_of_a_desktop_are_kept_busier_than_twelve_of_a_server() -> None:
    """ikawrakow/ik_llama.cpp: a Ryzen 7950X reads BF16 weights of Llama-3.1-8B at 4.1 to 4.3 tok/s, four fifths of
    its memory's rate."""
    work, engine = Workload(batch=1, input_tokens=16, output_tokens=64), find_engine("llama.cpp").spec
    desktop = find_hardware("cpu-ryzen-7950x").spec
    found = estimate(find_model("llama-3.1-8b").spec, desktop, work, Deployment(), engine)
    assert 1.0 / found.tpot_s == pytest.approx(4.2, rel=0.15)


def test_prompts_alone_are_not_served_faster_than_they_are_computed() -> None:
    """One output token (scoring, embedding): 64 requests in flight share the device; nobody's prompt is free."""
    model, card, engine = (
        find_model("llama-3.1-8b").spec, find_hardware("h100-sxm").spec, find_engine("vllm").spec,
    )  # fmt: skip
    work = Workload(batch=np.array([1.0, 64.0]), input_tokens=2048, output_tokens=1)
    found = estimate(model, card, work, Deployment(), engine)
    assert found.requests_s[1] == pytest.approx(found.requests_s[0], rel=0.35)
    # twice the parameters times the prompt, at the data sheet's rate: no schedule beats it
    assert found.requests_s[1] < card.flops["fp16"] / (2 * 7.5e9 * 2048)


@pytest.mark.parametrize("rows, reported", [(1, 3.87), (16, 3.87)])
def test_kernels_for_narrow_weights_keep_reading_fast_up_to_sixteen_rows(rows, reported) -> None:
    """Marlin on an A10, large layers, over FP16 (shared/effects E0817 and E0818); beyond 32 rows it falls off."""
    load = Workload(batch=rows, input_tokens=128, output_tokens=64)

    def layers_s(fmt: str) -> float:
        found = run("llama-2-7b", "a10", work=load, weight_format=fmt)
        return float(next(op.seconds for op in found.decode_operators if op.name == "mlp"))

    gain = layers_s("fp16") / layers_s("w4a16-awq-g128")
    assert reported / 1.25 < gain < reported * 1.25


# ---------------------------------------------------------------- one more request


RUNS_ON = {
    "rtx-3090": ["vllm", "llama.cpp", "plain", "gpt-fast"],
    "a100-80gb-sxm": ["vllm", "llama.cpp", "plain", "gpt-fast"],
    "h100-sxm": ["vllm", "llama.cpp", "plain", "gpt-fast"],
    "m2-ultra-76c": ["llama.cpp", "plain"],
    "cpu-epyc-9654": ["vllm", "llama.cpp", "plain", "gpt-fast"],
}


@pytest.mark.parametrize(
    ("device", "engine"), [(device, engine) for device, engines in RUNS_ON.items() for engine in engines]
)
@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_one_more_request_never_costs_a_multiple(model, device, engine) -> None:
    """From eight requests on one more never doubles the step ((9/8)^6 is 2.03), and the step hardly ever falls."""
    spec, kind = find_hardware(device).spec, find_engine(engine).spec
    batches = np.arange(1.0, 65.0)
    for fmt in ("fp16", "int8", "w4a16-awq-g128", "gguf-q4_k_m"):
        found = estimate(
            find_model(model).spec, spec, Workload(batch=batches, input_tokens=128.0, output_tokens=128.0),
            Deployment(weight_format=fmt), kind,
        )  # fmt: skip
        growth = np.diff(np.log(np.broadcast_to(found.tpot_s, batches.shape)))
        assert growth.min() > -0.02, (fmt, batches[growth.argmin()])
        steepest = (growth / np.diff(np.log(batches)))[7:].max()
        assert steepest < 6.0, (fmt, steepest)
