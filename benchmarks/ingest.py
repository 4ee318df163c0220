"""Speed and quality of ingestion, on a made corpus whose duplicates are known.

    python benchmarks/ingest.py [--works 1000000] [--batch 16000] [--stores FOLDER] [--json]

Parsed references per second, by format; references per second resolved into stores of growing size, where some of
the references are known works in another spelling, some are near misses, some are new; and how many of these
decisions were right. The stores are filled by plain inserts, since only what follows is measured: resolving, writing
and committing, over a fresh connection. Rates are per second of wall time and, because machines are shared, per
second of CPU time. A store kept with --stores keeps what was measured, too: the next run finds it that much larger.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WORDS = [
    "adaptive",
    "attention",
    "batch",
    "block",
    "cache",
    "calibrated",
    "causal",
    "chunked",
    "compressed",
    "context",
    "decoding",
    "dense",
    "draft",
    "dynamic",
    "efficient",
    "expert",
    "fast",
    "fused",
    "gated",
    "gradient",
    "hierarchical",
    "hybrid",
    "inference",
    "kernel",
    "latency",
    "layer",
    "learned",
    "linear",
    "low",
    "memory",
    "mixed",
    "model",
    "multi",
    "neural",
    "online",
    "optimal",
    "parallel",
    "pipelined",
    "precision",
    "prefix",
    "prompt",
    "pruned",
    "quantized",
    "query",
    "rank",
    "recurrent",
    "routing",
    "sampling",
    "scalable",
    "scheduling",
    "serving",
    "sharded",
    "sliding",
    "sparse",
    "speculative",
    "streaming",
    "structured",
    "tensor",
    "throughput",
    "token",
    "tree",
    "tuned",
    "weight",
    "window",
    "zero",
]
FAMILIES = [
    a + b
    for a in ("Ab", "Ber", "Cor", "Dal", "Fer", "Gar", "Han", "Kur", "Mor", "Tan")
    for b in ("ell", "etti", "in", "ov", "sen", "za")
]
# This file's name would hide the package of the same name.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != Path(__file__).resolve().parent]

SEED = 7
REPEATED, NEAR, NEW = 0.5, 0.1, 0.4  # shares of a measured batch


def title(rng: random.Random, number: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(6)).capitalize() + f" {number:x}"


def work(number: int) -> dict[str, Any]:
    """Work `number`, always the same: title, authors, year; two of three have an arXiv id, one of six a DOI."""
    rng = random.Random(SEED * 1_000_003 + number)
    year, month = 2015 + number % 10, number // 100_000
    authors = [
        {"family": rng.choice(FAMILIES), "given": f"{rng.choice('ABCDEFGHJ')}."}
        for _ in range(rng.randint(1, 5))
    ]
    return {
        "title": title(rng, number),
        "authors": tuple(authors),
        "year": year,
        "date": str(year),
        "arxiv_id": f"{15 + month // 12:02d}{1 + month % 12:02d}.{number % 100_000:05d}"
        if number % 3
        else None,
        "doi": f"10.5555/bench.{number}" if number % 6 == 0 else None,
    }


def parse_speed(count: int) -> dict[str, float]:
    """References per CPU second of each reader: other work on the machine does not count."""
    from ingest.references import parse_reference
    from ingest.sources.detect import open_source

    works = [work(number) for number in range(count)]
    names = [" and ".join(f"{a['family']}, {a['given']}" for a in one["authors"]) for one in works]
    texts = {
        "bibtex": "".join(
            f"@article{{k{n}, title = {{{one['title']} with {{LLM}}s and caf{{\\'e}}}}, author = {{{names[n]}}}, year = {one['year']}, "
            f"journal = {{Journal of Benchmarks}}}}\n"
            for n, one in enumerate(works)
        ),
        "ris": "".join(
            f"TY  - JOUR\nTI  - {one['title']}\n" + "".join(f"AU  - {a['family']}, {a['given']}\n" for a in one["authors"])
            + f"PY  - {one['year']}\nID  - k{n}\nER  - \n"
            for n, one in enumerate(works)
        ),
        "csl-json lines": "".join(
            json.dumps({"id": f"k{n}", "type": "article-journal", "title": one["title"], "author": one["authors"],
                        "issued": {"date-parts": [[one["year"]]]}}) + "\n"
            for n, one in enumerate(works)
        ),
    }  # fmt: skip
    speed = {}
    for name, text in texts.items():
        begun = time.process_time()
        read = sum(1 for _ in open_source(io.BytesIO(text.encode())).items)
        speed[name] = read / (time.process_time() - begun)
    strings = [
        f"{', '.join(a['given'] + ' ' + a['family'] for a in one['authors'])}, “{one['title']},” arXiv preprint arXiv:2301.{n % 100000:05d}, {one['year']}."
        for n, one in enumerate(works)
    ]
    begun = time.process_time()
    for text in strings:
        parse_reference(text)
    speed["reference strings"] = len(strings) / (time.process_time() - begun)
    return speed


def fill(url: str, size: int) -> None:
    """A store of `size` works as the resolver would have written it: plain inserts, then the indexes."""
    from sqlmodel import Session, SQLModel

    import kb.models as models
    from ingest.tables import insert_rows
    from kb.db import make_engine

    engine = make_engine(url)
    with Session(engine) as session:
        SQLModel.metadata.create_all(session.connection())
        session.add(models.Source(id=1, slug="bench", kind="bibtex", title="bench"))
        session.commit()
    with engine.connect() as connection:
        connection.exec_driver_sql("ROLLBACK")  # these are refused inside a transaction
        for pragma in ("synchronous = OFF", "journal_mode = OFF", "cache_size = -1000000"):
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.exec_driver_sql("BEGIN")
        tables = [model.__table__ for model in (models.Work, models.Record, models.Identifier)]
        for index in [one for table in tables for one in table.indexes]:
            index.drop(connection)
        # Identifiers go in sorted, which the index of their uniqueness takes in a fraction of the time.
        connection.exec_driver_sql(
            "CREATE TEMP TABLE loose (scheme TEXT, value TEXT, record_id INTEGER, work_id INTEGER)"
        )
        for low in range(0, size, 20_000):
            works, records, identifiers = stored_rows(range(low, min(size, low + 20_000)))
            insert_rows(connection, "work", works)
            insert_rows(connection, "record", records)
            connection.exec_driver_sql("INSERT INTO loose VALUES (?, ?, ?, ?)", identifiers)
        connection.exec_driver_sql(
            "INSERT INTO identifier (scheme, value, record_id, work_id) SELECT * FROM loose ORDER BY 1, 2, 3"
        )
        connection.exec_driver_sql("DROP TABLE loose")
        for index in [one for table in tables for one in table.indexes]:
            index.create(connection)
        connection.commit()
    engine.dispose()


def stored_rows(
    numbers: range,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[tuple[str, str, int, int]]]:
    """Rows of the tables work, record and identifier; row ids are the works' numbers plus one."""
    from ingest.keys import identifier_rows, keys_of, signature
    from ingest.references import Reference
    from ingest.works import source_rank, work_fields

    rank = source_rank("bibtex")
    works, records, identifiers = [], [], []
    for number in numbers:
        row = number + 1
        reference = Reference(**work(number), key=f"k{number:07d}")
        fields = reference.as_json()
        works.append(
            {"id": row, "slug": f"bench-{number:07d}", "origin": "user", **work_fields([(rank, reference)])}
        )
        records.append(
            {"id": row, "source_id": 1, "locator": reference.key, "position": row, "method": "bench", "retrieved_at": "",
             "fields": fields, "work_id": row, "origin": "user", "signature": signature(fields, rank)}
        )  # fmt: skip
        for scheme, value in identifier_rows(keys_of(reference), reference):
            identifiers.append((scheme, value, row, row))
    return works, records, identifiers


