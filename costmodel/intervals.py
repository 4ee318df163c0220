"""80 % intervals of predicted times, from cross-validated residuals by class (data/intervals.csv)."""

from __future__ import annotations

import csv
from functools import lru_cache
from typing import TYPE_CHECKING

from costmodel.efficiency import engine_class
from costmodel.tables import read_text

if TYPE_CHECKING:
    from costmodel.estimate import Estimate

KIN_WIDTH = 1.5  # times as wide, in logarithms, as the widest of its class
UNKNOWN = "?"  # engine that no list holds
DEVICE = "device"  # rows of data/intervals.csv that list the measured devices
NEW_DEVICE = "new-device"  # rows that say how many times as wide the interval is on any other
ANY = "*"  # engine and device group without measurements of their own


@lru_cache(maxsize=1)
def table() -> dict[tuple[str, str, str], tuple[float, str]]:
    """(phase, engine/class, device group) → factor and basis."""
    rows = csv.DictReader(read_text("intervals.csv").splitlines())
    return {
        (row["phase"], row["engine"], row["group"]): (
            float(row["factor"]),
            f"{row['basis']} ({row['count']} rows)",
        )
        for row in rows
    }


@lru_cache(maxsize=4096)
def spread(phase: str, engine: str, group: str, device: str = "") -> tuple[float, str]:
    """Factor f such that [t / f, t · f] holds the measured time in 80 % of cases, and what that rests on.

    `engine` is "slug/class", as `measured.Case.engine_key` writes it. A device that no measurement is of has a wider
    interval than its measured group.

    >>> spread("decode", "no-such/serving", "tpu")[0] >= spread("decode", "llama.cpp/llama.cpp-2023", "nvidia-gddr")[0]
    True
    """
    factor, basis = of_group(phase, engine, group)
    times_as_wide = table().get((NEW_DEVICE, phase, ANY))
    if device and times_as_wide and factor > 1.0 and (DEVICE, ANY, device) not in table():
        wide = factor ** times_as_wide[0]
        if (phase, engine, group) in table():
            return wide, f"{basis}, widened: no measurement on {device}"
    return factor, basis


@lru_cache(maxsize=4096)
def of_group(phase: str, engine: str, group: str) -> tuple[float, str]:
    """The factor for a device group, and what it rests on."""
    if engine.endswith("/roofline"):
        return 1.0, "the roofline is a limit, not a forecast"
    found = table().get((phase, engine, group))
    if found:
        return found
    others = [factor for (_, e, g), (factor, _) in table().items() if (e, g) == (engine, group)]
    if others:
        usual = sorted(factor for (p, e, _), (factor, _) in table().items() if p == phase and e != ANY)
        factor = max(*others, usual[len(usual) // 2])
        return factor, f"residuals of {engine.partition('/')[0]} on {group} in other kinds of time"
    slug, _, kind = engine.rpartition("/")
    if slug == UNKNOWN:
        factor, basis = table()[(phase, ANY, ANY)]
        return factor, f"an engine that the catalogue does not know: {basis}"
    eras = {
        e: f for (p, e, g), (f, _) in table().items() if (p, g) == (phase, group) and e.startswith(f"{slug}/")
    }
    if eras:
        nearest = max(eras, key=lambda e: eras[e])
        return (
            eras[nearest] ** KIN_WIDTH,
            f"measured on {group} only with a release of another year: its residuals, widened",
        )
    kin = [f for (p, e, g), (f, _) in table().items() if (p, g) == (phase, group) and e.endswith(f"/{kind}")]
    if kin:
        return max(kin) ** KIN_WIDTH, f"residuals of other engines of its class ({kind}) on {group}, widened"
    factor, basis = table()[(phase, ANY, ANY)]
    return factor, f"no measurement of {engine.partition('/')[0]} on {group}: {basis}"


def attach(estimate: Estimate) -> None:
    """Set the intervals of an estimate's times."""
    engine = f"{estimate.engine.slug}/{engine_class(estimate.engine)}"
    group, device = estimate.rates.group, estimate.hardware.slug
    decode, basis = spread("decode", engine, group, device)
    first, _ = spread("prefill", engine, group, device)
    estimate.tpot_interval_s = (estimate.tpot_s / decode, estimate.tpot_s * decode)
    estimate.ttft_interval_s = (estimate.ttft_s / first, estimate.ttft_s * first)
    estimate.interval_basis = basis
