"""`kb completion SHELL`: the script that a shell needs to complete our commands."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script; for bash: eval "$(kb completion bash)"."""
    from click.shell_completion import get_completion_class

    from kb.cli import cli

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(completion(cli, {}, "kb", "_KB_COMPLETE").source())
