"""What is prepared after a start: every step works, and a stop ends it."""

import threading

from web.warm import steps, warm


def test_every_kind_of_step_works(application, library):
    done = 0
    for step in steps(application, library):
        step()
        done += 1
        if done == 60:  # data, templates, example, reference, measurements and some published figures
            break
    assert done == 60


def test_a_stop_ends_it_and_a_fault_is_no_readers_fault(application, library, caplog):
    stop = threading.Event()
    stop.set()
    warm(application, library, stop)

    class Broken:
        def snapshot(self):
            raise OSError("disk")

        knowledge = version = snapshot

    warm(application, Broken(), threading.Event())
    assert "could not prepare pages" in caplog.text
