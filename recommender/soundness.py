"""What every answer must satisfy, whatever was asked: used by the tests and by benchmarks/random_scenarios.py."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

from costmodel.catalogue import all_engines, all_hardware
from recommender.answer import GAIN_METRICS, REJECTION_CODES, Answer
from recommender.assess import Assessments
from recommender.engines import runs_on
from recommender.feasibility import weight_bits
from recommender.knowledge import Knowledge

ENGINES = (
    "plain",
    "roofline",
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
    "hf",
    "lmdeploy",
    "exllamav2",
    "gpt-fast",
)
OBJECTIVES = ("latency", "latency", "tpot", "ttft", "throughput", "memory", "cost")


def random_scenario(draw: random.Random, hardware: Sequence[str], models: Sequence[str]) -> dict[str, Any]:
    """Any device, model and workload; what people ask more often comes more often."""
    devices = draw.choice([1, 1, 1, 2, 4, 8])
    scenario: dict[str, Any] = {
        "hardware": draw.choice(hardware),
        "model": draw.choice(models),
        "devices": devices,
        "batch": draw.choice([1, 1, 2, 8, 16, 64, 256, 1024]),
        "input_tokens": draw.choice([1, 64, 512, 1024, 4096, 32768, 200_000]),
        "output_tokens": draw.choice([1, 16, 128, 512, 4096]),
        "objective": draw.choice(OBJECTIVES),
        "weight_format": draw.choice(
            ["fp16", "fp16", "fp16", "int8", "int4", "fp8", "gguf-q4_k_m", "4.5bpw"]
        ),
        "kv_format": draw.choice(["fp16", "fp16", "fp8", "int8"]),
        "max_training": draw.choice(["none", "calibration", "calibration", "finetune", "pretrain"]),
        "lossless": draw.random() < 0.2,
        "cache_hit_rate": draw.choice([0.0, 0.0, 0.0, 0.5, 1.0]),
    }
    if draw.random() < 0.15:
        scenario["request_rate"] = draw.choice([0.01, 1.0, 100.0])
    if draw.random() < 0.15:
        scenario["acceptance_rate"] = draw.choice([0.0, 0.3, 0.9, 1.0])
    if draw.random() < 0.15:
        scenario["tpot_slo_ms"] = draw.choice([1.0, 50.0, 1000.0])
    if devices > 1 and draw.random() < 0.3:
        scenario["tensor_parallel"] = devices
    if draw.random() < 0.1:
        scenario["using"] = draw.sample(
            ["awq", "flashattention", "paged-attention", "spec-decode", "fp8-kv"], 2
        )
    device = all_hardware()[scenario["hardware"]]
    scenario["engine"] = draw.choice([slug for slug in ENGINES if runs_on(all_engines()[slug], device)])
    return scenario


def faults(answer: Answer, knowledge: Knowledge) -> list[str]:
    """Everything wrong with an answer; empty for a sound one."""
    found: list[str] = []
    found += _accounted(answer, knowledge)
    available = answer.baseline["memory_bytes"]["available"]
    for item in answer.recommendations:
        where = f"{item.kind} {'+'.join(item.techniques)}"
        estimate = item.estimate
        if not estimate["fits"]:
            found.append(f"{where}: recommended though it does not fit")
        if estimate["memory_bytes"]["total"] > available * (1 + 1e-9):
            found.append(f"{where}: takes more memory than there is")
        for metric in GAIN_METRICS:
            gain = item.gain[metric]
            bounds = item.gain_interval[metric]
            if gain is not None and not (math.isfinite(gain) and gain > 0):
                found.append(f"{where}: {metric} gain {gain}")
            if gain is not None and (bounds is None or not bounds[0] <= gain <= bounds[1]):
                found.append(f"{where}: {metric} gain {gain} outside its interval {bounds}")
        if not item.why or "nan" in item.why.lower():
            found.append(f"{where}: says {item.why!r}")
    for plan in answer.pareto:
        shipped = [
            set(knowledge.shipped_by(slug)) for slug in plan["techniques"] if knowledge.shipped_by(slug)
        ]
        if shipped and not set.intersection(*shipped):
            found.append(f"front: no engine ships all of {'+'.join(plan['techniques'])}")
    ranks = [item.rank for item in answer.recommendations]
    if ranks != list(range(1, len(ranks) + 1)):
        found.append(f"ranks are {ranks[:5]}…")
    return found


def _accounted(answer: Answer, knowledge: Knowledge) -> list[str]:
    """Every technique is recommended, a member of a recommended mechanism, or rejected; never two of them."""
    found: list[str] = []
    taken: dict[str, int] = {}
    for item in answer.recommendations:
        if item.kind == "technique":
            for slug in item.members:
                taken[slug] = taken.get(slug, 0) + 1
    for refusal in answer.rejected:
        taken[refusal.technique] = taken.get(refusal.technique, 0) + 1
        if refusal.code not in REJECTION_CODES:
            found.append(f"{refusal.technique}: unknown code {refusal.code}")
        if len(refusal.reason) < 10 or not refusal.reason.endswith("."):
            found.append(f"{refusal.technique}: reason {refusal.reason!r}")
    for slug in knowledge.techniques:
        if taken.get(slug, 0) != 1:
            found.append(f"{slug} is accounted for {taken.get(slug, 0)} times")
    return found


def bound_faults(assessments: Assessments) -> list[str]:
    """Gains beyond what the physics of the changed fields allows."""
    found: list[str] = []
    priced = assessments.priced
    # Replacing a format with a slow kernel may gain more than its bytes: the bound is that of 16-bit weights.
    wide = assessments.situation.base["weight_format"] in ("fp16", "bf16")
    # Replacing a draft may gain what that draft cost: the bound is that of decoding without any.
    base = assessments.situation.base
    drafts = (
        base["tokens_per_step"] > 1 or base.get("verify_tokens", 1) > 1
    )  # in vain, where nothing is accepted
    for slug, item in assessments.items.items():
        changes, gain = item.changes, item.gain
        if not changes:
            continue
        tokens = float(changes.get("tokens_per_step", 1.0))
        # At a given rate a faster step leaves fewer requests in flight, which speeds up the step again.
        fewer = max(priced.at("sequences", 0) / priced.at("sequences", item.index), 1.0)
        tpot = gain["tpot"]
        if (
            "tokens_per_step" in changes
            and not drafts
            and tpot is not None
            and set(changes) <= DRAFT_FIELDS
            and tpot > tokens * fewer * 1.1
        ):
            found.append(f"{slug}: {tpot:.2f}x per token from {tokens:.2f} tokens per step")
        if wide and set(changes) <= {"weight_format", "weight_kernel"} and item.index:
            # Where the products wait for memory they gain at most what their bytes shrink by (embeddings apart).
            old, new = (priced.terms("decode", i).get("linear", 0.0) for i in (0, item.index))
            ratio = 16.0 / weight_bits(changes.get("weight_format", "fp16"))
            if (
                not priced.is_compute_bound("decode", "linear", 0)
                and old > new * max(ratio, 1.0) * fewer * SLACK
            ):
                found.append(f"{slug}: products {old / new:.2f}x faster from {ratio:.2f}x fewer bits")
        if set(changes) == {"kv_format"} and tpot is not None:
            before, after = priced.at("kv_cache_bytes", 0), priced.at("kv_cache_bytes", item.index)
            if after > 0 and tpot > max(before / after, 1.0) * fewer * SLACK:
                found.append(f"{slug}: {tpot:.2f}x per token from {before / after:.2f}x fewer cache bytes")
    return found


DRAFT_FIELDS = frozenset(
    {
        "tokens_per_step",
        "verify_tokens",
        "draft_weight_share",
        "draft_passes",
        "draft_overhead_s",
        "extra_weight_bytes",
    }
)
# Kernels for narrow weights may use the memory better than the engine's own for wide ones.
SLACK = 1.35
