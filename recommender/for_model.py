"""What a technique asks of the model in question: the publisher's own format costs no quality, published heads no training."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from costmodel.formats import Format, find_format
from costmodel.memory import memory
from costmodel.specs import Deployment, Model
from recommender.knowledge import Knowledge
from recommender.own_changes import Alone
from recommender.situation import Situation
from taxonomy.model import Checkpoint, EngineSupport, Lossless, Technique, Training

# Two names of one format may differ by their scales: a scale per 128x128 block is 0.002 bits.
SAME_BITS = 0.02


def native_format(model: Model) -> Format | None:
    """The narrow format in which the publisher ships the weights; None where they have 16 bits or more."""
    if model.native_weight_format in ("fp16", "bf16", "fp32", ""):
        return None
    found = find_format(model.native_weight_format)
    return found if found.is_quantized else None


def is_published(changes: Mapping[str, Any], native: Format | None) -> bool:
    """Whether the changes deploy the weights as they were published: same kind of number, no narrower activations."""
    weights = changes.get("weight_format")
    if native is None or not isinstance(weights, str):
        return False
    asked = find_format(weights)
    same = asked.family == native.family and abs(asked.bits_per_weight - native.bits_per_weight) <= SAME_BITS
    return same and changes.get("activation_format", native.activation or "fp16") in (
        native.activation,
        "fp16",
        "bf16",
    )


def checkpoint_of(technique: Technique, model: Model) -> Checkpoint | None:
    """What is published of the technique for this model, ready to load."""
    return next((item for item in technique.checkpoints if item.model == model.slug), None)


def adapted(
    changes: Mapping[str, Alone], model: Model, techniques: Mapping[str, Technique], knowledge: Knowledge
) -> dict[str, Technique]:
    """Slug → the technique as it is for this model, for those that ask for less than their file says."""
    native = native_format(model)
    found = {}
    for slug in changes if native else knowledge.trained:
        technique = techniques[slug]
        published = checkpoint_of(technique, model)
        if published:
            found[slug] = replace(
                technique, training=Training.NONE, engines=naming(technique.engines, published.name)
            )
        elif is_published(changes[slug].changes, native) and only_formats(technique):
            found[slug] = replace(technique, training=Training.NONE, lossless=Lossless.YES)
    return found


def naming(engines: Sequence[EngineSupport], checkpoint: str) -> tuple[EngineSupport, ...]:
    """Flags with the published weights in place of their placeholder (EAGLE-HEAD)."""
    return tuple(replace(item, how=PLACEHOLDER.sub(checkpoint, item.how)) for item in engines)


PLACEHOLDER = re.compile(r"\b[A-Z0-9]+-HEADS?\b")


def narrowed(
    techniques: Mapping[str, Technique], situation: Situation, knowledge: Knowledge
) -> dict[str, Technique]:
    """Formats that come in several widths, in the widest that fits, where their usual width does not."""
    narrower = {slug: narrower_widths(techniques[slug]) for slug in knowledge.sized}
    asked = [width for widths in narrower.values() for width in widths]
    if not asked:
        return {}
    deployment = Deployment(**{**situation.base, "weight_format": np.array(asked)})
    fits = memory(situation.model, situation.hardware, situation.workload, deployment, situation.engine).fits
    fitting = iter(np.broadcast_to(fits, (len(asked),)).tolist())
    found = {}
    for slug, widths in narrower.items():
        fit = [width for width in widths if next(fitting)]
        if fit and fit[0] != widths[0]:
            found[slug] = in_width(techniques[slug], widths[0], fit[0])
    return found


def narrower_widths(technique: Technique) -> Sequence[str]:
    """The width a technique has by default, and those below it."""
    widths: Sequence[str] = next(knob.choices for knob in technique.knobs if knob.name == WIDTHS)
    return widths[widths.index(usual_format(technique)) :]


def in_width(technique: Technique, usual: str, width: str) -> Technique:
    """The technique with another width of its format, in its flags and its name, too."""
    return replace(
        technique,
        effects=tuple(
            replace(effect, value=width) if effect.field == WIDTHS else effect for effect in technique.effects
        ),
        engines=tuple(
            replace(item, how=item.how.replace(width_name(usual), width_name(width)))
            for item in technique.engines
        ),
        name=f"{technique.name} ({spoken_width(width)})",
    )


WIDTHS = "weight_format"  # the knob of a technique whose format comes in several widths, widest first


def usual_format(technique: Technique) -> str:
    return next(str(effect.value) for effect in technique.effects if effect.field == WIDTHS)


def width_name(fmt: str) -> str:
    """How the tools name a width: gguf-iq2_xs → IQ2_XS, 2.5bpw → 2.5."""
    return fmt.removeprefix("gguf-").upper() if fmt.startswith("gguf-") else fmt.removesuffix("bpw")


def spoken_width(fmt: str) -> str:
    """The same for a reader: IQ2_XS, 2.5 bits."""
    return f"{width_name(fmt)} bits" if fmt.endswith("bpw") else width_name(fmt)


def only_formats(technique: Technique) -> bool:
    """Whether the technique does nothing beyond choosing formats, their kernel included."""
    return {effect.field for effect in technique.effects} <= {
        "weight_format",
        "activation_format",
        "weight_kernel",
    }
