"""Whether a technique can be used at all here, before anything is priced. Each refusal has a code and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from costmodel.catalogue import all_engines
from costmodel.formats import find_format, for_engine
from recommender import effects, own_changes, text
from recommender.answer import REJECTION_CODES
from recommender.knowledge import Knowledge
from recommender.question import TRAINING
from recommender.situation import Situation, model_traits
from taxonomy.model import Kind, Lossless, Requirement, Technique

# Device families by NVIDIA compute capability, for sentences only.
_CAPABILITY_NAMES = {7.0: "Volta", 7.5: "Turing", 8.0: "Ampere", 8.9: "Ada", 9.0: "Hopper", 10.0: "Blackwell"}

# The first NVIDIA generation whose matrix units multiply a format.
FIRST_CAPABILITY = {"int8": 7.5, "int4": 7.5, "fp8": 8.9, "fp4": 10.0}

_TRAIT_NAMES = {
    "moe": "a mixture of experts",
    "dense": "a dense model",
    "attention": "a model with attention",
    "mha": "a model with as many KV heads as query heads",
    "gqa": "a model with grouped KV heads",
    "sliding-window": "a model with sliding-window attention",
    "ssm": "a state-space model",
    "relu": "a model with ReLU activations (few neurons fire per token)",
    "mtp": "a model published with a layer that predicts a further token",
    "encoder-decoder": "an encoder-decoder model",
}


_NO_DEMAND = Requirement()


@dataclass(frozen=True)
class Refusal:
    """A code and a sentence; the sentence ends with a full stop (empty where another refusal will be told)."""

    code: str
    reason: str

    def __post_init__(self) -> None:
        if self.reason and not self.reason.endswith("."):
            object.__setattr__(self, "reason", f"{self.reason}.")

    @property
    def priority(self) -> int:
        return REJECTION_CODES.index(self.code)


def first(refusals: list[Refusal]) -> Refusal:
    """The refusal that the interface's order puts first."""
    return min(refusals, key=lambda refusal: refusal.priority)


def inert_refusal(technique: Technique) -> Refusal:
    """Why a technique that declares no effect cannot be switched on."""
    if technique.kind is Kind.HARDWARE:
        why = technique.no_effect_reason or "no software switch turns it on"
        return Refusal("not-applicable", f"is a hardware design: {_decapitalise(why)}")
    return Refusal(
        "not-applicable", _capitalise(technique.no_effect_reason) or "declares no effect on a deployment."
    )


def refusals(
    technique: Technique,
    changes: Mapping[str, Any],
    situation: Situation,
    knowledge: Knowledge,
    in_place: frozenset[str] = frozenset(),
    *,
    unfit: Refusal | None = None,
    every: bool = False,
) -> list[Refusal]:
    """What speaks against the technique, highest code first: the first reason found, or `every` reason.

    `unfit` is the estimate's word that it does not fit, which stands second in the interface's order.
    """
    found = device_refusals(technique, changes, situation, knowledge)
    if found and not every:
        return found
    if unfit is not None:
        found.append(unfit)
        every = True  # a plan may still use it beside something that makes room
    for check in (
        partial(use_refusals, technique, changes, situation, knowledge, in_place),
        partial(applicability_refusals, technique, situation),
        partial(engine_refusals, technique, changes, situation, knowledge),
        partial(conflict_refusals, technique, situation, knowledge, in_place),
        partial(constraint_refusals, technique, situation, knowledge),
    ):
        found += check()
        if found and not every:
            break
    return found


def device_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge
) -> list[Refusal]:
    """What the device cannot do and what nobody ships for it; the same in every question about this device."""
    known = own_changes.of_device(situation.hardware, knowledge)
    key = (technique.slug, changes.get("activation_format"), "weight_format" in changes)
    if key not in known:
        known[key] = [
            *hardware_refusals(technique, changes, situation),
            *software_refusals(technique, changes, situation, knowledge),
        ]
    return list(known[key])


