"""Text normal forms shared by matching and searching: accents folded, markup undone, titles as keys."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Letters that Unicode does not decompose into a base letter and an accent.
LETTERS = str.maketrans(
    {"ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "đ": "d", "Đ": "D", "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe"}
    | {"Œ": "OE", "ı": "i", "ħ": "h", "ð": "d", "þ": "th", "Þ": "TH", "ŀ": "l", "ŧ": "t", "ĸ": "k", "ŋ": "n"}
)
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "lambda": "λ", "mu": "μ", "sigma": "σ",
    "theta": "θ", "tau": "τ", "pi": "π", "phi": "φ", "omega": "ω", "infty": "∞", "times": "×", "cup": "∪",
}  # fmt: skip
CACHED_CHARACTERS = 400
TAG = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>")
NOT_IN_KEY = re.compile(r"[^\w+#]|_")
WORD = re.compile(r"[^\W_]+")
MATH = re.compile(r"\$([^$]*)\$")
COMMAND = re.compile(r"\\([A-Za-z]+)\s*")
RETRACTION = re.compile(
    r"^\s*(?:\[?\s*(?:retracted(?:\s+article)?|withdrawn|retraction)\s*\]?\s*[:.\-–—]\s*|\[\s*(?:retracted|withdrawn)\s*\]\s*)",
    re.IGNORECASE,
)


def nfc(text: str) -> str:
    """Composed Unicode, single blanks, no invisible characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = text.replace("\u00ad", "").replace("\u200b", "").replace("\ufeff", "").replace("\u2060", "")
    return " ".join(text.split())


def fold(text: str) -> str:
    """Lower case without accents.

    >>> fold("Kurtić"), fold("Łukasz"), fold("Re\\u0301")
    ('kurtic', 'lukasz', 're')
    """
    if text.isascii():
        return text.lower()
    # Names and titles come again and again, abstracts do not: those stay out of the cache.
    return fold_letters(text) if len(text) <= CACHED_CHARACTERS else fold_letters.__wrapped__(text)


@lru_cache(maxsize=16384)
def fold_letters(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.translate(LETTERS))
    return "".join(character for character in decomposed if not unicodedata.combining(character)).lower()


@lru_cache(maxsize=32768)  # one import batch asks for each of its titles half a dozen times
def plain_title(title: str) -> str:
    """A title for reading: BibTeX braces, LaTeX escapes, `$…$` and HTML or MathML tags undone.

    >>> plain_title("H$_2$O: Heavy-Hitter"), plain_title("{Transformer-Based} models"), plain_title("Quip\\\\#: Even")
    ('H2O: Heavy-Hitter', 'Transformer-Based models', 'Quip#: Even')
    >>> plain_title("Decay of <mml:math><mml:mi>Ca</mml:mi></mml:math><sup>38</sup>")
    'Decay of Ca38'
    """
    if "<" in title:
        title = TAG.sub("", title)
    if "&" in title:
        import html

        title = html.unescape(title)
    if "$" in title:
        # Names first: without its "^", "\\cup^n" would be a command nobody knows.
        title = MATH.sub(lambda match: re.sub(r"[_^{}]", "", symbols(match[1])), title)
    if "\\" in title:
        title = re.sub(r"\\([#$%&_{}~^])", r"\1", title)
        title = symbols(title)
    if "{" in title or "}" in title:
        title = title.replace("{", "").replace("}", "")
    return nfc(title)


def symbols(text: str) -> str:
    """LaTeX commands replaced by the letters that they print, unknown ones by nothing."""
    return COMMAND.sub(lambda match: GREEK.get(match[1], ""), text)


@lru_cache(maxsize=16384)
def title_key(title: str) -> str:
    """What two spellings of one title share: its letters and digits, folded, without blanks.

    Hyphens and blanks vary ("auto-regressive", "Ca 38"), digits do not ("FlashAttention-2" is another work).

    >>> title_key("Flash-decoding for long-context inference") == title_key("Flashdecoding for long context inference")
    True
    >>> title_key("Decay of Ca 38 :") == title_key("Decay of <sup>38</sup>Ca"), title_key("Decay of Ca<sup>38</sup>:")
    (False, 'decayofca38')
    """
    return NOT_IN_KEY.sub("", fold(RETRACTION.sub("", plain_title(title))))


def title_words(title: str) -> list[str]:
    """Words of a title, folded, for similarity."""
    return WORD.findall(fold(plain_title(title)))
