"""Frozen objects of the vocabulary: schemes, levels, bottlenecks, techniques, effects, relations."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"


class Training(StrEnum):
    """What has to be trained before the technique can be used, cheapest first."""

    NONE = "none"
    CALIBRATION = "calibration"
    FINETUNE = "finetune"
    PRETRAIN = "pretrain"


class Lossless(StrEnum):
    """`yes`: same output up to rounding, or provably the same distribution; `approx`: small measured loss."""

    YES = "yes"
    APPROX = "approx"
    NO = "no"


class Kind(StrEnum):
    """`hardware` designs are not a software choice; `research` has no effect that a deployment can switch on."""

    SOFTWARE = "software"
    HARDWARE = "hardware"
    MODEL = "model"  # an architecture chosen at training time


SCHEMES = ("zhou", "yuan", "park")

BOTTLENECKS = (
    "weight-bandwidth",
    "kv-bandwidth",
    "compute",
    "weight-capacity",
    "kv-capacity",
    "attention-io",
    "sequential-decoding",
    "scheduling",
    "interconnect",
    "prompt-length",
    "launch-overhead",
)

RELATIONS = ("requires", "conflicts", "composes", "subsumes")
OPERATIONS = ("set", "multiply", "add", "min", "max")


@dataclass(frozen=True, kw_only=True)
class Level:
    """A node of one survey's scheme: path such as `model/compression/quantization`."""

    scheme: str
    path: str
    name: str
    description: str = ""
    basis: str = "survey"  # survey | compiled

    @property
    def parent(self) -> str | None:
        head, _, _ = self.path.rpartition("/")
        return head or None


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    slug: str
    name: str
    description: str
    terms: tuple[str, ...] = ()  # cost-model terms that it explains


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One change of a `costmodel.specs.Deployment` field: `field op value`.

    `value` is a number, a string (formats, kernels), a boolean, `knob:NAME` (the knob's value), or a formula such
    as `= kv_groups / model.heads`; `taxonomy.effects.effect_value` computes it.
    A technique is a list of effects applied in order; a new technique needs a file, not code.
    """

    field: str
    op: str = "set"
    value: float | str | bool = 0.0
    basis: str = "paper"
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Knob:
    name: str
    default: float | str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    description: str = ""
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What hardware, model and deployment must offer. Empty means no demand."""

    compute_formats: tuple[str, ...] = ()  # the device must have a matrix rate for each: fp8, int8, fp4, int4
    sparsity_2_4: bool = False
    vendors: tuple[str, ...] = ()
    device_classes: tuple[str, ...] = ()
    min_compute_capability: float | None = None  # NVIDIA devices only
    min_devices: int = 1
    host_link: bool = False  # needs a path to host memory
    model: tuple[
        str, ...
    ] = ()  # all of: moe, dense, attention, mha, gqa, sliding-window, ssm, relu, mtp, encoder-decoder
    min_batch: int = 1
    reuse: bool = False  # needs prompt tokens shared between requests (cache_hit_rate > 0)
    request_rate: bool = False  # matters only under a request rate
    acceptance: bool = (
        False  # hangs on how much of the answers repeats earlier text: needs an acceptance rate
    )
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class EngineSupport:
    engine: str
    how: str = ""  # flags or configuration that switch it on
    since: str = ""
    source: str = ""
    checked: bool = False
    sets: dict[str, float | str | bool] = field(default_factory=dict)
    """Knobs, or fields of the deployment, that are otherwise in this engine: kernels that lack what the technique counts
    on, drafts without a tree."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a technique needs trained, published for some models: nobody who runs one of them has to train it again."""

    model: str  # slug of costmodel's catalogue
    name: str  # as one loads it
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkRef:
    """A work by identifier; found in the knowledge base when the database is built."""

    role: str = "introduces"  # introduces | evaluates | surveys
    arxiv_id: str | None = None
    doi: str | None = None
    title: str | None = None
    url: str | None = None
    year: int | None = None
    authors: tuple[str, ...] = ()
    reference: str | None = None  # "zhou:192": a survey's reference, where no identifier exists


@dataclass(frozen=True, kw_only=True)
class Observation:
    """Where a technique's gain ends or turns, as somebody saw it: a row of observations.csv."""

    technique: str
    what: str
    condition: str = ""  # model, hardware, batch … where it was seen
    figure: str = ""
    source: str = ""
    basis: str = "measured"


@dataclass(frozen=True, kw_only=True)
class Technique:
    """One technique, one file."""

    slug: str
    name: str
    summary: str  # own words, at most three sentences
    kind: Kind = Kind.SOFTWARE
    mechanism: str = ""  # techniques with the same effect share one; empty: its own
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)  # scheme → paths
    level_basis: dict[str, str] = field(default_factory=dict)  # scheme → survey | compiled
    bottlenecks: tuple[str, ...] = ()
    phase: Phase = Phase.BOTH
    training: Training = Training.NONE
    lossless: Lossless = Lossless.APPROX
    helps_when: str = ""
    hurts_when: str = ""
    effects: tuple[Effect, ...] = ()
    no_effect_reason: str = ""  # required where `effects` is empty
    knobs: tuple[Knob, ...] = ()
    requires: Requirement = field(default_factory=Requirement)
    engines: tuple[EngineSupport, ...] = ()
    works: tuple[WorkRef, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    repo: str = ""
    aliases: tuple[str, ...] = ()
    observations: tuple[Observation, ...] = ()  # from observations.csv, not from the technique's file


@dataclass(frozen=True, kw_only=True)
class Relation:
    a: str  # technique or mechanism slug
    b: str
    kind: str  # requires | conflicts | composes | subsumes
    condition: str = ""
    source: str = ""
    basis: str = "paper"


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    slug: str
    name: str
    summary: str = ""
