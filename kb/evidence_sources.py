"""Where a reported figure can be read: the address behind the free text of its source."""

from __future__ import annotations

import re

ADDRESS = re.compile(r"https?://\S+")
ARXIV_ID = re.compile(r"(?:arXiv|et al\.)[:\s]\s*(\d{4}\.\d{4,5})", re.IGNORECASE)
REPOSITORY = re.compile(r"([A-Za-z0-9][\w-]*/[\w.-]+) (?:(issue|PR) #(\d+)|(\S+\.(?:md|rst)))$")
# "EAGLE-3 paper (secondary source)", "Wanda v3 (secondary source)", "CALM abstract": a work by the name of its technique
NAMED = re.compile(r"(\S.*?) (?:paper|abstract|full text|v\d+)\b")


def arxiv_of(source: str) -> str | None:
    """The arXiv id that a source names.

    >>> arxiv_of("Zhou et al. 2024 survey arXiv:2404.14294"), arxiv_of("Wanda v3")
    ('2404.14294', None)
    """
    found = ARXIV_ID.search(source)
    return found[1] if found else None


def named_in(source: str) -> str | None:
    """The technique after which a source is named.

    >>> named_in("EAGLE-3 paper (secondary source)"), named_in("pytorch/ao README.md")
    ('EAGLE-3', None)
    """
    found = NAMED.match(source)
    return found[1] if found else None


def source_url(source: str) -> str:
    """The address of a source, "" where its text leads nowhere.

    >>> source_url("IST-DASLab/gptq README.md")
    'https://github.com/IST-DASLab/gptq/blob/HEAD/README.md'
    >>> source_url("vllm-project/vllm PR #2566"), source_url("Orca paper notes, secondary source")
    ('https://github.com/vllm-project/vllm/pull/2566', '')
    """
    if found := ADDRESS.search(source):
        return found[0].rstrip(").,;")
    if arxiv := arxiv_of(source):
        return f"https://arxiv.org/abs/{arxiv}"
    if found := REPOSITORY.match(source):
        repository, kind, number, path = found.groups()
        if path:
            return f"https://github.com/{repository}/blob/HEAD/{path}"
        return f"https://github.com/{repository}/{'issues' if kind == 'issue' else 'pull'}/{number}"
    return ""
