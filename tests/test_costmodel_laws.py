"""Laws that hold whatever the constants are: monotone in resources, sums that add up, gains that fade with batch."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalogue import find_engine, find_hardware, find_model
from costmodel.estimate import Estimate, estimate
from costmodel.specs import Deployment, Workload

MODELS = (
    "llama-2-7b",
    "llama-3.1-8b",
    "llama-2-70b",
    "mixtral-8x7b",
    "gemma-2-9b",
    "deepseek-v3",
    "falcon-mamba-7b",
)
DEVICES = (
    "rtx-3090",
    "rtx-4090",
    "a100-80gb-sxm",
    "h100-sxm",
    "mi300x",
    "m2-ultra-76c",
    "p40",
    "cpu-epyc-9654",
    "gaudi2",
)
ENGINES = (
    "roofline",
    "plain",
    "hf",
    "vllm",
    "tensorrt-llm",
    "llama.cpp",
    "exllamav2",
    "gpt-fast",
    "fastertransformer",
)

models = st.sampled_from(MODELS)
devices = st.sampled_from(DEVICES)
engines = st.sampled_from(ENGINES)
batches = st.sampled_from([1, 2, 7, 16, 64, 200, 512])
prompts = st.sampled_from([1, 17, 512, 2048, 9000])
outputs = st.sampled_from([1, 32, 512])
quick = settings(max_examples=40, deadline=None, derandomize=True)
EPSILON = 1e-9


def run(model: str, device: str, engine: str, workload: Workload, **deployment: object) -> Estimate:
    return estimate(
        find_model(model).spec,
        find_hardware(device).spec,
        workload,
        Deployment(**deployment),
        find_engine(engine).spec,
    )


@quick
@given(models, devices, engines, batches, prompts, outputs, st.sampled_from([1.01, 1.5, 4.0]))
def test_more_bandwidth_and_more_rate_are_never_slower(
    model, device, engine, batch, prompt, output, factor
) -> None:
    work = Workload(batch=batch, input_tokens=prompt, output_tokens=output)
    card, found, software = find_hardware(device).spec, find_model(model).spec, find_engine(engine).spec
    before = estimate(found, card, work, Deployment(), software)
    wider = replace(card, bandwidth_bytes_per_s=card.bandwidth_bytes_per_s * factor)
    faster = replace(card, flops={path: rate * factor for path, rate in card.flops.items()})
    for better in (wider, faster):
        after = estimate(found, better, work, Deployment(), software)
        # the Ultra's two dies begin at a bandwidth: crossing it is another device
        if device == "m2-ultra-76c":
            continue
        assert after.e2e_s <= before.e2e_s * (1 + EPSILON)
        assert after.step_s <= before.step_s * (1 + EPSILON)
        assert after.throughput_tok_s >= before.throughput_tok_s * (1 - EPSILON)
        # under full load a faster step hides less of the prompts in its weights: they wait in front of the first token
        if batch == 1:
            assert after.ttft_s <= before.ttft_s * (1 + EPSILON)


@quick
@given(models, devices, engines, batches, prompts, outputs)
def test_terms_add_up_and_end_to_end_follows(model, device, engine, batch, prompt, output) -> None:
    found = run(model, device, engine, Workload(batch=batch, input_tokens=prompt, output_tokens=output))
    assert sum(found.prefill_terms.values()) == pytest.approx(found.ttft_s)
    assert sum(found.decode_terms.values()) == pytest.approx(found.tpot_s)
    assert found.e2e_s == pytest.approx(found.ttft_s + (output - 1) * found.tpot_s)
    assert found.total_bytes == pytest.approx(
        found.weights_bytes + found.kv_cache_bytes + found.activation_bytes + found.overhead_bytes
    )
    assert min(found.decode_terms.values()) >= 0 and min(found.prefill_terms.values()) >= 0


@quick
@given(models, devices, engines, batches, prompts)
def test_no_engine_beats_the_roofline(model, device, engine, batch, prompt) -> None:
    work = Workload(batch=batch, input_tokens=prompt, output_tokens=64)
    same = {"continuous_batching": False, "chunk_tokens": 0.0, "activation_format": "fp16"}
    limit = run(model, device, "roofline", work, **same)
    found = run(model, device, engine, work, **same)
    assert found.step_s >= limit.step_s * (1 - EPSILON)
    assert found.ttft_s >= limit.ttft_s * (1 - EPSILON)


@quick
@given(models, devices, engines, prompts)
def test_times_grow_with_batch_and_prompt(model, device, engine, prompt) -> None:
    batches = np.array([1.0, 2, 4, 16, 64, 128, 256, 512, 1024])
    many = run(model, device, engine, Workload(batch=batches, input_tokens=prompt, output_tokens=64))
    step = np.broadcast_to(many.step_s, batches.shape)
    assert (np.diff(step) >= -EPSILON * step[:-1]).all()
    prompts = np.array([16.0, 128, 256, 1024, 2048, 5000, 20000, 100000])
    long = run(model, device, engine, Workload(batch=1, input_tokens=prompts, output_tokens=64))
    assert (np.diff(long.ttft_s) > 0).all()
    assert (np.diff(np.broadcast_to(long.step_s, prompts.shape)) >= -1e-12).all()


def gains(model: str, device: str, engine: str, batch: np.ndarray, **changes: object) -> np.ndarray:
    work = Workload(batch=batch, input_tokens=512, output_tokens=128)
    fixed = {"continuous_batching": False}
    before = run(model, device, engine, work, **fixed)
    after = run(model, device, engine, work, **fixed, **changes)
    return np.broadcast_to(before.tpot_s / after.tpot_s, batch.shape)


DENSE = st.sampled_from(["llama-2-7b", "llama-3.1-8b", "llama-2-70b", "gemma-2-9b"])
CARDS = st.sampled_from(["rtx-3090", "rtx-4090", "a100-80gb-sxm", "h100-sxm", "l40s"])


@quick
@given(DENSE, CARDS, st.sampled_from(["plain", "vllm", "gpt-fast", "tensorrt-llm"]))
def test_weight_only_quantization_gains_less_with_batch(model, device, engine) -> None:
    batch = np.array([16.0, 32, 64, 128, 256, 512, 1024])
    gain = gains(model, device, engine, batch, weight_format="w4a16-awq-g128")
    assert (np.diff(gain) <= 0.02).all(), gain
    assert gain[-1] <= 1.0
    assert gains(model, device, engine, np.array([1.0]), weight_format="w4a16-awq-g128")[0] > 1.0


@quick
@given(DENSE, CARDS, st.sampled_from(["plain", "vllm", "gpt-fast", "tensorrt-llm"]), st.integers(2, 8))
def test_speculation_gains_less_with_batch(model, device, engine, drafted) -> None:
    batch = np.array([1.0, 2, 4, 8, 32, 128, 512])
    gain = gains(
        model, device, engine, batch, tokens_per_step=2.5, verify_tokens=drafted + 1, draft_weight_share=0.03,
        draft_passes=drafted,
    )  # fmt: skip
    assert (np.diff(gain) <= 0.02 * gain[:-1]).all(), gain


@quick
@given(models, devices, st.sampled_from(["plain", "hf", "vllm", "llama.cpp"]), batches, prompts)
def test_flash_attention_is_never_slower(model, device, engine, batch, prompt) -> None:
    work = Workload(batch=batch, input_tokens=prompt, output_tokens=64)
    eager = run(model, device, engine, work, attention_kernel="eager", decode_attention_kernel="eager")
    flash = run(model, device, engine, work, attention_kernel="flash", decode_attention_kernel="split")
    assert flash.ttft_s <= eager.ttft_s * (1 + EPSILON)
    assert flash.step_s <= eager.step_s * (1 + EPSILON)


def test_fewer_bits_never_move_more_bytes() -> None:
    order = ["fp32", "fp16", "int8", "w4a16-awq-g128", "gptq-3bit-g128", "aqlm-2bit-1x16"]
    moved = []
    for name in order:
        found = run("llama-2-7b", "a100-80gb-sxm", "vllm", Workload(), weight_format=name)
        moved.append(sum(operator.bytes for operator in found.decode_operators))
    assert moved == sorted(moved, reverse=True)


def test_cache_traffic_follows_the_kv_heads() -> None:
    work = Workload(batch=4, input_tokens=4096)
    attention = []
    for heads in (64, 8, 1):
        model = replace(find_model("llama-2-70b").spec, slug=f"kv{heads}", kv_heads=heads)
        found = estimate(
            model, find_hardware("h100-sxm").spec, work, Deployment(), find_engine("roofline").spec
        )
        attention.append(next(o.bytes for o in found.decode_operators if o.name == "attention"))
    assert attention[0] == pytest.approx(8 * attention[1]) and attention[1] == pytest.approx(8 * attention[2])


@quick
@given(models, st.sampled_from(["rtx-3090", "a100-80gb-sxm"]), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_offloading_more_is_never_faster(model, device, first, second) -> None:
    less, more = sorted((first, second))
    times = [run(model, device, "hf", Workload(), host_weight_share=share).step_s for share in (less, more)]
    assert times[0] <= times[1] * (1 + EPSILON)


@quick
@given(models, devices, engines)
def test_arrays_give_the_numbers_of_single_cases(model, device, engine) -> None:
    batch = np.array([1.0, 8.0, 300.0])
    formats = np.array(["fp16", "int8", "w4a16-awq-g128"])
    graphs = np.array([None, True, False], dtype=object)
    many = run(
        model, device, engine, Workload(batch=batch), weight_format=formats, cuda_graphs=graphs,
        host_weight_share=np.array([0.0, 0.5, 0.0]), tokens_per_step=np.array([1.0, 1.0, 2.0]),
    )  # fmt: skip
    for i in range(3):
        one = run(
            model, device, engine, Workload(batch=float(batch[i])), weight_format=str(formats[i]),
            cuda_graphs=graphs[i], host_weight_share=[0.0, 0.5, 0.0][i], tokens_per_step=[1.0, 1.0, 2.0][i],
        )  # fmt: skip
        single, row = one.as_dict(), many.as_dict(i)
        for name in ("ttft_ms", "tpot_ms", "e2e_ms", "throughput_tok_s", "max_batch", "fits", "bottleneck"):
            assert row[name] == (
                pytest.approx(single[name]) if isinstance(single[name], float) else single[name]
            )
        assert row["memory_bytes"] == pytest.approx(single["memory_bytes"])


@quick
@given(models, devices, engines, st.sampled_from([None, 0.05, 3.0]))
def test_a_grid_gives_the_numbers_of_its_points(model, device, engine, rate) -> None:
    """Prompts down, deployments across: passes that are worked out together keep to their own rows."""
    prompts, batches = np.array([[64.0], [3000.0]]), [1.0, 40.0, 40.0]
    formats, passes, shares = ["fp16", "int8", "fp16"], [0.0, 3.0, 0.0], [0.0, 0.0, 0.5]
    fixed = {"tokens_per_step": 1.5, "verify_tokens": 4.0, "draft_weight_share": 0.1}
    grid = run(
        model, device, engine, Workload(batch=np.array(batches), input_tokens=prompts, request_rate=rate),
        weight_format=np.array(formats), draft_passes=np.array(passes), host_weight_share=np.array(shares), **fixed,
    )  # fmt: skip
    for i, prompt in enumerate(prompts.ravel()):
        for j in range(3):
            one = run(
                model, device, engine, Workload(batch=batches[j], input_tokens=float(prompt), request_rate=rate),
                weight_format=formats[j], draft_passes=passes[j], host_weight_share=shares[j], **fixed,
            ).as_dict()  # fmt: skip
            point = grid.as_dict((i, j))
            for name in ("ttft_ms", "tpot_ms", "e2e_ms", "throughput_tok_s", "max_batch", "bottleneck"):
                wanted = one[name]
                assert point[name] == (pytest.approx(wanted) if isinstance(wanted, float) else wanted), name
            for phase in ("prefill", "decode"):
                assert point[phase]["terms"] == pytest.approx(one[phase]["terms"])
            assert [(each["name"], each["phase"], each["bound"]) for each in point["operators"]] == [
                (each["name"], each["phase"], each["bound"]) for each in one["operators"]
            ]
            for name in ("flops", "bytes", "ms"):
                assert [each[name] for each in point["operators"]] == pytest.approx(
                    [each[name] for each in one["operators"]]
                )


CHANGES: dict[str, object] = {
    "weight_format": "int8", "kv_format": "fp8", "activation_format": "fp8", "devices": 2, "tensor_parallel": 2,
    "pipeline_parallel": 2, "expert_parallel": 2, "interconnect": "pcie", "weights_kept": 0.5, "layers_kept": 0.5,
    "weight_density": 0.5, "sparsity_pattern": "2:4", "experts_kept": 0.5, "active_experts_kept": 0.5,
    "extra_weight_bytes": 1e9, "kv_heads_kept": 0.5, "kv_layers_kept": 0.5, "kv_tokens_kept": 0.5,
    "kv_window_tokens": 256, "kv_read_share": 0.5, "kv_waste_share": 0.6, "kv_shared_share": 0.5,
    "attention_kernel": "eager", "decode_attention_kernel": "eager", "prefill_attention_share": 0.5,
    "prompt_kept": 0.5, "prompt_overhead_share": 0.1, "output_kept": 0.5, "tokens_per_step": 2.0,
    "verify_tokens": 64, "draft_weight_share": 0.1, "draft_passes": 4, "draft_overhead_s": 1e-3,
    "layers_executed": 0.5, "cascade_share": 0.5, "cascade_size": 0.3, "fused_operators": False,
    "cuda_graphs": False, "continuous_batching": False, "chunk_tokens": 256, "disaggregated": True,
    "weight_kernel": "naive", "host_weight_share": 0.5, "host_compute": True, "disk_weight_share": 0.5,
    "host_kv_share": 0.5, "hot_weight_share": 0.5, "offload_overlap": 0.9, "prefix_cache": True,
    "cache_host_share": 0.5, "threads": 2, "host_memory_bytes_per_s": 300e9, "host_flops_per_s": 1e11, "kv_read_factor": 2.0, "draft_layer_share": 0.5, "weight_read_share": 0.5,
}  # fmt: skip
NEEDS: dict[str, dict[str, object]] = {
    "activation_format": {"weight_format": "fp8"}, "weight_density": {"sparsity_pattern": "block"},
    "sparsity_pattern": {"weight_density": 0.5}, "cascade_size": {"cascade_share": 0.5},
    "draft_weight_share": {"draft_passes": 4}, "draft_passes": {"draft_weight_share": 0.1},
    "weight_kernel": {"weight_format": "int4"}, "host_compute": {"host_weight_share": 0.5}, "host_memory_bytes_per_s": {"host_weight_share": 0.5, "host_compute": True}, "host_flops_per_s": {"host_weight_share": 0.5, "host_compute": True},
    "hot_weight_share": {"host_weight_share": 0.5}, "offload_overlap": {"host_weight_share": 0.5},
    "interconnect": {"devices": 2}, "tensor_parallel": {"devices": 4},
    "pipeline_parallel": {"devices": 4, "tensor_parallel": 1}, "expert_parallel": {"devices": 2},
    "cache_host_share": {"prefix_cache": True}, "draft_layer_share": {"draft_passes": 4, "draft_weight_share": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("name", [field.name for field in fields(Deployment)])
def test_every_field_of_a_deployment_acts(name: str) -> None:
    assert name in CHANGES, f"{name} is new: say here how it acts"
    model, device = ("mixtral-8x7b", "h100-sxm") if name != "threads" else ("llama-2-7b", "cpu-epyc-9654")
    work = Workload(batch=4, input_tokens=3000, output_tokens=300, cache_hit_rate=0.5)
    needs = NEEDS.get(name, {})
    before = run(model, device, "vllm", work, **needs).as_dict()
    after = run(model, device, "vllm", work, **{**needs, name: CHANGES[name]}).as_dict()
    keys = ("ttft_ms", "tpot_ms", "throughput_tok_s", "memory_bytes", "max_batch")
    assert [before[key] for key in keys] != [after[key] for key in keys]


def test_stages_of_a_static_engine_overlap_whatever_is_priced_beside():
    model, device = find_model("llama-2-70b").spec, find_hardware("a100-80gb-sxm").spec
    engine, load = find_engine("megatron").spec, Workload(batch=1, input_tokens=8000, output_tokens=16)
    split = {"devices": 4, "tensor_parallel": 1, "pipeline_parallel": 4}
    alone = estimate(model, device, load, Deployment(**split), engine)
    beside = Deployment(**split, continuous_batching=np.array([False, True]))
    together = estimate(model, device, load, beside, engine)
    assert together.ttft_s[0] == pytest.approx(alone.ttft_s, rel=1e-12)
    assert together.ttft_s[0] < together.ttft_s[1]
