"""From the printed conditions of a reported figure to a scenario. What was not printed is filled and said so.

A row of effects.csv names a model, a device, a batch and lengths as its source prints them ("LLaMA-2-7B",
"A100 (memory size not stated)", "MT-bench"). Rules here read kinds of texts, never single rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from costmodel.errors import CostModelError
from recommender.errors import RecommenderError
from recommender.load_text import find_batch, find_lengths, states_full_memory


class Unpriced(RecommenderError):
    """A row whose conditions cannot be rebuilt; the message says why."""

    code = "unpriced"


@dataclass
class Conditions:
    """A rebuilt scenario. `assumed` lists what the source did not print."""

    model: str
    hardware: str
    engine: str
    candidate_engine: str | None = None  # where the technique was timed in another one than the baseline
    engine_year: float | None = None  # when it was timed; engines' runtimes change two- to threefold
    devices: int = 1
    interconnect: str | None = None
    batch: int = 1
    baseline_batch: int | None = None  # where the baseline ran another one
    batch_is_maximum: bool = False
    memory_bound: bool = (
        False  # the source says that memory ran out: it bounds the batch, not what the engine admits
    )
    input_tokens: int = 512
    output_tokens: int = 256
    cache_hit_rate: float | None = None  # share of prompt tokens found in a cache, where printed
    assumed: list[str] = field(default_factory=list)


# Models that the catalogue lacks, by what stands nearest: the same dimensions or the model they were tuned from.
MODEL_ALIASES: tuple[tuple[str, str], ...] = (
    (r"^zephyr|^mistral.*(7b|$)", "mistral-7b"),
    (r"^mistral.*24b", "mistral-small-24b"),
    (r"^(vicuna|koala|alpaca|longchat|wizardlm|guanaco|stable-?vicuna).*\b7b", "llama-7b"),
    (r"^(vicuna|koala|alpaca|longchat|wizardlm|guanaco|stable-?vicuna).*\b13b", "llama-13b"),
    (r"^(vicuna|koala|alpaca|longchat|wizardlm|guanaco|stable-?vicuna).*\b(30|33)b", "llama-30b"),
    (r"^vicuna$", "llama-7b"),
    (r"^bitnet.*3b", "open-llama-3b"),
    (r"^lwm|^yarn|^llama-?2-?7b-32k", "llama-2-7b"),
    (r"^gpt-?3\b|^175b", "opt-175b"),
    (r"^chinchilla", "llama-2-70b"),
    (r"^gpt-?2-?(s|small|base)?$", "gpt2"),
    (r"^gpt-?2-?xl|^gpt-?2 1\.5b", "gpt2-xl"),
    (r"^llama-?2\b", "llama-2-7b"),
    (r"^llama-?3\b", "llama-3-8b"),
)
SIZES: tuple[tuple[float, str], ...] = (
    (1.1, "tinyllama-1.1b"),
    (3, "open-llama-3b"),
    (7, "llama-2-7b"),
    (8, "llama-3.1-8b"),
    (13, "llama-2-13b"),
    (33, "llama-30b"),
    (65, "llama-65b"),
    (70, "llama-2-70b"),
    (175, "opt-175b"),
)

# Engine by what the baseline, the configuration or the source say, first match.
ENGINES: tuple[tuple[str, str], ...] = (
    (r"tensorrt|trt-?llm", "tensorrt-llm"),
    (r"tinychat", "tinychat"),
    (r"turbomind|lmdeploy", "lmdeploy"),
    (r"autoawq", "autoawq"),
    (r"sglang", "sglang"),
    (r"\bvllm\b", "vllm"),
    (r"gpt-?fast", "gpt-fast"),
    (r"fastertransformer", "fastertransformer"),
    (r"\bmii\b|fastgen", "deepspeed-mii"),
    (r"deepspeed", "deepspeed"),
    (r"llama\.?cpp|t-mac|gguf", "llama.cpp"),
    (r"\bmlc\b", "mlc-llm"),
    (r"exl2|exllama", "exllamav2"),
    (r"\btgi\b|text-generation-inference", "tgi"),
    (r"\bhf\b|hugging ?face|transformers|eager", "hf"),
    (r"\borca\b", "vllm"),
    (r"accelerate|flexgen|zero-inference", "hf"),
)

# When documents without a date in their name were written.
ERAS: tuple[tuple[str, float], ...] = (
    (r"llm-perf-bench", 2023.8),
    (r"deepspeed-fastgen", 2023.85),
    (r"quantization-in-trt-llm", 2024.1),
    (r"omniserve|qserve", 2024.4),
)
# vLLM's issues and pull requests are numbered through: the last number of 2023, of mid-2024
VLLM_NUMBERS: tuple[tuple[int, float], ...] = ((2330, 2023.9), (6000, 2024.3))


def rebuild(row: Mapping[str, Any]) -> Conditions:
    """The scenario of one reported figure. Raises Unpriced with the reason."""
    assumed: list[str] = []
    if re.search(r"\b\d+ threads?\b", _text(row, "config")):
        raise Unpriced("the cost model prices whole devices, not a number of threads")
    hardware = find_device(row, assumed)
    model = find_language_model(row, assumed)
    engine = find_runtime(row, assumed)
    batch, maximum = find_batch(row, assumed)
    pair = re.search(r"\((\d+) vs\.? (\d+)\)", _text(row, "batch"))
    if pair:
        batch, maximum = int(pair[1]), False
    prompt, answer = find_lengths(row, assumed)
    devices = find_count(row, assumed)
    return Conditions(
        model=model,
        hardware=hardware,
        engine=engine,
        candidate_engine=find_candidate_runtime(row),
        engine_year=find_year(row),
        devices=devices,
        interconnect=find_link(row),
        batch=batch,
        baseline_batch=int(pair[2]) if pair else None,
        batch_is_maximum=maximum,
        memory_bound=maximum and states_full_memory(row),
        input_tokens=prompt,
        output_tokens=answer,
        cache_hit_rate=bounded_hit_rate(find_hit_rate(row), prompt),
        assumed=assumed,
    )


def find_link(row: Mapping[str, Any]) -> str | None:
    """The link between the devices where the source says that it is not the one they usually have.

    >>> find_link({"hardware": "A100-80GB PCIe (no NVLink)"})
    'pcie'
    """
    text = _text(row, "hardware", "config", "notes").lower()
    if re.search(r"\b(no|without|w/o) nv-?link|(over|via|through) pci-?e|\bpci-?e (only|interconnect)", text):
        return "pcie"
    return None


def _text(row: Mapping[str, Any], *names: str) -> str:
    return " ".join(str(row.get(name) or "") for name in names)


def bare(text: str) -> str:
    """Without remarks in brackets."""
    return re.sub(r"\s+", " ", re.sub(r"\([^)]*\)", " ", text)).strip()


def find_device(row: Mapping[str, Any], assumed: list[str]) -> str:
    """The device's slug."""
    whole = _text(row, "hardware").replace("\N{MULTIPLICATION SIGN}", "x")
    text = bare(whole)
    text = re.sub(r"grace ?hopper", "GH200", re.sub(r"\bDGX-?1\b", "V100", text, flags=re.I), flags=re.I)
    memory = re.search(r"\((\d+) ?gb?\b", whole, re.I)
    if memory and not re.search(r"\d ?gb?\b|[+/,]", text, re.I):
        text = f"{text} {memory[1]}GB"  # "A100 (40G)"
    if not text or re.search(r"not stated|\bgpu$|^gpus?\b|^nvidia$|^api$|state|simulat", text.lower()):
        assumed.append("hardware: A100-80GB")
        return "a100-80gb-sxm"
    parts = [part.strip() for part in re.split(r"\s*(?:/|\+|,|\bor\b|\band\b)\s*", text) if part.strip()]
    if len(parts) > 1:
        assumed.append(f"hardware: {parts[0]} of {text!r}")
    for spelling in device_spellings([text, *parts]):
        found = _device(spelling)
        if found is None:
            continue
        slug, ambiguous = found
        if ambiguous and "not stated" in _text(row, "hardware"):
            assumed.append(f"hardware: {slug}")
        return slug
    raise Unpriced(f"no device of the catalogue is {text!r}", hint="see: kb list hardware", field="hardware")


