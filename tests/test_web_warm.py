"""What is prepared after a start: every step works, and a stop ends it."""

import threading

from fastapi.testclient import TestClient

from web import traffic as counted
from web.app import create_app
from web.traffic import Traffic
from web.warm import AT_ONCE, steps, warm


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
    warm(application, library, stop, Traffic())

    class Broken:
        def snapshot(self):
            raise OSError("disk")

        knowledge = version = snapshot

    warm(application, Broken(), threading.Event(), Traffic())
    assert "could not prepare pages" in caplog.text


def test_the_background_gives_way_to_requests(application, library, monkeypatch):
    """While a request is in flight only what every reader needs is done; then the rest, or one step as patience ends."""
    monkeypatch.setattr(counted, "PATIENCE_S", 0.05)
    traffic, stop, done = Traffic(), threading.Event(), []

    def step(number):
        done.append((number, traffic.active))
        if number == AT_ONCE + 1:
            stop.set()

    monkeypatch.setattr("web.warm.steps", lambda app, library: (lambda n=n: step(n) for n in range(10)))
    traffic.active = 1
    thread = threading.Thread(target=warm, args=(application, library, stop, traffic))
    thread.start()
    thread.join(10)
    assert [number for number, _ in done] == list(range(AT_ONCE + 2))

    monkeypatch.setattr(counted, "PATIENCE_S", 60.0)
    done.clear()
    stop.clear()
    thread = threading.Thread(target=warm, args=(application, library, stop, traffic))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive() and [number for number, _ in done] == list(range(AT_ONCE))
    traffic.active = 0
    thread.join(10)
    assert [number for number, _ in done] == list(range(AT_ONCE + 2))


def test_requests_are_counted_whatever_becomes_of_them(database):
    app = create_app(f"sqlite:///{database}", warm=False)
    seen = []
    traffic = next(item.kwargs["traffic"] for item in app.user_middleware if "traffic" in item.kwargs)

    @app.get("/breaks")
    def breaks():
        seen.append(traffic.active)
        raise RuntimeError

    with TestClient(app, raise_server_exceptions=False) as client:
        assert client.get("/breaks").status_code == 500
        assert client.get("/api/v1/health").status_code == 200
    assert seen == [1] and traffic.active == 0 and traffic.ended_s > 0
