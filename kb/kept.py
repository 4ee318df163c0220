"""Results kept in memory: each made once, however many threads ask for it at the same time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """At most `most` values, the least recently used dropped first.

    Threads that ask for a value in the making wait for it: twenty readers who come right after a start cost as much
    as one. What raises is not kept, and the next one tries again.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.lock = Lock()
        self.values: OrderedDict[Hashable, Value] = OrderedDict()
        self.making: dict[Hashable, Lock] = {}

    def get(self, key: Hashable) -> Value | None:
        with self.lock:
            if key not in self.values:
                return None
            self.values.move_to_end(key)
            return self.values[key]

    def put(self, key: Hashable, value: Value) -> None:
        with self.lock:
            self.values[key] = value
            self.values.move_to_end(key)
            while len(self.values) > self.most:
                self.values.popitem(last=False)

    def made(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The kept value, or what `make` returns."""
        found = self.get(key)
        if found is not None:
            return found
        with self.lock:
            turn = self.making.setdefault(key, Lock())
        try:
            with turn:
                found = self.get(key)
                if found is None:
                    found = make()
                    self.put(key, found)
                return found
        finally:
            with self.lock:
                if not turn.locked():
                    self.making.pop(key, None)
