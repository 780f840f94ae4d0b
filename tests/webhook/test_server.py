"""The server itself: real processes, TLS on loopback, clients that mean no good."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from certs import folder
from certs.issue import read
from certs.stock import Stock, restock
from extender.api.meta import QUEUE
from extender.cluster.clock import SystemClock
from extender.ctl.measuring import webhook
from tests.controlplane.processes import free_ports
from tests.noise import GARBAGE, shout
from tests.webhook.reviews import UID, job, review
from webhook.metrics import FOLDER

CLOCK = SystemClock()
PATIENCE = 60.0  # seconds; the machine may be busy
REVIEW = json.dumps(review(job())).encode()
JSON = {"Content-Type": "application/json"}


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    health_port: int

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "ca.crt"))

    def connection(self, context: ssl.SSLContext | None = None, seconds: float = PATIENCE) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("localhost", self.port, timeout=seconds, context=context or self.context())

    def ask(self, body: bytes = REVIEW, path: str = "/jobs/mutate", seconds: float = PATIENCE) -> tuple[int, bytes]:
        with closing(self.connection(seconds=seconds)) as connection:
            connection.request("POST", path, body, JSON)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def page(self, path: str) -> tuple[int, str]:
        """Of the health address, without TLS."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=PATIENCE)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def raw(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def secured(self) -> ssl.SSLSocket:
        return self.context().wrap_socket(self.raw(), server_hostname="localhost")

    def workers(self) -> list[int]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def resident(self) -> int:
        """Bytes of all workers."""
        pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.workers())
        return sum(pages) * os.sysconf("SC_PAGESIZE")


def start(where: Path) -> Running:
    folder.save(where, restock(Stock(), ["localhost"], CLOCK.now()))
    port, health_port = free_ports(2)
    (where / "metrics").mkdir()
    environ = {**os.environ, FOLDER: str(where / "metrics")}
    with (where / "log").open("wb") as log:
        process = subprocess.Popen(webhook.command(where, port, health_port, 2), stdout=log, stderr=log, env=environ)
    running = Running(process, where, port, health_port)
    until = CLOCK.now() + PATIENCE
    while CLOCK.now() < until and running.process.poll() is None:
        with suppress(OSError):
            if len(running.workers()) == 2 and running.page("/readyz")[0] == 200:
                return running
        CLOCK.sleep(0.05)
    running.process.kill()
    pytest.fail(f"it does not get ready:\n{running.log}")


