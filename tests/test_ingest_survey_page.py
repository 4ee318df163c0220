"""Survey pages, as text and as Markdown: what the row says, what the page added, what was cut."""

from pathlib import Path

import pytest

from ingest.errors import UnreadableSource
from ingest.sources.survey_page import looks_like_survey_page, parse_survey_page

FOLDER = Path(__file__).parent / "recorded" / "surveys"


@pytest.fixture(scope="module")
def text_page():
    return parse_survey_page((FOLDER / "page.txt").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def markdown_page():
    return parse_survey_page((FOLDER / "page.md").read_text(encoding="utf-8"))


def test_the_paper_that_the_page_is_about(text_page, markdown_page):
    assert text_page.subject.title == "A Survey of Imaginary Decoding"
    assert [one["family"] for one in text_page.subject.authors] == ["Example", "Sample"]
    assert (text_page.subject.year, text_page.subject.arxiv_id) == (2024, "2406.00001")
    assert [one["family"] for one in markdown_page.subject.authors] == ["Maker", "van der Writer"]


def test_every_row_is_read_and_the_stated_number_is_kept(text_page, markdown_page):
    assert [one.number for one in text_page.references] == list(range(1, 9))
    assert text_page.stated_count == len(text_page.references) == 8
    assert markdown_page.stated_count == len(markdown_page.references) == 7


def test_titles_are_whole_and_exact(text_page, markdown_page):
    assert [one.title for one in text_page.references] == [
        "Decoding faster: A made-up study",
        "Small models can also” dream” in steps",
        "acmeblas: Basic algebra on acme devices",
        "Acmelass: Templates for algebra",
        "Is it stable?",
        "Training things with feedback",  # the year stood inside the quotation marks
        "A long title about pruning",
        "Untold: A page without authors",
    ]
    assert [one.title for one in markdown_page.references] == [
        "A tensor machine for large learning",
        "Distillation for auto-regressive models",
        "Compression for large models: A survey",
        "Llm. int4 (): 4-bit products at scale",
        "Models with Imaginary Pathways",
        "How many layers and why? An analysis of depth",
        "Tasks and tutorials",
    ]


def test_a_dash_repeats_the_author_above_and_says_so(text_page):
    row = text_page.references[3]
    assert row.first_author == "ACME"
    assert row.notes == ("author: a dash, the same as in the row above",)


def test_identifiers_are_the_rows_own(text_page, markdown_page):
    rows = text_page.references
    assert (rows[0].arxiv_id, rows[0].arxiv_version) == ("2401.00011", 2)
    assert rows[1].arxiv_id is None  # the page added it, the survey does not print it
    assert {
        "kind": "arxiv",
        "text": "arXiv:2302.00022",
        "target": "https://arxiv.org/abs/2302.00022",
    } in rows[1].links
    assert rows[5].arxiv_id == "2203.00044"
    assert markdown_page.references[1].arxiv_id == "2306.00055"


def test_a_card_is_evidence_and_not_truth(markdown_page):
    """The card of row 3 covers half the title and points to another paper of another year."""
    row = markdown_page.references[2]
    assert (row.year, row.first_author) == (2024, "Cole")
    assert [link["kind"] for link in row.links] == ["card"]


def test_a_cut_row_is_marked_and_only_its_card_fills_in(text_page, markdown_page):
    cut = text_page.references[6]
    assert cut.truncated
    assert not cut.title_truncated
    assert cut.year == 2022  # stated in the venue's name
    assert not text_page.references[0].truncated
    row = markdown_page.references[4]
    assert row.truncated
    assert row.year == 2022
    assert set(row.notes) == {
        "title: from the card beside the cut row",
        "year: from the card beside the cut row",
    }


def test_back_references_and_links_are_not_part_of_the_row(markdown_page):
    rows = markdown_page.references
    assert rows[3].pages == ""
    assert rows[1].venue == "arXiv"
    assert rows[6].url == "https://github.com/acme/tasks"
    assert rows[6].kind == "software"


def test_an_empty_author_between_commas_is_nobody(text_page):
    assert [one["family"] for one in text_page.references[4].authors] == ["Fifth", "Sixth", "Seventh"]


def test_other_text_is_refused_with_what_was_expected():
    assert not looks_like_survey_page("Just some words.\n1. One\n")
    with pytest.raises(UnreadableSource) as caught:
        parse_survey_page("Just some words.\n")
    assert "References" in caught.value.hint
