"""The cost model's tables: sorted, unique, sourced, plausible, and consistent with their own arithmetic."""

from __future__ import annotations

import csv
import io
import re

import pytest

from costmodel import catalogue, engine_names, formats
from costmodel.catalogue import (
    ALIAS_COLUMNS,
    all_engines,
    all_hardware,
    all_models,
    compact,
)
from costmodel.errors import InvalidFile
from costmodel.library import FLOPS_COLUMNS, HARDWARE_COLUMNS, MODEL_COLUMNS
from costmodel.tables import BASES, parse_table, read_table, read_text

TABLES = {
    "hardware.csv": HARDWARE_COLUMNS,
    "models.csv": MODEL_COLUMNS,
    "formats.csv": formats.COLUMNS,
}


@pytest.mark.parametrize(("name", "columns"), TABLES.items())
def test_rows_are_sorted_unique_and_sourced(name: str, columns: tuple[str, ...]) -> None:
    rows = read_table(name, columns)
    slugs = [row["slug"] for row in rows]
    assert slugs == sorted(set(slugs))
    for row in rows:
        assert row["source"] and row["locator"], row["slug"]
        assert row["basis"] in BASES, row["slug"]
        assert re.fullmatch(r"20\d\d-\d\d(-\d\d)?", row["retrieved"]), row["slug"]
        assert re.fullmatch(r"[a-z0-9][a-z0-9._-]*", row["slug"]), row["slug"]


def test_the_catalogues_are_complete() -> None:
    assert len(all_hardware()) >= 184 and len(all_models()) >= 169
    assert len(all_engines()) >= 50 and len(formats.all_formats()) >= 100


@pytest.mark.parametrize("slug", sorted(all_hardware()))
def test_devices_are_plausible(slug: str) -> None:
    device = all_hardware()[slug]
    assert 2**27 <= device.memory_bytes <= 2**41
    assert 5e9 <= device.bandwidth_bytes_per_s <= 1e17
    assert set(device.flops) <= set(FLOPS_COLUMNS)
    assert all(1e9 < rate < 1e17 for rate in device.flops.values())
    rates = device.flops
    if "fp8" in rates and "fp16" in rates:
        assert rates["fp8"] >= rates["fp16"] * 0.99
    if "fp4" in rates and "fp8" in rates:
        assert rates["fp4"] >= rates["fp8"] * 0.99
    assert (device.compute_capability is not None) == (
        device.vendor == "NVIDIA" and device.device_class != "cpu"
    )
    if device.compute_capability and device.device_class != "edge":
        assert ("fp8" in rates) <= (device.compute_capability >= 8.9)


@pytest.mark.parametrize("slug", sorted(all_models()))
def test_models_are_plausible(slug: str) -> None:
    model = all_models()[slug]
    assert model.layers > 0 and model.hidden > 0 and model.vocab > 0
    if model.heads:
        assert model.heads % max(model.kv_heads, 1) == 0
        assert 32 <= model.head_dim <= 512
    assert (model.n_experts > 0) == (model.active_experts > 0)
    assert model.active_experts <= model.n_experts
    assert (model.sliding_window is not None) == (model.global_layers is not None)
    assert 0 < model.active_params <= model.total_params
    assert formats.find_format(model.native_weight_format)


def test_aliases_point_at_known_slugs_and_are_needed() -> None:
    rows = read_table("aliases.csv", ALIAS_COLUMNS)
    keys = [(row["kind"], row["alias"]) for row in rows]
    assert keys == sorted(set(keys))
    known = {"hardware": all_hardware(), "model": all_models(), "engine": all_engines()}
    for row in rows:
        for slug in (row["slug"], *filter(None, row["alternatives"].split(";"))):
            assert slug in known[row["kind"]], row["alias"]
        if row["alternatives"] == "":
            assert compact(row["alias"]) not in {
                compact(slug) for slug in known[row["kind"]] if slug != row["slug"]
            }, f"{row['alias']} hides another slug"


def test_names_of_formats_are_unique() -> None:
    seen: dict[str, str] = {}
    for slug, fmt in formats.all_formats().items():
        assert set(fmt.uses) <= set(formats.USES) and fmt.scheme in formats.SCHEMES
        for name in (slug, *fmt.aliases):
            key = formats._key(name)
            assert seen.setdefault(key, slug) == slug, name
        assert 1 <= fmt.bits_per_weight <= 32
        if fmt.activation:
            assert "activations" in formats.find_format(fmt.activation).uses


