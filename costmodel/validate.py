"""Measured rows → predicted values and errors: the body of `kb validate`."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from costmodel import memory
from costmodel.efficiency import parameters
from costmodel.errors import InvalidFile
from costmodel.intervals import spread
from costmodel.measured import Case, read_case
from costmodel.peak import reported_peak
from costmodel.specs import Workload
from costmodel.stack import in_metric, largest_batch, stack, times
from costmodel.tables import read_text

REQUIRED = ("hardware", "engine", "model", "metric")
MEMORY_SPREAD = 1.1  # factor of the 80 % interval of peak memory
UNPRICEABLE = (ArithmeticError, ValueError, KeyError, IndexError)


def read_rows(path: str | Path | None = None) -> list[dict[str, str]]:
    """Rows of a CSV file with the columns of data/measurements.csv; without a path, of the packaged file."""
    if path is None:
        text = read_text("measurements.csv")
    else:
        try:
            text = Path(path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise InvalidFile(
                f"cannot read {str(path)!r}: {why}",
                hint="give a CSV file in UTF-8 with the columns of measurements.csv",
                field="file",
            ) from None
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in REQUIRED if name not in (reader.fieldnames or [])]
    if missing:
        raise InvalidFile(
            f"{path}: columns {', '.join(missing)} are missing",
            hint=f"needed: {', '.join(REQUIRED)}",
            field="file",
        )
    rows = []
    for number, row in enumerate(reader, start=2):
        cells = {key: (value or "") for key, value in row.items() if isinstance(key, str)}
        cells["id"] = cells.get("id") or f"line {number}"
        rows.append(cells)
    return rows


def error_of(predicted: float, measured: float) -> float:
    """exp(|ln(predicted / measured)|) − 1.

    >>> error_of(2.0, 1.0), error_of(0.5, 1.0)
    (1.0, 1.0)
    """
    return math.exp(abs(math.log(predicted / measured))) - 1.0


def validate_rows(rows: Iterable[dict[str, str]], *, ideal: bool = False) -> dict[str, Any]:
    """Price every row. `ideal`: by the bare roofline instead, for comparison."""
    cases = [read_case(row) for row in rows]
    results: list[dict[str, Any]] = [_blank(case) for case in cases]
    timed = [i for i, case in enumerate(cases) if not case.refused and case.phase != "memory"]
    if ideal:
        for i in timed:
            cases[i].kind = "roofline"
    for i, case in enumerate(cases):
        if not case.refused:
            _guarded(case, results[i], lambda c, r: _memory(c, r))
    timed = [i for i in timed if not cases[i].refused]
    try:
        _time([cases[i] for i in timed], [results[i] for i in timed], ideal=ideal)
    except UNPRICEABLE:
        # one row's numbers have no meaning together: price each alone, so that the others keep their price
        for i in timed:
            _guarded(cases[i], results[i], lambda c, r: _time([c], [r], ideal=ideal))
    return {"rows": results, "summary": summarize(results, cases)}


def _guarded(case: Case, result: dict[str, Any], price: Callable[[Case, dict[str, Any]], None]) -> None:
    """Price one row; refuse it with the reason where its numbers contradict each other."""
    try:
        price(case, result)
    except UNPRICEABLE as error:
        case.refused = True
        case.reason = result["reason"] = f"numbers that cannot be priced together: {error}"


def _time(cases: list[Case], results: list[dict[str, Any]], *, ideal: bool) -> None:
    if not cases:
        return
    arrays = stack(cases)
    with np.errstate(all="ignore"):
        predicted = in_metric(arrays, times(arrays, parameters(), ideal=ideal)[0])
    for case, result, value in zip(cases, results, predicted, strict=True):
        _record(result, case, float(value))


def _blank(case: Case) -> dict[str, Any]:
    return {
        "id": case.id, "metric": case.metric, "engine": case.engine_name, "hardware": case.hardware_name,
        "measured": case.measured, "predicted": None, "interval": None, "error": None, "fits": None,
        "reason": case.reason,
    }  # fmt: skip


def _memory(case: Case, result: dict[str, Any]) -> None:
    """Whether the row's deployment fits; for memory metrics, the prediction itself."""
    assert case.model and case.hardware and case.engine and case.deployment
    hardware = case.hardware
    if case.memory_override:
        from dataclasses import replace

        hardware = replace(hardware, memory_bytes=case.memory_override)
    if case.largest_batch:
        case.batch = largest_batch(case)
        case.largest_batch = False
    work = Workload(
        batch=case.batch, input_tokens=case.input_tokens,
        output_tokens=case.output_tokens if case.output_stated or case.phase != "memory" else 0.0,
        context_tokens=case.context_tokens,
    )  # fmt: skip
    tensor = case.deployment.tensor_parallel or (case.devices if case.engine.layout == "tensor" else 1.0)
    found = memory.memory(case.model, hardware, work, case.deployment, case.engine, _Tensor(float(tensor)))
    # an engine that batches continuously queues the sequences that its pool cannot hold
    queues = case.engine.preallocates and bool(case.engine.defaults.get("continuous_batching"))
    result["fits"] = bool(found.fits) or (queues and float(found.max_batch) >= 1.0)
    if case.metric == "oom":
        result["predicted"] = 0.0 if result["fits"] else 1.0
        if case.measured is not None:
            result["error"] = 0.0 if result["predicted"] == case.measured else 1.0
        return
    if case.metric == "peak_mem_gb":
        value = reported_peak(
            case.model, hardware, work, case.deployment, case.engine, source=case.source, notes=case.notes
        )  # fmt: skip
        _record(result, case, float(value), factor=MEMORY_SPREAD)


