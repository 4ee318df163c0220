"""The citation graph on a time axis: years left to right, lanes by class, every work a link in date order.

Positions are a pure function of the works (year, lane, slug): the same set always looks the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from web.charts.svg import attributes, line, tag, text


@dataclass(frozen=True)
class Node:
    key: str
    label: str  # what a screen reader says: author, year, title
    short: str  # what is written beside a large node
    href: str
    year: int | None
    lane: str
    colour: int  # 1…5, 0 muted
    size: float = 4.0
    strong: bool = False  # the root or a survey: drawn larger, with its name


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    kind: str = "cites"  # cites | co-cited | coupled | path


@dataclass(frozen=True)
class Placed:
    node: Node
    x: float
    y: float


def timeline(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    lanes: Sequence[str],
    *,
    width: int = 1104,
    title: str,
    finding: str,
) -> Markup:
    """One SVG; works before `first year` share the left-most column."""
    placed, height, years, lane_bands = layout(nodes, lanes, width)
    where = {each.node.key: each for each in placed}
    out = []
    for index, (lane, top, bottom) in enumerate(lane_bands):
        if index % 2 == 0:
            out.append(tag("rect", x=0.0, y=top, width=float(width), height=bottom - top, cls="cs"))
        out += wrapped(lane, 8, top + 16)
    for label, x in years:
        out += [line(x, 24, x, height - 4, "gr"), text(x, 16, label, "ts", "middle")]
    for edge in edges:
        a, b = where.get(edge.source), where.get(edge.target)
        if a and b:
            out.append(curve(a, b, edge.kind))
    names: list[str] = []
    for each in sorted(placed, key=lambda one: (one.node.year or 0, one.node.key)):
        node = each.node
        cls = f"c{node.colour}" if node.colour else "cm"
        circle = f'<circle cx="{each.x:.0f}" cy="{each.y:.0f}" r="{node.size:g}" class="{cls}"/>'
        out.append(f"<a{attributes({'href': node.href})}><title>{escape(node.label)}</title>{circle}</a>")
        if node.strong:
            flip = each.x > width - 150
            names.append(
                text(
                    each.x + (-node.size - 4 if flip else node.size + 4),
                    each.y + 4,
                    node.short,
                    "tb ts halo",
                    "end" if flip else None,
                )
            )
    head = tag("title", str(escape(title)), id="tl-t") + tag("desc", str(escape(finding)), id="tl-d")
    return Markup(
        tag(
            "svg",
            head + "".join(out + names),
            cls="tl",
            viewBox=f"0 0 {width} {height:.0f}",
            width=width,
            height=f"{height:.0f}",
            role="group",
            aria_labelledby="tl-t tl-d",
        )
    )


def layout(
    nodes: Sequence[Node], lanes: Sequence[str], width: int
) -> tuple[list[Placed], float, list[tuple[str, float]], list[tuple[str, float, float]]]:
    """Packs each (lane, year) cell as a grid, largest first; a lane is as tall as its fullest cell."""
    dated = sorted({node.year for node in nodes if node.year})
    shown = [
        year for year in dated if sum(node.year == year for node in nodes) >= max(1, len(nodes) // 150)
    ] or dated
    first = max(shown[0], shown[-1] - 12) if shown else 0
    columns = [first - 1, *range(first, shown[-1] + 1)] if shown else [0]
    label_width = 132.0
    cell = (width - label_width - 12) / len(columns)
    weights = [sum(column_of(node, first) == column for node in nodes) for column in columns]
    shares = [max(0.35, min(2.2, (weight / (sum(weights) / len(weights) or 1)) ** 0.5)) for weight in weights]
    unit = (width - label_width - 12) / sum(shares)
    starts, at = [], label_width
    for share in shares:
        starts.append((at, share * unit))
        at += share * unit
    cells: dict[tuple[str, int], list[Node]] = defaultdict(list)
    for node in nodes:
        cells[(node.lane, columns.index(column_of(node, first)))].append(node)
    pitch = 12.0 if len(nodes) > 150 else 20.0 if len(nodes) > 40 else 30.0
    placed: list[Placed] = []
    bands: list[tuple[str, float, float]] = []
    top = 28.0
    for lane in lanes:
        rows_needed = 1
        for index in range(len(columns)):
            per_row = max(1, int((starts[index][1] - 6) // pitch))
            rows_needed = max(rows_needed, -(-len(cells.get((lane, index), [])) // per_row))
        height = max(44.0, rows_needed * pitch + 16)
        for index in range(len(columns)):
            here = sorted(cells.get((lane, index), []), key=lambda node: (-node.size, node.key))
            start, span = starts[index]
            per_row = max(1, int((span - 6) // pitch))
            for order, node in enumerate(here):
                row, column = divmod(order, per_row)
                in_row = min(per_row, len(here) - row * per_row)
                x = start + span / 2 + (column - (in_row - 1) / 2) * pitch
                rows_here = -(-len(here) // per_row)
                y = top + height / 2 + (row - (rows_here - 1) / 2) * pitch
                placed.append(Placed(node, x, y))
        bands.append((lane, top, top + height))
        top += height
    early = any(column_of(node, first) == first - 1 for node in nodes)
    labels = [
        (str(year) if year >= first else f"≤ {first - 1}" if early else "", start + span / 2)
        for year, (start, span) in zip(columns, starts, strict=True)
    ]
    if not early:
        labels = labels[1:]
    del cell
    return placed, top + 8, labels, bands


def column_of(node: Node, first: int) -> int:
    return max(first - 1, node.year) if node.year else first - 1


def curve(a: Placed, b: Placed, kind: str) -> str:
    bend = -abs(b.x - a.x) * 0.12
    cls = {
        "cites": "k1 nf fade",
        "co-cited": "k3 nf fade dash",
        "coupled": "k4 nf fade dot",
        "path": "k2 w2 nf",
    }[kind]
    middle = ((a.x + b.x) / 2, (a.y + b.y) / 2 + bend)
    return tag("path", d=f"M{a.x:.0f} {a.y:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {b.x:.0f} {b.y:.0f}", cls=cls)


def wrapped(label: str, x: float, y: float, size: int = 18) -> list[str]:
    """A lane's name on as many lines as it takes, three at most."""
    lines, current = [], ""
    for word in label.split():
        if current and len(current) + len(word) + 1 > size:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}".strip()
    lines.append(current)
    return [text(x, y + 14 * index, part, "tb ts") for index, part in enumerate(lines[:3])]