def device_spellings(texts: list[str]) -> list[str]:
    """What to look up: the text with fewer and fewer of its last words, then known other names."""
    found: list[str] = []
    for text in texts:
        name = re.sub(
            r"^\d+\s*x\s*|(\s|(?<=\d))x\s*\d+$|^\d{1,3}\s+(?!gb?\b)(?=[a-z])|^laptop ", "", text, flags=re.I
        )
        alias = next((slug for pattern, slug in DEVICE_ALIASES if re.search(pattern, name.lower())), None)
        words = name.split()
        found += [" ".join(words[:count]) for count in range(len(words), 0, -1)]
        found += [alias] if alias else []
    return found


DEVICE_ALIASES: tuple[tuple[str, str], ...] = (
    (r"p3\.|p3dn", "v100-32gb-sxm"),
    (r"\bp4de", "a100-80gb-sxm"),
    (r"\bp4d\b", "a100-40gb-sxm"),
    (r"\bp5\.", "h100-sxm"),
    (r"\bg5\b", "a10g"),
    (r"\bg4dn", "t4"),
    (r"nd ?a100|a2-(high|mega)gpu", "a100-40gb-sxm"),
    (r"orin", "jetson-agx-orin-64gb"),
    (r"^tpu( v4)?$", "tpu-v4"),
    (r"surface book 3", "cpu-x86-4c8t-avx2"),
    (r"raspberry pi 5", "cpu-raspberry-pi-5"),
    (r"m2 ultra", "m2-ultra-76c"),
    (r"\ba800", "a100-80gb-sxm"),
    (r"\bh800", "h100-sxm"),
    (r"^(single )?24 ?gb|^single gpu", "rtx-4090"),
)


