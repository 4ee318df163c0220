"""Who showed a figure: the work that its source names, and the address where it was read."""

import pytest

from kb import store_web


@pytest.fixture
def figures(reader):
    return {row["id"]: row for row in store_web.every_evidence(reader)}


@pytest.mark.parametrize(
    "ident, paper, url",
    [
        # the survey's own Table 4 about AWQ is the survey's figure, not the AWQ paper's
        ("E0001", "2404.14294", "https://arxiv.org/abs/2404.14294"),
        # "IST-DASLab/marlin README.md" is nobody's paper but its technique's
        ("E0817", "2408.11743", "https://github.com/IST-DASLab/marlin/blob/HEAD/README.md"),
    ],
)
def test_a_figure_belongs_to_the_work_that_shows_it(figures, reader, ident, paper, url):
    row = figures[ident]
    found = reader.rows(
        "SELECT work_id FROM identifier WHERE scheme = 'arxiv' AND value = :paper", {"paper": paper}
    )
    assert row["work_id"] in {each["work_id"] for each in found}
    assert row["source_url"] == url


def test_a_comparison_belongs_to_the_paper_that_made_it(figures, reader):
    """Figures of EAGLE that are printed in the EAGLE-3 paper."""
    eagle3 = reader.one("SELECT work_id FROM identifier WHERE scheme = 'arxiv' AND value = '2503.01840'")
    rows = [
        r for r in figures.values() if r["source"].startswith("EAGLE-3 paper") and r["technique"] == "eagle"
    ]
    assert rows and {row["work_id"] for row in rows} == {eagle3["work_id"]}


def test_most_figures_can_be_reached_by_a_click(figures):
    reached = [row for row in figures.values() if row["source_url"] or row["paper_id"]]
    assert len(reached) == len(figures)
    assert sum(bool(row["source_url"]) for row in figures.values()) > 0.6 * len(figures)
