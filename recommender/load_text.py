"""Batch and lengths of a reported figure, from what its source prints: "bs=8", "QPS 5", "ShareGPT", "2,048", "1M"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Mean lengths (prompt, answer) of data sets that sources name instead of lengths.
DATASETS: tuple[tuple[str, int, int, str], ...] = (
    (r"sharegpt", 161, 338, "vLLM paper, arXiv:2309.06180, figure 11"),
    (r"alpaca", 19, 58, "vLLM paper, arXiv:2309.06180, figure 11"),
    (r"gsm8k", 2366, 150, "LLMLingua, arXiv:2310.05736, table 1: full-shot prompt"),
    (r"mt-?bench|5 tasks|spec-?bench|chat|lmsys", 128, 256, "assumed: one question and its answer"),
    (r"humaneval|mbpp|code", 150, 200, "assumed"),
    (r"cnn|daily", 800, 100, "assumed"),
    (r"xsum|summar|longbench", 1000, 100, "assumed"),
)

# Serving tests keep this many requests in flight where the source states a moderate rate or a number of prompts;
# one that says "high QPS", "burst" or "all at once" fills the engine (vLLM admits 256 sequences by default).
SERVING_BATCH = 64
SATURATED_BATCH = 256
DEFAULT_LENGTHS = {"decode": (128, 256), "e2e": (512, 256), "prefill": (1024, 1), "serving": (512, 256)}

# A number right after a word that says batch or requests in flight, or before one that counts those who wait.
_NAMED_BATCH = re.compile(
    r"\b(?:batch(?:[ _-]?size)?|bsz?|b|concurrency|max[ _-]?num[ _-]?seqs|max[ _-]?batch(?:[ _-]?size)?)\s*[=:]?\s*(\d+)\b"
    r"|\b(\d+)\s*(?:concurrent|parallel|simultaneous|clients?|users?|seqs?|sequences|streams)\b"
)
_RATE = r"qps|req|rps|tok|prompts|queries"
_SATURATED = r"high|burst|\binf(inite)?\b|all at once|overload|saturat|peak|heavy"
_FILLED = r"(memory|kv|cache|capacity)[ -]?(limited|bound|pool)|largest (batch|that fits)|exhaust\w* (the )?(kv|memory)"


def _text(row: Mapping[str, Any], *names: str) -> str:
    return " ".join(str(row.get(name) or "") for name in names)


def states_full_memory(row: Mapping[str, Any]) -> bool:
    """Whether the source says that memory ran out, so that each side runs what its cache holds.

    >>> states_full_memory({"batch": "burst", "notes": "BF16 baseline exhausts KV pool"})
    True
    """
    return bool(re.search(_FILLED, _text(row, "batch", "notes", "config").lower()))


def find_batch(row: Mapping[str, Any], assumed: list[str]) -> tuple[int, bool]:
    """(batch, whether each side runs the largest that fits).

    >>> [find_batch({"batch": text}, [])[0] for text in ("8", "bs=8", "batch size 16", "4 (num_beams=4)", "32 clients")]
    [8, 8, 16, 4, 32]
    >>> find_batch({"batch": "5.5 req/s"}, [])[0], find_batch({"batch": "high load"}, [])[0]
    (64, 256)
    """
    text = _text(row, "batch").strip().lower().replace("\N{MULTIPLICATION SIGN}", "x")
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    if re.fullmatch(r"\d+", text):
        return max(1, int(text)), False
    named = _NAMED_BATCH.search(text)
    if named:
        return max(1, int(named[1] or named[2])), False
    if text.startswith("max") or re.search(_FILLED, text):
        return SERVING_BATCH, True
    swept = re.match(r"up to (\d+)$", text)
    if swept and _text(row, "metric") == "throughput_gain":
        assumed.append(f"batch: {swept[1]} of {text!r}")
        return int(swept[1]), False
    number = re.match(rf"[~<>=≤≥ ]*(\d+)\b(?!\.\d)(?!\s*({_RATE}|\w*\s*prompts|x\b))", text)
    if number and not re.search(r"up to|sweep", text):
        if re.match(r"\d+\s*(-|to\b|,|/\s*\d)", text):
            assumed.append(f"batch: {number[1]} of {text!r}")
        return max(1, int(number[1])), False
    if re.search(r"\b(qps\s*=?\s*1|1 qps)\b|\b(single|one|low|light|unloaded)\b", text):
        assumed.append("batch: 1")
        return 1, False
    if re.search(_SATURATED, text):
        assumed.append(f"batch: {SATURATED_BATCH}")
        return SATURATED_BATCH, states_full_memory(row)
    many = re.search(rf"{_RATE}|serving|slo|workload|offline|online|multi|poisson|large", text)
    if many or _text(row, "level") == "serving":
        assumed.append(f"batch: {SERVING_BATCH}")
        return SERVING_BATCH, False
    assumed.append("batch: 1")
    return 1, False


def find_lengths(row: Mapping[str, Any], assumed: list[str]) -> tuple[int, int]:
    """(prompt tokens, answer tokens)."""
    kind = {"prefill_speedup": "prefill", "ttft_reduction": "prefill", "decode_speedup": "decode"}.get(
        _text(row, "metric"), "serving" if _text(row, "level") == "serving" else "e2e"
    )
    prompt, answer = DEFAULT_LENGTHS[kind]
    texts = _text(row, "input_tokens").strip().lower(), _text(row, "output_tokens").strip().lower()
    for pattern, mean_in, mean_out, source in DATASETS:
        if re.search(pattern, texts[0]) or (not texts[0] and re.search(pattern, texts[1])):
            prompt, answer = mean_in, mean_out
            assumed.append(f"lengths: {mean_in} in, {mean_out} out ({source})")
            break
    named = any(item.startswith("lengths") for item in assumed)
    found_in, found_out = None if named else first_length(texts[0]), first_length(texts[1])
    both = re.fullmatch(
        r"(\d[\d,.]*k?)\s*(?:tokens )?(?:in )?[/+x:]\s*(\d[\d,.]*k?)(?: tokens| out)*", texts[0]
    )
    if found_in is not None and found_out is None and both and not texts[1]:
        second = first_length(both[2])  # "2k/128": prompt and answer in one cell
        if second is not None and second <= found_in:
            found_in, found_out = first_length(both[1]), second
    if found_in is None and texts[0] == "short":
        found_in = 16
    if found_in is None and re.match(r"(very )?long\b", texts[0]):
        found_in = 16384
        assumed.append("input: 16384")
    if found_in is None and not any(item.startswith(("lengths", "input")) for item in assumed):
        assumed.append(f"input: {prompt}")
    if found_out is None and kind != "prefill" and not any(item.startswith("lengths") for item in assumed):
        assumed.append(f"output: {answer}")
    return found_in if found_in is not None else prompt, found_out if found_out is not None else answer


def first_length(text: str) -> int | None:
    """512, 2,048, 1k, 1M, "1200/2600" (the first), "up to 64k" (the largest named).

    >>> first_length("1k"), first_length("1200/2600"), first_length("up to 64k"), first_length("ShareGPT")
    (1024, 1200, 65536, None)
    >>> first_length("2,048"), first_length("1M"), first_length("5-shot MMLU"), first_length("128x128")
    (2048, 1048576, None, 128)
    """
    lowered = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.lower())
    lowered = re.sub(r"\d+(\.\d+)?[ -]?(shots?\b|s\b|sec|min|ms\b|images?\b|turns?\b)", " ", lowered)
    lowered = re.sub(r"(?<=\d)\s*[x+]\s*(?=\d)", " / ", lowered)
    found = re.search(r"(\d+(?:\.\d+)?)\s*([km])?\b", lowered)
    if not found or re.search(r"[a-z]\d|\d[a-jln-z]", lowered):
        return None
    value = float(found[1]) * {"k": 1024, "m": 1024**2}.get(found[2], 1)
    return max(1, round(value))