def test_engines_are_sorted_and_name_known_things() -> None:
    text = read_text("engines.toml")
    order = re.findall(r'^\["(.+?)"\]', text, re.M)
    assert order == sorted(order) == sorted(all_engines())
    families = {fmt.family for fmt in formats.all_formats().values()} | {"exl2"}
    for slug, engine in all_engines().items():
        assert engine.source.startswith("http") and engine.family, slug
        assert engine.layout in ("tensor", "layer", "pipeline"), slug
        assert set(engine.formats) <= families, (slug, set(engine.formats) - families)
        assert 0 < engine.memory_share <= 1, slug
        for name in engine.kv_formats:
            assert formats.find_format(name, "kv"), (slug, name)
        for generic, own in engine.format_aliases.items():
            assert formats.find_format(generic) and formats.find_format(own), slug


def test_engine_names_are_unique() -> None:
    seen: dict[str, str] = {}
    for slug, engine in all_engines().items():
        for name in (slug, *engine.aliases):
            assert seen.setdefault(compact(name, vendors=True), slug) == slug, name


def test_every_name_in_the_measurements_resolves() -> None:
    rows = list(csv.DictReader(io.StringIO(read_text("measurements.csv"))))
    assert len(rows) > 2000
    for engine in {row["engine"] for row in rows}:
        assert engine_names.nearest_engine(engine)
    for name in {row["hardware"] for row in rows}:
        assert catalogue.find_devices(name)
    for name in {row["weight_format"] for row in rows}:
        assert formats.find_format(name)
    for name in {row["kv_format"] for row in rows if row["kv_format"]}:
        assert formats.find_format(name, "kv")
    missing = set()
    for name in {row["model"] for row in rows}:
        try:
            catalogue.find_model(name)
        except ValueError:
            missing.add(name)
    assert missing == set()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slug,size,colour\na,1,red\n", "unknown columns colour"),
        ("slug\na\n", "missing columns size"),
        ("slug,size\na\n", "line 2 does not have 2 cells"),
        ("slug,size\na,1,2\n", "line 2 does not have 2 cells"),
    ],
)
def test_loaders_refuse_other_columns(text: str, message: str) -> None:
    with pytest.raises(InvalidFile, match=message):
        parse_table(text, "x.csv", ("slug", "size"))


def test_rates_follow_from_each_other() -> None:
    """Tensor units double their rate with each halving of the width (NVIDIA architecture whitepapers)."""
    checked = 0
    for slug, device in all_hardware().items():
        rates = device.flops
        if device.vendor != "NVIDIA" or device.architecture not in ("turing", "ampere", "ada", "hopper"):
            continue
        if {"int8", "fp16_acc16"} <= set(rates):
            assert rates["int8"] == pytest.approx(2 * rates["fp16_acc16"], rel=0.02), slug
            checked += 1
        if {"int4", "int8"} <= set(rates):
            assert rates["int4"] == pytest.approx(2 * rates["int8"], rel=0.02), slug
        if {"fp8", "fp16"} <= set(rates):
            assert rates["fp8"] == pytest.approx(2 * rates["fp16"], rel=0.02), slug
        if device.device_class == "consumer" and {"fp16", "fp16_acc16"} <= set(rates):
            # consumer cards accumulate in FP32 at half rate; the TITAN RTX is the exception
            factor = 1 if slug == "titan-rtx" else 2
            assert rates["fp16_acc16"] == pytest.approx(factor * rates["fp16"], rel=0.02), slug
    assert checked > 40


def test_bandwidth_of_cpus_follows_from_their_channels() -> None:
    """channels × transfers per second × 8 bytes, or the bus's width in bits."""
    checked = 0
    for slug, device in all_hardware().items():
        found = re.search(r"DDR\dX?-(\d{4})[^,]*? (\d+)ch( per socket)?", device.memory_type)
        bus = re.search(r"LPDDR\dX?-(\d{4}) (\d+)-bit", device.memory_type)
        if found:
            sockets = 2 if found[3] and slug.endswith("-2s") else 1
            expected = float(found[1]) * 1e6 * float(found[2]) * 8 * sockets
        elif bus:
            expected = float(bus[1]) * 1e6 * float(bus[2]) / 8
        else:
            continue
        assert device.bandwidth_bytes_per_s == pytest.approx(expected, rel=0.02), slug
        checked += 1
    assert checked >= 15


def test_memory_sold_as_gigabytes_is_gibibytes() -> None:
    for slug, size in (
        ("rtx-3090", 24),
        ("a100-80gb-sxm", 80),
        ("h100-sxm", 80),
        ("mi300x", 192),
        ("t4", 16),
    ):
        assert all_hardware()[slug].memory_bytes == size * 2**30
