"""Small drawings: an interval inside a table cell, and where the time of a step goes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from web.charts.scale import Scale
from web.charts.svg import Chart, Key, line, rect, tag, text
from web.formats import milliseconds

TERM_CLASSES = ("c1", "c5", "c4", "c3", "c2", "cm", "ci")


def interval(
    value: float | None,
    low: float | None,
    high: float | None,
    axis: tuple[float, float],
    line_at: float | None = 1.0,
) -> Markup:
    """A bar from low to high with a tick at the value, on a shared logarithmic axis; decorative: the cell has the numbers."""
    x = Scale(axis[0], axis[1], 0, 100, log=True)
    out = [line(each, 0, each, 18, "gr") for each in (0.0, 50.0, 100.0)]
    if line_at is not None and axis[0] < line_at < axis[1]:
        out.append(tag("path", d=f"M{x(line_at):.1f} 0V18", cls="ki nf", vector_effect="non-scaling-stroke"))
    if value is not None and value > 0:
        bad = line_at is not None and value < line_at
        if low and high and low > 0:
            start, end = x.clamped(low), x.clamped(high)
            out.append(rect(start, 6, max(0.8, end - start), 6, ("c2" if bad else "c1") + " fade"))
        at = x.clamped(value)
        out.append(
            tag(
                "path",
                d=f"M{at:.1f} 3V15",
                cls=("k2" if bad else "k1") + " w4 nf",
                vector_effect="non-scaling-stroke",
            )
        )
    return Markup(
        tag(
            "svg",
            "".join(out),
            cls="iv",
            viewBox="0 0 100 18",
            preserveAspectRatio="none",
            aria_hidden="true",
            focusable="false",
        )
    )


def axis_around(
    values: Sequence[float | None], floor: float = 0.5, ceiling: float = 2.0
) -> tuple[float, float]:
    """A shared axis for all intervals of a table, always holding [floor, ceiling].

    >>> axis_around([1.2, 3.9, None])
    (0.5, 4.0)
    """
    good = [value for value in values if value is not None and value > 0]
    low, high = min([floor, *good]), max([ceiling, *good])
    nice = (1, 1.5, 2, 3, 4, 5, 7.5, 10)
    scale = 10.0 ** (len(f"{int(high)}") - 1)
    top = next((factor * scale for factor in nice if factor * scale >= high), high)
    return (max(low, 0.01), top)


def time_chart(rows: Sequence[tuple[str, dict[str, float], float]], ident: str = "time") -> Chart:
    """Terms of each row in ms, stacked; rows: (label, terms, total ms)."""
    names = sorted(
        {name for _, terms, _ in rows for name, ms in terms.items() if ms > 0},
        key=lambda name: -max(terms.get(name, 0) for _, terms, _ in rows),
    )
    shown, rest = names[:6], names[6:]
    finding = "; ".join(
        f"{label}: {milliseconds(total)}"
        + (f", mostly {max(terms, key=lambda name: terms[name])}" if terms else "")
        for label, terms, total in rows
    )

    def draw(width: int, name: str) -> tuple[str, int]:
        left, right, step = (112 if width > 400 else 86), 78, 29
        out = []
        for index, (label, terms, total) in enumerate(rows):
            y = 6 + step * index
            high = max(each for key, _, each in rows if key.split(" ")[0] == label.split(" ")[0])
            x = Scale(0, high or 1, left, width - right)
            out.append(text(0, y + 14, label, "tb"))
            scale = total / (sum(terms.values()) or 1)
            at = 0.0
            for order, term in enumerate([*shown, "other"]):
                ms = sum(terms.get(each, 0) for each in rest) if term == "other" else terms.get(term, 0)
                ms *= min(1.0, scale) if scale else 1.0
                if ms > 0:
                    out.append(rect(x(at), y, max(0.6, x(at + ms) - x(at)), 18, TERM_CLASSES[order]))
                at += ms
            out.append(text(x(min(total, high)) + 6, y + 14, milliseconds(total), "tb"))
        return "".join(out), 6 + step * len(rows) + 4

    keys = [Key(each, TERM_CLASSES[index]) for index, each in enumerate(shown)] + (
        [Key("other", "ci")] if rest else []
    )
    return Chart(
        ident=ident,
        title="Where the time goes",
        finding=finding,
        draw=draw,
        columns=["Term", *(label for label, _, _ in rows)],
        rows=[
            [name, *(milliseconds(terms.get(name)) if terms.get(name) else "–" for _, terms, _ in rows)]
            for name in names
        ]
        + [["total", *(milliseconds(total) for _, _, total in rows)]],
        keys=keys,
    )
