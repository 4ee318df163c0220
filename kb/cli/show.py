"""`kb show ID`: a technique, paper, survey, model or device with everything linked."""

from __future__ import annotations

from typing import Any

import click

from kb.cli.common import Output, open_reader, output_options

TYPES = ("technique", "paper", "survey", "model", "hardware")


@click.command()
@click.argument("id_", metavar="ID")
@click.option("--type", "type_", type=click.Choice(TYPES), help="Where several records have this name.")
@click.option("--provenance", is_flag=True, help="Papers: which source says each field.")
@click.option("--hw", help="Techniques: with --model, the gain over batch and context on this device.")
@click.option("--model", help="Techniques: with --hw.")
@output_options
def command(
    id_: str, type_: str | None, provenance: bool, hw: str | None, model: str | None, output: Output
) -> None:
    """Show ID: a technique, a paper (slug, arXiv id or DOI), a survey, a model or a device."""
    if bool(hw) != bool(model):
        raise click.UsageError(
            "--hw and --model belong together — give both to see a technique's gain, or neither"
        )
    reader = open_reader(output)
    data = find(reader, id_, type_)
    if hw and model:
        if data["type"] != "technique":
            raise click.UsageError(f"{id_} is a {data['type']} — --hw and --model apply to techniques")
        from recommender.service import technique_curve

        data["gain"] = technique_curve(reader, data["slug"], {"hardware": hw, "model": model})
    if data["type"] == "paper":
        from kb.store_provenance import provenance_of

        data["provenance"] = provenance_of(reader, data["id"])
    reader.close()
    if output.is_json:
        output.print_json(data)
    elif output.format in ("csv", "markdown"):
        output.print_fields(data)
    else:
        from kb.cli import render_show

        click.echo(render_show.render(data, provenance=provenance))


def find(reader: Any, text: str, type_: str | None) -> dict[str, Any]:
    """The record that `text` names, in the order of TYPES; an error lists near names of every type."""
    from costmodel.catalogue import find_hardware, find_model
    from costmodel.errors import UnknownName
    from kb import store
    from kb.errors import NotFound

    def catalogued(finder: Any) -> dict[str, Any]:
        resolved = finder(text)
        return {**store.spec_item(resolved.spec), "alternatives": list(resolved.alternatives)}

    finders = {
        "technique": lambda: store.get_technique(reader, text),
        "paper": lambda: store.get_paper(reader, text),
        "survey": lambda: store.get_survey(reader, text),
        "model": lambda: catalogued(find_model),
        "hardware": lambda: catalogued(find_hardware),
    }
    suggestions: list[str] = []
    for name, finder in finders.items():
        if type_ not in (None, name):
            continue
        try:
            return {"type": name, **finder()}
        except (NotFound, UnknownName) as error:
            suggestions += [near for near in error.suggestions if near not in suggestions]
    raise NotFound(
        type_ or "technique, paper, survey, model or device",
        text,
        suggestions[:5],
        hint="try: kb search WORDS",
    )
