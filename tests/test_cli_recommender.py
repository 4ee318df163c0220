"""kb recommend, fit, compare, backtest: 80 columns, clean stdout under --json, one line for a wrong request."""

from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from kb.cli import cli


def run(database, *words):
    return CliRunner().invoke(
        cli, [*words, "--quiet", "--db", f"sqlite:///{database}"], env={"COLUMNS": "80"}
    )


QUESTIONS = (
    ("--hw", "rtx3090", "--model", "70b"),
    ("--hw", "a100", "--model", "8b", "--engine", "vllm", "--objective", "throughput", "--batch", "64"),
    ("--hw", "h100", "--model", "8b", "--using", "awq", "--lossless", "--why-not"),
    ("--hw", "a100", "--model", "8b", "--objective", "memory", "--no-stack", "--top", "3"),
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_table_fits_eighty_columns(question, database):
    done = run(database, "recommend", *question)
    assert done.exit_code == 0, done.output
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    for word in ("Question", "VERDICT", "Memory", "Next"):
        assert word in done.stdout


def test_the_default_answer_is_short(database):
    done = run(database, "recommend", "--hw", "a100", "--model", "8b", "--engine", "vllm")
    assert len(done.stdout.splitlines()) <= 34


def test_the_verdict_of_the_main_job(database):
    done = run(database, "recommend", "--hw", "rtx3090", "--model", "70b")
    assert "Does not fit" in done.stdout and "2-bit" in done.stdout and "2 x RTX 3090" in done.stdout


def test_what_would_go_is_named(database):
    done = run(database, "recommend", "--hw", "h100", "--model", "13b", "--using", "awq", "--why-not")
    assert "W4A16-AWQ-G128" in done.stdout and "FP16 " not in done.stdout.split("Option")[0]
    flat = " ".join(done.stdout.split())
    assert "would replace AWQ" in flat


def test_the_order_and_research_code_are_said(database):
    done = run(database, "recommend", "--hw", "rtx3090", "--model", "70b")
    assert "smallest change first, then faster; offloading last; * research code" in done.stdout


def test_json_is_nothing_but_json(database):
    done = run(database, "recommend", "--hw", "rtx3090", "--model", "70b", "--json")
    answer = json.loads(done.stdout)
    keys = {"scenario", "resolved", "baseline", "recommendations", "rejected", "notes"}
    assert keys <= set(answer) and answer["resolved"]["model"]["slug"] == "llama-2-70b"
    needed = {
        "rank", "kind", "techniques", "name", "levels", "bottlenecks", "phase", "deployment", "estimate", "gain",
        "gain_interval", "makes_it_fit", "why", "caveats", "break_even", "quality", "training", "engines", "members",
        "papers", "evidence",
    }  # fmt: skip
    for item in answer["recommendations"]:
        assert needed <= set(item)
        assert set(item["gain"]) == {"latency", "tpot", "ttft", "throughput", "memory", "max_batch"}


def test_csv_has_one_row_per_recommendation(database):
    done = run(database, "recommend", "--hw", "a100", "--model", "8b", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["rank"] for row in rows] == [str(i) for i in range(1, len(rows) + 1)]


@pytest.mark.parametrize(
    "words",
    [
        ("recommend", "--hw", "rtx3900", "--model", "70b"),
        ("recommend", "--hw", "a100", "--model", "nobody-13q"),
        ("recommend", "--hw", "a100", "--model", "8b", "--batch", "-1"),
        ("recommend", "--hw", "a100", "--model", "8b", "--batch", "nan"),
        ("recommend", "--hw", "a100", "--model", "8b", "--objective", "joy"),
        ("recommend", "--hw", "a100", "--model", "8b", "--using", "magic"),
        ("recommend", "--hw", "a100", "--model", "8b", "--weights", "int99"),
        ("fit", "--model", "8b"),
        ("fit", "--model", "nobody-13q", "--tpot-slo-ms", "50"),
        ("compare", "awq"),
        ("compare", "awq", "nobody"),
        ("backtest", "no-such-file.csv"),
    ],
)
def test_wrong_requests_are_one_line(words, database):
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-P", "-m", "kb.cli", *words, "--quiet", "--db", f"sqlite:///{database}"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert lines and lines[0].startswith("error:") and "Traceback" not in done.stderr


def test_fit_and_compare_print_tables(database):
    done = run(database, "fit", "--model", "8b", "--tpot-slo-ms", "20", "--hw", "a100")
    assert done.exit_code == 0 and "A100" in done.stdout
    done = run(database, "compare", "awq", "gptq")
    assert done.exit_code == 0 and "reported decode speed-up" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_backtest_of_a_file(database, tmp_path):
    table = tmp_path / "figures.csv"
    table.write_text(
        "id,technique,metric,value,unit,model,hardware,n_devices,batch,input_tokens,baseline,level,score\n"
        "F1,awq,decode_speedup,2.4,x,LLaMA-2-7B,A100,1,1,128,TensorRT-LLM FP16,e2e,yes\n"
        "F2,awq,ppl_delta,0.1,points,LLaMA-2-7B,A100,1,1,128,FP16,quality,no\n",
        encoding="utf-8",
    )
    answer = json.loads(run(database, "backtest", str(table), "--json").stdout)
    assert set(answer) == {"rows", "summary"}
    one, two = answer["rows"]
    assert one["predicted"] > 1.5 and one["assumed"] and two["predicted"] is None and two["reason"]
    assert {"n", "median_factor", "within_1_25x", "direction_accuracy", "spearman"} <= set(answer["summary"])
