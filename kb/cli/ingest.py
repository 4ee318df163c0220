"""`kb ingest SOURCE…`: papers from files or providers into the knowledge base."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, output_options, prepare_database

EPILOG = """\b
A file is recognised by its content: survey page (text, Markdown), Crossref, CSL,
OpenAlex or Semantic Scholar JSON, JSON lines, BibTeX, RIS, arXiv Atom, a plain
list of references; also compressed with gzip.

\b
Examples:
  kb ingest references.bib survey.md
  kb ingest arxiv:2309.06180 doi:10.1145/3600006.3613165
  kb ingest openalex:filter=cites:W2741809807
  kb ingest "crossref:query.bibliographic=paged attention&filter=type:book"
  curl … | kb ingest - --dry-run

\b
Keys and addresses from the environment: OPENALEX_API_KEY, S2_API_KEY,
KB_MAILTO, KB_CACHE_DIR, KB_{ARXIV,CROSSREF,OPENALEX,S2}_URL.
"""


@click.command(epilog=EPILOG)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE…")
@click.option("--dry-run", is_flag=True, help="Say what would happen; change nothing.")
@click.option("--no-classify", is_flag=True, help="No proposals of levels for new papers.")
@output_options
def command(sources: tuple[str, ...], dry_run: bool, no_classify: bool, output: Output) -> None:
    """Read papers from files, standard input (-) or providers (doi: arxiv: openalex: s2:)."""
    import sys

    from ingest.ingest import ingest
    from kb.db import open_session

    url = prepare_database(output)
    with open_session(url) as session:
        outcome = ingest(
            session,
            sources,
            dry_run=dry_run,
            stdin=sys.stdin.buffer if "-" in sources else None,
            note=output.note,
        )
    answer = {**outcome.as_json(), "dry_run": dry_run}
    answer["classification"] = [] if dry_run or no_classify else classify(url, outcome.report.works)
    show(answer, output)


def classify(url: str, works: list[int]) -> list[dict[str, Any]]:
    """Proposed roles and levels of new works, for a person to accept; nothing is stored."""
    try:
        from recommender.classify import propose_for_works
    except ImportError:
        return []
    from kb.db import open_reader

    reader = open_reader(url)
    try:
        return [dict(one) for one in propose_for_works(reader, works[:200])]
    finally:
        reader.close()


def described(reference: dict[str, Any]) -> str:
    """A reference as it was read, on one line."""
    names = ", ".join(author["family"] for author in reference.get("authors", [])[:4])
    if reference.get("et_al") or len(reference.get("authors", [])) > 4:
        names += " et al."
    found = [
        f"{label} {reference[key]}"
        for key, label in (("arxiv_id", "arXiv"), ("doi", "DOI"))
        if reference.get(key)
    ]
    parts = [
        reference.get("title") or "(no title)",
        names,
        str(reference.get("year") or ""),
        reference.get("venue", ""),
        *found,
    ]
    return " · ".join(part for part in [*parts, reference.get("kind", "")] if part)


def show(answer: dict[str, Any], output: Output) -> None:
    if output.is_json:
        output.print_json(answer)
        return
    if output.format in ("csv", "markdown"):
        output.print_rows(["read", "new", "matched", "merged", "proposed", "known"], [answer])
        return
    from kb.cli.render import shorten, wrap

    would = "would be " if answer["dry_run"] else ""
    click.echo(
        wrap(
            f"{answer['read']} references read: {answer['new']} works {would}new, {answer['matched']} matched, "
            f"{answer['merged']} works {would}merged, {answer['proposed']} possible duplicates {would}proposed"
        )
    )
    for one in answer["preview"][:5]:
        click.echo(wrap(described(one), indent=2, hang=4))
    if answer["known"]:
        click.echo(f"{answer['known']} were read before from the same content and are unchanged")
    listed = answer["unresolved"]
    if listed:
        click.echo(f"{len(listed) + answer['unresolved_not_listed']} not resolved:")
        for one in listed[:20]:
            where = one.get("locator") or one["source"]
            click.echo(wrap(f"{shorten(where, 40)}: {one['reason']}", indent=2, hang=4))
        if len(listed) > 20:
            click.echo(f"  … {len(listed) - 20} more with --json")
    show_classification(answer["classification"])
    for note in answer["notes"]:
        output.note(f"note: {note}")
    if answer["proposed"]:
        output.note("see: kb dedupe")


def show_classification(proposals: list[dict[str, Any]]) -> None:
    """Where each new paper may belong: proposals that nobody has accepted, likeliest class first."""
    from kb.cli.render import shorten, wrap

    if proposals:
        click.echo("perhaps (proposed from the titles; nothing is stored):")
    for one in proposals[:10]:
        classes = ", ".join(f"{item['name']} {item['confidence']:.0%}" for item in one["classes"][:2])
        bottleneck = one["bottlenecks"][0]
        click.echo(wrap(str(one["work"]), indent=2, hang=4))
        level = f"{one['level']['path']} {one['level']['confidence']:.0%}"
        click.echo(
            wrap(f"{level}: {classes}; {bottleneck['slug']} {bottleneck['confidence']:.0%}", indent=4, hang=6)
        )
        near = one["nearest"][0]
        click.echo(wrap(f"near {near['id']} ({shorten(near['title'], 44)})", indent=4, hang=6))
    if len(proposals) > 10:
        click.echo(f"  … {len(proposals) - 10} more with --json")
