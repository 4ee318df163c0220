"""Survey pages: a paper's page with its reference list, as text of an HTML page or as Markdown.

Links that the page's authors added (cards, "find", arXiv links) are evidence beside the row, not part of it: one of
them is known to point to another paper. They are kept in `Reference.links`; only where a row was cut before its
title does the card's title stand in, and `notes` say so.

    python -m ingest.sources.survey_page PAGE > references.jsonl      # facts only, no raw text
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from ingest.errors import UnreadableSource
from ingest.identifiers import arxiv_id, find_arxiv
from ingest.names import split_given_first
from ingest.references import Reference, parse_reference
from kb.text import nfc

ITEM = re.compile(r"^\s{0,4}(?P<number>\d{1,4})\.\s+(?P<text>\S.*)$")
HEADING = re.compile(r"^\s*(?:#+\s*)?(?:References|Bibliography|Works cited)\s*:?\s*$", re.IGNORECASE)
COUNT = re.compile(r"^\s*(?P<count>\d+) references\b", re.IGNORECASE)
LINK = re.compile(r"\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>(?:[^()\s]|\([^()\s]*\))*)\)")
PAGE_ARXIV = re.compile(r"\s*—\s*\[?arXiv:(?P<id>[^\]\s]+)\]?(?:\([^)]*\))?\s*$")
DASHES = re.compile(r"^(?:—|–|-|_){2,}\s*[,.]?\s*")
CARD_YEAR = re.compile(r"/(?P<slug>[a-z0-9’'-]+-(?P<year>(?:19|20)\d\d)-[a-z0-9-]+)/?$")
SEARCH_HOSTS = ("scholar.google.", "www.google.")


class SurveyPage(NamedTuple):
    """The paper that a page is about, its references, and how many the page says it has."""

    subject: Reference
    references: tuple[Reference, ...]
    stated_count: int | None = None


def looks_like_survey_page(text: str) -> bool:
    """Whether `text` is a page with a numbered reference list."""
    lines = text.splitlines()
    heading = next((number for number, line in enumerate(lines) if HEADING.match(line)), None)
    return heading is not None and any(ITEM.match(line) for line in lines[heading + 1 : heading + 12])


def parse_survey_page(text: str) -> SurveyPage:
    """Reads a survey page, text or Markdown."""
    if not looks_like_survey_page(text):
        raise UnreadableSource(
            "no numbered reference list found",
            hint="a survey page needs a line 'References' followed by '1. …', '2. …'",
        )
    lines = text.splitlines()
    heading = next(number for number, line in enumerate(lines) if HEADING.match(line))
    stated = next(
        (int(m["count"]) for line in lines[heading : heading + 5] if (m := COUNT.match(line))), None
    )
    references: list[Reference] = []
    for number, row in rows(lines[heading + 1 :]):
        previous = references[-1] if references else None
        references.append(parse_row(row, number, previous))
    return SurveyPage(parse_subject(lines[:heading]), tuple(references), stated)


def rows(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The numbered rows; lines that go on without a number belong to the row above, a blank line ends it."""
    number, parts = 0, [""]
    for line in lines:
        match = ITEM.match(line)
        if match and int(match["number"]) == number + 1:
            if number:
                yield number, " ".join(parts)
            number, parts = int(match["number"]), [match["text"]]
        elif number and parts and line.strip():
            parts.append(line.strip())
        elif number and not line.strip():
            yield number, " ".join(parts)
            parts = []
            break
    if number and parts:
        yield number, " ".join(parts)


def parse_row(row: str, number: int, previous: Reference | None = None) -> Reference:
    """One row of the list, with the page's own additions taken off and kept as links."""
    row, links = strip_additions(nfc(row))
    same_author = DASHES.match(row)
    reference = parse_reference(DASHES.sub("Anonymous, ", row) if same_author else row, number=number)
    if same_author and previous is not None:
        note = "author: a dash, the same as in the row above"
        reference = replace(reference, authors=previous.authors, et_al=previous.et_al, notes=(note,))
    card = next((link for link in links if link["kind"] == "card"), None)
    if reference.truncated and card:
        reference = complete_from_card(reference, card)
    return replace(reference, links=tuple(links))


