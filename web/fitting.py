"""Which models fit which devices: small tables of the cost model's memory account."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from costmodel.catalogue import all_engines, all_hardware, all_models
from costmodel.kvcache import kv_bytes_per_token as cache_bytes_per_token
from costmodel.memory import memory
from costmodel.specs import Deployment, Hardware, Model, Workload
from web.urls import link

FORMATS = (("FP16", "fp16"), ("8-bit", "int8"), ("4-bit", "int4"), ("2-bit", "2bpw"))
CONTEXT_TOKENS = 4096
COMMON_DEVICES = (
    *(
        "rtx-3090",
        "rtx-4090",
        "rtx-5090",
        "a10",
        "l40s",
        "a100-40gb-sxm",
        "a100-80gb-sxm",
        "h100-sxm",
        "h100-80gb-sxm",
    ),
    *("h200-sxm", "b200-sxm", "mi300x"),
)
COMMON_MODELS = ("llama-2-7b", "llama-3.1-8b", "llama-2-13b", "mixtral-8x7b", "llama-2-70b", "llama-3.1-70b")
SHOWN_MODELS = 8


def kv_bytes_per_token(model: Model) -> float:
    """FP16 cache of one token, all layers."""
    return float(cache_bytes_per_token(model))


def needed(model: Model, device: Hardware) -> Any:
    """The memory account of one sequence for each of FORMATS."""
    engine = all_engines()["plain"]
    deployment = Deployment(weight_format=np.array([name for _, name in FORMATS]))
    workload = Workload(batch=1, input_tokens=CONTEXT_TOKENS - 1, output_tokens=1)
    return memory(model, device, workload, deployment, engine)


@lru_cache(maxsize=512)
def devices_table(slug: str) -> list[dict[str, Any]]:
    """Common devices × formats: the fewest that hold the model, each a question to ask."""
    model = all_models()[slug]
    rows = []
    for name_of_device in COMMON_DEVICES:
        device = all_hardware().get(name_of_device)
        if device is None:
            continue
        counts = np.broadcast_to(needed(model, device).min_devices, (len(FORMATS),))
        cells = []
        for (_, name), count in zip(FORMATS, counts, strict=True):
            values = {
                "hardware": device.slug,
                "model": model.slug,
                "devices": int(count),
                "weight_format": name,
            }
            cells.append(
                {
                    "text": f"{int(count)} ×",
                    "href": link("/recommend", values, {"devices": 1, "weight_format": "fp16"}),
                }
            )
        rows.append({"slug": device.slug, "name": device.name, "cells": cells})
    return rows


@lru_cache(maxsize=512)
def models_table(slug: str) -> list[dict[str, Any]]:
    """For each format the largest models that fit on one device only from that format on."""
    device = all_hardware()[slug]
    first: dict[int, list[Model]] = {}
    for model in all_models().values():
        fits = np.broadcast_to(needed(model, device).fits, (len(FORMATS),))
        if fits.any():
            first.setdefault(int(np.argmax(fits)), []).append(model)
    rows = []
    for index, (label, name) in enumerate(FORMATS):
        models = sorted(first.get(index, []), key=lambda model: (-model.total_params, model.slug))
        shown = [
            (
                model.name,
                link(
                    "/recommend",
                    {"hardware": device.slug, "model": model.slug, "weight_format": name},
                    {"weight_format": "fp16"},
                ),
            )
            for model in models[:SHOWN_MODELS]
        ]
        rows.append(
            {
                "format": label if index == 0 else f"{label}, not before",
                "models": shown,
                "more": max(0, len(models) - SHOWN_MODELS),
            }
        )
    return rows
