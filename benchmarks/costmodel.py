"""Speed of the cost model: `python benchmarks/costmodel.py [--cpu] [--json]` prints a line per figure and its target.

With --cpu the times are those of the processor, all threads together: on a machine shared with others wall time
measures the others. The grid's rate is then per second of one core.

Targets (issue 4): one estimate under 1 ms; a grid of 1,000,000 configurations at 1,000,000 per second or more on two
cores, in bounded memory. LLM-Viewer evaluates about 14,000 configurations a second, aiconfigurator about 5,000.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

# a script's own folder comes first on the path, and this file has the package's name
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np  # noqa: E402

from costmodel.catalogue import find_engine, find_hardware, find_model  # noqa: E402
from costmodel.estimate import estimate  # noqa: E402
from costmodel.grid import sweep  # noqa: E402
from costmodel.specs import Deployment, Workload  # noqa: E402

LLM_VIEWER_PER_S, AICONFIGURATOR_PER_S = 14_000, 5_000
CLOCK = (
    time.process_time if "--cpu" in sys.argv else time.perf_counter
)  # --cpu: on a machine shared with others
SINGLE_TARGET_MS, GRID_TARGET_PER_S = 1.0, 1_000_000


def measure_single(repeats: int = 300) -> float:
    """Milliseconds of one estimate, best of five rounds."""
    model, card, engine = (
        find_model("llama-3.1-8b").spec,
        find_hardware("a100-80gb").spec,
        find_engine("vllm").spec,
    )
    best = float("inf")
    for _ in range(5):
        start = CLOCK()
        for batch in range(1, repeats + 1):
            estimate(model, card, Workload(batch=batch), Deployment(), engine)
        best = min(best, (CLOCK() - start) / repeats)
    return best * 1e3


def measure_candidates(count: int = 300) -> float:
    """Milliseconds of one call over some hundred candidate deployments."""
    model, card, engine = (
        find_model("llama-3.1-8b").spec,
        find_hardware("a100-80gb").spec,
        find_engine("vllm").spec,
    )
    names = np.array(["fp16", "int8", "w4a16-awq-g128"] * (count // 3))
    deployment = Deployment(weight_format=names, tokens_per_step=np.linspace(1.0, 3.0, len(names)))
    best = float("inf")
    for _ in range(7):
        start = CLOCK()
        estimate(model, card, Workload(batch=8), deployment, engine)
        best = min(best, CLOCK() - start)
    return best * 1e3


def measure_grid() -> tuple[int, float, float]:
    """Configurations, seconds and peak megabytes of a grid of a million."""
    model, card, engine = (
        find_model("llama-3.1-8b").spec,
        find_hardware("a100-80gb").spec,
        find_engine("vllm").spec,
    )
    axes = {
        "batch": np.unique(np.geomspace(1, 1024, 100)),
        "input_tokens": np.geomspace(16, 65536, 50),
        "output_tokens": np.geomspace(16, 4096, 20),
        "weight_format": ["fp16", "int8", "w4a16-awq-g128", "gptq-3bit-g128", "fp8"],
        "kv_format": ["fp16", "fp8"],
    }
    start = CLOCK()
    found = sweep(model, card, engine, axes)
    seconds = CLOCK() - start
    count = int(np.prod([len(values) for values in axes.values()]))
    assert found["tpot_s"].size == count
    return count, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    single = measure_single()
    candidates = measure_candidates()
    count, seconds, megabytes = measure_grid()
    rate = count / seconds
    figures = {
        "one_estimate_ms": round(single, 3), "three_hundred_candidates_ms": round(candidates, 2),
        "grid_configurations": count, "grid_seconds": round(seconds, 3), "grid_per_s": round(rate),
        "peak_megabytes": round(megabytes), "times_llm_viewer": round(rate / LLM_VIEWER_PER_S),
        "times_aiconfigurator": round(rate / AICONFIGURATOR_PER_S),
    }  # fmt: skip
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    print(f"one estimate             {single:8.3f} ms   target < {SINGLE_TARGET_MS:g} ms")
    print(f"300 candidates, one call {candidates:8.2f} ms")
    print(
        f"grid of {count:,}     {rate:12,.0f} /s  target ≥ {GRID_TARGET_PER_S:,} /s, {megabytes:.0f} MB at most"
    )
    print(
        f"against LLM-Viewer {rate / LLM_VIEWER_PER_S:.0f}x, aiconfigurator {rate / AICONFIGURATOR_PER_S:.0f}x"
    )


if __name__ == "__main__":
    main()