def complete_from_card(reference: Reference, card: dict[str, str]) -> Reference:
    """A row that was cut before its title or year: the card beside it is the only witness."""
    notes = list(reference.notes)
    if not reference.title and not card["text"].endswith("…"):
        reference = replace(reference, title=card["text"])
        notes.append("title: from the card beside the cut row")
    match = CARD_YEAR.search(card["target"])
    if reference.year is None and match:
        reference = replace(reference, year=int(match["year"]), date=match["year"])
        notes.append("year: from the card beside the cut row")
    return replace(reference, notes=tuple(notes))


def strip_additions(row: str) -> tuple[str, list[dict[str, str]]]:
    """The row as the survey prints it, and the links that the page added."""
    links: list[dict[str, str]] = []

    def unlink(match: re.Match[str]) -> str:
        text, target = match["text"].strip(), match["target"]
        if any(host in target for host in SEARCH_HOSTS):
            return ""
        if text == "↗":
            links.append({"kind": "link", "text": "", "target": target})
            return ""
        if target.startswith("http") and text.startswith(("http", "www.")):
            return text
        if arxiv_id(target):
            if not text.lower().startswith("arxiv:"):
                return text
            links.append({"kind": "arxiv", "text": text, "target": target})
            return "" if match.string[: match.start()].rstrip().endswith("—") else text
        links.append({"kind": "card", "text": text, "target": target})
        return text if not match.string[: match.start()].rstrip().endswith("… —") else ""

    row = re.sub(r"\s+(?:find|↗)\s*$", "", row)
    row = LINK.sub(unlink, row)
    while (cut := re.sub(r"\s+(?:find|↗|—)\s*$", "", row)) != row:
        row = cut
    if match := PAGE_ARXIV.search(row):
        links.append({"kind": "arxiv", "text": f"arXiv:{match['id']}", "target": match["id"]})
        row = row[: match.start()]
    return row.strip(), links


def parse_subject(lines: list[str]) -> Reference:
    """The paper that the page is about: front matter if there is any, else its "Cite as" line and BibTeX."""
    text = "\n".join(lines)
    front = front_matter(lines)
    bibtex = dict(re.findall(r"^\s*(\w+)\s*=\s*\{+(.*?)\}+,?\s*$", text, re.MULTILINE))
    title = front.get("title") or bibtex.get("title") or next((line for line in lines if line.strip()), "")
    authors = front.get("authors") or bibtex.get("author") or ""
    year = re.search(r"\d{4}", front.get("year") or bibtex.get("year") or "")
    found = arxiv_id(front.get("arxiv") or bibtex.get("eprint")) or find_arxiv(text)
    names = split_given_first(authors)
    return Reference(
        title=nfc(title),
        authors=names.names,
        et_al=names.et_al,
        year=int(year[0]) if year else None,
        date=year[0] if year else "",
        venue="arXiv" if found else "",
        arxiv_id=found.id if found else None,
        key="subject",
    )


def front_matter(lines: list[str]) -> dict[str, str]:
    """The keys of a `---` block, lists joined by commas."""
    if not lines or lines[0].strip() != "---":
        return {}
    found: dict[str, str] = {}
    for line in lines[1:]:
        if line.strip() == "---":
            break
        key, _, value = line.partition(":")
        value = value.strip()
        if value.startswith("["):
            value = ", ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', value))
        found[key.strip()] = value.strip('"')
    return found


def main(arguments: list[str]) -> int:
    """Prints a page's references as JSON lines of facts."""
    from pathlib import Path

    page = parse_survey_page(Path(arguments[0]).read_text(encoding="utf-8"))
    for reference in (page.subject, *page.references):
        print(json.dumps(reference.as_json(), ensure_ascii=False, sort_keys=True))
    return 0


if __name__ == "__main__":
    import sys

    raise SystemExit(main(sys.argv[1:]))
