"""How many requests are in flight, so that work in the background can give way to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

QUIET_S = 0.1  # without a request: nobody is about to ask the next thing
CHECK_S = 0.02
PATIENCE_S = 5.0  # under a steady stream of requests the background still gets on, a step at a time


class Traffic:
    """Requests in flight; counted on the event loop, read from any thread."""

    def __init__(self) -> None:
        self.active = 0
        self.ended_s = 0.0  # on the monotonic clock

    def is_quiet(self) -> bool:
        return self.active == 0 and time.monotonic() - self.ended_s >= QUIET_S

    def wait_for_quiet(self, stop: threading.Event) -> bool:
        """Until nobody asks anything, or patience ends; False where `stop` is set."""
        until = time.monotonic() + PATIENCE_S
        while True:
            if stop.wait(CHECK_S):
                return False
            if self.is_quiet() or time.monotonic() >= until:
                return True


class CountRequests:
    """ASGI middleware."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], traffic: Traffic) -> None:
        self.app, self.traffic = app, traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self.traffic.active += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.traffic.active -= 1
            self.traffic.ended_s = time.monotonic()
