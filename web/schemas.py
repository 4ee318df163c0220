"""The API's shapes as OpenAPI sees them: the scenario with its ranges, errors, lists.

Checking is `recommender.Question`'s work, so that every face says the same; these models describe it.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from costmodel.catalogue import all_engines, all_hardware, all_models
from costmodel.user_hardware import MAX_LINE
from recommender.question import MAX_BATCH, MAX_DEVICES, MAX_RATE, MAX_TOKENS, OBJECTIVES, TRAINING, Question

EXAMPLE = {"hardware": "rtx-3090", "model": "llama-2-70b"}
EXAMPLE_FULL = {
    "hardware": "h100-sxm",
    "model": "llama-3.1-70b",
    "devices": 2,
    "batch": 32,
    "input_tokens": 2048,
    "output_tokens": 256,
    "engine": "vllm",
    "objective": "throughput",
}

DESCRIPTIONS = {
    "hardware": "One device: a slug of GET /hardware, any spelling a person would type, or the constants of a device that is not listed, such as `My card: memory_gb=48, bandwidth_gb_s=900, fp16_tflops=180`",
    "model": "A slug of GET /models, a Hugging Face id, or a size such as 70b",
    "devices": "How many of the device",
    "batch": "Sequences decoded together",
    "input_tokens": "Prompt length in tokens",
    "output_tokens": "Generated tokens",
    "engine": "What is already there: a slug of GET /engines",
    "using": "Techniques in use already (slugs)",
    "weight_format": "Weight format already deployed, for example fp16, int4, w4a16-awq-g128 or 4.5bpw",
    "kv_format": "KV-cache format already deployed",
    "activation_format": "Activation format already deployed",
    "tensor_parallel": "Tensor-parallel degree; null: the engine's best",
    "pipeline_parallel": "Pipeline-parallel degree; null: the engine's best",
    "expert_parallel": "Expert-parallel degree; null: the engine's best",
    "interconnect": "Link between devices; null: the device's",
    "request_rate": "Requests per second; null: the batch is always full",
    "cache_hit_rate": "Share of prompt tokens already in a reusable cache",
    "acceptance_rate": "Probability that a drafted token is accepted; null: the technique's reported mean",
    "objective": "What to rank by",
    "lossless": "Only techniques that leave the output unchanged",
    "max_training": "The most training that is acceptable",
    "max_quality_loss": "The largest acceptable quality loss, in points",
    "ttft_slo_ms": "Longest acceptable time to first token",
    "tpot_slo_ms": "Longest acceptable time per output token",
    "level": "Only techniques below this class, for example model or zhou:system",
    "bottleneck": "Only techniques that relieve this bottleneck",
    "why_not": "Kept for symmetry with the command line; the JSON always carries all rejections",
    "top": "Rows a table shows; the JSON always carries all",
    "stack": "Whether plans of several techniques are searched",
}
MOST_CHARACTERS = {"interconnect": 4096, "hardware": MAX_LINE}
# Something to read, and nothing that no name holds (control characters).
NAME_PATTERN = r"^[^\x00-\x1f\x7f]*[0-9A-Za-z][^\x00-\x1f\x7f]*$"
TEXT_PATTERN = r"^[^\x00-\x1f]*$"  # optional texts may be empty: absent
RANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "devices": ("integer", {"minimum": 1, "maximum": MAX_DEVICES}),
    "batch": ("integer", {"minimum": 1, "maximum": MAX_BATCH}),
    "input_tokens": ("integer", {"minimum": 1, "maximum": MAX_TOKENS}),
    "output_tokens": ("integer", {"minimum": 1, "maximum": MAX_TOKENS}),
    "tensor_parallel": ("integer", {"minimum": 1, "maximum": MAX_DEVICES}),
    "pipeline_parallel": ("integer", {"minimum": 1, "maximum": MAX_DEVICES}),
    "expert_parallel": ("integer", {"minimum": 1, "maximum": MAX_DEVICES}),
    "request_rate": ("number", {"exclusiveMinimum": 0, "maximum": MAX_RATE}),
    "cache_hit_rate": ("number", {"minimum": 0, "maximum": 1}),
    "acceptance_rate": ("number", {"minimum": 0, "maximum": 1}),
    "max_quality_loss": ("number", {"minimum": 0, "maximum": 1000}),
    "ttft_slo_ms": ("number", {"exclusiveMinimum": 0, "maximum": 1e9}),
    "tpot_slo_ms": ("number", {"exclusiveMinimum": 0, "maximum": 1e9}),
    "top": ("integer", {"minimum": 1, "maximum": 1000}),
    "lossless": ("boolean", {}),
    "why_not": ("boolean", {}),
    "stack": ("boolean", {}),
}


def field_schema(name: str) -> dict[str, Any]:
    """JSON Schema of one scenario field."""
    text = {"minLength": 1, "pattern": NAME_PATTERN} if name in EXAMPLE else {"pattern": TEXT_PATTERN}
    kind, limits = RANGES.get(name, ("string", {"maxLength": MOST_CHARACTERS.get(name, 200), **text}))
    schema: dict[str, Any] = {"type": kind, "description": DESCRIPTIONS[name], **limits}
    if name == "hardware":
        schema["examples"] = ["rtx-3090", *list(all_hardware())[:1]]
    elif name == "model":
        schema["examples"] = ["llama-2-70b", *list(all_models())[:1]]
    elif name == "engine":
        schema["examples"] = list(all_engines())[:3]
    elif name == "objective":
        schema["enum"] = list(OBJECTIVES)
    elif name == "max_training":
        schema["enum"] = list(TRAINING)
    elif name == "using":
        schema = {
            "type": "array",
            "items": {
                "type": "string",
                "maxLength": 200,
                "pattern": TEXT_PATTERN,
            },
            "maxItems": 50,
            "description": DESCRIPTIONS[name],
        }
    default = getattr(Question(hardware="", model=""), name)
    if name not in ("hardware", "model"):
        schema["default"] = list(default) if isinstance(default, tuple) else default
    return schema


def scenario_schema(fields: tuple[str, ...], *, lists: bool = False) -> dict[str, Any]:
    """The body of POST: with `lists`, every field but the two names may be a list (a sweep)."""
    properties: dict[str, Any] = {}
    for name in fields:
        schema = field_schema(name)
        if name not in ("hardware", "model"):  # null means the default
            schema["type"] = [schema["type"], "null"]
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
        if lists and name not in ("using",):
            single = {
                key: value
                for key, value in schema.items()
                if key not in ("description", "default", "examples")
            }
            schema = {
                "description": f"{DESCRIPTIONS[name]}; one value, or a list to sweep over",
                "anyOf": [single, {"type": "array", "items": single, "minItems": 1, "maxItems": 200}],
            }
        properties[name] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": ["hardware", "model"],
        "additionalProperties": False,
        "title": "Sweep" if lists else "Scenario",
    }


def query_parameters(fields: tuple[str, ...]) -> list[dict[str, Any]]:
    """The same scenario as query parameters."""
    found = []
    for name in fields:
        schema = {
            key: value for key, value in field_schema(name).items() if key not in ("description", "examples")
        }
        if name == "using":
            schema = {
                "type": "string",
                "description": "comma-separated slugs",
                "maxLength": 4096,
                "pattern": TEXT_PATTERN,
            }
        if schema.get("default") is None:
            schema.pop("default", None)
        entry: dict[str, Any] = {
            "name": name,
            "in": "query",
            "required": name in EXAMPLE,
            "description": DESCRIPTIONS[name],
            "schema": schema,
        }
        if name in EXAMPLE:
            entry["example"] = EXAMPLE[name]
        found.append(entry)
    return found


def listed_parameter(entry: dict[str, Any]) -> dict[str, Any]:
    """A query parameter that takes several values, separated by commas."""
    items = {key: value for key, value in entry["schema"].items() if key not in ("default", "description")}
    listed = {name: value for name, value in entry.items() if name != "example"}
    listed |= {
        "schema": {"type": "array", "items": items, "minItems": 1, "maxItems": 50},
        "style": "form",
        "explode": False,
    }
    if "example" in entry:
        listed["example"] = [entry["example"]]
    return listed


class Fault(BaseModel):
    code: str = Field(description="A short stable name, for programs", examples=["unknown-name"])
    message: str = Field(description="What was given", examples=["unknown hardware 'rtx3900'"])
    hint: str = Field(description="What is allowed, what to do", examples=["did you mean rtx-3090?"])
    field: str | None = Field(description="The field at fault", examples=["hardware"])


class ErrorBody(BaseModel):
    """The one shape of every error."""

    model_config = ConfigDict(title="Error")
    error: Fault


class ListBody(BaseModel):
    """One page of a list."""

    model_config = ConfigDict(title="List")
    total: int = Field(description="How many items there are, on all pages")
    items: list[dict[str, Any]]
    next: str | None = Field(description="Cursor of the next page; null on the last one")


class Estimate(BaseModel):
    """One priced scenario; see INTERFACE for every key."""

    model_config = ConfigDict(extra="allow")
    scenario: dict[str, Any]
    resolved: dict[str, Any]
    fits: bool
    min_devices: int | None
    max_batch: int | None
    memory_bytes: dict[str, float | None]
    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    throughput_tok_s: float | None


class AnswerBody(BaseModel):
    """What pays off, why, and what does not."""

    model_config = ConfigDict(extra="allow", title="Answer")
    scenario: dict[str, Any]
    resolved: dict[str, Any]
    baseline: dict[str, Any]
    recommendations: list[dict[str, Any]]
    rejected: list[dict[str, Any]]
    notes: list[str]


class SearchBody(BaseModel):
    """Results of a search, the best first."""

    model_config = ConfigDict(extra="allow", title="Search")
    total: int
    results: list[dict[str, Any]]
    did_you_mean: str | None


def error_responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    said = {
        404: "Nothing has this id or name; the hint holds the closest",
        422: "The request cannot be understood; `error.field` names the field",
        405: "Not this method",
        409: "Fields that contradict each other, such as more ranks than devices",
        413: "The body is too large",
    }
    return {code: {"model": ErrorBody, "description": said[code]} for code in codes}
