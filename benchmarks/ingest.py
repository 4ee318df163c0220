"""Speed and quality of ingestion, on a made corpus whose duplicates are known.

    python benchmarks/ingest.py [--works 1000000] [--batch 20000] [--json]

Parsed references per second, by format; references per second resolved into stores of growing size, where some of
the references are known works in another spelling, some are near misses, some are new; and how many of these
decisions were right. The store is filled by plain inserts, since only
what follows is measured; rates are per second of wall time and, because machines are shared, per second of CPU time.
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
REAL = 20_000  # works made one by one; a larger store is filled with copies of them under other names
REPEATED, NEAR, NEW = 0.5, 0.1, 0.4  # shares of a measured batch


def title(rng: random.Random, number: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(6)).capitalize() + f" {number:x}"


def work(number: int) -> dict[str, Any]:
    """Work `number`, always the same: title, authors, year; two of three have an arXiv id, one of six a DOI."""
    rng = random.Random(SEED * 1_000_003 + number)
    authors = [
        {"family": rng.choice(FAMILIES), "given": f"{rng.choice('ABCDEFGHJ')}."}
        for _ in range(rng.randint(1, 5))
    ]
    return {
        "title": title(rng, number),
        "authors": authors,
        "year": 2015 + number % 10,
        "arxiv_id": f"{15 + number % 10:02d}{1 + number % 12:02d}.{number % 100_000:05d}"
        if number % 3 and number < 100_000
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


def fill(session: Any, low: int, high: int) -> None:
    """Works low … high as the resolver would have stored them, by plain inserts."""
    from ingest.keys import identifier_rows, keys_of, signature
    from ingest.references import Reference
    from ingest.tables import insert_rows
    from ingest.works import source_rank, work_fields

    connection = session.connection()
    # For the filler alone, which inserts all over the indexes.
    connection.exec_driver_sql("PRAGMA cache_size = -2000000")
    rank = source_rank("bibtex")
    for start in range(low, high, 20_000):
        rows: dict[str, list[dict[str, Any]]] = {"work": [], "record": [], "identifier": []}
        for number in range(start, min(high, start + 20_000)):
            made = work(number)
            reference = Reference(
                title=made["title"], authors=tuple(made["authors"]), year=made["year"], date=str(made["year"]),
                arxiv_id=made["arxiv_id"], doi=made["doi"], key=f"k{number}",
            )  # fmt: skip
            fields = reference.as_json()
            row = number + 1
            columns = work_fields([(rank, reference)])
            rows["work"].append({"id": row, "slug": f"bench-{number}", "origin": "user", **columns})
            rows["record"].append(
                {"id": row, "source_id": 1, "locator": f"k{number}", "position": row, "method": "bench", "retrieved_at": "",
                 "fields": fields, "work_id": row, "origin": "user", "signature": signature(fields, rank)}
            )  # fmt: skip
            keys = keys_of(reference)
            for scheme, value in identifier_rows(keys, reference):
                rows["identifier"].append(
                    {
                        "id": len(rows["identifier"]) + 1 + start * 4,
                        "scheme": scheme,
                        "value": value,
                        "record_id": row,
                        "work_id": row,
                    }
                )
        for table, listed in rows.items():
            insert_rows(connection, table, listed)
    session.commit()


def multiply(session: Any, low: int, high: int) -> None:
    """Copies of the real works under other titles and identifiers: what a large store looks like to its indexes."""
    from sqlalchemy import text

    from ingest.tables import TABLES

    changed = {
        "slug",
        "title",
        "title_key",
        "arxiv_id",
        "doi",
        "locator",
        "signature",
        "value",
        "authors_key",
        "url_key",
    }
    shifted = {"id", "work_id", "record_id"}
    for start in range(low, high, REAL):
        for name, factor in (("work", 1), ("record", 1), ("identifier", 4)):
            columns = [column.name for column in TABLES[name].__table__.columns]
            values = [
                f"{column} || :mark" if column in changed
                else f"{column} + {start * (factor if column == 'id' else 1)}" if column in shifted
                else column
                for column in columns
            ]  # fmt: skip
            most = min(REAL, high - start) * factor
            session.connection().execute(
                text(
                    f"INSERT INTO {name} ({', '.join(columns)}) SELECT {', '.join(values)} FROM {name} WHERE id <= :most"
                ),
                {"mark": f"~{start}", "most": most},
            )
    session.commit()


def measured_batch(store: int, size: int, offset: int) -> Iterator[tuple[Any, int | None]]:
    """(reference, the work it is or None if it is new): repetitions in another spelling, near misses, new works."""
    from ingest.references import Reference

    rng = random.Random(SEED + offset)
    for position in range(size):
        share = rng.random()
        if share < REPEATED:
            number = rng.randrange(store)
            made = work(number)
            text = made["title"].upper() if position % 2 else made["title"].replace(" ", "-", 1)
            keep = position % 3
            yield Reference(
                title=text, authors=tuple(made["authors"]), year=made["year"],
                arxiv_id=made["arxiv_id"] if keep else None, doi=made["doi"] if keep else None, key=f"r{position}",
            ), number  # fmt: skip
        elif share < REPEATED + NEAR:  # the next version: same authors, nearly the same title
            made = work(rng.randrange(store))
            yield (
                Reference(
                    title=f"{made['title']}-v2 revisited",
                    authors=tuple(made["authors"]),
                    year=made["year"],
                    key=f"n{position}",
                ),
                None,
            )
        else:
            made = work(10_000_000 + offset * size + position)
            yield (
                Reference(
                    title=made["title"], authors=tuple(made["authors"]), year=made["year"], key=f"f{position}"
                ),
                None,
            )


def resolve_speed(sizes: list[int], batch: int) -> list[dict[str, Any]]:
    """Into a growing store: references per second, and precision and recall of the decisions."""
    from sqlmodel import Session, SQLModel

    import kb.models as models
    from ingest.literature import SourceInfo, ingest_records
    from kb.db import make_engine

    found = []
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(f"sqlite:///{Path(folder) / 'bench.sqlite'}")
        with Session(engine) as session:
            SQLModel.metadata.create_all(session.connection())
            session.add(models.Source(id=1, slug="bench", kind="bibtex", title="bench"))
            session.commit()
            filled = 0
            for step, size in enumerate(sizes):
                begun = time.perf_counter()
                fill(session, filled, min(size, REAL))
                multiply(session, max(filled, REAL), size)
                filled, filling = size, time.perf_counter() - begun
                pairs = list(measured_batch(min(size, REAL), batch, step))
                source = SourceInfo(kind="bibtex", title="batch", content_sha256=f"batch-{size}")
                begun, begun_cpu = time.perf_counter(), time.process_time()
                report = ingest_records(session, source, [one for one, _ in pairs], commit=False)
                took, took_cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
                row = {
                    "store": size,
                    "references_per_s": batch / took,
                    "references_per_cpu_s": batch / took_cpu,
                    **quality(session, size, source, pairs),
                }
                found.append({**row, "proposed": report.proposed, "fill_s": filling})
                session.rollback()  # the next size is filled from where the filler was
                print(json.dumps(found[-1]), file=sys.stderr)
        engine.dispose()
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
    parser.add_argument("--batch", type=int, default=8_000)
    parser.add_argument("--parse", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    answer = {"parsed_per_cpu_s": parse_speed(options.parse)}
    print(json.dumps(answer), file=sys.stderr)
    sizes = sorted({size for size in (10_000, 100_000, 300_000) if size < options.works} | {options.works})
    answer["resolved"] = resolve_speed(sizes, options.batch)
    if options.json:
        print(json.dumps(answer, indent=2))


if __name__ == "__main__":
    main()
