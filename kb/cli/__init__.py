"""The command line: a lazy group that imports only the module of the command that is asked for."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

# `list` is read by kb.cli.listing: a module kb.cli.list would hide the built-in name in this package.
COMMANDS: dict[str, tuple[str, str]] = {
    "recommend": ("kb.cli.recommend", "Which techniques pay off for a model on a device, and why."),
    "estimate": ("kb.cli.estimate", "Time, memory and bottleneck of one deployment."),
    "fit": ("kb.cli.fit", "Which hardware and plan reach a target, cheapest first."),
    "sweep": ("kb.cli.sweep", "A grid of estimates, one row each."),
    "compare": ("kb.cli.compare", "Techniques side by side, a source in each cell."),
    "search": ("kb.cli.search", "Search papers, techniques, surveys, models and hardware."),
    "show": ("kb.cli.show", "One technique, paper, survey, model or device with everything linked."),
    "list": (
        "kb.cli.listing",
        "Techniques, papers, surveys, models, hardware, engines, bottlenecks, levels.",
    ),
    "references": ("kb.cli.references", "A survey's reference list as it was read."),
    "graph": ("kb.cli.graph", "The citation graph: neighbours, paths, co-citation, ranks."),
    "ingest": ("kb.cli.ingest", "Read papers from files or providers into the knowledge base."),
    "parse-ref": ("kb.cli.parse_ref", "How a reference string is read; stores nothing."),
    "dedupe": ("kb.cli.dedupe", "Proposed duplicates, with the basis; changes nothing."),
    "merge": ("kb.cli.merge", "Declare two works the same."),
    "unmerge": ("kb.cli.unmerge", "Undo a merge exactly."),
    "export": ("kb.cli.export", "Bibliography or graph as BibTeX, RIS, CSL-JSON, CSV, GraphML, JSON."),
    "validate": ("kb.cli.validate", "Predicted beside measured: how far to trust the cost model."),
    "backtest": ("kb.cli.backtest", "Predicted beside reported gains of techniques."),
    "serve": ("kb.cli.serve", "The web interface and REST API on this machine."),
    "db": ("kb.cli.db", "Create, upgrade or describe the database."),
    "completion": ("kb.cli.completion", "Print the completion script for bash, zsh or fish."),
}

EPILOG = """\b
Examples:
  kb recommend --hw rtx3090 --model 70b
  kb recommend --hw h100 --model llama-3.1-8b --batch 64 --objective throughput
  kb show awq
"""


class ClosedPipe(Exception):
    """Whoever read our output stopped reading."""


class LazyGroup(click.Group):
    """Lists commands from COMMANDS without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        return import_module(COMMANDS[cmd_name][0]).command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            raise click.UsageError(f"unknown command {args[0]!r} — {hint}list all: kb --help")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ClosedPipe from error  # click itself would exit with 1, which means that a check found something

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_module, text) in COMMANDS.items()])


def print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"kb {version('kb-inference')}")
    ctx.exit()


@click.command(
    cls=LazyGroup,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    no_args_is_help=True,
)
@click.option("--json", "as_json", is_flag=True, help="JSON on stdout, nothing else.")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json", "csv", "markdown"]), help="Output format."
)
@click.option("--db", metavar="URL", help="Database: a file or an SQLAlchemy URL.")
@click.option("--quiet", is_flag=True, help="No notes or progress on stderr.")
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=print_version, help="Version."
)
def cli(as_json: bool, format_: str | None, db: str | None, quiet: bool) -> None:
    """Which optimization techniques pay off for this model, on this hardware, under this workload:
    by how much, why, and who showed it."""


def known_errors() -> tuple[type[Exception], ...]:
    """The base errors of the packages that are loaded; nothing is imported for this."""
    found = []
    for module, name in (
        ("costmodel.errors", "CostModelError"),
        ("taxonomy.errors", "TaxonomyError"),
        ("kb.errors", "KnowledgeBaseError"),
        ("ingest.errors", "IngestError"),
        ("recommender.errors", "RecommenderError"),
    ):
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)


def fail(message: str, hint: str = "") -> int:
    """One line on stderr, whatever the message holds; exit status 2."""
    line = " ".join(f"{message} — {hint}".split() if hint else message.split())
    try:
        print(f"error: {line}", file=sys.stderr)
    except (BrokenPipeError, ValueError, OSError):
        return 2
    return 2


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0 done, 1 a check found something, 2 the request was wrong."""
    try:
        outcome = cli.main(
            args=None if arguments is None else list(arguments), prog_name="kb", standalone_mode=False
        )
        sys.stdout.flush()
        return outcome if isinstance(outcome, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message())
        return 0
    except click.ClickException as error:
        ctx = getattr(error, "ctx", None)
        path = ctx.command_path if ctx is not None else "kb"
        message = error.format_message()
        hint = "" if " — " in message or "Did you mean" in message else f"see: {path} --help"
        return fail(message, hint)
    except (click.Abort, KeyboardInterrupt):
        return fail("interrupted")
    except (BrokenPipeError, ClosedPipe):
        # Nothing more can be written; without this the interpreter would complain again while it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return fail(
            "the reader closed the pipe before all output was written", "nothing in the database changed"
        )
    except RecursionError:
        return fail("the input is nested too deeply")
    except Exception as error:
        if os.environ.get("KB_DEBUG"):
            raise
        if isinstance(error, known_errors()):
            return fail(str(getattr(error, "message", error)), str(getattr(error, "hint", "")))
        if isinstance(error, OSError):
            return fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return fail(
            f"internal error: {type(error).__name__}: {error}", "KB_DEBUG=1 shows where; please report it"
        )


def main() -> None:
    """Entry point of the `kb` command."""
    # Our arrays are small and multiplied by no library: its threads would only cost 0.05 s as they start.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Reading the catalogue makes some 35,000 objects that live on; with Python's threshold of 700 the collector
    # walks them over a hundred times, some 0.05 s of a cold answer.
    gc.set_threshold(50_000)
    sys.exit(run())
