"""In which style a reference is written, and where its authors, title and tail part in each."""

from __future__ import annotations

import re

from ingest.identifiers import find_urls
from ingest.names import (
    IS_INITIALS,
    PARTICLES,
    VANCOUVER,
    Names,
    is_organisation,
    name,
    split_family_first,
    split_given_first,
    split_run_together,
    split_vancouver,
    strip_et_al,
)
from ingest.tail import STRICT_VENUE, VENUE, split_title

WORD_LENGTH = 40
STYLES = ("quoted", "author-year", "acm", "lncs", "plain")
YEAR = r"(?:1[6-9]|20)\d\d"
YEAR_IN_BRACKETS = re.compile(rf"\(\s*(?P<year>{YEAR})[a-z]?(?:,[^()]*)?\)\s*[.,:]?\s+|\(n\.\s?d\.\)\.?\s+")
YEAR_BETWEEN_STOPS = re.compile(rf"[.,]\s+\(?(?P<year>{YEAR})[a-z]?\)?\.\s+")
CLOSING = re.compile('[”“»"]')
CLOSING_TEX = re.compile("''|[\"”]")
QUOTED = re.compile(r"(?:^|[\s,.;:(])(?P<open>[“„«\"]|``)(?=\S)")
AFTER_TITLE = re.compile(r"(?:Accessed|URL|https?:|arXiv|doi|DOI|Available|Retrieved|\[Online)")
LONG_WORD_AND_STOP = re.compile(r"[^\W\d_]{3,}\.\s")
SENTENCE = re.compile(r"[.?!]\s+[^\W\d_]{4,}\s+(?!(?:and|amd|und)\b)[a-z]{3,}")
VENUE_BEFORE_YEAR = re.compile(r"[.?!]\s+In:?\s+[A-Z\d]|\bpages\s+\d|\bpp?\.\s*\d")
STOP = re.compile(r"[.?!]\s+")
SMALL_WORD = re.compile(r"(?<!\S)[a-z][\w-]+")
JOINING = frozenset(["and", "amd", "und", "et", "al", "others"])
FAMILY_FIRST = r"[^\W\d_][^,.;:\d]{0,40},\s+(?:[^\W\d_]{1,2}\.[\s-]?)+(?:,?\s*(?:Jr\.|Sr\.|I{2,3}\b|IV\b))?"
FAMILY_FIRST_LIST = re.compile(
    rf"{FAMILY_FIRST}(?:(?:,\s*|\s*)(?:(?:and|&)\s+)?{FAMILY_FIRST})*(?:,?\s*et al\.?,?\s+)?"
)
YEAR_BEFORE_QUOTE = re.compile(rf"[.,\s]\(?({YEAR})[a-z]?\)?$")
# Words that follow a quoted title; any other lower-case word shows that the quotation was part of the title.
BEHIND_QUOTE = re.compile(
    r"\s+(?!(?:in|at|on|from|to appear|presented|available|accessed|arxiv|doi|url|https?|ph\.?d|master|tech|vol|pp|no|"
    r"unpublished|preprint|blog)\b)[a-z]{3,}"
)
QUOTATION_AND_COLON = re.compile(r":\s+[^\W_]")
TITLE_GOES_ON = re.compile(r"\s+[A-ZÀ-Þ][a-z]+\s+[a-z][^.?!\d“”\"]{8,}\.\s+")
# Elsevier: "I. Family, Title, in: Venue, 2022, pp. 1–9." and "I. Family, Title, Venue 9 (8) (1997) 1735–1780."
COMMA_TITLE_TAIL = re.compile(
    rf",\s+(?=in:\s|[^,]{{2,120}}?\s\d+(?:\s\([^()]*\))?\s\({YEAR}\)\s+[\w:–-]+\.?(?:\s|$)|arXiv preprint)"
)
AND = re.compile(r"\s+(?:and|&)\s")
LNCS = re.compile(r"^(?P<authors>[^:“\"?]{3,2000}?(?:[^\W\d_]\.|et al\.?)):\s+(?=\S)")


