"""What a careful engineer would add to a recommendation: what it costs, where it stops paying, who ships it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from costmodel.specs import Engine, Model
from recommender import text
from recommender.engines import names
from recommender.explain import NOTED_BYTES, bottleneck
from recommender.feasibility import weight_bits
from recommender.for_model import checkpoint_of
from recommender.pricing import Priced
from taxonomy.model import Lossless, Technique, Training

_TRAINING = {
    Training.CALIBRATION: "Needs a calibration run, unless a converted checkpoint exists.",
    Training.FINETUNE: "Needs fine-tuning; no trained checkpoint for this model is known.",
    Training.PRETRAIN: "Needs pre-training.",
}


def of_technique(
    technique: Technique,
    *,
    declared: Technique,
    model: Model,
    engine: Engine,
    shipped: Sequence[str],
    loss: float | None,
    changes: Mapping[str, Any],
) -> list[str]:
    """What holds of a technique on this model and engine, whatever it gains; `declared` is it without the model."""
    found = []
    if technique.lossless is not declared.lossless:
        found.append(f"{model.name} is published in this format, so answers stay those of the release.")
    elif (bits := narrow_bits(changes)) is not None:
        found.append(f"Weights of {bits:.2g} bits lose quality that a reader notices; evaluate before use.")
    elif technique.lossless is Lossless.APPROX:
        reported = f" ({loss:g} points reported)" if loss is not None else ""
        found.append(f"Changes outputs a little{reported}; check quality on your task.")
    elif technique.lossless is Lossless.NO:
        reported = f" ({loss:g} points reported)" if loss is not None else ""
        found.append(f"Changes what the model answers{reported}; evaluate before use.")
    published = checkpoint_of(technique, model)
    if published is not None:
        found.append(f"Trained weights are published: {published.name}.")
    elif technique.training is not Training.NONE:
        found.append(_TRAINING[technique.training])
    if not shipped:
        found.append("No serving engine is known to ship it; expect research code.")
    elif engine.slug not in ("plain", "roofline") and engine.slug not in shipped:
        verb = "have" if len(shipped) > 1 else "has"
        found.append(
            f"{text.engine(engine.name)} does not ship it as far as we know; {names(shipped[:3])} {verb} it."
        )
    newer = needs_newer(technique, engine)
    if newer:
        found.append(newer)
    if technique.hurts_when:
        found.append(f"Weak points: {technique.hurts_when.rstrip('.')}.")
    return found


def needs_newer(technique: Technique, engine: Engine) -> str | None:
    """Where the flags need a later release of the engine than the one whose times are known."""
    since = next((item.since for item in technique.engines if item.engine == engine.slug), "")
    if "earlier" in since or not release(since) or not release(engine.version):
        return None
    if release(since) <= release(engine.version):
        return None
    name = text.engine(engine.name)
    return f"Needs {name} {since} or newer; the times are those of {name} {engine.version}."


def release(version: str) -> tuple[int, ...]:
    """The numbers a version begins with: "0.10.1 in the V1 engine" → (0, 10, 1)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def narrow_bits(changes: Mapping[str, Any]) -> float | None:
    """The mean width of weights below 3 bits; None where they are wider or stay as they are."""
    weights = changes.get("weight_format")
    bits = weight_bits(weights) if weights is not None else NOTICED
    return bits if bits < NOTICED else None


NOTICED = (
    3.0  # bits below which perplexity rises by more than half a point for 70B and more for smaller models
)


def of_times(
    priced: Priced,
    index: int,
    *,
    gain: Mapping[str, float | None],
    break_even: Mapping[str, Any],
    makes_it_fit: bool,
) -> list[str]:
    """What gets slower, and where the gain ends; of one technique or of a plan."""
    found = []
    host = priced.at("host_bytes", index)
    if host >= NOTED_BYTES and host > 1.01 * priced.at("host_bytes", 0):
        found.append(f"Host memory of {text.bytes_(host)} is needed; check that the machine has it.")
    tpot, ttft, latency = gain["tpot"], gain["ttft"], gain["latency"]
    slow = makes_it_fit and latency is not None and latency < 1
    if slow:
        found.append(
            f"Not a speed-up: {text.seconds(priced.at('tpot_s', index))} per token, "
            f"bound by {text.term(bottleneck(priced, 'decode', index)[0])}."
        )
    if ttft is not None and ttft < 0.98:
        found.append(f"The prompt takes {_longer(1 / ttft)}.")
    if tpot is not None and tpot < 0.98 and not slow:
        found.append(f"Each token takes {_longer(1 / tpot)}.")
    batch, asked = break_even.get("batch"), float(priced.one(priced.estimate.workload.batch, index))
    if batch:
        verb = "Stops" if batch > asked else "Starts"
        found.append(f"{verb} paying at batch {batch:,}.")
    if break_even.get("acceptance_rate"):
        found.append(
            f"Pays only where more than {text.percent(break_even['acceptance_rate'])} of drafts are accepted."
        )
    return found


def _longer(ratio: float) -> str:
    """A slowdown: percent while it is small, a factor beyond."""
    return f"{text.percent(ratio - 1)} longer" if ratio < 2 else f"{ratio:.1f} times as long"