class _Tensor:
    def __init__(self, tensor_parallel: Any) -> None:
        self.tensor_parallel = tensor_parallel


def _record(result: dict[str, Any], case: Case, value: float, factor: float | None = None) -> None:
    if not math.isfinite(value) or value <= 0:
        result["reason"] = result["reason"] or "no finite prediction for these lengths"
        return
    result["predicted"] = value
    if factor is None:
        device = case.hardware.slug if case.hardware else ""
        factor, _ = spread(case.phase, case.engine_key, case.group, device)
    result["interval"] = [value / factor, value * factor]
    if case.measured and case.measured > 0:
        result["error"] = error_of(value, case.measured)


def summarize(results: list[dict[str, Any]], cases: list[Case]) -> dict[str, Any]:
    """Counts and errors over all rows, by metric, engine and hardware."""

    def grouped(key: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for result in results:
            groups.setdefault(key(result), []).append(result)
        return {name: statistics(found) for name, found in sorted(groups.items())}

    return {
        **statistics(results),
        "by_metric": grouped(lambda r: str(r["metric"])),
        "by_engine": grouped(lambda r: str(r["engine"])),
        "by_hardware": grouped(lambda r: str(r["hardware"])),
        "refused": [{"id": case.id, "reason": case.reason} for case in cases if case.refused],
    }


def statistics(results: list[dict[str, Any]]) -> dict[str, Any]:
    """n, priced, median and 90th percentile of the error, bias (median of predicted / measured), coverage."""
    priced = [r for r in results if r["predicted"] is not None]
    errors = np.array([r["error"] for r in priced if r["error"] is not None])
    ratios = np.array(
        [r["predicted"] / r["measured"] for r in priced if r["measured"] and r["metric"] != "oom"]
    )
    inside = [
        r["interval"][0] <= r["measured"] <= r["interval"][1]
        for r in priced
        if r["interval"] and r["measured"]
    ]
    return {
        "n": len(results),
        "priced": len(priced),
        "median_error": float(np.median(errors)) if errors.size else None,
        "p90_error": float(np.quantile(errors, 0.9)) if errors.size else None,
        "bias": float(np.median(ratios)) if ratios.size else None,
        "interval_coverage": sum(inside) / len(inside) if inside else None,
    }
