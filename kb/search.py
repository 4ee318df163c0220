"""Search over papers, techniques, surveys, models and hardware: one function, one answer for all faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from kb.errors import InvalidQuery
from kb.paging import encode_cursor
from kb.reader import Reader, Row
from kb.search_backends import BACKENDS, Backend
from kb.search_facets import FACETS, count_facets, facets_by_sql
from kb.search_query import FACET_FIELDS, Clause, Filter, Query, Term, lookups, parse_query, words
from kb.search_suggest import did_you_mean
from kb.text import fold

SORTS = ("relevance", "year", "cited", "title")
TYPES = ("paper", "technique", "survey", "model", "hardware")
MAX_LIMIT = 200
SNIPPET_CHARACTERS = 160
MAX_IN_MEMORY = 5000  # hits that are sorted and counted here; beyond, by the database
MAX_EXACT = 10
EXACT_SCORE = 100.0  # above any text score: an identifier or a full name is what was meant

ORDERS = {
    "relevance": "score DESC, d.surveys DESC, d.year DESC, d.type, d.key",
    "year": "d.year IS NULL, d.year DESC, score DESC, d.type, d.key",
    "cited": "d.surveys DESC, score DESC, d.year DESC, d.type, d.key",
    "title": "lower(d.title), d.type, d.key",
}


def rebuild(session: Any, documents: Any = (), *, backend: str | None = None) -> int:
    """Makes the index anew; see `kb.search_index.rebuild`."""
    from kb.search_index import rebuild as build_index

    return build_index(session, documents, backend=backend)


@dataclass
class Selection:
    """The SQL of a query: common table expressions, joins, conditions, the score, and parameters."""

    ctes: list[str] = field(default_factory=list)
    source: str = "search_document d"
    score: str = "d.boost"
    where: list[str] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)

    def bind(self, value: Any) -> str:
        name = f"p{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"

    def sql(self, columns: str, tail: str = "") -> str:
        head = f"WITH {', '.join(self.ctes)} " if self.ctes else ""
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"{head}SELECT {columns} FROM {self.source}{where} {tail}".rstrip()


def search(
    reader: Reader,
    text: str,
    *,
    filters: Mapping[str, Sequence[str]] | None = None,
    sort: str = "relevance",
    limit: int = 20,
    offset: int = 0,
    facets: bool = False,
) -> dict[str, Any]:
    """Answers a query.

    `filters` are facet values by name (`{"level": ["zhou:model"], "year": ["2022..2024"]}`): of one name any must
    hold, all names must. With `facets`, the counts of every facet value among the results come with the answer.
    """
    if sort not in SORTS:
        raise InvalidQuery(f"unknown sort {sort!r}", hint=f"use one of {', '.join(SORTS)}", field="sort")
    limit = max(0, min(int(limit), MAX_LIMIT))
    offset = max(0, int(offset))
    query = parse_query(text)
    notes = list(query.notes)
    state = index_state(reader)
    backend = BACKENDS[state["search_backend"]]
    wanted = filter_clauses(filters or {})
    exact = find_exact(reader, query, wanted, backend) if query.lookups else []
    selection = select(reader, backend, [*query.clauses, *wanted], notes)
    hits = find_hits(reader, selection, sort) if query.clauses or wanted or not text.strip() else []
    if not hits and not query.clauses and text.strip():
        notes.append("nothing to search for: type a word, a name or an identifier")
    relaxed = False
    if not hits and not exact:
        for looser, note in relaxations(query.clauses):
            attempt = select(reader, backend, [*looser, *wanted], [])
            hits = find_hits(reader, attempt, sort)
            if hits:
                selection, relaxed = attempt, True
                notes.append(note)
                break
    suggestion = None
    if not exact and (relaxed or not hits):
        suggestion = did_you_mean(reader, backend, state, query)
    if len(hits) > MAX_IN_MEMORY:
        total, rows, counts = large(reader, selection, sort, limit, offset, exact, facets)
    else:
        first = dict(exact)
        order = [*exact, *((i, score) for i, score in hits if i not in first)]
        total = len(order)
        rows = documents(reader, order[offset : offset + limit])
        counts = count_facets(reader, state, [i for i, _score in order]) if facets else []
    needles = [word for term in query.terms for word in term.words]
    answer: dict[str, Any] = {
        "total": total,
        "results": [result(row, needles) for row in rows],
        "did_you_mean": suggestion,
        "next": encode_cursor(offset + limit) if limit and offset + limit < total else None,
        "notes": notes,
    }
    if facets:
        answer["facets"] = counts
    return answer


def matching_works(reader: Reader, text: str, filters: Mapping[str, Sequence[str]]) -> set[int]:
    """The works that a query and filters choose: the same language, without ranking."""
    state = index_state(reader)
    query = parse_query(text)
    backend = BACKENDS[state["search_backend"]]
    notes: list[str] = []
    selection = select(reader, backend, [*query.clauses, *filter_clauses(filters)], notes)
    selection.where.append("d.work_id IS NOT NULL")
    if unknown := [note for note in notes if note.startswith("no ")]:
        raise InvalidQuery(unknown[0].split(";")[0], hint=unknown[0].partition("; ")[2])
    return {
        row["work_id"] for row in reader.rows(selection.sql("d.work_id AS work_id"), selection.parameters)
    }


def index_state(reader: Reader) -> dict[str, str]:
    """What identifies the index in this database at this moment."""
    try:
        found = {
            row["key"]: row["value"]
            for row in reader.rows(
                "SELECT key, value FROM meta WHERE key IN ('search_backend', 'search_version', 'data_digest')"
            )
        }
    except Exception:
        found = {}
    if "search_backend" not in found:
        raise InvalidQuery("the search index has not been built", hint="run: kb db upgrade")
    return found


Hits = list[tuple[int, float]]


def find_hits(reader: Reader, selection: Selection, sort: str) -> Hits:
    """(document, score) in order, one more than MAX_IN_MEMORY at most."""
    tail = f"ORDER BY {ORDERS[sort]} LIMIT {MAX_IN_MEMORY + 1}"
    rows = reader.rows(selection.sql(f"d.id AS id, {selection.score} AS score", tail), selection.parameters)
    return [(row["id"], row["score"]) for row in rows]


def documents(reader: Reader, hits: Hits) -> list[Row]:
    """The documents of some hits, in their order."""
    if not hits:
        return []
    listed = ", ".join(str(i) for i, _score in hits)
    found = {
        row["id"]: row
        for row in reader.rows(f"SELECT {COLUMNS} FROM search_document d WHERE d.id IN ({listed})")
    }
    return [{**found[i], "score": score} for i, score in hits if i in found]


def large(
    reader: Reader, selection: Selection, sort: str, limit: int, offset: int, exact: Hits, facets: bool
) -> tuple[int, list[Row], list[dict[str, Any]]]:
    """Total, page and facet counts of a result too large to hold: the database does all of it."""
    ids = {i for i, _score in exact}
    total = count(reader, selection) + (count_outside(reader, selection, ids) if ids else 0)
    order = f"ORDER BY {ORDERS[sort]} LIMIT {limit} OFFSET {offset}"
    rows = reader.rows(selection.sql(f"{COLUMNS}, {selection.score} AS score", order), selection.parameters)
    if ids and offset == 0:
        rows = [*documents(reader, exact), *(row for row in rows if row["id"] not in ids)][:limit]
    return total, rows, facets_by_sql(reader, selection) if facets else []


def filter_clauses(filters: Mapping[str, Sequence[str]]) -> list[Clause]:
    """Facet selections as clauses; values of one name are alternatives."""
    found = []
    for name, values in filters.items():
        options: list[Term | Filter] = []
        for value in [values] if isinstance(values, str) else values:
            text = str(value).replace('"', " ").strip()
            if not text:
                continue
            parsed = parse_query(f'{name}:"{text}"').clauses
            if not parsed or (isinstance(parsed[0].options[0], Term) and not parsed[0].options[0].field):
                raise InvalidQuery(
                    f"{name} {text!r} is not understood",
                    hint="a year is 2023 or a range such as 2022..2024",
                    field=name,
                )
            options.append(parsed[0].options[0])
        if options:
            found.append(Clause(tuple(options)))
    return found


def select(reader: Reader, backend: Backend, clauses: Sequence[Clause], notes: list[str]) -> Selection:
    """Clauses → SQL. Clauses of words alone go to the full-text index in one expression, the others to conditions."""
    selection = Selection()
    text = [c for c in clauses if all(isinstance(o, Term) for o in c.options)]
    backend.add_text(selection, text)
    for clause in clauses:
        if clause in text:
            continue
        options = [
            condition(reader, selection, option, notes)
            if isinstance(option, Filter)
            else backend.condition(selection, option)
            for option in clause.options
        ]
        joined = " OR ".join(options)
        selection.where.append(f"NOT ({joined})" if clause.negated else f"({joined})")
    return selection


def condition(reader: Reader, selection: Selection, wanted: Filter, notes: list[str]) -> str:
    """A filter as an SQL condition on document `d`."""
    if wanted.field in ("year", "surveys"):
        parts = []
        if wanted.low is not None:
            parts.append(f"d.{wanted.field} >= {selection.bind(wanted.low)}")
        if wanted.high is not None:
            parts.append(f"d.{wanted.field} <= {selection.bind(wanted.high)}")
        return f"({' AND '.join(parts)})"
    if wanted.field in ("doi", "arxiv", "id", "key"):
        keys = ", ".join(selection.bind(key) for key in lookups(wanted.value) or [wanted.value.lower()])
        return f"d.id IN (SELECT document_id FROM search_key WHERE value IN ({keys}))"
    values = facet_values(reader, wanted, notes)
    if not values:
        return "1 = 0"
    names = "" if wanted.field == "tag" else f"name = {selection.bind(wanted.field)} AND "
    listed = ", ".join(selection.bind(value) for value in values)
    return f"d.id IN (SELECT document_id FROM search_facet WHERE {names}value IN ({listed}))"


def facet_values(reader: Reader, wanted: Filter, notes: list[str]) -> list[str]:
    """The stored values that a typed one means: itself, or those that it names without scheme or parents."""
    if wanted.field == "tag":
        known = [row["value"] for row in reader.rows("SELECT DISTINCT value FROM search_facet")]
    else:
        one = {"name": wanted.field, "value": wanted.value}
        if reader.one("SELECT 1 AS yes FROM search_facet WHERE name = :name AND value = :value LIMIT 1", one):
            return [wanted.value]
        known = [
            row["value"]
            for row in reader.rows(
                "SELECT DISTINCT value FROM search_facet WHERE name = :name", {"name": wanted.field}
            )
        ]
    asked = " ".join(words(wanted.value))
    found = [
        value
        for value in known
        if asked
        in (
            " ".join(words(value)),
            " ".join(words(value.partition(":")[2])),
            " ".join(words(value.rpartition("/")[2])),
            " ".join(words(value.partition(":")[2].removesuffix("-level"))),
        )
    ]
    if not found:
        found = [
            value
            for value in known
            if wanted.field == "level" and f" {asked} " in f" {' '.join(words(value))} "
        ]
    if not found:
        near = get_close_matches(wanted.value.lower(), known, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(sorted(known)[:8])}"
        notes.append(f"no {wanted.field} {wanted.value!r}; {hint}")
    return found


def relaxations(clauses: Sequence[Clause]) -> list[tuple[list[Clause], str]]:
    """Looser readings of a query that found nothing, the closest first."""
    found = []
    if any(isinstance(o, Term) and o.exact for c in clauses for o in c.options):
        plain = [
            Clause(tuple(without_symbols(o) if isinstance(o, Term) else o for o in c.options), c.negated)
            for c in clauses
        ]
        found.append((plain, "nothing is spelled with these symbols; they were left out"))
    positive = [c for c in clauses if not c.negated and all(isinstance(o, Term) for o in c.options)]
    rest = [c for c in clauses if c not in positive]
    if len(positive) > 1:
        options = tuple(without_symbols(o) for c in positive for o in c.options if isinstance(o, Term))
        found.append(([Clause(options), *rest], "nothing has all of these words; results have some of them"))
    return found


def without_symbols(term: Term) -> Term:
    return Term(term.words, term.prefix, term.field, "", term.shown)


def count(reader: Reader, selection: Selection) -> int:
    found = reader.one(selection.sql("count(*) AS n"), selection.parameters)
    return int(found["n"]) if found else 0


def count_outside(reader: Reader, selection: Selection, ids: set[int]) -> int:
    """How many of these documents the selection does not hold."""
    listed = ", ".join(str(i) for i in ids)
    where = [*selection.where, f"d.id IN ({listed})"]
    inside = Selection(selection.ctes, selection.source, selection.score, where, selection.parameters)
    return len(ids) - count(reader, inside)


COLUMNS = "d.id, d.type, d.key, d.title, d.authors, d.venue, d.year, d.surveys, d.body"


def find_exact(reader: Reader, query: Query, wanted: Sequence[Clause], backend: Backend) -> Hits:
    """Records that the whole query names: by identifier, key, survey number or full title."""
    for key in query.lookups:
        if not reader.one("SELECT 1 AS yes FROM search_key WHERE value = :key LIMIT 1", {"key": key}):
            continue
        selection = select(reader, backend, wanted, [])
        selection.where.append(
            f"d.id IN (SELECT document_id FROM search_key WHERE value = {selection.bind(key)})"
        )
        hits = find_hits(reader, selection, "relevance")[:MAX_EXACT]
        if hits:
            return [(i, EXACT_SCORE + score) for i, score in hits]
    return []


def result(row: Row, needles: Sequence[str]) -> dict[str, Any]:
    return {
        "type": row["type"],
        "id": row["key"],
        "title": row["title"],
        "year": row["year"],
        "score": round(float(row["score"]), 4),
        "snippet": snippet(row, needles),
        "authors": row["authors"],
        "venue": row["venue"],
        "surveys": row["surveys"],
        "exact": float(row["score"]) >= EXACT_SCORE,
    }


def snippet(row: Row, needles: Sequence[str]) -> str:
    """What the record is in its own first words, or the part around a match that neither they nor the title show."""
    body = row["body"] or ""
    head = " · ".join(part for part in (short_authors(row["authors"]), row["venue"]) if part)
    if not body:
        return head
    folded, seen = fold(body), fold(f"{row['title']} {body[:SNIPPET_CHARACTERS]}")
    places = [place for needle in needles if needle not in seen and (place := folded.find(needle)) >= 0]
    # Folding may change lengths (ß → ss); a place then is off by a letter or two, which a cut at blanks hides.
    start = max(0, min(places, default=0) - 40)
    if start:
        start = body.find(" ", start) + 1
    cut = body[start : start + SNIPPET_CHARACTERS]
    if start + SNIPPET_CHARACTERS < len(body):
        cut = cut.rpartition(" ")[0] + " …"
    cut = ("… " if start else "") + cut
    return cut if row["type"] != "paper" or not head else f"{head} · {cut}"


def short_authors(authors: str) -> str:
    names = authors.split(", ") if authors else []
    return ", ".join(names[:3]) + (" et al." if len(names) > 3 else "")


__all__ = ["FACETS", "FACET_FIELDS", "SORTS", "TYPES", "rebuild", "search"]
