"""Recognises what a file holds by its content and reads it; names and endings do not matter."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NamedTuple

from ingest.errors import UnreadableSource
from ingest.records import BrokenRecord, Item, Listing, broken
from ingest.references import Reference, parse_reference
from ingest.sources.arxiv import looks_like_arxiv, parse_arxiv
from ingest.sources.bibtex import STARTS_LINE, parse_bibtex
from ingest.sources.crossref import looks_like_crossref, parse_crossref
from ingest.sources.csl import looks_like_csl, parse_csl_item
from ingest.sources.openalex import looks_like_openalex, parse_openalex_work
from ingest.sources.own import is_own, parse_own
from ingest.sources.ris import parse_ris, tag_of
from ingest.sources.semantic_scholar import looks_like_s2, parse_s2_paper
from ingest.sources.survey_page import looks_like_survey_page, parse_survey_page
from ingest.stream import json_values

HEAD_BYTES = 64 * 1024
MAX_LINE_CHARACTERS = 8 * 2**20
MAX_PAGE_CHARACTERS = 64 * 2**20  # pages are read whole; 64 million characters are some 100,000 references
READABLE = (
    "a survey page (text or Markdown), Crossref, CSL, OpenAlex, Semantic Scholar JSON, BibTeX, RIS, arXiv Atom, "
    "or a plain list of references"
)


class Opened(NamedTuple):
    """What a source is, and its records."""

    kind: str  # survey | crossref | bibtex | ris | csl-json | arxiv | openalex | s2 | json | text
    items: Iterator[Item | Listing]


def cp1252(error: UnicodeError) -> tuple[str, int]:
    """Bytes that are not UTF-8 are read as Windows-1252, which is what old exports are as a rule."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start : error.end]
    return bad.decode("cp1252", "replace"), error.end


codecs.register_error("kb-cp1252", cp1252)


def open_source(stream: BinaryIO) -> Opened:
    """Recognises a byte stream and reads it lazily."""
    reader = io.BufferedReader(stream, HEAD_BYTES * 4) if not hasattr(stream, "peek") else stream  # type: ignore[type-var, arg-type]
    with whole_archive():
        head = reader.peek(HEAD_BYTES)[:HEAD_BYTES]  # type: ignore[attr-defined]
    if head.startswith(b"\x1f\x8b"):
        return open_source(io.BufferedReader(gzip.GzipFile(fileobj=reader, mode="rb"), HEAD_BYTES * 4))  # type: ignore[arg-type]
    refuse_binary(head)
    return open_lines(text_lines(reader, head))  # type: ignore[arg-type]