@lru_cache(maxsize=1024)
def _device(spelling: str) -> tuple[str, bool] | None:
    """(slug, whether other devices have the name too), or None; a miss is remembered, for it is the slow case."""
    from costmodel.catalogue import find_hardware

    try:
        found = find_hardware(spelling)
    except CostModelError:
        return None
    return found.slug, bool(found.alternatives)


@lru_cache(maxsize=1024)
def _model(spelling: str) -> str | None:
    from costmodel.catalogue import find_model

    try:
        return find_model(spelling).slug
    except CostModelError:
        return None


def find_language_model(row: Mapping[str, Any], assumed: list[str]) -> str:
    """The model's slug; a size alone means the Llama model of that size."""
    whole = bare(_text(row, "model"))
    text = re.split(r"\s*(?:/|\+|,|;|\bversus\b|\bvs\b|\bwith\b|\bon\b)\s*", whole)[0].strip()
    text = re.sub(r"\s+(int4|int8|fp8|w2|w3|w4|w8)$", "", text, flags=re.I)
    text = re.sub(r"(?<=b)\s*(-|to )\s*\d+(\.\d+)?[bk]\b.*$", "", text, flags=re.I)  # "13B-175B", "7B-32K"
    lowered = text.lower()
    if lowered == "llama":
        assumed.append("model: llama-7b")
        return "llama-7b"
    words = text.split()
    spellings = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    plain = re.sub(r"[-_ ]?(chat|instruct|base|awq|gptq|hf)\b.*", "", text, flags=re.I)
    for spelling in (*spellings[:1], plain):
        slug = _model(spelling) if spelling else None
        if slug:
            return slug
    for pattern, slug in MODEL_ALIASES:
        if re.search(pattern, lowered) and _is_known(slug):
            assumed.append(f"model: {text} as {slug}")
            return slug
    for spelling in spellings[1:]:
        slug = _model(spelling) if re.search(r"\d", spelling) else None
        if slug:
            return slug
    for count in range(1, len(words)):  # "PowerInfer OPT-30B": the name stands last
        rest = " ".join(words[count:])
        slug = _model(rest) if re.search(r"[a-z].*\d", rest.lower()) else None
        if slug:
            return slug
    size = re.search(r"(\d+(?:\.\d+)?)\s*b\b", lowered)
    if size:
        wanted = float(size[1])
        near, slug = min(SIZES, key=lambda item: abs(item[0] - wanted) / wanted)
        if abs(near - wanted) <= 0.3 * wanted:
            assumed.append(f"model: {text} as {slug}")
            return slug
    if not lowered or re.search(
        r"^(any|several.*|.*\bllms?|not stated.*|opt|llama|dense|.*class|linear layers)$", lowered
    ):
        assumed.append("model: llama-2-7b")
        return "llama-2-7b"
    raise Unpriced(f"no model of the catalogue is {whole!r}", hint="see: kb list models", field="model")


def _is_known(slug: str) -> bool:
    from costmodel.catalogue import all_models

    return slug in all_models()


def find_runtime(row: Mapping[str, Any], assumed: list[str]) -> str:
    """The engine's slug: what the baseline says, else the configuration, else the usual one for such a test."""
    for names in (("baseline",), ("config",), ("source", "notes")):
        text = _text(row, *names).lower()
        for pattern, slug in ENGINES:
            if re.search(pattern, text):
                return slug
    if re.search(r"\bcpu\b|raspberry|m[1-4] (max|ultra|pro)|surface", _text(row, "hardware").lower()):
        assumed.append("engine: llama.cpp")
        return "llama.cpp"
    if re.search(r"autoregressive|vanilla", _text(row, "baseline").lower()):
        assumed.append("engine: hf")
        return "hf"
    if _text(row, "level") == "serving":
        assumed.append("engine: vllm")
        return "vllm"
    # Papers on kernels and formats time a loop without a framework around it.
    assumed.append("engine: plain")
    return "plain"