def measured_batch(store: int, size: int, offset: int) -> Iterator[tuple[Any, int | None]]:
    """(reference, the work it is or None if it is new): repetitions in another spelling, near misses, new works."""
    from ingest.references import Reference

    rng = random.Random(SEED + offset)
    for position in range(size):
        share = rng.random()
        if share < REPEATED:
            number = rng.randrange(store)
            made = work(number)
            made["title"] = made["title"].upper() if position % 2 else made["title"].replace(" ", "-", 1)
            if not position % 3:
                made["arxiv_id"] = made["doi"] = None
            yield Reference(**made, key=f"r{position}"), number
        elif share < REPEATED + NEAR:  # the next version: same authors, nearly the same title
            made = work(rng.randrange(store))
            made["title"] += "-v2 revisited"
            made["arxiv_id"] = made["doi"] = None
            yield Reference(**made, key=f"n{position}"), None
        else:
            yield Reference(**work(10_000_000 + offset * size + position), key=f"f{position}"), None


def resolve_speed(sizes: list[int], batch: int, folder: Path) -> list[dict[str, Any]]:
    """Into stores of each size: references per second, and precision and recall of the decisions."""
    from sqlmodel import Session

    from ingest.literature import SourceInfo, ingest_records
    from kb.db import make_engine

    found = []
    for step, size in enumerate(sizes):
        path = folder / f"store-{size}.sqlite"
        url = f"sqlite:///{path}"
        begun = time.perf_counter()
        if not path.exists():
            fill(url, size)
        filling = time.perf_counter() - begun
        pairs = list(measured_batch(size, batch, step))
        source = SourceInfo(kind="bibtex", title="batch", content_sha256=f"batch-{time.time()}")
        engine = make_engine(url)  # a new connection: no page of the filler's is in its memory
        with Session(engine) as session:
            begun, begun_cpu = time.perf_counter(), time.process_time()
            report = ingest_records(session, source, [one for one, _ in pairs])
            took, took_cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
            found.append(
                {
                    "store": size,
                    "references_per_s": batch / took,
                    "references_per_cpu_s": batch / took_cpu,
                    **quality(session, size, source, pairs),
                    "proposed": report.proposed,
                    "fill_s": filling,
                }
            )
        engine.dispose()
        print(json.dumps(found[-1]), file=sys.stderr)
    return found


