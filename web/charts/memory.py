"""What fits: horizontal stacks of memory against the capacity of the devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from web.charts.scale import Scale, tick_label
from web.charts.svg import Chart, Key, hatch, line, rect, text
from web.formats import bytes_text

GB = 1e9
PARTS = (
    ("weights", "weights", "c1"),
    ("kv_cache", "KV cache", "c5"),
    ("activations", "activations", "c4"),
    ("overhead", "runtime", "cm"),
)


@dataclass(frozen=True)
class MemoryRow:
    label: str
    parts: dict[str, float]  # bytes by the names of PARTS
    total: float
    available: float

    @property
    def fits(self) -> bool:
        return self.total <= self.available

    @property
    def verdict(self) -> str:
        difference = abs(self.available - self.total)
        return f"✓ {bytes_text(difference)} free" if self.fits else f"✗ {bytes_text(difference)} over"


def memory_row(label: str, memory: dict[str, float | None]) -> MemoryRow:
    """From the interface's `memory_bytes`."""
    parts = {name: float(memory.get(name) or 0.0) for name, _, _ in PARTS}
    return MemoryRow(
        label, parts, float(memory.get("total") or sum(parts.values())), float(memory.get("available") or 0.0)
    )


def memory_chart(rows: Sequence[MemoryRow], ident: str = "mem") -> Chart:
    capacity = rows[0].available
    fitting = [row.label for row in rows if row.fits]
    finding = "; ".join(
        f"{row.label} needs {bytes_text(row.total)} of {bytes_text(row.available)}" for row in rows
    )
    finding += f". Fits: {', '.join(fitting)}." if fitting else ". Nothing shown fits."

    def draw(width: int, name: str) -> tuple[str, int]:
        left = 112 if width > 400 else 86
        right = 96 if width > 400 else 84
        step, top = 29, 34
        high = max([row.total for row in rows] + [capacity]) * 1.02
        # One bar a hundred times longer than the others would hide them: the axis ends at 5 × the capacity.
        cut = high > 5.5 * capacity > 0
        high = 5 * capacity if cut else high
        x = Scale(0, high, left, width - right)
        bottom = top + step * len(rows)
        out = [hatch(f"{name}-h", "k2")]
        verdicts = []  # on top of the line of the capacity, which runs through some of them
        for value in x_ticks(high, 3 if width < 400 else 4):
            out += [
                line(x(value * GB), top - 6, x(value * GB), bottom, "gr"),
                text(x(value * GB), bottom + 16, tick_label(value), "ts", "middle"),
            ]
        out.append(text(width - right + 10, bottom + 16, "GB", "ts"))
        for index, row in enumerate(rows):
            y = top + step * index + 4
            out.append(text(0, y + 14, shorten(row.label, 15 if width > 400 else 11), "tb"))
            at = 0.0
            for part, _, cls in PARTS:
                size = row.parts.get(part, 0.0)
                if size > 0 and at < high:
                    out.append(rect(x(at), y, max(0.6, x(min(at + size, high)) - x(at)), 18, cls))
                at += size
            if not row.fits and row.available < high:
                start = x(row.available)
                out += [
                    rect(start, y, x(min(row.total, high)) - start, 18, "hol over"),
                    rect(start, y, x(min(row.total, high)) - start, 18, "", fill=f"url(#{name}-h)"),
                ]
            if row.total > high:
                out.append(line(x(high) - 5, y - 2, x(high) - 9, y + 20, "ki w2 nf"))
            verdict = "fok halo" if row.fits else "fbad halo"
            verdicts.append(text(x(min(row.total, high)) + 6, y + 14, row.verdict, verdict))
            if row.available != capacity:
                out.append(
                    line(
                        x(min(row.available, high)),
                        y - 4,
                        x(min(row.available, high)),
                        y + 22,
                        "ki w2 dash nf",
                    )
                )
        out += [
            line(x(capacity), top - 10, x(capacity), bottom, "ki w15 dash nf"),
            text(
                min(max(x(capacity), left), width - right),
                14,
                f"capacity {bytes_text(capacity)}",
                "tb",
                "middle",
            ),
        ]
        return "".join([*out, *verdicts]), bottom + 22

    used = [part for part in PARTS if any(row.parts.get(part[0], 0) > 0 for row in rows)]
    keys = [Key(label, cls) for _, label, cls in used]
    if not all(row.fits for row in rows):
        keys.append(Key("does not fit", "k2", 9))
    return Chart(
        ident=ident,
        title="Memory needed against memory available",
        finding=finding,
        draw=draw,
        columns=["Option", *(label for _, label, _ in PARTS), "Total", "Available", "Verdict"],
        rows=[
            [
                row.label,
                *(bytes_text(row.parts.get(part, 0)) for part, _, _ in PARTS),
                bytes_text(row.total),
                bytes_text(row.available),
                row.verdict,
            ]
            for row in rows
        ],
        keys=keys,
    )


def x_ticks(high: float, count: int) -> list[float]:
    return Scale(0, high / GB, 0, 1).ticks(count)


def shorten(label: str, size: int) -> str:
    return label if len(label) <= size else label[: size - 1].rstrip() + "…"
