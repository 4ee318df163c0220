"""In which style a reference is written, and where its authors, title and tail part in each."""

from __future__ import annotations

import re

from ingest.identifiers import find_urls
from ingest.name_lists import AND, is_organisation_like, read_names
from ingest.names import (
    IS_INITIALS,
    ORGANISATION,
    PARTICLES,
    VANCOUVER,
    Names,
    name,
    split_family_first,
    split_given_first,
)
from ingest.tail import ABBREVIATIONS, STRICT_VENUE, THESIS, VENUE, split_title

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
VENUE_BEFORE_YEAR = re.compile(r"(?:[.?!]\s+[Ii]n:?|,\s+in:)\s+[A-Z\d]|\bpages\s+\d|\bpp?\.\s*\d")
BEHIND_ET_AL = re.compile(r"\bet al\.,?\s+[^\W\d_]")
STOP = re.compile(r"[.?!]\s+")
SMALL_WORD = re.compile(r"(?<!\S)[a-z][\w-]+")
SMALL_WORDS = re.compile(r",\s(?:[^\s,]+\s)*(?!and\b|van\b|von\b|de\b)[a-z]{2,}\s(?!and\b)[^\s,]+")
TWO_VANCOUVER = re.compile(r"[^,]+, (?:[a-z]+ )?[A-ZÀ-ÞĀ-Ž][^\s,]+ [A-ZÀ-ÞĀ-Ž]{1,3}[,.]")
STARTS_WITH_INITIAL = re.compile(r"(?:and |& )?[^\W\d_]\.")
JOINING = frozenset(["and", "amd", "und", "et", "al", "others"])
FAMILY_FIRST = r"['’]?[^\W\d_][^,.;:\d]{0,40},\s+(?:(?!(?:Mr|Dr|No|Vs|pp)\.)[^\W\d_]{1,2}\.[\s-]?)+(?:,?\s*(?:Jr\.|Sr\.|I{2,3}\b|IV\b))?"
FAMILY_FIRST_LIST = re.compile(
    rf"{FAMILY_FIRST}(?:(?:[,;]\s*|\s*)(?:(?:and|&)\s+)?{FAMILY_FIRST})*(?:,?\s*et al\.?,?\s+)?"
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
    rf",\s+(?=in:\s|[^,]{{2,120}}?\s\d+(?:\s\([^()]*\))?\s\({YEAR}\)\s+[\w:–-]+\.?(?:\s|$)|arXiv preprint|arXiv:|"
    rf"[^,]{{2,120}}?\s\d+,\s[\w–-]+\s\({YEAR}\)|in\s[A-Z\d](?:[^.]|Vol\.){{8,200}}\((?:[^()]+,\s)?{YEAR}\)|"
    rf"\({YEAR}\)\.|https?://|{THESIS}|"
    rf"(?:\d(?:st|nd|rd|th)\sed\.,\s)?(?:[A-Z]\w+\s)?(?:University\sPress|Press|Springer|Wiley|Elsevier)(?:,\s[^,]+)?,\s{YEAR}|"
    rf"(?:University\sof\s[A-Z]\w+|[A-Z]\w+\sUniversity),\s{YEAR})"
)
ORGANISATION_AND_COLON = re.compile(r"^(?P<authors>[^\W\d_][\w-]*(?: [\w-]+){0,4}):\s+(?=\S)")
YEAR_ENDS = re.compile(rf"\({YEAR}\)\.?(?:\s+(?:https?:|doi)\S*)?\s*$")
LNCS = re.compile(r"^(?P<authors>[^:“\"?]{3,2000}?(?:[^\W\d_]\.|et al\.?)):\s+(?=\S)")
SINGLE_QUOTED = re.compile(r"[‘'](?P<title>[^\s‘'].{6,400}?)[’'][,.]\s+")
PAGES_BEHIND = re.compile(r"pp?\.\s*\d")
SENTENCE_BEFORE = re.compile(r"[^\W\d_]{2,}\.\s")
ONLY_PAGES = re.compile(r"[a-z]?\d[\d:–-]*\.?\s*(?:(?:doi|https?)\b\S*.*)?$", re.IGNORECASE)
# "… V. Le and Yi Ma. ": an initial's stop, two names and a full stop
TWO_PEOPLE = re.compile(
    r"\.\s+[A-ZÀ-Þ][^\W\d_]*\s+and\s+(?:[A-ZÀ-Þ][^\W\d_]*\.?[\s-]){1,3}[A-ZÀ-Þ][^\W\d_]*\.\s"
)
# Each blank ends exactly one word, so that a long list is read in one way only and in linear time.
ONE_PERSON = r"(?:(?:[A-ZÀ-ÞĀ-Ž][^\s,.]*|(?:[^\W\d_]\.-?)+|de|da|do|del|der|den|van|von|la|le|las|di)\s+){1,4}[A-ZÀ-ÞĀ-Ž][^\s,.]*"
NAMES_GO_ON = re.compile(rf"\s*{ONE_PERSON}(?:,\s+{ONE_PERSON})*,?\s+(?:and|&)\s+{ONE_PERSON}\.\s")
PERSON = re.compile(r"^(?:[A-ZÀ-Þ][^\W\d_]*[.]?[\s-]){1,3}[A-ZÀ-Þ][^\W\d_]+$")


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
    lncs = LNCS.match(text) or organisation_and_colon(text)
    if lncs and not (brackets and brackets.start() < lncs.end()):
        return "lncs"
    if brackets and year_ends_tail(text, brackets):
        brackets = None
    if brackets and len(text) - brackets.end() > 8 and not (stops and stops.start() < brackets.start()):
        # "…, Neural Comput. 9 (8) (1997) 1735–1780.": nothing but pages behind the year
        return "plain" if ONLY_PAGES.match(text, brackets.end()) else "author-year"
    if stops:
        before = text[: stops.start()]
        titled = AFTER_TITLE.match(text, stops.end()) and (
            LONG_WORD_AND_STOP.search(before)
            or (". " in before and "," in before and VANCOUVER.match(before.split(",", 1)[0]))
            or (", (" in stops[0] and (SMALL_WORDS.search(before) or ends_in_a_title(before)))
        )
        if not titled and "://" not in before and not holds_a_title(before):
            return "acm"
    first = text.split(",", 2)
    if truncated and not stops and len(first) > 2 and IS_INITIALS.match(first[1].strip()):
        return "author-year"  # cut inside the author list
    return "plain"


