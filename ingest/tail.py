"""What follows the authors in an unquoted reference: where the title ends; venue, volume, pages and year behind it."""

from __future__ import annotations

import datetime
import re
from typing import NamedTuple

YEAR = re.compile(r"(?<![\d.:/–-])(?P<year>(?:1[6-9]|20)\d\d)[a-z]?(?![\d/]|\.\d)")
# Words with which a venue, never a sentence of a title, begins.
VENUE = re.compile(
    r"(?:in:?\s+(?:(?:the\s)?(?:\d{4}|\w+\s)?|[A-Z])|(?-i:[Ii]n[A-Z])|arxiv\b|corr\b|advances in|proc(?:eedings|\.)|trans(?:actions|\.)\s|"
    r"journal|international (?:conference|journal|symposium)|conference on|findings of|nature\b|science\b|ieee|acm\b|"
    r"computer|neurocomputing|(?:\w+ ){0,3}blog\b|technical report|phd thesis|ph\.?d\.? |master|preprint|https?:|www\.|url\b|doi\b|"
    r"\[online\]|available|accessed|retrieved|pmlr|springer|siam\b|icml|iclr|neurips|nips\b|acl\b|emnlp|naacl|aaai|cvpr|"
    r"iccv|isca|micro\b|asplos|osdi|sosp|mlsys|usenix|openai|linear and|pp\.|pages|vol\.|volume|\(?(?:19|20)\d\d\)?[.,]?\s*$)",
    re.IGNORECASE,
)
STRICT_VENUE = re.compile(
    r"(?:in:?\s+(?:proc|advances|the\s+(?:\w+\s){0,6}(?:conference|symposium|workshop|proceedings)|international|findings|\d{4}|"
    r"(?-i:[A-Z]{3,}|[A-Z]\w+,\s+[A-Z]\.))|(?-i:[Ii]n[A-Z])|arxiv\b|corr\b|advances in|proceedings|transactions|journal|"
    r"international (?:conference|journal)|findings of|ieee|acm\b|https?:|url\b|doi\b|\[online\]|available|accessed|pmlr|icml|"
    r"iclr|neurips|acl\b|emnlp|(?:ph\.?\s?d\.?|doctoral|master(?:['’]s)?) (?:thesis|dissertation)|tech(?:nical|\.) rep|retrieved from|preprint at|"
    r"(?:\w+ University|MIT|CRC|Academic) Press\b|\(?(?:19|20)\d\d\)?[.,]?\s*$)",
    re.IGNORECASE,
)
# "Title? In Low-Power Vision, pages 3–9" but not "Stop! In the name of speed. …": pages, volume or year before the stop
IN_VENUE = re.compile(
    r"In:?\s(?:[A-Z\d]|the\s[A-Z])[^.?!]*?(?:\bpp?\.\s*\d|\bpages?\s\d|\bvol(?:\.|ume)\s|\b(?:19|20)\d\d\b|\(pp|"
    r"\.\s*(?:$|\d+[–-]\d|[A-Z][^.,?!]{2,50},\s*\d+[–-]+\d))"
)
# "Title? Journal of Things, 66(4), 44–51": a name with its volume, which no title goes on with
VENUE_WITH_VOLUME = re.compile(
    r"[A-Z][^?!:]{2,80}?,?\s\d{1,4}(?:\s?\(\d|,\s*\d|:\s?\d|,?\s*pp?\.|\.\d+\s\()|[A-Z][^?!:.]{2,80}\.\s(?:19|20)\d\d;\s?\d"
)
LOWERCASE_VENUE = re.compile(r"(?:ar[Xx]iv|in:?\s+[A-Z\d]|https?:|www\.|doi\b|url\b|pp\.|pages\s|vol\.)")
TWO_CAPITALS = re.compile(r"[A-Z][a-z]+ [A-Z][a-z]+")
SMALL_WORD = re.compile(
    r"\s[a-z]{5,}\s"
)  # in a title written in small letters "U.S. power grid" would be small, too
DOTTED = re.compile(r"(?:[A-Z]\.)+[A-Z]")
ABBREVIATIONS = frozenset(
    [
        "vs",
        "e.g",
        "i.e",
        "al",
        "st",
        "dr",
        "mr",
        "no",
        "vol",
        "fig",
        "eq",
        "cf",
        "approx",
        "resp",
        "ed",
        "eds",
        "inc",
        "corp",
        "etc",
    ]
)
PAGES = re.compile(
    r"\b(?:pp?\.|pages?)\s*(?P<pages>\d[\d\s]*(?:\s?[–—-]{1,2}\s?\d[\d\s]*)?)(?=[.,;)]|$)|"
    r"(?:^|[\s,:])(?P<range>[a-z]?\d+\s?(?:[–—]|--?)\s?[a-z]?\d+)(?=[.,;)]|\s*$|\s+\()",
    re.IGNORECASE,
)
VOLUME = re.compile(
    r"\b(?:vol\.|volume)\s*(?P<volume>\d+)|(?<![\d.])(?P<before>\d{1,4})\s*(?:\((?P<issue>[\d–-]+)\))?\s*:\s*(?=\d)|"
    r",\s*(?P<bare>\d{1,3})\s*(?:\((?P<bare_issue>\d+)\))?(?=[.,]\s*|$)",
    re.IGNORECASE,
)
ISSUE = re.compile(r"\b(?:no\.|issue|number)\s*(?P<issue>\d+)", re.IGNORECASE)
EDITION = re.compile(
    r"\b(?P<edition>\d+(?:st|nd|rd|th)|second|third|fourth|fifth|revised)\s+(?:ed\.?|edn\.?|edition)\b",
    re.IGNORECASE,
)
END_OF_VENUE = re.compile(
    r",?\s*\b(?:vol\.|volume|no\.|pp\.|p\.\s*\d|pages?\s)|[,.]\s*(?:PMLR|IEEE\s*[,.]|IEEE Computer Society|ACM\s*[,.]|Springer|Curran)|"
    r"\s\d{1,4}\s\(\d+\)\s\(|\s\d{1,4}\s\((?:19|20)\d\d\)\s|,\s*\d+\s*(?:[:(.,]|$)|\s*\(?(?<!\d)(?:19|20)\d\d\)?\s*(?:[.,;]|$)|,\s*[A-Z]\.\s[A-Z]\w+,|\.(?=\s)|…|\[Online\]|https?:|\bdoi\b",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"(?:URL:?\s*)?(?:https?://|www\.)\S+(?:\s(?:org|com|io)\S*)?")
