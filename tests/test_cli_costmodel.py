"""`kb estimate`, `kb sweep`, `kb validate`: what they print, in which form, and how they refuse."""

from __future__ import annotations

import csv
import io
import json

import pytest

from kb.cli import run
from kb.cli.scenario import FIELDS, FLAGS, scenario
from kb.cli.sweep import grid, numbers


def call(capsys, *arguments: str) -> tuple[int, str, str]:
    status = run(arguments)
    streams = capsys.readouterr()
    return status, streams.out, streams.err


def test_estimate_json_has_the_interface_s_fields(capsys) -> None:
    status, out, err = call(capsys, "estimate", "--hw", "a100", "--model", "70b", "--devices", "2", "--json")
    answer = json.loads(out)
    assert status == 0 and err == ""
    assert answer["resolved"]["model"]["slug"] == "llama-2-70b"
    assert answer["resolved"]["hardware"]["alternatives"]
    memory = answer["memory_bytes"]
    assert memory["weights"] == 137_953_296_384
    assert memory["total"] == pytest.approx(
        sum(memory[name] for name in ("weights", "kv_cache", "activations", "overhead"))
    )
    assert memory["available"] == 2 * 80 * 2**30
    # layers split over two devices: 137.95e9 bytes at 2039 GB/s take 67.7 ms; Zhou et al. quote about 100
    assert answer["fits"] and answer["min_devices"] == 2 and 70 <= answer["tpot_ms"] <= 130
    for name in ("ttft_ms", "e2e_ms", "throughput_tok_s", "prefill_tok_s", "requests_s", "bottleneck"):
        assert answer[name] is not None
    low, high = answer["interval"]["tpot_ms"]
    assert low < answer["tpot_ms"] < high
    assert {op["phase"] for op in answer["operators"]} == {"prefill", "decode"}


def test_estimate_text_fits_80_columns_and_says_what_lacks(capsys) -> None:
    status, out, _ = call(capsys, "estimate", "--hw", "rtx3090", "--model", "70b", "--operators")
    assert status == 0
    assert max(len(line) for line in out.splitlines()) <= 80
    assert "DOES NOT FIT" in out and "needs 6 such devices" in out
    assert '"70b" read as llama-2-70b' in out


@pytest.mark.parametrize("form", ["csv", "markdown"])
def test_estimate_as_rows(capsys, form: str) -> None:
    status, out, _ = call(capsys, "estimate", "--hw", "h100", "--model", "8b", "--format", form)
    assert status == 0 and "tpot_ms" in out and "memory_weights" in out


def test_estimate_of_files(capsys, tmp_path) -> None:
    card = tmp_path / "card.toml"
    card.write_text('name = "My card"\nmemory_gb = 24\nbandwidth_gb_s = 1008\n[tflops]\nfp16 = 165.2\n')
    config = tmp_path / "config.json"
    config.write_text(
        json.dumps(
            {
                "model_type": "llama",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "vocab_size": 128256,
                "strange_layers": 7,
            }
        )
    )
    status, out, _ = call(capsys, "estimate", "--hw", str(card), "--model", str(config), "--json")
    answer = json.loads(out)
    assert status == 0 and answer["resolved"]["hardware"]["name"] == "My card"
    assert answer["memory_bytes"]["weights"] == pytest.approx(2 * 8.03e9, rel=0.001)
    assert any("strange_layers = 7" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--hw", "rtx309", "--model", "70b"), "unknown hardware 'rtx309' — did you mean rtx-3090"),
        (("--hw", "a100", "--model", "nothing"), "unknown model 'nothing'"),
        (("--hw", "a100", "--model", "70b", "--engine", "vlm"), "unknown engine 'vlm'"),
        (("--hw", "a100", "--model", "70b", "--weights", "q9"), "unknown format 'q9'"),
        (("--hw", "a100", "--model", "70b", "--batch", "0"), "batch must lie between"),
        (("--hw", "a100", "--model", "70b", "--batch", "nan"), "batch must be"),
        (("--hw", "a100", "--model", "missing.json"), "cannot read missing.json"),
        (("--model", "70b"), "--hw"),
    ],
)
def test_refusals_are_one_line_and_status_2(capsys, arguments, message: str) -> None:
    status, out, err = call(capsys, "estimate", *arguments)
    assert status == 2 and out == ""
    assert message in err and err.count("\n") == 1


def test_sweep_writes_one_row_per_combination(capsys) -> None:
    status, out, _ = call(
        capsys, "sweep", "--hw", "a100", "--model", "8b", "--batch", "1,2,4..16", "--weights", "fp16,int4"
    )
    rows = list(csv.DictReader(io.StringIO(out)))
    assert status == 0 and len(rows) == 10
    assert [row["batch"] for row in rows[::2]] == ["1", "2", "4", "8", "16"]
    assert [row["weight_format"] for row in rows[:2]] == ["fp16", "int4"]
    times = [float(row["tpot_ms"]) for row in rows if row["weight_format"] == "fp16"]
    assert times == sorted(times)