def hardware_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation
) -> list[Refusal]:
    """What the device cannot do."""
    need, device = technique.requires, situation.hardware
    activation = changes.get("activation_format")
    narrow = isinstance(activation, str) and activation in ("fp8", "int8", "fp4", "int4")
    if need == _NO_DEMAND and not narrow:
        return []
    code, name_of_device = "unsupported-hardware", text.device(device.name)
    found = []
    offered = [name for name, rate in device.flops.items() if rate]
    wanted = list(need.compute_formats)
    if narrow and activation not in wanted:
        wanted.append(str(activation))
    capability = device.compute_capability
    for name in wanted:
        oldest = FIRST_CAPABILITY.get(name)
        if device.flops.get(name) and capability is not None and oldest and capability < oldest:
            # Pascal and Volta multiply 8-bit integers in their ordinary units, no faster than 16 bits.
            since = _CAPABILITY_NAMES[oldest]
            found.append(
                Refusal(code, f"{name_of_device} has no {name.upper()} matrix units; {since} was the first.")
            )
        elif not device.flops.get(name):
            known = ", ".join(sorted(offered)) or "none stated"
            found.append(
                Refusal(code, f"{name_of_device} has no {name.upper()} matrix units; its rates: {known}.")
            )
    if need.sparsity_2_4 and not device.sparsity_2_4:
        since = f" ({device.architecture.capitalize()})" if capability is not None else ""
        found.append(
            Refusal(code, f"{name_of_device}{since} has no units for 2:4 sparsity; Ampere was the first.")
        )
    # A user's own device may leave its vendor open ("user"): then nothing is ruled out by it.
    vendors = [vendor.lower() for vendor in need.vendors]
    if vendors and device.vendor.lower() not in [*vendors, "user"]:
        found.append(
            Refusal(
                code, f"needs a device of {' or '.join(need.vendors)}; {name_of_device} is {device.vendor}."
            )
        )
    if need.device_classes and device.device_class not in need.device_classes:
        allowed = ", ".join(need.device_classes)
        found.append(Refusal(code, f"is made for {allowed}; {name_of_device} is {device.device_class}."))
    needed = need.min_compute_capability
    if needed is not None and device.compute_capability is not None and device.compute_capability < needed:
        family = max((value for value in _CAPABILITY_NAMES if value <= needed), default=None)
        name = f" ({_CAPABILITY_NAMES[family]})" if family else ""
        found.append(
            Refusal(
                code,
                f"needs compute capability {needed:g}{name}; {name_of_device} has {device.compute_capability:g}.",
            )
        )
    if need.host_link and not device.host_bytes_per_s:
        found.append(Refusal(code, f"{name_of_device} has no separate host memory to move data to."))
    return found


# Engines with a path for processors; the vendors in an engine's row are those of its accelerators.
CPU_ENGINES = frozenset(
    {
        "llama.cpp", "ik_llama.cpp", "bitnet.cpp", "rwkv.cpp", "intel-neural-speed", "executorch", "openvino", "ipex-llm",
        "onnxruntime", "ctranslate2", "hf", "accelerate", "mlc-llm", "plain", "roofline", "exo",
    }
)  # fmt: skip


@lru_cache(maxsize=256)
def runnable(vendor: str, device_class: str) -> frozenset[str]:
    """Engines that run on a kind of device."""
    return frozenset(
        slug
        for slug, engine in all_engines().items()
        if (
            slug in CPU_ENGINES
            if device_class == "cpu"
            else not engine.device_vendors or vendor in engine.device_vendors
        )
    )


def software_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge
) -> list[Refusal]:
    """A technique that only engines for other devices ship."""
    offered = knowledge.shipped_by(technique.slug)
    device = situation.hardware
    able = runnable(device.vendor, device.device_class)
    if "weight_format" in changes and device.device_class in ("cpu", "apple"):
        able -= {"hf", "accelerate"}  # their quantized layers are CUDA kernels
    if not offered or able.intersection(offered):
        return []
    kind = "processors" if device.device_class == "cpu" else f"{device.vendor} devices"
    names = text.listed(list(offered[:3]))
    verb = "ship" if len(offered) > 1 else "ships"
    return [Refusal("unsupported-hardware", f"{names} {verb} it, and not for {kind}.")]