def detect_style(text: str, *, truncated: bool = False) -> str:
    """Which of STYLES a reference is written in."""
    brackets, stops = YEAR_IN_BRACKETS.search(text), YEAR_BETWEEN_STOPS.search(text)
    if match := QUOTED.search(text):
        end = closing_quote(text, match.end("open"), match["open"])
        # A quotation inside a title is not the title: "Smith, J. (2020). The “what-if” question. …"
        start = match.start("open")
        if (
            end is not None
            and not quotation_opens_title(text, end)
            and all(year is None or year.end() >= start for year in (brackets, stops))
            and (text[end - 1] in ",.?!" or not BEHIND_QUOTE.match(text[end:].lstrip("”“»\"'")))
        ):
            return "quoted"
    lncs = LNCS.match(text)
    if lncs and not (brackets and brackets.start() < lncs.end()):
        return "lncs"
    if brackets and len(text) - brackets.end() > 8 and not (stops and stops.start() < brackets.start()):
        # "…, Neural Comput. 9 (8) (1997) 1735–1780.": nothing but pages behind the year
        return "plain" if ONLY_PAGES.match(text, brackets.end()) else "author-year"
    if stops:
        before = text[: stops.start()]
        titled = AFTER_TITLE.match(text, stops.end()) and LONG_WORD_AND_STOP.search(before)
        if not titled and "://" not in before and not holds_a_title(before):
            return "acm"
    first = text.split(",", 2)
    if truncated and not stops and len(first) > 2 and IS_INITIALS.match(first[1].strip()):
        return "author-year"  # cut inside the author list
    return "plain"


def holds_a_title(text: str) -> bool:
    """Whether more than names stands in what precedes a year between full stops.

    >>> holds_a_title("T. Dao. Fast things. In ICML, pages 1–6"), holds_a_title("LeCun Y. To be or not to be")
    (True, True)
    >>> holds_a_title("J. von der Berg and A. de la Cruz"), holds_a_title("vLLM Team")
    (False, False)
    """
    if SENTENCE.search(text) or VENUE_BEFORE_YEAR.search(text):
        return True
    _, *segments = STOP.split(text)
    return any(
        len([word for word in SMALL_WORD.findall(segment) if word not in PARTICLES and word not in JOINING])
        > 1
        for segment in segments
    )


def closing_quote(text: str, start: int, opening: str) -> int | None:
    """Where the title that opened at `start` closes: the outermost quotation wins over quotes inside the title.

    A closing mark ends the title if the title's punctuation stands before it; else the last mark does.
    """
    last = None
    for match in (CLOSING_TEX if opening == "``" else CLOSING).finditer(text, start):
        position, mark = match.start(), match[0]
        after = text[match.end() : match.end() + 1]
        if text[position - 1] in ",.?!" and (not after or after in " ,.;)[(" or last_mark(text, match.end())):
            return position
        if mark != opening or not after or not after.isalnum():
            last = position
    return last


def last_mark(text: str, start: int) -> bool:
    return CLOSING.search(text, start) is None


def quotation_opens_title(text: str, end: int) -> bool:
    """Whether the quotation that closes at `end` only opens the title: “Why me?”: Explaining …, “Why me?” Explaining …

    >>> text = "A. B. “Why trust you?” Explaining the predictions of any classifier. In KDD, 2016."
    >>> quotation_opens_title(text, text.index("”"))
    True
    >>> text = "A. B. “Why trust you?” Journal of Explaining. Springer, 2016."
    >>> quotation_opens_title(text, text.index("”"))
    False
    """
    behind = text[end:].lstrip("”“»\"'")
    if QUOTATION_AND_COLON.match(behind):
        return True
    if text[end - 1] not in "?!" or VENUE.match(behind.lstrip()):
        return False
    goes_on = TITLE_GOES_ON.match(behind)
    return goes_on is not None and STRICT_VENUE.match(behind, goes_on.end()) is not None


def split_quoted(text: str) -> tuple[Names, str, str, int | None]:
    match = QUOTED.search(text)
    if match is None:
        return split_plain(text)
    end = closing_quote(text, match.end("open"), match["open"])
    if end is None:
        return split_plain(text)
    before = text[: match.start("open")].strip(" ,.(")
    year = None
    if dated := YEAR_BEFORE_QUOTE.search(before):  # Chicago author-date
        year, before = int(dated[1]), before[: dated.start()]
    return read_names(before), text[match.end("open") : end], text[end:].lstrip("”“»\"'"), year


def split_author_year(text: str) -> tuple[Names, str, str, int | None]:
    match = YEAR_IN_BRACKETS.search(text)
    if match is None:
        cut = text.split("(")[0] if text.count("(") and re.search(r"\(\d{0,4}$", text) else text
        return read_names(cut.strip(" .")), "", "", None
    title, tail = split_title(text[match.end() :])
    return (
        read_names(text[: match.start()].strip(" ,")),
        title,
        tail,
        int(match["year"]) if match["year"] else None,
    )


