"""Sentences composed from the estimate: the bottleneck with its share, the number that decides, the caveat.

No text belongs to a technique; every number comes from the priced candidates, so the same question always gives
the same sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recommender import text
from recommender.pricing import Priced
from taxonomy.model import Lossless, Technique, Training

# A term below this share of a step does not decide anything and is not worth a number.
WORTH_SAYING = 0.015


def phase_of(objective: str, priced: Priced, index: int = 0) -> str:
    """The phase whose time decides under an objective."""
    if objective == "ttft":
        return "prefill"
    if objective == "tpot":
        return "decode"
    ttft, total = priced.at("ttft_s", index), priced.at("e2e_s", index)
    return "prefill" if ttft > total - ttft else "decode"


def moved_terms(priced: Priced, phase: str, index: int) -> list[tuple[str, float, float]]:
    """(term, seconds before, seconds after) of one phase per token, largest change first."""
    before, after = per_token_terms(priced, phase, 0), per_token_terms(priced, phase, index)
    names = [*before, *(name for name in after if name not in before)]
    changed = [(name, before.get(name, 0.0), after.get(name, 0.0)) for name in names]
    return sorted(changed, key=lambda item: (-abs(item[2] - item[1]), item[0]))


def per_token_terms(priced: Priced, phase: str, index: int) -> dict[str, float]:
    """Terms scaled so that they add up to the phase's reported time (TTFT, or time per output token)."""
    terms = priced.terms(phase, index)
    total = sum(terms.values())
    reported = priced.at("ttft_s" if phase == "prefill" else "tpot_s", index)
    scale = reported / total if total > 0 else 1.0
    return {name: value * scale for name, value in terms.items()}


def bottleneck(priced: Priced, phase: str, index: int = 0) -> tuple[str, float]:
    """The largest term of a phase and its share."""
    terms = priced.terms(phase, index)
    total = sum(terms.values())
    name = max(terms, key=lambda item: (terms[item], item))
    return name, terms[name] / total if total > 0 else 0.0


def bound_text(priced: Priced, phase: str, index: int = 0) -> str:
    """What holds a phase back, in words, with the term's share: "memory-bound: matrix products 84 %"."""
    name, share = bottleneck(priced, phase, index)
    return f"{priced.bound(phase, index)}-bound: {text.term(name)} take {text.percent(share)}"


def lacks(priced: Priced, index: int, devices_text: str, devices: int) -> str:
    """Why a candidate does not fit, in bytes."""
    total, available = priced.at("total_bytes", index), priced.at("available_bytes", index)
    weights, cache = priced.at("weights_bytes", index), priced.at("kv_cache_bytes", index)
    least = priced.at("min_devices", index)
    same = index == 0 or abs(total - priced.at("total_bytes", 0)) < 1e-3 * total
    start = (
        "frees no memory: still"
        if same
        else "still needs"
        if total < priced.at("total_bytes", 0)
        else "needs"
    )
    sentence = (
        f"{start} {text.bytes_(total)} ({text.bytes_(weights)} of weights, {text.bytes_(cache)} of KV cache), "
        f"{text.bytes_(total - available)} more than {devices_text} {'holds' if devices == 1 else 'hold'}"
    )
    if least and least < 1e6 and least > devices:
        sentence += f"; {least:.0f} such devices would do"
    return sentence + "."


def no_gain(
    priced: Priced,
    index: int,
    *,
    objective: str,
    metric: str,
    gain: float | None,
    batch: int,
    metric_name: str,
) -> str:
    """Why a technique that fits is still not worth it: the bottleneck, what it cuts and what it adds."""
    if gain is None:
        return f"{metric_name} has no value to compare here."
    if metric == "memory":
        total, before = priced.at("total_bytes", index), priced.at("total_bytes", 0)
        if abs(total - before) <= 0.02 * before:
            return f"memory stays at {text.bytes_(before)}."
        return f"memory goes from {text.bytes_(before)} to {text.bytes_(total)}."
    if metric == "max_batch":
        return "as many sequences fit as before."
    phase = phase_of(objective, priced)
    what = "the prompt" if phase == "prefill" else "a decode step"
    reported = priced.at("ttft_s" if phase == "prefill" else "tpot_s", 0)
    where = f"{what} at batch {batch:,} is {bound_text(priced, phase)}"
    down, up = [], []
    for name, before, after in moved_terms(priced, phase, index):
        share = (after - before) / reported if reported > 0 else 0.0
        if share <= -WORTH_SAYING:
            down.append(f"{text.term(name)} by {text.percent(-share)}")
        elif share >= WORTH_SAYING:
            up.append(f"{text.term(name)} by {text.percent(share)}")
    outcome = f"{metric_name} {text.factor(gain)}"
    if not down and not up:
        return f"{where}; it changes less than {text.percent(WORTH_SAYING)} of that ({outcome})."
    parts = []
    if down:
        parts.append(f"it cuts {text.listed(down[:2])}")
    if up:
        parts.append(f"{'adds to' if down else 'it adds to'} {text.listed(up[:2])}")
    return f"{where}; {' and '.join(parts)} of it ({outcome})."


