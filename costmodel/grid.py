"""Large grids in bounded memory: cut into blocks that fit the cache, estimated side by side on all cores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel import memory
from costmodel.assembly import build
from costmodel.errors import InvalidValue
from costmodel.estimate import times_of
from costmodel.specs import Deployment, Engine, Hardware, Model, Workload

BLOCK = 32_768  # configurations of one block: long enough for numpy, short enough for the caches
WORKLOAD_FIELDS = tuple(field.name for field in fields(Workload))
RESULTS = ("ttft_s", "tpot_s", "e2e_s", "throughput_tok_s", "total_bytes", "fits")


def sweep(
    model: Model, hardware: Hardware, engine: Engine, axes: Mapping[str, Sequence[Any] | NDArray[Any]],
    deployment: Deployment | None = None, workload: Workload | None = None,
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """Times and memory of every combination of the axes' values; arrays with one dimension per axis, in order.

    An axis is a field of `Workload` or of `Deployment`. The first axes are cut into blocks, so memory grows with the
    results alone: six numbers for each configuration.
    """
    base, work = deployment or Deployment(), workload or Workload()
    names = list(axes)
    known = {field.name for field in fields(Deployment)} | set(WORKLOAD_FIELDS)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidValue(f"unknown axis {unknown[0]!r}", hint=f"axes are: {', '.join(sorted(known))}")
    values = [np.asarray(axes[name]) for name in names]
    shape = tuple(len(value) for value in values)
    found = {name: np.empty(shape, dtype=bool if name == "fits" else np.float64) for name in RESULTS}
    if not names or 0 in shape:
        return found

    def run(block: tuple[slice, ...]) -> None:
        changes: dict[str, Any] = {}
        for axis, (name, value) in enumerate(zip(names, values, strict=True)):
            part = value[block[axis]]
            part = part if part.dtype.kind in "UO" else part.astype(np.float64)
            changes[name] = part.reshape([-1 if i == axis else 1 for i in range(len(names))])
        here = Workload(**{n: changes.pop(n) if n in changes else getattr(work, n) for n in WORKLOAD_FIELDS})
        there = base.changed(**changes)
        setup, layout, _, behaviour, _ = build(model, hardware, there, engine)
        times = times_of(setup, layout, behaviour, here, there)
        needed = memory.memory(model, hardware, here, there, engine, layout)
        for name in RESULTS:
            source = needed if name in ("total_bytes", "fits") else times
            found[name][block] = getattr(source, name)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        list(pool.map(run, blocks(shape)))
    return found


def blocks(shape: tuple[int, ...], size: int = BLOCK) -> list[tuple[slice, ...]]:
    """The grid cut along its longest axes into blocks of about `size` cells.

    >>> blocks((4, 3), size=6)
    [(slice(0, 2, None), slice(0, 3, None)), (slice(2, 4, None), slice(0, 3, None))]
    """
    steps = list(shape)
    while int(np.prod(steps)) > size:
        longest = max(range(len(steps)), key=lambda i: steps[i])
        steps[longest] = max((steps[longest] + 1) // 2, 1)
    cut: list[tuple[slice, ...]] = [()]
    for length, step in zip(shape, steps, strict=True):
        parts = [slice(start, min(start + step, length)) for start in range(0, length, step)]
        cut = [(*front, part) for front in cut for part in parts]
    return cut
