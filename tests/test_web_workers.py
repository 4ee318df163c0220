"""Several processes behind one port: connections in turn, a dead process replaced, faults in one line."""

import http.client
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from web import workers
from web.workers import Handed, ServerError, Worker, hand_over, run


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def pairs():
    made = [socket.socketpair() for _ in range(2)]
    yield made
    for pair in made:
        for end in pair:
            end.close()


def test_connections_go_round(listener, pairs):
    """Each of two gets every second connection, and the bytes that its client sent before."""
    crew = [Worker(None, ours) for ours, _theirs in pairs]
    ends = [Handed(fileno=os.dup(theirs.fileno())) for _ours, theirs in pairs]
    clients, turn = [], 0
    for number in range(4):
        clients.append(socket.create_connection(listener.getsockname()))
        clients[-1].sendall(bytes([number]))
        turn = hand_over(listener, crew, turn)
    for first, end in enumerate(ends):
        for number in (first, first + 2):
            connection, address = end.accept()
            assert connection.getblocking() is False and address == clients[number].getsockname()
            connection.setblocking(True)
            assert connection.recv(1) == bytes([number])
            connection.close()
        end.setblocking(False)
        with pytest.raises(BlockingIOError):  # no more than its share
            end.accept()
    for each in (*clients, *ends):
        each.close()


def test_whoever_is_gone_is_passed_over(listener, pairs):
    crew = [Worker(None, ours) for ours, _theirs in pairs]
    pairs[0][1].close()
    with socket.create_connection(listener.getsockname()):
        assert hand_over(listener, crew, 0) == 0
        pairs[1][1].setblocking(False)
        message, handles, _flags, _address = socket.recv_fds(pairs[1][1], 1, 1)
        assert message and len(handles) == 1
        os.close(handles[0])


def test_a_worker_that_cannot_start_ends_it(listener):
    with pytest.raises(ServerError, match="a worker ended at its start"):
        run(listener, 2, "", work=print)
    assert not multiprocessing.active_children()


def ask(address, path="/api/v1/health"):
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@pytest.fixture
def interruptible():
    """Shells ignore Ctrl-C in what they start in the background, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_dead_worker_is_replaced(listener, database):
    """Real processes: all connections are answered before and after one is killed; Ctrl-C ends everything."""
    seen, faults = [], []

    def visit():
        try:
            address = listener.getsockname()
            seen.append([ask(address)[0] for _ in range(4)])
            before = multiprocessing.active_children()
            before[0].kill()
            until = time.monotonic() + 60
            while len(now := multiprocessing.active_children()) < 2 or set(now) == set(before):
                assert time.monotonic() < until
                time.sleep(0.05)
            seen.append([ask(address)[0] for _ in range(4)])
        except Exception as error:
            faults.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    visitor = threading.Thread(target=visit)
    visitor.start()
    with pytest.raises(KeyboardInterrupt):
        run(listener, 2, f"sqlite:///{database}")
    visitor.join()
    assert not faults
    assert seen == [[200] * 4, [200] * 4]
    assert not multiprocessing.active_children()


def test_the_command(database):
    command = [sys.executable, "-m", "kb.cli", "serve", "--port", "0", "--workers", "2", "--db", database]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        told = server.stderr.readline()
        assert told.startswith("kb is at http://127.0.0.1:"), told
        port = int(told.split("127.0.0.1:")[1].split("/")[0])
        assert ask(("127.0.0.1", port))[0] == 200
        server.terminate()
        assert server.wait(30) == -signal.SIGTERM
        assert server.stderr.read() == ""
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 1)


@pytest.mark.parametrize("count", ["0", "many", "1000"])
def test_a_count_that_is_none(count, database):
    command = [sys.executable, "-m", "kb.cli", "serve", "--workers", count, "--db", database]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and len(done.stderr.splitlines()) == 1
    assert "--workers" in done.stderr and count in done.stderr


def test_systems_without_the_means_say_so(listener, monkeypatch):
    monkeypatch.delattr(workers.socket, "send_fds")
    with pytest.raises(ServerError, match="hands no connections"):
        run(listener, 2, "")
