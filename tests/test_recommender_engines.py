"""An engine that does not run on the device gives way to the usual one there, and a note says so."""

from __future__ import annotations

import pytest

from costmodel.catalogue import all_engines, find_engine, find_hardware
from recommender.engines import OPEN_ENGINES, runs_on
from recommender.fit import fit
from recommender.service import estimate, recommend


@pytest.mark.parametrize(
    ("hardware", "engine", "next_engine"),
    [
        ("m3-max", "vllm", "llama.cpp"),
        ("mi300x", "tensorrt-llm", "vllm"),
        ("h100", "mlx", "vllm"),
        ("epyc-9654", "exllamav2", "llama.cpp"),
    ],
)
def test_mismatch_is_answered_for_what_runs_there(hardware, engine, next_engine):
    found = estimate({"hardware": hardware, "model": "8b", "engine": engine})
    assert found["scenario"]["engine"] == found["resolved"]["engine"]["slug"] == next_engine
    assert found["resolved"]["engine"]["asked"] == engine
    assert any("does not run on" in note for note in found["notes"])
    usual = estimate({"hardware": hardware, "model": "8b", "engine": next_engine})
    assert found["tpot_ms"] == usual["tpot_ms"]
    device = find_hardware(hardware).spec
    for slug in found["resolved"]["engine"]["alternatives"]:
        assert runs_on(all_engines()[slug], device)


@pytest.mark.parametrize(
    ("hardware", "engine"),
    [("epyc-9654", "vllm"), ("m3-max", "mlx"), ("mi300x", "sglang"), ("tpu-v5e", "vllm"), ("m3-max", "hf")],
)
def test_what_runs_is_answered(hardware, engine):
    assert estimate({"hardware": hardware, "model": "8b", "engine": engine})["tpot_ms"] > 0


def test_model_engines_run_everywhere():
    from costmodel.catalogue import all_hardware

    for device in all_hardware().values():
        assert all(runs_on(all_engines()[slug], device) for slug in OPEN_ENGINES), device.slug


def test_a_users_device_is_believed(tmp_path):
    card = tmp_path / "card.toml"
    card.write_text('name = "My card"\nmemory_gb = 48\nbandwidth_gb_s = 900\nfp16_tflops = 150\n')
    spec = find_hardware(str(card)).spec
    assert runs_on(find_engine("vllm").spec, spec)


def test_fit_searches_the_devices_that_the_engine_runs_on():
    found = fit({"model": "8b", "tpot_slo_ms": 30, "engine": "mlx"})
    assert found["options"] and {option["engine"] for option in found["options"]} == {"mlx"}
    assert all(find_hardware(option["hardware"]).spec.vendor == "Apple" for option in found["options"])


def test_fit_says_where_the_interval_reaches_beyond_the_target():
    found = fit({"model": "70b", "tpot_slo_ms": 50, "batch": 16})
    assert {option["sure"] for option in found["options"]} == {True, False}
    for option in found["options"]:
        assert option["sure"] == (option["tpot_interval_ms"][1] <= 50), option["hardware"]


def test_a_draft_needs_a_small_model_with_the_same_vocabulary():
    """DeepSeek-V3 is published with a prediction layer and without a small sibling; Llama-3.1-70B has several."""
    from costmodel.catalogue import find_model
    from recommender.rules import has_small_sibling

    assert not has_small_sibling(find_model("deepseek-v3").spec)
    assert has_small_sibling(find_model("llama-3.1-70b").spec)
    assert has_small_sibling(find_model("qwen3-235b").spec)


@pytest.mark.parametrize("device", ["m2-ultra-76c", "mi300x", "gaudi2", "epyc-9654", "jetson-agx-orin-64gb"])
def test_advice_names_only_engines_that_run_on_the_device(device, reader):
    """SGLang's flags are no help on a Mac, nor TensorRT-LLM's on an MI300X."""
    answer = recommend(reader, {"hardware": device, "model": "llama-3.1-8b"})
    assert answer.recommendations
    hardware = find_hardware(device).spec
    for item in answer.recommendations:
        for entry in item.engines:
            known = all_engines().get(entry["name"])
            assert known is None or runs_on(known, hardware), (item.techniques, entry["name"])
        if item.kind == "plan":
            shared = [
                {e["name"] for e in item.engines if e["technique"] == slug} - {"research code"}
                for slug in item.techniques
            ]
            assert set.intersection(*(names for names in shared if names)), item.techniques
