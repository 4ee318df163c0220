"""Twenty readers at once: our pages, and Datasette on the same rows in the same run.

    python benchmarks/web.py [--datasette PATH/TO/datasette] [--chromium PATH] [--readers 20] [--seconds 5] [--json FILE]

Closed loop with keep-alive connections, the clients on the same cores as the servers. Every address of a kind is one
of a pool, so that finished pages kept in memory help only as much as they would help readers who look around; `cold`
asks each address once, right after a restart. With `--chromium` (and playwright installed) the first contentful paint
of a finished page is taken, the median of five loads, as it is on this machine: no allowance for a slow one. Datasette is measured when its executable is given; it is no dependency.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

# This folder has files named like our packages (web.py, ingest.py); the packages are what is meant.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

# A server that is up computes predictions for all published results in the background once; that is over by then.
WARM_S = 20.0

BUDGETS_MS = {"list": (100, 200), "search": (75, 150), "record": (40, 80), "search json": (None, 80)}


def pools(database: str) -> dict[str, list[str]]:
    """Addresses by kind of page, from the database itself."""
    import sqlite3

    with sqlite3.connect(database) as connection:
        works = [row[0] for row in connection.execute("SELECT slug FROM work ORDER BY slug")]
        techniques = [row[0] for row in connection.execute("SELECT slug FROM technique ORDER BY slug")]
        titles = [row[0] for row in connection.execute("SELECT title FROM work ORDER BY slug")]
    words = sorted(
        {word for title in titles for word in title.lower().split() if word.isalpha() and len(word) > 4}
    )
    bottlenecks = [
        "weight-bandwidth",
        "kv-bandwidth",
        "compute",
        "weight-capacity",
        "kv-capacity",
        "scheduling",
    ]
    lists = [
        f"/techniques?{urlencode({'bottleneck': b, 'phase': p, 'page': n})}"
        for b in bottlenecks
        for p in ("prefill", "decode", "both")
        for n in (1, 2)
    ]
    lists += [
        f"/papers?{urlencode({'survey': s, 'year': y})}"
        for s in ("zhou", "yuan", "park")
        for y in range(2017, 2025)
    ]
    hardware = ["rtx-3090", "rtx-4090", "a100-80gb-sxm", "h100-sxm", "l40s", "a10"]
    models = ["llama-2-7b", "llama-2-13b", "llama-2-70b", "llama-3.1-8b", "mixtral-8x7b", "mistral-7b"]
    return {
        "list": lists,
        "search": [f"/search?{urlencode({'q': word})}" for word in words[:: max(1, len(words) // 150)]],
        "search json": [f"/api/v1/search?{urlencode({'q': word})}" for word in words[:: max(1, len(words) // 150)]],
        "record": [f"/papers/{slug}" for slug in works[::5]] + [f"/techniques/{slug}" for slug in techniques[::10]],
        "answer": [
            f"/recommend?{urlencode({'hardware': h, 'model': m, 'batch': b})}" for h in hardware for m in models for b in (1, 8)
        ],
        "graph": ["/graph", "/graph?lanes=survey", "/graph?root=zhou", "/graph?shared=park,yuan"],
    }  # fmt: skip


def datasette_pools(database: str) -> dict[str, list[str]]:
    """The nearest questions in Datasette: a table with three facets, its full-text search, one row."""
    name = Path(database).stem
    return {
        "list": [f"/{name}/work?_facet=year&_facet=kind&_facet=role&year={year}" for year in range(2015, 2025)],
        "search": [f"/{name}/work?_facet=year&title__contains={word}" for word in ("attention", "quantization", "cache", "speculative", "pruning")],
        "record": [f"/{name}/work/{number}" for number in range(1, 120)],
    }  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(command: list[str], port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return process
        except OSError:
            if process.poll() is not None:
                raise SystemExit(f"{command[0]} ended with {process.returncode}") from None
            time.sleep(0.05)
    raise SystemExit(f"{command[0]} did not start")


async def fetch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> tuple[int, int]:
    """One GET on an open connection: status and size of the body."""
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\nAccept: text/html\r\n\r\n".encode()
    )
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    fields = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head.split("\r\n")[1:])
    }
    if "chunked" in fields.get("transfer-encoding", ""):
        size = 0
        while True:
            length = int((await reader.readline()).strip(), 16)
            await reader.readexactly(length + 2)
            size += length
            if not length:
                return status, size
    length = int(fields.get("content-length", 0))
    await reader.readexactly(length)
    return status, length


async def load(port: int, paths: list[str], readers: int, seconds: float) -> dict[str, float]:
    """`readers` connections, each asking for one page after another."""
    times: list[float] = []
    sizes: list[int] = []
    bad = 0
    until = time.perf_counter() + seconds

    async def one(number: int) -> None:
        nonlocal bad
        order = list(paths)
        random.Random(number).shuffle(order)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for path in itertools.cycle(order):
            begun = time.perf_counter()
            if begun > until:
                break
            status, size = await fetch(reader, writer, path)
            times.append((time.perf_counter() - begun) * 1e3)
            sizes.append(size)
            bad += status != 200
        writer.close()

    await asyncio.gather(*(one(number) for number in range(readers)))
    ordered = sorted(times)
    return {
        "requests": len(ordered),
        "p50_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "per_s": round(len(ordered) / seconds, 1),
        "kb": round(statistics.mean(sizes) / 1e3, 1),
        "not_200": bad,
    }


async def once_each(port: int, paths: list[str]) -> dict[str, float]:
    """Each address once, one reader: what a question costs that nobody has asked before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    for path in paths:
        begun = time.perf_counter()
        await fetch(reader, writer, path)
        times.append((time.perf_counter() - begun) * 1e3)
    writer.close()
    ordered = sorted(times)
    return {
        "requests": len(ordered),
        "p50_ms": round(statistics.median(ordered), 1),
        "p95_ms": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
    }