ONLINE = re.compile(
    r"\[(?:cited|accessed)\b[^\]]*\]\.?|\[?Online\]?\.?|Available(?:\s+(?:at|from))?:|Retrieved\b.{0,30}?\bfrom\b|\bSee\s*(?=\(|$)"
)
ACCESSED = re.compile(r"\(accessed[^)]*\)|\b(?:last\s+)?Accessed:?\s+(?:on\s+)?[^.]*\.?", re.IGNORECASE)
EDITORS = re.compile(r"(?:,\s*|\s)(?:editors?|\(?eds?\.\)?),?(?:\s+(?=[A-Z])|$)")
MONTH = re.compile(
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december)",
    re.IGNORECASE,
)
PREPRINT_ONLY = re.compile(r"preprint(?:\s+at)?\W*(?:(?:19|20)\d\d)?\W*$", re.IGNORECASE)
MONTH_AT_END = re.compile(
    r",\s*(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)(?:uary|ruary|ch|il|ust|ember|ober)?\.?$",
    re.IGNORECASE,
)
EARLIEST, LATEST = 1650, datetime.date.today().year + 1
NOT_YEARS = re.compile(
    r"\b10\.\d{4,9}/\S+|\b(?:vol\.|volume|no\.)\s*\d+|\barxiv[\s:.]*(?!(?:19|20)\d\d\b(?!\.\d))\S+(?:\s+\d{4}\.\d{4,5})?",
    re.IGNORECASE,
)
ABBREVIATED = re.compile(
    r"\b(?:Proc|Commun|Trans|J|Conf|Symp|Int|Syst|Comput|Princ|Mach|Learn|Intell|Adv|Inf|Process|Lett|Rev|Sci|Eng|"
    r"Technol|Netw|Softw|Archit|Anal|Natl|Acad|Am|Assoc|Electron|Mag|Phys|Math|Stat|Res|Annu|Med|Biol|Nat|Oper|Lang|"
    r"Program|Parallel|Distrib|Arch|Des|Micro|Appl|Circuits|Ling)$"
)
VOLUME_BEFORE_YEAR = re.compile(
    r"[^\W\d_]\s+(\d{1,3})(?:\s*\((?:19|20)\d\d\)|,\s*[\d–-]+\s*\((?:19|20)\d\d\))"
)
VOLUME_AT_END = re.compile(
    r"^(.*[^\d\s,:])[\s,]+(?!(?:19|20)\d\d)(\d{1,4})(?:\s*\(\d+\))?(?:\s*[:,]\s*[\d–-]+.*)?$"
)
PAGES_AT_END = re.compile(r"\s+\d+[–-]\d+$")
LEADING_IN = re.compile(r"^[Ii]n:?\s+(?=\S)|^In(?=In[a-z])")
LEADING_YEAR = re.compile(r"(?:19|20)\d\d\s")
MORE_BEHIND = re.compile(r"https?://\S+[\s,]+\S")
WORD = re.compile(r"\w")
LETTERS = re.compile(r"[^\W\d_]{2,}")
PUBLISHERS = re.compile(
    r"(?<![\w/])(PMLR|IEEE Computer Society|(?:(?<=\.\s)|(?<=,\s))(?:IEEE|ACM)(?=[,.]|$)|Springer|Curran Associates, Inc\.|SIAM|MIT Press|Elsevier|"
    r"Chapman and Hall/CRC|\w+ University Press)"
)


