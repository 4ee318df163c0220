"""How fast `recommend` answers: cold from a shell, in process, the search for plans alone, and over HTTP.

python benchmarks/recommend.py [--seconds 15] [--workers 2]

Scenarios are drawn over all devices, models, engines and loads and do not repeat, so that no cache of answers counts.
The database is a fresh one with the packaged data: answers carry their papers and reported figures, as users get them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# This folder holds costmodel.py, which would hide the package of that name.
sys.path[0] = str(ROOT)

TARGETS = {"cold_s": 0.6, "answers_s": 100.0, "p99_ms": 200.0, "plan_ms": 100.0}
WARM_UP = 60  # answers that fill what is kept for devices, engines and techniques
CONNECTIONS = 4
START_S = 60.0


def scenarios(seed: int, count: int) -> list[dict[str, Any]]:
    """Questions over the whole catalogue; batch and token counts are any number, so none comes twice."""
    from costmodel.catalogue import all_engines, all_hardware, all_models
    from recommender.engines import runs_on

    draw = random.Random(seed)
    hardware, models, engines = all_hardware(), sorted(all_models()), all_engines()
    found = []
    for _ in range(count):
        device = draw.choice(sorted(hardware))
        found.append(
            {
                "hardware": device,
                "model": draw.choice(models),
                "engine": draw.choice(
                    [slug for slug, engine in engines.items() if runs_on(engine, hardware[device])]
                ),
                "devices": draw.choice([1, 1, 2, 4, 8]),
                "batch": draw.randint(1, 256),
                "input_tokens": draw.randint(16, 16_384),
                "output_tokens": draw.randint(16, 2048),
                "objective": draw.choice(["latency", "tpot", "throughput", "ttft", "memory", "cost"]),
            }
        )
    return found


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def cold(database: str) -> None:
    """From a shell, the bytecode compiled as an installed package has it."""
    command = [sys.executable, "-m", "kb.cli", "recommend", "--hw", "rtx3090", "--model", "70b"]
    wall, cpu = [], []
    with tempfile.TemporaryDirectory() as folder:
        # A shell that forbids Python to write its bytecode would time the compiler.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "KB_DATABASE_URL": database}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for _ in range(8):
            before, start = os.times(), time.perf_counter()
            subprocess.run(command, check=True, capture_output=True, env=environment, cwd=ROOT)
            wall.append(time.perf_counter() - start)
            after = os.times()
            cpu.append(
                after.children_user - before.children_user + after.children_system - before.children_system
            )
    print(
        f"cold shell      {min(wall[1:]):.2f} s best, {statistics.median(wall[1:]):.2f} s median, "
        f"{statistics.median(cpu[1:]):.2f} s CPU (target {TARGETS['cold_s']:g} s)"
    )


def in_process(database: str, seconds: float) -> None:
    """Question to JSON bytes in one process, and the search for plans alone."""
    from kb.db import open_reader
    from recommender import plans
    from recommender.assess import assess
    from recommender.knowledge import load_knowledge
    from recommender.question import Question
    from recommender.service import recommend_with
    from recommender.situation import resolve

    knowledge = load_knowledge(open_reader(database))
    asked = [Question.from_mapping(scenario) for scenario in scenarios(1, 4000)]
    for question in asked[:WARM_UP]:
        recommend_with(knowledge, question).encoded()
    wall, cpu = [], []
    until = time.perf_counter() + seconds
    for question in asked[WARM_UP:]:
        start, used = time.perf_counter(), time.process_time()
        recommend_with(knowledge, question).encoded()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
        if time.perf_counter() > until:
            break
    print(
        f"in process      {statistics.mean(cpu) * 1e3:.1f} ms CPU an answer; wall p50 "
        f"{percentile(wall, 0.5) * 1e3:.1f}, p99 {percentile(wall, 0.99) * 1e3:.1f} ms ({len(wall)} answers)"
    )
    times = []
    for question in asked[:100]:
        assessments = assess(resolve(question, knowledge), knowledge)
        start = time.perf_counter()
        plans.plan(assessments)
        times.append(time.perf_counter() - start)
    print(
        f"plan search     p50 {percentile(times, 0.5) * 1e3:.1f}, p99 {percentile(times, 0.99) * 1e3:.1f} ms, "
        f"whole catalogue (target {TARGETS['plan_ms']:g} ms)"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(connection: http.client.HTTPConnection, scenario: dict[str, Any]) -> None:
    connection.request(
        "POST", "/api/v1/recommend", json.dumps(scenario), {"Content-Type": "application/json"}
    )
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {body[:200]!r}")


def over_http(database: str, seconds: float, workers: int) -> None:
    """POST /api/v1/recommend over kept connections; the client takes its share of the same cores."""
    port = free_port()
    command = [sys.executable, "-m", "kb.cli", "serve", "--quiet", "--db", database]
    command += ["--port", str(port), "--workers", str(workers)]
    server = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for(port)
        times: list[float] = []
        faults: list[Exception] = []

        def read(seed: int, until: float, into: list[float]) -> None:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                for scenario in scenarios(seed, 4000):
                    start = time.perf_counter()
                    ask(connection, scenario)
                    into.append(time.perf_counter() - start)
                    if time.perf_counter() > until:
                        return
            except Exception as error:
                faults.append(error)

        def together(first_seed: int, length: float, into: list[float]) -> float:
            start = time.perf_counter()
            readers = [
                threading.Thread(target=read, args=(first_seed + i, start + length, into))
                for i in range(CONNECTIONS)
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            return time.perf_counter() - start

        together(100, 15.0, [])  # both workers read the data and finish what they compute at their start
        length = together(200, seconds, times)
        if faults:
            raise faults[0]
    finally:
        server.terminate()
        server.wait(30)
    print(
        f"over HTTP       {len(times) / length:.1f} answers/s with {workers} workers and {CONNECTIONS} connections "
        f"(target {TARGETS['answers_s']:g}); p50 {percentile(times, 0.5) * 1e3:.0f}, "
        f"p99 {percentile(times, 0.99) * 1e3:.0f} ms (target {TARGETS['p99_ms']:g})"
    )


def wait_for(port: int) -> None:
    """Until the server takes connections."""
    until = time.perf_counter() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            if time.perf_counter() > until:
                raise
            time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/kb.sqlite"
        build = [sys.executable, "-m", "kb.cli", "--quiet", "--db", database, "list", "levels", "--json"]
        subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
        cold(database)
        in_process(database, options.seconds)
        over_http(database, options.seconds, options.workers)


if __name__ == "__main__":
    main()
