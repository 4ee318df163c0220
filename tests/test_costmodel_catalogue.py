"""Names: any spelling a person types finds the device, model or engine meant, and an unknown one says what is near."""

from __future__ import annotations

import pytest

from costmodel import catalogue
from costmodel.catalogue import find_devices, find_engine, find_hardware, find_model
from costmodel.engine_names import nearest_engine
from costmodel.errors import InvalidFile, InvalidValue, UnknownName


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ("rtx-3090", "rtx-3090"),
        ("rtx3090", "rtx-3090"),
        ("RTX 3090", "rtx-3090"),
        ("3090", "rtx-3090"),
        ("NVIDIA GeForce RTX 3090", "rtx-3090"),
        ("rtx_3090", "rtx-3090"),
        ("4090", "rtx-4090"),
        ("a100", "a100-80gb-sxm"),
        ("a100-80gb", "a100-80gb-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"),
        ("A100 80GB PCIe", "a100-80gb-pcie"),
        ("h100", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("Tesla T4", "t4"),
        ("Tesla V100-SXM2-32GB", "v100-32gb-sxm"),
        ("RTX A6000", "a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("AMD Instinct MI300X", "mi300x"),
        ("7900 xtx", "rx-7900-xtx"),
        ("Apple M2 Max", "m2-max-38c"),
        ("m2 ultra", "m2-ultra-76c"),
        ("epyc 9654", "cpu-epyc-9654"),
        ("tpu v6e", "tpu-v6e"),
        ("H200 141GB", "h200-sxm"),
        ("MacBook Pro M3 Max", "m3-max-40c"),
        ("DGX H100", "h100-sxm"),
    ],
)
def test_a_device_is_found_by_any_spelling(asked: str, slug: str) -> None:
    assert find_hardware(asked).slug == slug


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ("70b", "llama-2-70b"),
        ("7B", "llama-2-7b"),
        ("13b", "llama-2-13b"),
        ("8b", "llama-3.1-8b"),
        ("405b", "llama-3.1-405b"),
        ("Llama-2-70B", "llama-2-70b"),
        ("llama 2 70b", "llama-2-70b"),
        ("meta-llama/Llama-2-70b-hf", "llama-2-70b"),
        ("meta-llama/Llama-2-7b-hf", "llama-2-7b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("TheBloke/Llama-2-70B-Chat-GPTQ", "llama-2-70b"),
        ("llama3.1-8b", "llama-3.1-8b"),
        ("Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b"),
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b"),
        ("Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-v3"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
        ("llama3.1:70b", "llama-3.1-70b"),
        ("qwen2.5:7b-instruct-q4_K_M", "qwen2.5-7b"),
        ("8x7b", "mixtral-8x7b"),
        ("microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"),
    ],
)
def test_a_model_is_found_by_any_spelling(asked: str, slug: str) -> None:
    assert find_model(asked).slug == slug


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ("vLLM", "vllm"),
        ("TensorRT-LLM", "tensorrt-llm"),
        ("trtllm", "tensorrt-llm"),
        ("hf-transformers", "hf"),
        ("ollama", "llama.cpp"),
        ("llamacpp", "llama.cpp"),
        ("lmdeploy-turbomind", "lmdeploy"),
        ("torch.compile", "gpt-fast"),
    ],
)
def test_an_engine_is_found_by_any_spelling(asked: str, slug: str) -> None:
    assert find_engine(asked).slug == slug


def test_every_slug_and_identifier_finds_itself() -> None:
    for slug in catalogue.all_hardware():
        assert find_hardware(slug).slug == slug
        assert find_hardware(slug.upper().replace("-", " ")).slug == slug
    for slug in catalogue.all_models():
        assert find_model(slug).slug == slug
    for slug in catalogue.all_engines():
        assert find_engine(slug).slug == slug


def test_a_short_name_lists_what_else_it_may_mean() -> None:
    assert find_hardware("a100").alternatives == ("a100-80gb-pcie", "a100-40gb-sxm", "a100-40gb-pcie")
    assert "llama-3.3-70b" in find_model("70b").alternatives
    assert find_hardware("rtx-3090").alternatives == ()
    assert find_model("70b").as_dict() == {
        "asked": "70b",
        "slug": "llama-2-70b",
        "name": "Llama-2-70B",
        "alternatives": ["llama-3.3-70b", "llama-3.1-70b", "llama-3-70b"],
    }