def use_refusals(
    technique: Technique,
    changes: Mapping[str, Any],
    situation: Situation,
    knowledge: Knowledge,
    in_place: frozenset[str],
) -> list[Refusal]:
    """What is there already."""
    code = "already-in-use"
    if technique.slug in situation.using:
        return [Refusal(code, "is among the techniques given as in use.")]
    for relation in knowledge.relation_index.get(technique.slug, ()):
        if relation.kind == "subsumes" and relation.b == technique.slug and relation.a in situation.using:
            name = knowledge.techniques[relation.a].name
            return [Refusal(code, f"{name}, in use already, includes it.")]
    if technique.slug in in_place:
        what = _settings_text(technique, situation)
        return [Refusal(code, f"{text.engine(situation.engine.name)} already works this way{what}.")]
    return []


def _settings_text(technique: Technique, situation: Situation) -> str:
    shown = []
    for effect in technique.effects[:2]:
        present = situation.base.get(effect.field)
        if present is not None:
            shown.append(f"{effect.field.replace('_', ' ')} {_value_text(present)}")
    return f" ({', '.join(dict.fromkeys(shown))})" if shown else ""


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def applicability_refusals(technique: Technique, situation: Situation) -> list[Refusal]:
    """What makes no sense for this model or workload."""
    need, question, code = technique.requires, situation.question, "not-applicable"
    found = []
    traits = model_traits(situation.model) if need.model else frozenset()
    for trait in need.model:
        if trait not in traits:
            found.append(
                Refusal(code, f"needs {_TRAIT_NAMES.get(trait, trait)}; {_model_text(situation)} is not one.")
            )
    if situation.model.state_bytes_per_sequence and "tokens_per_step" in effects.settings_of(technique):
        # A rejected draft is cut off a cache; a recurrent state has already swallowed it.
        found.append(
            Refusal(code, f"needs to undo rejected tokens; {situation.model.name} keeps a recurrent state.")
        )
    if need.min_devices > question.devices:
        found.append(Refusal(code, f"needs {need.min_devices} devices or more; {question.devices} is given."))
    if need.min_batch > question.batch:
        found.append(Refusal(code, f"needs a batch of {need.min_batch} or more; it is {question.batch}."))
    if need.reuse and question.cache_hit_rate == 0:
        found.append(Refusal(code, "needs prompt tokens that requests share; --cache-hit is 0."))
    if need.request_rate and question.request_rate is None:
        found.append(Refusal(code, "pays off under a stream of requests; no --request-rate is given."))
    return found


def _model_text(situation: Situation) -> str:
    model = situation.model
    if model.is_moe:
        return f"{model.name} ({model.n_experts} experts)"
    return f"{model.name} ({model.heads} query and {model.kv_heads} KV heads)"


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


def _decapitalise(text: str) -> str:
    return text if len(text) > 1 and text[1].isupper() else text[:1].lower() + text[1:]


OPEN_ENGINES = ("plain", "roofline")


def engine_refusals(
    technique: Technique, changes: Mapping[str, Any], situation: Situation, knowledge: Knowledge
) -> list[Refusal]:
    """What the engine in use does not offer; the two model engines `plain` and `roofline` offer everything."""
    engine = situation.engine
    if engine.slug in OPEN_ENGINES:
        return []
    offered = knowledge.shipped_by(technique.slug)
    if engine.slug in offered:
        return []
    unreadable = format_refusals(changes, situation)
    if unreadable or not technique.engines:
        return unreadable
    if any(
        engine.slug in knowledge.shipped_by(slug) for slug in knowledge.members.get(technique.mechanism, ())
    ):
        return []
    if not offered:
        return [
            Refusal(
                "not-applicable", f"{text.engine(engine.name)} does not offer it; only research code exists."
            )
        ]
    verb = "do" if len(offered) > 1 else "does"
    return [
        Refusal(
            "not-applicable", f"{text.engine(engine.name)} does not offer it; {', '.join(offered)} {verb}."
        )
    ]


def format_refusals(changes: Mapping[str, Any], situation: Situation) -> list[Refusal]:
    """Number formats that the engine cannot load or store."""
    engine = situation.engine
    weights, cache = changes.get("weight_format"), changes.get("kv_format")
    if isinstance(weights, str) and engine.formats:
        found = find_format(for_engine(weights, engine.format_aliases))
        if found.family not in engine.formats:
            known = ", ".join(engine.formats)
            return [
                Refusal(
                    "not-applicable",
                    f"{text.engine(engine.name)} does not load {found.name}; it loads {known}.",
                )
            ]
    if isinstance(cache, str) and engine.kv_formats and cache not in engine.kv_formats:
        kept = find_format(for_engine(cache, engine.format_aliases, "kv"), "kv", "kv_format")
        if kept.slug not in engine.kv_formats:
            known = ", ".join(engine.kv_formats)
            return [
                Refusal(
                    "not-applicable",
                    f"{text.engine(engine.name)} does not keep its cache in {kept.name}; it has {known}.",
                )
            ]
    return []


