"""A proxy before an API server that does harm on purpose: answers of its own, delays, watches cut in the middle.

    with FaultProxy(plane) as proxy:
        cluster = connect(str(proxy.kubeconfig))
        proxy.refuse = every(10, {"POST", "PATCH"}, Refusal(429, retry_after=1))
        proxy.cut_watches()

Plain HTTP on its own side. Whoever comes with a token asks in his own name, anybody else as administrator. One thread for each
connection, at most CONNECTIONS of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.controlplane.plane import Plane

CONNECTIONS = 128
_CHUNK = 65536
_ONE_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "te", "transfer-encoding", "upgrade"})


class Refusal(NamedTuple):
    """An answer of the proxy's own. `reached`: the request is carried out all the same, only its answer is lost."""

    status: int
    retry_after: int = 0
    reached: bool = False


class Request(NamedTuple):
    method: str
    path: str


Refuse = Callable[[Request], Refusal | None]


def every(count: int, methods: Collection[str], refusal: Refusal) -> Refuse:
    """One in so many of the requests with these methods is refused."""
    seen = 0
    lock = threading.Lock()

    def refuse(request: Request) -> Refusal | None:
        nonlocal seen
        if request.method not in methods:
            return None
        with lock:
            seen += 1
            return refusal if seen % count == 0 else None

    return refuse


class FaultProxy:
    """`refuse` and `delay` (seconds before each request) may be set at any time; `refused` counts."""

    def __init__(self, plane: Plane) -> None:
        self.refuse: Refuse = lambda _: None
        self.delay = 0.0
        self.refused = 0
        self._plane = plane
        self._watches: dict[socket.socket, socket.socket | None] = {}  # the client's connection -> that to the API server
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="fault-proxy", daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.kubeconfig: Path = plane.write_kubeconfig("proxy", {}, server=self.url)

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut_watches()
        self._server.cut_all()
        self._thread.join()

    def cut_watches(self) -> int:
        """Break every watch that is open now, without a word; how many there were.

        At both ends: the thread of one where nothing happens would hold its place for as long as nothing does."""
        with self._lock:
            watches, self._watches = self._watches, {}
        for both in watches.items():
            for each in both:
                _cut(each)
        return len(watches)

    def judge(self, request: Request) -> Refusal | None:
        if self.delay:
            time.sleep(self.delay)
        refusal = self.refuse(request)
        if refusal is not None:
            with self._lock:
                self.refused += 1
        return refusal

    def upstream(self, *, with_token: bool) -> http.client.HTTPSConnection:
        address = urlsplit(self._plane.url)
        context = self._plane.tls(as_admin=not with_token)
        return http.client.HTTPSConnection(address.hostname or "", address.port, context=context)

    @contextlib.contextmanager
    def watching(self, connection: socket.socket, upstream: socket.socket | None) -> Iterator[None]:
        with self._lock:
            self._watches[connection] = upstream
        try:
            yield
        finally:
            with self._lock:
                self._watches.pop(connection, None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = CONNECTIONS

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._room.acquire()
        self._open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._open.discard(request)
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or is cut off, is what this proxy is for."""

    def cut_all(self) -> None:
        for each in list(self._open):
            _cut(each)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._upstream: http.client.HTTPSConnection | None = None

    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        super().finish()

    def _serve(self) -> None:
        proxy = self.server.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        refusal = proxy.judge(Request(self.command, self.path))
        if refusal is not None and not refusal.reached:
            self._refuse(refusal)
            return
        response = self._ask(body)
        if refusal is not None:
            response.read()
            self._refuse(refusal)
        elif response.status == 200 and parse_qs(urlsplit(self.path).query).get("watch"):
            assert self._upstream is not None
            with proxy.watching(self.connection, self._upstream.sock):
                self._stream(response)
        else:
            self._answer(response.status, response.getheaders(), response.read())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _ask(self, body: bytes) -> http.client.HTTPResponse:
        if self._upstream is None:
            self._upstream = self.server.proxy.upstream(with_token="Authorization" in self.headers)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _ONE_HOP}
        self._upstream.request(self.command, self.path, body or None, headers)
        return self._upstream.getresponse()

    def _refuse(self, refusal: Refusal) -> None:
        reason = "TooManyRequests" if refusal.status == 429 else "InternalError"
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": refusal.status, "reason": reason,
                  "message": "refused by the proxy"}  # fmt: skip
        wait = [("Retry-After", str(refusal.retry_after))] if refusal.retry_after else []
        self._answer(refusal.status, [("Content-Type", "application/json"), *wait], json.dumps(status).encode())

    def _answer(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self._begin(status, headers)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, response: http.client.HTTPResponse) -> None:
        self._begin(response.status, response.getheaders())
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while chunk := response.read1(_CHUNK):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def _begin(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _ONE_HOP:
                self.send_header(name, value)

    def log_message(self, *_: object) -> None:
        pass


def _cut(connection: socket.socket | None) -> None:
    """None where the API server has said that it ends the connection with this answer."""
    if connection is None:
        return
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)  # of the connection, whatever lies above it
