"""Documentation in step with the code: commands, README examples, links between pages."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest

from kb.cli import COMMANDS
from kb.cli.reference import reference

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
)


def test_command_reference_is_current():
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == reference(), (
        "run: python -m kb.cli.reference > docs/cli.md"
    )


def parameters(command: click.Command):
    yield from command.params
    for child in getattr(command, "commands", {}).values():
        yield from parameters(child)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_has_help(name):
    command = import_module(COMMANDS[name][0]).command
    assert command.help, name
    for parameter in parameters(command):
        if isinstance(parameter, click.Option):
            assert parameter.help, f"kb {name} {parameter.opts[0]} has no help"


def commands_in(page: Path):
    """The `kb …` lines of a page's shell blocks."""
    for block in re.findall(r"```(?:sh|console|bash)\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        for line in block.splitlines():
            line = line.removeprefix("$ ").split(" #")[0].strip()
            if line.startswith("kb "):
                yield line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_pages_exist(page):
    for line in commands_in(page):
        words = shlex.split(line)
        names = [word for word in words[1:] if not word.startswith("-")]
        assert words[1].startswith("-") or names[0] in COMMANDS, line


def test_modules_and_scripts_in_pages_can_be_run():
    pages = "".join(page.read_text(encoding="utf-8") for page in [*PAGES, ROOT / "taxonomy/data/README.md"])
    modules = [
        f"{name.replace('.', '/')}.py" for name in re.findall(r"python -m ([a-z]\w*\.[\w.]+\w)", pages)
    ]
    scripts = re.findall(r"python ([\w/]+\.py)", pages)
    assert modules and scripts
    for path in {*modules, *scripts}:
        assert '__name__ == "__main__"' in (ROOT / path).read_text(encoding="utf-8"), path


def test_readme_examples_run(database, capsys):
    """Every `kb` line of the README that asks a question answers it."""
    from kb.cli import run

    lines = [
        line
        for line in commands_in(ROOT / "README.md")
        if not line.startswith(("kb serve", "kb ingest", "kb merge"))
    ]
    assert len(lines) >= 5
    for line in lines:
        arguments = shlex.split(line.split("|")[0].split(">")[0])[1:]
        status = run(
            [*arguments, "--db", database] if arguments[0] not in ("--version", "--help") else arguments
        )
        captured = capsys.readouterr()
        assert status == 0, f"{line}: {captured.err}"
        assert captured.out.strip(), line
