"""Measured rows beside what the cost model predicts for them, priced once and kept."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from costmodel.catalogue import all_engines, all_hardware, all_models
from costmodel.engine_names import nearest_engine
from costmodel.errors import CostModelError
from costmodel.validate import read_rows, validate_rows

Row = dict[str, Any]

METRIC_NAMES = {
    "decode_tok_s_per_seq": ("decode speed, one sequence", "tokens/s"),
    "decode_tok_s_total": ("decode speed, all sequences", "tokens/s"),
    "e2e_latency_ms": ("time of a reply", "ms"),
    "ms_per_out_token_amortized": ("time per generated token", "ms"),
    "oom": ("runs out of memory", "1 or 0"),
    "peak_mem_gb": ("peak memory", "GB"),
    "prefill_tok_s": ("prefill speed", "tokens/s"),
    "req_s": ("requests per second", "1/s"),
    "throughput_out_tok_s": ("throughput, generated tokens", "tokens/s"),
    "throughput_out_tok_s_per_gpu": ("throughput per device", "tokens/s"),
    "throughput_total_tok_s": ("throughput, all tokens", "tokens/s"),
    "tpot_ms": ("time per output token", "ms"),
    "ttft_ms": ("time to first token", "ms"),
}


@lru_cache(maxsize=1)
def measured_rows() -> list[dict[str, str]]:
    return read_rows()


@lru_cache(maxsize=1)
def validated() -> tuple[list[Row], Row]:
    """Every packaged measurement with its prediction, and the summary; about a second, once per process."""
    given = measured_rows()
    result = validate_rows(given)
    rows = []
    for source, priced in zip(given, result["rows"], strict=True):
        metric = priced["metric"]
        rows.append(
            {
                **priced,
                "source": source["source"],
                "source_path": source.get("source_path", ""),
                "model": source["model"],
                "hardware": source["hardware"],
                "engine": engine_slug(source["engine"]),
                "engine_text": source["engine"],
                "devices": source.get("n_devices", ""),
                "batch": source.get("batch_or_concurrency", ""),
                "input_tokens": source.get("input_tokens", ""),
                "output_tokens": source.get("output_tokens", ""),
                "weight_format": source.get("weight_format", ""),
                "metric_name": METRIC_NAMES.get(metric, (metric, ""))[0],
                "unit": METRIC_NAMES.get(metric, ("", metric))[1],
                "has_page": source["hardware"] in all_hardware(),
                "has_model": source["model"] in all_models(),
            }
        )
    return rows, result["summary"]


def engine_slug(text: str) -> str:
    try:
        return nearest_engine(text).slug
    except CostModelError:
        return text


def engine_name(slug: str) -> str:
    return all_engines()[slug].name if slug in all_engines() else slug


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Median and 90th-percentile error, bias, and how often the interval holds, over any selection."""
    priced = [row for row in rows if row["error"] is not None and row["metric"] != "oom"]
    if not priced:
        return {"n": len(rows), "priced": 0, "median": None, "p90": None, "bias": None, "coverage": None}
    errors = sorted(row["error"] for row in priced)
    inside = [
        row["interval"][0] <= row["measured"] <= row["interval"][1]
        for row in priced
        if row["interval"] and row["measured"]
    ]
    return {
        "n": len(rows),
        "priced": len(priced),
        "median": statistics.median(errors),
        "p90": errors[min(len(errors) - 1, int(0.9 * len(errors)))],
        "bias": statistics.median(row["predicted"] / row["measured"] for row in priced),
        "coverage": sum(inside) / len(inside) if inside else None,
    }
