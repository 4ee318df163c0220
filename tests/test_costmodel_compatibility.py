"""Remarks on what a device or an engine does not offer."""

from __future__ import annotations

import json

import pytest

from costmodel.catalogue import all_engines, all_hardware, find_engine, find_hardware
from costmodel.compatibility import lacks_path, mismatches
from kb.cli import run


def remarks(hardware: str, engine: str, **formats: str) -> list[str]:
    return mismatches(find_hardware(hardware).spec, find_engine(engine).spec, **formats)


def test_what_everybody_offers_needs_no_remark() -> None:
    assert remarks("a100", "vllm", weight_format="w4a16-awq-g128", kv_format="fp8") == []
    assert (
        remarks("h100", "tensorrt-llm", weight_format="fp8", activation_format="fp8", kv_format="fp8") == []
    )
    assert remarks("m2 max", "llama.cpp", weight_format="int4") == []
    assert remarks("a100", "plain", weight_format="gguf-q4_k_m", kv_format="kivi-2bit") == []
    for slug in all_engines():
        assert remarks("a100", slug) == []


@pytest.mark.parametrize(
    ("hardware", "path", "words"),
    [
        ("rtx-a6000", "fp8", "needs SM 8.9 or later: Ada or Hopper"),
        ("a100", "fp8", "SM 8; needs SM 8.9"),
        ("h100", "fp4", "Blackwell"),
        ("m2 max", "fp8", "no FP8 matrix units"),
    ],
)
def test_missing_matrix_units_say_what_is_needed(hardware: str, path: str, words: str) -> None:
    assert words in str(lacks_path(find_hardware(hardware).spec, path))


def test_present_ones_do_not() -> None:
    assert lacks_path(find_hardware("h100").spec, "fp8") is None
    assert all(lacks_path(device, "fp16") is None for device in all_hardware().values())


@pytest.mark.parametrize(
    ("hardware", "engine", "formats", "words"),
    [
        ("a100", "llama.cpp", {"weight_format": "w4a16-awq-g128"}, "does not load w4a16-awq-g128"),
        ("a100", "gpt-fast", {"kv_format": "fp8"}, "does not keep its KV cache in fp8"),
        ("a100", "vllm", {"weight_format": "fp8-w8a8"}, "widened and multiplied in 16 bits"),
    ],
)
def test_what_an_engine_lacks(hardware: str, engine: str, formats: dict, words: str) -> None:
    assert any(words in remark for remark in remarks(hardware, engine, **formats))


def test_the_estimate_carries_the_remarks(capsys) -> None:
    assert run(["estimate", "--hw", "a6000", "--model", "8b", "--weights", "fp8-w8a8", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("needs SM 8.9" in note for note in notes)
