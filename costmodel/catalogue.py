"""Finds hardware, models and engines by any spelling a person types."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from costmodel.errors import InvalidFile, InvalidValue, UnknownName
from costmodel.library import all_engines, all_hardware, all_models, model_rows, parse_engines, with_counts
from costmodel.specs import Engine, Hardware, Model
from costmodel.tables import read_table
from costmodel.units import GIB

__all__ = [
    "Resolved",
    "all_engines",
    "all_hardware",
    "all_models",
    "compact",
    "find_devices",
    "find_engine",
    "find_hardware",
    "find_model",
    "model_rows",
    "parse_engines",
    "with_counts",
]

Spec = TypeVar("Spec", Hardware, Model, Engine)

ALIAS_COLUMNS = ("kind", "alias", "slug", "alternatives", "note")
KINDS = ("hardware", "model", "engine")
MOST_CHARACTERS = 4096  # of a path

# words of a product name that do not tell two devices apart
VENDOR_WORDS = re.compile(
    r"\b(nvidia|geforce|tesla|quadro|amd|radeon|instinct|intel|apple|google|aws|graphics|gpu|card|generation|"
    r"tensor core|corporation|inc|the|series|edition|founders|macbook pro|macbook air|macbook|mac studio|mac mini|"
    r"imac|dgx|hgx)\b"
)
# …and of a model's: the same dimensions under another training recipe, container or quantization
MODEL_SUFFIX = re.compile(
    r"(?:[-_ .]|^)(instruct|chat|hf|it|base|pt|sft|dpo|rlhf|awq|gptq|gguf|exl2|fp8|fp16|bf16|int4|int8|w4a16|4bit|"
    r"i?q\d(?:_[a-z0-9]+){0,2}|8bit|bnb|unsloth|coder|math|preview|latest|thinking|dynamic|quantized|v0\.[1-3]|v1\.5|v1\.0|v1|1m|2[45]\d\d|250\d|240\d|hf)(?=[-_ .]|$)"
)


@dataclass(frozen=True)
class Resolved(Generic[Spec]):
    """What a name was taken to mean. `alternatives` are the slugs it might have meant instead."""

    asked: str
    slug: str
    name: str
    alternatives: tuple[str, ...]
    spec: Spec
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The four fields of INTERFACE.md's `resolved`."""
        return {
            "asked": self.asked,
            "slug": self.slug,
            "name": self.name,
            "alternatives": list(self.alternatives),
        }


def compact(text: str, *, vendors: bool = False) -> str:
    """Letters and digits only, lower case, vendor words dropped: `NVIDIA GeForce RTX 3090` → `rtx3090`."""
    lowered = text.lower()
    if vendors:
        return OTHER_SIGNS.sub("", lowered)
    plain = VENDOR_WORDS.sub(" ", SEPARATORS.sub(" ", lowered))
    return OTHER_SIGNS.sub("", plain) or OTHER_SIGNS.sub("", lowered)


SEPARATORS, OTHER_SIGNS = re.compile(r"[\s_\-/(),]+"), re.compile(r"[^a-z0-9.+#]+")


@lru_cache(maxsize=4096)
def _tokens(text: str) -> frozenset[str]:
    plain = VENDOR_WORDS.sub(" ", re.sub(r"[\s_\-/(),]+", " ", text.lower()))
    plain = re.sub(r"\bsxm\d?\b", "sxm", re.sub(r"\b(\d+) gb\b", r"\1gb", plain))
    return frozenset(re.sub(r"\b(hbm\d?e?|gddr\d?x?)\b", " ", plain).split())


@lru_cache(maxsize=1)
def _alias_rows() -> tuple[dict[str, str], ...]:
    rows = read_table("aliases.csv", ALIAS_COLUMNS)
    for row in rows:
        if row["kind"] not in KINDS:
            raise InvalidFile(f"aliases.csv: {row['alias']!r}: kind must be one of {', '.join(KINDS)}")
    return tuple(rows)