def split_acm(text: str) -> tuple[Names, str, str, int | None]:
    match = YEAR_BETWEEN_STOPS.search(text)
    if match is None:
        return split_plain(text)
    title, tail = split_title(text[match.end() :])
    return (
        read_names(text[: match.start() + 1].strip(" ,"), run_together=True),
        title,
        tail,
        int(match["year"]),
    )


def split_lncs(text: str) -> tuple[Names, str, str, int | None]:
    match = LNCS.match(text)
    if match is None:
        return split_plain(text)
    title, tail = split_title(text[match.end() :])
    return read_names(match["authors"]), title, tail, None


def split_plain(text: str) -> tuple[Names, str, str, int | None]:
    """Authors. Title. Venue, year. The authors end at the first full stop that no initial owns."""
    if match := FAMILY_FIRST_LIST.match(text):
        title, tail = split_title(text[match.end() :])
        if title:
            return split_family_first(match[0].strip(" ,")), title, tail, None
    if (cut := end_of_initials(text)) is not None:
        if match := COMMA_TITLE_TAIL.search(text, cut):
            return (
                split_given_first(text[:cut].rstrip(", ")),
                text[cut : match.start()],
                text[match.end() :],
                None,
            )
        title, tail = split_title(text[cut:])
        return split_given_first(text[:cut].rstrip(", ")), *split_book_title(title, tail), None
    first, *others = text.split(",", 2)
    # "Vaswani A. Attention …" but not "Norman P. Jouppi, Cliff Young, …"
    head = first.split(".")[0]
    vancouver = bool(VANCOUVER.match(head)) and not (
        AND.search(head)
        or ("." in first and others and PERSON.match(others[0].strip()))
        or TWO_PEOPLE.match(text, len(head))
    )
    for match in re.finditer(r"\.\s+", text):
        before = text[: match.start()]
        last = re.split(r"[\s.]", before[-WORD_LENGTH:])[-1].lstrip("-‐–")
        # "Yu. Nesterov" begins a name with two letters; "X. Hu." and "Quoc V. Le." end one
        begins = len(last) == 1 or not re.split(r"[,;&]|\band\b", before)[-1][: -len(last)].strip(" .-‐–")
        initial = (
            len(last) <= 2
            and (last[:1].isupper() or len(last) == 1)
            and begins
            and not (vancouver and before[-2:-1] != ".")
        )
        if initial and not (vancouver and VANCOUVER.match(before.split(",")[-1].strip())):
            continue
        title, tail = split_title(text[match.end() :])
        if not title:
            break
        return read_names(before, run_together=False), title, tail, None
    if find_urls(text) or re.search(YEAR, text):
        title, tail = split_title(text)
        return Names(()), title, tail, None
    return Names(()), text.strip(" ."), "", None


def end_of_initials(text: str) -> int | None:
    """Where a title starts behind a comma: "I. Goodfellow, Y. Bengio, and A. Courville, Deep Learning. MIT Press"."""
    position = 0
    joined = False  # an "and" has gone by: the next name would be the last one
    for chunk in text.split(","):
        name_like = re.sub(r"^\s*(?:and|&)\s+", "", chunk.strip())
        if not position and not re.match(r"(?:[^\W\d_]\.[\s-]?)+[^\W\d_]", name_like):
            return None
        words = name_like.split()
        if position and words and words[0][-1:] != "." and name_like[0].isupper():
            if not joined and NAMES_GO_ON.match(text, position):  # "J. Zico Kolter, Zachary DeVito, and …"
                return None
            # A full stop inside is a title's end, unless it closes the list of names.
            sentence = len(words[0]) > 2 or (len(words) > 2 and words[1][:1].islower())  # "A survey on …"
            return position + len(chunk) - len(chunk.lstrip()) if sentence else None
        if re.search(r"[^\W\d_]{3,}\.\s", chunk) or "et al" in chunk:
            return None
        joined = joined or AND.search(chunk) is not None
        position += len(chunk) + 1
    return None


def split_book_title(title: str, tail: str) -> tuple[str, str]:
    """The title before an edition that follows behind a comma: "Programming, 3rd ed., vol. 1"."""
    if match := re.search(
        r",\s*(?=(?:\d+(?:st|nd|rd|th)|second|third|revised)\s+ed\b)", title, re.IGNORECASE
    ):
        return title[: match.start()], f"{title[match.end() :]}. {tail}"
    return title, tail


