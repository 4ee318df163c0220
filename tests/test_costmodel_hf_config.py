"""config.json of every family: counted parameters against published ones, cached bytes by hand, and bad files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import InvalidFile
from costmodel.hf_config import families, load_config, parse_config
from costmodel.kvcache import kv_bytes_per_sequence, kv_bytes_per_token
from costmodel.memory import weight_bytes
from costmodel.specs import Deployment
from costmodel.units import GIB

REFERENCE = Path(__file__).parent / "reference"
with (REFERENCE / "model_configs.csv").open(encoding="utf-8") as file:
    ROWS = list(csv.DictReader(file))
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
}


def load(name: str):
    return load_config(REFERENCE / "configs" / f"{name}.json")


@pytest.mark.parametrize("row", ROWS, ids=[row["config"] for row in ROWS])
def test_published_sizes(row: dict[str, str]) -> None:
    model = load(row["config"]).model
    assert model.total_params == pytest.approx(float(row["total_params"]), rel=float(row["tolerance"]))
    assert kv_bytes_per_token(model) == float(row["kv_bytes_per_token"])


def test_every_reference_file_is_listed_and_read_without_doubt() -> None:
    names = {path.stem for path in (REFERENCE / "configs").glob("*.json")}
    assert names == {row["config"] for row in ROWS}
    for name in sorted(names):
        for note in load(name).notes:
            assert "not known" not in note and "not used" not in note, f"{name}: {note}"


def test_gemma_3_windows() -> None:
    """10 of 62 layers see everything, 52 a window of 1024: 10.41 GiB at 131 072 tokens."""
    model = load("gemma-3-27b").model
    assert (model.sliding_window, model.global_layers) == (1024, 10)
    assert kv_bytes_per_sequence(model, 131072) / GIB == pytest.approx(10.41, abs=0.01)


def test_qwen_3_5_hybrid() -> None:
    """16 of 64 layers keep a cache: 16 GiB at 262 144 tokens; four slots of state take about 0.6 GiB."""
    model = load("qwen3.5-27b").model
    assert (model.attention_layers, model.state_layers) == (16, 48)
    assert kv_bytes_per_sequence(model, 262144) / GIB == 16
    assert 4 * model.state_bytes_per_sequence / GIB == pytest.approx(0.585, abs=0.01)


def test_qwen_3_5_9b_in_q8_with_8k_of_context() -> None:
    """Users measured 8.5 GB (taken as GiB): 8 attention layers, so weights dominate."""
    model = load("qwen3.5-9b").model
    total = weight_bytes(model, Deployment(weight_format="q8_0")) + kv_bytes_per_sequence(model, 8192, 8.5)
    assert (total + model.state_bytes_per_sequence) / GIB == pytest.approx(8.5, rel=0.1)


def test_windows_that_a_file_switches_off() -> None:
    assert load("qwen2-7b").model.sliding_window is None
    assert load("mistral-small-24b").model.sliding_window is None
    assert load("mistral-7b-v0.1").model.sliding_window == 4096


def test_windows_in_words() -> None:
    assert load("exaone-4.0-32b").model.global_layers == 16  # LLLG over 64 layers
    assert load("gpt-oss-120b").model.global_layers == 18
    assert load("llama-4-scout").model.global_layers == 12


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "gptq-4bit-g128"),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, "gptq-4bit"),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, "int8-g128"),
        ({"quant_method": "gptq", "bits": 3, "group_size": 128}, "gptq-3bit-g128"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, "w4a16-awq-g128"),
        ({"quant_method": "awq", "w_bit": 4, "q_group_size": 64}, "w4a16-awq-g64"),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8-block"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "mxfp4"}, "mxfp4"),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, "nf4"),
        (
            {
                "quant_method": "bitsandbytes",
                "load_in_4bit": True,
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            "nf4-dq",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 128}}},
            },
            "gptq-4bit-g128",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {"num_bits": 8, "type": "int", "strategy": "channel"},
                        "input_activations": {"num_bits": 8, "type": "int"},
                    }
                },
            },
            "w8a8-int8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {"num_bits": 8, "type": "float"},
                        "input_activations": {"num_bits": 8, "type": "float"},
                    }
                },
            },
            "fp8-w8a8",
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "aqlm", "nbits_per_codebook": 16}, "aqlm-2bit-1x16"),
        ({"quant_method": "exl2", "bits": 4.25}, "exl2-4.25bpw"),
        ({"quant_method": "bitnet"}, "ternary"),
    ],
)
def test_quantized_checkpoints(config: dict, expected: str) -> None:
    loaded = parse_config({**TINY, "quantization_config": config})
    assert loaded.model.native_weight_format == expected
    assert weight_bytes(loaded.model, Deployment(weight_format=expected)) > 0


def test_an_unknown_quantization_is_reported() -> None:
    loaded = parse_config({**TINY, "quantization_config": {"quant_method": "magic"}})
    assert loaded.model.native_weight_format == "bf16"
    assert any("'magic' is not known" in note for note in loaded.notes)


def test_layers_that_differ() -> None:
    """Two layers of the tiny model: one without attention, the other without MLP."""
    blocks = [
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 12.0}},
        {"attention": {"n_heads_in_group": 2}, "ffn": {"no_op": True}},
    ]
    file = {key: value for key, value in TINY.items() if key != "intermediate_size"}
    loaded = parse_config({**file, "model_type": "nemotron-nas", "block_configs": blocks})
    # width 2 · 12 · 64 / 3 = 512; two of four heads hold keys and values
    mlp, attention, norms = 3 * 64 * 512, 2 * 64 * 64 + 2 * 64 * 32, 5 * 64
    assert loaded.model.total_params == mlp + attention + norms + 2 * 6400
    assert kv_bytes_per_token(loaded.model) == 2 * 2 * 16 * 2
    assert any("block_configs" in note for note in loaded.notes)


def test_a_gated_mlp_has_no_default_width() -> None:
    file = {key: value for key, value in TINY.items() if key != "intermediate_size"}
    with pytest.raises(InvalidFile, match="no intermediate_size"):
        parse_config({**file, "model_type": "internlm2"})


def test_what_the_file_does_not_say_is_reported() -> None:
    loaded = parse_config({k: v for k, v in TINY.items() if k != "vocab_size"})
    assert any("vocab_size = 32000" in note for note in loaded.notes)
    loaded = parse_config({**TINY, "num_memory_blocks": 4, "loop_layers": 3})
    assert any("num_memory_blocks = 4" in note and "loop_layers = 3" in note for note in loaded.notes)
    loaded = parse_config({**TINY, "model_type": "futurelm"})
    assert any("'futurelm' is not known" in note for note in loaded.notes)


def test_a_newer_version_of_a_known_type_is_read_as_that_type() -> None:
    loaded = parse_config({**TINY, "model_type": "qwen3_vision_text", "num_key_value_heads": 2})
    assert any("read as qwen3" in note for note in loaded.notes)


def test_nested_files_read_the_language_part() -> None:
    loaded = parse_config(
        {"model_type": "some_vlm", "text_config": TINY, "vision_config": {"hidden_size": 1}}
    )
    assert loaded.model.hidden == 64
    assert any("vision and audio parts are not counted" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "an object of settings"),
        ("text", "an object of settings"),
        (None, "an object of settings"),
        ({}, "no hidden_size"),
        ({"model_type": "unheard_of"}, "no hidden_size"),
        ({**TINY, "hidden_size": "big"}, "hidden_size must be a whole number"),
        ({**TINY, "hidden_size": -1}, "out of range"),
        ({**TINY, "num_hidden_layers": 0}, "out of range"),
        ({**TINY, "num_hidden_layers": 1.5}, "whole number"),
        ({**TINY, "num_attention_heads": 10**30}, "out of range"),
        ({**TINY, "num_attention_heads": 5}, "not a multiple of 5 heads"),
        ({**TINY, "num_key_value_heads": 3}, "do not divide"),
        ({**TINY, "model_type": "lfm2", "block_ffn_dim_multiplier": -30}, "comes out negative"),
        ({**TINY, "model_type": "t5"}, "not a decoder-only"),
        ({**TINY, "is_encoder_decoder": True}, "not a decoder-only"),
        ({**TINY, "model_type": "dbrx", "ffn_config": {"moe_num_experts": "many"}}, "a setting has a form"),
    ],
)
def test_bad_files_are_one_line(data, message: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_config(data)
    assert message in caught.value.message and "\n" not in caught.value.message
    assert caught.value.field == "model"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{", "not JSON"), (b"\xff\xfe\x00", "not a text file"), (b"[" * 100_000, "nested too deeply")],
)
def test_unreadable_files(tmp_path, content: bytes, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=message):
        load_config(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = [
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size"),
    *("vocab_size", "sliding_window", "layer_types", "num_experts", "moe_layer_freq", "quantization_config"),
    *("text_config", "kv_lora_rank", "head_dim", "attn_config", "ffn_config", "mlp_only_layers"),
    *("linear_attn_config", "hybrid_override_pattern", "architectures", "moe_layers", "expand"),
]


@settings(deadline=None, max_examples=150)
@given(
    kind=st.sampled_from(sorted(families())),
    changes=st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
)
def test_whatever_the_file_holds_it_is_read_or_refused(kind: str, changes: dict) -> None:
    try:
        loaded = parse_config({**TINY, "model_type": kind, **changes})
    except InvalidFile as error:
        assert "\n" not in error.message
    else:
        assert loaded.model.total_params > 0
        json.dumps(loaded.notes)
