"""Several processes behind one port. The parent takes the connections and hands them round in turn.

With a listening socket that all processes share, whoever wakes first takes all connections that wait: of four, one
process gets three or four, and the other's core is idle. In turn, each gets its share.
"""

from __future__ import annotations

import multiprocessing
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any

from kb.errors import KnowledgeBaseError

STOP_S = 10.0  # for requests in flight; what still runs then is killed
LISTENS = b"+"  # what a worker says when it is ready

Work = Callable[[socket.socket, str], object]


class ServerError(KnowledgeBaseError):
    code = "server"


class Handed(socket.socket):
    """A worker's end of its channel. To the event loop it is a listening socket; connections come from the parent."""

    def listen(self, backlog: int = 0, /) -> None:
        self.send(LISTENS)

    def accept(self) -> tuple[socket.socket, Any]:
        told, handles, _flags, _address = socket.recv_fds(self, 1, 1)
        if not told:  # the parent is gone: nobody else would end this process
            signal.raise_signal(signal.SIGTERM)
            raise BlockingIOError
        connection = socket.socket(fileno=handles[0])
        connection.setblocking(False)
        try:
            return connection, connection.getpeername()
        except OSError:  # hung up already
            return connection, None


@dataclass
class Worker:
    """A process and the parent's end of its channel."""

    process: BaseProcess
    channel: socket.socket

    def take(self, connection: socket.socket) -> bool:
        """False where the process is gone or has more waiting than its channel holds."""
        try:
            socket.send_fds(self.channel, [b"c"], [connection.fileno()])
            return True
        except OSError:
            return False

    def listened(self) -> bool:
        """Whether it ever got that far; asked once, when it has ended."""
        try:
            return self.channel.recv(1) == LISTENS
        except OSError:
            return False


def work(channel: socket.socket, url: str) -> None:
    """A worker's whole life."""
    import uvicorn

    from web.app import create_app

    handed = Handed(fileno=channel.detach())
    # asyncio's own loop: another might accept without asking the socket object.
    config = uvicorn.Config(create_app(url), loop="asyncio", log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[handed])


def run(listener: socket.socket, count: int, url: str, work: Work = work) -> None:
    """Serves a listening socket until SIGINT or SIGTERM, replacing processes that end; ServerError where one cannot start."""
    if not hasattr(socket, "send_fds"):
        raise ServerError("this system hands no connections to other processes", hint="leave --workers at 1")
    listener.setblocking(False)
    before = signal.signal(signal.SIGTERM, terminated)
    workers: list[Worker] = []
    is_killed = False
    try:
        for _ in range(count):
            workers.append(start(url, work))
        turn = 0
        while True:
            ready = wait([listener, *(worker.process.sentinel for worker in workers)])
            for number, worker in enumerate(workers):
                if worker.process.sentinel in ready:
                    check_started(worker)
                    workers[number] = start(url, work)
            if listener in ready:
                turn = hand_over(listener, workers, turn)
    except Terminated:
        is_killed = True
    finally:
        stop(workers)
        signal.signal(signal.SIGTERM, before)
    if is_killed:
        signal.raise_signal(signal.SIGTERM)


class Terminated(BaseException):
    """SIGTERM, which asks for an orderly end as SIGINT does."""


def terminated(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def hand_over(listener: socket.socket, workers: list[Worker], turn: int) -> int:
    """One connection to whose turn it is, or to the next who takes it; whose turn is next."""
    try:
        connection, _address = listener.accept()
    except OSError:  # hung up before it was taken
        return turn
    with connection:
        for number in range(turn, turn + len(workers)):
            if workers[number % len(workers)].take(connection):
                return (number + 1) % len(workers)
    return turn


def start(url: str, work: Work) -> Worker:
    ours, theirs = socket.socketpair()
    # A fresh interpreter: locks and open files of this one are none of the worker's.
    process = multiprocessing.get_context("spawn").Process(target=work, args=(theirs, url), daemon=True)
    held = signal.signal(signal.SIGINT, signal.SIG_IGN)  # inherited: the parent ends its workers
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, held)
        theirs.close()
    ours.setblocking(False)
    return Worker(process, ours)


def check_started(worker: Worker) -> None:
    """One that never got as far as listening would not do so next time either."""
    if not worker.listened():
        raise ServerError(
            f"a worker ended at its start with status {worker.process.exitcode}",
            hint="one process says more: --workers 1",
        )
    worker.channel.close()


def stop(workers: list[Worker]) -> None:
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(STOP_S)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.channel.close()
