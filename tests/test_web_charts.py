"""Charts as pure functions: what is drawn where, what is said, and that it is well-formed."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from web.charts.bars import interval, time_chart
from web.charts.gain import GainCurve, GainPoint, Published, gain_chart
from web.charts.memory import memory_chart, memory_row
from web.charts.pareto import Plan, labels, pareto_chart, steps
from web.charts.roofline import Operator, operators_of, roofline_chart
from web.charts.scale import Scale
from web.charts.scatter import Pair, agreement_chart
from web.charts.timeline import MOST_LINKS, Edge, Node, place, timeline

GB = 1e9


def drawn(svg):
    """The SVG as a tree; a chart that is no XML fails here."""
    return ElementTree.fromstring(str(svg))


def memory(total, available=24 * GB):
    return memory_row("x", {"weights": total, "total": total, "available": available})


PLANS = [
    Plan("EAGLE-3 + QoQ", 1570.0, 326.0, 7.4 * GB, 1),
    Plan("VPTQ", 4350.0, 118.0, 5.2 * GB, 2),
    Plan("as it is", 10340.0, 49.5, 17.3 * GB, 0, now=True),
]
CHARTS = {
    "pareto": pareto_chart(PLANS, capacity_bytes=25.8 * GB),
    "memory": memory_chart([memory(139 * GB), memory(20 * GB)]),
    "gain": gain_chart(
        GainCurve(
            [
                GainPoint(1, 2.0, 1.5, 2.6),
                GainPoint(8, 1.2, 1.0, 1.4),
                GainPoint(64, 0.7, 0.5, 0.9, fits=False),
            ],
            here=1,
            break_even=20,
            published=(Published(1, 2.3, "A100, 7B"),),
        )
    ),
    "roofline": roofline_chart(
        device="<card> & co",
        peak_flops=71e12,
        bandwidth=936e9,
        compute_format="FP16",
        before=(Operator("mlp", "decode", 1.0, 0.5e12, 100.0, "memory"),),
        after=(Operator("mlp", "decode", 8.0, 4e12, 20.0, "memory"),),
    ),
    "time": time_chart(
        [("token now", {"linear": 8.0, "attention": 2.0}, 10.0), ("token best", {"linear": 3.0}, 3.0)]
    ),
    "agreement": agreement_chart(
        [Pair(10, 11, "vLLM", "a"), Pair(100, 50, "TGI", "b")], unit="ms", title="t"
    ),
}


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_chart_is_accessible_in_both_widths(name):
    chart = CHARTS[name]
    for svg in (chart.wide, chart.narrow):
        root = drawn(svg)
        assert root.get("role") == "img"
        ids = root.get("aria-labelledby").split()
        texts = {each.get("id"): each.text for each in root.iter() if each.tag in ("title", "desc")}
        assert [bool(texts[each]) for each in ids] == [True, True]
        assert "style=" not in str(svg)
        assert "nan" not in str(svg).lower() and "inf" not in "".join(
            each.get("d", "") for each in root.iter()
        )
    assert chart.finding and "wide" in str(chart.wide) and "nar" in str(chart.narrow)


def test_scale_maps_ends_and_middle():
    log = Scale(1, 100, 0, 200, log=True)
    assert (log(1), log(10), log(100)) == pytest.approx((0, 100, 200))
    assert log.clamped(1e9) == pytest.approx(200)


def test_memory_bar_says_by_how_much():
    chart = CHARTS["memory"]
    assert "✗ 115 GB over" in str(chart.wide) and "✓ 4.00 GB free" in str(chart.wide)
    assert [row[-1] for row in chart.rows] == ["✗ 115 GB over", "✓ 4.00 GB free"]


def test_gain_names_break_even_and_memory_end():
    text = str(CHARTS["gain"].wide)
    assert "break-even 20" in text and "memory ends" in text and "you: batch 1, 2.00×" in text
    assert "no gain beyond batch 20" in CHARTS["gain"].finding


def test_roofline_escapes_and_states_the_ridge():
    assert "&lt;card&gt; &amp; co" in str(CHARTS["roofline"].wide)
    assert "75.9 FLOP per byte" in CHARTS["roofline"].finding  # 71e12 / 936e9


def test_operators_without_arithmetic_have_no_place():
    rows = [
        {"name": "kv_write", "phase": "decode", "flops": 0.0, "bytes": 1e6, "ms": 0.1, "bound": "memory"},
        {"name": "mlp", "phase": "decode", "flops": 2e9, "bytes": 1e9, "ms": 2.0, "bound": "memory"},
    ]
    found = operators_of({"operators": rows})
    assert [each.name for each in found] == ["mlp"]
    assert found[0].intensity == pytest.approx(2.0) and found[0].flops_per_s == pytest.approx(1e12)


def test_interval_is_decorative_and_on_the_axis():
    root = drawn(interval(2.0, 1.0, 4.0, (0.5, 8.0)))
    assert root.get("aria-hidden") == "true"
    bar = next(each for each in root.iter() if each.tag == "rect")
    # 0.5 … 8 is four doublings: 1 lies at 25 %, 4 at 75 %
    assert float(bar.get("x")) == pytest.approx(25) and float(bar.get("width")) == pytest.approx(50)


def test_trade_off_has_faster_above_and_smaller_to_the_right():
    root = drawn(CHARTS["pareto"].wide)
    square = next(each for each in root.iter() if each.tag == "rect")
    triangle = next(each for each in root.iter() if each.tag == "path" and "c2" in each.get("class"))
    circle = next(each for each in root.iter() if each.tag == "circle")
    tip = [float(part) for part in triangle.get("d")[1:].split("L")[0].split()]
    assert float(square.get("y")) < tip[1] < float(circle.get("cy")), "1.6 s, 4.4 s, 10 s from top to bottom"
    assert tip[0] > float(square.get("x")) > float(circle.get("cx")), "5 GB, 7 GB, 17 GB from right to left"
    assert [each.label for each in CHARTS["pareto"].keys] == ["lossless", "small loss", "more loss"]
    numbers = [each.text for each in root.iter() if each.tag == "text" and each.text in ("1", "2", "3")]
    assert numbers == ["1", "2", "3"]


def test_trade_off_outline_and_numbers_apart():
    # up (small y) and right (large x) are better: (15, 9) is inside what (20, 8) reaches
    assert steps([(10, 5), (20, 8), (15, 9)]) == [(10, 5), (10, 8), (20, 8)]
    close = [(100.0 + 2 * n, 100.0, 4.0, n, PLANS[0]) for n in range(4)]
    places = [place for place, _ in labels(close, 0, 300, 0, 300)]
    assert all(abs(a[0] - b[0]) >= 10 or abs(a[1] - b[1]) >= 12 for a in places for b in places if a != b)


def test_agreement_counts_what_lies_inside():
    assert CHARTS["agreement"].finding.startswith("1 of 2 points")


def node(number, lane="A", year=2023, **more):
    return Node(f"w{number}", f"Work {number}", f"W{number}", f"/papers/w{number}", year, lane, 1, **more)


def test_timeline_is_stable_and_ordered_by_year():
    nodes = [node(1, year=2020), node(2, year=2022), node(3, year=2024)]
    once, again = place(nodes, ["A"], 1000, 26), place(list(reversed(nodes)), ["A"], 1000, 26)
    where = {each.node.key: each.x for each in once.placed}
    assert where == {each.node.key: each.x for each in again.placed}
    assert where["w1"] < where["w2"] < where["w3"]


def test_few_works_are_links_many_are_cells():
    few = drawn(timeline([node(1), node(2)], [Edge("w1", "w2")], ["A"], title="t", finding="f"))
    assert len([each for each in few.iter() if each.tag == "a"]) == 2
    nodes = [node(number) for number in range(MOST_LINKS + 1)]
    cells = {("A", 2023): "/graph?lane=A&year=2023"}
    many = drawn(timeline(nodes, [], ["A"], title="t", finding="f", cell_links=cells))
    links = [each for each in many.iter() if each.tag == "a"]
    assert [each.get("aria-label") for each in links] == [f"A, 2023: {MOST_LINKS + 1} works"]


def test_nodes_keep_a_fingers_width_apart():
    placed = place([node(number) for number in range(40)], ["A"], 1000, 26).placed
    gaps = [math.hypot(a.x - b.x, a.y - b.y) for a in placed for b in placed if a is not b]
    assert min(gaps) >= 24
