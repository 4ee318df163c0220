"""Rebuilding printed conditions, reading variants, and the summary's arithmetic."""

from __future__ import annotations

import json
import math

import pytest

from recommender.backtest import backtest, direction, predict_row, same_direction, spearman, summary
from recommender.conditions import Unpriced, rebuild
from recommender.knowledge import Knowledge
from recommender.load_text import find_batch, find_lengths, first_length
from recommender.variants import baseline_format, variant_of, weight_bits
from taxonomy.load import load_techniques


@pytest.fixture(scope="module")
def knowledge():
    return Knowledge(techniques=dict(sorted(load_techniques().items())))


def row(**fields):
    base = {
        "id": "T1",
        "technique": "awq",
        "metric": "decode_speedup",
        "value": "2.4",
        "unit": "x",
        "baseline": "TensorRT-LLM FP16",
        "model": "LLaMA-2-7B",
        "hardware": "A100 (memory size not stated)",
        "n_devices": "1",
        "batch": "1",
        "input_tokens": "128",
        "output_tokens": "not stated",
        "config": "W4A16 AWQ; TensorRT-LLM",
        "source": "Zhou et al. 2024 survey arXiv:2404.14294",
        "notes": "",
        "level": "e2e",
        "value_kind": "point",
        "score": "yes",
    }
    return {**base, **fields}


def test_printed_conditions_become_a_scenario():
    found = rebuild(row())
    assert (found.model, found.hardware, found.engine) == ("llama-2-7b", "a100-80gb-sxm", "tensorrt-llm")
    assert (found.batch, found.input_tokens, found.devices) == (1, 128, 1)
    assert any(item.startswith("hardware") for item in found.assumed)
    assert any(item.startswith("output") for item in found.assumed)


@pytest.mark.parametrize(
    ("fields", "attribute", "value"),
    [
        ({"baseline": "vLLM v0.5.3"}, "engine", "vllm"),
        ({"baseline": "HF fp16", "config": ""}, "engine", "hf"),
        ({"baseline": "autoregressive", "config": ""}, "engine", "hf"),
        ({"hardware": "8x H100", "n_devices": ""}, "devices", 8),
        ({"hardware": "RTX 4090 / Orin"}, "hardware", "rtx-4090"),
        ({"hardware": "not stated"}, "hardware", "a100-80gb-sxm"),
        ({"model": "LLaMA2-Chat-70B"}, "model", "llama-2-70b"),
        ({"model": "Llama-2-70B int4 + 7B int4 draft"}, "model", "llama-2-70b"),
        ({"batch": "concurrency 64, 5000 requests"}, "batch", 64),
        ({"batch": "4 (num_beams=4)"}, "batch", 4),
        ({"batch": "max (7 vs 8)"}, "baseline_batch", 8),
        ({"batch": "QPS=1"}, "batch", 1),
        ({"batch": "high QPS"}, "batch", 256),
        ({"input_tokens": "ShareGPT"}, "input_tokens", 161),
        ({"input_tokens": "1200/2600"}, "input_tokens", 1200),
        ({"input_tokens": "up to 64k"}, "input_tokens", 65536),
    ],
)
def test_kinds_of_texts(fields, attribute, value):
    assert getattr(rebuild(row(**fields)), attribute) == value


@pytest.mark.parametrize(
    "fields", [{"model": "toy layer M=K=N=1024"}, {"hardware": "Alveo U280"}, {"config": "4 threads"}]
)
def test_what_cannot_be_rebuilt_says_why(fields):
    with pytest.raises(Unpriced) as caught:
        rebuild(row(**fields))
    assert caught.value.message


def test_lengths_in_words():
    assert first_length("1k") == 1024 and first_length("32-512") == 32 and first_length("MT-bench") is None


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("W3A16 g128", 3),
        ("int4 g32", 4),
        ("2-bit", 2),
        ("EXL2 3.0 bpw", 3),
        ("INT8 SmoothQuant", 8),
        ("KV int4", None),
    ],
)
def test_bits_of_weights_not_of_the_cache(text, bits):
    assert weight_bits(text) == bits


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("EXL2 4.0 bpw", "exl2-4bpw"),
        ("llama.cpp Q4_0", "gguf-q4_0"),
        ("FP16 57.7 tok/s", None),
        ("BF16 KV", None),
    ],
)
def test_formats_of_baselines(text, found):
    assert baseline_format(text) == found


def test_variants_turn_knobs_that_exist(knowledge):
    found = variant_of({"config": "chain length 3, no tree"}, knowledge.techniques["eagle-3"])
    assert found.knobs["draft_tokens"] == 3 and found.knobs["tree_tokens"] == 1
    assert variant_of({"config": "chain length 3"}, knowledge.techniques["awq"]).knobs == {}
    layout = variant_of({"config": "vLLM TP8 vs TP2"}, knowledge.techniques["tensor-parallel"])
    assert layout.baseline_devices == 2