def test_sweep_json_equals_estimate(capsys) -> None:
    flags = ("--hw", "a100", "--model", "8b", "--engine", "vllm", "--batch")
    _, out, _ = call(capsys, "sweep", *flags, "1,8", "--json")
    rows = json.loads(out)
    _, out, _ = call(capsys, "estimate", *flags, "8", "--json")
    single = json.loads(out)
    assert rows[1]["tpot_ms"] == pytest.approx(single["tpot_ms"])
    assert rows[1]["total_bytes"] == pytest.approx(single["memory_bytes"]["total"])


@pytest.mark.parametrize("bad", ["5..1", "1..x", "0..9:0", "a"])
def test_sweep_refuses_what_is_no_range(capsys, bad: str) -> None:
    status, out, err = call(capsys, "sweep", "--hw", "a100", "--model", "8b", "--batch", bad)
    assert status == 2 and out == "" and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,4..256", [1, 2, 4, 8, 16, 32, 64, 128, 256]),
        ("512..4096", [512, 1024, 2048, 4096]),
        ("1,3,9..100", [1, 3, 9, 27, 81, 100]),
        ("10,20,30..60", [10, 20, 30, 40, 50, 60]),
        ("0..4096:1024", [0, 1024, 2048, 3072, 4096]),
        ("0..3", [0, 1, 2, 3]),
        ("0.5", [0.5]),
    ],
)
def test_ranges(text: str, values: list) -> None:
    assert numbers(text.split(","), "batch") == values


def test_scenario_flags_are_the_interface_s() -> None:
    assert {flag.names[0] for flag in FLAGS} == {
        *(
            "--hw",
            "--devices",
            "--model",
            "--batch",
            "--input-tokens",
            "--output-tokens",
            "--engine",
            "--using",
        ),
        *("--weights", "--kv", "--activations", "--tp", "--pp", "--ep", "--interconnect", "--request-rate"),
        *("--cache-hit", "--acceptance"),
    }
    assert set(grid({"hardware": "a,b", "using": "awq"})) <= set(FIELDS)
    assert scenario({"hardware": "a100", "using": "awq,", "top": 1}) == {"hardware": "a100", "using": ["awq"]}


ROW = {
    "id": "x1",
    "source": "mine",
    "hardware": "a100-80gb-sxm",
    "n_devices": "1",
    "engine": "vllm",
    "model": "llama-3.1-8b",
    "weight_format": "fp16",
    "batch_or_concurrency": "1",
    "input_tokens": "128",
    "output_tokens": "128",
    "metric": "decode_tok_s_per_seq",
    "value": "85",
}


def write(path, rows) -> str:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROW))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def test_validate_a_file_of_the_user(capsys, tmp_path) -> None:
    path = write(tmp_path / "rows.csv", [ROW, {**ROW, "id": "x2", "hardware": "abacus"}])
    status, out, _ = call(capsys, "validate", path, "--json")
    answer = json.loads(out)
    assert status == 0 and [row["id"] for row in answer["rows"]] == ["x1", "x2"]
    good, bad = answer["rows"]
    assert good["error"] < 1 and good["interval"][0] < good["predicted"] < good["interval"][1]
    assert bad["predicted"] is None and "abacus" in bad["reason"]
    assert answer["summary"]["n"] == 2 and answer["summary"]["priced"] == 1


def test_validate_fails_over_a_limit(capsys, tmp_path) -> None:
    path = write(tmp_path / "rows.csv", [{**ROW, "value": "1"}])
    assert call(capsys, "validate", path, "--fail-over", "50")[0] == 1
    path = write(tmp_path / "rows.csv", [ROW])
    assert call(capsys, "validate", path, "--fail-over", "100")[0] == 0


def test_validate_text_and_csv(capsys, tmp_path) -> None:
    path = write(tmp_path / "rows.csv", [ROW])
    status, out, _ = call(capsys, "validate", path)
    assert status == 0 and max(len(line) for line in out.splitlines()) <= 80 and "Median %" in out
    _, out, _ = call(capsys, "validate", path, "--format", "csv")
    assert next(iter(csv.DictReader(io.StringIO(out))))["id"] == "x1"


def test_validate_refuses_other_files(capsys, tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,2\n")
    status, _, err = call(capsys, "validate", str(path))
    assert status == 2 and "are missing" in err and err.count("\n") == 1
    assert call(capsys, "validate", str(tmp_path / "none.csv"))[0] == 2