def serve_ours(database: str, port: int) -> list[str]:
    code = f"import uvicorn; from web.app import create_app; uvicorn.run(create_app('sqlite:///{database}'), port={port}, log_level='error', access_log=False)"
    return [sys.executable, "-c", code]


def measure(
    database: str, readers: int, seconds: float, datasette: str | None
) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {"kb": {}, "kb, cold, one reader": {}, "datasette": {}}
    for kind, paths in pools(database).items():
        for label in ("kb, cold, one reader", "kb"):
            port = free_port()
            process = start(serve_ours(database, port), port)
            try:
                asyncio.run(once_each(port, ["/techniques/awq", "/search?q=warm"]))  # imports and snapshot
                time.sleep(WARM_S)
                found[label][kind] = asyncio.run(
                    once_each(port, paths) if label != "kb" else load(port, paths, readers, seconds)
                )
            finally:
                process.terminate()
                process.wait()
    if datasette:
        port = free_port()
        process = start(
            [datasette, database, "--port", str(port), "--setting", "sql_time_limit_ms", "10000"], port
        )
        try:
            for kind, paths in datasette_pools(database).items():
                found["datasette"][kind] = asyncio.run(load(port, paths, readers, seconds))
        finally:
            process.terminate()
            process.wait()
    return found


PAINTED = (
    "/",
    "/recommend?hardware=rtx-3090&model=llama-2-70b",
    "/techniques",
    "/techniques/awq",
    "/papers",
    "/graph",
)
PAINT_MS = 250


def paints(database: str, chromium: str) -> dict[str, float]:
    """First contentful paint in ms by address, of pages that somebody has asked for before."""
    from playwright.sync_api import sync_playwright

    port = free_port()
    process = start(serve_ours(database, port), port)
    found = {}
    try:
        asyncio.run(once_each(port, list(PAINTED)))
        time.sleep(WARM_S)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
            )
            for path in PAINTED:
                times = []
                for _ in range(5):
                    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
                    page.goto(f"http://127.0.0.1:{port}{path}")
                    page.wait_for_timeout(300)
                    times.append(
                        page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                    )
                    page.context.close()
                found[path] = round(statistics.median(times), 1)
            browser.close()
    finally:
        process.terminate()
        process.wait()
    return found


def packaged_database(folder: str) -> str:
    from ingest.build import build, data_version
    from kb.db import ensure

    path = str(Path(folder) / "kb.sqlite")
    ensure(f"sqlite:///{path}", data_version(), build)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasette", default=os.environ.get("KB_DATASETTE"))
    parser.add_argument("--chromium", help="also take first paints with this browser")
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--json", help="write the figures here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = packaged_database(folder)
        found = measure(database, given.readers, given.seconds, given.datasette)
        painted = paints(database, given.chromium) if given.chromium else {}
    missed = sum(ms > PAINT_MS for ms in painted.values())
    print(f"{'':24}{'page':14}{'p50 ms':>8}{'p95 ms':>8}{'per s':>8}{'kB':>7}  budget")
    for label, kinds in found.items():
        for kind, row in kinds.items():
            budget = BUDGETS_MS.get(kind) if label == "kb" else None
            over = bool(budget) and any(
                limit is not None and row[name] > limit
                for name, limit in zip(("p50_ms", "p95_ms"), budget, strict=True)
            )
            if label.startswith("kb, cold") and kind == "answer":
                over, budget = row["p95_ms"] > 150, (None, 150)
            missed += over
            said = f"{budget[0] or '–'} / {budget[1]}{'  MISSED' if over else ''}" if budget else ""
            print(
                f"{label:24}{kind:14}{row['p50_ms']:8}{row['p95_ms']:8}{row.get('per_s', ''):>8}{row.get('kb', ''):>7}  {said}"
            )
    for path, ms in painted.items():
        print(f"first paint {ms:6.0f} ms  {path}{'  MISSED' if ms > PAINT_MS else ''}")
    if given.json:
        Path(given.json).write_text(
            json.dumps({**found, "first paint, ms": painted}, indent=2) + "\n", encoding="utf-8"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