def find_candidate_runtime(row: Mapping[str, Any]) -> str | None:
    """The engine of the technique's side, where the baseline names one and the figure's place, or the technique, another.

    >>> find_candidate_runtime({"baseline": "HF FP16", "quoted_number_location": "Section TinyChat results"})
    'tinychat'
    """
    texts = (_text(row, "baseline"), _text(row, "config", "quoted_number_location"), _text(row, "technique"))
    before, place, own = (
        next((slug for pattern, slug in ENGINES if re.search(pattern, text.lower())), None) for text in texts
    )
    after = place or own
    return after if before and after and before != after else None


def find_year(row: Mapping[str, Any]) -> float | None:
    """When the engine was timed, as a decimal year: a date or an arXiv id in the source; None if it does not say.

    >>> find_year({"source": "vllm-project.github.io _posts/2024-09-05-perf-update.md"})
    2024.67
    >>> find_year({"source": "Zhou et al. 2024 survey arXiv:2404.14294"})
    2024.25
    """
    text = _text(row, "source").lower()
    for pattern, year in ERAS:
        if re.search(pattern, text):
            return year
    dated = re.search(r"\b(20\d\d)-(\d\d)-\d\d\b", text) or re.search(
        r"\barxiv:?\s*(\d\d)(\d\d)\.\d{4,5}", text
    )
    if dated:
        year, month = int(dated[1]), int(dated[2])
        return round((year if year > 2000 else 2000 + year) + (month - 1) / 12, 2)
    numbered = re.search(r"\bvllm\b.*#(\d+)", text)
    if numbered:
        return next((year for last, year in VLLM_NUMBERS if int(numbered[1]) <= last), None)
    return None


# Caches keep whole blocks, and the last one is computed anew for its next token (docs.vllm.ai/en/latest/design,
# prefix caching; 16 tokens a block by default).
BLOCK_TOKENS = 16


def bounded_hit_rate(rate: float | None, prompt: int) -> float | None:
    """What of a stated hit rate a prompt can have: its last block is always computed.

    >>> bounded_hit_rate(1.0, 512), bounded_hit_rate(0.5, 512), bounded_hit_rate(None, 512)
    (0.96875, 0.5, None)
    """
    return None if rate is None else min(rate, max(0.0, 1.0 - BLOCK_TOKENS / prompt))


def find_hit_rate(row: Mapping[str, Any]) -> float | None:
    """The share of prompt tokens that a cache holds, where the source prints one.

    >>> find_hit_rate({"config": "66.5% hit rate"}), find_hit_rate({"notes": "hit rate 0.8"}), find_hit_rate({})
    (0.665, 0.8, None)
    """
    text = _text(row, "input_tokens", "batch", "config", "notes").lower()
    found = re.search(
        r"(\d+(?:\.\d+)?) ?%(?: \w+)? (?:hits?|hit[- ]rate|shared|reused?)\b"
        r"|(?:hit[- ]rate|hit[- ]ratio|shared prefix|reuse)\s*(?:of|=|:)?\s*(\d+(?:\.\d+)?) ?(%)?",
        text,
    )
    if not found:
        return None
    share = float(found[1] or found[2]) / (100.0 if found[1] or found[3] else 1.0)
    return share if share <= 1.0 else None


def find_count(row: Mapping[str, Any], assumed: list[str]) -> int:
    """How many devices."""
    text = _text(row, "n_devices").strip()
    if text.isdigit() and int(text) > 0:
        return int(text)
    hardware = _text(row, "hardware").replace("\N{MULTIPLICATION SIGN}", "x")
    beside = re.search(
        r"(?:^|\s)(\d+)\s*x\s*\D|(?:\s|(?<=\d))x\s*(\d+)\b|^(\d{1,3})\s+(?!gb?\b)[a-z]", hardware.lower()
    )
    if beside:
        return int(beside[1] or beside[2] or beside[3])
    if text:
        first = re.match(r"\d+", text)
        if first and int(first[0]) > 0:
            assumed.append(f"devices: {first[0]}")
            return int(first[0])
    assumed.append("devices: 1")
    return 1
