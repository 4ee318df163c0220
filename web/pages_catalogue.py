"""Pages of what questions are asked about: models, hardware, engines."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from costmodel.catalogue import all_engines, all_hardware, all_models, find_hardware, find_model
from costmodel.errors import CostModelError, UnknownName
from costmodel.specs import Hardware, Model
from costmodel.units import GIB
from web import fitting
from web.ask import check_names
from web.charts.roofline import roofline_chart
from web.errors import Missing
from web.formats import UNKNOWN, bytes_text, money, number, parameters, si
from web.listing import Facet, groups, paged, select
from web.pages_lists import chosen_of, state_of
from web.render import integer, moved, page
from web.snapshot import plain
from web.urls import link, record_path
from web.validation import measured_rows

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

Item = dict[str, Any]
PAGE_SIZE = 50


def list_page(
    request: Request,
    *,
    path: str,
    what: str,
    items: Sequence[Item],
    facets: Sequence[Facet],
    columns: Sequence[tuple[str, str]],
    lede: str,
    placeholder: str,
    command: str,
) -> HTMLResponse:
    """One list with facets; items carry `name, slug, sub, cells, haystack` and the facets' values."""
    known = ("q", "page", *(facet.name for facet in facets))
    pairs = state_of(request, known, "")
    chosen = chosen_of(request, facets)
    query = request.query_params.get("q", "").strip()
    words = [key for word in query.split()[:20] if (key := plain(word))]
    matching = (
        [item for item in items if all(word in item["haystack"] for word in words)]
        if words or not query
        else []
    )
    kept, counts = select(matching, facets, chosen)
    narrowed = bool(query or any(chosen.values()))
    title = (
        f"{len(kept)} of {len(items)} {what.casefold()}" if narrowed else f"{len(items)} {what.casefold()}"
    )
    return page(
        request,
        "catalogue.html",
        title=title,
        lede=lede,
        known=known,
        json_url=f"/api/v1{path}",
        command=command,
        what=what,
        query=query,
        placeholder=placeholder,
        kept=[pair for pair in pairs if pair[0] not in ("q", "page")],
        narrowed=narrowed,
        groups=groups(facets, counts, chosen, path, pairs),
        pairs=pairs,
        columns=list(columns),
        page=paged(kept, integer(request.query_params.get("page")), path, pairs, PAGE_SIZE),
    )


def single(name: str, title: str, order: Any = None, shown: int = 10) -> Facet:
    return Facet(name, title, lambda item: [item[name]] if item[name] else [], order=order, shown=shown)


@router.get("/models")
def models(request: Request) -> HTMLResponse:
    items: list[Item] = [
        {
            "slug": slug,
            "name": model.name,
            "sub": model.hf_id,
            "href": record_path("models", slug),
            "family": model.family,
            "attention": model.attention,
            "mixture": "mixture of experts" if model.is_moe else "dense",
            "size": size_class(model.total_params),
            "haystack": plain(f"{slug} {model.name} {model.hf_id} {model.family}"),
            "cells": [
                parameters(model.total_params),
                parameters(model.active_params) if model.is_moe else "all",
                model.attention,
                f"{model.layers}",
                bytes_text(fitting.kv_bytes_per_token(model)),
            ],
            "params": model.total_params,
        }
        for slug, model in all_models().items()
    ]
    items.sort(key=lambda item: (item["family"].casefold(), item["params"], item["slug"]))
    facets = [
        single("family", "Family"),
        single("size", "Size", SIZE_ORDER.index),
        single("attention", "Attention"),
        single("mixture", "Kind"),
    ]
    return list_page(
        request,
        path="/models",
        what="Models",
        items=items,
        facets=facets,
        columns=[
            ("Model", ""),
            ("Parameters", "num"),
            ("Active", "num"),
            ("Attention", ""),
            ("Layers", "num"),
            ("KV per token", "num"),
        ],
        lede="Dimensions as published; parameters and cache bytes are counted from them.",
        placeholder="llama 70b, mixtral, qwen",
        command="kb list models",
    )


SIZE_ORDER = ["under 2 B", "2–10 B", "10–40 B", "40–100 B", "over 100 B"]


def size_class(total: float) -> str:
    limits = (2e9, 10e9, 40e9, 100e9)
    return SIZE_ORDER[sum(total >= limit for limit in limits)]


