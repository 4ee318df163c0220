"""Which variant of a technique a figure is about, and what its baseline already had: read from the texts of a row.

"W3", "INT8 SmoothQuant", "chain length 3, no tree", "EXL2 3.0 bpw", "TP8 vs TP2", "ratio 5x", "K4V2" … become
knobs and deployment fields. A number is taken only where the technique has the knob or the field it belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from costmodel.errors import CostModelError
from costmodel.formats import Format, all_formats, find_format
from recommender.effects import Fields
from recommender.load_text import first_length
from taxonomy.model import Technique


@dataclass
class Variant:
    """What a row changes beside the technique's defaults."""

    knobs: Fields = field(default_factory=dict)
    fields: Fields = field(default_factory=dict)  # of the candidate, over the technique's own changes
    baseline: Fields = field(
        default_factory=dict
    )  # already there on both sides, unless the technique sets it
    baseline_devices: int | None = None


# Width of plainly quantized weights → a format of the catalogue.
WEIGHT_FORMATS = {1: "binary", 2: "int2", 3: "gptq-3bit-g128", 4: "int4", 6: "fp6-llm", 8: "int8"}
GPTQ = "gptq-4bit-g128"
KV_FORMATS = {2: "kivi-2bit", 3: "kvquant-3bit", 4: "kv-int4", 8: "kv-int8"}
# From such prompts on nobody stores the scores: 32 heads of 32768 by 32768 in 16 bits are 69 GB.
FUSED_FROM_TOKENS = 32768
# Small models that share the vocabulary of LLaMA and its descendants (32000 tokens): the 68-million one trained as a draft
# (SpecInfer, arXiv:2305.09781), whose tuned sibling drafts for Vicuna in comparisons of drafters (arXiv:2401.07851).
# What such a draft has accepted: 2.16 tokens a step on average in one source, 2.24 in another (E0611 to E0663, E0710),
# 0.56 and 0.59 for each alone.
LLAMA_DRAFT_PARAMETERS = 6.8e7
LLAMA_DRAFT_ACCEPTANCE = 0.575
LLAMA_DRAFT_LAYERS = 2  # huggingface.co/JackFram/llama-68m, config.json
SMALLEST_SHARE = 0.002  # the least that the knob takes; the size above decides
# AutoGPTQ replaces attention by a fused module in these families unless told not to (auto_gptq/modeling/llama.py and
# gptj.py, `inject_fused_attention`, on by default since its version 0.2 of May 2023).
AUTOGPTQ_FUSED = r"llama|vicuna|alpaca|guanaco|wizard|gpt-?j"
GGUF = re.compile(r"\b(i?q\d_(?:k_[sml]|k|0|1|xs|xxs|s|m|nl))\b", re.I)


def variant_of(row: Mapping[str, Any], technique: Technique) -> Variant:
    """The variant that a row's `config`, `baseline` and `model` describe."""
    config = str(row.get("config") or "")
    baseline, model = str(row.get("baseline") or ""), str(row.get("model") or "")
    found = Variant()
    touched = {effect.field for effect in technique.effects}
    knobs = {knob.name for knob in technique.knobs}
    _weights(config, model, baseline, touched, technique, found)
    _cache(config, touched, found)
    _drafts(config, model, knobs, found)
    texts = f"{baseline} {config} {row.get('source')}".lower()
    if "tree_tokens" in knobs and re.search(r"\bvllm\b", texts) and "tree" not in config.lower():
        # vLLM drafts one chain of first guesses (its pull requests 4978 for Medusa and 6830 for EAGLE; trees are an open
        # request, its issue 18327)
        found.knobs["tree_tokens"] = 1
    if (
        "weight_format" in touched
        and re.search(r"auto-?gptq", f"{row.get('source')} {config}".lower())
        and re.search(AUTOGPTQ_FUSED, model.lower())
    ):
        found.fields["fused_operators"] = True
    _shares(config, knobs, found)
    _layout(config, baseline, touched, found)
    long_prompt = (first_length(str(row.get("input_tokens") or "")) or 0) >= FUSED_FROM_TOKENS
    if "attention_kernel" not in touched and (
        long_prompt or re.search(r"flash ?-?attention|\bfa-?[23]?\b|sdpa", baseline.lower())
    ):
        # Fused on both sides: the baseline says so, or its scores would not fit the device otherwise.
        found.baseline["attention_kernel"] = "flash"
    elif re.search(r"flash ?-?attention", config.lower()) and "attention_kernel" not in touched:
        # The figure is of a system that also brings fused attention; its baseline had none.
        found.baseline["attention_kernel"] = "eager"
        found.fields["attention_kernel"] = "flash"
    return found


