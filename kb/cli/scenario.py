"""The scenario flags that `recommend`, `estimate`, `sweep` and `fit` share, as a plain dict of the JSON fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True)
class Flag:
    """One option of the scenario: its spelling, the JSON field it fills, and its help."""

    names: tuple[str, ...]
    field: str
    metavar: str
    help: str


# No defaults and no number types here: recommender.question.Question holds both, once, for every face.
FLAGS = (
    Flag(("--hw", "--hardware"), "hardware", "DEVICE", "Device: rtx3090, a100, or a hardware.toml."),
    Flag(("--devices",), "devices", "N", "How many of them [1]."),
    Flag(("--model",), "model", "MODEL", "Model: 70b, llama-3.1-8b, a Hugging Face id or config.json."),
    Flag(("--batch",), "batch", "N", "Sequences decoded together [1]."),
    Flag(("--input-tokens",), "input_tokens", "N", "Prompt length [1024]."),
    Flag(("--output-tokens",), "output_tokens", "N", "Generated length [512]."),
    Flag(("--engine",), "engine", "ENGINE", "What is already there: plain, vllm, llama.cpp … [plain]."),
    Flag(("--using",), "using", "SLUG,…", "Techniques in use already."),
    Flag(
        ("--weights",), "weight_format", "FORMAT", "fp16, int8, w4a16-awq-g128, gguf-q4_k_m, 4.5bpw … [fp16]."
    ),
    Flag(("--kv",), "kv_format", "FORMAT", "Format of the KV cache [fp16]."),
    Flag(("--activations",), "activation_format", "FORMAT", "Format that the matrix units multiply [fp16]."),
    Flag(("--tp",), "tensor_parallel", "N", "Tensor parallelism [the engine's best]."),
    Flag(("--pp",), "pipeline_parallel", "N", "Pipeline parallelism."),
    Flag(("--ep",), "expert_parallel", "N", "Expert parallelism."),
    Flag(("--interconnect",), "interconnect", "LINK", "Between devices: nvlink, pcie … [the device's]."),
    Flag(("--request-rate",), "request_rate", "PER_S", "Requests per second [the batch is full]."),
    Flag(("--cache-hit",), "cache_hit_rate", "SHARE", "Share of prompt tokens in a reusable cache [0]."),
    Flag(("--acceptance",), "acceptance_rate", "P", "Probability that a drafted token is accepted."),
)
FIELDS = tuple(flag.field for flag in FLAGS)
REQUIRED = ("hardware", "model")


def scenario_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the scenario flags to a command; it receives them as keyword arguments named after the JSON fields."""
    for flag in reversed(FLAGS):
        option = click.option(
            *flag.names,
            flag.field,
            metavar=flag.metavar,
            required=flag.field in REQUIRED,
            help=flag.help,
        )
        function = option(function)
    return function


def scenario(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that were given, as `Question.from_mapping` takes them; `using` as a list of slugs.

    >>> scenario({"hardware": "a100", "batch": None, "using": "awq, paged-attention", "top": 3})
    {'hardware': 'a100', 'using': ['awq', 'paged-attention']}
    """
    given = {name: arguments[name] for name in FIELDS if arguments.get(name) is not None}
    if "using" in given:
        given["using"] = [slug.strip() for slug in given["using"].split(",") if slug.strip()]
    return given


def rest(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a command was given beyond the scenario."""
    return {name: value for name, value in arguments.items() if name not in FIELDS and value is not None}
