"""A question with its names resolved: the hardware, model, engine and the deployment that is already there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from costmodel.specs import Engine, Hardware, Model, Workload
from recommender import effects, text
from recommender.effects import Fields
from recommender.engines import suited
from recommender.errors import InvalidQuestion
from recommender.knowledge import Knowledge
from recommender.question import Question

Json = dict[str, Any]

# Model families whose MLP uses ReLU, which activation-sparsity methods need (OPT: Zhang et al. 2022,
# arXiv:2205.01068, section 2.1; ReLU-fied models carry the word in their name).
RELU_FAMILIES = ("opt",)
# Models published with a layer that predicts a further token (DeepSeek-AI 2024, arXiv:2412.19437, section 2.2;
# Zhipu AI 2025, arXiv:2508.06471; Qwen3-Next and MiMo say so on their pages).
PREDICTION_LAYERS = ("deepseek-v3", "glm-4.5", "qwen3-next", "qwen3.5", "mimo")


@dataclass(frozen=True, kw_only=True)
class Situation:
    """Everything that rules and estimates need to know about one question."""

    question: Question
    model: Model
    hardware: Hardware
    engine: Engine
    workload: Workload
    base: Fields  # effective deployment fields of the baseline
    using: tuple[str, ...] = ()
    resolved: Json = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def formula_workload(self) -> SimpleNamespace:
        return effects.formula_workload(self.workload)

    @property
    def overrides(self) -> Fields:
        """Knobs that the question sets for every technique that has them."""
        rate = self.question.acceptance_rate
        return {} if rate is None else {"acceptance_rate": rate}

    @property
    def devices_text(self) -> str:
        count = self.question.devices
        name = text.device(self.hardware.name)
        return f"one {name}" if count == 1 else f"{count} x {name}"


def resolve(question: Question, knowledge: Knowledge, *, any_engine: bool = False) -> Situation:
    """Find what the question names and build the baseline.

    An engine that does not run on the device gives way to the usual one there, and a note says so, unless `any_engine`:
    reported figures are priced as reported.

    Raises
    ------
    costmodel.errors.UnknownName, costmodel.errors.InvalidFile, recommender.errors.InvalidQuestion
    """
    from costmodel.catalogue import find_engine, find_hardware, find_model

    hardware = find_hardware(question.hardware)
    model = find_model(question.model)
    question = as_stored(question, model.spec)
    engine = find_engine(question.engine)
    if not any_engine:
        asked, engine = engine, suited(engine, hardware.spec)
        if engine is not asked:
            question = replace(question, engine=engine.slug)
    workload = Workload(
        batch=question.batch,
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        request_rate=question.request_rate,
        cache_hit_rate=question.cache_hit_rate,
    )
    base = effects.baseline_fields(engine.spec, given_fields(question))
    using = tuple(_find_technique(text, knowledge) for text in question.using)
    base = {
        **base,
        **effects.compose(
            [knowledge.techniques[slug] for slug in using],
            base,
            model=model.spec,
            workload=effects.formula_workload(workload),
            overrides={"acceptance_rate": question.acceptance_rate},
        ),
    }
    return Situation(
        question=question,
        model=model.spec,
        hardware=hardware.spec,
        engine=engine.spec,
        workload=workload,
        base=base,
        using=using,
        resolved={"model": model.as_dict(), "hardware": hardware.as_dict(), "engine": engine.as_dict()},
        notes=(
            *model.notes,
            *hardware.notes,
            *engine.notes,
            *_notes(question, model.spec),
            *_mismatches(question, hardware.spec, engine.spec),
        ),
    )


def _mismatches(question: Question, hardware: Hardware, engine: Engine) -> list[str]:
    from costmodel.compatibility import mismatches

    return mismatches(
        hardware,
        engine,
        weight_format=question.weight_format,
        kv_format=question.kv_format,
        activation_format=question.activation_format,
    )


def as_stored(question: Question, model: Model) -> Question:
    """A user's quantized checkpoint is deployed as its config.json says it is stored, unless a format is asked for."""
    from costmodel.formats import find_format

    from_file = model.source.startswith("config.json")
    if (
        from_file
        and question.weight_format == "fp16"
        and find_format(model.native_weight_format).is_quantized
    ):
        return replace(question, weight_format=model.native_weight_format)
    return question


def given_fields(question: Question) -> Fields:
    """The deployment fields that the question states."""
    return {
        "weight_format": question.weight_format,
        "kv_format": question.kv_format,
        "activation_format": question.activation_format,
        "devices": question.devices,
        "tensor_parallel": question.tensor_parallel,
        "pipeline_parallel": question.pipeline_parallel,
        "expert_parallel": question.expert_parallel,
        "interconnect": question.interconnect,
    }


def _find_technique(text: str, knowledge: Knowledge) -> str:
    slug = knowledge.find(text)
    if slug is None:
        import difflib

        near = difflib.get_close_matches(text, knowledge.techniques, n=3)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise InvalidQuestion(
            f"unknown technique {text[:60]!r} in using", hint=hint + "See: kb list techniques", field="using"
        )
    return slug


def _notes(question: Question, model: Model) -> list[str]:
    notes = []
    longest = question.input_tokens + question.output_tokens
    if model.max_positions and longest > model.max_positions:
        notes.append(
            f"{longest:,} tokens exceed the {model.max_positions:,} positions of {model.name}; "
            "the numbers assume that it still works"
        )
    if model.source.startswith("config.json") and question.weight_format == model.native_weight_format:
        notes.append(
            f"weights in {question.weight_format}, as the checkpoint stores them; other: --weights bf16"
        )
    if question.weight_format == "fp16" and model.native_weight_format not in ("fp16", "bf16", "fp32", ""):
        notes.append(
            f"{model.name} is published in {model.native_weight_format}; the baseline is 16-bit unless "
            f"--weights {model.native_weight_format} is given"
        )
    return notes


@lru_cache(maxsize=1024)
def model_traits(model: Model) -> frozenset[str]:
    """What `requires.model` may ask for, of this model."""
    traits = {"moe" if model.is_moe else "dense"}
    attention = model.attention.lower()
    if attention in ("ssm", "linear-rnn", "hybrid"):
        traits.add("ssm")
    if attention not in ("ssm", "linear-rnn"):
        traits.add("attention")
        if attention != "mla":
            traits.add("mha" if model.kv_heads == model.heads else "gqa")
    if model.sliding_window:
        traits.add("sliding-window")
    if model.family.lower() in RELU_FAMILIES or "relu" in model.slug:
        traits.add("relu")
    if model.slug == "deepseek-r1" or model.slug.startswith(PREDICTION_LAYERS):
        traits.add("mtp")
    return frozenset(traits)
