"""Rows about engines, devices and spellings that the measurements do not have: priced by the nearest kind, wide."""

import time

import pytest

from costmodel.catalogue import find_engine, find_hardware
from costmodel.engine_names import read_engine_name
from costmodel.estimate import estimate
from costmodel.intervals import spread, table
from costmodel.measured import format_named, read_case
from costmodel.paths import path_for
from costmodel.specs import Deployment, Workload
from costmodel.validate import validate_rows


def row(**changes: str) -> dict[str, str]:
    base = {
        "id": "r", "hardware": "h100-sxm", "n_devices": "1", "engine": "vllm", "engine_version": "",
        "model": "llama-3.1-8b", "weight_format": "fp16", "bits_per_weight": "16", "batch_or_concurrency": "1",
        "input_tokens": "512", "output_tokens": "128", "metric": "decode_tok_s_per_seq", "value": "100",
        "source": "somebody/benchmarks",
    }  # fmt: skip
    return base | changes


# spelling → engine, version that stands in it
SPELLINGS = {
    "vLLM 0.6.3": ("vllm", "0.6.3"), "vllm-0.11.0": ("vllm", "0.11.0"), "vLLM v0.9.1 (V1)": ("vllm", ""),
    "vllm-rocm": ("vllm", ""), "rocm-vllm": ("vllm", ""), "TensorRT-LLM v0.9": ("tensorrt-llm", "0.9"),
    "trt-llm 0.17.0": ("tensorrt-llm", "0.17.0"), "SGLang v0.5.1.post2": ("sglang", "0.5.1.post2"),
    "hf-tgi": ("tgi", ""), "Text Generation Inference 2.0": ("tgi", "2.0"), "llama.cpp b4000": ("llama.cpp", "b4000"),
    "llama.cpp (CUDA)": ("llama.cpp", ""), "llama.cpp-vulkan": ("llama.cpp", ""), "Ollama": ("llama.cpp", ""),
    "LM Studio": ("llama.cpp", ""), "MLC_LLM": ("mlc-llm", ""), "ExLlamaV2 0.1.8": ("exllamav2", "0.1.8"),
    "Triton Inference Server": ("tensorrt-llm", ""), "vllm-neuron": ("neuron", ""),
    "transformers-neuronx": ("neuron", ""), "JetStream-MaxText": ("jetstream", ""),
    "onnxruntime-genai": ("onnxruntime", ""), "OpenVINO 2024.4": ("openvino", "2024.4"), "ipex-llm": ("ipex-llm", ""),
    "HF Transformers 4.38": ("hf", "4.38"), "PowerInfer": ("powerinfer", ""), "FlexGen": ("flexgen", ""),
    "Petals": ("petals", ""), "KTransformers v0.3": ("ktransformers", ""), "DeepSpeed-MII": ("deepspeed-mii", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_versions_and_back_ends_name_the_engine(name: str) -> None:
    found = read_engine_name(name)
    slug, version = SPELLINGS[name]
    assert (found.engine.slug, found.familiar) == (slug, True)
    assert not version or found.version == version


def test_a_version_in_the_name_dates_the_engine() -> None:
    old, new = read_case(row(engine="vLLM 0.2.7")), read_case(row(engine="vLLM 0.11.0"))
    assert (old.kind, new.kind) == ("serving-2023", "serving")
    assert read_case(row(engine="vllm", engine_version="0.2.7")).kind == old.kind


UNKNOWN = (
    "rkllm", "mnn", "candle", "nanoflow", "dashinfer", "scalellm", "mindie", "coreml", "nexa", "xfastertransformer",
    "friendli-engine", "distserve", "tinygrad", "a name that nobody has heard",
)  # fmt: skip
DEVICES = (
    "inferentia2", "trainium2", "tpu-v5e", "tpu-v6e", "mi300x", "mi325x", "arc-b580", "max-1550", "b200-sxm", "gb200",
    "rtx-5090", "jetson-agx-orin-64gb", "jetson-agx-thor", "phone-galaxy-s24-cpu", "m3-max-40c", "m4-max-40c",
    "cpu-ampereone-a192-32x", "cpu-graviton3", "gaudi3", "ascend-910b", "radeon-pro-w7900", "strix-halo-395",
)  # fmt: skip


def test_unknown_engines_are_priced_on_every_kind_of_device_with_the_widest_interval() -> None:
    rows = [row(id=f"{e}/{d}", engine=e, hardware=d) for e in UNKNOWN for d in DEVICES]
    results = validate_rows(rows)["rows"]
    widest = table()[("decode", "*", "*")][0]
    for result in results:
        assert result["predicted"] and "priced as" in result["reason"], result
        low, high = result["interval"]
        assert high / low == pytest.approx(widest**2), result["id"]


def test_known_engines_on_unmeasured_devices_get_wider_intervals_than_on_measured_ones() -> None:
    names = ("b200-sxm", "mi300x", "tpu-v5e", "inferentia2", "arc-b580")
    measured = validate_rows([row(engine="tensorrt-llm", engine_version="0.17")])["rows"][0]
    for result in validate_rows([row(hardware=name) for name in names])["rows"]:
        spread = result["interval"][1] / result["interval"][0]
        assert spread > 1.2 * measured["interval"][1] / measured["interval"][0]


# decode of 16-bit Llama-3.1-8B, one sequence, reads 16.06 GB a token: no device does it faster than its data sheet's
# bandwidth allows, and a published stack that runs at all reaches a fifth of it
BANDWIDTH = {
    "b200-sxm": 8000, "mi300x": 5300, "mi325x": 6000, "tpu-v5e": 819, "tpu-v6e": 1640, "rtx-5090": 1792,
    "h20-96gb": 4000, "gaudi2": 2450, "jetson-agx-thor": 273, "gb10": 273, "m4-max-40c": 546, "arc-b580": 456,
    "l4": 300, "cpu-graviton3": 307,
}  # fmt: skip


@pytest.mark.parametrize("name", BANDWIDTH)
def test_unmeasured_devices_reach_a_plausible_share_of_their_bandwidth(name: str) -> None:
    result = validate_rows([row(hardware=name, output_tokens="16", input_tokens="16")])["rows"][0]
    share = result["predicted"] * 16.06 / BANDWIDTH[name]
    assert 0.2 < share < 0.97


def test_hybrid_rows_are_priced_as_such() -> None:
    hybrid = row(
        hardware="rtx-4090+cpu-xeon-gold-6454s-2s", engine="ktransformers", model="deepseek-v3", weight_format="int4",
        bits_per_weight="4",
    )  # fmt: skip
    result = validate_rows([hybrid])["rows"][0]
    assert result["predicted"] and "host's processor" in result["reason"]
    other = validate_rows([hybrid | {"hardware": "rtx-4090+cpu-nobody-knows"}])["rows"][0]
    assert other["predicted"] is None and "cpu-nobody-knows" in other["reason"]


@pytest.mark.parametrize(
    "hardware, count", [("2x H100-SXM", ""), ("h100-sxm", "2x"), ("h100-sxm", "2 GPUs"), ("h100-sxm", "2")]
)
def test_counts_of_devices_in_any_spelling(hardware: str, count: str) -> None:
    case = read_case(row(hardware=hardware, n_devices=count))
    assert case.hardware and (case.hardware.slug, case.devices) == ("h100-sxm", 2.0)


@pytest.mark.parametrize(
    "name, bits, slug",
    [
        ("int4-awq", "", "w4a16-awq-g128"), ("int8-sq", "", "int8"), ("fp8-kv", "8", "fp8"), ("something", "3.5", "3.5bpw"),
        ("int4_weightonly", "", "int4"),
    ],
)  # fmt: skip
def test_formats_named_inside_longer_names(name: str, bits: str, slug: str) -> None:
    assert format_named(name, bits) == slug


def test_thousands_of_odd_rows_are_all_listed_and_quick() -> None:
    odd = ("", "nan", "inf", "-1", "0", "abc", "1e99", "1,024", "None", "8 (max)", "N/A")
    fields = ("n_devices", "batch_or_concurrency", "input_tokens", "output_tokens", "value", "bits_per_weight",
              "context_depth_tokens", "threads", "parallelism", "kv_format", "interconnect")  # fmt: skip
    rows = [
        row(id=str(i)) | {fields[i % len(fields)]: odd[i // len(fields) % len(odd)], "extra": "x"}
        for i in range(3200)
    ]
    for dropped in ("threads", "source", "output_tokens", "bits_per_weight", "n_devices"):
        short = row(id=f"without {dropped}")
        short.pop(dropped, None)
        rows.append(short)
    rows += [
        row(id="no model", model="nobody-13x"),
        row(id="no metric", metric="joules"),
        row(id="empty", hardware=""),
    ]
    started = time.process_time()
    results = validate_rows(rows)["rows"]
    assert time.process_time() - started < 8.0
    assert [r["id"] for r in results] == [r["id"] for r in rows]
    for result in results:
        assert result["predicted"] or result["reason"], result
    assert sum(r["predicted"] is None for r in results) < 3 + 0.15 * len(rows)


def test_a_device_without_measurements_has_a_wider_interval_than_its_group() -> None:
    known, basis = spread("throughput", "tensorrt-llm/tensorrt", "nvidia-hbm", "h100-sxm")
    new, said = spread("throughput", "tensorrt-llm/tensorrt", "nvidia-hbm", "my-own-card")
    assert known == spread("throughput", "tensorrt-llm/tensorrt", "nvidia-hbm")[0]
    assert new > known > 1.0 and "no measurement on my-own-card" in said and "no measurement" not in basis
    assert spread("decode", "plain/roofline", "nvidia-hbm", "my-own-card")[0] == 1.0


# ---------------------------------------------------------------- kernels follow the device


@pytest.mark.parametrize(
    "name, tuned",
    [("a100-80gb-sxm", True), ("rtx-4090", True), ("t4", False), ("mi300x", False), ("max-1550", False)],
)
def test_tuned_4_bit_kernels_exist_where_cuda_has_asynchronous_copies(name: str, tuned: bool) -> None:
    card, engine = find_hardware(name).spec, find_engine("vllm").spec
    best = path_for(card, engine, "w4a16-awq-g128", "fp16", "tuned")
    slow = path_for(card, engine, "w4a16-awq-g128", "fp16", "naive")
    assert (best.dequantize_factor < slow.dequantize_factor) is tuned
    assert (best.bandwidth_share > slow.bandwidth_share) is tuned


def test_runtimes_with_kernels_of_their_own_keep_them_on_amd() -> None:
    card = find_hardware("rx-7900-xtx").spec
    mlc = find_engine("mlc-llm").spec
    assert path_for(card, mlc, "q4f16_1", "fp16", "tuned") != path_for(card, mlc, "q4f16_1", "fp16", "naive")


@pytest.mark.parametrize(
    "name, path",
    [("rtx-3090", "int8"), ("a100-80gb-sxm", "int8"), ("v100-32gb-sxm", "fp16"), ("p40", "int8")],
)
def test_llama_cpp_multiplies_in_integers_where_they_are_faster(name: str, path: str) -> None:
    engine = find_engine("llama.cpp").spec
    assert path_for(find_hardware(name).spec, engine, "gguf-q4_k_m", "fp16", None).path == path


def test_an_engine_that_runs_experts_one_by_one_pays_for_each() -> None:
    few, many = read_case(row(model="mixtral-8x7b")), read_case(row(model="qwen3-30b-a3b"))
    assert few.model and many.model and many.model.n_experts == 16 * few.model.n_experts

    def routing(model: str, engine: str, hardware: str) -> float:
        case = read_case(row(model=model))
        assert case.model
        found = estimate(
            case.model, find_hardware(hardware).spec, Workload(batch=1.0, input_tokens=64.0, output_tokens=64.0),
            Deployment(weight_format="bf16"), find_engine(engine).spec,
        )  # fmt: skip
        router = next(o for o in found.decode_operators if o.name == "router")
        return float(router.seconds) / float(router.count)

    assert routing("qwen3-30b-a3b", "optimum-habana", "gaudi2") > 5 * routing(
        "mixtral-8x7b", "optimum-habana", "gaudi2"
    )
    assert routing("qwen3-30b-a3b", "vllm", "h100-sxm") < 1.5 * routing("mixtral-8x7b", "vllm", "h100-sxm")


# llama-bench pp512 of an 8B model in 4 bits: what a processor's vector units and a card's matrix units can do at most,
# 16 GFLOP a token; matrix units of a server processor (AMX) are not used by llama.cpp's formats
@pytest.mark.parametrize(
    "name, tera",
    [("cpu-xeon-8592plus", 36.0), ("cpu-xeon-6980p", 66.0), ("mi300x", 2615.0), ("h100-sxm", 1979.0)],
)
def test_llama_cpp_prompts_stay_within_the_units_that_it_uses(name: str, tera: float) -> None:
    prompt = row(
        hardware=name, engine="llama.cpp", engine_version="2025-06", weight_format="gguf-q4_k_m", metric="prefill_tok_s",
        bits_per_weight="", output_tokens="0",
    )  # fmt: skip
    result = validate_rows([prompt])["rows"][0]
    assert 0.02 < result["predicted"] * 16e9 / (tera * 1e12) < 0.25