def ends_in_a_title(text: str) -> bool:
    """Whether the last piece of "E.J. Hu, Y. Shen, Preprint culture" is none of its names, which begin with initials."""
    return STARTS_WITH_INITIAL.match(text) is not None and not STARTS_WITH_INITIAL.match(
        text.rsplit(", ", 1)[-1]
    )


def year_ends_tail(text: str, year: re.Match[str]) -> bool:
    """Whether a year in brackets follows a venue or an address, not the authors: "… in ICML 1–9 (2020). doi:10.1/x"."""
    before = text[: year.start()].rstrip()
    if "://" in before or VENUE_BEFORE_YEAR.search(before):
        return True
    if PAGES_BEHIND.match(text, year.end()):
        return True
    return AFTER_TITLE.match(text, year.end()) is not None and (
        before[-1:].isdigit() or holds_a_title(before)
    )


def organisation_and_colon(text: str) -> re.Match[str] | None:
    """The match of "OpenAI: Title. Venue (2023)": a name that is an organisation's, in a style whose year ends in brackets.

    >>> organisation_and_colon("vLLM Team: Fast things. IEEE Micro 43(3), 44–51 (2019)") is not None
    True
    >>> organisation_and_colon("FlashAttention: Fast things. https://github.com/x, 2023.") is not None
    False
    """
    match = ORGANISATION_AND_COLON.match(text)
    if match is None or YEAR_ENDS.search(text, match.end()) is None:
        return None
    first = match["authors"]
    return match if ORGANISATION.search(first) or (" " not in first and is_organisation_like(first)) else None


def holds_a_title(text: str) -> bool:
    """Whether more than names stands in what precedes a year between full stops.

    >>> holds_a_title("T. Dao. Fast things. In ICML, pages 1–6"), holds_a_title("LeCun Y. To be or not to be")
    (True, True)
    >>> holds_a_title("J. von der Berg and A. de la Cruz"), holds_a_title("vLLM Team")
    (False, False)
    """
    if SENTENCE.search(text) or VENUE_BEFORE_YEAR.search(text) or BEHIND_ET_AL.search(text):
        return True
    _, *segments = STOP.split(text)
    return any(
        ": " in segment
        or len(
            [word for word in SMALL_WORD.findall(segment) if word not in PARTICLES and word not in JOINING]
        )
        > 1
        for segment in segments
    )


