"""The citation graph on a time axis: years left to right, lanes top to bottom, positions a pure function of the set.

Few works: every work is a link of its own. Many: they are dots, and each cell (lane and year) is one link with its
count, so that a keyboard passes sixty stops instead of six hundred.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from web.charts.svg import attributes, line, tag, text

LABEL_WIDTH = 132.0
MOST_LINKS = 160
PITCH = 26.0  # distance of linked works: a finger's width
DOT_PITCH = 10.0
KINDS = {
    "cites": "k1 nf fade",
    "co-cited": "k3 nf fade dash",
    "coupled": "k4 nf fade dot",
    "path": "k2 w2 nf",
}


@dataclass(frozen=True)
class Node:
    key: str
    label: str  # what a screen reader says: author, year, title
    short: str  # what is written beside a marked work
    href: str
    year: int | None
    lane: str
    colour: int  # 1…5; 0 muted
    size: float = 5.0
    strong: bool = False  # a root or a survey: larger, with its name


@dataclass(frozen=True)
class Edge:
    source: str
    target: str
    kind: str = "cites"


@dataclass(frozen=True)
class Placed:
    node: Node
    x: float
    y: float


@dataclass(frozen=True)
class Cell:
    lane: str
    year: int | None  # None: before the first column
    x: float
    y: float
    width: float
    height: float
    count: int


@dataclass(frozen=True)
class Layout:
    placed: list[Placed]
    height: float
    years: list[tuple[str, float]]
    bands: list[tuple[str, float, float]]
    cells: list[Cell]


def timeline(
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    lanes: Sequence[str],
    *,
    title: str,
    finding: str,
    cell_links: Mapping[tuple[str, int | None], str] | None = None,
    width: int = 1104,
) -> Markup:
    """The drawing. `cell_links` (lane, year) → address are used where there are more than MOST_LINKS works."""
    many = len(nodes) > MOST_LINKS
    plan = place(nodes, lanes, width, DOT_PITCH if many else PITCH)
    where = {each.node.key: each for each in plan.placed}
    out = []
    for index, (lane, top, bottom) in enumerate(plan.bands):
        if index % 2 == 0:
            out.append(tag("rect", x=0.0, y=top, width=float(width), height=bottom - top, cls="cs"))
        out += wrapped(lane, 8, top + 18)
    for label, x in plan.years:
        out += [line(x, 24, x, plan.height - 4, "gr"), text(x, 16, label, "ts", "middle")]
    out += [
        curve(where[e.source], where[e.target], e.kind)
        for e in edges
        if e.source in where and e.target in where
    ]
    names: list[str] = []
    taken: list[tuple[float, float, float]] = []
    out += summarised(plan, cell_links or {}) if many else []
    for each in sorted(plan.placed, key=lambda one: (one.node.year or 0, one.node.key)):
        if not many or each.node.strong:
            out.append(linked(each))
        if each.node.strong:
            names.append(name_beside(each, width, taken))
    head = tag("title", str(escape(title)), id="tl-t") + tag("desc", str(escape(finding)), id="tl-d")
    return Markup(
        tag(
            "svg",
            head + "".join(out + names),
            cls="tl",
            viewBox=f"0 0 {width} {plan.height:.0f}",
            width=width,
            height=f"{plan.height:.0f}",
            role="group",
            aria_labelledby="tl-t tl-d",
        )
    )


def linked(each: Placed) -> str:
    node = each.node
    cls = f"c{node.colour}" if node.colour else "cm"
    hit = f'<circle cx="{each.x:.0f}" cy="{each.y:.0f}" r="12" class="hit"/>'
    dot = f'<circle cx="{each.x:.0f}" cy="{each.y:.0f}" r="{node.size:g}" class="{cls}"/>'
    return f"<a{attributes({'href': node.href, 'aria_label': node.label})}><title>{escape(node.label)}</title>{hit}{dot}</a>"


def name_beside(each: Placed, width: int, taken: list[tuple[float, float, float]]) -> str:
    """The name of a work beside its mark, moved down or up where another name already stands."""
    flip = each.x > width - 170
    x = each.x + (-each.node.size - 5 if flip else each.node.size + 5)
    wide = 7.0 * len(each.node.short)
    start, end = (x - wide, x) if flip else (x, x + wide)
    for shift in (0, 14, -14, 28, -28):
        y = each.y + 4 + shift
        if all(abs(y - other) >= 13 or end < low or high < start for low, high, other in taken):
            break
    taken.append((start, end, y))
    return text(x, y, each.node.short, "tb ts halo", "end" if flip else None)


def summarised(plan: Layout, links: Mapping[tuple[str, int | None], str]) -> list[str]:
    """Dots as one path per colour; a link over each cell, large enough for a finger."""
    steps: dict[int, list[str]] = defaultdict(list)
    for each in plan.placed:
        if not each.node.strong:
            steps[each.node.colour].append(f"M{each.x - 3:.0f} {each.y:.0f}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z")
    out = [
        tag("path", d="".join(parts), cls=f"c{colour}" if colour else "cm")
        for colour, parts in sorted(steps.items())
    ]
    for cell in plan.cells:
        href = links.get((cell.lane, cell.year))
        if href and cell.count:
            when = str(cell.year) if cell.year else "earlier"
            label = f"{cell.lane}, {when}: {cell.count} {'work' if cell.count == 1 else 'works'}"
            box = tag("rect", x=cell.x, y=cell.y, width=cell.width, height=cell.height, rx=4, cls="cell")
            out.append(
                f"<a{attributes({'href': href, 'aria_label': label})}><title>{escape(label)}</title>{box}</a>"
            )
    return out


def columns_of(nodes: Sequence[Node]) -> tuple[int, list[int]]:
    """The first year with its own column, and all columns; earlier works share the one before it."""
    dated = sorted({node.year for node in nodes if node.year})
    if not dated:
        return 0, [-1]
    counts = Counter(node.year for node in nodes)
    few = max(1, len(nodes) // 150)
    busy = [year for year in dated if counts[year] >= few] or dated
    first = max(busy[0], dated[-1] - 12)
    return first, [first - 1, *range(first, dated[-1] + 1)]


def place(nodes: Sequence[Node], lanes: Sequence[str], width: int, pitch: float) -> Layout:
    """Packs each cell as a grid, largest first; a lane is as tall as its fullest cell, a year as wide as its share."""
    first, columns = columns_of(nodes)
    index_of = {column: index for index, column in enumerate(columns)}
    cells: dict[tuple[str, int], list[Node]] = defaultdict(list)
    for node in nodes:
        cells[(node.lane, index_of[column_of(node, first)])].append(node)
    weights = [sum(len(cells.get((lane, index), ())) for lane in lanes) for index in range(len(columns))]
    mean = sum(weights) / len(weights) or 1
    shares = [max(0.4, min(2.4, (weight / mean) ** 0.5)) if weight else 0.4 for weight in weights]
    if not weights[0]:
        shares[0] = 0.02
    unit = (width - LABEL_WIDTH - 12) / sum(shares)
    starts, at = [], LABEL_WIDTH
    for share in shares:
        starts.append((at, share * unit))
        at += share * unit
    placed: list[Placed] = []
    bands: list[tuple[str, float, float]] = []
    boxes: list[Cell] = []
    top = 28.0
    for lane in lanes:
        rows = [
            rows_height(cells.get((lane, index), ()), span, pitch) for index, (_, span) in enumerate(starts)
        ]
        height = max(48.0, max(rows, default=0.0) + 18)
        for index, (start, span) in enumerate(starts):
            here = sorted(cells.get((lane, index), ()), key=lambda node: (-node.size, node.key))
            placed += grid(here, start, span, top, height, pitch)
            year = columns[index] if columns[index] >= first else None
            boxes.append(Cell(lane, year, start + 1, top + 2, max(1.0, span - 2), height - 4, len(here)))
        bands.append((lane, top, top + height))
        top += height
    labels = [
        (str(year) if year >= first else f"≤ {first - 1}", start + span / 2)
        for year, (start, span), weight in zip(columns, starts, weights, strict=True)
        if (weight or year >= first) and first
    ]
    return Layout(placed, top + 8, labels, bands, boxes)


def rows_height(here: Sequence[Node], span: float, pitch: float) -> float:
    return -(-len(here) // fitting(span, pitch, here)) * row_pitch(here, pitch)


def row_pitch(here: Sequence[Node], pitch: float) -> float:
    return max(pitch, PITCH) if here and all(node.strong for node in here) else pitch


def fitting(span: float, pitch: float, here: Sequence[Node] = ()) -> int:
    """Works side by side in a column; named ones stand one below the other, so that their names have room."""
    if here and all(node.strong for node in here):
        return 1
    return max(1, int((span - 4) // pitch))


def grid(
    here: Sequence[Node], start: float, span: float, top: float, height: float, pitch: float
) -> list[Placed]:
    """Row by row, centred in the cell."""
    per_row = fitting(span, pitch, here)
    pitch = row_pitch(here, pitch)
    rows = -(-len(here) // per_row)
    found = []
    for order, node in enumerate(here):
        row, column = divmod(order, per_row)
        in_row = min(per_row, len(here) - row * per_row)
        x = start + span / 2 + (column - (in_row - 1) / 2) * pitch
        y = top + height / 2 + (row - (rows - 1) / 2) * pitch
        found.append(Placed(node, x, y))
    return found


def column_of(node: Node, first: int) -> int:
    return max(first - 1, node.year) if node.year else first - 1


def curve(a: Placed, b: Placed, kind: str) -> str:
    bend = -abs(b.x - a.x) * 0.12
    middle = ((a.x + b.x) / 2, (a.y + b.y) / 2 + bend)
    return tag(
        "path", d=f"M{a.x:.0f} {a.y:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {b.x:.0f} {b.y:.0f}", cls=KINDS[kind]
    )


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
