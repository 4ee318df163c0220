"""How fast `recommend` answers: cold from a shell, in process with scenarios that do not repeat, and in parallel.

python benchmarks/recommend.py [--seconds 10] [--processes 2]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# This folder holds costmodel.py, which would hide the package of that name.
sys.path[0] = str(Path(__file__).resolve().parent.parent)


def scenarios(seed: int) -> list[dict]:
    """Questions as people ask them: devices, models and loads vary, nothing repeats."""
    draw = random.Random(seed)
    hardware = [
        "rtx-3090",
        "rtx-4090",
        "a100-80gb-sxm",
        "h100-sxm",
        "h200-sxm",
        "l40s",
        "a100-40gb-sxm",
        "mi300x",
    ]
    models = [
        "llama-2-7b",
        "llama-2-13b",
        "llama-2-70b",
        "llama-3.1-8b",
        "qwen2.5-32b",
        "mixtral-8x7b",
        "mistral-7b",
    ]
    return [
        {
            "hardware": (device := draw.choice(hardware)),
            "model": draw.choice(models),
            "devices": draw.choice([1, 1, 2, 4]),
            "batch": draw.randint(1, 128),
            "input_tokens": draw.randint(16, 8192),
            "output_tokens": draw.randint(16, 1024),
            "engine": draw.choice(
                ["plain", "vllm", "sglang", "plain" if device == "mi300x" else "tensorrt-llm"]
            ),
            "objective": draw.choice(["latency", "tpot", "throughput", "ttft"]),
        }
        for _ in range(5000)
    ]


def run(seed: int, seconds: float) -> list[float]:
    """Answer questions for `seconds`, serialised as the REST interface does; the time of each in seconds."""
    from recommender.knowledge import Knowledge
    from recommender.question import Question
    from recommender.service import recommend_with
    from taxonomy.load import load_relations, load_techniques

    knowledge = Knowledge(
        techniques=dict(sorted(load_techniques().items())), relations=tuple(load_relations())
    )
    asked = scenarios(seed)
    for scenario in asked[:3]:
        recommend_with(knowledge, Question.from_mapping(scenario))
    times = []
    until = time.perf_counter() + seconds
    for scenario in asked[3:]:
        start = time.perf_counter()
        json.dumps(recommend_with(knowledge, Question.from_mapping(scenario)).as_dict())
        times.append(time.perf_counter() - start)
        if time.perf_counter() > until:
            break
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()

    cold = []
    command = [sys.executable, "-m", "kb.cli", "recommend", "--hw", "rtx3090", "--model", "70b"]
    with tempfile.TemporaryDirectory() as folder:
        # An installed package has its bytecode; a shell that forbids Python to write it would time the compiler.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(8):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment)
            cold.append(time.perf_counter() - start)
    print(
        f"cold shell      {min(cold[1:]):.2f} s best, {statistics.median(cold[1:]):.2f} s median (target 0.6)"
    )

    times = run(1, options.seconds)
    print(
        f"in process      {len(times) / sum(times):.0f} answers/s, median {statistics.median(times) * 1e3:.1f} ms"
    )
    with ProcessPoolExecutor(options.processes) as pool:
        found = list(pool.map(run, range(2, 2 + options.processes), [options.seconds] * options.processes))
    every = sorted(value for part in found for value in part)
    rate = sum(len(part) / sum(part) for part in found)
    p99 = every[int(len(every) * 0.99)] * 1e3
    print(
        f"{options.processes} processes     {rate:.0f} answers/s (target 100), p99 {p99:.0f} ms (target 200)"
    )


if __name__ == "__main__":
    main()