@router.get("/models/{ident:path}")
def model(request: Request, ident: str) -> Response:
    """One model: dimensions, and the fewest devices that hold it."""
    found = resolve(find_model, "model", ident, all_models())
    if ident != found:
        return moved(record_path("models", found))
    each = all_models()[found]
    return page(
        request,
        "model.html",
        title=f"{each.name}: {parameters(each.total_params)} parameters, {bytes_text(each.total_params * 2)} in FP16",
        json_url=f"/api/v1{record_path('models', found)}",
        command=f"kb show {found}",
        model=each,
        facts=model_facts(each),
        formats=[label for label, _ in fitting.FORMATS],
        fits=fitting.devices_table(found),
        fit_note=f"Fewest devices that hold it with {fitting.CONTEXT_TOKENS:,} tokens of context, layers split freely.",
        questions=[
            (f"on {all_hardware()[slug].name}", link("/recommend", {"hardware": slug, "model": found}))
            for slug in fitting.COMMON_DEVICES
            if slug in all_hardware()
        ][:5],
        measured=measured_count("model", found),
        measured_href=link("/validation", {"model": found}),
    )


def measured_count(name: str, slug: str) -> int:
    """Rows of the validation set, counted without pricing them."""
    return sum(row[name] == slug for row in measured_rows())


def model_facts(model: Model) -> list[tuple[str, str]]:
    facts = [
        (
            "Parameters",
            parameters(model.total_params)
            + (f", {parameters(model.active_params)} active" if model.is_moe else ""),
        ),
        ("Layers × width", f"{model.layers} × {model.hidden:,}"),
        ("Attention", f"{model.attention}, {model.heads} heads, {model.kv_heads} for keys and values"),
        ("KV cache per token", bytes_text(fitting.kv_bytes_per_token(model)) + " in FP16"),
        ("Positions", f"{model.max_positions:,}" if model.max_positions else UNKNOWN),
        ("Vocabulary", f"{model.vocab:,}"),
    ]
    if model.is_moe:
        facts.append(("Experts", f"{model.n_experts}, {model.active_experts} used per token"))
    if model.sliding_window:
        facts.append(("Sliding window", f"{model.sliding_window:,} tokens"))
    return facts


def resolve(find: Any, kind: str, ident: str, catalogue: Mapping[str, Any]) -> str:
    """A slug, or Missing with links to the closest names."""
    if ident in catalogue:
        return ident
    folder = "models" if kind == "model" else kind
    try:
        check_names({kind: ident})
        return str(find(ident).slug)
    except UnknownName as error:
        near = list(error.suggestions) or difflib.get_close_matches(ident, catalogue, n=3, cutoff=0.4)
    except CostModelError:
        near = []
    raise Missing(
        kind,
        ident,
        [(slug, record_path(folder, slug)) for slug in near if slug in catalogue],
        hint=f"all of them: /{folder}",
    )


@router.get("/hardware")
def hardware(request: Request) -> HTMLResponse:
    items: list[Item] = [
        {
            "slug": slug,
            "name": device.name,
            "sub": " · ".join(part for part in (device.architecture, str(device.launch_year or "")) if part),
            "href": record_path("hardware", slug),
            "vendor": device.vendor,
            "class": device.device_class,
            "architecture": device.architecture,
            "memory": memory_class(device.memory_bytes),
            "haystack": plain(f"{slug} {device.name} {device.vendor} {device.architecture}"),
            "cells": [
                f"{number(device.memory_bytes / GIB)} GiB",
                f"{number(device.bandwidth_bytes_per_s / 1e9)} GB/s",
                peak_text(device),
                "yes" if device.flops.get("fp8") else "–",
                f"{number(device.tdp_w)} W" if device.tdp_w else UNKNOWN,
            ],
        }
        for slug, device in all_hardware().items()
    ]
    items.sort(key=lambda item: (item["vendor"].casefold(), str(item["name"]).casefold()))
    facets = [
        single("vendor", "Vendor"),
        single("class", "Class"),
        single("memory", "Memory", MEMORY_ORDER.index),
        single("architecture", "Architecture", shown=6),
    ]
    return list_page(
        request,
        path="/hardware",
        what="Devices",
        items=items,
        facets=facets,
        columns=[
            ("Device", ""),
            ("Memory", "num"),
            ("Bandwidth", "num"),
            ("FP16 peak", "num"),
            ("FP8", ""),
            ("Power", "num"),
        ],
        lede="Peaks are dense and as the vendor states them; every number has its source on the device's page.",
        placeholder="rtx 3090, h100, epyc",
        command="kb list hardware",
    )


MEMORY_ORDER = ["up to 12 GiB", "16–24 GiB", "32–48 GiB", "64–96 GiB", "over 96 GiB"]


