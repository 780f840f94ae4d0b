"""A small HTTP server for probes and metrics: a few threads, plain or TLS, GET and HEAD, one answer a connection.

A slow client cannot hold it up. Each connection has one thread and a time in which all of it must be over; the handshake,
too, happens in that thread. Where all threads are taken the oldest connection is cut, so whoever comes gets an answer."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from extender.cluster.logs import V, about
from extender.cluster.tls import TlsFiles, secured

CONNECTIONS = 32  # at once
LONGEST = 10.0  # seconds from accepting a connection to its end
_BACKLOG = 128

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    query: Mapping[str, list[str]]
    accept: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: str | bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


Page = Callable[[Request], Answer | None]  # None: there is no such page

NOT_FOUND = Answer(HTTPStatus.NOT_FOUND, "404 page not found\n")


class HttpServer:
    """Serves from construction to `close`. `pages`: by path; a page also gets what lies below it where its path ends in /.

    Raises OSError where the address cannot be had."""

    def __init__(self, address: tuple[str, int], pages: Mapping[str, Page], tls: TlsFiles | None = None, *,
                 connections: int = CONNECTIONS, longest: float = LONGEST, name: str = "http") -> None:  # fmt: skip
        self.pages = dict(pages)
        self._server = _Server(address, self, tls.context() if tls else None, connections, longest)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> Answer:
        page = self.pages.get(request.path)
        if page is None:
            above = (path for path in self.pages if path.endswith("/") and request.path.startswith(path))
            page = self.pages.get(max(above, key=len, default=""))
        try:
            return (page(request) if page is not None else None) or NOT_FOUND
        except Exception:  # one page that fails must not take the others with it
            log.exception("a page failed", extra=about(path=request.path))
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error\n")


class _Server(TCPServer):
    allow_reuse_address = True
    request_queue_size = _BACKLOG

    def __init__(self, address: tuple[str, int], pages: HttpServer, context: ssl.SSLContext | None, connections: int,
                 longest: float) -> None:  # fmt: skip
        self.pages, self.context, self.longest, self._room = pages, context, longest, connections
        self._open: dict[_Connection, threading.Timer] = {}  # in order of arrival
        self._lock = threading.Lock()
        host = address[0]
        if ":" in host or (not host and socket.has_dualstack_ipv6()):
            self.address_family = socket.AF_INET6
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        if self.address_family == socket.AF_INET6:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        connection = _Connection(request, client_address)
        with self._lock:
            if len(self._open) >= self._room:
                oldest = next(iter(self._open))
                self._open.pop(oldest).cancel()
                oldest.cut()
            timer = self._open[connection] = threading.Timer(self.longest, connection.cut)
        timer.daemon = True
        timer.start()
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: _Connection) -> None:
        try:
            if self.context is not None:
                connection.secure(self.context)
            self.finish_request(connection.stream, connection.client)
        except (OSError, ValueError) as error:  # whatever a client does; ssl.SSLError is an OSError
            log.log(V(4), "a connection ended early", extra=about(client=connection.client[0], error=str(error)))
        except Exception:
            log.exception("a connection failed", extra=about(client=connection.client[0]))
        finally:
            with self._lock:
                timer = self._open.pop(connection, None)
            if timer is not None:
                timer.cancel()
            connection.cut()
            connection.stream.close()

    def server_close(self) -> None:
        super().server_close()
        with self._lock:
            for connection, timer in self._open.items():
                timer.cancel()
                connection.cut()


class _Connection:
    """`cut` may be called from any thread: whoever reads or writes then sees the end."""

    __slots__ = ("client", "stream")

    def __init__(self, stream: socket.socket, client: Any) -> None:
        self.stream, self.client = stream, client

    def secure(self, context: ssl.SSLContext) -> None:
        self.stream = wire = secured(self.stream, context)
        wire.do_handshake()

    def cut(self) -> None:
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self.stream, socket.SHUT_RDWR)  # of the connection, whatever lies above it


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "pumice"
    sys_version = ""

    def do_GET(self) -> None:
        self._give(body=True)

    def do_HEAD(self) -> None:
        self._give(body=False)

    def _give(self, *, body: bool) -> None:
        url = urlsplit(self.path)
        request = Request(url.path, parse_qs(url.query, keep_blank_values=True), self.headers.get("Accept", ""))
        answer = self.server.pages.answer(request)
        content = answer.body.encode() if isinstance(answer.body, str) else answer.body
        self.send_response(answer.status)
        headers = {"Content-Type": answer.content_type, "Content-Length": str(len(content)), "Cache-Control": "no-store",
                   "X-Content-Type-Options": "nosniff", **answer.headers}  # fmt: skip
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        log.log(V(6), "request", extra=about(client=self.client_address[0], said=format % args))
