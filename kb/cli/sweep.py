"""`kb sweep`: a grid of estimates, one row each, written while they are computed."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import click

from kb.cli.common import Output, cell, output_options, plain
from kb.cli.scenario import scenario, scenario_options

EPILOG = """\b
Every flag takes a list; the last one given varies fastest.
  1,2,4..256     goes on as it began: 8, 16 … 256
  512..4096      doubles: 512, 1024, 2048, 4096
  0..4096:1024   steps: 0, 1024, 2048, 3072, 4096

\b
Examples:
  kb sweep --hw a100 --model 8b --batch 1,2,4..256 --weights fp16,int4
  kb sweep --hw h100,l40s --model 70b --devices 1..8 --json
"""
NUMERIC = (
    *("devices", "batch", "input_tokens", "output_tokens", "tensor_parallel", "pipeline_parallel"),
    *("expert_parallel", "request_rate", "cache_hit_rate", "acceptance_rate"),
)
MOST_VALUES = 10_000
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


@click.command(epilog=EPILOG)
@scenario_options
@output_options
def command(output: Output, **flags: Any) -> None:
    """A grid of estimates, one row each, as CSV (default), JSON or Markdown."""
    from recommender.service import sweep

    rows = sweep(grid(scenario(flags)))
    if output.is_json:
        write_json(rows)
    else:
        write_rows(rows, output)


def grid(given: Mapping[str, Any]) -> dict[str, Any]:
    """Values with commas or dots become lists; the rest stays as it is.

    >>> grid({"hardware": "a100", "model": "8b", "batch": "1,2,4..16", "weight_format": "fp16,int4"})
    {'hardware': 'a100', 'model': '8b', 'batch': [1, 2, 4, 8, 16], 'weight_format': ['fp16', 'int4']}
    """
    found: dict[str, Any] = {}
    for field, value in given.items():
        if field == "using" or not isinstance(value, str):
            found[field] = value
            continue
        parts = [part.strip() for part in value.split(",") if part.strip()]
        values = numbers(parts, field) if field in NUMERIC else parts
        found[field] = values if len(values) > 1 else (values[0] if values else value)
    return found


def numbers(parts: list[str], field: str) -> list[Any]:
    """A list of numbers and ranges; words stay words for the question's own check.

    >>> numbers(["10", "20..50"], "batch"), numbers(["3..20"], "batch"), numbers(["0..9:3"], "batch")
    ([10, 20, 30, 40, 50], [3, 6, 12, 20], [0, 3, 6, 9])
    """
    found: list[Any] = []
    for part in parts:
        if ".." not in part:
            found.append(_number(part))
            continue
        first, _, rest = part.partition("..")
        last, _, step = rest.partition(":")
        if not all(NUMBER.fullmatch(text.strip()) for text in (first, last, step or "1")):
            raise click.UsageError(
                f"--{field.replace('_', '-')}: {part!r} is not a range such as 4..256 or 0..9:3"
            )
        start, end = float(first), float(last)
        before = [value for value in found if isinstance(value, int | float)]
        values = _range(before, start, end, float(step) if step else None, part)
        found.extend(int(v) if v == int(v) else v for v in values)
        if len(found) > MOST_VALUES:
            raise click.UsageError(f"{part!r} has more than {MOST_VALUES:,} values")
    return list(dict.fromkeys(found))


def _range(before: list[float], start: float, end: float, step: float | None, part: str) -> list[float]:
    if end < start or (step is not None and step <= 0):
        raise click.UsageError(f"{part!r} is not a rising range")
    factor = 2.0
    if step is None and before and before[-1] > 0 and start > before[-1]:
        ratio, difference = start / before[-1], start - before[-1]
        if len(before) > 1:  # three numbers tell which way it goes on
            rises_by_sum = abs(difference - (before[-1] - before[-2])) < 1e-9
        else:
            rises_by_sum = not _reaches(start, end, ratio)
        step, factor = (difference, factor) if rises_by_sum else (None, ratio)
    elif step is None and start <= 0:
        step = 1.0
    values, value = [start], start
    while len(values) <= MOST_VALUES:
        value = value + step if step is not None else value * factor
        if value > end * (1 + 1e-9):
            break
        values.append(value)
    if step is None and values[-1] < end:
        values.append(end)
    return values


def _reaches(start: float, end: float, ratio: float) -> bool:
    value = start
    while value < end * (1 - 1e-9) and ratio > 1:
        value *= ratio
    return abs(value - end) <= 1e-9 * end


def _number(text: str) -> Any:
    if not NUMBER.fullmatch(text):
        return text
    value = float(text)
    return int(value) if value == int(value) else value


def write_json(rows: Iterator[Mapping[str, Any]]) -> None:
    """A JSON array, one row a line, as the rows come."""
    first = next(rows, None)
    sys.stdout.write("[")
    if first is not None:
        sys.stdout.write("\n" + json.dumps(plain(first), ensure_ascii=False))
        for row in rows:
            sys.stdout.write(",\n" + json.dumps(plain(row), ensure_ascii=False))
    sys.stdout.write("\n]\n")


def write_rows(rows: Iterator[Mapping[str, Any]], output: Output) -> None:
    """CSV or Markdown, as the rows come; columns are those of the first row."""
    first = next(rows, None)
    if first is None:
        return
    columns = list(first)

    def everything() -> Iterator[Mapping[str, Any]]:
        yield first
        yield from rows

    if output.format == "markdown":
        output.print_rows(columns, everything())
        return
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    for row in everything():
        writer.writerow([cell(row.get(column)) for column in columns])
