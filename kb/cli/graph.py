"""`kb graph …`: the citation graph."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

COLUMNS = [("id", "ID", 36), ("year", "YEAR", 4), ("cited_by", "CITED BY", 8), ("title", "TITLE", None)]


@click.group()
def command() -> None:
    """The citation graph: neighbours, paths, co-citation, coupling, ranks, communities, overlap, export.

    A work is named by its id, arXiv id, DOI, survey (zhou) or survey number (zhou:27).
    """


@command.command()
@click.argument("work", metavar="ID")
@click.option("--depth", type=click.IntRange(1, 4), default=1, show_default=True, help="Steps away.")
@click.option(
    "--direction",
    type=click.Choice(["both", "references", "cited-by"]),
    default="both",
    help="Which citations.",
)
@click.option("--limit", type=click.IntRange(1, 5000), default=5000, help="Most nodes; the rest is counted.")
@output_options
def neighbours(work: str, depth: int, direction: str, limit: int, output: Output) -> None:
    """What ID cites and what cites it."""
    from kb import graph

    answer = ask(output, graph.neighbours, work, depth=depth, direction=direction, limit=limit)
    more = f", {answer['summary']['hidden']} more not shown" if answer["summary"] else ""
    show(
        answer,
        answer["nodes"],
        output,
        f"{len(answer['nodes'])} works, {len(answer['edges'])} citations{more}",
    )


@command.command()
@click.argument("start", metavar="FROM")
@click.argument("end", metavar="TO")
@output_options
def path(start: str, end: str, output: Output) -> None:
    """A shortest chain of citations from FROM to TO, whoever cites whom."""
    from kb import graph

    answer = ask(output, graph.shortest_path, start, end)
    if not answer["found"]:
        show(answer, [], output, f"no chain of citations joins {answer['from']} and {answer['to']}")
        return
    ways = "1 way" if answer["count"] == 1 else f"{answer['count']} ways"
    show(answer, answer["nodes"], output, f"{answer['length']} steps, {ways}")


@command.command("co-cited")
@click.argument("work", metavar="ID")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Most rows.")
@output_options
def co_cited(work: str, limit: int, output: Output) -> None:
    """Works that stand in the same reference lists as ID."""
    from kb import graph

    answer = ask(output, graph.co_cited, work, limit=limit)
    show(answer, answer["items"], output, f"{answer['total']} works share a list", "strength", "LISTS")


@command.command()
@click.argument("work", metavar="ID")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Most rows.")
@output_options
def coupled(work: str, limit: int, output: Output) -> None:
    """Works that cite the same works as ID."""
    from kb import graph

    answer = ask(output, graph.coupled, work, limit=limit)
    show(answer, answer["items"], output, f"{answer['total']} works share references", "strength", "SHARED")


@command.command()
@click.option(
    "--by",
    "measure",
    type=click.Choice(["pagerank", "citations", "per-year"]),
    default="pagerank",
    help="The measure.",
)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="Most rows.")
@click.option("--from", "year_from", type=int, help="Only works of this year or later.")
@click.option("--to", "year_to", type=int, help="Only works of this year or earlier.")
@output_options
def rank(measure: str, limit: int, year_from: int | None, year_to: int | None, output: Output) -> None:
    """Works by PageRank, citations, or citations per year."""
    from kb import graph_measures

    answer = ask(
        output, graph_measures.rank, measure=measure, limit=limit, year_from=year_from, year_to=year_to
    )
    show(answer, answer["items"], output, f"{measure}: {answer['meaning']}", "score", "SCORE")


@command.command()
@output_options
def communities(output: Output) -> None:
    """Groups of works that belong together."""
    from kb import graph_measures

    answer = ask(output, graph_measures.communities)
    rows = [{**group, "first": group["items"][0]["title"]} for group in answer["groups"] if group["items"]]
    columns = [("name", "GROUP", 36), ("size", "WORKS", 6), ("first", "MOST CITED", None)]
    show(answer, rows, output, f"grouped by {answer['method']}", columns=columns)


@command.command()
@output_options
def overlap(output: Output) -> None:
    """What the surveys' reference lists share."""
    from kb import graph

    answer = ask(output, graph.overlap)
    rows = [{"lists": one["slug"], "works": one["works"]} for one in answer["surveys"]]
    rows += [{"lists": " + ".join(pair["surveys"]), "works": pair["works"]} for pair in answer["pairs"]]
    rows.append({"lists": "all", "works": answer["all"]["works"]})
    show(
        answer,
        rows,
        output,
        f"{answer['distinct']} works",
        columns=[("lists", "LISTS", None), ("works", "WORKS", 6)],
    )


@command.command()
@click.option("--survey", multiple=True, help="Only the works that these surveys cite.")
@output_options
def timeline(survey: tuple[str, ...], output: Output) -> None:
    """Positions for drawing: year by citations; equal data give equal positions."""
    from kb import graph_measures

    answer = ask(output, graph_measures.timeline, surveys=list(survey) or None)
    columns = [("id", "ID", 36), ("year", "YEAR", 4), ("x", "X", 8), ("y", "Y", 8), ("title", "TITLE", None)]
    show(answer, answer["nodes"], output, f"{len(answer['nodes'])} works", columns=columns)


@command.command()
@click.argument("target", type=click.Choice(["graphml", "csv", "json"]), metavar="FORMAT")
@click.option("-o", "--output-file", type=click.Path(dir_okay=False), help="Write here instead of to stdout.")
@output_options
def export(target: str, output_file: str | None, output: Output) -> None:
    """The whole graph as FORMAT: graphml, csv (one citation per row) or json."""
    import json

    from kb import export_graph, graph

    reader = open_reader(output)
    try:
        if target == "json":
            pieces: Any = [json.dumps(graph.whole(reader), ensure_ascii=False), "\n"]
        else:
            pieces = (export_graph.graphml if target == "graphml" else export_graph.edges_csv)(reader)
        output.write(pieces, output_file)
    finally:
        reader.close()


def ask(output: Output, question: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
    reader = open_reader(output)
    try:
        answer: dict[str, Any] = question(reader, *arguments, **options)
        return answer
    finally:
        reader.close()


def show(
    answer: dict[str, Any],
    rows: list[dict[str, Any]],
    output: Output,
    note: str,
    extra: str = "",
    header: str = "",
    columns: list[tuple[str, str, int | None]] | None = None,
) -> None:
    if output.is_json:
        output.print_json(answer)
        return
    chosen: list[tuple[str, str, int | None]] = columns or list(COLUMNS)
    if extra:
        chosen = [chosen[0], (extra, header, 10), *chosen[1:]]
    if output.format in ("csv", "markdown"):
        output.print_rows([key for key, _header, _limit in chosen], rows)
        return
    from kb.cli.render import table

    if rows:
        click.echo(table(chosen, rows))
    output.note(note)
    for line in answer.get("scope", {}).get("cannot", ())[:1]:
        output.note(f"note: this cannot tell {line}")