def memory_class(size: float) -> str:
    limits = (14, 30, 60, 100)
    return MEMORY_ORDER[sum(size / GIB >= limit for limit in limits)]


def peak_text(device: Hardware) -> str:
    peak = device.flops.get("fp16") or device.flops.get("bf16")
    return si(peak, "FLOP/s") if peak else UNKNOWN


@router.get("/hardware/{ident:path}")
def device(request: Request, ident: str) -> Response:
    """One device: key numbers, its roofline by format, which models fit."""
    slug = resolve(find_hardware, "hardware", ident, all_hardware())
    if ident != slug:
        return moved(record_path("hardware", slug))
    each = all_hardware()[slug]
    best = "fp16" if each.flops.get("fp16") else next(iter(each.flops), "")
    peak = each.flops.get(best) or each.bandwidth_bytes_per_s
    narrow = next((name for name in ("fp8", "int8") if each.flops.get(name, 0) > peak), "")
    return page(
        request,
        "device.html",
        title=f"{each.name}: {number(each.memory_bytes / GIB)} GiB at {number(each.bandwidth_bytes_per_s / 1e9)} GB/s",
        json_url=f"/api/v1{record_path('hardware', slug)}",
        command=f"kb show {slug}",
        device=each,
        facts=device_facts(each),
        roof=roofline_chart(
            device=each.name,
            peak_flops=peak,
            bandwidth=each.bandwidth_bytes_per_s,
            compute_format=best.upper() or "no matrix units",
            before=(),
            after_peak=each.flops.get(narrow),
            after_format=narrow.upper(),
        ),
        fits=fitting.models_table(slug),
        measured=measured_count("hardware", slug),
        measured_href=link("/validation", {"hw": slug}),
        fit_note=f"One sequence with {fitting.CONTEXT_TOKENS:,} tokens of context, weights in the named format.",
        questions=[
            (f"{all_models()[name].name}", link("/recommend", {"hardware": slug, "model": name}))
            for name in fitting.COMMON_MODELS
            if name in all_models()
        ],
    )


def device_facts(device: Hardware) -> list[tuple[str, str]]:
    facts = [
        ("Memory", f"{bytes_text(device.memory_bytes)} ({number(device.memory_bytes / GIB)} GiB)"),
        ("Bandwidth", f"{number(device.bandwidth_bytes_per_s / 1e9)} GB/s"),
        *(
            (
                f"{name.upper().replace('_', ' ')} peak",
                si(rate, "FLOP/s" if not name.startswith("int") else "OP/s"),
            )
            for name, rate in device.flops.items()
        ),
        (
            "Link to other devices",
            f"{device.interconnect}, {number((device.interconnect_bytes_per_s or 0) / 1e9)} GB/s each way"
            if device.interconnect_bytes_per_s
            else device.interconnect,
        ),
        (
            "Link to the host",
            f"{number((device.host_bytes_per_s or 0) / 1e9)} GB/s each way"
            if device.host_bytes_per_s
            else UNKNOWN,
        ),
        ("Power", f"{number(device.tdp_w)} W" if device.tdp_w else UNKNOWN),
        ("Launch price", money(device.price_usd) + (f", {device.launch_year}" if device.launch_year else "")),
        ("2:4 sparsity", "yes" if device.sparsity_2_4 else "no"),
    ]
    return [fact for fact in facts if fact[1] not in (UNKNOWN, "none")]


@router.get("/engines")
def engines(request: Request) -> HTMLResponse:
    """Serving software: what it already does, hence what the baseline assumes."""
    rows = []
    for slug, engine in all_engines().items():
        does = ", ".join(
            str(name).replace("_", " ") + ("" if value is True else f" = {value}")
            for name, value in engine.defaults.items()
            if value is not False
        )
        rows.append(
            {
                "id": slug,
                "name": engine.name,
                "sub": f"{slug}{f' · {engine.version}' if engine.version else ''}",
                "href": link("/techniques", {"engine": slug}),
                "cells": [
                    does or "nothing beyond the plain baseline",
                    engine.layout,
                    ", ".join(engine.device_vendors) or "any",
                    engine.source or UNKNOWN,
                ],
            }
        )
    return page(
        request,
        "simple_list.html",
        title=f"{len(rows)} engines, and what each already does",
        lede="A question names the engine you run; what it does already is part of the baseline and is not advised again.",
        json_url="/api/v1/engines",
        command="kb list engines",
        columns=[
            ("Engine", ""),
            ("Does already", ""),
            ("Devices split by", ""),
            ("Vendors", ""),
            ("Source", ""),
        ],
        rows=rows,
    )
