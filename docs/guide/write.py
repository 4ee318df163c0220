"""Runs the scenarios of scenarios.toml and writes one page each: `python docs/guide/write.py`.

The commands run as a user would run them, on the packaged knowledge base. `--check` writes nothing and says which
pages no longer show what the commands print.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def scenarios() -> list[dict[str, Any]]:
    return list(tomllib.loads((HERE / "scenarios.toml").read_text(encoding="utf-8"))["scenario"])


def run(command: str) -> str:
    """What the command prints on a terminal of 80 columns, without colour."""
    from click.testing import CliRunner

    from kb.cli import cli

    words = shlex.split(command)
    result = CliRunner().invoke(cli, [*words[1:], "--quiet"], env={"COLUMNS": "80", "NO_COLOR": "1"})
    if result.exit_code != 0:
        raise SystemExit(f"{command} exits {result.exit_code}: {result.output}")
    return "\n".join(line.rstrip() for line in result.stdout.splitlines()).strip("\n")


def page(number: int, scenario: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"# {number}. {scenario['title']}",
            "",
            "<!-- written by docs/guide/write.py from scenarios.toml; do not edit -->",
            "",
            scenario["question"],
            "",
            "```console",
            f"$ {scenario['command']}",
            "```",
            "",
            "```text",
            run(scenario["command"]),
            "```",
            "",
            "## By hand",
            "",
            "What the answer has to agree with:",
            "",
            scenario["by_hand"].strip(),
            "",
            "## Where to doubt it",
            "",
            scenario["doubt"],
            "",
        ]
    )


def index(found: list[dict[str, Any]]) -> str:
    lines = [
        "# Ten worked scenarios",
        "",
        "<!-- written by docs/guide/write.py from scenarios.toml; do not edit -->",
        "",
        "Questions that people really ask, the answer of `kb recommend`, and the arithmetic it has to agree with.",
        "",
    ]
    lines += [f"{n}. [{s['title']}]({name(n, s)}) — `{s['command']}`" for n, s in enumerate(found, 1)]
    return "\n".join(lines) + "\n"


def name(number: int, scenario: dict[str, Any]) -> str:
    return f"{number:02d}-{scenario['slug']}.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="compare only; exit 1 where a page is out of step"
    )
    options = parser.parse_args()
    found = scenarios()
    pages = {name(n, s): page(n, s) for n, s in enumerate(found, 1)}
    pages["README.md"] = index(found)
    stale = [
        file
        for file, text in pages.items()
        if not (HERE / file).exists() or (HERE / file).read_text(encoding="utf-8") != text
    ]
    if options.check:
        print("\n".join(stale) or "all pages are in step")
        sys.exit(1 if stale else 0)
    for file in stale:
        (HERE / file).write_text(pages[file], encoding="utf-8")
    print(f"wrote {len(stale)} of {len(pages)} pages")


if __name__ == "__main__":
    main()
