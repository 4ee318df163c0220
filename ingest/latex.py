"""LaTeX as found in bibliographies → plain Unicode text (NFC). Never fails: what is unknown is left readable."""

from __future__ import annotations

import re
import unicodedata

# Accent macro → combining character. Letters need a blank or braces before their argument, symbols do not.
ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328",
    "b": "\u0331", "t": "\u0361",
}  # fmt: skip
LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
    "AA": "Å", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "th": "þ", "TH": "Þ", "dj": "đ", "DJ": "Đ", "ng": "ŋ",
    "NG": "Ŋ", "S": "§", "P": "¶", "pounds": "£", "copyright": "©", "dag": "†", "ddag": "‡",
    "textendash": "–", "textemdash": "—", "textquoteleft": "‘", "textquoteright": "’", "textquotedblleft": "“",
    "textquotedblright": "”", "ldots": "…", "dots": "…", "textellipsis": "…", "textbackslash": "\\",
    "textasciitilde": "~", "textasciicircum": "^", "textunderscore": "_", "textdegree": "°", "textmu": "µ",
    "texttrademark": "™", "textregistered": "®", "texteuro": "€", "textbar": "|", "textless": "<",
    "textgreater": ">", "textdollar": "$", "textperiodcentered": "·", "quad": " ", "qquad": " ", "space": " ",
    "TeX": "TeX", "LaTeX": "LaTeX", "BibTeX": "BibTeX", "slash": "/", "newline": " ", "linebreak": " ", "backslash": "\\", "lbrace": "{",
    "rbrace": "}", "textquotesingle": "'", "guillemotleft": "«", "guillemotright": "»",
}  # fmt: skip
MATH = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π",
    "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω",
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ",
    "Psi": "Ψ", "Omega": "Ω", "times": "×", "cdot": "·", "pm": "±", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥",
    "neq": "≠", "approx": "≈", "sim": "~", "infty": "∞", "to": "→", "rightarrow": "→", "leftarrow": "←",
    "leftrightarrow": "↔", "cup": "∪", "cap": "∩", "in": "∈", "subset": "⊂", "forall": "∀", "exists": "∃",
    "partial": "∂", "nabla": "∇", "sum": "∑", "prod": "∏", "int": "∫", "sqrt": "√", "ell": "ℓ", "star": "⋆",
    "circ": "∘", "bullet": "•", "oplus": "⊕", "otimes": "⊗", "ll": "≪", "gg": "≫", "log": "log", "min": "min",
    "max": "max", "exp": "exp", "ln": "ln", "degree": "°",
}  # fmt: skip
# Commands whose argument is plain content; others lose the command and keep the argument as well, so this list is
# only for those with an argument that must not be shown.
DROPPED_ARGUMENT = {"label", "cite", "footnote", "thanks", "vspace", "hspace", "color", "fontsize"}
LIGATURES = (("---", "—"), ("--", "–"), ("``", "“"), ("''", "”"))

SPECIAL = re.compile(r"[\\{}$~]|--|``|''")
COMMAND = re.compile(r"\\([A-Za-z]+)\*?")


def to_text(latex: str) -> str:
    r"""Plain text of a LaTeX field.

    >>> to_text(r"Mart{\'\i}n Gr{\=u}z{\=i}tis Ljube{\v s}i{\'c} \^{i}le")
    'Martín Grūzītis Ljubešić île'
    >>> to_text(r"{LLM.int8()}: 90\% of {\em fast} $\alpha^2$-{\O}rsted \& co")
    'LLM.int8(): 90% of fast α2-Ørsted & co'
    """
    if SPECIAL.search(latex):
        latex = Decoder(latex).run()
    return unicodedata.normalize("NFC", " ".join(latex.split()))


