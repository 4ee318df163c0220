"""Whether a technique can be used at all here, before anything is priced. Each refusal has a code and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from costmodel.catalogue import all_models
from costmodel.specs import Model
from recommender import text
from recommender.engines import OPEN_ENGINES
from recommender.knowledge import Knowledge
from recommender.question import TRAINING, Question
from recommender.refusals import Refusal
from recommender.situation import Situation, model_traits
from taxonomy.model import Lossless, Technique

# Trait of a model → what a technique needs, and what is said of a model that lacks it.
_TRAITS = {
    "moe": ("a mixture of experts", "is dense"),
    "dense": ("a dense model", "has {experts} experts"),
    "attention": ("attention over a KV cache", "has none"),
    "mha": ("as many KV heads as query heads", "has {heads}"),
    "gqa": ("grouped KV heads", "has {heads}"),
    "sliding-window": ("sliding-window attention", "has none"),
    "ssm": ("a state-space model", "is none"),
    "relu": ("ReLU activations, with which few neurons fire per token", "has others"),
    "mtp": ("a published layer that predicts a further token", "has none"),
    "encoder-decoder": ("an encoder-decoder model", "is none"),
}


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
    if technique.slug not in in_place:
        return []
    name, what = text.engine(situation.engine.name), _settings_text(technique, situation)
    if is_stated(technique, situation):
        return [Refusal(code, f"is deployed already{what}.")]
    if situation.engine.slug in (*OPEN_ENGINES, *knowledge.shipped_by(technique.slug)) or is_generic(
        technique
    ):
        return [Refusal(code, f"{name} already works this way{what}.")]
    return [Refusal("no-gain", f"adds nothing to what {name} does already{what}.")]


def is_stated(technique: Technique, situation: Situation) -> bool:
    """Whether it is a format that the question states, not one that the engine has by itself."""
    usual = situation.engine.defaults
    return any(
        effect.field in FORMAT_FIELDS
        and situation.base.get(effect.field) not in (usual.get(effect.field), "fp16")
        for effect in technique.effects
    )


FORMAT_FIELDS = ("weight_format", "kv_format", "activation_format")


def is_generic(technique: Technique) -> bool:
    """Whether it is a way of working, not software of its own that an engine ships or does not."""
    return not technique.engines and not technique.repo


def layout_in_use(situation: Situation) -> Refusal:
    """A split of the model over the devices that the engine makes of its own accord."""
    name, count = text.engine(situation.engine.name), situation.question.devices
    return Refusal("already-in-use", f"{name} splits the model over {count} devices this way already.")


def _settings_text(technique: Technique, situation: Situation) -> str:
    shown = []
    for effect in technique.effects[:2]:
        present = situation.base.get(effect.field)
        if present is not None:
            said = _SETTINGS.get(effect.field, effect.field.replace("_", " ") + " {value}")
            shown.append(said.format(value=_value_text(present)))
    return f" ({', '.join(dict.fromkeys(shown))})" if shown else ""


# Field of a deployment → how a reader calls its value.
_SETTINGS = {
    "weight_format": "{value} weights",
    "kv_format": "{value} KV cache",
    "activation_format": "{value} activations",
    "weight_kernel": "{value} kernels",
    "attention_kernel": "fused attention",
    "decode_attention_kernel": "{value} decode attention",
    "kv_waste_share": "share of the cache left unused {value}",
    "fused_operators": "fused operators",
    "cuda_graphs": "captured graphs",
    "continuous_batching": "sequences join and leave between steps",
    "prefix_cache": "cached prefixes",
    "chunk_tokens": "prompts in chunks of {value} tokens",
    "devices": "{value} devices",
}


def _value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def model_refusals(
    technique: Technique, model: Model, knowledge: Knowledge, *, drafts: bool
) -> list[Refusal]:
    """What makes no sense for this model, whatever the question. `drafts`: it has several tokens accepted a step."""
    code, traits = "not-applicable", model_traits(model)
    wanted = knowledge.demands[technique.slug]
    found = [Refusal(code, _lacking(trait, model)) for trait in wanted if trait not in traits]
    if model.state_bytes_per_sequence and drafts and "mtp" not in traits:
        # A rejected draft is cut off a cache; a recurrent state has already swallowed it. For models with a layer that
        # predicts, engines keep the states in between (vLLM for Qwen3-Next and Qwen3.5, ggml-org/llama.cpp#20039).
        found.append(Refusal(code, f"needs to undo rejected tokens; {model.name} keeps a recurrent state."))
    if technique.mechanism == DRAFT_MODEL and "mtp" in traits and not has_small_sibling(model):
        found.append(
            Refusal(
                code, f"no small model shares the vocabulary of {model.name}, which has a layer for it (MTP)."
            )
        )
    return found


def load_refusals(technique: Technique, question: Question) -> list[Refusal]:
    """What makes no sense under this load, or on so few devices."""
    need, code, found = technique.requires, "not-applicable", []
    if need.min_devices > question.devices:
        found.append(Refusal(code, f"needs {need.min_devices} devices or more; {question.devices} is given."))
    if need.min_batch > question.batch:
        found.append(Refusal(code, f"needs a batch of {need.min_batch} or more; it is {question.batch}."))
    if need.reuse and question.cache_hit_rate == 0:
        found.append(Refusal(code, "needs prompt tokens that requests share; --cache-hit is 0."))
    if need.acceptance and question.acceptance_rate is None:
        found.append(Refusal(code, "pays off where answers repeat earlier text; no --acceptance is given."))
    if need.request_rate and question.request_rate is None:
        found.append(Refusal(code, "pays off under a stream of requests; no --request-rate is given."))
    return found


DRAFT_MODEL = "draft-and-verify"  # the mechanism of techniques that draft with a separate model
DRAFT_SHARE = 0.3  # of the target's parameters, beyond which a draft costs more than it saves


@lru_cache(maxsize=512)
def has_small_sibling(model: Model) -> bool:
    """Whether the catalogue has a much smaller model with the same vocabulary, which could draft for this one."""
    return any(
        other.vocab == model.vocab and other.total_params < DRAFT_SHARE * model.total_params
        for other in all_models().values()
    )


def _lacking(trait: str, model: Model) -> str:
    """What is needed of a model, and what it has instead."""
    wanted, instead = _TRAITS.get(trait, (trait, "is not known to have it"))
    heads = f"{model.heads} query and {model.kv_heads} KV heads"
    if model.attention.lower() == "mla":
        heads = "one compressed entry per token for all heads (MLA)"
    return f"needs {wanted}; {model.name} {instead.format(experts=model.n_experts, heads=heads)}."


def _mechanism_text(name: str, knowledge: Knowledge, in_place: frozenset[str]) -> str:
    """A mechanism by its best-known technique, one in use first."""
    members = sorted(
        knowledge.members.get(name, ()),
        key=lambda slug: (slug not in in_place, knowledge.evidence_rank(slug)),
    )
    return knowledge.techniques[members[0]].name if members else name.replace("-", " ")


def missing_base(technique: Technique, knowledge: Knowledge, in_place: frozenset[str]) -> Refusal | None:
    """For a technique that gains nothing alone: what it builds on and is not there."""
    mine = {technique.slug, technique.mechanism} - {""}
    for slug in sorted(mine):
        for relation in knowledge.relation_index.get(slug, ()):
            if relation.kind == "requires" and relation.a in mine and relation.b not in in_place | mine:
                known = knowledge.techniques.get(relation.b)
                said = known.name if known else _mechanism_text(relation.b, knowledge, in_place)
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
            said = known.name if known else _mechanism_text(name, knowledge, in_place)
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
