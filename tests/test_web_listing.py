"""Facets, paging and addresses; pure."""

from web.listing import Facet, groups, paged, select
from web.snapshot import plain, work_key
from web.urls import link, reference_path, toggled, unknown_parameters

ITEMS = [
    {"name": "a", "phase": "decode", "tags": ["x", "y"]},
    {"name": "b", "phase": "decode", "tags": ["y"]},
    {"name": "c", "phase": "prefill", "tags": ["x"]},
]
FACETS = [
    Facet("phase", "Phase", lambda item: [item["phase"]]),
    Facet("tag", "Tag", lambda item: item["tags"]),
]


def test_values_of_one_facet_are_alternatives_and_facets_must_all_hold():
    kept, _ = select(ITEMS, FACETS, {"tag": ["x", "y"], "phase": ["decode"]})
    assert [item["name"] for item in kept] == ["a", "b"]


def test_counts_say_what_another_choice_would_give():
    _, counts = select(ITEMS, FACETS, {"phase": ["decode"]})
    assert counts["phase"] == {"decode": 2, "prefill": 1}  # its own choice does not narrow it
    assert counts["tag"] == {"x": 1, "y": 2}


def test_facet_links_toggle_and_go_back_to_the_first_page():
    _, counts = select(ITEMS, FACETS, {"phase": ["decode"]})
    pairs = [("phase", "decode"), ("page", "3")]
    phase = groups(FACETS, counts, {"phase": ["decode"]}, "/t", pairs)[0]
    links = {value.value: value.href for value in phase.values}
    assert links == {"decode": "/t", "prefill": "/t?phase=decode&phase=prefill"}


def test_a_chosen_value_without_results_can_still_be_removed():
    _, counts = select(ITEMS, FACETS, {"phase": ["both"]})
    phase = groups(FACETS, counts, {"phase": ["both"]}, "/t", [("phase", "both")])[0]
    assert [(value.value, value.count) for value in phase.values if value.chosen] == [("both", 0)]


def test_pages_cover_everything_once():
    seen = []
    for number in (1, 2, 3):
        page = paged(list(range(7)), number, "/t", [], 3)
        seen += page.items
    assert seen == list(range(7)) and page.following == "" and page.previous == "/t?page=2"
    assert paged([], 9, "/t", []).first == 0


def test_defaults_stay_out_of_addresses():
    assert link("/r", {"a": 1, "b": "", "c": None, "d": 2.5}, {"a": 1}) == "/r?d=2.5"
    assert toggled([("a", "1")], "a", "1") == []
    assert unknown_parameters(["a", "b", "b"], ["a"]) == ["b"]
    assert reference_path("zhou", 101) == "/surveys/zhou?page=2#r101"


def test_identifiers_have_one_key():
    same = {
        "2306.00978",
        "arXiv:2306.00978v5",
        "https://arxiv.org/abs/2306.00978",
        "https://arxiv.org/pdf/2306.00978v2.pdf",
    }
    assert {work_key(each) for each in same} == {"2306.00978"}
    assert work_key("https://doi.org/10.1145/3600006.3613165") == "10.1145/3600006.3613165"
    assert plain("LLM.int8()") == "llmint8"
