"""A dozen helpers for SVG text, and `Chart`: the drawing in two widths, its finding, its data as a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

WIDE, NARROW = 540, 330


RENAMED = {"cls": "class", "href_": "href"}
SPECIAL = re.compile("[&<>\"']")


def attributes(values: dict[str, Any]) -> str:
    """Attributes as text; a drawing has hundreds, so that only what needs escaping is escaped.

    >>> attributes({"x": 1.25, "cls": "a", "stroke_width": 3, "title": "a<b", "rx": None})
    ' x="1.2" class="a" stroke-width="3" title="a&lt;b"'
    """
    parts = []
    for name, value in values.items():
        if value is None or value is False:
            continue
        if name in RENAMED or "_" in name:
            name = RENAMED.get(name) or name.replace("_", "-")
        if isinstance(value, float):
            text = f"{value:.1f}".removesuffix(".0")
        else:
            text = value if isinstance(value, str) else str(value)
            if SPECIAL.search(text):
                text = str(escape(text))
        parts.append(f' {name}="{text}"')
    return "".join(parts)


def tag(name: str, inside: str | None = None, **values: Any) -> str:
    start = f"<{name}{attributes(values)}"
    return f"{start}/>" if inside is None else f"{start}>{inside}</{name}>"


def text(x: float, y: float, content: object, cls: str = "", anchor: str | None = None, **more: Any) -> str:
    return tag(
        "text", str(escape(content)), x=float(x), y=float(y), cls=cls or None, text_anchor=anchor, **more
    )


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> str:
    return tag("path", d=f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", cls=cls)


def path(points: Sequence[tuple[float, float]], cls: str, *, closed: bool = False) -> str:
    if not points:
        return ""
    body = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return tag("path", d=f"M{body}{'Z' if closed else ''}", cls=cls)


def rect(x: float, y: float, width: float, height: float, cls: str, **more: Any) -> str:
    return tag(
        "rect", x=float(x), y=float(y), width=float(max(0, width)), height=float(height), cls=cls, **more
    )


def mark(shape: int, x: float, y: float, cls: str, size: float = 4.5) -> str:
    """Series differ in shape as well as colour: circle, square, triangle, diamond, cross-bar."""
    kind = shape % 5
    if kind == 0:
        return tag("circle", cx=float(x), cy=float(y), r=size, cls=cls)
    if kind == 1:
        return rect(x - size * 0.9, y - size * 0.9, size * 1.8, size * 1.8, cls)
    if kind == 2:
        return path(
            [(x, y - size * 1.15), (x + size * 1.1, y + size * 0.8), (x - size * 1.1, y + size * 0.8)],
            cls,
            closed=True,
        )
    if kind == 3:
        return path(
            [(x, y - size * 1.2), (x + size * 1.2, y), (x, y + size * 1.2), (x - size * 1.2, y)],
            cls,
            closed=True,
        )
    return rect(x - size * 0.5, y - size * 1.2, size, size * 2.4, cls)


def hatch(ident: str, cls: str) -> str:
    """A pattern of diagonal lines; identifiers must be unique in the page."""
    return tag(
        "defs",
        tag(
            "pattern",
            tag("path", d="M0 0V7", cls=cls, stroke_width=3),
            id=ident,
            width=7,
            height=7,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )


@dataclass(frozen=True)
class Key:
    """One entry of the key: a swatch drawn with the chart's own classes."""

    label: str
    cls: str
    shape: int | None = None  # None: a bar; 9: hatched; otherwise `mark`

    @property
    def swatch(self) -> Markup:
        if self.shape is None:
            inside = rect(0, 0, 16, 10, self.cls)
        elif self.shape == 9:
            inside = "".join(line(x, 10, x + 6, 0, f"{self.cls} w2 nf") for x in (0, 5, 10))
        else:
            inside = mark(self.shape, 8, 5, self.cls, 4)
        return Markup(tag("svg", inside, viewBox="0 0 16 10", aria_hidden="true"))


@dataclass(frozen=True)
class Chart:
    """`draw(width, ident)` gives the inside of the SVG and its height."""

    ident: str
    title: str
    finding: str
    draw: Callable[[int, str], tuple[str, int]]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    keys: Sequence[Key] = ()
    caption: str = ""
    explore: str = ""
    widths: tuple[int, int] = (WIDE, NARROW)
    extra: dict[str, str] = field(default_factory=dict)

    def svg(self, width: int, cls: str) -> Markup:
        ident = f"{self.ident}-{cls}"
        inside, height = self.draw(width, ident)
        inside = one_grid(inside)
        head = tag("title", str(escape(self.title)), id=f"{ident}-t") + tag(
            "desc", str(escape(self.finding)), id=f"{ident}-d"
        )
        return Markup(
            tag(
                "svg",
                head + inside,
                cls=f"ch {cls}",
                viewBox=f"0 0 {width} {height}",
                role="img",
                aria_labelledby=f"{ident}-t {ident}-d",
            )
        )

    @property
    def wide(self) -> Markup:
        return self.svg(self.widths[0], "wide")

    @property
    def narrow(self) -> Markup:
        return self.svg(self.widths[1], "nar")


GRID = re.compile(r'<path d="([^"]*)" class="gr"/>')


def one_grid(inside: str) -> str:
    """All grid lines as one path where the first of them stands: a page has dozens, and each is an element.

    >>> one_grid('<path d="M0 0L9 0" class="gr"/><text/><path d="M0 5L9 5" class="gr"/>')
    '<path d="M0 0L9 0M0 5L9 5" class="gr"/><text/>'
    """
    steps = GRID.findall(inside)
    if len(steps) < 2:
        return inside
    head, tail = GRID.split(inside, maxsplit=1)[::2]
    return f'{head}<path d="{"".join(steps)}" class="gr"/>{GRID.sub("", tail)}'


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Label positions near the wanted ones, in order, at least `gap` apart, inside [low, high].

    >>> spread([10.0, 12.0, 40.0], 14, 0, 100)
    [10.0, 24.0, 40.0]
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [0.0] * len(wanted)
    floor = low
    for index in order:
        placed[index] = max(wanted[index], floor)
        floor = placed[index] + gap
    ceiling = high
    for index in reversed(order):
        placed[index] = min(placed[index], ceiling)
        ceiling = placed[index] - gap
    return placed