@contextmanager
def whole_archive() -> Iterator[None]:
    """gzip's complaints as one of ours."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadableSource(f"the compressed file is damaged ({error})", hint="get it again") from error


def refuse_binary(head: bytes) -> None:
    names = {
        b"%PDF": "a PDF",
        b"PK\x03\x04": "a zip or office file",
        b"SQLite format 3": "an SQLite database",
    }
    for magic, what in names.items():
        if head.startswith(magic):
            raise UnreadableSource(f"this is {what}", hint=f"give {READABLE}")
    if b"\0" in head and not wide_encoding(head):
        sample = head[:4096]
        if sample.count(b"\0") > len(sample) // 20:
            raise UnreadableSource("this is a binary file", hint=f"give {READABLE}")


def wide_encoding(head: bytes) -> str:
    """The UTF-16 or UTF-32 of a text, by its mark or, without one, by where the zeros of its first letters stand.

    >>> wide_encoding("a b".encode("utf-16-le")), wide_encoding("a b".encode("utf-16")), wide_encoding(b"a b")
    ('utf-16-le', 'utf-16', '')
    """
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = head[:2048]
    half = len(sample) // 2
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if half and odd > 0.6 * half and even < 0.02 * half:
        return "utf-16-le"
    return "utf-16-be" if half and even > 0.6 * half and odd < 0.02 * half else ""


def text_lines(stream: BinaryIO, head: bytes) -> Iterator[str]:
    """Lines of text in whatever encoding and with whatever line ends; a line without end comes in pieces."""
    encoding = wide_encoding(head) or "utf-8-sig"
    wrapper = io.TextIOWrapper(stream, encoding=encoding, errors="kb-cp1252", newline=None)
    try:
        while True:
            with whole_archive():
                line = wrapper.readline(MAX_LINE_CHARACTERS)
            if not line:
                return
            yield line.replace("\0", " ") if "\0" in line else line
    finally:
        # The stream is the caller's to close; a wrapper that is thrown away would close it, and complain.
        with suppress(ValueError):
            wrapper.detach()


def open_lines(lines: Iterable[str]) -> Opened:
    """Recognises text by its first lines."""
    iterator = iter(lines)
    head: list[str] = []
    size = 0
    for line in iterator:
        head.append(line)
        size += len(line)
        if size >= HEAD_BYTES:
            break
    start = "".join(head)
    everything = chain(head, iterator)
    stripped = start.lstrip("\ufeff \t\r\n\x1e")  # \x1e begins a value in JSON text sequences
    if not stripped:
        raise UnreadableSource("there is nothing to read", hint=f"give {READABLE}")
    if (
        stripped[0] in "{["
        and not re.match(r"\[\d{1,4}\]\s", stripped)
        and not re.match(r"\[[^\]{}\"]*\]\(", stripped)
    ):
        return open_json(everything)
    if looks_like_arxiv(start):
        return Opened("arxiv", parse_arxiv(everything))
    if is_ris(head):
        return Opened("ris", parse_ris(everything))
    if first_sign(head) == "bibtex":
        return Opened("bibtex", parse_bibtex(everything))
    return open_page(everything, head)


def chain(head: list[str], rest: Iterator[str]) -> Iterator[str]:
    yield from head
    yield from rest


def is_ris(head: list[str]) -> bool:
    lines = (line.rstrip("\r\n").lstrip("\ufeff") for line in head[:400])
    tags = [found[0] for line in lines if (found := tag_of(line, loose=False))]
    return "TY" in tags or (len(tags) >= 3 and bool({"TI", "T1", "AU", "A1"} & set(tags)))


def first_sign(head: list[str]) -> str:
    """bibtex if the first line that is neither blank nor a comment begins an entry."""
    for line in head:
        text = line.strip().lstrip("\ufeff")
        if not text or text.startswith("%"):
            continue
        return "bibtex" if STARTS_LINE.match(text) else ""
    return ""


def open_page(lines: Iterator[str], head: list[str]) -> Opened:
    """What has to be read whole: survey pages and plain lists; BibTeX with prose in front comes last."""
    if len(head) > 2000 and any(STARTS_LINE.match(line) for line in head):
        return Opened("bibtex", parse_bibtex(lines))
    parts: list[str] = []
    size = 0
    for line in lines:
        parts.append(line)
        size += len(line)
        if size > MAX_PAGE_CHARACTERS:
            raise UnreadableSource(
                "too long for a page of references", hint="split the file, or give JSON lines or BibTeX"
            )
    text = "".join(parts)
    if looks_like_survey_page(text):
        return Opened("survey", iter([read_page(text)]))
    if any(STARTS_LINE.match(line) for line in parts):
        return Opened("bibtex", parse_bibtex(parts))
    if looks_like_list(parts):
        return Opened("text", parse_list(parts))
    if re.search(r"<html|<!doctype html", text[:4000], re.IGNORECASE):
        raise UnreadableSource("this is HTML", hint="save the page as text or Markdown")
    first = " ".join(text.split())[:60]
    raise UnreadableSource(f"nothing that we read begins with {first!r}", hint=f"give {READABLE}")


def read_page(text: str) -> Listing:
    page = parse_survey_page(text)
    return Listing(page.subject, page.references, page.stated_count)


YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
MARK = re.compile(r"^\s*(?:\[\w{1,12}\]|\(?\d{1,4}[.)])\s+")


def looks_like_list(lines: list[str]) -> bool:
    """Whether most lines are references: long, with a year or a number in front."""
    filled = [line for line in lines if line.strip()]
    good = sum(len(line.strip()) >= 25 and bool(YEAR.search(line) or MARK.match(line)) for line in filled)
    return bool(filled) and good >= 0.7 * len(filled)


def parse_list(lines: list[str]) -> Iterator[Item]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        reference = parse_reference(text)
        if reference.title or reference.doi or reference.arxiv_id:
            yield with_key(reference, f"line {number}")
        else:
            yield broken(f"line {number}", "no title and no identifier found", text)


def with_key(reference: Reference, key: str) -> Reference:
    from dataclasses import replace

    return replace(reference, key=key)


def open_json(lines: Iterator[str]) -> Opened:
    """JSON of any of the kinds; the first record that is recognised names the source."""
    pairs = records_of(lines)
    waiting: list[Item | Listing] = []
    kind = ""
    for found, item in pairs:
        waiting.append(item)
        if found:
            kind = found
            break
        if len(waiting) >= 50:
            break
    if not kind:
        reason = next(
            (item.reason for item in waiting if isinstance(item, BrokenRecord)), "it holds no record"
        )
        raise UnreadableSource(f"JSON, but {reason}", hint=f"give {READABLE}")

    def rest() -> Iterator[Item | Listing]:
        yield from waiting
        for _found, item in pairs:
            yield item

    return Opened(kind, rest())


def records_of(lines: Iterable[str]) -> Iterator[tuple[str, Item | Listing]]:
    """(kind, record) of every record in a JSON text; kind "" for what is broken."""
    number = 0
    for value in json_values(lines):
        if value.error:
            number += 1
            yield "", broken(f"record {value.number}", f"not JSON ({value.error})", value.text)
            continue
        for data in unwrap(value.data):
            number += 1
            yield read_record(data, number)


def unwrap(data: Any) -> Iterator[Any]:
    """The records inside a provider's envelope."""
    if isinstance(data, list):
        for one in data:
            yield from unwrap(one)
        return
    if isinstance(data, dict):
        message = data.get("message")
        if isinstance(message, dict) and isinstance(message.get("items"), list):
            yield from message["items"]
            return
        for key in ("results", "data", "items", "references"):
            inside = data.get(key)
            if isinstance(inside, list) and not {"title", "DOI", "paperId", "authorships"} & data.keys():
                yield from inside
                return
        # citeproc keeps its items by id
        values = list(data.values())
        if values and all(isinstance(one, dict) and looks_like_csl(one) for one in values):
            yield from ({"id": key, **one} for key, one in data.items())
            return
    yield data


