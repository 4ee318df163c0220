"""Measured rows: what they mean, what is predicted, what is refused and why; the fit that they feed."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from costmodel import intervals
from costmodel.catalogue import all_engines, all_hardware, find_engine, find_hardware
from costmodel.efficiency import CLASSES, device_group, engine_class, parameters
from costmodel.errors import InvalidFile
from costmodel.estimate import estimate
from costmodel.fit import (
    COLUMNS,
    Problem,
    cross_validate,
    make_problem,
    read_constants,
    solve,
    training_cases,
)
from costmodel.grid import sweep
from costmodel.measured import read_case, year_of
from costmodel.specs import Deployment, Workload
from costmodel.validate import error_of, read_rows, validate_rows

ROW = {
    "id": "r1", "hardware": "a100-80gb-sxm", "n_devices": "1", "parallelism": "none", "engine": "gpt-fast",
    "engine_version": "2024-09", "model": "llama-2-7b", "weight_format": "bf16", "bits_per_weight": "16",
    "batch_or_concurrency": "1", "input_tokens": "5", "output_tokens": "200", "metric": "decode_tok_s_per_seq",
    "value": "104.9", "score": "yes",
}  # fmt: skip


def row(**changes: str) -> dict[str, str]:
    return {**ROW, **changes}


# ---------------------------------------------------------------- rows


def test_a_row_is_predicted_in_its_own_metric() -> None:
    found = validate_rows(
        [
            row(),
            row(id="r2", metric="tpot_ms", value="9.5"),
            row(id="r3", metric="decode_tok_s_total", batch_or_concurrency="4", value="400"),
            row(id="r4", metric="throughput_out_tok_s_per_gpu", n_devices="2", parallelism="tp", value="80"),
            row(id="r5", metric="throughput_out_tok_s", n_devices="2", parallelism="tp", value="160"),
        ]
    )["rows"]
    speed, latency, _, each, both = (r["predicted"] for r in found)
    assert speed == pytest.approx(1e3 / latency)
    assert both == pytest.approx(2 * each)
    assert all(r["interval"][0] < r["predicted"] < r["interval"][1] for r in found)
    assert found[0]["error"] == pytest.approx(error_of(speed, 104.9))
    json.dumps(found, allow_nan=False)


def test_what_has_no_price_is_refused_with_the_reason() -> None:
    found = validate_rows(
        [row(model="no-such-model"), row(metric="smell"), row(hardware="no-such-card"), row()]
    )
    reasons = [r["reason"] for r in found["rows"]]
    assert "no-such-model" in reasons[0] and "smell" in reasons[1] and "no-such-card" in reasons[2]
    assert [r["predicted"] is None for r in found["rows"]] == [True, True, True, False]
    assert found["summary"]["n"] == 4 and found["summary"]["priced"] == 1
    assert len(found["summary"]["refused"]) == 3


def test_what_the_row_does_not_say_is_assumed_aloud() -> None:
    case = read_case(row(engine="my-own-server", input_tokens="", output_tokens=""))
    assert not case.refused
    assert "my-own-server" in case.reason and "input_tokens 64 assumed" in case.reason


def test_layouts() -> None:
    split = read_case(
        row(n_devices="4", parallelism="pp (llama.cpp layer split)", engine="llama.cpp")
    ).deployment
    mixed = read_case(row(n_devices="24", parallelism="tp8pp3")).deployment
    copies = read_case(row(n_devices="8", parallelism="tp2dp4", metric="throughput_out_tok_s"))
    assert split and (split.tensor_parallel, split.pipeline_parallel) == (1.0, 4.0)
    assert mixed and (mixed.tensor_parallel, mixed.pipeline_parallel) == (8.0, 3.0)
    assert copies.replicas == 4 and copies.deployment and copies.deployment.tensor_parallel == 2


def test_a_processor_beside_the_card_multiplies_the_experts() -> None:
    case = read_case(
        row(
            hardware="rtx-4090+cpu-xeon-gold-6454s-2s",
            engine="ktransformers",
            model="deepseek-v3",
            weight_format="gguf-q4_k_m",
        )
    )
    assert case.deployment and case.deployment.host_compute and 0.9 < case.deployment.host_weight_share < 1.0


def test_all_requests_queued_means_as_many_as_memory_holds() -> None:
    found = validate_rows(
        [
            row(id=str(n), engine="tensorrt-llm", engine_version="0.17", batch_or_concurrency="max (all queued)",
                input_tokens=str(n), output_tokens="128", metric="throughput_out_tok_s", value="1000")
            for n in (128, 2048, 20000)
        ]
    )["rows"]  # fmt: skip
    assert found[0]["predicted"] > found[1]["predicted"] > found[2]["predicted"]
    assert all(r["fits"] for r in found)


@pytest.mark.parametrize(
    ("engine", "version", "dated", "year"),
    [
        ("vllm", "0.6.4", "", 2024.5), ("vllm", "", "2023-11-02", 2023 + 10 / 12), ("tensorrt-llm", "0.17", "", 2025.0),
        ("llama.cpp", "May 2024", "", 2024.0), ("hf", "", "", 0.0),
    ],
)  # fmt: skip
def test_years_of_engines(engine: str, version: str, dated: str, year: float) -> None:
    assert year_of(engine, version, dated) == pytest.approx(year)


def test_a_file_without_the_columns_is_refused(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,value\n1,2\n")
    with pytest.raises(InvalidFile, match="hardware, engine, model, metric are missing"):
        read_rows(path)


# ---------------------------------------------------------------- accuracy


def test_accuracy_on_the_packaged_measurements() -> None:
    found = validate_rows(read_rows())
    summary = found["summary"]
    assert summary["priced"] == summary["n"]
    by_metric = summary["by_metric"]
    assert by_metric["decode_tok_s_per_seq"]["median_error"] < 0.10
    assert by_metric["prefill_tok_s"]["median_error"] < 0.17
    assert by_metric["throughput_out_tok_s"]["median_error"] < 0.09
    assert by_metric["e2e_latency_ms"]["median_error"] < 0.07
    assert 0.75 <= summary["interval_coverage"] <= 0.95
    bare = validate_rows([r for r in read_rows() if r["metric"] == "decode_tok_s_per_seq"], ideal=True)
    assert bare["summary"]["median_error"] > 4 * by_metric["decode_tok_s_per_seq"]["median_error"]


def test_one_estimate_and_a_row_of_the_stack_agree() -> None:
    # the vectorised path over many models gives what `estimate` gives for one
    rows = [row(), row(id="2", model="llama-2-70b", n_devices="8", parallelism="tp", hardware="h100-sxm")]
    found = validate_rows(rows)["rows"]
    for given, priced in zip(rows, found, strict=True):
        case = read_case(given)
        assert case.model and case.hardware and case.deployment and case.engine
        one = estimate(
            case.model, case.hardware, Workload(batch=1, input_tokens=5, output_tokens=200), case.deployment,
            case.engine,
        )  # fmt: skip
        assert 1.0 / one.tpot_s == pytest.approx(priced["predicted"], rel=1e-9)


# ---------------------------------------------------------------- constants


def test_constants_are_few_bounded_and_explained() -> None:
    constants = read_constants()
    names = [c.name for c in constants]
    assert names == sorted(names) and len(set(names)) == len(names)
    assert sum(c.basis == "measured" for c in constants) <= 120
    for c in constants:
        assert c.low <= c.value * (1 + 1e-6) and c.value <= c.high * (1 + 1e-6), c.name
        assert c.meaning and c.unit and c.basis in ("measured", "prior"), c.name
        assert (c.count > 0) <= (c.basis == "measured"), c.name
        if c.basis == "prior":
            assert c.value == pytest.approx(c.prior), c.name


def test_every_engine_and_device_has_constants() -> None:
    values = parameters()
    for engine in all_engines().values():
        kind = engine_class(engine)
        assert (
            kind in CLASSES
            or kind in ("megatron", "autoawq", "deepspeed", "ik_llama.cpp", "dataflow", "ft")
            or "-20" in kind
        )
    for card in all_hardware().values():
        assert f"bandwidth.device.{device_group(card)}" in values, card.slug
        assert f"compute.device.{device_group(card)}" in values, card.slug


def test_intervals_of_the_unseen_are_wider() -> None:
    table = intervals.table()
    for phase in ("decode", "prefill", "throughput", "e2e"):
        seen = [
            math.log(factor) for (p, engine, _), (factor, _) in table.items() if p == phase and engine != "*"
        ]
        assert math.log(table[(phase, "*", "*")][0]) > 1.5 * float(np.median(seen))


def test_leaving_rows_out_moves_the_constants_towards_their_priors() -> None:
    cases = [c for c in training_cases() if c.kind == "compiled"]
    constants = read_constants()
    free = [c for c in constants if c.name == "layer_gap_s.engine.compiled"]
    problem: Problem = make_problem(cases, constants, free)
    start = np.log([c.prior for c in free])
    theta, jacobian = solve(problem, np.ones(len(cases), dtype=bool), start, 6)
    none, _ = solve(problem, np.zeros(len(cases), dtype=bool), theta, 12, known=jacobian)
    assert none == pytest.approx(start, abs=1e-3)  # no rows: the priors
    assert np.isfinite(cross_validate(problem, theta, jacobian, "hardware")).all()
    assert COLUMNS[0] == "name"


# ---------------------------------------------------------------- grids


def test_a_grid_gives_what_single_estimates_give() -> None:
    model, card, engine = (
        read_case(row()).model, find_hardware("a100-80gb").spec, find_engine("vllm").spec,
    )  # fmt: skip
    assert model
    axes = {
        "batch": np.arange(1.0, 41.0),
        "weight_format": ["fp16", "int8"],
        "input_tokens": np.arange(1.0, 301.0),
    }
    found = sweep(model, card, engine, axes)
    assert found["tpot_s"].shape == (40, 2, 300)
    one = estimate(
        model, card, Workload(batch=7.0, input_tokens=205.0), Deployment(weight_format="int8"), engine
    )
    assert found["tpot_s"][6, 1, 204] == pytest.approx(one.tpot_s)
    assert found["ttft_s"][6, 1, 204] == pytest.approx(one.ttft_s)
    assert found["total_bytes"][6, 1, 204] == pytest.approx(one.total_bytes)