class Decoder:
    """One pass over a string."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def run(self) -> str:
        out: list[str] = []
        text = self.text
        while self.at < len(text):
            found = SPECIAL.search(text, self.at)
            if found is None:
                out.append(text[self.at :])
                break
            out.append(text[self.at : found.start()])
            self.at = found.start()
            out.append(self.special(found[0]))
        return "".join(out)

    def special(self, token: str) -> str:
        if token == "\\":
            return self.command()
        self.at += len(token)
        if token == "$":
            return self.math()
        if token == "~":
            return " "
        if token in "{}":
            return ""
        if token == "--" and self.text.startswith("-", self.at):
            self.at += 1
            return "—"
        return dict(LIGATURES)[token]

    def math(self) -> str:
        """`$…$` or `$$…$$` as readable text; a lonely dollar stays a dollar."""
        double = self.text.startswith("$", self.at)
        start = self.at + double
        end = self.text.find("$", start)
        while end > 0 and self.text[end - 1] == "\\":
            end = self.text.find("$", end + 1)
        if end < 0 or (double and end == start):
            return "$"
        self.at = end + 1 + (double and self.text.startswith("$", end + 1))
        return math_text(self.text[start:end])

    def command(self) -> str:
        text = self.text
        follower = text[self.at + 1 : self.at + 2]
        if follower == "":
            self.at += 1
            return "\\"
        named = COMMAND.match(text, self.at)
        if named is None:
            self.at += 2
            if follower in ACCENTS:
                return self.accented(ACCENTS[follower])
            if follower in "([":  # \( … \) and \[ … \]
                end = text.find("\\" + {"(": ")", "[": "]"}[follower], self.at)
                if end >= 0:
                    inner, self.at = text[self.at : end], end + 2
                    return math_text(inner)
            if follower in "\\, ;:\n\t":
                return " "
            if follower in "-/!@*":
                return ""
            return follower
        name = named[1]
        self.at = named.end()
        if name in ACCENTS and self.has_argument():
            return self.accented(ACCENTS[name])
        if name in LETTERS:
            self.skip_after_name()
            return LETTERS[name]
        if name in ("href",):
            self.argument()  # the address; the text that follows is shown
            return ""
        if name in DROPPED_ARGUMENT:
            self.argument()
            return ""
        if name in MATH:
            self.skip_after_name()
            return MATH[name]
        # \emph{…}, {\bf …} and commands nobody has heard of: the argument is what a reader would see.
        while self.at < len(text) and text[self.at] == " ":
            self.at += 1
        return ""

    def has_argument(self) -> bool:
        rest = self.text[self.at :].lstrip()[:1]
        return bool(rest) and (rest in "{\\" or rest.isalpha())

    def skip_after_name(self) -> None:
        """`\\ss ` and `\\ss{}`: what ends a command's name is not text."""
        if self.text.startswith("{}", self.at):
            self.at += 2
        elif self.text[self.at : self.at + 1] in (" ", "\n", "\t"):
            self.at += 1

    def argument(self) -> str:
        """The next group, command or character, raw."""
        text = self.text
        while self.at < len(text) and text[self.at].isspace():
            self.at += 1
        if self.at >= len(text):
            return ""
        start = self.at
        if text[start] == "{":
            depth = 0
            for index in range(start, len(text)):
                if text[index] == "{":
                    depth += 1
                elif text[index] == "}":
                    depth -= 1
                    if depth == 0:
                        self.at = index + 1
                        return text[start + 1 : index]
            self.at = len(text)
            return text[start + 1 :]
        if text[start] == "\\" and (named := COMMAND.match(text, start)):
            self.at = named.end()
            self.skip_after_name()
            return named[0]
        self.at = start + 1
        return text[start]

    def accented(self, combining: str) -> str:
        base = Decoder(self.argument()).run()
        if not base:
            return ""
        base = {"ı": "i", "ȷ": "j"}.get(base[0], base[0]) + base[1:]
        return base[0] + combining + base[1:] if base[0].isalpha() else base


def math_text(math: str) -> str:
    r"""Formula → a line of text: names become symbols, sub- and superscripts lose their markup.

    >>> math_text(r"\cup^n_1 [a_i,b_i]")
    '∪n1 [ai,bi]'
    """
    text = re.sub(r"\\([A-Za-z]+)\s?", lambda m: MATH.get(m[1], LETTERS.get(m[1], "")), math)
    return re.sub(r"[{}_^]|\\.", "", text)
