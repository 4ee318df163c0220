"""Numbers as people read them: three significant digits, a unit, a thin range dash, never `137G`.

Memory is in GB = 10⁹ bytes; time takes the unit that keeps one to three digits before the point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

UNKNOWN = "–"
TIME_UNITS = ((1e-3, "ns", 1e6), (1.0, "µs", 1e3), (1e3, "ms", 1.0), (120e3, "s", 1e-3))
BYTE_UNITS = (
    (1e3, "B", 1.0),
    (1e6, "kB", 1e-3),
    (1e9, "MB", 1e-6),
    (1e12, "GB", 1e-9),
    (math.inf, "TB", 1e-12),
)
SI_PREFIXES = ((1e3, "", 1.0), (1e6, "k", 1e-3), (1e9, "M", 1e-6), (1e12, "G", 1e-9), (math.inf, "T", 1e-12))


def number(value: float | None, digits: int = 3) -> str:
    """`1234.5` → `1,234`, `0.01234` → `0.0123`: significant digits without an exponent.

    >>> number(137.952), number(1234.5), number(0.0301), number(None)
    ('138', '1,234', '0.0301', '–')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{abs(value):,.{min(places, 12)}f}"
    if "." in text and len(text.replace(".", "").replace(",", "").lstrip("0")) > digits:
        text = text[:-1].rstrip(".")  # 9.996 → 10.00: rounding made one digit too many
    return ("−" if value < 0 else "") + text


def bytes_text(value: float | None, digits: int = 3) -> str:
    """
    >>> bytes_text(137.95e9), bytes_text(327680), bytes_text(1.4e12)
    ('138 GB', '328 kB', '1.40 TB')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for limit, unit, factor in BYTE_UNITS:
        if abs(value) < limit or limit == math.inf:
            return f"{number(value * factor, digits)} {unit}"
    raise AssertionError("the last unit has no limit")


def milliseconds(value: float | None) -> str:
    """
    >>> milliseconds(33.8), milliseconds(3100), milliseconds(0.0123), milliseconds(600e3)
    ('33.8 ms', '3.10 s', '12.3 µs', '10.0 min')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for limit, unit, factor in TIME_UNITS:
        if abs(value) < limit:
            return f"{number(value * factor)} {unit}"
    return f"{number(value / 60e3)} min"


def ratio(value: float | None) -> str:
    """
    >>> ratio(1.9), ratio(0.5), ratio(12.34)
    ('1.90×', '0.50×', '12.3×')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:.2f}×" if abs(value) < 10 else f"{number(value)}×"


def span(pair: Sequence[float | None] | None, form: str = "number") -> str:
    """`[22, 37]` → `22–37`; the unit stands once, at the end.

    >>> span([22.0, 37.0]), span([2100.0, 4200.0], "milliseconds"), span(None)
    ('22.0–37.0', '2.10–4.20 s', '–')
    """
    if not pair or pair[0] is None or pair[1] is None:
        return UNKNOWN
    write = {"number": number, "milliseconds": milliseconds, "ratio": ratio, "bytes": bytes_text}[form]
    low, high = write(pair[0]), write(pair[1])
    low_value, _, low_unit = low.partition(" ")
    _, _, high_unit = high.partition(" ")
    if low_unit == high_unit:
        low = low_value
    if form == "ratio":
        low = low.rstrip("×")
    return f"{low}–{high}"


def si(value: float | None, unit: str = "") -> str:
    """
    >>> si(312e12, "FLOP/s"), si(68.98e9)
    ('312 TFLOP/s', '69.0 G')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    for limit, prefix, factor in SI_PREFIXES:
        if abs(value) < limit or limit == math.inf:
            return f"{number(value * factor)} {prefix}{unit}".rstrip()
    raise AssertionError("the last prefix has no limit")


def parameters(value: float | None) -> str:
    """Model sizes: `68.98e9` → `69.0 B`."""
    if not value:
        return UNKNOWN
    return f"{number(value / 1e9)} B" if value >= 1e9 else f"{number(value / 1e6)} M"


def plural(count: int, one: str, many: str = "") -> str:
    """
    >>> plural(1, "paper"), plural(1234, "paper"), plural(2, "entry", "entries")
    ('1 paper', '1,234 papers', '2 entries')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def author_list(authors: Sequence[dict[str, str] | str], limit: int = 3, truncated: bool = False) -> str:
    """`Lin, Tang, Tang et al.`"""
    names = [a if isinstance(a, str) else (a.get("family") or a.get("given") or "") for a in authors]
    names = [name for name in names if name]
    shown = ", ".join(names[:limit])
    return f"{shown} et al." if shown and (len(names) > limit or truncated) else shown


def money(value: float | None) -> str:
    return UNKNOWN if value is None else f"${number(value)}"


FILTERS = {
    "num": number,
    "bytes": bytes_text,
    "ms": milliseconds,
    "ratio": ratio,
    "span": span,
    "si": si,
    "params": parameters,
    "authors": author_list,
    "money": money,
}