def short_names(kind: str) -> dict[str, list[str]]:
    """Slug → what people call it for short, from data/aliases.csv: what a search over names should know, too.

    >>> "70b" in short_names("model")["llama-2-70b"]
    True
    """
    found: dict[str, list[str]] = {}
    for row in _alias_rows():
        if row["kind"] == kind:
            found.setdefault(row["slug"], []).append(row["alias"])
    return found


Hit = tuple[str, tuple[str, ...]]  # slug, alternatives


def _hit(kind: str, key: str) -> Hit | None:
    """What a compact spelling means. The alias table wins over slugs, which win over names; most questions are answered
    by the first two, which take a tenth of the time to make."""
    return _aliases(kind).get(key) or _slugs(kind).get(key) or _names(kind).get(key)


@lru_cache(maxsize=4)
def _aliases(kind: str) -> dict[str, Hit]:
    return {
        compact(row["alias"]): (row["slug"], tuple(a for a in row["alternatives"].split(";") if a))
        for row in _alias_rows()
        if row["kind"] == kind
    }


@lru_cache(maxsize=4)
def _slugs(kind: str) -> dict[str, Hit]:
    return {compact(slug, vendors=kind == "engine"): (slug, ()) for slug in _catalogue(kind)}


@lru_cache(maxsize=4)
def _names(kind: str) -> dict[str, Hit]:
    """Every compact spelling."""
    names: dict[str, Hit] = {}
    if kind == "hardware":
        for slug, device in all_hardware().items():
            names.setdefault(compact(device.name), (slug, ()))
    elif kind == "model":
        for slug, model in all_models().items():
            for text in (model.hf_id, model.hf_id.split("/")[-1]):
                if text:
                    names.setdefault(compact(text), (slug, ()))
                    names.setdefault(compact(_bare_model(text)), (slug, ()))
    names.update(_slugs(kind))
    if kind == "engine":
        for slug, engine in all_engines().items():
            for alias in engine.aliases:
                names.setdefault(compact(alias, vendors=True), (slug, ()))
    names.update(_aliases(kind))
    return names


def _catalogue(kind: str) -> dict[str, Any]:
    tables: dict[str, Any] = {"hardware": all_hardware, "model": all_models, "engine": all_engines}
    result: dict[str, Any] = tables[kind]()
    return result


def _bare_model(text: str) -> str:
    """A model name without organisation and recipe: `meta-llama/Meta-Llama-3.1-8B-Instruct` → `Llama-3.1-8B`."""
    bare = text.lower().split("/")[-1].replace(":", "-")
    previous = ""
    while previous != bare:
        previous, bare = bare, MODEL_SUFFIX.sub("", bare)
    return re.sub(r"^meta[-_ ]?(?=llama|code)", "", bare) or text


def _suggest(kind: str, text: str) -> list[str]:
    names = _names(kind)
    near = difflib.get_close_matches(compact(text), names, n=12, cutoff=0.55)
    return list(dict.fromkeys(names[n][0] for n in near))[:3]


def find_hardware(text: str) -> Resolved[Hardware]:
    """The device that `text` names: a slug, any spelling, a path to a hardware.toml, or constants in one line.

    >>> find_hardware("NVIDIA GeForce RTX 3090").slug, find_hardware("3090").slug, find_hardware("a100").slug
    ('rtx-3090', 'rtx-3090', 'a100-80gb-sxm')
    """
    if _is_file(text, ".toml"):
        from costmodel.user_hardware import load_hardware

        device = load_hardware(Path(text))
        return Resolved(text, device.slug, device.name, (), device)
    if "=" in text:
        from costmodel.user_hardware import parse_inline

        device = parse_inline(text)
        return Resolved(text, device.slug, device.name, (), device)
    if "+" in text and len(text.split("+")) > 1 and _hit("hardware", compact(text)) is None:
        for part in text.split("+"):
            find_hardware(part)  # the unknown part is the news, if there is one
        raise InvalidValue(
            f"{text!r} is a mixed machine; estimates are for one kind of device",
            hint="give one device and --devices N; kb validate prices measured rows of mixed machines",
            field="hardware",
        )
    hit = _hit("hardware", compact(text)) or _by_tokens(text)
    if hit is None:
        if several := re.fullmatch(r"(\d{1,3})\s*[x×*]\s*(\D.*|\d{4}.*)", text.strip(), re.I):
            raise InvalidValue(
                f"{text!r} names several devices",
                hint=f"say --hw {several[2].strip()} --devices {several[1]}",
                field="hardware",
            )
        raise UnknownName(
            "hardware",
            text,
            _suggest("hardware", text),
            hint="list all: kb list hardware · your own: --hw my-card.toml",
            field="hardware",
        )
    slug, others = hit
    device = all_hardware()[slug]
    return Resolved(text, slug, device.name, others, device)