def missing_base(technique: Technique, knowledge: Knowledge, in_place: frozenset[str]) -> Refusal | None:
    """For a technique that gains nothing alone: what it builds on and is not there."""
    mine = {technique.slug, technique.mechanism} - {""}
    for slug in sorted(mine):
        for relation in knowledge.relation_index.get(slug, ()):
            if relation.kind == "requires" and relation.a in mine and relation.b not in in_place | mine:
                known = knowledge.techniques.get(relation.b)
                said = known.name if known else relation.b.replace("-", " ")
                return Refusal("not-applicable", f"builds on {said}, which is not in use.")
    return None


def conflict_refusals(
    technique: Technique, situation: Situation, knowledge: Knowledge, in_place: frozenset[str]
) -> list[Refusal]:
    """What cannot run beside something in use, chosen by the user or built into the engine."""
    mine = {technique.slug, technique.mechanism} - {""}
    for slug in sorted(mine):
        for relation in knowledge.relation_index.get(slug, ()):
            others = {relation.a, relation.b} - mine
            if relation.kind != "conflicts" or not others & in_place:
                continue
            name = min(others & in_place)
            known = knowledge.techniques.get(name)
            why = f": {relation.condition}" if relation.condition else ""
            who = "in use" if name in situation.using else f"part of {text.engine(situation.engine.name)}"
            said = known.name if known else name.replace("-", " ")
            return [Refusal("conflicts", f"conflicts with {said}, {who}{why}.")]
    return []


def constraint_refusals(technique: Technique, situation: Situation, knowledge: Knowledge) -> list[Refusal]:
    """What the person who asks does not want."""
    question = situation.question
    found = []
    if TRAINING.index(technique.training) > TRAINING.index(question.max_training):
        found.append(
            Refusal(
                "needs-training",
                f"needs {_TRAINING_TEXT[technique.training]}; allowed is {question.max_training}.",
            )
        )
    if question.lossless and technique.lossless is not Lossless.YES:
        what = (
            "costs some accuracy"
            if technique.lossless is Lossless.APPROX
            else "changes what the model answers"
        )
        found.append(Refusal("lossy", f"{what}; only lossless techniques were asked for."))
    loss = largest_reported_loss(technique.slug, knowledge)
    if question.max_quality_loss is not None and loss is not None and loss > question.max_quality_loss:
        found.append(
            Refusal(
                "lossy",
                f"a loss of {loss:g} points is reported; at most {question.max_quality_loss:g} is allowed.",
            )
        )
    return found


_TRAINING_TEXT = {
    "none": "no training",
    "calibration": "a calibration run",
    "finetune": "fine-tuning",
    "pretrain": "pre-training",
}


def largest_reported_loss(slug: str, knowledge: Knowledge) -> float | None:
    """Median of the quality losses reported for a technique; None if none is."""
    return knowledge.losses.get(slug)


def filter_refusals(technique: Technique, situation: Situation) -> list[Refusal]:
    """What `--level` and `--bottleneck` leave out."""
    question = situation.question
    found = []
    if question.bottleneck and question.bottleneck not in technique.bottlenecks:
        found.append(
            Refusal(
                "filtered-out", f"addresses {', '.join(technique.bottlenecks)}, not {question.bottleneck}."
            )
        )
    if question.level and not matches_level(technique, question.level):
        found.append(Refusal("filtered-out", f"lies outside the level {question.level}."))
    return found


def matches_level(technique: Technique, level: str) -> bool:
    """`level` is a path or its beginning (`model/compression`), in any scheme or in one (`zhou:model`)."""
    scheme, _, path = level.rpartition(":")
    wanted = path.strip("/")
    return any(
        found == wanted or found.startswith(wanted + "/") or wanted in found.split("/")
        for name, paths in technique.levels.items()
        if not scheme or scheme == name
        for found in paths
    )
