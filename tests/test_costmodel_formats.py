"""Number formats: bits with scales and zero points, worked out by hand from their layouts."""

from __future__ import annotations

import numpy as np
import pytest

from costmodel.errors import InvalidValue, UnknownName
from costmodel.formats import all_formats, find_format, for_engine, lookup


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32),
        ("fp16", 16),
        ("bf16", 16),
        ("fp8", 8),
        ("fp8-block", 8 + 32 / (128 * 128)),
        ("int8", 8),
        ("w8a8", 8),
        # 4 bits, and a 16-bit scale with a 4-bit zero for each group
        ("w4a16-awq-g128", 4 + 20 / 128),
        ("gptq-4bit-g128", 4 + 20 / 128),
        ("gptq-4bit-g64", 4 + 20 / 64),
        ("gptq-4bit-g32", 4 + 20 / 32),
        # blocks of 64 with an FP32 constant; double quantization: 8 bits, and FP32 per 256 blocks
        ("nf4", 4 + 32 / 64),
        ("nf4-dq", 4 + 8 / 64 + 32 / (64 * 256)),
        ("mxfp4", 4 + 8 / 32),
        ("nvfp4", 4 + 8 / 16),
        ("mxfp8", 8 + 8 / 32),
        # llama.cpp blocks: 32 values in 18, 20, 22, 24 and 34 bytes
        ("q4_0", 18 * 8 / 32),
        ("q4_1", 20 * 8 / 32),
        ("q5_0", 22 * 8 / 32),
        ("q5_1", 24 * 8 / 32),
        ("gguf-q8_0", 34 * 8 / 32),
        ("aqlm", 2.07),
        ("quip#", 2.01),
        ("exl2-3.0bpw", 3),
        ("4.5bpw", 4.5),
        ("gguf ~3.9bpw mixed", 3.9),
    ],
)
def test_bits_per_weight(name: str, bits: float) -> None:
    assert find_format(name).bits_per_weight == pytest.approx(bits)


@pytest.mark.parametrize(
    ("name", "block_bits"),
    # files of one block type: 210 bytes (Q6_K) and 176 bytes (Q5_K) for 256 values
    [("gguf-q6_k", 210 * 8 / 256), ("gguf-q5_k_s", 176 * 8 / 256)],
)
def test_gguf_layers_agree_with_the_block_layout(name: str, block_bits: float) -> None:
    assert find_format(name).bits_per_weight == pytest.approx(block_bits, rel=2e-3)


def test_llama_2_7b_in_q4_k_m_is_as_large_as_the_published_file() -> None:
    """llama-2-7b.Q4_K_M.gguf has 4.08 GB; another model than the one the table was derived from."""
    fmt = find_format("q4_k_m")
    table = 32000 * 4096
    linear = 6_738_415_616 - 2 * table
    size = (linear * fmt.bits_per_weight + table * (fmt.embedding_bits + fmt.head_bits)) / 8
    assert size == pytest.approx(4.08e9, rel=0.01)


def test_spelling_does_not_matter() -> None:
    assert find_format("Q4_K_M") is find_format("gguf-q4-k-m") or find_format("Q4_K_M") == find_format(
        "gguf-q4-k-m"
    )
    assert find_format(" FP16 ").slug == "fp16"
    assert find_format("float16").slug == "fp16"
    assert find_format("AWQ").slug == "w4a16-awq-g128"


def test_checkpoints_keep_their_tables_as_published() -> None:
    assert find_format("awq").head_bits == 16 and find_format("awq").embedding_bits == 16
    assert find_format("q4_k_m").head_bits == 6.5625
    assert find_format("exl2-4.0bpw").head_bits == 6 and find_format("exl2-4.0bpw").embedding_bits == 16


def test_kv_formats() -> None:
    assert find_format("fp8", "kv").bits_per_weight == 8
    assert find_format("kivi", "kv").bits_per_weight == 2 + 32 / 32
    with pytest.raises(InvalidValue, match="not for kv"):
        find_format("w4a16-awq-g128", "kv")


def test_unknown_formats_suggest_known_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        find_format("q4_k_mm")
    assert "gguf-q4_k_m" in caught.value.suggestions
    assert caught.value.field == "weight_format"
    with pytest.raises(InvalidValue, match="out of range"):
        find_format("99bpw")


def test_lookup_keeps_the_shape_of_an_array() -> None:
    names = np.array([["fp16", "int8"], ["q8_0", "fp16"]])
    assert lookup(names, "bits_per_weight").tolist() == [[16, 8], [8.5, 16]]


def test_an_engine_gives_generic_names_its_own_meaning() -> None:
    aliases = {"int4": "gguf-q4_k_m"}
    assert for_engine(np.array(["int4", "fp16"]), aliases).tolist() == ["gguf-q4_k_m", "fp16"]


def test_fewer_bits_are_never_more() -> None:
    """An order that nobody disputes."""
    order = [
        "gguf-q2_k",
        "gguf-q3_k_s",
        "gguf-q3_k_m",
        "gguf-q4_k_s",
        "gguf-q4_k_m",
        "gguf-q5_k_m",
        "gguf-q6_k",
    ]
    bits = [all_formats()[slug].bits_per_weight for slug in order]
    assert bits == sorted(bits)
