"""The literature that the package ships: reference lists as facts, looked-up records, decisions with their source.

    python -m ingest.curated FILE…      # survey pages or Crossref JSON → data/surveys/<slug>.jsonl

Raw reference text is never written: only what was read from it.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ingest.errors import UnreadableSource
from ingest.literature import SUBJECT, SourceInfo, suggest_slug
from ingest.references import Reference, reference_from_json
from ingest.tables import Ids

DATA = files("ingest") / "data"
DECISION_COLUMNS = ("kind", "a", "b", "status", "basis", "source", "made_at", "note")
KINDS = ("same", "different")
STATUSES = ("accepted", "rejected", "proposed")


def packaged_sources() -> Iterator[tuple[SourceInfo, Reference | None, list[Reference]]]:
    """Each packaged source with its subject and its references.

    What was looked up comes first, so that a work which a survey names by its DOI alone gets its slug from its title.
    """
    sources = read_csv("surveys/sources.csv")
    looked_up = SourceInfo(
        kind="curated",
        title="Looked up for rows that do not name their work",
        locator="ingest/data/curated.jsonl",
        slug="curated",
        method="looked up",
        retrieved_at=max(row["retrieved"] for row in sources),
    )
    yield looked_up, None, read_jsonl("curated.jsonl")
    for row in sources:
        references = read_jsonl(f"surveys/{row['slug']}.jsonl")
        subject = next((one for one in references if one.key == SUBJECT), None)
        info = SourceInfo(
            kind=row["kind"],
            title=row["title"],
            locator=row["locator"],
            retrieved_at=row["retrieved"],
            content_sha256=row["sha256"],
            slug=row["slug"],
            method=row["method"],
        )
        yield info, subject, [one for one in references if one.key != SUBJECT]


def packaged_decisions(ids: Ids) -> list[dict[str, Any]]:
    """`decisions.csv` as Decision rows; a fault names file, line and what is allowed."""
    rows = []
    for line, row in enumerate(read_csv("decisions.csv"), 2):
        if tuple(row) != DECISION_COLUMNS:
            raise UnreadableSource(
                f"decisions.csv: columns {', '.join(row)}", hint=f"expected {', '.join(DECISION_COLUMNS)}"
            )
        for column, allowed in (("kind", KINDS), ("status", STATUSES)):
            if row[column] not in allowed:
                raise UnreadableSource(
                    f"decisions.csv, line {line}: {column} {row[column]!r}",
                    hint=f"allowed: {', '.join(allowed)}",
                    field=column,
                )
        rows.append(
            {
                "id": ids.next("decision"),
                "kind": row["kind"],
                "a": row["a"],
                "b": row["b"],
                "status": row["status"],
                "basis": row["basis"],
                "score": None,
                "source": row["source"],
                "made_at": row["made_at"],
                "data": {"note": row["note"]} if row["note"] else {},
                "origin": "packaged",
            }
        )
    return rows


@lru_cache(maxsize=16)
def _csv_text(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def read_csv(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_csv_text(name).splitlines()))


def read_jsonl(name: str) -> list[Reference]:
    """One packaged reference per line."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [reference_from_json(json.loads(line)) for line in lines if line.strip()]


def regenerate(paths: list[str], folder: Path) -> list[str]:
    """Reads survey pages or Crossref works and writes their facts; the names written."""
    from ingest.sources.crossref import parse_crossref
    from ingest.sources.survey_page import parse_survey_page

    written = []
    for path in paths:
        content = Path(path).read_text(encoding="utf-8")
        parsed = parse_crossref(content) if content.lstrip().startswith("{") else parse_survey_page(content)
        slug = suggest_slug(SourceInfo(kind="survey", title=""), parsed.subject)
        lines = [
            json.dumps(fact(one), ensure_ascii=False, sort_keys=True)
            for one in (parsed.subject, *parsed.references)
        ]
        (folder / f"{slug}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        written.append(slug)
    return written


def fact(reference: Reference) -> dict[str, Any]:
    """What is shipped of a reference. A card's link stays only where the row's title or year rests on it."""
    data = reference.as_json()
    data.pop("abstract", None)
    if not any("card" in note for note in reference.notes):
        data.pop("links", None)
    if reference.key != SUBJECT:
        data.pop("key", None)
    return data


if __name__ == "__main__":
    import sys

    print(*regenerate(sys.argv[1:], Path(str(DATA)) / "surveys"), sep="\n")
