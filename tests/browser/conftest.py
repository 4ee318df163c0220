"""A real server and a real Chromium. Nothing here skips by itself: with `--browser`, what is missing is an error."""

import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest

CHROMIUM = os.environ.get("KB_CHROMIUM", "/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def server(application):
    """The address of the application, served by uvicorn in a thread."""
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    runner = uvicorn.Server(uvicorn.Config(application, log_level="error", lifespan="off"))
    thread = threading.Thread(target=runner.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not runner.started:
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    runner.should_exit = True
    thread.join(10)
    listener.close()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    from playwright.sync_api import sync_playwright

    assert Path(CHROMIUM).exists(), f"{CHROMIUM} is missing: apt-get install chromium, or set KB_CHROMIUM"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield found
        found.close()


class Watch:
    """What a page did besides being shown."""

    def __init__(self, page, origin):
        self.console, self.outside = [], []
        page.on(
            "console",
            lambda message: (
                self.console.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((origin, "data:", "blob:"))
                else self.outside.append(request.url)
            ),
        )


@pytest.fixture
def visit(browser, server):
    """Opens a fresh page: visit(width, theme) → (page, watch)."""
    contexts = []

    def open_page(width=1280, theme="light", **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=theme, base_url=server, **options
        )
        contexts.append(context)
        page = context.new_page()
        return page, Watch(page, server)

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """axe-core's source, from KB_AXE or installed from the npm registry for this run; never kept in the repository."""
    given = os.environ.get("KB_AXE")
    if given:
        return Path(given).read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("axe")
    (folder / "package.json").write_text(json.dumps({"private": True}))
    subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "axe-core@4"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
