"""Memory: sums by hand, laws, and what fits where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.catalogue import find_engine, find_hardware, find_model
from costmodel.memory import (
    driver_bytes,
    host_reserved_bytes,
    memory,
    overhead_bytes_per_device,
    weight_bytes,
)
from costmodel.specs import Deployment, Workload
from costmodel.units import GIB

LLAMA = find_model("llama-2-70b").spec
PLAIN = find_engine("plain").spec


def need(model="llama-2-70b", hardware="rtx-3090", engine="plain", workload=None, **deployment):
    return memory(
        find_model(model).spec,
        find_hardware(hardware).spec,
        workload or Workload(),
        Deployment(**deployment),
        find_engine(engine).spec,
    )


def test_llama_2_70b_in_fp16() -> None:
    assert weight_bytes(LLAMA, Deployment()) == 137_953_296_384


def test_awq_keeps_its_tables_in_16_bits() -> None:
    table, norms = 32000 * 8192, 161 * 8192
    linear = 68_976_648_192 - 2 * table - norms
    expected = (linear * 4.15625 + 2 * table * 16 + norms * 16) / 8
    assert weight_bytes(LLAMA, Deployment(weight_format="awq")) == pytest.approx(expected)


def test_tied_tables_take_the_width_of_the_head() -> None:
    model = find_model("llama-3.2-1b").spec
    table = 128256 * 2048
    linear = 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192)
    norms = 33 * 2048
    expected = (linear * 4.5 + table * 6.5625 + norms * 16) / 8
    assert weight_bytes(model, Deployment(weight_format="q4_0")) == pytest.approx(expected)


def test_an_engine_chooses_its_own_4_bit_format() -> None:
    llama_cpp = find_engine("llama.cpp").spec
    named = weight_bytes(LLAMA, Deployment(weight_format="gguf-q4_k_m"), llama_cpp)
    assert weight_bytes(LLAMA, Deployment(weight_format="int4"), llama_cpp) == named


def test_gpt_oss_experts_in_mxfp4() -> None:
    """The published checkpoint of gpt-oss-120b has 60.8 GiB (OpenAI model card, table 1)."""
    size = weight_bytes(find_model("gpt-oss-120b").spec, Deployment(weight_format="mxfp4"))
    assert size / GIB == pytest.approx(60.8, rel=0.01)


@pytest.mark.parametrize(
    ("hardware", "devices"),
    # 137.95e9 bytes of weights: 24 GiB cards hold 25.77e9 each, 80 GiB cards 85.9e9 (Zhou et al. 2024, section 2)
    [("rtx-3090", 6), ("rtx-4090", 6), ("a100-80gb-sxm", 2), ("h100-sxm", 2)],
)
def test_fewest_devices_for_llama_2_70b(hardware: str, devices: int) -> None:
    assert need(hardware=hardware).min_devices == devices
    assert not need(hardware=hardware).fits


def test_fewest_devices_do_hold_it() -> None:
    for hardware in ("rtx-3090", "a100-80gb-sxm", "l4", "mi300x"):
        fewest = need(hardware=hardware).min_devices
        assert need(hardware=hardware, devices=fewest).fits
        if fewest > 1:
            assert not need(hardware=hardware, devices=fewest - 1).fits


def test_two_bits_fit_on_one_card_and_four_bits_on_two() -> None:
    assert need(weight_format="aqlm-2bit-1x16").fits and need(weight_format="quip#").fits
    assert not need(weight_format="awq").fits
    assert need(weight_format="awq", devices=2).fits


def test_available_memory_is_what_the_box_says_in_gib() -> None:
    assert need().available_bytes == 24 * GIB
    assert need(devices=4).available_bytes == 96 * GIB


def test_the_total_is_the_sum_of_its_parts() -> None:
    for engine in ("plain", "vllm", "llama.cpp", "roofline"):
        m = need(engine=engine, devices=3, workload=Workload(batch=7))
        parts = m.weights_bytes + m.kv_cache_bytes + m.activation_bytes + m.overhead_bytes
        assert m.total_bytes == pytest.approx(parts)


def test_a_preallocating_engine_occupies_its_pool() -> None:
    """vLLM takes 0.9 of an 80 GB card for an 8B model in FP8 (about 9 GB): 72 GiB."""
    m = need("llama-3.1-8b", "h100-sxm", "vllm", weight_format="fp8")
    assert m.weights_bytes == pytest.approx(9.08e9, rel=0.01)
    assert m.reserved_bytes == pytest.approx(0.9 * 80 * GIB)
    assert m.total_bytes < 13e9


def test_needed_and_reserved_cache_are_told_apart() -> None:
    """Contiguous allocation to the longest request wastes 60 % (Kwon et al. 2023, figure 2)."""
    m = need("llama-3.1-8b", "a100", workload=Workload(batch=4), kv_waste_share=0.6)
    assert m.kv_algorithmic_bytes == 4 * 1536 * 131_072
    assert m.kv_cache_bytes == pytest.approx(m.kv_algorithmic_bytes / 0.4)


def test_the_largest_batch_fits_and_one_more_does_not() -> None:
    for hardware, model in (
        ("a100-80gb-sxm", "llama-3.1-8b"),
        ("rtx-4090", "qwen3-4b"),
        ("l4", "gemma-2-2b"),
    ):
        for engine in ("plain", "vllm", "llama.cpp"):
            most = float(need(model, hardware, engine).max_batch)
            assert most >= 1
            assert need(model, hardware, engine, Workload(batch=most)).fits
            assert not need(model, hardware, engine, Workload(batch=most + 1)).fits


def test_tensor_parallelism_beyond_the_heads_copies_the_cache() -> None:
    class Split:
        tensor_parallel = 16.0

    whole = need(workload=Workload(batch=8), devices=16)
    split = memory(
        LLAMA, find_hardware("rtx-3090").spec, Workload(batch=8), Deployment(devices=16), PLAIN, Split()
    )
    assert split.kv_cache_bytes == 2 * whole.kv_cache_bytes


def test_windowed_caches_are_copied_too() -> None:
    class Split:
        tensor_parallel = 8.0

    starcoder = find_model("starcoder2-3b").spec  # 2 KV heads, every layer windowed
    device, work = find_hardware("a100").spec, Workload()
    found = memory(starcoder, device, work, Deployment(devices=8), PLAIN, Split())
    assert found.kv_cache_bytes == 4 * 30_720 * 1536


def test_a_shared_prefix_is_stored_once() -> None:
    alone = need(workload=Workload(batch=10)).kv_cache_bytes
    shared = need(workload=Workload(batch=10), kv_shared_share=0.5).kv_cache_bytes
    assert shared == pytest.approx(alone * (0.5 + 0.05))


def test_offloaded_weights_leave_the_device() -> None:
    assert need(host_weight_share=0.75).weights_bytes == pytest.approx(0.25 * 137_953_296_384)
    assert need(host_weight_share=0.9).fits


@pytest.mark.parametrize(
    ("pattern", "density", "bits"),
    # kept values and two index bits each; kept values and a bitmap; never more than dense
    [
        ("2:4", 0.5, 0.5 * 16 + 0.5 * 2),
        ("unstructured", 0.5, 8 + 1),
        ("unstructured", 0.99, 16),
        ("none", 0.5, 16),
    ],
)
def test_sparse_weights_keep_an_index(pattern: str, density: float, bits: float) -> None:
    table, norms = 32000 * 8192, 161 * 8192
    linear = 68_976_648_192 - 2 * table - norms
    expected = linear * bits / 8 + (2 * table + norms) * 2
    found = weight_bytes(LLAMA, Deployment(weight_density=density, sparsity_pattern=pattern))
    assert found == pytest.approx(expected)


def test_driver_and_error_correction() -> None:
    """What CUDA reports: A100-80GB 79.15 GiB, RTX 3090 23.7, L4 22.0 to 22.5, Apple two thirds or three quarters."""
    left = {
        slug: 1
        - (driver_bytes(find_hardware(slug).spec) + host_reserved_bytes(find_hardware(slug).spec))
        / find_hardware(slug).spec.memory_bytes
        for slug in ("a100-80gb-sxm", "rtx-3090", "l4", "m1-8c", "m2-ultra-76c")
    }
    assert left["a100-80gb-sxm"] * 80 == pytest.approx(79.15, abs=0.15)
    assert left["rtx-3090"] * 24 == pytest.approx(23.7, abs=0.1)
    assert left["l4"] * 24 == pytest.approx(22.3, abs=0.3)
    assert left["m1-8c"] == pytest.approx(2 / 3)
    assert left["m2-ultra-76c"] == pytest.approx(3 / 4)
    assert overhead_bytes_per_device(find_hardware("a100").spec, find_engine("roofline").spec) == 0


def test_shared_memory_is_less_available_rather_than_more_used() -> None:
    """An M2 Ultra of 192 GiB lets Metal use three quarters; an 8B model on it takes what it takes."""
    m = need("llama-3.1-8b", "m2-ultra-76c", "llama.cpp")
    assert m.available_bytes == pytest.approx(0.75 * 192 * GIB)
    assert m.overhead_bytes == 0 and m.total_bytes < 17e9


FORMATS = ["fp32", "fp16", "fp8", "gptq-4bit-g32", "gptq-4bit-g128", "gptq-3bit-g128", "quip-sharp-2bit"]


@settings(deadline=None, max_examples=40)
@given(
    batch=st.integers(1, 512),
    tokens=st.integers(1, 100_000),
    model=st.sampled_from(["llama-3.1-8b", "deepseek-v3", "gemma-3-27b", "jamba-v0.1-52b", "mamba-2.8b"]),
    engine=st.sampled_from(["plain", "vllm", "llama.cpp", "tensorrt-llm"]),
)
def test_laws(batch: int, tokens: int, model: str, engine: str) -> None:
    """Fewer bits are never more bytes; more sequences and longer contexts never take less memory."""
    work = Workload(batch=batch, input_tokens=tokens)
    sizes = [need(model, "h100", engine, work, weight_format=f).weights_bytes for f in FORMATS]
    assert sizes == sorted(sizes, reverse=True)
    base = need(model, "h100", engine, work)
    assert need(model, "h100", engine, replace(work, batch=batch + 1)).total_bytes >= base.total_bytes
    assert need(model, "h100", engine, replace(work, input_tokens=tokens + 1)).total_bytes >= base.total_bytes
    assert need(model, "h100", engine, work, kv_format="fp8").kv_cache_bytes <= base.kv_cache_bytes
    assert need(model, "h100", engine, work, devices=2).total_bytes >= base.total_bytes
    assert base.min_devices >= 1 and base.total_bytes > 0


def test_arrays_give_what_single_cases_give() -> None:
    batch = np.array([1.0, 8.0, 64.0])[:, None]
    names = np.array(["fp16", "int8", "w4a16-awq-g128", "gguf-q4_k_m"])
    many = need("llama-3.1-8b", "a100", "vllm", Workload(batch=batch), weight_format=names)
    assert many.total_bytes.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            one = need(
                "llama-3.1-8b",
                "a100",
                "vllm",
                Workload(batch=float(batch[i, 0])),
                weight_format=str(names[j]),
            )
            assert many.total_bytes[i, j] == pytest.approx(one.total_bytes)
            assert np.broadcast_to(many.min_devices, (3, 4))[i, j] == one.min_devices
            assert np.broadcast_to(many.max_batch, (3, 4))[i, j] == one.max_batch


@pytest.mark.parametrize("share", [0.25, 0.9, 1.0])
def test_what_leaves_the_device_is_on_the_host(share) -> None:
    whole, moved = need(), need(host_weight_share=share, host_kv_share=share)
    assert whole.host_bytes == 0
    for name in ("weights_bytes", "kv_cache_bytes"):
        assert getattr(moved, name) == pytest.approx((1 - share) * getattr(whole, name))
    assert moved.host_bytes == pytest.approx(share * (whole.weights_bytes + whole.kv_cache_bytes))
