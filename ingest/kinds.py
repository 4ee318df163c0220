"""Paper, book, software, website or product: what a reference is, judged by what it prints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ingest.identifiers import is_scholarly, url_key
from ingest.names import is_organisation

if TYPE_CHECKING:
    from ingest.references import Reference

KINDS = ("paper", "book", "software", "website", "product")
FORGES = ("github.com", "gitlab.com", "bitbucket.org", "pypi.org", "sourceforge.net", "codeberg.org")
VENDORS = re.compile(
    r"(?:^|\.)(?:nvidia|amd|intel|qualcomm|apple|graphcore|cerebras|groq|tesla|motor1|habana)\.(?:com|ai)$"
)
ARTICLE = re.compile(
    r"/(?:blogs?|news|posts?|articles?|press)(?:/|$)|^(?:blog|news)\.|\d{4}[/-]\d{2}", re.IGNORECASE
)
BLOG = re.compile(r"\bblog\b", re.IGNORECASE)
FORGE_AS_VENUE = re.compile(
    r"(?:github|gitlab|hugging ?face)\b(?:\s+(?:repository|repo|hub|page|project))?\W*$", re.I
)
REPORT_TITLE = re.compile(
    r"\b(?:technical report|tech report|system card|model card|white ?paper)\b", re.IGNORECASE
)
SOFTWARE_TITLE = re.compile(r"\[(?:computer software|software|source code|code)\]", re.IGNORECASE)
PUBLISHERS = (
    r"(?:SIAM|MIT Press|Springer(?:[\s-]Verlag)?|Wiley|Elsevier|Academic Press|Prentice[\s-]Hall|Addison[\s-]Wesley|"
    r"O[’']Reilly(?: Media)?|McGraw[\s-]Hill|Morgan Kaufmann|CRC Press|Chapman and Hall(?:/CRC)?|\w+ University Press|"
    r"Cambridge University Press|Oxford University Press|W\. ?H\. Freeman|Athena Scientific)\b"
)
PUBLISHER = re.compile("^" + PUBLISHERS, re.IGNORECASE)
AFTER_PLACE = re.compile(r"(?:^|[\s,])[A-Z][\w.]*:\s+" + PUBLISHERS, re.IGNORECASE)


def kind_of(reference: Reference, tail: str = "", url: str | None = None) -> str:
    """The kind of a parsed reference; `tail` is what the source prints behind the title, `url` its link.

    An identifier, a scholarly host or a venue makes it a paper; a link alone makes it software on a code forge,
    a product on a vendor's product pages, and a website elsewhere.
    """
    if SOFTWARE_TITLE.search(reference.title):
        return "software"
    if reference.arxiv_id:
        return "paper"
    venue = reference.venue
    tail = tail.strip(" .,”")
    if FORGE_AS_VENUE.match(venue):  # "GitHub repository", as if it were a journal
        venue = ""
    in_blog = BLOG.search(venue) is not None
    if in_blog and not (reference.volume and (reference.pages or reference.issue)):
        return "website"
    if (
        (PUBLISHER.match(tail) or AFTER_PLACE.search(tail))
        and not reference.pages
        and not re.match(r"in[:\s]", tail, re.IGNORECASE)
    ):
        return "book"
    if reference.edition and reference.publisher:
        return "book"
    url = url or reference.url
    if url and not is_scholarly(url):
        if reference.doi or (venue and not in_blog):
            return "paper"
        return kind_of_link(url)
    if reference.doi or venue or url or reference.et_al:
        return "paper"
    # An organisation alone, with neither venue nor link, names its product: "HuggingFace (2022). Hugging face accelerate."
    if len(reference.authors) == 1 and not reference.authors[0].get("given"):
        family = reference.authors[0]["family"]
        if (
            is_organisation(family)
            and re.search(r"[a-z][A-Z]|^[A-Z]{2,}", family)
            and not reference.truncated
            and not REPORT_TITLE.search(reference.title)
        ):
            return "software"
    return "paper"


def kind_of_link(url: str) -> str:
    """What a page is by its address alone.

    >>> kind_of_link("https://github.com/NVIDIA/cutlass"), kind_of_link("https://www.nvidia.com/en-us/data-center/tensor-cores/")
    ('software', 'product')
    >>> kind_of_link("https://github.com/vllm-project/vllm/pull/2279"), kind_of_link("https://lmsys.org/blog/2023-11-21/")
    ('website', 'website')
    """
    key = url_key(url)
    host, _, path = key.partition("/")
    if any(host == forge or host.endswith("." + forge) for forge in FORGES):
        return (
            "website"
            if re.search(r"/(?:pull|issues|discussions|wiki|commit)(?:/|$)", "/" + path)
            else "software"
        )
    hostname = (urlsplit(url if "://" in url else f"https://{url}").hostname or "").lower()
    if ARTICLE.search("/" + path) or (ARTICLE.search(hostname) and "rocm" not in hostname):
        return "website"
    if hostname.startswith("developer.") or hostname.startswith("docs."):
        return "software" if path and "/" not in path else "website"
    if VENDORS.search(hostname):
        return "product"
    return "website"
