"""The HTTP worker against clients that do not take their answers, and at its end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import urllib3
from flask import Flask

from extender.cluster.in_process import Listen, Server
from tests.daemons.running import PATIENCE

LARGE = 8 * 1024 * 1024  # bytes, more than the buffers of a connection hold
THREADS = 8  # and twice as many connections
CLIENTS = 12


def application(until: threading.Event) -> Flask:
    app = Flask("test")
    app.add_url_rule("/large", "large", lambda: b"x" * LARGE)
    app.add_url_rule("/small", "small", lambda: b"here")
    app.add_url_rule("/late", "late", lambda: str(until.wait(PATIENCE)))
    return app


@contextmanager
def serving(at_once: Callable[[bytearray], bool], until: threading.Event | None = None) -> Iterator[Server]:
    listen = Listen(("127.0.0.1", 0), threads=THREADS, graceful_seconds=0, at_once=at_once)
    with closing(Server(application(until or threading.Event()), listen)) as server:
        yield server


def asked(server: Server, path: str) -> socket.socket:
    """A connection whose client has asked and takes little."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.settimeout(PATIENCE)
    sock.connect(("127.0.0.1", server.port))
    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\n\r\n".encode())
    return sock


def taken(sock: socket.socket) -> bytes:
    """The body of one answer."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += sock.recv(65536)
    head, _, body = got.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    parts, left = [body], length - len(body)
    while left > 0:
        parts.append(sock.recv(65536))
        left -= len(parts[-1])
    return b"".join(parts)


@pytest.mark.parametrize("at_once", [False, True])
def test_who_does_not_take_an_answer_holds_up_nobody(at_once: bool) -> None:
    """Neither a thread nor the loop waits for them."""
    with serving(lambda _: at_once) as server, ExitStack() as clients:
        for _ in range(CLIENTS):
            clients.enter_context(closing(asked(server, "/large")))
        answer = urllib3.request("GET", f"http://127.0.0.1:{server.port}/small", retries=False, timeout=PATIENCE)
    assert (answer.status, answer.data) == (200, b"here")


@pytest.mark.parametrize("at_once", [False, True])
def test_who_takes_it_late_gets_all_of_it_and_may_ask_again(at_once: bool) -> None:
    with serving(lambda _: at_once) as server, closing(asked(server, "/large")) as client:
        first = taken(client)
        client.sendall(b"GET /small HTTP/1.1\r\nHost: here\r\n\r\n")
        assert (first, taken(client)) == (b"x" * LARGE, b"here")


def test_a_thread_that_ends_after_the_server_writes_to_nobody(tmp_path: Path) -> None:
    """The number of the pipe by which it woke the loop is that of another file by then."""
    until, before = threading.Event(), set(threading.enumerate())
    with serving(lambda _: False, until) as server, ExitStack() as files:
        files.enter_context(closing(asked(server, "/late")))
        while not any(thread.name.startswith("ThreadPoolExecutor") for thread in set(threading.enumerate()) - before):
            threading.Event().wait(0.01)
        server.close()
        opened = [files.enter_context((tmp_path / str(i)).open("wb")) for i in range(32)]
        until.set()
        for thread in set(threading.enumerate()) - before:
            thread.join(PATIENCE)
    assert {Path(file.name).stat().st_size for file in opened} == {0}
