"""The packaged literature as data: sorted, unique, every source resolves, every decision names real rows."""

import re

import pytest

from ingest.curated import DATA, DECISION_COLUMNS, KINDS, STATUSES, read_csv, read_jsonl
from kb.identifiers import arxiv_id, doi_key, url_key

SURVEYS = {"zhou": 313, "yuan": 254, "park": 140}


@pytest.fixture(scope="module")
def rows():
    return {slug: read_jsonl(f"surveys/{slug}.jsonl") for slug in SURVEYS}


def test_each_survey_is_complete_and_in_order(rows):
    for slug, count in SURVEYS.items():
        subject, *listed = rows[slug]
        assert subject.key == "subject"
        assert [one.number for one in listed] == list(range(1, count + 1))


def test_each_survey_is_described_once():
    described = read_csv("surveys/sources.csv")
    assert [row["slug"] for row in described] == list(SURVEYS)
    for row in described:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["retrieved"])
        assert re.fullmatch(r"[0-9a-f]{64}", row["sha256"])
        assert row["locator"].startswith("https://")


def test_identifiers_are_in_their_normal_form(rows):
    for one in (one for listed in rows.values() for one in listed):
        if one.arxiv_id:
            assert arxiv_id(one.arxiv_id) == (one.arxiv_id, None)
        if one.doi:
            assert doi_key(one.doi) == one.doi.lower()
        if one.url:
            assert url_key(one.url)


def test_no_title_carries_what_stands_around_it(rows):
    """Venues, identifiers, closing punctuation, page numbers of the survey, quotation marks around."""
    faults = []
    for slug, listed in rows.items():
        for one in listed:
            title = one.title
            if (
                re.search(
                    r"arxiv|https?:|\bpp\.|,\s*(?:19|20)\d\d$|[,;:.]$|\s\d+(?:, \d+)+$", title, re.IGNORECASE
                )
                or title.startswith(("“", '"', "In ", "in "))
                or title != " ".join(title.split())
                or (title and len(title) < 7)
            ):
                faults.append(f"{slug}:{one.number} {title!r}")
    assert faults == []


def test_years_are_plausible_and_no_arxiv_id_is_younger_than_its_row(rows):
    for slug, listed in rows.items():
        for one in listed:
            if one.year is None:
                continue
            assert 1980 <= one.year <= 2024, f"{slug}:{one.number}"
            if one.arxiv_id and one.arxiv_id[:2].isdigit():
                assert one.year >= 2000 + int(one.arxiv_id[:2]) - 1, f"{slug}:{one.number}"


def test_first_authors_look_like_names(rows):
    for slug, listed in rows.items():
        for one in listed:
            for author in one.authors:
                family = author["family"]
                assert family
                assert not family.endswith(","), f"{slug}:{one.number}"
                assert not re.search(r"\bet al\b|\band\b|https?:", family), f"{slug}:{one.number} {family}"


def test_looked_up_records_name_their_source():
    records = read_jsonl("curated.jsonl")
    keys = [one.key for one in records]
    assert len(keys) == len(set(keys))
    for one in records:
        assert any(re.match(r"source: https://\S+$", note) for note in one.notes), one.key
        assert one.title
        assert one.arxiv_id or one.doi or one.url, one.key


def test_decisions_are_sourced_and_name_rows_that_exist(rows):
    names = {f"{slug}:{one.number}" for slug, listed in rows.items() for one in listed}
    names |= {f"curated:{one.key}" for one in read_jsonl("curated.jsonl")}
    decisions = read_csv("decisions.csv")
    seen = set()
    for row in decisions:
        assert tuple(row) == DECISION_COLUMNS
        assert row["kind"] in KINDS
        assert row["status"] in STATUSES
        assert {row["a"], row["b"]} <= names, row
        assert row["source"].startswith("https://")
        assert row["basis"]
        pair = frozenset((row["a"], row["b"]))
        assert pair not in seen
        seen.add(pair)


def test_the_folder_holds_what_is_registered_and_nothing_else():
    found = {path.name for path in (DATA / "surveys").iterdir()}
    assert found == {*(f"{slug}.jsonl" for slug in SURVEYS), "sources.csv"}
