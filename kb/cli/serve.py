"""`kb serve`: the web interface and the REST API."""

from __future__ import annotations

import click

from kb.cli.common import Output, output_options, prepare_database

BACKLOG = 2048  # connections that wait until they are taken; uvicorn's number


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on."
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Processes that answer; one a core serves most.",
)
@output_options
def command(host: str, port: int, workers: int, output: Output) -> None:
    """Serve the web interface and the REST API."""
    import socket

    url = prepare_database(output)
    # Listening first: a busy port is then one line, not a server's log, and whoever comes early waits.
    probe = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        probe.bind((host, port))
        probe.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        probe.close()
        raise click.UsageError(
            f"cannot listen on {host}:{port} ({error}) — choose another with --port"
        ) from error
    actual = probe.getsockname()[1]
    output.note(
        f"kb is at http://{'127.0.0.1' if host in ('0.0.0.0', '') else host}:{actual}/ (Ctrl-C stops it)"
    )
    if workers > 1:
        from web.workers import run

        run(probe, workers, url)
        return
    import uvicorn

    from web.app import create_app

    config = uvicorn.Config(create_app(url), log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[probe])