@pytest.mark.parametrize(
    ("hardware", "slug", "devices"),
    [
        ("A100 (40G)", "a100-40gb-sxm", 1),
        ("8\N{MULTIPLICATION SIGN}H100", "h100-sxm", 8),
        ("H100x2", "h100-sxm", 2),
        ("32 A100", "a100-80gb-sxm", 32),
        ("2 x A10G", "a10g", 2),
        ("RTX 4090 + i9", "rtx-4090", 1),
        ("RTX 6000 Ada", "rtx-6000-ada", 1),
        ("GTX 1080 Ti", "gtx-1080-ti", 1),
        ("64 TPU v4", "tpu-v4", 64),
        ("Grace Hopper", "gh200-96gb", 1),
        ("AWS g5.xlarge", "a10g", 1),
    ],
)
def test_devices_as_sources_print_them(hardware, slug, devices):
    found = rebuild(row(hardware=hardware, n_devices=""))
    assert (found.hardware, found.devices) == (slug, devices)


@pytest.mark.parametrize(
    ("model", "slug"),
    [
        ("Guanaco-65B", "llama-65b"),
        ("PowerInfer OPT-30B", "opt-30b"),
        ("OPT 13B-175B", "opt-13b"),
        ("Yi-34B-200K", "yi-34b"),
        ("LLaMA", "llama-7b"),
        ("Llama-2-70B + Llama-2-7B draft", "llama-2-70b"),
    ],
)
def test_models_as_sources_print_them(model, slug):
    assert rebuild(row(model=model)).model == slug


def test_batches_and_lengths_as_sources_print_them():
    batches = {
        "bs=8": (8, False),
        "batch size 16": (16, False),
        "4 (num_beams=4)": (4, False),
        "32 concurrent users": (32, False),
        "max_num_seqs=128": (128, False),
        "5.5 req/s": (64, False),
        "10 rps": (64, False),
        "single request": (1, False),
        "low load": (1, False),
        "saturated": (256, False),
        "inf": (256, False),
        "memory-limited": (64, True),
    }
    assert {text: find_batch({"batch": text}, []) for text in batches} == batches
    lengths = {"2,048": 2048, "1M": 1024**2, "5-shot MMLU": 512, "32K context": 32768, "Needle 32k": 32768}
    assert {
        text: find_lengths({"input_tokens": text, "metric": "e2e_speedup"}, [])[0] for text in lengths
    } == lengths
    assert find_lengths({"input_tokens": "2k/128", "metric": "e2e_speedup"}, []) == (2048, 128)


def test_a_cache_that_ran_out_bounds_the_batch(knowledge):
    """Half the cache's bytes then means more sequences at once; where it did not run out there is little to gain."""
    burst = {
        "technique": "fp8-kv", "metric": "throughput_gain", "level": "serving", "batch": "burst", "model": "Llama-3.3-70B",
        "hardware": "H100", "n_devices": "4", "baseline": "vLLM BF16 KV", "config": "FP8 KV",
    }  # fmt: skip
    plain = predict_row(row(**burst), knowledge)["predicted"]
    full = predict_row(row(**burst, notes="baseline exhausts KV pool"), knowledge)["predicted"]
    assert 1.0 < plain < 1.1 < full < 2.0


def test_a_practice_of_today_is_set_beside_an_engine_that_lacked_it(knowledge):
    """vLLM pages its cache, so a gain of paging over its kind is over memory reserved for the longest answer."""
    serving = {
        "metric": "throughput_gain",
        "level": "serving",
        "batch": "serving",
        "input_tokens": "ShareGPT",
    }
    paging = row(
        **serving,
        technique="paged-attention",
        model="OPT-13B",
        hardware="A100-40GB",
        baseline="Orca (Max)",
        config="",
    )
    assert predict_row(paging, knowledge)["predicted"] > 1.3
    # where the baseline's text names the format, the figure is about kernels, which the names do not tell apart
    kernels = row(**serving, model="Mistral-7B", baseline="vLLM AWQ fused GEMM", config="other kernel")
    assert "already works this way" in predict_row(kernels, knowledge)["reason"]


def test_reuse_of_prefixes_hangs_on_the_hit_rate(knowledge):
    base = {"technique": "prefix-caching", "metric": "throughput_gain", "level": "serving", "batch": "16"}
    half, none = (predict_row(row(**base, config=f"{share}% hit rate"), knowledge) for share in ("50", "0"))
    assert half["predicted"] > none["predicted"] == 1.0
    assert "share of tokens" in predict_row(row(**base, config="shared prompts"), knowledge)["reason"]


def test_sparse_prefill_is_set_beside_fused_attention(knowledge):
    """MInference's own table (experiments/README.md): a loss at 10,000 tokens, 1.8 times at 100,000, 9.9 at a million."""
    base = {"technique": "minference", "metric": "ttft_reduction", "model": "Llama-3-8B", "config": ""}
    gains = [
        predict_row(row(**base, baseline=baseline, input_tokens=prompt), knowledge)["predicted"]
        for baseline, prompt in (("FlashAttention-2", "16384"), ("dense", "100k"), ("dense", "1M"))
    ]
    assert gains[0] <= 1.0 and 1.5 < gains[1] < gains[2]


