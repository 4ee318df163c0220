"""Values computed by hand or printed by a source; none comes from our own code."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from costmodel.attention import causal_pairs
from costmodel.catalogue import find_engine, find_hardware, find_model
from costmodel.comm import all_reduce_seconds
from costmodel.estimate import Estimate, estimate
from costmodel.linear import shape_of
from costmodel.paths import path_for, peak_flops
from costmodel.specs import Deployment, Workload
from costmodel.speculative import expected_tokens
from costmodel.validate import validate_rows

REFERENCE = Path(__file__).parent / "reference"


def run(
    model: str, device: str, engine: str, workload: Workload | None = None, **deployment: object
) -> Estimate:
    return estimate(
        find_model(model).spec, find_hardware(device).spec, workload or Workload(), Deployment(**deployment),
        find_engine(engine).spec,
    )  # fmt: skip


def operator(found: Estimate, name: str, phase: str = "decode"):
    operators = found.decode_operators if phase == "decode" else found.prefill_operators
    return next(o for o in operators if o.name == name)


# ---------------------------------------------------------------- the roofline, by hand


def test_llama_2_70b_decodes_at_both_bandwidths() -> None:
    # 80 layers · (2·8192² + 2·8192·1024 + 3·8192·28672) + 8192·32000 weights · 2 B / (2 · 2.039e12 B/s) = 33.70 ms
    found = run(
        "llama-2-70b", "a100-80gb-sxm", "roofline", Workload(input_tokens=1, output_tokens=1), devices=2
    )
    weights = 80 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672) + 8192 * 32000
    assert weights * 2 / (2 * 2.039e12) == pytest.approx(33.70e-3, rel=1e-3)
    assert found.tpot_s == pytest.approx(33.70e-3, rel=2e-3)


@pytest.mark.parametrize(
    "engine", ["plain", "hf", "vllm", "tensorrt-llm", "llama.cpp", "gpt-fast", "fastertransformer"]
)
def test_no_engine_on_two_a100_beats_33_8_ms(engine: str) -> None:
    assert run("llama-2-70b", "a100-80gb-sxm", engine, devices=2).tpot_s > 33.8e-3


def test_plain_layers_split_over_two_a100_take_about_100_ms() -> None:
    # Zhou et al. 2024 (arXiv:2404.14294, section 2.3): about 100 ms a token
    assert 70e-3 <= run("llama-2-70b", "a100-80gb-sxm", "plain", devices=2).tpot_s <= 130e-3


def test_prefill_flops_of_llama_2_7b() -> None:
    # 32·(4·4096² + 3·4096·11008) = 6.476e9 weights in the layers: 2 · 6.476e9 · 1000 tokens
    found = run("llama-2-7b", "a100-80gb-sxm", "roofline", Workload(input_tokens=1000))
    linear = sum(
        o.flops for o in found.prefill_operators if o.name in ("qkv_projection", "attention_output", "mlp")
    )
    assert linear == 2 * 32 * (4 * 4096**2 + 3 * 4096 * 11008) * 1000


def test_decode_attention_bytes_of_llama_2_70b() -> None:
    # LLM-Viewer issue 12: 2 · 4096 · 8 · 128 · 2 B = 16 777 216 B per layer
    found = run("llama-2-70b", "a100-80gb-sxm", "roofline", Workload(input_tokens=4096, output_tokens=1))
    assert operator(found, "attention").bytes == 80 * 16_777_216


def test_causal_attention_computes_half_of_the_square() -> None:
    assert causal_pairs(new_tokens=1000.0, past_tokens=0.0, window_tokens=1e12) == 500_000
    found = run("llama-2-7b", "a100-80gb-sxm", "roofline", Workload(input_tokens=1000))
    assert operator(found, "attention", "prefill").flops == 4 * 32 * 32 * 128 * 500_000


def test_lm_head_runs_once_per_step_for_each_sequence() -> None:
    found = run("llama-2-7b", "a100-80gb-sxm", "roofline", Workload(batch=8, input_tokens=1000))
    assert operator(found, "lm_head").flops == 2 * 8 * 4096 * 32000
    assert operator(found, "lm_head", "prefill").flops == 2 * 4096 * 32000 * 1


def test_mixtral_multiplies_two_of_eight_experts_and_reads_what_it_touches() -> None:
    found = run("mixtral-8x7b", "h100-sxm", "roofline", Workload(batch=3, input_tokens=1, output_tokens=1))
    expert = 3 * 4096 * 14336
    assert operator(found, "experts").flops == pytest.approx(2 * 3 * 2 * expert * 32)
    # 8 · (1 − (6/8)³) = 4.625 experts of 2 B
    assert operator(found, "experts").bytes == pytest.approx(4.625 * expert * 32 * 2)


def test_ring_all_reduce_of_four() -> None:
    # 2 · 3/4 · 1 MB / 300 GB/s + 2 steps · 10 µs
    seconds = all_reduce_seconds(bytes_=1e6, devices=4.0, bytes_per_s=300e9, latency_s=10e-6)
    assert seconds == pytest.approx(25e-6)


def test_p10_expected_tokens_of_a_draft_of_four() -> None:
    assert expected_tokens(acceptance=0.7, drafted=4) == pytest.approx(2.7731)
    assert expected_tokens(acceptance=1.0, drafted=4) == 5


# ---------------------------------------------------------------- matrix paths


@pytest.mark.parametrize(
    ("device", "engine", "weights", "activations", "path"),
    [
        ("a100-80gb-sxm", "vllm", "fp8", "fp8", "fp16"),  # no FP8 units before Ada
        ("h100-sxm", "vllm", "fp8", "fp8", "fp8"),
        ("h100-sxm", "vllm", "fp8", "fp16", "fp16"),  # weight-only
        ("a100-80gb-sxm", "vllm", "w8a8-int8", "fp16", "int8"),
        ("a100-80gb-sxm", "vllm", "w4a16-awq-g128", "fp16", "fp16"),
        ("rtx-4090", "llama.cpp", "gguf-q4_k_m", "fp16", "int8"),
        ("m2-ultra-76c", "llama.cpp", "gguf-q4_k_m", "fp16", "fp16"),
        ("p40", "llama.cpp", "gguf-q4_0", "fp16", "int8"),
    ],
)  # fmt: skip
def test_paths(device: str, engine: str, weights: str, activations: str, path: str) -> None:
    found = path_for(find_hardware(device).spec, find_engine(engine).spec, weights, activations, None)
    assert found.path == path


def test_consumer_cards_accumulate_in_fp32_at_half_rate() -> None:
    # NVIDIA Ada whitepaper, appendix A: RTX 4090 165.2 TFLOPS with FP32, 330.3 with FP16 accumulation
    card = find_hardware("rtx-4090").spec
    assert peak_flops(card, "fp16") == 165.2e12
    assert peak_flops(card, "fp16", accumulates_16=True) == 330.3e12


def test_a_card_without_matrix_units_multiplies_fp16_at_its_fp32_rate() -> None:
    card = find_hardware("p40").spec
    assert peak_flops(card, "fp16") == card.flops["fp32"]


def test_latent_attention_decodes_in_the_latent_space() -> None:
    # DeepSeek-V3: 61 layers, 128 heads, 512 + 64 cached, 512 values: 2 · 128 · (576 + 512) FLOPs per pair and layer
    shape = shape_of(find_model("deepseek-v3").spec)
    assert shape.decode_score_flops == 61 * 2 * 128 * (576 + 512)
    assert shape.kv_elements == 61 * 576


# ---------------------------------------------------------------- published tables


def table(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((REFERENCE / name).read_text(encoding="utf-8"))))


@pytest.mark.parametrize("row", table("zhou_table6.csv"), ids=lambda row: row["engine"])
def test_zhou_table_6(row: dict[str, str]) -> None:
    # Zhou et al. 2024 (arXiv:2404.14294), Table 6: tokens/s of one request, Llama-2-7B, A100-80GB, 1024 in, 128 out
    found = validate_rows([row])["rows"][0]
    assert found["error"] <= float(row["tolerance"]), found


def test_zhou_table_6_orders_the_engines() -> None:
    rows = {row["engine"]: validate_rows([row])["rows"][0]["predicted"] for row in table("zhou_table6.csv")}
    assert rows["hf"] < rows["deepspeed-inference"] < rows["vllm"]


def test_tuned_kernels_need_ampere() -> None:
    found = {
        card: path_for(find_hardware(card).spec, find_engine("vllm").spec, "w4a16-awq-g128", "fp16", "tuned")
        for card in ("t4", "a10")
    }
    assert found["t4"].dequantize_factor > found["a10"].dequantize_factor