def quality(session: Any, store: int, source: Any, pairs: list[tuple[Any, int | None]]) -> dict[str, float]:
    """Precision: of the references put to a stored work, how many belong there. Recall: of those that belong to one."""
    from sqlalchemy import text

    sql = (
        "SELECT r.locator, r.work_id FROM record r JOIN source s ON s.id = r.source_id WHERE s.sha256 = :sha"
    )
    placed = dict(session.connection().execute(text(sql), {"sha": source.content_sha256}).fetchall())
    right = wrong = missed = 0
    for reference, number in pairs:
        work = placed[reference.key]
        if number is not None and work == number + 1:
            right += 1
        elif number is not None:
            missed += 1
        elif work <= store:
            wrong += 1
    return {"precision": right / max(1, right + wrong), "recall": right / max(1, right + missed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--works", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=16_000, help="references put to each store")
    parser.add_argument("--parse", type=int, default=10_000)
    parser.add_argument("--stores", type=Path, help="a folder in which to keep the filled stores")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    answer = {"parsed_per_cpu_s": parse_speed(options.parse)}
    print(json.dumps(answer), file=sys.stderr)
    sizes = sorted({size for size in (10_000, 100_000) if size < options.works} | {options.works})
    with tempfile.TemporaryDirectory() as folder:
        answer["resolved"] = resolve_speed(sizes, options.batch, options.stores or Path(folder))
    if options.json:
        print(json.dumps(answer, indent=2))


if __name__ == "__main__":
    main()
