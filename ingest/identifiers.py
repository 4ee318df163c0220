"""Identifiers in prose and in link targets. Normal forms are defined in `kb.identifiers` and re-exported here."""

from __future__ import annotations

import re

from kb.identifiers import (
    ARXIV,
    ArxivId,
    Identified,
    arxiv_id,
    doi,
    doi_key,
    identify,
    normal_arxiv,
    openalex_id,
    s2_id,
    url_key,
)

__all__ = [
    "ArxivId",
    "Identified",
    "arxiv_id",
    "clean_url",
    "doi",
    "doi_key",
    "find_arxiv",
    "find_urls",
    "identify",
    "is_scholarly",
    "openalex_id",
    "s2_id",
    "url_key",
]

# A bare number such as 2101.03961 is an arXiv id only next to the word, to "abs/" or inside an arXiv URL.
IN_PROSE = re.compile(
    rf"(?:(?<![a-z])arxiv(?:\.org/(?:abs|pdf|html|ps|format)/|[\s:.,]*(?:e-?prints?|preprints?)?[\s:.,]*(?:arxiv)?[\s:.,]*)"
    rf"(?:abs/)?|\babs/|10\.48550/arxiv\.)(?P<id>{ARXIV})(?:v(?P<version>\d{{1,3}}))?(?!\d)",
    re.IGNORECASE,
)
URL = re.compile(r"(?:https?://|www\.)[^\s<>\"“”|]+(?:\"id=[\w-]+)?", re.IGNORECASE)
BROKEN_HOST = re.compile(r"(https?://[\w.-]+)\. (org|com|io|ai|net|edu|gov|dev)\b")
SCHOLARLY = re.compile(
    r"(?:^|[./])(?:arxiv\.org|doi\.org|openreview\.net|aclanthology\.org|aclweb\.org|neurips\.cc|nips\.cc|mlr\.press|"
    r"jmlr\.org|acm\.org|ieee\.org|ieeexplore\.ieee\.org|usenix\.org|springer\.com|sciencedirect\.com|nature\.com|"
    r"semanticscholar\.org|thecvf\.com|aaai\.org|biorxiv\.org|medrxiv\.org|ssrn\.com|wiley\.com|oup\.com|pnas\.org|"
    r"science\.org|mlsys\.org|vldb\.org|isca-speech\.org|siam\.org|hal\.science|jstor\.org)(?:/|$)",
    re.IGNORECASE,
)


def find_arxiv(text: str) -> ArxivId | None:
    """The first arXiv id that the text calls one.

    >>> find_arxiv("arXiv preprint cs.LG/2101.03961."), find_arxiv("CoRR, abs/1706.03762v5"), find_arxiv("pages 2101.03961")
    (ArxivId(id='2101.03961', version=None), ArxivId(id='1706.03762', version=5), None)
    """
    lower = text.lower()
    starts = [at for word in ("arxiv", "abs/") if (at := lower.find(word)) >= 0]
    if not starts:
        return None
    match = IN_PROSE.search(text, max(0, min(starts) - len("10.48550/")))
    return None if match is None else normal_arxiv(match["id"], match["version"])


def clean_url(text: str) -> str:
    """A URL as found in prose: closing punctuation and unpaired brackets do not belong to it.

    >>> clean_url('https://openreview.net/forum"id=vXx.'), clean_url("https://github.com/a/b).")
    ('https://openreview.net/forum?id=vXx', 'https://github.com/a/b')
    """
    from kb.identifiers import balanced

    url = text.replace('"id=', "?id=").replace("\\_", "_").replace("\\%", "%").replace("\\#", "#")
    return balanced(url).rstrip(".,;:!*'’”")


def find_urls(text: str) -> list[str]:
    """Every URL in the text, in order; a host broken by a blank ("lmsys. org") is mended first."""
    if "://" not in text and "www." not in text:
        return []
    return [clean_url(match) for match in URL.findall(BROKEN_HOST.sub(r"\1.\2", text))]


def is_scholarly(url: str) -> bool:
    """Whether the host publishes papers (a link there does not make the reference a web page)."""
    return bool(SCHOLARLY.search(url_key(url)))
