"""Templates: one environment, one way to make a page, one error page."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from web import formats
from web.errors import Problem
from web.urls import Pairs, link, record_path, reference_path, unknown_parameters

NAVIGATION = (
    ("/", "Ask"),
    ("/techniques", "Techniques"),
    ("/papers", "Papers"),
    ("/graph", "Graph"),
    ("/compare", "Compare"),
    ("/validation", "Validation"),
)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates lie in the package; undefined names are errors, not blanks."""
    found = Environment(
        loader=FileSystemLoader(str(files("web") / "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update(formats.FILTERS)
    found.globals.update(
        link=link, record=record_path, reference=reference_path, plural=formats.plural, navigation=NAVIGATION
    )
    return found


@lru_cache(maxsize=1)
def package_version() -> str:
    try:
        return version("kb-inference")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unreleased"


def page(
    request: Request,
    template: str,
    *,
    title: str,
    known: tuple[str, ...] = (),
    notices: tuple[str, ...] = (),
    status: int = 200,
    headers: dict[str, str] | None = None,
    json_url: str = "",
    csv_url: str = "",
    command: str = "",
    reproduce: str = "",
    shown: str = "",
    **context: Any,
) -> HTMLResponse:
    """Render; `known` are the query parameters this page reads, all others are named in a notice.

    Pages with numbers carry a text to report a wrong one: `reproduce` is the command that prints them (else `command`),
    `shown` the numbers in question (else the title).
    """
    strange = unknown_parameters(request.query_params.keys(), known)
    told = list(notices)
    if strange:
        allowed = f" It reads {', '.join(known)}." if known else " It reads none."
        told.insert(
            0, f"This page does not know {', '.join(name[:40] for name in strange[:5])}; left out.{allowed}"
        )
    assets = request.app.state.assets
    body = (
        environment()
        .get_template(template)
        .render(
            title=title,
            path=request.url.path,
            here=request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            asset=assets.url,
            plotly_url=assets.plotly_url,
            notices=told,
            json_url=json_url,
            csv_url=csv_url,
            command=command,
            report=report_text(request, reproduce or command, shown or title),
            app_version=package_version(),
            data_version=data_version(request),
            **context,
        )
    )
    return HTMLResponse(body, status, headers)


def report_text(request: Request, command: str, shown: str) -> str:
    """What somebody needs to look into a wrong number, to be copied into a message: nothing is sent from here."""
    if not command:
        return ""
    address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return "\n".join(
        (
            f"Page: {address}",
            f"Reproduce: {command}",
            f"Version: kb {package_version()}, data {data_version(request)}",
            f"Shown: {shown}",
            "Should be: ",
            "Known from (paper and table, or a measurement with engine, version, batch, prompt, output): ",
        )
    )


def data_version(request: Request) -> str:
    try:
        text: str = request.app.state.library.version()
        return text[:8]
    except Exception:  # the error page must render even when the database is the error
        return ""


def render_problem(request: Request, problem: Problem, headers: dict[str, str]) -> HTMLResponse:
    return page(
        request,
        "error.html",
        title=problem.message[:1].upper() + problem.message[1:],
        status=problem.status,
        headers=headers,
        known=tuple(request.query_params.keys()),
        problem=problem,
    )


def moved(path: str, pairs: Pairs | None = None) -> RedirectResponse:
    """301 to the canonical address."""
    return RedirectResponse(link(path, pairs), 301)


def integer(text: str | None, default: int = 1, low: int = 1, high: int = 10**6) -> int:
    """A number from the query string; anything else is the default (the page says so in its own words)."""
    try:
        return min(max(int(text or default), low), high)
    except ValueError:
        return default
