"""Crossref works: the DOI decides identity, the unstructured text wins, dates keep their precision."""

import pytest

from ingest.errors import UnreadableSource
from ingest.sources.crossref import date_of, parse_crossref


def work(**fields):
    return {"message": {"DOI": "10.1000/own", "type": "journal-article", "title": ["A title"], **fields}}


def listed(*entries):
    return parse_crossref(work(reference=list(entries))).references


def test_the_unstructured_text_wins_over_the_split_fields():
    (found,) = listed(
        {
            "key": "e1",
            "volume-title": "Ada Example, Bob Sample, and Carl Third.",
            "author": "Third Carl",
            "year": "1908",
            "unstructured": "Ada Example, Bob Sample, and Carl Third. 2019. Patient decoding. arxiv: 1908.09355 [cs.CL]",
        }
    )
    assert (found.title, found.year, found.first_author) == ("Patient decoding", 2019, "Example")
    assert found.arxiv_id == "1908.09355"
    assert found.key == "e1"


def test_the_doi_is_kept_beside_the_preprint():
    (found,) = listed(
        {
            "DOI": "10.1201/9781003162810-13",
            "unstructured": "Amir Example. 2021. A Survey. arxiv: 2103.13630 [cs.CV]",
        }
    )
    assert (found.doi, found.arxiv_id) == ("10.1201/9781003162810-13", "2103.13630")


def test_an_arxiv_doi_is_an_arxiv_id():
    (found,) = listed({"DOI": "10.48550/arXiv.2309.06180"})
    assert (found.doi, found.arxiv_id) == (None, "2309.06180")


def test_a_row_with_nothing_but_a_doi_stays_without_title():
    (found,) = listed({"DOI": "10.1109/MM.2017.37", "doi-asserted-by": "publisher"})
    assert (found.title, found.year, found.doi, found.number) == ("", None, "10.1109/MM.2017.37", 1)


def test_a_row_without_text_is_read_from_its_fields():
    (found,) = listed(
        {
            "article-title": "On things",
            "author": "Doe, J.",
            "year": "2004a",
            "journal-title": "J. Things",
            "volume": "3",
        }
    )
    assert (found.title, found.year, found.venue, found.first_author) == (
        "On things",
        2004,
        "J. Things",
        "Doe",
    )
    assert found.et_al  # only the first author is kept by Crossref


def test_names_with_lost_letters_are_noted():
    (found,) = listed(
        {"unstructured": "Maciej Example and Micha? Krutul. 2024. A paper on things. arxiv: 2401.04081"}
    )
    assert any("letters were lost" in note for note in found.notes)


@pytest.mark.parametrize(
    ("message", "date"),
    [
        ({"published-online": {"date-parts": [[2010, 12, 29]]}, "published-print": {"date-parts": [[2011, 3]]}}, "2011-03"),
        ({"issued": {"date-parts": [[2018, 1]]}, "published-online": {"date-parts": [[2018, 1, 24]]}}, "2018-01-24"),
        ({"issued": {"date-parts": [[2018, 1]]}, "published-online": {"date-parts": [[2017, 12, 24]]}}, "2018-01"),
        ({"issued": {"date-parts": [[2016, 10]]}}, "2016-10"),
        ({"issued": {"date-parts": [[2024]]}}, "2024"),
        ({"issued": {"date-parts": [[None]]}}, ""),
        ({"issued": {"date-parts": []}}, ""),
        ({}, ""),
    ],
)  # fmt: skip
def test_dates_are_as_precise_as_the_record(message, date):
    assert date_of(message) == date


def test_markup_in_titles_does_not_make_words():
    found = parse_crossref(
        work(title=["Decay of <mml:math> <mml:mi>Ca</mml:mi> </mml:math><sup>38</sup> :"])
    ).subject
    assert found.plain_title.replace(" ", "") == "DecayofCa38:"


@pytest.mark.parametrize(
    ("notice", "status"),
    [
        ("retraction", "retracted"),
        ("withdrawal", "withdrawn"),
        ("erratum", ""),
        ("expression_of_concern", ""),
    ],
)
def test_only_a_retraction_or_withdrawal_is_one(notice, status):
    assert (
        parse_crossref(work(**{"updated-by": [{"type": notice, "DOI": "10.1000/notice"}]})).subject.status
        == status
    )
    assert (
        parse_crossref(work(**{"update-to": [{"type": notice, "DOI": "10.1000/OWN"}]})).subject.status
        == status
    )


def test_a_notice_about_another_work_is_not_itself_retracted():
    found = parse_crossref(work(**{"update-to": [{"type": "retraction", "DOI": "10.1000/other"}]}))
    assert found.subject.status == ""


def test_other_json_is_refused_with_what_was_expected():
    with pytest.raises(UnreadableSource):
        parse_crossref('{"items": []}')
    with pytest.raises(UnreadableSource):
        parse_crossref("not json")


def test_nulls_of_a_deposit_cost_nothing_else():
    work = parse_crossref(
        {
            "DOI": "10.1000/x", "type": "journal-article", "title": ["A work"], "reference-count": 2,
            "author": [None, {"family": "Doe"}], "update-to": "none",
            "reference": [None, {"key": "r2", "unstructured": "J. Smith. Foo. Bar, 2020."}],
        }
    )  # fmt: skip
    assert [one["family"] for one in work.subject.authors] == ["Doe"]
    assert [(one.number, one.title) for one in work.references] == [(2, "Foo")] and work.stated_count == 2
