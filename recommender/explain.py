"""Sentences composed from the estimate: the bottleneck with its share, the number that decides, the caveat.

No text belongs to a technique; every number comes from the priced candidates, so the same question always gives
the same sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from recommender import effects, text
from recommender.feasibility import weight_bits
from recommender.knowledge import Knowledge
from recommender.pricing import Priced
from recommender.situation import Situation

# A term below this share of a step does not decide anything and is not worth a number.
WORTH_SAYING = 0.015
# Bytes on the host below which every machine has them to spare.
NOTED_BYTES = 1e9
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


# Terms that bytes or arithmetic decide; of the others it would mean nothing to say that memory bounds them.
PHYSICAL = frozenset({"linear", "experts", "attention", "elementwise", "lm_head"})


def bound_text(priced: Priced, phase: str, index: int = 0) -> str:
    """What holds a phase back, as a predicate: "is memory-bound (reading weights 84 %)", "spends 42 % on drafting"."""
    name, share = bottleneck(priced, phase, index)
    said = term_name(priced, phase, name, index)
    if name in PHYSICAL:
        return f"is {priced.bound(phase, index)}-bound ({said} {text.percent(share)})"
    return f"spends {text.percent(share)} on {said}"


PARTS_OF_MEMORY = {
    "weights_bytes": "weights",
    "kv_cache_bytes": "KV cache",
    "activation_bytes": "activations",
    "overhead_bytes": "overhead",
}


def replaced(changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge) -> tuple[str, ...]:
    """What is in use and would go: techniques that set a field which changes, or the weights' format as stated."""
    names = [
        knowledge.techniques[slug].name
        for slug in situation.using
        if not changes.keys().isdisjoint(effects.settings_of(knowledge.techniques[slug]))
    ]
    present = str(situation.base["weight_format"])
    if not names and "weight_format" in changes and weight_bits(present) < 16:
        names.append(f"{present} weights")
    return tuple(names)


MemoryFacts = tuple[float, ...]  # total, available, least number of devices, and the parts in their order


def memory_facts(priced: Priced) -> list[MemoryFacts]:
    """What `lacks` tells of, per candidate: those that agree in all of it share a sentence."""
    fields = ("total_bytes", "available_bytes", "min_devices", *PARTS_OF_MEMORY)
    return list(zip(*(priced.listed(field) for field in fields), strict=True))


def lacks(facts: MemoryFacts, before: float, devices_text: str, devices: int) -> str:
    """Why a candidate does not fit, in bytes; `before` is what the baseline needs."""
    total, available, least, *parts = facts
    over = f"{text.bytes_(total - available)} too many for {devices_text}"
    needed = f"; fits on {least:,.0f}" if least < 1e6 and least > devices else ""
    if abs(total - before) <= 0.01 * before:
        size, name = max(zip(parts, PARTS_OF_MEMORY.values(), strict=True), key=lambda part: part[0])
        part = f"{text.bytes_(size)} of {name}"
        return f"frees no memory: {text.bytes_(total)} ({part}), {over}{needed}."
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
    changes: Mapping[str, Any],
) -> str:
    """Why a technique that fits is still not worth it: the bottleneck, what it cuts and what it adds."""
    if gain is None:
        return f"{METRIC_WORDS.get(metric, metric)} has no value to compare here."
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
    where = f"{what} at batch {batch:,} ({text.seconds(reported)}) {bound_text(priced, phase)}"
    where += capped(priced, phase, index, changes)
    outcome = f"gain {text.factor(gain)} in {METRIC_WORDS[metric]}{room(priced, index)}"
    moves = [
        (term_name(priced, phase, name), after - before)
        for name, before, after in moved_terms(priced, phase, index)
    ]
    saved = [(said, -moved) for said, moved in moves if moved < 0]
    added = [(said, moved) for said, moved in moves if moved > 0]
    least = WORTH_SAYING * reported
    if max(total_of(saved), total_of(added)) < least:
        return f"{where}; it changes less than {text.percent(WORTH_SAYING)} of that: {outcome}."
    # More than the whole is told in seconds, because "adds 1978 %" is no number a reader can hold.
    whole = reported if max(total_of(saved), total_of(added)) < reported else None
    parts = [f"saves {share_text(saved, whole, least)}" if total_of(saved) >= least else "saves nothing"]
    if total_of(added) >= least:
        parts.append(f"adds {share_text(added, whole, least)}")
    return f"{where}; it {' and '.join(parts)}: {outcome}."