THESIS = r"(?:Ph\.?\s?D\.?|Doctoral|Master['’]?s?)\s+(?:[Tt]hesis|[Dd]issertation)"
# "Title, in: Venue", "Title, https://…", "Title, (2016)", "Title, PhD thesis, University": commas that end a title
BEHIND_COMMA = re.compile(
    r",\s+(?=in:\s+[A-Z\d]|in\s+Proc(?:\.|eedings)\s|https?://|\((?:19|20)\d\d\)|arXiv(?:\s+preprint\b|:\s?\d)|CoRR\b|"
    rf"{THESIS}\b)|"
    r"\s+(?=\((?:[^()]*\s)?(?:Press|Springer|Wiley|Elsevier)\b[^()]*,\s(?:19|20)\d\d\)$)"
)
# What bibliographies put in brackets behind a title to say what it is. "[Computer software]" stays: it names the kind.
TYPE_AT_END = re.compile(
    r"[(\[](?:arXiv:\s?[^()\[\]]*|(?:[\w.]+ ){0,2}(?:Rep(?:ort|\.)|Paper) (?:No\.\s?)?[^()\[\] ]*|No\.\s[^()\[\]]*|"
    r"(?:[^()\[\],]* )?(?:thesis|dissertation)(?:, [^()\[\]]*)?|WWW Document|Online|Publication|Preprint)[)\]]$",
    re.IGNORECASE,
)


class Tail(NamedTuple):
    """What was read behind the title."""

    venue: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    publisher: str = ""
    edition: str = ""
    year: int | None = None
    after_url: bool = False  # the address was followed by more text, so it was not cut


def split_title(text: str) -> tuple[str, str]:
    """Title and the rest of an unquoted reference that starts with its title, without what no title ends with.

    >>> split_title("Fast kernels, in: Proceedings of ICML. PMLR, pp. 1–9.")
    ('Fast kernels', 'in: Proceedings of ICML. PMLR, pp. 1–9.')
    >>> split_title("Fast kernels (No. TR-9). University of Toronto.")
    ('Fast kernels', '(No. TR-9). University of Toronto.')
    """
    title, rest = title_and_rest(text)
    if match := BEHIND_COMMA.search(title):
        return title[: match.start()], f"{title[match.end() :]}. {rest}" if rest else title[match.end() :]
    for _ in range(2):  # "Title (Publication No. 3) [PhD thesis]"
        opening = max(title.rfind("("), title.rfind("["))
        if opening <= 0 or not TYPE_AT_END.match(title, opening):
            break
        kind, title = title[opening:], title[:opening].rstrip()
        if "document" not in kind.lower():
            rest = f"{kind}. {rest}"
    return title, rest


def title_and_rest(text: str) -> tuple[str, str]:
    """Title and the rest of an unquoted reference that starts with its title.

    A full stop ends the title unless a lower-case word follows ("Llm. int8 ()") or an abbreviation owns it; a
    question or exclamation mark ends it only where a venue follows ("How many layers and why? An analysis …").

    >>> title_and_rest("Llm. int8 (): 8-bit matrix multiplication. arXiv preprint arXiv:2208.07339.")[0]
    'Llm. int8 (): 8-bit matrix multiplication'
    >>> title_and_rest("How many layers and why? An analysis of depth. In Kabbara, J., editors, Proc.")[0]
    'How many layers and why? An analysis of depth'
    """
    text = text.strip()
    if re.match(r"https?://|www\.", text):
        return "", text
    for match in re.finditer(r"(?P<mark>\.{1,2}|[?!])(?P<close>[\"”’)\]]?)\s+", text):
        before, after = text[: match.start()], text[match.end() :]
        if match["mark"] in "?!":
            if STRICT_VENUE.match(after) or IN_VENUE.match(after) or has_volume(after):
                return before + match["mark"] + match["close"], after
            continue
        last = re.split(r"[\s(]", before[-40:])[-1]
        if last.lower() in ABBREVIATIONS and not (STRICT_VENUE.match(after) or IN_VENUE.match(after)):
            continue
        if after[:1].islower() and not LOWERCASE_VENUE.match(after):
            continue
        if (
            DOTTED.fullmatch(last)
            and TWO_CAPITALS.match(after)
            and not SMALL_WORD.search(before)
            and ". " in after
            and not (VENUE.match(after) or has_volume(after))
        ):
            continue  # "… of the U.S. Power Grid. TR-9. University"
        if len(last) == 1 and last.isupper() and not VENUE.match(after):
            continue
        return before + (match["mark"] + match["close"] if match["close"] else ""), after
    return text.rstrip(" ."), ""