def _weights(
    config: str, model: str, baseline: str, touched: set[str], technique: Technique, found: Variant
) -> None:
    stated = baseline_format(baseline) or baseline_format(model)
    if stated:
        found.baseline["weight_format"] = stated
    found.baseline |= baseline_widths(baseline, touched)
    if stated == GPTQ and round(weight_bits(config) or 4) == 3:
        found.baseline |= {"weight_format": WEIGHT_FORMATS[3], "weight_kernel": "naive"}
    if "weight_format" not in touched:
        held = weight_bits(config)
        if held and not stated and "activation_format" not in touched and re.search(r"\bw\d", config.lower()):
            found.baseline["weight_format"] = WEIGHT_FORMATS.get(round(held), f"{held:g}bpw")
        return
    bits = weight_bits(config)
    if bits is None:
        return
    if "average_bits" in {knob.name for knob in technique.knobs}:
        found.knobs["average_bits"] = bits
    usual = default_format(technique)
    if usual is None or abs(usual.bits_per_weight - bits) <= 0.75:
        return
    own = re.sub(r"(?<![a-z0-9])\d(?=-?bit)", f"{bits:.0f}", usual.slug)
    if own != usual.slug and own in all_formats():
        found.fields["weight_format"] = own
    elif re.search(r"exl2|bpw", config.lower()):
        found.fields["weight_format"] = f"exl2-{bits:g}bpw"
    else:
        found.fields["weight_format"] = WEIGHT_FORMATS.get(round(bits), f"{bits:g}bpw")
    own_kernel = any(
        effect.field == "weight_kernel" and effect.value == "lut" for effect in technique.effects
    )
    if found.fields["weight_format"] == WEIGHT_FORMATS[3] and not own_kernel:
        found.fields["weight_kernel"] = "naive"  # tuned kernels for plain integers exist for 4 and 8 bits


def baseline_widths(text: str, touched: set[str]) -> Fields:
    """Widths of a baseline that is quantized too: W8A8, W4A8KV4, "INT8 serving".

    The last is SmoothQuant's kind, whose attention multiplies 8-bit keys and values too (arXiv:2211.10438, figure 6).

    >>> baseline_widths("TensorRT-LLM W8A8KV8", {"activation_format"})
    {'weight_format': 'int8', 'activation_format': 'int8', 'kv_format': 'kv-int8'}
    >>> baseline_widths("INT8 serving", {"activation_format"})
    {'weight_format': 'int8', 'activation_format': 'int8', 'kv_format': 'kv-int8'}
    >>> baseline_widths("TensorRT-LLM FP16 or W8A8", set()), baseline_widths("W4A16", set())
    ({}, {'weight_format': 'int4'})
    """
    lowered = text.lower()
    if re.search(r"fp16|bf16|fp32", lowered):
        return {}
    if re.search(r"\bint8 serving", lowered) and "activation_format" in touched:
        return {"weight_format": "int8", "activation_format": "int8", "kv_format": KV_FORMATS[8]}
    widths = re.search(r"\bw(\d)a(\d+)(?:kv(\d))?\b", lowered)
    if not widths or int(widths[1]) not in WEIGHT_FORMATS:
        return {}
    found: Fields = {"weight_format": WEIGHT_FORMATS[int(widths[1])]}
    if widths[2] in ("4", "8"):
        found["activation_format"] = f"int{widths[2]}"
    if widths[3] and int(widths[3]) in KV_FORMATS:
        found["kv_format"] = KV_FORMATS[int(widths[3])]
    return found


def default_format(technique: Technique) -> Format | None:
    """The weight format that the technique sets by default."""
    for effect in technique.effects:
        value = effect.value
        if effect.field == "weight_format" and isinstance(value, str) and not value.startswith(("=", "knob")):
            try:
                return find_format(value)
            except CostModelError:
                return None
    return None