def read_record(data: Any, number: int) -> tuple[str, Item | Listing]:
    """One decoded record of any kind."""
    try:
        if isinstance(data, dict):
            if looks_like_openalex(data):
                return "openalex", parse_openalex_work(data)
            if looks_like_s2(data):
                return "s2", read_s2(data)
            if is_crossref(data):
                work = parse_crossref(data)
                if work.subject.title or work.references:
                    return "crossref", Listing(work.subject, work.references, work.stated_count)
                return "", broken(f"record {number}", "a Crossref work without title and references", data)
            if looks_like_csl(data):
                return "csl-json", parse_csl_item(data, number)
            if is_own(data):
                return "json", parse_own(data, number)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
        reason = (
            str(error) if isinstance(error, ValueError) else f"a field is not of the expected kind ({error})"
        )
        return "", broken(f"record {number}", reason, data)
    keys = ", ".join(list(data)[:6]) if isinstance(data, dict) else type(data).__name__
    return "", broken(f"record {number}", f"not a record that we know (it has: {keys or 'nothing'})", data)


def is_crossref(data: Mapping[str, Any]) -> bool:
    if "message" in data:
        return looks_like_crossref(data)
    signs = {"reference", "reference-count", "references-count", "is-referenced-by-count", "indexed"}
    return looks_like_crossref(data) and (bool(signs & data.keys()) or isinstance(data.get("title"), list))


def read_s2(data: Mapping[str, Any]) -> Item | Listing:
    """A paper, with what it cites where the record holds that too."""
    subject = parse_s2_paper(data)
    cited = data.get("references")
    if not isinstance(cited, list):
        return subject
    from dataclasses import replace

    references: list[Item] = []
    for place, one in enumerate(cited, start=1):
        try:
            references.append(replace(parse_s2_paper(one), number=place))
        except (ValueError, AttributeError) as error:
            references.append(broken(f"{subject.key} reference {place}", str(error), one))
    expected = data.get("referenceCount")
    return Listing(subject, tuple(references), expected if isinstance(expected, int) else None)
