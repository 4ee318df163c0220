"""What the first reader after a start would wait for, done in the background as soon as the server is up."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable, Iterator

from fastapi import FastAPI

from kb.search import search
from web.backtested import curve, outcomes
from web.deps import Library
from web.render import environment
from web.traffic import Traffic

AT_ONCE = 3  # steps that every reader needs: data, the recommender's tables, their place in memory
logger = logging.getLogger("kb.web")


def warm(app: FastAPI, library: Library, stop: threading.Event, traffic: Traffic) -> None:
    """Every step at most once, in the order in which readers would miss them; a fault here is no reader's fault.

    After the first ones each waits until nobody asks anything: the processor belongs to whoever does.
    """
    for number, step in enumerate(steps(app, library)):
        if number >= AT_ONCE and not traffic.wait_for_quiet(stop):
            return
        try:
            step()
        except Exception:
            logger.warning("could not prepare pages", exc_info=True)
            return


def settle() -> None:
    """Leave what was read at the start out of every later collection, and collect less often.

    An answer makes thousands of objects that die with it; looking through the catalogue for each would cost more.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


COLLECT_AFTER = (50_000, 20, 50)  # objects made since the last collection, then collections of younger ones


def steps(app: FastAPI, library: Library) -> Iterator[Callable[[], object]]:
    """Data, templates, the example, the reference, then predictions for all measurements and published figures."""
    from web.pages_answer import example_of
    from web.pages_technique import default_question
    from web.validation import validated

    yield library.snapshot
    yield library.knowledge
    yield settle
    for name in environment().list_templates(["html"]):
        yield lambda name=name: environment().get_template(name)  # type: ignore[misc]
    for _ in range(2):  # the second search of a process keeps what counting facets needs
        yield lambda: search(library.reader(), "attention", limit=1, facets=True)
    yield lambda: example_of(library, library.version())
    yield app.openapi
    snapshot = library.snapshot()
    by_size = sorted(snapshot.evidence_by_technique.items(), key=lambda pair: -len(pair[1]))
    for technique, rows in by_size[:1]:  # the recommender's own tables, whichever technique asks first
        yield lambda technique=technique, rows=rows: outcomes(library, technique, rows)  # type: ignore[misc]
    yield validated
    for technique, rows in by_size[1:]:
        yield lambda technique=technique, rows=rows: outcomes(library, technique, rows)  # type: ignore[misc]
    for item in snapshot.techniques:
        if (item["data"] or {}).get("effects"):
            yield lambda item=item: curve(library, item["slug"], default_question(item))  # type: ignore[misc]
    yield settle