def total_of(moves: Sequence[tuple[str, float]]) -> float:
    return sum(seconds for _, seconds in moves)


def share_text(moves: Sequence[tuple[str, float]], whole: float | None, least: float) -> str:
    """All that is saved or added, with its largest parts: "24 % (reading weights 15 %, …)"; seconds without `whole`."""

    def said(seconds: float) -> str:
        return text.seconds(seconds) if whole is None else text.percent(seconds / whole)

    total = total_of(moves)
    parts = [(name, seconds) for name, seconds in moves[:2] if seconds >= least]
    if not parts:
        return f"{said(total)} in small parts"
    if len(parts) == 1 and parts[0][1] > 0.9 * total:
        return f"{said(total)} ({parts[0][0]})"
    return f"{said(total)} ({', '.join(f'{name} {said(seconds)}' for name, seconds in parts)})"


METRIC_WORDS = {
    "latency": "latency",
    "tpot": "time per token",
    "ttft": "time to the first token",
    "throughput": "throughput",
}


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
        host = priced.at("host_bytes", index)
        aside = f" on the device and {text.bytes_(host)} on the host" if host >= NOTED_BYTES else ""
        sentences.append(
            f"Memory goes from {text.bytes_(priced.at('total_bytes', 0))} to {text.bytes_(total)}{aside}, "
            f"so it fits with {text.bytes_(max(available - total, 0.0))} to spare."
        )
        if objective != "memory":
            phase = phase_of(objective, priced, index)
            prompt, token = priced.at("ttft_s", index), priced.at("tpot_s", index)
            what = f"The prompt then takes {text.seconds(prompt)}" if phase == "prefill" else ""
            what = what or f"A token then takes {text.seconds(token)}"
            then = "it" if phase == "prefill" else "decoding"
            sentences.append(f"{what}; {then} {bound_text(priced, phase, index)}.")
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
    if chief in PHYSICAL:
        verb = "are" if said in text.PLURAL else "is"
        lead = f"{what} is {priced.bound(phase, 0)}-bound: {text.percent(share)} of {text.seconds(before)} {verb} {said}"
    else:
        lead = f"{what} spends {text.percent(share)} of {text.seconds(before)} on {said}"
    sentence = lead
    plural = "fall" if said in text.PLURAL else "falls"
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
        sentence += f"; {stays}"
    was, now = text.seconds(before), text.seconds(after)
    sentences.append(f"{sentence}." if was == now else f"{sentence}. The {unit} goes from {was} to {now}.")
    if objective in ("throughput", "cost"):
        was, now = (text.number(priced.at("throughput_tok_s", i)) for i in (0, index))
        sentences.append(f"Throughput goes from {was} to {now} tokens/s.")
    other = "tpot" if phase == "prefill" else "ttft"
    other_gain = gain[other]
    if objective == "latency" and other_gain is not None and not 0.98 <= other_gain <= 1.02:
        timed = "tpot_s" if other == "tpot" else "ttft_s"
        label = "time per token" if other == "tpot" else "time to the first token"
        sentences.append(
            f"The {label} goes from {text.seconds(priced.at(timed, 0))} to {text.seconds(priced.at(timed, index))}."
        )
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
    first = sorted(alone, reverse=True)[:2]
    if not first:
        return ""
    verb = "stay" if len(first) > 1 or first[0][1] in text.PLURAL else "stays"
    return f"{text.listed([f'{name} ({text.percent(share)})' for share, name in first])} {verb}"
