"""The command reference as Markdown, from the commands' own help: `python -m kb.cli.reference > docs/cli.md`."""

from __future__ import annotations

from importlib import import_module

import click

from kb.cli import COMMANDS, cli


def help_text(command: click.Command, path: str) -> str:
    """A command's help as the command line shows it: its context hangs below those of the words before it."""
    context = None
    words = path.split()
    for depth, word in enumerate(words, 1):
        last = depth == len(words)
        context = click.Context(
            command if last else cli,
            info_name=word,
            parent=context,
            help_option_names=cli.context_settings["help_option_names"],
            max_content_width=80,
            terminal_width=80,
        )
    assert context is not None
    return command.get_help(context)


def reference() -> str:
    """One section for each command and sub-command, in the order of `kb --help`."""
    parts = [
        "# Command reference",
        "",
        "Generated from `--help` by `python -m kb.cli.reference > docs/cli.md`; a test keeps it in step.",
        "",
        "## kb",
        "",
        f"```text\n{help_text(cli, 'kb')}\n```",
    ]
    for name, (module, _summary) in COMMANDS.items():
        command = import_module(module).command
        parts += ["", f"## kb {name}", "", f"```text\n{help_text(command, f'kb {name}')}\n```"]
        if isinstance(command, click.Group):
            for child, sub in command.commands.items():
                parts += [
                    "",
                    f"### kb {name} {child}",
                    "",
                    f"```text\n{help_text(sub, f'kb {name} {child}')}\n```",
                ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
