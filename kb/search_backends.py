"""How words are looked up: SQLite's FTS5, or plain LIKE on any other database.

A back end adds the words of a query to a selection (kb/search.py) and names candidates for misspelled words. One
for PostgreSQL's tsvector would be a third class here; nothing else in search knows which one is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from kb.reader import Reader
from kb.search_query import Clause, Term, words

if TYPE_CHECKING:
    from kb.search import Selection

# title, other spellings of the title, authors, venue, body
WEIGHTS = "10.0, 6.0, 4.0, 1.5, 1.0"
COLUMNS = {"title": "{title other}", "author": "author", "venue": "venue"}
MAX_CANDIDATES = 50_000
MAX_TITLES = 20_000


class Backend(Protocol):
    def add_text(self, selection: Selection, clauses: Sequence[Clause]) -> None: ...

    def condition(self, selection: Selection, term: Term) -> str: ...

    def frequency(self, reader: Reader, word: str) -> int: ...

    def candidates(self, reader: Reader, word: str) -> tuple[list[tuple[str, int]], bool]: ...


class Fts5:
    """One MATCH expression for all words; every word is quoted, so no character is syntax."""

    def term(self, term: Term) -> str:
        phrase = '"' + (term.exact or " ".join(term.words)) + '"'
        if term.prefix and not term.exact:
            phrase += " *"
        return f"{COLUMNS[term.field]} : {phrase}" if term.field else phrase

    def expression(self, clause: Clause) -> str:
        options = [self.term(option) for option in clause.options if isinstance(option, Term)]
        return f"({' OR '.join(options)})"

    def add_text(self, selection: Selection, clauses: Sequence[Clause]) -> None:
        wanted = [self.expression(clause) for clause in clauses if not clause.negated]
        unwanted = [self.expression(clause) for clause in clauses if clause.negated]
        if wanted:
            match = " AND ".join(wanted)
            if unwanted:
                match = f"({match}) NOT ({' OR '.join(unwanted)})"
            selection.ctes.append(
                f"hit AS MATERIALIZED (SELECT rowid AS id, -bm25(search_fts, {WEIGHTS}) AS score FROM search_fts "
                f"WHERE search_fts MATCH {selection.bind(match)})"
            )
            selection.source = "hit JOIN search_document d ON d.id = hit.id"
            selection.score = "(hit.score + d.boost)"
        elif unwanted:
            match = selection.bind(" OR ".join(unwanted))
            selection.where.append(
                f"d.id NOT IN (SELECT rowid FROM search_fts WHERE search_fts MATCH {match})"
            )

    def condition(self, selection: Selection, term: Term) -> str:
        match = selection.bind(self.term(term))
        return f"d.id IN (SELECT rowid FROM search_fts WHERE search_fts MATCH {match})"

    def frequency(self, reader: Reader, word: str) -> int:
        found = reader.one("SELECT doc FROM search_vocabulary WHERE term = :word", {"word": word})
        return int(found["doc"]) if found else 0

    def candidates(self, reader: Reader, word: str) -> tuple[list[tuple[str, int]], bool]:
        """Known words, and whether these are all. Of a large vocabulary only those with the same first letter are
        read, where most misspelled words are right."""
        rows = reader.rows(f"SELECT term, doc FROM search_vocabulary LIMIT {MAX_CANDIDATES + 1}")
        complete = len(rows) <= MAX_CANDIDATES
        if not complete:
            rows = reader.rows(
                "SELECT term, doc FROM search_vocabulary WHERE term >= :low AND term < :high",
                {"low": word[0], "high": chr(ord(word[0]) + 1)},
            )
        return [(row["term"], row["doc"]) for row in rows], complete


class Plain:
    """LIKE over the folded text of a document, `<title> … <other> … <author> … <venue> … <body> … <end>`."""

    def pattern(self, term: Term) -> str:
        text = term.exact or " ".join(term.words)
        text = f"% {text}" + ("%" if term.prefix and not term.exact else " %")
        bounds = {
            "title": ("<title>", "<author>"),
            "author": ("<author>", "<venue>"),
            "venue": ("<venue>", "<body>"),
        }
        if term.field:
            start, end = bounds[term.field]
            return f"%{start}{text}{end}%"
        return text

    def condition(self, selection: Selection, term: Term) -> str:
        return f"d.folded LIKE {selection.bind(self.pattern(term))}"

    def add_text(self, selection: Selection, clauses: Sequence[Clause]) -> None:
        scores = ["d.boost"]
        for clause in clauses:
            terms = [option for option in clause.options if isinstance(option, Term)]
            joined = " OR ".join(self.condition(selection, term) for term in terms)
            selection.where.append(f"NOT ({joined})" if clause.negated else f"({joined})")
            if not clause.negated:
                for term in terms:
                    in_title = Term(term.words, term.prefix, "title", term.exact)
                    scores.append(f"CASE WHEN {self.condition(selection, in_title)} THEN 10.0 ELSE 1.0 END")
        selection.score = f"({' + '.join(scores)})"

    def frequency(self, reader: Reader, word: str) -> int:
        pattern = {"pattern": f"% {word} %"}
        return len(reader.rows("SELECT id FROM search_document WHERE folded LIKE :pattern LIMIT 10", pattern))

    def candidates(self, reader: Reader, word: str) -> tuple[list[tuple[str, int]], bool]:
        """The words of the titles that are cited most."""
        found: dict[str, int] = {}
        for row in reader.rows(
            f"SELECT title FROM search_document ORDER BY surveys DESC, id LIMIT {MAX_TITLES}"
        ):
            for other in set(words(row["title"])):
                found[other] = found.get(other, 0) + 1
        return sorted(found.items()), True


BACKENDS: dict[str, Any] = {"fts5": Fts5(), "plain": Plain()}