def weight_bits(text: str) -> float | None:
    """W3A16 → 3, "int4 g32" → 4, "2-bit" → 2, "EXL2 3.0 bpw" → 3.0, "INT8 SmoothQuant" → 8; KV widths are not weights."""
    lowered = re.sub(
        r"\bkv[ -]?(cache )?(in )?(int|fp)?\d+|\b(int|fp)?\d+[- ]?(bit)? kv\b|\bk\d+v\d+\b", " ", text.lower()
    )
    for pattern in (
        r"\bw(\d(?:\.\d+)?)(?:a\d+)?\b",
        r"(\d(?:\.\d+)?) ?bpw",
        r"\b(\d(?:\.\d+)?)[- ]?bits?\b",
        r"\bint(\d)\b",
        r"\bfp(4|6|8)\b",
        r"\bq(\d)[_fk]",
    ):
        match = re.search(pattern, lowered)
        if match:
            return float(match[1])
    return None


def baseline_format(text: str) -> str | None:
    """The weight format that a baseline or a model's name states; None for 16 bits."""
    lowered = text.lower()
    if "/" in text and len(GGUF.findall(text)) > 1:
        return None  # several, told apart by the model's name
    gguf = GGUF.search(text)
    if gguf:
        return f"gguf-{gguf[1].lower()}"
    exl = re.search(r"exl2 (\d(?:\.\d+)?) ?bpw", lowered)
    if exl:
        return f"exl2-{float(exl[1]):g}bpw"
    if re.search(r"\bawq\b", lowered) and not re.search(r"fp16|bf16", lowered):
        return "w4a16-awq-g128"
    if re.search(r"\b(gptq|optq)\b", lowered) and not re.search(r"fp16|bf16", lowered):
        return GPTQ
    wide = re.search(r"\bint(4|8)\b|\bw(2|3|4|8)\b", lowered)
    if wide and not re.search(r"kv|draft", lowered.split(" + ")[0]):
        return {"8": "int8", "4": "int4", "3": "gptq-3bit-g128", "2": "int2"}[wide[1] or wide[2]]
    return None


def _cache(config: str, touched: set[str], found: Variant) -> None:
    if "kv_format" not in touched:
        return
    lowered = config.lower()
    pair = re.search(r"\bk(\d)v(\d)\b", lowered)
    single = re.search(
        r"\bkv[ -]?(?:cache )?(?:in )?(?:int|fp)?(\d)\b|\b(?:int|fp)?(\d)[- ]?(?:bit)? kv\b", lowered
    )
    if pair:
        found.fields["kv_format"] = f"{(float(pair[1]) + float(pair[2])) / 2:g}bpw"
    elif single and "fp8" not in lowered:
        bits = int(single[1] or single[2])
        if bits in KV_FORMATS:
            found.fields["kv_format"] = KV_FORMATS[bits]