def has_volume(text: str) -> bool:
    """Whether a journal with its volume comes next, not a sentence with a journal behind it.

    >>> has_volume("Commun. ACM, 66(4), 44–51"), has_volume("A second look. Commun. ACM, 66(4), 44–51")
    (True, False)
    """
    match = VENUE_WITH_VOLUME.match(text)
    return match is not None and all(
        ABBREVIATED.search(text, 0, stop.start()) for stop in re.finditer(r"\.\s", match[0])
    )


def read_tail(text: str, *, arxiv: bool = False, year_known: bool = False) -> Tail:
    """Venue, volume, issue, pages, publisher and year of what stands behind the title.

    >>> read_tail("Advances in Neural Information Processing Systems, vol. 35, pp. 24 824–24 837, 2022.")[:4]
    ('Advances in Neural Information Processing Systems', '35', '', '24824–24837')
    >>> read_tail("in International Conference on Machine Learning. PMLR, 2023, pp. 28 043–28 078.").year
    2023
    """
    original = text.strip()
    body = ADDRESS.sub(" ", original) if "://" in original or "www." in original else original
    body = ONLINE.sub(" ", body)
    after_url = "://" in original and MORE_BEHIND.search(original) is not None
    body = ACCESSED.sub(" ", body)
    body = " ".join(body.split()).strip(" ,")
    pages = ""
    without_pages = body
    if match := PAGES.search(body):
        pages = (
            "".join((match["pages"] or match["range"]).split())
            .replace("--", "–")
            .replace("-", "–")
            .strip("–")
        )
        without_pages = body[: match.start()] + " , " + body[match.end() :]
    volume_match = VOLUME.search(body)
    volume = issue = ""
    if volume_match:
        volume = volume_match["volume"] or volume_match["before"] or volume_match["bare"] or ""
        issue = volume_match["issue"] or volume_match["bare_issue"] or ""
    if not volume and (match := VOLUME_BEFORE_YEAR.search(body)):
        volume = match[1]
    if len(volume) == 4 and YEAR.match(volume):
        volume = ""
    if match := ISSUE.search(body):
        issue = match["issue"]
    edition = match["edition"] if (match := EDITION.search(body)) else ""
    publisher = match[1] if (match := PUBLISHERS.search(body)) else ""
    return Tail(
        venue=read_venue(body, arxiv=arxiv),
        volume=volume,
        issue=issue,
        pages=pages,
        publisher=publisher,
        edition=edition,
        year=None if year_known else read_year(without_pages, arxiv=arxiv),
        after_url=after_url,
    )


def read_year(text: str, *, arxiv: bool = False) -> int | None:
    """The last plausible year that stands alone; page ranges, volumes and arXiv ids are not years."""
    if arxiv or "10." in text or "vol" in text.lower() or "no." in text.lower():
        text = NOT_YEARS.sub(" ", text)
    years = [year for match in YEAR.finditer(text) if EARLIEST <= (year := int(match["year"])) <= LATEST]
    return years[-1] if years else None


def read_venue(text: str, *, arxiv: bool = False) -> str:
    """The name of the venue, without volume, pages, publisher and year."""
    text = text.strip(' ,.”"')
    if text[:5].lower() == "arxiv" or text[:4].lower() == "corr":
        return "arXiv"
    if PREPRINT_ONLY.match(text):  # "Preprint at https://… (2022)"
        return "arXiv" if arxiv else ""
    text = LEADING_IN.sub("", text)
    if match := EDITORS.search(text):
        text = text[match.end() :]
    # "2023 IEEE … Symposium": the year is part of the name.
    start = 5 if LEADING_YEAR.match(text) and len(text) > 15 else 0
    end = len(text)
    for match in END_OF_VENUE.finditer(text, start):
        if match[0].startswith(".") and ABBREVIATED.search(text, 0, match.start()):
            continue  # "Commun. ACM", "Proc. 29th Symp."
        end = match.start()
        break
    venue = MONTH_AT_END.sub("", text[:end].strip(" ,.;:(["))
    if venue.count("(") > venue.count(")"):  # "… Systems 35 (NeurIPS" behind which the year was
        venue = PAGES_AT_END.sub("", venue[: venue.rindex("(")].rstrip(" ,."))
    if match := VOLUME_AT_END.match(venue):
        venue = match[1]
    if not WORD.match(venue) or not LETTERS.search(venue) or MONTH.fullmatch(venue) or EDITION.match(venue):
        return ""
    return venue
