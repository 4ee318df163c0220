"""The citation graph as GraphML and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from kb.graph import Graph, load_graph
from kb.reader import Reader

NODE_KEYS = (("title", "string"), ("year", "int"), ("first_author", "string"), ("kind", "string"), ("role", "string"),
             ("survey", "string"), ("cited_by", "int"))  # fmt: skip
EDGE_KEYS = (("number", "int"),)
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def chosen_works(graph: Graph, works: set[int] | None) -> list[int]:
    """The works to write; with a choice also the surveys that cite them, or there would be no edge."""
    if works is None:
        found = set(graph.references) | set(graph.cited_by)
    else:
        found = works | {citing for work in works for citing in graph.cited_by.get(work, ())}
    return sorted((work for work in found if work in graph.works), key=lambda work: graph.works[work]["slug"])


def graphml(reader: Reader, works: set[int] | None = None) -> Iterator[str]:
    """GraphML, directed: an edge is a citation with its number in the citing work's list."""
    graph = load_graph(reader)
    kept = chosen_works(graph, works)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for name, type_ in NODE_KEYS:
        yield f'  <key id="{name}" for="node" attr.name="{name}" attr.type="{type_}"/>\n'
    for name, type_ in EDGE_KEYS:
        yield f'  <key id="{name}" for="edge" attr.name="{name}" attr.type="{type_}"/>\n'
    yield '  <graph id="citations" edgedefault="directed">\n'
    for work in kept:
        values = node_values(graph, work)
        data = "".join(
            f'<data key="{name}">{text(values[name])}</data>'
            for name, _type in NODE_KEYS
            if values[name] not in (None, "")
        )
        yield f"    <node id={quoteattr(graph.works[work]['slug'])}>{data}</node>\n"
    for citing, cited, number in edges(graph, set(kept)):
        data = f'<data key="number">{number}</data>' if number is not None else ""
        yield f"    <edge source={quoteattr(citing)} target={quoteattr(cited)}>{data}</edge>\n"
    yield "  </graph>\n</graphml>\n"


def text(value: Any) -> str:
    return escape(NOT_XML.sub("", str(value)))


def node_values(graph: Graph, work: int) -> dict[str, Any]:
    known = graph.works[work]
    names = ("title", "year", "first_author", "kind", "role")
    return {
        **{name: known[name] for name in names},
        "survey": graph.surveys.get(work),
        "cited_by": graph.degree(work),
    }


def edges(graph: Graph, kept: set[int]) -> Iterator[tuple[str, str, int | None]]:
    for citing in sorted(graph.references, key=lambda work: graph.works[work]["slug"]):
        if citing in kept:
            for cited, number in graph.references[citing].items():
                if cited in kept:
                    yield graph.works[citing]["slug"], graph.works[cited]["slug"], number


def edges_csv(reader: Reader, works: set[int] | None = None) -> Iterator[str]:
    """One citation per row, with both titles, so that the file is enough by itself."""
    from kb.export import harmless

    graph = load_graph(reader)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["citing", "cited", "number", "citing_title", "cited_title", "citing_year", "cited_year"])
    for citing, cited, number in edges(graph, set(chosen_works(graph, works))):
        one, other = graph.works[graph.slugs[citing]], graph.works[graph.slugs[cited]]
        row = [citing, cited, number, one["title"], other["title"], one["year"], other["year"]]
        writer.writerow([harmless(value) for value in row])
    yield buffer.getvalue()