def end(running: Running) -> int:
    running.process.terminate()
    try:
        return running.process.wait(PATIENCE)
    finally:
        running.process.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One for all tests that leave it as it was; whatever they did, it wrote no traceback."""
    running = start(tmp_path_factory.mktemp("webhook"))
    yield running
    began = CLOCK.now()
    assert end(running) == 0
    assert CLOCK.now() - began < 8, "a connection that is nobody's held up the end"
    assert "Traceback" not in running.log


def test_a_review_over_tls(server: Running) -> None:
    status, body = server.ask()
    assert (status, json.loads(body)["response"]["uid"]) == (200, UID)


def test_many_reviews_on_one_connection(server: Running) -> None:
    with closing(server.connection()) as connection:
        for _ in range(20):
            connection.request("POST", "/jobs/mutate", REVIEW, JSON)
            assert json.loads(connection.getresponse().read())["response"]["allowed"]


def test_reviews_that_come_at_once_are_answered_in_order(server: Running) -> None:
    """Pipelined: the second is in the buffer before the first is answered."""
    uids = ["first", "second", "third"]
    requests = b""
    for uid in uids:
        body = json.dumps(review(job(), uid=uid)).encode()
        requests += b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        requests += b"Content-Length: %d\r\n\r\n" % len(body) + body
    with server.secured() as connection:
        connection.sendall(requests)
        got = b""
        while got.count(b'"uid":') < len(uids):
            got += connection.recv(65536)
        connection.sendall(requests)
        while got.count(b'"uid":') < 2 * len(uids):
            got += connection.recv(65536)
    assert re.findall(rb'"uid":"(\w+)"', got) == 2 * [uid.encode() for uid in uids]


def test_a_body_in_pieces(server: Running) -> None:
    head = b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REVIEW)
    with server.secured() as connection:
        for start_at in range(0, len(head), 50):
            connection.sendall(head[start_at : start_at + 50])
        for start_at in range(0, len(REVIEW), 100):
            connection.sendall(REVIEW[start_at : start_at + 100])
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_a_client_that_waits_to_be_asked_for_its_body(server: Running) -> None:
    head = b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    with server.secured() as connection:
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(REVIEW))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 Continue")
        connection.sendall(REVIEW)
        got = b""
        while b"200 OK" not in got:
            got += connection.recv(65536)


@pytest.mark.parametrize("noise", GARBAGE.values(), ids=GARBAGE)
def test_garbage_on_the_tls_port(server: Running, noise: bytes) -> None:
    """The connection ends, and others do not notice."""
    for _ in range(10):
        with server.raw() as connection:
            shout(connection, noise)
    assert server.ask()[0] == 200


def test_plain_http_on_the_tls_port_is_told_so(server: Running) -> None:
    with server.raw() as connection:
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"400 Bad Request" in connection.recv(65536)


MALFORMED = {
    "no HTTP": (b"\x00\x01\x02\r\n\r\n", b"HTTP/1.1 400"),
    "an old version": (b"GET / HTTP/9.9\r\n\r\n", b"HTTP/1.1 400"),
    "a line too long": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", b"HTTP/1.1 414"),
    "a head too long": (b"GET / HTTP/1.1\r\n" + b"X-Filler: yes\r\n" * 10_000, b"HTTP/1.1 431"),
    "two lengths": (b"POST /jobs/mutate HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"HTTP/1.1 400"),
    "a length that is none": (b"POST /jobs/mutate HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"HTTP/1.1 400"),
    "chunks": (b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
               b"HTTP/1.1 411"),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "answer"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_requests_are_refused(server: Running, request_: bytes, answer: bytes) -> None:
    with server.secured() as connection:
        with suppress(OSError):
            connection.sendall(request_)
        assert connection.recv(65536).startswith(answer)
    assert server.ask()[0] == 200


def test_old_tls_is_refused(server: Running) -> None:
    old = server.context()
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises(ssl.SSLError), closing(server.connection(old)) as connection:
        connection.connect()


def test_slow_clients_hold_up_nobody(server: Running) -> None:
    """More of them than there are threads, stuck at every step: none, half a handshake, half a head, half a body."""
    head = b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
    with ExitStack() as stack:
        for _ in range(25):
            stack.enter_context(server.raw())
            stack.enter_context(server.raw()).sendall(GARBAGE["half a hello"])
            stack.enter_context(server.secured()).sendall(head)
            stack.enter_context(server.secured()).sendall(head + b"\r\n{")
        began = CLOCK.now()
        for _ in range(10):
            assert server.ask()[0] == 200
        assert CLOCK.now() - began < 20


def test_clients_that_do_not_read_hold_up_nobody(server: Running) -> None:
    """They send one request after the other and let the answers pile up."""
    head = b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REVIEW)
    with ExitStack() as stack:
        for _ in range(4):
            greedy = stack.enter_context(server.secured())
            greedy.settimeout(0.2)
            with suppress(OSError):
                for _ in range(20_000):
                    greedy.sendall(head + REVIEW)
        began = CLOCK.now()
        assert server.ask()[0] == 200
        assert CLOCK.now() - began < 20


def test_a_client_that_sends_nothing_is_cut(server: Running) -> None:
    """Five seconds for a head (webhook/worker.py)."""
    with server.raw() as connection:
        assert connection.recv(1) == b""


def test_a_body_that_is_too_long_is_refused_unread(server: Running) -> None:
    status, body = server.ask(b" " * 10_000_000)
    assert status == 413
    assert body.startswith(b"413")


def test_long_bodies_leave_nothing_behind(server: Running) -> None:
    """Allowed ones and refused ones, many of them: memory comes back."""
    long, too_long = json.dumps(review(job(filler="x" * 2_500_000))).encode(), b" " * 10_000_000
    for _ in range(4):
        server.ask(long)
        server.ask(too_long)
    before = server.resident()
    for _ in range(20):
        assert server.ask(long)[0] == 200
        assert server.ask(too_long)[0] == 413
    assert server.resident() - before < 24 * 1024 * 1024


def test_many_reviews_leave_nothing_behind(server: Running) -> None:
    def some() -> None:
        with closing(server.connection()) as connection:
            for _ in range(500):
                connection.request("POST", "/jobs/validate", REVIEW, JSON)
                connection.getresponse().read()

    some()
    before = server.resident()
    some()
    assert server.resident() - before < 4 * 1024 * 1024


def test_no_review_is_answered_without_tls(server: Running) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", server.health_port, timeout=PATIENCE)) as connection:
        connection.request("POST", "/jobs/mutate", REVIEW, JSON)
        assert connection.getresponse().status == 404


def test_metrics_are_summed_over_workers(server: Running) -> None:
    """Whichever process answered, any of them tells all."""

    series = 'volcano_admission_reviews_total{allowed="true",operation="CREATE",path="/queues/mutate"} '

    def told() -> float:
        lines = server.page("/metrics")[1].splitlines()
        return sum(float(line.removeprefix(series)) for line in lines if line.startswith(series))

    body = json.dumps(review({}, QUEUE)).encode()
    before = told()
    for _ in range(12):
        assert server.ask(body, "/queues/mutate")[0] == 200
    assert [told() - before for _ in range(6)] == [12.0] * 6


def serial(running: Running) -> str:
    with running.secured() as connection:
        shown = connection.getpeercert()
        assert shown
        return str(shown["serialNumber"]).lstrip("0")


def test_no_review_fails_while_certificates_are_renewed(tmp_path: Path) -> None:
    """The pair is replaced several times, by whole files, one after the other; connections come and go all the time."""
    running = start(tmp_path)
    stop, failures, answered = threading.Event(), [], [0]

    def press() -> None:
        while not stop.is_set():
            try:
                assert running.ask()[0] == 200
                answered[0] += 1
            except Exception as error:
                failures.append(repr(error))

    try:
        threads = [threading.Thread(target=press) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            stock = folder.load(tmp_path)
            renewed = restock(Stock(stock.authority, None, stock.trusted), ["localhost"], CLOCK.now())
            folder.save(tmp_path, renewed)
            assert renewed.serving is not None
            wanted, until = f"{read(renewed.serving.certificate)[0].serial_number:X}", CLOCK.now() + PATIENCE
            # Each worker looks for itself.
            while (shown := {serial(running) for _ in range(12)}) != {wanted} and CLOCK.now() < until:
                CLOCK.sleep(0.05)
            assert shown == {wanted}
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        stop.set()
        status = end(running)
    assert (failures, status) == ([], 0)
    assert answered[0] > 0


def test_open_requests_are_answered_at_the_end(tmp_path: Path) -> None:
    running = start(tmp_path)
    head = b"POST /jobs/mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(REVIEW)
    try:
        with running.secured() as connection:
            connection.sendall(head + REVIEW[:100])
            assert running.ask()[0] == 200  # the half request has been taken in by now, or will be
            running.process.send_signal(signal.SIGTERM)
            while True:  # nobody is accepted any more
                try:
                    running.raw().close()
                except OSError:
                    break
            connection.sendall(REVIEW[100:])
            got = connection.recv(65536)
        assert got.startswith(b"HTTP/1.1 200 OK")
        assert b"Connection: close" in got
        assert running.process.wait(PATIENCE) == 0
    finally:
        running.process.kill()
    assert "Traceback" not in running.log
