"""`kb validate`: predicted beside measured, row by row and summed up."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from kb.cli.common import Output, output_options

EPILOG = """\b
FILE has the columns of costmodel/data/measurements.csv; without it the
packaged measurements are used. Error of a row: exp(|ln(predicted/measured)|) - 1.

\b
Examples:
  kb validate
  kb validate my_rows.csv --json
  kb validate my_rows.csv --fail-over 25     exit 1 above a median of 25 %
"""
COLUMNS = (
    "id",
    "metric",
    "engine",
    "hardware",
    "measured",
    "predicted",
    "low",
    "high",
    "error",
    "fits",
    "reason",
)
WORST = 10


@click.command(epilog=EPILOG)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--metric", metavar="NAME", help="Only rows of this metric.")
@click.option("--all", "everything", is_flag=True, help="Also rows marked as not to be scored.")
@click.option(
    "--fail-over", type=float, metavar="PERCENT", help="Exit 1 when a metric's median error is larger."
)
@output_options
def command(
    output: Output, file: Path | None, metric: str | None, everything: bool, fail_over: float | None
) -> int:
    """Predicted beside measured: how far to trust the cost model."""
    from costmodel.validate import read_rows, validate_rows

    rows = read_rows(file)
    if file is None and not everything:
        rows = [row for row in rows if row.get("score", "yes") in ("yes", "")]
    if metric:
        known = sorted({row["metric"] for row in rows})
        if metric not in known:
            raise click.UsageError(f"no row has the metric {metric!r} — metrics: {', '.join(known)}")
        rows = [row for row in rows if row["metric"] == metric]
    answer = validate_rows(rows)
    if output.is_json:
        output.print_json(answer)
    elif output.format == "table":
        click.echo(render(answer))
    else:
        output.print_rows(COLUMNS, [flat(row) for row in answer["rows"]])
    return failing(answer, fail_over, output)


def flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A result row with the interval in two cells."""
    low, high = row["interval"] or (None, None)
    return {**row, "low": low, "high": high}


def failing(answer: Mapping[str, Any], limit: float | None, output: Output) -> int:
    """1 where a metric's median error exceeds the limit (percent), else 0."""
    if limit is None:
        return 0
    over = [
        f"{name} {100 * group['median_error']:.1f} %"
        for name, group in answer["summary"]["by_metric"].items()
        if group["median_error"] is not None and 100 * group["median_error"] > limit
    ]
    if over:
        output.note(f"median error above {limit:g} %: {', '.join(over)}")
    return 1 if over else 0


def render(answer: Mapping[str, Any]) -> str:
    """The summary and the worst rows for 80 columns."""
    from kb.cli import render as text

    summary = answer["summary"]
    blocks = [
        f"{summary['n']:,} rows, {summary['priced']:,} priced. Error: exp(|ln(predicted/measured)|) - 1.",
        "",
        _groups("Metric", summary["by_metric"]),
        "",
        _groups("Engine", summary["by_engine"], most=12),
        "",
        _groups("Hardware", summary["by_hardware"], most=12),
        "",
        "Worst rows",
        _worst(answer["rows"]),
    ]
    refused = summary.get("refused", [])
    if refused:
        blocks += ["", f"Not priced: {len(refused)}"]
        reasons: dict[str, int] = {}
        for row in refused:
            reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
        for reason, count in sorted(reasons.items(), key=lambda item: -item[1])[:WORST]:
            blocks.append(text.wrap(f"{count} x {reason}", indent=2, hang=6))
    return text.printable("\n".join(blocks))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def _groups(title: str, groups: Mapping[str, Mapping[str, Any]], most: int | None = None) -> str:
    from kb.cli import render as text

    found = sorted(groups.items(), key=lambda item: -item[1]["n"])
    rows = [
        {
            "name": name,
            "n": f"{group['n']:,}",
            "priced": f"{group['priced']:,}",
            "median": _percent(group["median_error"]),
            "p90": _percent(group["p90_error"]),
            "bias": "" if group["bias"] is None else f"{group['bias']:.2f}",
            "inside": "" if group["interval_coverage"] is None else f"{100 * group['interval_coverage']:.0f}",
        }
        for name, group in found[:most]
    ]
    columns = [
        ("name", title, None),
        ("n", "Rows", 6),
        ("priced", "Priced", 6),
        ("median", "Median %", 9),
        ("p90", "p90 %", 8),
        ("bias", "Bias", 6),
        ("inside", "In 80 %", 7),
    ]
    more = f"\n… and {len(found) - most} more" if most is not None and len(found) > most else ""
    return text.table(columns, rows) + more


def _worst(rows: list[Mapping[str, Any]]) -> str:
    from kb.cli import render as text

    ranked = sorted((row for row in rows if row["error"]), key=lambda row: -row["error"])[:WORST]
    columns = [
        ("id", "Row", 10),
        ("what", "What", None),
        ("measured", "Measured", 10),
        ("predicted", "Predicted", 10),
        ("error", "Error %", 8),
    ]
    data = [
        {
            "id": row["id"],
            "what": f"{row['engine']} {row['hardware']} {row['metric']}",
            "measured": text.significant(row["measured"]),
            "predicted": text.significant(row["predicted"]),
            "error": f"{100 * row['error']:.0f}",
        }
        for row in ranked
    ]
    return text.table(columns, data)
