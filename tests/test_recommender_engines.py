"""An engine that does not run on the device is refused in one line that names those that do."""

from __future__ import annotations

import pytest

from costmodel.catalogue import all_engines, find_engine, find_hardware
from recommender.engines import OPEN_ENGINES, check_runs, runs_on
from recommender.errors import InvalidQuestion
from recommender.fit import fit
from recommender.service import estimate


@pytest.mark.parametrize(
    ("hardware", "engine", "next_engine"),
    [
        ("m3-max", "vllm", "llama.cpp"),
        ("mi300x", "tensorrt-llm", "vllm"),
        ("h100", "mlx", "vllm"),
        ("epyc-9654", "exllamav2", "llama.cpp"),
    ],
)
def test_mismatch_is_refused_with_what_runs_there(hardware, engine, next_engine):
    with pytest.raises(InvalidQuestion) as raised:
        estimate({"hardware": hardware, "model": "8b", "engine": engine})
    error = raised.value
    assert error.field == "engine" and "does not run on" in error.message
    named = error.hint.removeprefix("engines that do: ").split(", ")
    assert named[0] == next_engine and named[-1] == "plain" and engine not in named
    device = find_hardware(hardware).spec
    for slug in named:
        check_runs(all_engines()[slug], device)


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
