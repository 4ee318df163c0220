"""Identifiers as people and publishers write them; kinds of public bug reports, several inputs each."""

import pytest

from ingest.identifiers import (
    arxiv_id,
    doi,
    doi_key,
    find_arxiv,
    find_urls,
    identify,
    openalex_id,
    s2_id,
    url_key,
)


@pytest.mark.parametrize(
    ("text", "identifier", "version"),
    [
        ("2307.08691", "2307.08691", None),
        ("arXiv:2307.08691v2", "2307.08691", 2),
        ("0704.0001", "0704.0001", None),
        ("https://www.arxiv.org/pdf/2307.08691v2.pdf", "2307.08691", 2),
        ("arxiv.org/html/2307.08691v1", "2307.08691", 1),
        ("http://export.arxiv.org/abs/2307.08691", "2307.08691", None),
        ("https://arxiv.org/abs/hep-th/9711200", "hep-th/9711200", None),
        ("https://arxiv.org/abs/cs/0508053", "cs/0508053", None),
        ("atom-ph/9601001", "atom-ph/9601001", None),
        ("chao-dyn/9705021v3", "chao-dyn/9705021", 3),
        ("http://arxiv.org/abs/quant-ph/0112019v1", "quant-ph/0112019", 1),
        ("math.GT/0309136", "math/0309136", None),
        ("arXiv:hep-th/1601.07616", "1601.07616", None),
        ("cs.LG/2101.03961", "2101.03961", None),
        ("10.48550/ARXIV.1707.08052", "1707.08052", None),
        ("https://doi.org/10.48550/arXiv.2309.06180", "2309.06180", None),
        ("2402.17764 [cs.CL]", "2402.17764", None),
    ],
)
def test_every_spelling_of_an_arxiv_id_is_read(text, identifier, version):
    assert arxiv_id(text) == (identifier, version)


@pytest.mark.parametrize(
    "text",
    [
        "https://www.alphaxiv.org/abs/2307.08691",
        "2313.00001",
        "10.1109/MM.2017.37",
        "2307.086",
        "",
        None,
        "notarxiv.org/abs/2307.08691",
    ],
)
def test_what_only_looks_like_an_arxiv_id_is_none(text):
    assert arxiv_id(text) is None


@pytest.mark.parametrize(
    ("text", "identifier"),
    [
        ("arXiv preprint arXiv:2306.13649.", "2306.13649"),
        ("arxiv: 2402.01771 [cs.CL]", "2402.01771"),
        ("arXiv preprint 2302.01318 (2023)", "2302.01318"),
        ("arXiv preprint cs.LG/2101.03961. 15", "2101.03961"),
        ("arxiv e-prints, art. arXiv preprint arXiv:2112.04426", "2112.04426"),
        ("CoRR, abs/1706.03762", "1706.03762"),
        ("URL https://arxiv.org/abs/2203.02155, vol. 13", "2203.02155"),
        ("arXiv:math/0309136v2 [math.GT]", "math/0309136"),
        ("doi:10.48550/arXiv.2205.14135", "2205.14135"),
    ],
)
def test_an_arxiv_id_is_found_in_prose(text, identifier):
    assert find_arxiv(text).id == identifier


@pytest.mark.parametrize("text", ["pages 2101.03961", "vol. 24 824–24 837, 2022", "in 2023 60th DAC"])
def test_a_number_alone_is_no_arxiv_id(text):
    assert find_arxiv(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [10.5555/abc(1)2]", "10.5555/abc(1)2"),
        ("doi.org/10.5555%2Fabc%28", "10.5555/abc"),
        ("(https://doi.org/10.1145/3600006.3613165).", "10.1145/3600006.3613165"),
        ("DOI: 10.1109/SC41404.2022.00051;", "10.1109/SC41404.2022.00051"),
        ("doi = {10.1000/a\\_b}", "10.1000/a_b"),
        ("“10.1201/9781003162810-13”", "10.1201/9781003162810-13"),
        (
            "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2",
            "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2",
        ),
        ("10.1000/x&lt;1&gt;", "10.1000/x<1>"),
        ("version 10.2 of the tool", None),
        ("", None),
    ],
)
def test_a_doi_is_found_and_freed_of_its_surroundings(text, expected):
    assert doi(text) == expected


def test_a_doi_keeps_its_case_and_its_key_does_not():
    assert doi("10.1109/SC41404.2022.00051") == "10.1109/SC41404.2022.00051"
    assert doi_key("10.1109/SC41404.2022.00051") == doi_key("https://DOI.org/10.1109/sc41404.2022.00051")


def test_an_arxiv_doi_is_an_arxiv_id_and_no_doi():
    assert doi_key("10.48550/ARXIV.1707.08052") is None
    assert identify("10.48550/ARXIV.1707.08052") == ("arxiv", "1707.08052")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://github.com/NVIDIA/FasterTransformer.", "http://www.github.com/nvidia/fastertransformer/"),
        ("https://github.com/a/b.git", "https://github.com/A/B/tree/main"),
        ("https://openreview.net/forum?id=vXxardq6db", "https://openreview.net/pdf?id=vXxardq6db"),
        ("https://Example.org/Path/?utm_source=x#top", "example.org/Path"),
    ],
)
def test_urls_of_one_page_share_a_key(one, other):
    assert url_key(find_urls(one)[0] if "://" in one else one) == url_key(other) != ""


def test_urls_of_different_pages_do_not():
    assert url_key("https://example.org/a?id=1") != url_key("https://example.org/a?id=2")
    assert url_key("https://example.org/A") != url_key("https://example.org/a")  # only some hosts ignore case


def test_urls_in_prose_lose_punctuation_and_are_mended():
    assert find_urls("See https://vicuna.lmsys. org (accessed 14 April 2023)") == ["https://vicuna.lmsys.org"]
    assert find_urls("(https://example.org/a_(b)).") == ["https://example.org/a_(b)"]
    assert find_urls('https://openreview.net/forum"id=kOBkxFRKTA') == [
        "https://openreview.net/forum?id=kOBkxFRKTA"
    ]


def test_provider_ids():
    assert openalex_id("https://api.openalex.org/works/W2741809807") == "W2741809807"
    assert s2_id("https://www.semanticscholar.org/paper/" + "0a" * 20) == "0a" * 20
    assert s2_id("not an id") is None


def test_words_are_no_identifier():
    assert identify("quantization") is None
    assert identify("Attention is all you need") is None
