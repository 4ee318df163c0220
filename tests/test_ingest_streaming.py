"""Imports of any size: killed at any point they lose nothing and double nothing, and memory does not grow with the file."""

import functools
import gc
import io
import json
import signal
import subprocess
import sys
import tracemalloc

import pytest
from sqlmodel import Session, SQLModel

import kb.models  # noqa: F401  (registers the tables)
from ingest.ingest import ingest
from ingest.literature import BATCH_CHARACTERS, MAX_LISTED, SourceInfo, chunks, ingest_records
from ingest.references import Reference
from ingest.sources.detect import open_source
from kb.db import make_engine, open_reader, open_session

RECORDS, BATCH = 230, 50
CHILD = f"""
import functools, importlib, os, signal, sys
import ingest.ingest, ingest.literature
from kb.db import open_session

where, url, file = sys.argv[1:]
ingest.ingest.ingest_records = functools.partial(ingest.literature.ingest_records, batch={BATCH})
module, _, name = where.rpartition(".")
module, calls = importlib.import_module(module), 0
real = getattr(module, name)

def dying(*arguments, **options):
    global calls
    calls += 1
    if calls == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)

setattr(module, name, dying)
with open_session(url) as session:
    ingest.ingest.ingest(session, [file])
"""


def line(number, **fields):
    return json.dumps(
        {"title": f"Invented result number {number} about decoding", "authors": [{"family": f"Doe{number % 7}"}, {"family": "Roe"}],
         "year": 2015 + number % 9, "doi": f"10.5555/{number // 2}", "id": f"k{number}", **fields}
    )  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text("\n".join(line(number) for number in range(RECORDS)), encoding="utf-8")
    return str(path)


def new_database(path):
    with open_session(str(path)) as session:
        SQLModel.metadata.create_all(session.connection())
    return str(path)


def content(database):
    """Everything that an import writes, but when it did."""
    reader = open_reader(database)
    try:
        return {
            "works": reader.rows("SELECT id, slug, title, authors, year, doi FROM work ORDER BY id"),
            "records": reader.rows("SELECT id, locator, position, fields, work_id FROM record ORDER BY id"),
            "identifiers": reader.rows(
                "SELECT scheme, value, record_id, work_id FROM identifier ORDER BY id"
            ),
            "decisions": reader.rows("SELECT kind, a, b, status, basis FROM decision ORDER BY id"),
            "indexed": reader.rows("SELECT key, work_id FROM search_document ORDER BY key"),
            "damage": reader.rows("PRAGMA integrity_check"),
        }
    finally:
        reader.close()


@pytest.mark.parametrize(
    "where",
    [
        "ingest.literature.resolve_batch",  # nothing of the batch is written
        "ingest.literature.store_records",  # its works are, without records
        "ingest.literature.propose",  # its records are, without proposals
        "kb.search_index.update",  # all is, but the index; nothing is committed
    ],
)
def test_a_killed_import_goes_on_where_it_was(tmp_path, file, where, monkeypatch):
    mine = new_database(tmp_path / "killed.sqlite")
    died = subprocess.run([sys.executable, "-P", "-c", CHILD, where, mine, file], capture_output=True)
    assert died.returncode == -signal.SIGKILL, died.stderr
    left = content(mine)
    assert [row["locator"] for row in left["records"]] == [f"k{number}" for number in range(2 * BATCH)]
    assert {row["work_id"] for row in left["records"]} == {row["id"] for row in left["works"]}
    assert len(left["indexed"]) == len(left["works"])

    monkeypatch.setattr("ingest.ingest.ingest_records", functools.partial(ingest_records, batch=BATCH))
    whole = new_database(tmp_path / "whole.sqlite")
    for database in (mine, whole):
        with open_session(database) as session:
            assert ingest(session, [file]).as_json()["read"] == RECORDS
    assert content(mine) == content(whole)
    with open_session(mine) as session:
        again = ingest(session, [file]).as_json()
    assert (again["new"], again["known"], again["proposed"]) == (0, RECORDS, 0)
    assert content(mine) == content(whole)


def test_a_batch_ends_early_where_records_are_long():
    long = Reference(title="T", abstract="x" * (BATCH_CHARACTERS // 4))
    assert [len(one) for one in chunks([long] * 10, 8000)] == [4, 4, 2]
    assert [len(one) for one in chunks([Reference(title="T")] * 10, 4)] == [4, 4, 2]


# --- memory -------------------------------------------------------------------------------------------------


def caches():
    """Every cache of a function in our packages."""
    return [
        one
        for one in gc.get_objects()
        if isinstance(one, functools._lru_cache_wrapper)
        and str(one.__module__).split(".")[0] in ("ingest", "kb")
    ]


def test_every_cache_has_an_end():
    found = caches()
    assert found and all(one.cache_info().maxsize for one in found if one.__wrapped__.__code__.co_argcount)


class Lines(io.RawIOBase):
    """A file of JSON lines that is made while it is read."""

    def __init__(self, count):
        self.lines = (line(number, abstract="word " * 100).encode() + b"\n" for number in range(count))
        self.rest = b""

    def readable(self):
        return True

    def readinto(self, buffer):
        while len(self.rest) < len(buffer) and (more := next(self.lines, None)):
            self.rest += more
        size = min(len(buffer), len(self.rest))
        buffer[:size], self.rest = self.rest[:size], self.rest[size:]
        return size


def forgetting(references):
    """Caches are bounded, but by more than a test can afford to fill: here they are emptied on the way."""
    known = caches()
    for number, one in enumerate(references):
        if number % 100 == 0:
            for cache in known:
                cache.cache_clear()
        yield one


def peak_bytes(count, tmp_path):
    engine = make_engine(f"sqlite:///{tmp_path / str(count)}.sqlite")
    with Session(engine) as session:
        SQLModel.metadata.create_all(session.connection())
        items = open_source(Lines(count)).items
        tracemalloc.start()
        report = ingest_records(session, SourceInfo("json", "x"), forgetting(items), batch=100)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    engine.dispose()
    assert report.read == count
    return peak


def test_memory_does_not_grow_with_the_file(tmp_path):
    peak_bytes(200, tmp_path)  # imports and compiled statements
    small, large = peak_bytes(300, tmp_path), peak_bytes(1100, tmp_path)
    # 800 more records of 700 bytes are 0.56 MB as text alone; what stays is a number for each of MAX_LISTED works.
    assert large < small + 150_000


def test_reports_name_no_more_than_anybody_reads():
    with Session(make_engine("sqlite://")) as session:
        SQLModel.metadata.create_all(session.connection())
        silent = (Reference(authors=({"family": f"Doe {number}"},)) for number in range(MAX_LISTED + 200))
        report = ingest_records(session, SourceInfo("json", "x"), silent, proposals=False)
    assert len(report.unresolved) == MAX_LISTED and report.unlisted == 200
    assert len(report.works) == MAX_LISTED