def closing_quote(text: str, start: int, opening: str) -> int | None:
    """Where the title that opened at `start` closes: the outermost quotation wins over quotes inside the title.

    A closing mark ends the title if the title's punctuation stands before it; else the last mark does.
    """
    last = None
    marks = CLOSING_TEX if opening == "``" else CLOSING
    for match in marks.finditer(text, start):
        position, mark = match.start(), match[0]
        after = text[match.end() : match.end() + 1]
        closes = not after or after in " ,.;)[(" or marks.search(text, match.end()) is None
        if text[position - 1] in ",.?!" and closes:
            return position
        if mark != opening or not after or not after.isalnum():
            last = position
    return last


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
    quoted = SINGLE_QUOTED.match(text, match.end())  # Harvard: "Chen, M. (2021) ‘Title’, Journal, 12(3)"
    title, tail = (quoted["title"], text[quoted.end() :]) if quoted else split_title(text[match.end() :])
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
    match = LNCS.match(text) or organisation_and_colon(text)
    if match is None:
        return split_plain(text)
    title, tail = split_title(text[match.end() :])
    return read_names(match["authors"]), title, tail, None


def split_plain(text: str) -> tuple[Names, str, str, int | None]:
    """Authors. Title. Venue, year. The authors end at the first full stop that no initial owns."""
    if (match := FAMILY_FIRST_LIST.match(text)) and not ORGANISATION.search(text.split(",", 1)[0]):
        # Chicago and MLA turn only the first name round: "Kolter, J. Z., R. T. McCoy, and Y. LeCun. Title"
        title, tail = (
            ("", "") if text[match.end() - 1 :].lstrip(". ")[:1] == "," else split_title(text[match.end() :])
        )
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
    if (found := behind_organisation(text)) is not None:
        return found
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
        if len(last) == 1 and ".," in before and STARTS_WITH_INITIAL.match(text, match.end()):
            continue  # "LeCun Y., Hinton G. E. Title"
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
        if position and words and opens_no_name(words[0]):
            return (
                None
                if SENTENCE_BEFORE.search(text, 0, position)
                else position + len(chunk) - len(chunk.lstrip())
            )
        if position and words and words[0][-1:] != "." and name_like[0].isupper():
            if not joined and NAMES_GO_ON.match(text, position):  # "J. Zico Kolter, Zachary DeVito, and …"
                return None
            if SENTENCE_BEFORE.search(text, 0, position):
                return None
            # "A survey on …", "A Survey of Techniques": small words that are no particles
            small = any(word[0].islower() and word not in PARTICLES for word in words[1:])
            sentence = joined or len(words[0]) > 2 or small
            return position + len(chunk) - len(chunk.lstrip()) if sentence else None
        if chunk.endswith("et al.") and text[position + len(chunk) + 1 :].strip():
            return position + len(chunk) + 2
        if re.search(r"[^\W\d_]{3,}\.\s", chunk) or "et al" in chunk:
            return None
        joined = joined or AND.search(chunk) is not None
        position += len(chunk) + 1
    return None


def opens_no_name(word: str) -> bool:
    """Whether a list of names is over where this word stands: "vLLM", "1984", "“Why", "Vol.".

    >>> [opens_no_name(word) for word in ("vLLM", "90%*", "[Re]", "Vs.", "J.", "van", "Yann", "Yu.")]
    [True, True, True, True, False, False, False, False]
    """
    if word[0].islower():
        return (
            word not in PARTICLES
            and word not in JOINING
            and word.strip("’'").lower() not in PARTICLES
            and len(word) > 2
        )
    shortened = word[-1] == "." and word[:-1].lower() in ABBREVIATIONS
    return shortened or (not word[0].isalpha() and word[0] not in "’'‘(")


def behind_organisation(text: str) -> tuple[Names, str, str, None] | None:
    """An organisation, then title and tail behind commas: "vLLM Team, Master the GPU, IEEE Micro 43 (2021) 44–51."."""
    first, _, behind = text.partition(",")
    if len(first) > WORD_LENGTH or ". " in first:
        return None
    if not (ORGANISATION.search(first) or (" " not in first and is_organisation_like(first))):
        return None
    behind = behind.strip()
    second = behind.split(",", 1)[0].split(" and ")[0]
    if VANCOUVER.match(first) or TWO_VANCOUVER.match(text):
        return None
    if PERSON.match(second.split(". ")[0]) or STARTS_WITH_INITIAL.match(second):
        return None  # "Workshop B, Scao TL, …", "OpenAI, Josh Achiam, …"
    match = COMMA_TITLE_TAIL.search(behind)
    title, tail = (behind[: match.start()], behind[match.end() :]) if match else split_title(behind)
    if not tail or not title or title[0].islower() or (not match and len(title.split()) < 3):
        return None
    return Names((name(first),)), *split_book_title(title, tail), None


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