def _by_tokens(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Devices whose words include all words asked for: `A100-SXM4-80GB`, `80GB A100 PCIe`."""
    asked = _tokens(text)
    if not asked or not any(re.search(r"\d", word) for word in asked):
        return None
    found = []
    for slug, device in all_hardware().items():
        words = _tokens(slug) | _tokens(device.name) | {f"{round(device.memory_bytes / GIB)}gb"}
        if asked <= words:
            found.append(slug)
    if not found:
        return None
    # the shortest name is the plain product; ties go to the first of the table
    best = min(found, key=lambda slug: (len(_tokens(slug) - asked), "sxm" not in slug, slug))
    return best, tuple(slug for slug in found if slug != best)[:6]


def find_model(text: str) -> Resolved[Model]:
    """The model that `text` names: a slug, a Hugging Face id, any spelling, a size, or a path to a config.json.

    >>> find_model("70b").slug, find_model("meta-llama/Llama-2-70b-hf").slug
    ('llama-2-70b', 'llama-2-70b')
    """
    folder = Path(text) if "/" in text or text == "." else None
    if _is_file(text, ".json") or (folder is not None and (folder / "config.json").is_file()):
        from costmodel.hf_config import load_config

        path = Path(text)
        loaded = load_config(path / "config.json" if path.is_dir() else path)
        model = loaded.model
        return Resolved(text, model.slug, model.name, (), model, loaded.notes)
    hit = _hit("model", compact(text)) or _hit("model", compact(_bare_model(text)))
    if hit is None:
        raise UnknownName(
            "model",
            text,
            _sized(text) or _suggest("model", text),
            hint="list all: kb list models · your own: --model path/to/config.json",
            field="model",
        )
    slug, others = hit
    model = all_models()[slug]
    return Resolved(text, slug, model.name, others, model)


def _sized(text: str) -> list[str]:
    """For a bare size, the models that have it."""
    size = text.strip().lower()
    if not re.fullmatch(r"\d+(\.\d+)?b", size):
        return []
    return [slug for slug in all_models() if re.search(rf"(^|-){re.escape(size)}($|-)", slug)][:3]


def find_engine(text: str) -> Resolved[Engine]:
    """The serving software that `text` names.

    >>> find_engine("trt-llm").slug, find_engine("ollama").slug
    ('tensorrt-llm', 'llama.cpp')
    """
    hit = _hit("engine", compact(text, vendors=True))
    if hit is None:
        raise UnknownName(
            "engine", text, _suggest("engine", text), hint="list all: kb list engines", field="engine"
        )
    slug, others = hit
    engine = all_engines()[slug]
    return Resolved(text, slug, engine.name, others, engine)


def find_devices(text: str) -> tuple[Resolved[Hardware], ...]:
    """Devices of a mixed machine, written with `+`: `rtx-4090+cpu-xeon-gold-6454s-2s`.

    >>> [device.slug for device in find_devices("rtx-4090+rtx-3090-ti")]
    ['rtx-4090', 'rtx-3090-ti']
    """
    return tuple(find_hardware(part) for part in text.split("+"))


def _is_file(text: str, suffix: str) -> bool:
    """A path, rather than a name: it ends like one or something lies there."""
    if "\0" in text or len(text) > MOST_CHARACTERS:
        return False
    return text.lower().endswith(suffix) or ("/" in text and Path(text).is_file())
