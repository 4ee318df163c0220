"""Normal forms of identifiers: what the `Identifier` table stores, and how any spelling is turned into it.

The normal form is the key: lower case where the scheme ignores case, no version, no resolver, no escapes.
`ingest.identifiers` finds identifiers inside prose; here one identifier, or one URL, is read.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

NEW_ARXIV = r"\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}"
# Archives are not listed one by one: some no longer exist (atom-ph, chao-dyn), and that must not hide their papers.
OLD_ARXIV = r"[a-z][a-z-]{1,13}(?:\.[A-Za-z-]{2,})?/\d{2}(?:0[1-9]|1[0-2])\d{3}"
MIXED_ARXIV = rf"[a-z][a-z-]{{1,13}}(?:\.[A-Za-z-]{{2,}})?/{NEW_ARXIV}"
ARXIV = rf"(?:{MIXED_ARXIV}|{NEW_ARXIV}|{OLD_ARXIV})"
ARXIV_ID = re.compile(rf"(?P<id>{ARXIV})(?:v(?P<version>\d{{1,3}}))?", re.IGNORECASE)
ARXIV_URL = re.compile(
    r"(?:https?:)?(?://)?(?:[a-z0-9-]+\.)*(?<![a-z0-9-])arxiv\.org/(?:abs|pdf|html|ps|format|e-print|src|list)/",
    re.IGNORECASE,
)
ARXIV_DOI = re.compile(r"10\.48550/arxiv\.", re.IGNORECASE)
DOI_START = re.compile(r"10\.\d{4,9}(?:\.\d+)*/")
DOI_RESOLVER = re.compile(r"(?:https?://)?(?:dx\.|www\.)?doi\.org/|doi\s*[:=]?\s*", re.IGNORECASE)
OPENALEX = re.compile(r"(?:https?://)?(?:api\.)?(?:openalex\.org/)?(?:works/)?(?P<id>W\d{4,})", re.IGNORECASE)
S2 = re.compile(
    r"(?:https?://)?(?:www\.|api\.)?(?:semanticscholar\.org/)?(?:paper/)?(?:[^/\s]+/)?(?P<id>[0-9a-f]{40})/?",
    re.IGNORECASE,
)
S2_CORPUS = re.compile(r"(?:corpusid|s2cid)\s*:?\s*(?P<id>\d+)", re.IGNORECASE)
OPENREVIEW = re.compile(
    r"openreview\.net/(?:forum|pdf|attachment)\W+(?:.*&)?id=(?P<id>[\w-]+)", re.IGNORECASE
)
PAIRS = {")": "(", "]": "[", "}": "{", ">": "<"}
CASELESS_HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "huggingface.co")
TRACKING = ("utm_", "ref", "source", "fbclid", "gclid")


class ArxivId(NamedTuple):
    """An arXiv id without its version, and the version if one is given."""

    id: str
    version: int | None = None


def arxiv_id(text: str | None) -> ArxivId | None:
    """Reads one arXiv id: bare, prefixed, versioned, old, mixed, as an arXiv URL or as an arXiv DOI.

    >>> arxiv_id("https://www.arxiv.org/pdf/2307.08691v2.pdf")
    ArxivId(id='2307.08691', version=2)
    >>> arxiv_id("cs.LG/2101.03961").id, arxiv_id("math.GT/0309136").id, arxiv_id("10.48550/ARXIV.1707.08052").id
    ('2101.03961', 'math/0309136', '1707.08052')
    >>> arxiv_id("https://www.alphaxiv.org/abs/2307.08691") is None
    True
    """
    if not text:
        return None
    bare = unquote(html.unescape(text.strip()))
    bare = DOI_RESOLVER.sub("", bare, count=1) if ARXIV_DOI.search(bare) else bare
    bare = ARXIV_DOI.sub("", bare, count=1)
    bare = ARXIV_URL.sub("", bare, count=1)
    bare = re.sub(r"^(?:arxiv|eprint)\s*[:.]?\s*", "", bare, flags=re.IGNORECASE)
    bare = re.sub(r"\.pdf$|[?#].*$|/+$", "", bare, flags=re.IGNORECASE).strip(" .,;[](){}<>")
    bare = re.sub(r"\s*\[[a-z-]+(?:\.[a-z-]+)?$", "", bare, flags=re.IGNORECASE)
    match = ARXIV_ID.fullmatch(bare)
    return None if match is None else normal_arxiv(match["id"], match["version"])


def normal_arxiv(identifier: str, version: str | None) -> ArxivId:
    """`identifier` as matched by ARXIV_ID, in its one canonical spelling."""
    archive, _, number = identifier.rpartition("/")
    if archive and "." in number:  # a class in front of a new id says nothing
        archive = ""
    if archive:  # the subject class is not part of an old id: math.GT/0309136 is math/0309136
        number = f"{archive.split('.')[0].lower()}/{number}"
    return ArxivId(number, int(version) if version else None)


def balanced(text: str) -> str:
    """The longest start of `text` in which every bracket has its partner.

    >>> balanced("abc(1)2]"), balanced("abc(")
    ('abc(1)2', 'abc')
    """
    opened: list[tuple[str, int]] = []
    for position, character in enumerate(text):
        if character in "([{<":
            opened.append((character, position))
        elif character in PAIRS:
            if not opened or opened[-1][0] != PAIRS[character]:
                return text[:position]
            opened.pop()
    return text[: opened[0][1]] if opened else text


def doi(text: str | None) -> str | None:
    """The first DOI in `text`, without resolver, brackets, escapes or closing punctuation; case as given.

    >>> doi("see [10.5555/abc(1)2]"), doi("doi.org/10.5555%2Fabc%28"), doi("10.1000/x_1.")
    ('10.5555/abc(1)2', '10.5555/abc', '10.1000/x_1')
    """
    if not text or "10." not in text:
        return None
    if "%2f" in text.lower() or "doi.org/" in text.lower():
        text = unquote(text)
    if "&" in text or "\\" in text:
        text = re.sub(r"\\([_%&#/$])", r"\1", html.unescape(text))
    match = DOI_START.search(text)
    if match is None or (match.start() and text[match.start() - 1].isalnum()):
        return None
    rest = re.split(r"[\s\"“”'’‘`|\\^]", text[match.start() :], maxsplit=1)[0]
    head, tail = rest[: match.end() - match.start()], rest[match.end() - match.start() :]
    tail = balanced(tail).rstrip(".,;:!?*…")
    return head + tail if tail else None


def doi_key(text: str | None) -> str | None:
    """A DOI as key: lower case. arXiv DOIs are arXiv ids and have no key here.

    >>> doi_key("https://doi.org/10.1109/SC41404.2022.00051"), doi_key("10.48550/arXiv.1707.08052")
    ('10.1109/sc41404.2022.00051', None)
    """
    found = doi(text)
    return None if found is None or ARXIV_DOI.match(found) else found.lower()


def openalex_id(text: str | None) -> str | None:
    """
    >>> openalex_id("https://openalex.org/W4392222465"), openalex_id("w2741809807"), openalex_id("A5023888391")
    ('W4392222465', 'W2741809807', None)
    """
    match = OPENALEX.fullmatch(text.strip()) if text else None
    return match["id"].upper() if match else None


def s2_id(text: str | None) -> str | None:
    """A Semantic Scholar paper id (40 hexadecimal digits) or corpus id.

    >>> s2_id("CorpusID:215416146")
    'corpus:215416146'
    """
    if not text:
        return None
    if match := S2.fullmatch(text.strip()):
        return match["id"].lower()
    match = S2_CORPUS.search(text)
    return f"corpus:{match['id']}" if match else None


def url_key(text: str | None) -> str:
    """A URL without scheme, www, fragment, tracking, closing slash or `.git`; "" where there is none.

    >>> url_key("https://www.GitHub.com/NVIDIA/FasterTransformer.git/"), url_key('https://openreview.net/forum"id=vX')
    ('github.com/nvidia/fastertransformer', 'openreview.net/forum?id=vX')
    """
    if not text:
        return ""
    if match := OPENREVIEW.search(text):
        return f"openreview.net/forum?id={match['id']}"
    try:
        parts = urlsplit(text.strip() if "://" in text else f"https://{text.strip()}")
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return ""
    if "." not in host:
        return ""
    path = unquote(parts.path).rstrip("/").removesuffix(".git")
    path = re.sub(r"/(?:index\.(?:html?|php))$|/(?:tree|blob)/(?:main|master)$", "", path)
    if host in CASELESS_HOSTS:
        path = path.lower()
    query = urlencode([pair for pair in parse_qsl(parts.query) if not pair[0].lower().startswith(TRACKING)])
    return host + path + (f"?{query}" if query else "")


class Identified(NamedTuple):
    """What a person typed, as scheme and normal form."""

    scheme: str
    value: str


def identify(text: str) -> Identified | None:
    """The scheme and key of anything that is an identifier by itself; None for words.

    >>> identify("arXiv:2309.06180v1"), identify("10.1145/3600006.3613165")
    (Identified(scheme='arxiv', value='2309.06180'), Identified(scheme='doi', value='10.1145/3600006.3613165'))
    >>> identify("speculative decoding") is None
    True
    """
    text = text.strip()
    if not text or " " in text:
        return None
    if found := arxiv_id(text):
        return Identified("arxiv", found.id)
    if key := doi_key(text):
        return Identified("doi", key)
    if key := openalex_id(text):
        return Identified("openalex", key)
    if key := s2_id(text):
        return Identified("s2", key)
    if re.match(r"https?://|www\.", text, re.IGNORECASE) and (key := url_key(text)):
        return Identified("url", key)
    return None
