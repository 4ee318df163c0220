"""`kb backtest`: reported gains of techniques beside predicted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

EPILOG = """\b
Examples:
  kb backtest
  kb backtest my_figures.csv --json
  kb backtest --technique awq --format csv
"""
COLUMNS = ("id", "technique", "metric", "reported", "predicted", "log_ratio", "score", "assumed", "reason")
NEEDED = ("id", "technique", "metric", "value", "model", "hardware")
WORST = 8


@click.command(epilog=EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--technique", metavar="SLUG", help="Only its figures.")
@click.option("--report", type=click.Path(path_type=Path), help="Write docs/backtest.md from the answer.")
@output_options
def command(output: Output, file: Path | None, technique: str | None, report: Path | None) -> None:
    """Predicted beside reported gains: of the knowledge base, or of FILE (columns of effects.csv)."""
    from recommender.backtest import backtest
    from recommender.knowledge import load_knowledge

    reader = open_reader(output)
    try:
        knowledge = load_knowledge(reader)
    finally:
        reader.close()
    rows: Sequence[Mapping[str, Any]]
    if file is None:
        rows = [
            {**row, "quoted_number_location": row["locator"]}
            for items in knowledge.evidence.values()
            for row in items
        ]
        rows = sorted(rows, key=lambda row: str(row["id"]))
    else:
        rows = read_rows(file)
    if technique:
        wanted = knowledge.find(technique)
        if wanted is None:
            raise click.UsageError(f"unknown technique {technique!r} — list all: kb list techniques")
        rows = [row for row in rows if knowledge.find(str(row["technique"])) == wanted]
    answer = backtest(rows, knowledge)
    if report is not None:
        from recommender.backtest_report import report as page

        report.write_text(page(answer, rows), encoding="utf-8")
        output.note(f"wrote {report}")
    if output.is_json:
        output.print_json(answer)
    elif output.format == "table":
        click.echo(render(answer))
    else:
        output.print_rows(COLUMNS, answer["rows"])


def read_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; one line says what is wrong with it."""
    import csv

    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            table = csv.DictReader(stream)
            missing = [name for name in NEEDED if name not in (table.fieldnames or ())]
            if missing:
                raise click.UsageError(
                    f"{file}: no column {', '.join(missing)} — needed: {', '.join(NEEDED)}"
                )
            return [{key: value or "" for key, value in row.items() if key} for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise click.UsageError(f"cannot read {file}: {why} — give a CSV file in UTF-8") from error


def render(answer: Mapping[str, Any]) -> str:
    """The summary, the techniques, and the figures farthest off."""
    from kb.cli import render as text

    found = answer["summary"]
    lines = [
        f"{found['n']} of {found['scored']} scored figures of {found['techniques']} techniques predicted "
        f"({found['assumed_rows']} with assumed conditions)",
        "",
        f"  median factor        {_shown(found['median_factor'])}   (each technique weighs the same)",
        f"  within 1.25x         {_percent(found['within_1_25x'])}",
        f"  right direction      {_percent(found['direction_accuracy'])}",
        f"  rank correlation     {_shown(found['spearman'])}   (over all figures)",
        f"  maxima respected     {_percent(found['maxima_respected'])} of {found['maxima']}",
        "",
    ]
    rows = [
        {
            "technique": name,
            "n": item["n"],
            "factor": _shown(item["median_factor"]),
            "within": _percent(item["within_1_25x"]),
            "direction": _percent(item["direction_accuracy"]),
        }
        for name, item in found["by_technique"].items()
    ]
    columns = [("technique", "Technique", 30), ("n", "Figures", None), ("factor", "Median factor", 13)]
    columns += [("within", "Within 1.25x", 12), ("direction", "Direction", 9)]
    lines.append(text.table(columns, rows))
    off = sorted(
        (row for row in answer["rows"] if row["score"] and row["log_ratio"] is not None),
        key=lambda row: -abs(row["log_ratio"]),
    )[:WORST]
    if off:
        lines += ["", "Farthest off"]
        lines += [
            text.wrap(
                f"{row['id']} {row['technique']} {row['metric']}: reported {row['reported']:g}, "
                f"predicted {row['predicted']:.2f}",
                indent=2,
                hang=4,
            )
            for row in off
        ]
    return text.printable("\n".join(lines))


def _shown(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{value * 100:.0f} %"
