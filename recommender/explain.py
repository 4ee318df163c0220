"""Sentences composed from the estimate: the bottleneck with its share, the number that decides, the caveat.

No text belongs to a technique; every number comes from the priced candidates, so the same question always gives
the same sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recommender import text
from recommender.pricing import Priced

# A term below this share of a step does not decide anything and is not worth a number.
WORTH_SAYING = 0.015
# A term that stays and takes this share of a phase caps what can be gained.
WORTH_CAPPING = 0.15


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


def term_name(priced: Priced, phase: str, name: str, index: int = 0) -> str:
    """A term in words: what the matrix products wait for is what a reader wants to know."""
    if phase == "decode":
        if name == "linear" and not priced.is_compute_bound(phase, name, index):
            return "reading weights"
        if name == "attention":
            return "attention over the KV cache"
    return text.term(name)


def bound_text(priced: Priced, phase: str, index: int = 0) -> str:
    """What holds a phase back, with the largest term's share: "memory-bound (reading weights 84 %)"."""
    name, share = bottleneck(priced, phase, index)
    said = term_name(priced, phase, name, index)
    return f"{priced.bound(phase, index)}-bound ({said} {text.percent(share)})"


def lacks(priced: Priced, index: int, devices_text: str, devices: int) -> str:
    """Why a candidate does not fit, in bytes."""
    total, available = priced.at("total_bytes", index), priced.at("available_bytes", index)
    before, least = priced.at("total_bytes", 0), priced.at("min_devices", index)
    over = f"{text.bytes_(total - available)} too many for {devices_text}"
    needed = f"; fits on {least:.0f}" if least < 1e6 and least > devices else ""
    if abs(total - before) <= 0.01 * before:
        weights = text.bytes_(priced.at("weights_bytes", index))
        return f"frees no memory: {text.bytes_(total)} ({weights} of weights), {over}{needed}."
    word = "still needs" if total < before else "needs"
    return f"{word} {text.bytes_(total)}, {over}{needed}."


def no_gain(
    priced: Priced,
    index: int,
    *,
    objective: str,
    metric: str,
    gain: float | None,
    batch: int,
    metric_name: str,
    changes: Mapping[str, Any],
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
            down.append(f"{term_name(priced, phase, name)} by {text.percent(-share)}")
        elif share >= WORTH_SAYING:
            up.append(f"{term_name(priced, phase, name)} by {text.percent(share)}")
    outcome = f"{metric_name} {text.factor(gain)}{room(priced, index)}"
    where += capped(priced, phase, index, changes)
    if not down and not up:
        return f"{where}; it changes less than {text.percent(WORTH_SAYING)} of that ({outcome})."
    parts = []
    if down:
        parts.append(f"it cuts {text.listed(down[:2])}")
    if up:
        parts.append(f"{'adds to' if down else 'it adds to'} {text.listed(up[:2])}")
    return f"{where}; {' and '.join(parts)} of it ({outcome})."


def room(priced: Priced, index: int) -> str:
    """Capacity gained where time is not: how many sequences fit before and after."""
    before, after = priced.at("max_batch", 0), priced.at("max_batch", index)
    if not 1 <= before < 1e9 or after < 1.1 * before:
        return ""
    return f", room for {after:,.0f} sequences instead of {before:,.0f}"


def capped(priced: Priced, phase: str, index: int, changes: Mapping[str, Any]) -> str:
    """Why narrower weights change nothing: the matrix products wait for arithmetic, not for bytes."""
    if "weight_format" not in changes or "activation_format" in changes:
        return ""
    terms = priced.terms(phase, 0)
    total = sum(terms.values())
    share = terms.get("linear", 0.0) / total if total > 0 else 0.0
    said = bottleneck(priced, phase)[0] == "linear" and priced.bound(phase, 0) == "compute"
    if said or not priced.is_compute_bound(phase, "linear", index) or share < WORTH_SAYING:
        return ""
    already = " already" if priced.is_compute_bound(phase, "linear", 0) else ""
    then = "" if already else " once the weights are narrow"
    return f", its matrix products ({text.percent(share)}){already} compute-bound{then}"


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
        if objective != "memory":
            phase = phase_of(objective, priced, index)
            prompt, token = priced.at("ttft_s", index), priced.at("tpot_s", index)
            what = f"The prompt then takes {text.seconds(prompt)}" if phase == "prefill" else ""
            what = what or f"A token then takes {text.seconds(token)}"
            sentences.append(f"{what}, {bound_text(priced, phase, index)}.")
        return " ".join(sentences)
    if objective == "memory":
        return (
            f"Memory goes from {text.bytes_(priced.at('total_bytes', 0))} "
            f"to {text.bytes_(priced.at('total_bytes', index))}."
        )
    phase = phase_of(objective, priced)
    what, unit = (
        ("The prompt", "time to the first token") if phase == "prefill" else ("Decoding", "time per token")
    )
    field = "ttft_s" if phase == "prefill" else "tpot_s"
    before, after = priced.at(field, 0), priced.at(field, index)
    chief, share = bottleneck(priced, phase)
    said = term_name(priced, phase, chief)
    moved = [
        item for item in moved_terms(priced, phase, index) if abs(item[2] - item[1]) >= WORTH_SAYING * before
    ]
    sentence = (
        f"{what} is {priced.bound(phase, 0)}-bound: {text.percent(share)} of {text.seconds(before)} is {said}"
    )
    plural = "fall" if said in text.PLURAL else "falls"
    sentence = sentence.replace(f" is {said}", f" are {said}") if said in text.PLURAL else sentence
    cuts = [item for item in moved if item[2] < item[1]]
    adds = [item for item in moved if item[2] > item[1]]
    if cuts and cuts[0][0] == chief:
        sentence += f", which {plural} from {text.seconds(cuts[0][1])} to {text.seconds(cuts[0][2])}"
    elif cuts:
        name = term_name(priced, phase, cuts[0][0])
        verb = "fall" if name in text.PLURAL else "falls"
        sentence += f"; {name} {verb} from {text.seconds(cuts[0][1])} to {text.seconds(cuts[0][2])}"
    if adds:
        name, old, new = adds[0]
        added = term_name(priced, phase, name)
        sentence += f"; {added} {'add' if added in text.PLURAL else 'adds'} {text.seconds(new - old)}"
    stays = untouched(priced, phase, index)
    if stays:
        sentence += f"; {stays} stay"
    sentences.append(f"{sentence}. The {unit} goes from {text.seconds(before)} to {text.seconds(after)}.")
    other = "tpot" if phase == "prefill" else "ttft"
    other_gain = gain[other]
    if objective == "latency" and other_gain is not None and not 0.98 <= other_gain <= 1.02:
        label = "time per token" if other == "tpot" else "time to the first token"
        sentences.append(f"The {label} changes by {text.factor(other_gain)}.")
    return " ".join(sentences)


def untouched(priced: Priced, phase: str, index: int) -> str:
    """The terms that the technique leaves alone, where they take so much that they cap the gain."""
    terms = priced.terms(phase, 0)
    total = sum(terms.values())
    alone = [
        (before / total, term_name(priced, phase, name))
        for name, before, after in moved_terms(priced, phase, index)
        if total > 0 and before >= WORTH_CAPPING * total and abs(after - before) < WORTH_SAYING * total
    ]
    return text.listed([f"{name} ({text.percent(share)})" for share, name in sorted(alone, reverse=True)[:2]])