def _drafts(config: str, model: str, knobs: set[str], found: Variant) -> None:
    if "draft_tokens" not in knobs:
        return
    lowered = config.lower()
    length = re.search(
        r"chain(?: length)?[ =]*(\d+)|(\d+) (?:heads|draft tokens|drafted)|\b[kγ]\s*=\s*(\d+)|gamma\s*=?\s*(\d+)"
        r"|num_speculative_tokens\D*(\d+)|(?:n-?gram|medusa|eagle-?[23]?|lookup)\W+(\d+) tokens?\b",
        lowered,
    )
    if length:
        found.knobs["draft_tokens"] = int(next(group for group in length.groups() if group))
    if "tree_tokens" in knobs:
        tree = re.search(r"(\d+)[- ]tokens? tree|tree (?:of |size )?(\d+)", lowered)
        if tree:
            found.knobs["tree_tokens"] = int(tree[1] or tree[2])
        elif "no tree" in lowered or "chain" in lowered:
            found.knobs["tree_tokens"] = 1  # effects take max(tree, draft_tokens + 1)
    rate = re.search(r"(?:acceptance(?: rate)?|alpha|α)\s*[=of]*\s*(0?\.\d+)", lowered)
    if rate and "acceptance_rate" in knobs:
        found.knobs["acceptance_rate"] = float(rate[1])
    elif "medusa-2" in lowered and "acceptance_rate" in knobs:
        # heads trained together with the model accept 3.0 to 3.5 tokens a step (arXiv:2401.10774, Table 1)
        found.knobs["acceptance_rate"] = 0.66  # 0.75 a level with the tree's other branches
    if "draft_share" in knobs:
        sizes = re.findall(r"(\d+(?:\.\d+)?)\s*b\b", f"{model} ; {config}".lower())
        small = re.search(
            r"(\d+(?:\.\d+)?)\s*b\b[^;]*draft|draft[^;]*?(\d+(?:\.\d+)?)\s*b\b", f"{model} ; {config}".lower()
        )
        if small and sizes and float(sizes[0]) > 0:
            pair = re.search(r"\+\s*(\d+(?:\.\d+)?)\s*b", model.lower())
            draft = float(pair[1]) if pair else float(small[1] or small[2])
            if 0 < draft < float(sizes[0]):
                found.knobs["draft_share"] = draft / float(sizes[0])
        elif not small and re.match(r"vicuna|llama-?(1|2)?\b(?!-?3)", model.lower()):
            if "draft_layers" in knobs:
                found.knobs["draft_layers"] = LLAMA_DRAFT_LAYERS
            if {"smallest_draft", "acceptance_rate"} <= knobs and "tree_tokens" not in knobs:
                found.knobs["smallest_draft"] = LLAMA_DRAFT_PARAMETERS
                found.knobs["draft_share"] = SMALLEST_SHARE
                found.knobs.setdefault("acceptance_rate", LLAMA_DRAFT_ACCEPTANCE)


def _shares(config: str, knobs: set[str], found: Variant) -> None:
    """Ratios, sparsities and budgets."""
    lowered = config.lower()
    if "ratio" in knobs:
        ratio = re.search(
            r"(?:ratio|compress\w*)\s*[=:]?\s*(\d+(?:\.\d+)?)\s*x?|(\d+(?:\.\d+)?)\s*x (?:compress|ratio)",
            lowered,
        )
        if ratio:
            found.knobs["ratio"] = float(ratio[1] or ratio[2])
    sparse = re.search(
        r"(\d+(?:\.\d+)?)\s*% ?(?:sparsity|sparse|pruned)|sparsity\s*=?\s*(0?\.\d+|\d+ ?%)", lowered
    )
    if sparse:
        text = (sparse[1] or sparse[2]).replace(" ", "")
        share = float(text.rstrip("%")) / (100.0 if "%" in text or float(text.rstrip("%")) > 1 else 1.0)
        for name in ("density", "kept"):
            if name in knobs and 0 < share < 1:
                found.knobs[name] = 1.0 - share
        if "sparsity" in knobs and 0 < share < 1:
            found.knobs["sparsity"] = share
    kept = re.search(
        r"(\d+(?:\.\d+)?)\s*% ?(?:kept|budget|of (?:the )?(?:kv|cache))|keep\w*\s*(\d+(?:\.\d+)?)\s*%",
        lowered,
    )
    if kept and "kv_kept" in knobs:
        found.knobs["kv_kept"] = float(kept[1] or kept[2]) / 100.0
    budget = re.search(r"(?:budget|window)\s*[=:]?\s*(\d+)", lowered)
    if budget:
        for name in ("token_budget", "kv_budget", "window"):
            if name in knobs:
                found.knobs[name] = float(budget[1])
    chunk = re.search(r"chunk\w*\s*[=:]?\s*(\d+)", lowered)
    if chunk and "chunk" in knobs:
        found.knobs["chunk"] = float(chunk[1])


def _layout(config: str, baseline: str, touched: set[str], found: Variant) -> None:
    """ "TP8 vs TP2", "2 GPUs", "5x A100": devices of the baseline; "TP4": of both sides."""
    several = re.search(r"(\d+)\s*(?:gpus?|x )|on (\d+)x", baseline.lower())
    versus = re.search(r"tp ?(\d+) vs\.? tp ?(\d+)", config.lower())
    if versus:
        found.baseline_devices = int(versus[2])
    elif several:
        found.baseline_devices = int(several[1] or several[2])
    elif "tensor_parallel" in touched or "pipeline_parallel" in touched:
        found.baseline_devices = 1