def test_an_unknown_device_names_the_closest_and_the_way_out() -> None:
    with pytest.raises(UnknownName) as caught:
        find_hardware("rtx309")
    assert caught.value.message == "unknown hardware 'rtx309'"
    assert "rtx-3090" in caught.value.suggestions
    assert "kb list hardware" in caught.value.hint and "--hw my-card.toml" in caught.value.hint
    assert caught.value.field == "hardware"


@pytest.mark.parametrize("finder", [find_hardware, find_model, find_engine])
@pytest.mark.parametrize("asked", ["", " ", "???", "zzzzzz", "x" * 5000, "ünbekannt", "../../etc/passwd\0"])
def test_nonsense_is_an_unknown_name(finder, asked: str) -> None:
    with pytest.raises((UnknownName, InvalidFile)):
        finder(asked)


def test_a_size_that_no_llama_has_lists_the_models_of_that_size() -> None:
    with pytest.raises(UnknownName) as caught:
        find_model("14b")
    assert any(slug.endswith("14b") for slug in caught.value.suggestions)


def test_engines_outside_the_catalogue_are_errors_except_for_measured_rows() -> None:
    with pytest.raises(UnknownName):
        find_engine("mlperf: TensorRT 10.2.0, CUDA 12.4")
    nearest = nearest_engine("mlperf: TensorRT 10.2.0, CUDA 12.4")
    assert nearest.slug == "mlperf-tensorrt" and "not in the catalogue" in nearest.notes[0]
    assert nearest_engine("my own server").slug == "vllm"
    assert nearest_engine("vllm").notes == ()


def test_a_mixed_machine_is_several_devices() -> None:
    found = find_devices("rtx-4090+cpu-xeon-gold-6454s-2s")
    assert [device.slug for device in found] == ["rtx-4090", "cpu-xeon-gold-6454s-2s"]


def test_an_estimate_is_for_one_kind_of_device() -> None:
    with pytest.raises(InvalidValue, match="mixed machine"):
        find_hardware("rtx-4090+rtx-3090-ti")
    with pytest.raises(UnknownName, match="abacus"):
        find_hardware("rtx-4090+abacus")


@pytest.mark.parametrize("asked", ["2x3090", "2 x RTX 3090", "4×a100"])
def test_a_count_belongs_into_devices(asked: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        find_hardware(asked)
    assert "--devices" in caught.value.hint


def test_files_stand_for_devices_and_models(tmp_path) -> None:
    card = tmp_path / "my-card.toml"
    card.write_text("memory_gb = 24\nbandwidth_gb_s = 1008\n[tflops]\nfp16 = 165.2\n")
    device = find_hardware(str(card))
    assert device.slug == "my-card" and device.spec.memory_bytes == 24 * 2**30
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    config = folder / "config.json"
    config.write_text(
        '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, '
        '"num_attention_heads": 4, "vocab_size": 100}'
    )
    model = find_model(str(config))
    # 2 layers of 4·64² + 3·64·128 + 2·64, two tables of 100·64, a last norm of 64
    assert model.slug == "tiny-llama"
    assert find_model(f"{folder}/").slug == "tiny-llama"
    assert model.spec.total_params == 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 6400 + 64


@pytest.mark.parametrize(("finder", "asked"), [(find_hardware, "missing.toml"), (find_model, "missing.json")])
def test_a_missing_file_is_one_line(finder, asked: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        finder(asked)
    assert "cannot read missing" in caught.value.message and "\n" not in caught.value.message


def test_an_engine_table_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(InvalidFile, match="unknown keys colour"):
        catalogue.parse_engines('[x]\nname = "X"\ncolour = "red"\n')
    with pytest.raises(InvalidFile, match="no such Deployment field: speed"):
        catalogue.parse_engines('[x]\nname = "X"\ndefaults = { speed = 1 }\n')
