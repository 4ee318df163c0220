"""The search index: documents, their facets and keys, and the full-text table, filled from the other tables.

Everything here is a build product. `rebuild` makes it anew; `update` redoes the documents of some works after an
ingest or a merge. The text that is indexed is folded by `kb.search_query.words`, the same function that reads
queries, so that a database's own tokenizer never decides what matches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kb.reader import loads
from kb.search_query import spellings, split_name, words

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlmodel import Session

CHUNK = 2_000  # works indexed at a time: bounds memory whatever the store's size

TABLES = (
    """CREATE TABLE IF NOT EXISTS search_document (
        id INTEGER PRIMARY KEY, type TEXT NOT NULL, key TEXT NOT NULL, work_id INTEGER, title TEXT NOT NULL,
        authors TEXT NOT NULL, venue TEXT NOT NULL, year INTEGER, surveys INTEGER NOT NULL, boost REAL NOT NULL,
        body TEXT NOT NULL, folded TEXT NOT NULL)""",
    "CREATE TABLE IF NOT EXISTS search_facet (document_id INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS search_key (value TEXT NOT NULL, document_id INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS ix_search_document_key ON search_document (type, key)",
    "CREATE INDEX IF NOT EXISTS ix_search_document_work ON search_document (work_id)",
    "CREATE INDEX IF NOT EXISTS ix_search_document_year ON search_document (year)",
    "CREATE INDEX IF NOT EXISTS ix_search_facet_value ON search_facet (name, value, document_id)",
    "CREATE INDEX IF NOT EXISTS ix_search_facet_document ON search_facet (document_id)",
    "CREATE INDEX IF NOT EXISTS ix_search_key_value ON search_key (value, document_id)",
    "CREATE INDEX IF NOT EXISTS ix_search_key_document ON search_key (document_id)",
)
SQLITE_TABLES = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_fts USING fts5(title, other, author, venue, body)",
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_vocabulary USING fts5vocab(search_fts, 'row')",
)
CITED = "SELECT c.cited_id, s.slug, c.number FROM citation c JOIN survey s ON s.work_id = c.citing_id WHERE c.cited_id IN"
COLUMNS = ("title", "other", "author", "venue", "body")

# Added to the text score, so that of two equal matches the one that people look for more often comes first.
BOOSTS = {"technique": 2.0, "survey": 1.0, "model": 0.5, "hardware": 0.5, "paper": 0.0}
BOOST_PER_SURVEY = 0.4


def rebuild(
    session: Session, documents: Iterable[Mapping[str, Any]] = (), *, backend: str | None = None
) -> int:
    """Makes the index anew; the number of documents in it. `backend`: fts5 (SQLite's default) or plain.

    `documents` are those that no table holds (models, hardware): mappings with `type`, `id`, `title`, `body` and,
    where there are any, `year`, `aliases` and `facets` (name → list of values).
    """
    connection = session.connection()
    execute(connection, TABLES[0])
    set_meta(
        connection, "search_backend", backend or ("fts5" if connection.dialect.name == "sqlite" else "plain")
    )
    create(connection)
    for table in ("search_document", "search_facet", "search_key"):
        execute(connection, f"DELETE FROM {table}")
    if has_fts5(connection):
        execute(connection, "DELETE FROM search_fts")
    names = level_names(connection)
    surveys = survey_documents(connection)
    add(connection, surveys)
    add(connection, technique_documents(connection, names))
    add(connection, [external_document(document) for document in documents])
    survey_works = {document["work_id"] for document in surveys}
    low = 0
    while True:
        ids = [
            row[0]
            for row in execute(
                connection,
                "SELECT id FROM work WHERE id > :low ORDER BY id LIMIT :n",
                {"low": low, "n": CHUNK},
            )
        ]
        if not ids:
            break
        add(connection, work_documents(connection, [i for i in ids if i not in survey_works], names))
        low = ids[-1]
    if has_fts5(connection):
        execute(connection, "INSERT INTO search_fts(search_fts) VALUES ('optimize')")
    stamp(connection)
    return int(execute(connection, "SELECT count(*) FROM search_document")[0][0])


def update(session: Session, work_ids: Iterable[int]) -> int:
    """Redoes the documents of these works (also of those that no longer exist); how many were written."""
    connection = session.connection()
    create(connection)
    names = level_names(connection)
    survey_works = {row[0] for row in execute(connection, "SELECT work_id FROM survey")}
    ids = sorted(set(work_ids) - survey_works)
    written = 0
    for start in range(0, len(ids), CHUNK):
        part = ids[start : start + CHUNK]
        remove(connection, part)
        documents = work_documents(connection, part, names)
        add(connection, documents)
        written += len(documents)
    stamp(connection)
    return written


def update_new(session: Session) -> int:
    """Indexes works that came after the last one in the index, and drops documents of works that are gone."""
    connection = session.connection()
    create(connection)
    last = execute(connection, "SELECT coalesce(max(work_id), 0) FROM search_document")[0][0]
    fresh = [row[0] for row in execute(connection, "SELECT id FROM work WHERE id > :last", {"last": last})]
    gone = execute(
        connection,
        "SELECT d.work_id FROM search_document d LEFT JOIN work w ON w.id = d.work_id "
        "WHERE d.work_id IS NOT NULL AND w.id IS NULL",
    )
    return update(session, [*fresh, *(row[0] for row in gone)])


def execute(connection: Connection, sql: str, parameters: Any = None) -> Sequence[Any]:
    """Runs portable SQL text; the rows where there are any."""
    from sqlalchemy import text

    result = connection.execute(text(sql), parameters or {})
    return result.fetchall() if result.returns_rows else []


def create(connection: Connection) -> None:
    if not meta(connection, "search_backend"):
        set_meta(connection, "search_backend", "fts5" if connection.dialect.name == "sqlite" else "plain")
    for statement in TABLES:
        execute(connection, statement)
    if has_fts5(connection):
        for statement in SQLITE_TABLES:
            execute(connection, statement)


def meta(connection: Connection, key: str) -> str:
    found = execute(connection, "SELECT value FROM meta WHERE key = :key", {"key": key})
    return found[0][0] if found else ""


def set_meta(connection: Connection, key: str, value: str) -> None:
    execute(connection, "DELETE FROM meta WHERE key = :key", {"key": key})
    execute(connection, "INSERT INTO meta (key, value) VALUES (:key, :value)", {"key": key, "value": value})


def has_fts5(connection: Connection) -> bool:
    return meta(connection, "search_backend") == "fts5"


def stamp(connection: Connection) -> None:
    """Counts changes of the index, so that readers know when what they keep in memory is old."""
    set_meta(connection, "search_version", str(int(meta(connection, "search_version") or 0) + 1))


def remove(connection: Connection, work_ids: Sequence[int]) -> None:
    """Drops the documents of these works with all that belongs to them."""
    documents = [
        row[0] for row in select_in(connection, "SELECT id FROM search_document WHERE work_id IN", work_ids)
    ]
    tables = [("search_document", "id"), ("search_facet", "document_id"), ("search_key", "document_id")]
    if has_fts5(connection):
        tables.append(("search_fts", "rowid"))
    for table, column in tables:
        select_in(connection, f"DELETE FROM {table} WHERE {column} IN", documents)


def add(connection: Connection, documents: Sequence[dict[str, Any]]) -> None:
    """Writes documents with their facets, keys and full text, in four statements."""
    if not documents:
        return
    last = execute(connection, "SELECT coalesce(max(id), 0) FROM search_document")[0][0]
    fts5 = has_fts5(connection)
    rows, facets, keys, texts = [], [], [], []
    for number, document in enumerate(documents, start=int(last) + 1):
        title = f"{document['title']} {' '.join(document['aliases'])}".strip()
        text = {
            "id": number,
            "title": " ".join(words(title)),
            "other": " ".join(spellings(title)),
            "author": " ".join(words(document["authors"])),
            "venue": " ".join(words(document["venue"])),
            "body": " ".join(words(document["body"])),
        }
        texts.append(text)
        rows.append(
            {
                **{
                    name: document[name]
                    for name in ("type", "key", "work_id", "title", "authors", "venue", "year")
                },
                "id": number,
                "surveys": document["surveys"],
                "boost": BOOSTS.get(document["type"], 0.0) + BOOST_PER_SURVEY * document["surveys"],
                "body": document["body"],
                "folded": "" if fts5 else " ".join(f"<{name}> {text[name]} " for name in COLUMNS) + "<end>",
            }
        )
        for name, values in document["facets"].items():
            facets += [
                {"id": number, "name": name, "value": value} for value in dict.fromkeys(values) if value
            ]
        names = {document["key"].lower(), " ".join(words(document["title"])), *document["keys"]}
        if len(pieces := split_name(document["title"])) <= 4:  # "flash attention" names FlashAttention
            names.add(" ".join(pieces))
        names.update(" ".join(words(alias)) for alias in document["aliases"])
        keys += [{"id": number, "value": value} for value in sorted(names) if value]
    execute(
        connection,
        "INSERT INTO search_document (id, type, key, work_id, title, authors, venue, year, surveys, boost, body, folded) "
        "VALUES (:id, :type, :key, :work_id, :title, :authors, :venue, :year, :surveys, :boost, :body, :folded)",
        rows,
    )
    if facets:
        execute(
            connection,
            "INSERT INTO search_facet (document_id, name, value) VALUES (:id, :name, :value)",
            facets,
        )
    if keys:
        execute(connection, "INSERT INTO search_key (document_id, value) VALUES (:id, :value)", keys)
    if fts5:
        execute(
            connection,
            "INSERT INTO search_fts (rowid, title, other, author, venue, body) "
            "VALUES (:id, :title, :other, :author, :venue, :body)",
            texts,
        )


def make(type_: str, key: str, title: str, **values: Any) -> dict[str, Any]:
    """A document with every field."""
    document: dict[str, Any] = {
        "type": type_, "key": key, "title": title, "work_id": None, "authors": "", "venue": "", "year": None,
        "surveys": 0, "body": "", "aliases": [], "keys": [], "facets": {},
    }  # fmt: skip
    document.update(values)
    document["facets"] = {"type": [type_], **document["facets"]}
    return document


def external_document(given: Mapping[str, Any]) -> dict[str, Any]:
    return make(
        given["type"],
        given["id"],
        given["title"],
        body=" ".join(str(given.get("body") or "").split()),
        year=given.get("year"),
        aliases=list(given.get("aliases") or ()),
        facets=dict(given.get("facets") or {}),
    )


def level_names(connection: Connection) -> dict[tuple[str, str], str]:
    return {(s, p): n for s, p, n in execute(connection, "SELECT scheme, path, name FROM level")}


def with_ancestors(scheme: str, path: str) -> list[str]:
    """`zhou:model`, `zhou:model/compression` … for a path: a facet counts everything below it."""
    parts = path.split("/")
    return [f"{scheme}:{'/'.join(parts[:n])}" for n in range(1, len(parts) + 1)]


def author_text(authors: Any) -> str:
    names = [" ".join(filter(None, (a.get("given"), a.get("family")))) for a in loads(authors) or []]
    return ", ".join(name for name in names if name)


def survey_documents(connection: Connection) -> list[dict[str, Any]]:
    rows = execute(
        connection,
        "SELECT s.slug, s.name, w.id, w.slug, w.title, w.authors, w.venue, w.year, w.abstract, w.survey_count FROM survey s "
        "JOIN work w ON w.id = s.work_id ORDER BY s.slug",
    )
    found = []
    for slug, name, work_id, work_slug, title, authors, venue, year, abstract, surveys in rows:
        keys = [work_slug.lower(), *identifier_keys(connection, [work_id]).get(work_id, [])]
        cited = select_in(connection, CITED, [work_id])
        keys += [f"{survey}:{number}" for _work, survey, number in cited if number is not None]
        found.append(
            make(
                "survey", slug, title, work_id=work_id, authors=author_text(authors), venue=venue, year=year,
                body=abstract, aliases=[name], keys=keys, surveys=surveys,
                facets={"survey": [survey for _work, survey, _number in cited]},
            )
        )  # fmt: skip
    return found


def technique_documents(connection: Connection, names: Mapping[tuple[str, str], str]) -> list[dict[str, Any]]:
    levels = defaultdict(list)
    for technique, scheme, path in execute(
        connection, "SELECT technique, scheme, path FROM techniquelevel ORDER BY scheme, path"
    ):
        levels[technique].append((scheme, path))
    bottlenecks = defaultdict(list)
    for technique, slug, name in execute(
        connection,
        "SELECT t.technique, b.slug, b.name FROM techniquebottleneck t JOIN bottleneck b ON b.slug = t.bottleneck "
        "ORDER BY b.slug",
    ):
        bottlenecks[technique].append((slug, name))
    found = []
    for row in execute(
        connection,
        "SELECT slug, name, summary, kind, mechanism, phase, training, lossless, year, data FROM technique ORDER BY slug",
    ):
        slug, name, summary, kind, mechanism, phase, training, lossless, year, data = row
        declared = loads(data) or {}
        body = [summary, declared.get("helps_when", ""), mechanism.replace("-", " ")]
        body += [names.get(level, "") for level in levels[slug]]
        body += [label for _slug, label in bottlenecks[slug]]
        body = list(dict.fromkeys(part for part in body if part))  # classes of three schemes share names
        facets = {
            "level": [value for scheme, path in levels[slug] for value in with_ancestors(scheme, path)],
            "bottleneck": [b for b, _label in bottlenecks[slug]],
            "phase": ["prefill", "decode"] if phase == "both" else [phase],
            "training": [training],
            "lossless": [lossless],
            "kind": [kind],
        }
        found.append(
            make(
                "technique", slug, name, year=year, body=" · ".join(body),
                aliases=list(declared.get("aliases") or ()), facets=facets,
            )
        )  # fmt: skip
    return found


def identifier_keys(connection: Connection, ids: Sequence[int]) -> dict[int, list[str]]:
    found = defaultdict(list)
    for work_id, value in select_in(
        connection,
        "SELECT DISTINCT work_id, value FROM identifier WHERE scheme IN ('arxiv', 'doi', 'openalex', 's2', 'url') "
        "AND work_id IN",
        ids,
    ):
        found[work_id].append(value.lower())
    # The key that an entry had in its own file; numbers in a list are not names.
    for work_id, locator in select_in(
        connection, "SELECT work_id, locator FROM record WHERE work_id IN", ids
    ):
        if not locator.isdigit() and " " not in locator and locator != "subject":
            found[work_id].append(locator.lower())
    return found


def work_documents(
    connection: Connection, ids: Sequence[int], names: Mapping[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """The documents of these works; a work has the levels, bottlenecks … of the techniques that it introduces."""
    if not ids:
        return []
    keys = identifier_keys(connection, ids)
    facets: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for work_id, survey, number in select_in(
        connection,
        CITED,
        ids,
    ):
        facets[work_id]["survey"].append(survey)
        if number is not None:
            keys[work_id].append(f"{survey}:{number}")
    techniques: dict[int, list[str]] = defaultdict(list)
    introduced = select_in(
        connection,
        "SELECT w.work_id, t.slug, t.name, t.phase, t.training, t.lossless FROM techniquework w "
        "JOIN technique t ON t.slug = w.technique WHERE w.role = 'introduces' AND w.work_id IN",
        ids,
    )
    by_technique = defaultdict(list)
    for work_id, slug, name, phase, training, lossless in introduced:
        techniques[work_id].append(name)
        by_technique[slug].append(work_id)
        facets[work_id]["technique"].append(slug)
        facets[work_id]["phase"] += ["prefill", "decode"] if phase == "both" else [phase]
        facets[work_id]["training"].append(training)
        facets[work_id]["lossless"].append(lossless)
    if by_technique:
        for technique, scheme, path in execute(
            connection, "SELECT technique, scheme, path FROM techniquelevel"
        ):
            for work_id in by_technique.get(technique, ()):
                facets[work_id]["level"] += with_ancestors(scheme, path)
                techniques[work_id].append(names.get((scheme, path), ""))
        for technique, slug in execute(connection, "SELECT technique, bottleneck FROM techniquebottleneck"):
            for work_id in by_technique.get(technique, ()):
                facets[work_id]["bottleneck"].append(slug)
    found = []
    for row in select_in(
        connection,
        "SELECT id, slug, title, authors, year, venue, kind, role, abstract, survey_count FROM work WHERE id IN",
        ids,
    ):
        work_id, slug, title, authors, year, venue, kind, role, abstract, surveys = row
        facets[work_id]["kind"].append(kind)
        facets[work_id]["role"].append(role)
        body = [abstract, *dict.fromkeys(techniques[work_id])]
        found.append(
            make(
                "paper", slug, title, work_id=work_id, authors=author_text(authors), venue=venue or "", year=year,
                surveys=surveys, body=" · ".join(part for part in body if part), keys=keys.get(work_id, []),
                facets=dict(facets[work_id]),
            )
        )  # fmt: skip
    return sorted(found, key=lambda document: document["work_id"])


def select_in(connection: Connection, sql: str, ids: Sequence[int]) -> list[Any]:
    """Rows (if there are any) for many ids: `sql` ends with IN; the numbers are written into the text, which no database limits."""
    found: list[Any] = []
    for start in range(0, len(ids), CHUNK):
        numbers = ",".join(str(int(i)) for i in ids[start : start + CHUNK])
        # Past SQLAlchemy's cache of compiled statements, which would keep every one of these long texts.
        result = connection.exec_driver_sql(f"{sql} ({numbers})")
        found += result.fetchall() if result.returns_rows else []
    return found