SPLITTERS = {
    "quoted": split_quoted,
    "author-year": split_author_year,
    "acm": split_acm,
    "lncs": split_lncs,
    "plain": split_plain,
}


def read_names(text: str, run_together: bool = False) -> Names:
    """Chooses the order in which a list of names is written, from its first entries."""
    text = text.strip()
    if not text or not re.search(r"\w", text):
        return Names(())
    listed, et_al = strip_et_al(text)
    chunks = [chunk.strip() for chunk in listed.split(",") if chunk.strip()]
    if not chunks:
        return Names((), et_al)
    if len(chunks) > 1 and IS_INITIALS.match(AND.split(chunks[1])[0].strip()):
        return split_family_first(text)
    if IS_INITIALS.match(chunks[0].split()[0]) and len(chunks[0].split()) > 1:
        if run_together and len(chunks) == 1 and len(re.findall(r"[^\W\d_]\.\s+[^\W\d_]{2,}", listed)) > 2:
            return split_run_together(text)
        return split_given_first(text.rstrip("."))
    if all(VANCOUVER.match(chunk) for chunk in chunks[:3]) and not is_organisation(chunks[0]):
        return split_vancouver(text)
    if len(chunks) > 1 and ";" in listed:
        return split_family_first(text)
    words = len(chunks[0].split())
    family_only = words == 1 or all(word in PARTICLES for word in chunks[0].split()[:-1])
    if len(chunks) > 1 and family_only and not is_organisation_like(chunks[0]):
        given, *others = re.split(
            r"\s+(?:and|&)\s+", listed.split(",", 1)[1].split(",", 1)[0].strip(), maxsplit=1
        )
        if len(given.split()) <= 2:
            # Chicago and MLA turn the first name round: "Vaswani, Ashish, Noam Shazeer, and Niki Parmar".
            behind = ", ".join([*others, *listed.split(",", 2)[2:]])
            rest = split_given_first(behind) if behind.strip(" ,") else Names(())
            return Names((name(chunks[0], given), *rest.names), et_al)
    first_piece = chunks[0].split(" and ")[0]
    if len(chunks) == 1 and sum(word not in PARTICLES for word in first_piece.split()) <= 3:
        return split_given_first(text.rstrip("."))  # one name with particles before the "and"
    if run_together and len(chunks) == 1 and words > 4 and not is_organisation(first_piece):
        return split_run_together(text)
    if words > 3 and run_together and re.search(r"\sand\s", chunks[0]) and len(chunks) == 1:
        return split_run_together(text)
    return split_given_first(text.rstrip("."))


ONLY_PAGES = re.compile(r"[a-z]?\d[\d:–-]*\.?\s*(?:(?:doi|https?)\b\S*.*)?$", re.IGNORECASE)
# "… V. Le and Yi Ma. ": an initial's stop, two names and a full stop
TWO_PEOPLE = re.compile(
    r"\.\s+[A-ZÀ-Þ][^\W\d_]*\s+and\s+(?:[A-ZÀ-Þ][^\W\d_]*\.?[\s-]){1,3}[A-ZÀ-Þ][^\W\d_]*\.\s"
)
ONE_PERSON = (
    r"(?:[A-ZÀ-ÞĀ-Ž][^\W\d_]*\.?[\s-]+|[a-zà-ÿ]\.[\s-]+|(?:de|da|do|del|der|den|van|von|la|le|las|di)\s+){1,4}"
    r"[A-ZÀ-ÞĀ-Ž][^\W\d_]*(?:[-’'][^\W\d_]+)*"
)
NAMES_GO_ON = re.compile(rf"\s*{ONE_PERSON}(?:,\s+{ONE_PERSON})*,?\s+(?:and|&)\s+{ONE_PERSON}\.\s")
PERSON = re.compile(r"^(?:[A-ZÀ-Þ][^\W\d_]*[.]?[\s-]){1,3}[A-ZÀ-Þ][^\W\d_]+$")
CAMEL_NAME = re.compile(r"^(?:Le|De|Di|Du|La|Mc|Mac|Van|Fitz|O[’'])[A-Z][a-z]+$")  # LeCun, DeVito, McAuley


def is_organisation_like(text: str) -> bool:
    """A single word that is no family name: "NVIDIA", "ggerganov", "vLLM"."""
    if CAMEL_NAME.match(text):
        return False
    return text.isupper() or text.islower() or bool(re.search(r"[a-z][A-Z]|\d", text))