def why(
    priced: Priced, index: int, *, objective: str, gain: Mapping[str, float | None], makes_it_fit: bool
) -> str:
    """Why a technique is recommended: what held the baseline back, and the one number that decides."""
    sentences = []
    if makes_it_fit:
        total, available = priced.at("total_bytes", index), priced.at("available_bytes", index)
        sentences.append(
            f"Memory goes from {text.bytes_(priced.at('total_bytes', 0))} to {text.bytes_(total)}, "
            f"so it fits with {text.bytes_(max(available - total, 0.0))} to spare."
        )
    if objective == "memory":
        if not makes_it_fit:
            sentences.append(
                f"Memory goes from {text.bytes_(priced.at('total_bytes', 0))} "
                f"to {text.bytes_(priced.at('total_bytes', index))}."
            )
        return " ".join(sentences)
    phase = phase_of(objective, priced)
    what = "The prompt" if phase == "prefill" else "Decoding"
    field = "ttft_s" if phase == "prefill" else "tpot_s"
    before, after = priced.at(field, 0), priced.at(field, index)
    unit = "to the first token" if phase == "prefill" else "per token"
    moved = moved_terms(priced, phase, index)
    name, old, new = moved[0]
    cut = ""
    if before > 0 and abs(new - old) / before >= WORTH_SAYING:
        cut = f"; {text.term(name)} {_go(old, new)}"
        added = next(((n, o, w) for n, o, w in moved[1:] if (w - o) / before >= WORTH_SAYING and w > o), None)
        if added and new < old:
            cut += f", {text.term(added[0])} {_go(added[1], added[2])}"
    sentences.append(f"{what} is {bound_text(priced, phase)}{cut}: {_go(before, after, unit)}.")
    other = "decode" if phase == "prefill" else "prefill"
    other_gain = gain["tpot" if other == "decode" else "ttft"]
    if objective == "latency" and other_gain is not None and not 0.98 <= other_gain <= 1.02:
        label = "time per token" if other == "decode" else "time to the first token"
        sentences.append(f"The {label} changes by {text.factor(other_gain)}.")
    return " ".join(sentences)


def _go(old: float, new: float, unit: str = "") -> str:
    tail = f" {unit}" if unit else ""
    if old <= 0:
        return f"from nothing to {text.seconds(new)}{tail}"
    return f"from {text.seconds(old)} to {text.seconds(new)}{tail}"


def caveats(
    technique: Technique,
    priced: Priced,
    index: int,
    *,
    gain: Mapping[str, float | None],
    break_even: Mapping[str, int | None],
    engine: Any,
    loss: float | None,
    makes_it_fit: bool,
) -> list[str]:
    """What a careful engineer would add."""
    found = []
    if technique.lossless is Lossless.APPROX:
        reported = f" ({loss:g} points reported)" if loss is not None else ""
        found.append(f"Changes outputs a little{reported}; check quality on your task.")
    elif technique.lossless is Lossless.NO:
        reported = f" ({loss:g} points reported)" if loss is not None else ""
        found.append(f"Changes what the model answers{reported}; evaluate before use.")
    if technique.training is not Training.NONE:
        found.append(_TRAINING[technique.training])
    tpot, ttft, latency = gain["tpot"], gain["ttft"], gain["latency"]
    if makes_it_fit and latency is not None and latency < 1:
        found.append(
            f"Not a speed-up: {text.seconds(priced.at('tpot_s', index))} per token, "
            f"bound by {text.term(bottleneck(priced, 'decode', index)[0])}."
        )
    if ttft is not None and ttft < 0.98:
        found.append(f"The prompt takes {text.percent(1 / ttft - 1)} longer.")
    if tpot is not None and tpot < 0.98 and not (makes_it_fit and latency is not None and latency < 1):
        found.append(f"Each token takes {text.percent(1 / tpot - 1)} longer.")
    if break_even.get("batch"):
        found.append(f"Stops paying at batch {break_even['batch']:,}.")
    offered = [support.engine for support in technique.engines]
    if engine.slug not in ("plain", "roofline") and engine.slug not in offered:
        where = (
            f"; {text.listed(offered[:3])} {'have' if len(offered[:3]) > 1 else 'has'} it" if offered else ""
        )
        found.append(f"{engine.name} does not ship it as far as we know{where}.")
    elif not offered:
        found.append("No serving engine is known to ship it; expect research code.")
    if technique.hurts_when:
        found.append(f"Hurts with {technique.hurts_when.rstrip('.')}.")
    return found


_TRAINING = {
    Training.CALIBRATION: "Needs a calibration run, unless a converted checkpoint exists.",
    Training.FINETUNE: "Needs fine-tuning, unless a trained checkpoint exists.",
    Training.PRETRAIN: "Needs pre-training.",
}