def test_a_count_of_devices_is_no_batch(knowledge):
    counts = row(metric="max_batch_gain", level="capacity", baseline="FP16 GPU count", config="5 GPUs -> 1")
    assert "device counts" in predict_row(counts, knowledge)["reason"]


def test_a_row_gets_a_prediction_or_a_reason(knowledge):
    assert predict_row(row(), knowledge)["predicted"] > 1.5
    for fields in (
        {"unit": "%"},
        {"metric": "ppl_delta"},
        {"technique": "nobody"},
        {"level": "kernel"},
        {"model": "BERT-base"},
    ):
        found = predict_row(row(**fields), knowledge)
        assert found["predicted"] is None and found["reason"], fields


def test_zhou_weight_only_decays_and_gives_no_prefill_gain(knowledge):
    """Zhou et al. 2024, Table 4: decode gain falls with batch and prompt; prefill does not gain."""

    def gain(metric, batch, prompt):
        return predict_row(row(metric=metric, batch=str(batch), input_tokens=str(prompt)), knowledge)[
            "predicted"
        ]

    reported = {(1, 128): 2.40, (1, 2048): 2.00, (2, 512): 2.01, (4, 128): 1.72, (4, 2048): 1.42}
    for (batch, prompt), value in reported.items():
        assert abs(math.log(gain("decode_speedup", batch, prompt) / value)) < math.log(1.35), (batch, prompt)
    assert gain("decode_speedup", 1, 128) > gain("decode_speedup", 4, 128) > gain("decode_speedup", 16, 128)
    assert gain("decode_speedup", 1, 128) > gain("decode_speedup", 1, 2048)
    for batch in (1, 2, 4, 8):
        for prompt in (512, 1024, 2048):
            assert gain("prefill_speedup", batch, prompt) <= 1.05


def test_directions():
    assert [direction(value) for value in (1.2, 1.0, 0.97, 0.8)] == [1, 0, 0, -1]
    assert same_direction(1.04, 1.06) and not same_direction(1.2, 0.9)


def test_rank_correlation_by_hand():
    # ranks 1 2 3 4 against 2 1 4 3: 1 - 6*4/(4*15) = 0.6
    assert spearman([1, 2, 3, 4], [20, 10, 40, 30]) == pytest.approx(0.6)
    assert spearman([1, 1], [1, 2]) is None


def test_summary_weighs_techniques_alike():
    def item(technique, reported, predicted, **fields):
        return {
            "technique": technique, "reported": reported, "predicted": predicted, "score": True, "assumed": [],
            "log_ratio": math.log(predicted / reported), "value_kind": "point", "reason": None, **fields,
        }  # fmt: skip

    rows = [item("a", 2.0, 2.0), item("a", 2.0, 2.0), item("a", 2.0, 2.0), item("b", 2.0, 4.0)]
    found = summary(rows)
    assert found["within_1_25x"] == pytest.approx(0.5)  # one technique of two, not three rows of four
    rows.append(item("a", 3.0, 9.0, value_kind="up_to"))
    assert summary(rows)["n"] == 4 and summary(rows)["maxima_respected"] == 0.0


def test_backtest_is_json(knowledge):
    found = backtest([row(), row(id="T2", model="BERT-base")], knowledge)
    json.dumps(found, allow_nan=False)
    assert [entry["id"] for entry in found["rows"]] == ["T1", "T2"]


def test_a_model_without_what_the_technique_works_on_has_its_reason(knowledge):
    found = predict_row(row(technique="mla", model="Mamba-2.8B", hardware="A100-80GB"), knowledge)
    assert found["predicted"] is None and "attention" in found["reason"]


def test_devices_without_their_fabric_talk_over_the_bus(knowledge):
    """llm-perf-bench: eight A100 without NVLink decode a 70B no faster than two (0.94x)."""
    given = row(
        technique="tensor-parallel", model="Llama-2-70B", n_devices="8", config="vLLM TP8 vs TP2", baseline="vLLM 2 GPUs"
    )  # fmt: skip
    bus = predict_row({**given, "hardware": "A100-80GB PCIe (no NVLink)"}, knowledge)["predicted"]
    fabric = predict_row({**given, "hardware": "A100-80GB SXM"}, knowledge)["predicted"]
    assert bus < 0.8 * fabric


def test_a_figure_of_another_engine_is_priced_in_it(knowledge):
    """AWQ paper: 4-bit weights in TinyChat against 16 bits in Hugging Face, 3.2x, which one engine alone does not give."""
    given = row(baseline="HF FP16", config="W4A16", hardware="RTX 4090", input_tokens="128")
    alone = predict_row(given, knowledge)["predicted"]
    across = predict_row({**given, "quoted_number_location": "Section TinyChat results"}, knowledge)[
        "predicted"
    ]
    assert alone < 1.2 and across > 2.5
