"""What is answered: numbers, reasons and sources, as frozen objects and as the interface's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA_VERSION = 1

Json = dict[str, Any]
GAIN_METRICS = ("latency", "tpot", "ttft", "throughput", "memory", "max_batch")

REJECTION_CODES = (
    "unsupported-hardware",
    "does-not-fit",
    "already-in-use",
    "not-applicable",
    "conflicts",
    "needs-training",
    "lossy",
    "no-gain",
    "filtered-out",
)


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """One technique (with the members of its mechanism) or one plan of several."""

    rank: int
    kind: str  # technique | plan
    techniques: tuple[str, ...]
    name: str
    levels: Mapping[str, list[str]]
    bottlenecks: tuple[str, ...]
    phase: str
    deployment: Mapping[str, Any]
    estimate: Json
    gain: Mapping[str, float | None]
    gain_interval: Mapping[str, tuple[float, float] | None]
    makes_it_fit: bool
    why: str
    caveats: tuple[str, ...]
    break_even: Mapping[str, Any]
    quality: Json
    training: str
    engines: tuple[Json, ...]
    members: tuple[str, ...]
    papers: tuple[Json, ...]
    evidence: tuple[Json, ...]
    # additive
    mechanism: str = ""
    rank_discount: float = 0.0  # ln by which the order values it below the low end of its interval
    engine: str | None = None  # of a plan: one that ships all its parts
    steps: tuple[Json, ...] = ()  # of a plan: technique, marginal gain, in the order one would deploy
    meets_slo: bool | None = None
    instead_of: tuple[str, ...] = ()  # names of what is in use and would go
    disagreement: str | None = None  # where reported figures contradict the prediction
    member_gains: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def as_dict(self) -> Json:
        return _plain(self)


@dataclass
class Rejection:
    """Why one technique is not recommended.

    Hundreds are in an answer: `frozen` would make them three times, `slots` would write them six times as slowly.
    """

    technique: str
    code: str
    reason: str
    gain: Mapping[str, float | None] | None = None
    name: str = ""
    mechanism: str = ""
    also: tuple[str, ...] = ()  # codes of lower priority that hold too
    prominence: int = 0  # how likely a reader asks about it: surveys that cite it, figures reported of it

    def as_dict(self) -> Json:
        return _plain(self)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The interface's `kb recommend --json`, plus additive keys."""

    scenario: Json
    resolved: Json
    baseline: Json
    recommendations: tuple[Recommendation, ...]
    rejected: tuple[Rejection, ...]
    notes: tuple[str, ...] = ()
    # additive
    verdict: Mapping[str, Any] = field(default_factory=dict)
    feasibility: Json | None = None
    pareto: tuple[Json, ...] = ()
    plans_by_training: Mapping[str, Json | None] = field(default_factory=dict)
    confidence: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> Json:
        """JSON data: no NaN or infinity, no arrays; tuples stand for lists."""
        return {
            "schema_version": SCHEMA_VERSION,
            "scenario": plain(self.scenario),
            "resolved": plain(self.resolved),
            "baseline": plain(self.baseline),
            "recommendations": [item.as_dict() for item in self.recommendations],
            "rejected": [item.as_dict() for item in self.rejected],
            "notes": list(self.notes),
            "verdict": plain(self.verdict),
            "feasibility": plain(self.feasibility),
            "pareto": list(self.pareto),
            "plans_by_training": dict(self.plans_by_training),
            "confidence": plain(self.confidence),
        }

    def encoded(self) -> bytes:
        """`as_dict` as compact JSON; entries are written from the objects, no-number and infinity as null."""
        import orjson  # an answer has some 240 kB, which takes the standard library 6 ms

        body = {
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
        }
        try:
            return orjson.dumps(body)
        except TypeError:  # an array or a number of numpy's in an estimate: spelled out first
            return orjson.dumps(plain(self.as_dict()))


def _plain(item: Any) -> Json:
    """Fields by name. Their values were made of plain data already; only tuples remain, which JSON writes as lists."""
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def plain(value: Any) -> Any:
    """Data that any JSON writer takes: not-a-number and infinity become None, arrays lists, tuples lists."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | frozenset | set):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)
