"""hardware.toml: what is understood, and what is refused with the remedy."""

from __future__ import annotations

import pytest

from costmodel.errors import InvalidFile
from costmodel.user_hardware import MAX_LINE, load_hardware, parse_hardware, parse_inline

GOOD = "memory_gb = 24\nbandwidth_gb_s = 1008\n"
RATES = "[tflops]\nfp16 = 165.2\nfp8 = 330.3\n"


def test_a_card_from_three_numbers() -> None:
    """RTX 4090: 24 GiB, 1008 GB/s, 165.2 TFLOP/s dense FP16."""
    card = parse_hardware('name = "RTX 4090"\n' + GOOD + RATES)
    assert (card.slug, card.memory_bytes) == ("rtx-4090", 24 * 2**30)
    assert card.bandwidth_bytes_per_s == 1008e9
    assert card.flops == {"fp16": 165.2e12, "fp8": 330.3e12}


def test_other_spellings_of_the_same() -> None:
    flat = parse_hardware("memory_gib = 24\nbandwidth_bytes_per_s = 1.008e12\nfp16_tflops = 165.2\n")
    base = parse_hardware("memory_bytes = 25769803776\nbandwidth_gb_s = 1008\n[flops]\nfp16 = 1.652e14\n")
    nested = parse_hardware("[hardware]\nmemory_gb = 24\nbandwidth_gb_s = 1008\nfp16_tflops = 165.2\n")
    assert flat.memory_bytes == base.memory_bytes == nested.memory_bytes
    assert flat.flops == base.flops == nested.flops


def test_the_columns_of_the_packaged_table_are_keys_too() -> None:
    card = parse_hardware(
        "memory_bytes = 25769803776\nbandwidth_bytes_per_s = 1.008e12\nfp16_flops = 1.652e14\nint8_ops = 6.6e14"
    )
    assert card.flops == {"fp16": 1.652e14, "int8": 6.6e14}
    sheet = parse_hardware(
        "memory_gb = 24\nmemory_bw_gbs = 1008\nfp16_tflops_dense_fp32acc = 165.2\nint8_tops = 660"
    )
    assert sheet.bandwidth_bytes_per_s == 1008e9 and sheet.flops["int8"] == 660e12


def test_everything_else_it_may_say() -> None:
    card = parse_hardware(
        GOOD
        + 'device_class = "datacenter"\nvendor = "NVIDIA"\narchitecture = "ada"\ncompute_capability = 8.9\n'
        'interconnect = "NVLink4"\ninterconnect_gb_s = 450\nhost_gb_s = 63\ntdp_w = 700\nprice_usd = 30000\n'
        'sparsity_2_4 = true\ncache_mb = 50\nlaunch_year = 2022\nsource = "my data sheet"\n' + RATES
    )
    assert card.interconnect_bytes_per_s == 450e9 and card.host_bytes_per_s == 63e9
    assert card.cache_bytes == 50 * 2**20 and card.launch_year == 2022 and card.sparsity_2_4
    assert card.source == "my data sheet"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (GOOD + "bandwith = 3\n" + RATES, "unknown key 'bandwith'", "did you mean bandwidth_gb_s"),
        (GOOD, "no rate", "[tflops] fp16"),
        ("memory_gb = 24\n" + RATES, "no bandwidth_bytes_per_s", "bandwidth_gb_s = 1008"),
        ("bandwidth_gb_s = 24\n" + RATES, "no memory_bytes", "memory_gb = 24"),
        (GOOD + "memory_gib = 24\n" + RATES, "given twice", "once"),
        ("memory_gb = 0\nbandwidth_gb_s = 1\n" + RATES, "must be above 0", ""),
        ("memory_gb = nan\nbandwidth_gb_s = 1\n" + RATES, "must be above 0", ""),
        ('memory_gb = "24"\nbandwidth_gb_s = 1\n' + RATES, "must be a number", ""),
        (GOOD + "[tflops]\nfp12 = 3\n", "unknown rate 'fp12'", "fp16"),
        (GOOD + "tflops = 3\n", "must be a table", ""),
        (GOOD + 'device_class = "toaster"\n' + RATES, "device_class 'toaster'", "datacenter"),
        (GOOD + "name = 3\n" + RATES, "must be text", ""),
        ("memory_gb = = 3", "not TOML", "for example"),
    ],
)
def test_refusals(text: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse_hardware(text)
    assert message in caught.value.message and hint in caught.value.hint
    assert "\n" not in caught.value.message and caught.value.field == "hardware"


def test_files_that_cannot_be_read(tmp_path) -> None:
    with pytest.raises(InvalidFile, match="cannot read"):
        load_hardware(tmp_path / "none.toml")
    with pytest.raises(InvalidFile, match="cannot read"):
        load_hardware(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\x00")
    with pytest.raises(InvalidFile, match="not a text file"):
        load_hardware(binary)


def test_one_line_says_the_same_as_a_file():
    line = parse_inline(
        "My card: memory_gb=24, bandwidth_gb_s=1008; fp16_tflops=165.2, device_class=workstation"
    )
    file = parse_hardware(
        'name = "My card"\nmemory_gb = 24\nbandwidth_gb_s = 1008\nfp16_tflops = 165.2\ndevice_class = "workstation"'
    )
    assert (line.name, line.memory_bytes, line.bandwidth_bytes_per_s, line.flops, line.device_class) == (
        *(file.name, file.memory_bytes, file.bandwidth_bytes_per_s, file.flops, file.device_class),
    )
    other = parse_inline("My card: memory_gb=24, bandwidth_gb_s=1008, fp16_tflops=165.3")
    assert line.slug != other.slug, "two devices of one name are two devices"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("memory_gb=48, bandwidth_gb_s=900", "no rate"),
        ("x: memroy_gb=4", "unknown key 'memroy_gb'"),
        ("x: memory_gb=abc, bandwidth_gb_s=1, fp16_tflops=1", "must be a number"),
        ("x: memory_gb=nan, bandwidth_gb_s=1, fp16_tflops=1", "above 0"),
        ("x: memory_gb=1, memory_gb=2", "given twice"),
        ("x: memory_gb", "is not key=value"),
        ("x: notes=" + "a" * MAX_LINE, "characters"),
    ],
)
def test_a_faulty_line_is_refused(line, said):
    with pytest.raises(InvalidFile) as caught:
        parse_inline(line)
    assert said in caught.value.message and "\n" not in caught.value.message
