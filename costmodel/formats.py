"""Number formats: bits per weight with scales and zero points, and the path that multiplies them.

A weight format has three widths, because checkpoints do not quantize all tensors alike: the linear layers
(`bits_per_weight`), the input embedding and the output head. GPTQ, AWQ and FP8 checkpoints leave the last two in
16 bits; GGUF files quantize them to types of their own.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from costmodel.errors import InvalidValue, UnknownName
from costmodel.numeric import distinct, spread_names
from costmodel.tables import PROVENANCE, number, read_table
from costmodel.units import BITS_PER_BYTE

COLUMNS = (
    "slug",
    "name",
    "uses",
    "bits_per_weight",
    "embedding_bits",
    "head_bits",
    "group_size",
    "scheme",
    "direct",
    "activation",
    "family",
    "aliases",
    *PROVENANCE,
)
USES = ("weights", "kv", "activations")
SCHEMES = ("float", "int", "lut", "codebook", "ternary")
# llama.cpp's and ExLlamaV2's converters keep the head wider than the layers
EXL2_HEAD_BITS = 6.0


@dataclass(frozen=True, kw_only=True)
class Format:
    """One number format.

    `direct`: the matrix path that can multiply it without widening it first, when the activations have such a
    format too (empty: weights are always dequantized to 16 bits before the multiplication).
    `activation`: the activation format that the name implies ("" : what the deployment says).
    `scheme`: how a value is decoded: float | int | lut (table look-up per value) | codebook (vectors) | ternary.
    """

    slug: str
    name: str
    uses: tuple[str, ...]
    bits_per_weight: float
    embedding_bits: float
    head_bits: float
    group_size: float = 0.0
    scheme: str = "int"
    direct: str = ""
    activation: str = ""
    family: str = ""
    aliases: tuple[str, ...] = ()
    source: str = ""
    basis: str = ""
    note: str = ""

    @property
    def bytes_per_weight(self) -> float:
        return self.bits_per_weight / BITS_PER_BYTE

    @property
    def is_quantized(self) -> bool:
        """Narrower than 16 bits."""
        return self.bits_per_weight < 16


@lru_cache(maxsize=1)
def all_formats() -> dict[str, Format]:
    """Slug → Format of data/formats.csv."""
    formats = {}
    for row in read_table("formats.csv", COLUMNS):
        bits = number(row, "bits_per_weight", "formats.csv")
        assert bits is not None
        formats[row["slug"]] = Format(
            slug=row["slug"],
            name=row["name"],
            uses=tuple(row["uses"].split(";")),
            bits_per_weight=bits,
            embedding_bits=number(row, "embedding_bits", "formats.csv") or bits,
            head_bits=number(row, "head_bits", "formats.csv") or bits,
            group_size=number(row, "group_size", "formats.csv") or 0.0,
            scheme=row["scheme"],
            direct=row["direct"],
            activation=row["activation"],
            family=row["family"],
            aliases=tuple(a for a in row["aliases"].split(";") if a),
            source=row["source"],
            basis=row["basis"],
            note=row["note"],
        )
    return formats


def _key(text: str) -> str:
    return re.sub(r"[\s_\-]+", "-", text.strip().lower())


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    names = {}
    for slug, fmt in all_formats().items():
        for name in (slug, *fmt.aliases):
            names[_key(name)] = slug
    return names


_BPW = re.compile(r"^(exl[23]-|gguf-|gguf )?~?(\d+(?:\.\d+)?)-?(?:bpw|bits?)(?:-mixed)?$")


@lru_cache(maxsize=1024)
def find_format(text: str, use: str = "weights", field: str = "weight_format") -> Format:
    """The format that a person means by `text`, for weights, the KV cache ("kv") or "activations".

    >>> find_format("Q4_K_M").slug
    'gguf-q4_k_m'
    >>> find_format("4.5bpw").bits_per_weight
    4.5
    >>> find_format("int8", "kv").slug, find_format("kivi", "kv").bits_per_weight
    ('int8', 3.0)
    """
    key = _key(str(text))
    match = _BPW.match(key)
    if match and use != "activations" and key not in _names():
        return _by_width(match, key, use, field)
    slug = _names().get(key)
    if slug is None:
        known = [n for n, s in _names().items() if use in all_formats()[s].uses]
        near = list(dict.fromkeys(_names()[n] for n in difflib.get_close_matches(key, known, 6, 0.6)))[:3]
        raise UnknownName(
            "format",
            str(text),
            near,
            hint=f"formats for {use}: {', '.join(_common(use))} … or a width such as 4.5bpw",
            field=field,
        )
    fmt = all_formats()[slug]
    if use not in fmt.uses:
        raise InvalidValue(
            f"format {text!r} is for {' and '.join(fmt.uses)}, not for {use}",
            hint=f"formats for {use}: {', '.join(_common(use))}",
            field=field,
        )
    return fmt


def _by_width(match: re.Match[str], key: str, use: str, field: str) -> Format:
    bits = float(match[2])
    if not 0.5 <= bits <= 32:
        raise InvalidValue(f"{match[2]} bits per weight is out of range", hint="0.5 to 32 bits", field=field)
    prefix = (match[1] or "").strip("- ")
    exl = prefix.startswith("exl")
    base = all_formats()["gguf-q4_k_m" if prefix == "gguf" else "int4"]
    return replace(
        base,
        slug=key,
        name=f"{bits:g} bits per weight",
        uses=("weights", "kv"),
        bits_per_weight=bits,
        embedding_bits=max(bits, 16.0) if prefix != "gguf" else bits,
        head_bits=max(bits, EXL2_HEAD_BITS) if exl else (bits if prefix == "gguf" else max(bits, 16.0)),
        scheme="lut" if exl else "int",
        direct=base.direct if prefix == "gguf" else "",
        family="exl2" if exl else base.family if prefix == "gguf" else "int",
        aliases=(),
        source="https://github.com/turboderp-org/exllamav2" if exl else "stated width",
        basis="derived",
        note="average width as stated, scales included",
    )


def _common(use: str) -> list[str]:
    short = {
        "weights": ["fp16", "fp8", "int8", "w4a16-awq-g128", "nf4", "gguf-q4_k_m", "aqlm-2bit-1x16"],
        "kv": ["fp16", "fp8", "int8", "int4", "kivi-2bit"],
        "activations": ["fp16", "bf16", "int8", "fp8", "nvfp4"],
    }
    return short[use]


def lookup(
    text: str | NDArray[Any], attribute: str, use: str = "weights", field: str = "weight_format"
) -> Any:
    """`attribute` of the named format; for an array of names, an array of the same shape.

    >>> lookup("fp16", "bits_per_weight")
    16.0
    >>> lookup(np.array(["fp16", "int8"]), "bits_per_weight").tolist()
    [16.0, 8.0]
    """
    if isinstance(text, str):
        return getattr(find_format(text, use, field), attribute)
    names = np.asarray(text)
    if names.ndim == 0:
        return getattr(find_format(str(names), use, field), attribute)
    unique, inverse = distinct(names)
    values = np.array([getattr(find_format(n, use, field), attribute) for n in unique])
    return values[inverse].reshape(names.shape)


def stored_bits(text: str | NDArray[Any]) -> tuple[Any, Any, Any]:
    """Bits per weight of the layers, of the input embedding and of the output head, as `lookup` gives them.

    >>> stored_bits("gguf-q4_k_m") == tuple(lookup("gguf-q4_k_m", name) for name in BITS)
    True
    """
    if isinstance(text, str) or text.ndim == 0:
        found = find_format(str(text))
        return found.bits_per_weight, found.embedding_bits, found.head_bits
    unique, inverse = distinct(text)
    table = np.array([[getattr(find_format(name), kind) for name in unique] for kind in BITS])
    layers, embedding, head = table[:, inverse]
    return layers.reshape(text.shape), embedding.reshape(text.shape), head.reshape(text.shape)


BITS = ("bits_per_weight", "embedding_bits", "head_bits")


def for_engine(text: str | NDArray[Any], aliases: dict[str, str], use: str = "weights") -> Any:
    """Names as the engine means them (Engine.format_aliases): `int4` in llama.cpp is `gguf-q4_k_m`.

    Aliases are of weight formats; for another `use` those hold whose target serves it.

    >>> for_engine("int4", {"int4": "gguf-q4_k_m"}), for_engine("fp8", {"int4": "gguf-q4_k_m"})
    ('gguf-q4_k_m', 'fp8')
    """
    if not aliases:
        return text
    known = all_formats()
    if isinstance(text, str):
        slug = aliases.get(text.lower(), text)
        return slug if use == "weights" or (slug in known and use in known[slug].uses) else text
    if use != "weights":
        aliases = {name: slug for name, slug in aliases.items() if slug in known and use in known[slug].uses}
    names = np.asarray(text)
    unique, inverse = distinct(names)
    mapped = [aliases.get(name.lower(), name) for name in unique]
    if mapped == unique:
        return names
    spread = spread_names(mapped, inverse)
    return spread if names.ndim == 1 else spread.reshape(names.shape)
