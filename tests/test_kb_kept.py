"""Values kept in memory: made once by many threads, dropped oldest first, retried after a fault."""

import threading
import time

import pytest

from kb.kept import Kept


def test_threads_that_ask_together_make_it_once():
    kept, made, got = Kept(4), [], []
    start = threading.Barrier(8)

    def make():
        time.sleep(0.05)
        made.append(1)
        return "value"

    def ask():
        start.wait()
        got.append(kept.made("key", make))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1] and got == ["value"] * 8 and not kept.making


def test_the_least_recently_used_goes_first():
    kept = Kept(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert (kept.get("a"), kept.get("b"), kept.get("c")) == (1, None, 3)


def test_what_raises_is_tried_again():
    kept = Kept(2)

    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError):
        kept.made("key", fails)
    assert kept.made("key", lambda: 5) == 5 and not kept.making
