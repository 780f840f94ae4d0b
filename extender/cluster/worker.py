"""gunicorn's gthread worker, made safe against clients: a request gets a thread only when all of it is there.

Handshakes and requests are taken in by the worker's one event loop, without blocking. A client that is slow, silent or sends
garbage costs its buffer and nothing else, and each of its steps has a time in which it must be over. The loop also holds the
plain listener of the health address, where no handshake is made.

Times are those of the reference's server (volcano ed72c7c, cmd/webhook-manager/app/server.go)."""

from __future__ import annotations

import contextlib
import logging
import re
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from gunicorn import glogging, http
from gunicorn.http import wsgi
from gunicorn.workers.gthread import TConn, ThreadWorker

from extender.cluster.tls import secured

HEAD_SECONDS = 5.0  # from the connection, or the first byte of a further request, to the end of its head
REQUEST_SECONDS = 30.0  # ... to its end
WRITE_SECONDS = 60.0
HERE_SECONDS = 0.5  # ... of an answer that the loop itself gives
KEEP_ALIVE = 120  # seconds; Kubernetes closes its idle connections after 90, and who closes first should be the client
LINGER_SECONDS = 2.0  # a client still sends what we do not want: its answer must not be cut off by a reset
LONGEST_HEAD = 64 * 1024  # bytes
HELD = 64 * 1024 * 1024  # bytes of unfinished requests in one worker; who goes beyond that is cut
_CHUNK = 128 * 1024

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LONG_HEAD = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_NOT_TLS = (b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
            b"this port speaks HTTPS only\n")  # fmt: skip
_NOTHING_YET = (ssl.SSLWantReadError, BlockingIOError)


class Ended(Exception):
    """The client is gone, or must go."""


class Client(TConn):  # type: ignore[misc]
    """One connection. `timeout`: the time (monotonic) by which its present step must be over."""

    def __init__(self, cfg: Any, sock: socket.socket, peer: Any, server: Any, context: ssl.SSLContext | None,
                 longest_body: int) -> None:  # fmt: skip
        super().__init__(cfg, sock, peer, server)
        self.shaking = context is not None
        if context is not None:
            self.sock = secured(sock, context)
        self.initialized = self.data_ready = True
        self.parser = http.get_parser(cfg, self.sock, peer)
        self.taken = bytearray()  # of the request that is coming in
        self.entire = True  # all of the request is in the buffer; otherwise it is refused unread
        self.idle = False
        self.write_seconds = WRITE_SECONDS
        self.began = time.monotonic()
        self.timeout = self.began + HEAD_SECONDS
        self._longest_body = longest_body
        self._encouraged = False

    def take_in(self) -> bool:
        """Whether there is something to answer now. Raises Ended."""
        try:
            if self.shaking:
                self.sock.do_handshake()
                self.shaking = False
            self._receive()
        except _NOTHING_YET:
            return False
        except ssl.SSLError as error:
            if error.reason == "HTTP_REQUEST":
                with contextlib.suppress(OSError):
                    socket.socket.send(self.sock, _NOT_TLS)
            raise Ended(str(error)) from None
        except OSError as error:
            raise Ended(str(error)) from None
        return self.whole()

    def _receive(self) -> None:
        """All that is there: what TLS has unpacked does not show in the poller."""
        enough = LONGEST_HEAD + self._longest_body
        while len(self.taken) <= enough:
            try:
                data = self.sock.recv(_CHUNK)
            except _NOTHING_YET:
                return
            if not data:
                raise Ended("closed by the client")
            if self.idle or not self.taken:
                self.begin()
            self.taken += data

    def begin(self) -> None:
        """A request comes in."""
        self.idle, self._encouraged, self.began = False, False, time.monotonic()
        self.timeout = self.began + HEAD_SECONDS

    def whole(self) -> bool:
        """A request is there, or as much of it as is needed to refuse it."""
        end = self.taken.find(_END)
        if end < 0 or end > LONGEST_HEAD:
            if len(self.taken) > LONGEST_HEAD:
                with contextlib.suppress(OSError):
                    self.sock.send(_LONG_HEAD)
                raise Ended("head too long")
            return False
        self.timeout = self.began + REQUEST_SECONDS
        length = self._length(end)
        self.entire = length is not None and length <= self._longest_body
        if not self.entire or length is None or len(self.taken) >= end + len(_END) + length:
            return True
        if not self._encouraged and _EXPECTS.search(self.taken, 0, end + 2):
            self._encouraged = True
            with contextlib.suppress(OSError):
                self.sock.send(_CONTINUE)
        return False

    def _length(self, end: int) -> int | None:
        """Of the body; None where only its end tells (chunks)."""
        found = _LENGTH.search(self.taken, 0, end + 2)
        if found:
            return int(found.group(1))
        return None if re.search(rb"\r\ntransfer-encoding:", self.taken[: end + 2], re.IGNORECASE) else 0

    def hand_over(self) -> None:
        """Give what came in to the parser."""
        self.parser.unreader.unread(bytes(self.taken))
        self.taken.clear()

    def rest(self) -> bool:
        """Wait for the next request; whether it is there already."""
        self.sock.setblocking(False)
        self.taken += self.parser.unreader.take_buffered()
        self.idle = not self.taken
        if self.idle:
            self.timeout = time.monotonic() + self.cfg.keepalive
            return False
        self.begin()
        return self.whole()


class _Pieces(bytearray):
    """Stands in for the socket of an answer, so that head and body leave in one write: one TLS record, one system call."""

    sendall = bytearray.extend


class PatientWorker(ThreadWorker):  # type: ignore[misc]
    """`tls` gives the context for each new connection, `plain` tells a listener without TLS by its port; set before a fork.

    `waits_for_nothing` tells requests (by their bytes) whose short answer needs computing only: the loop gives it itself,
    which costs half of a way through a thread."""

    tls: Callable[[], ssl.SSLContext]
    plain: frozenset[int] = frozenset()
    longest_body: int = 0
    waits_for_nothing: Callable[[bytearray], bool] = staticmethod(lambda _: False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: dict[Client, None] = {}  # connections that the poller watches

    # --- the loop ---------------------------------------------------------------------------------------------------------

    def set_accept_enabled(self, enabled: bool) -> None:
        """At the end whoever comes is refused at once; otherwise they would wait in the backlog for nobody."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def accept(self, listener: socket.socket) -> None:
        try:
            sock, peer = listener.accept()
        except OSError:  # another worker was quicker, or the client is gone
            return
        server = listener.getsockname()
        context = None if server[1] in self.plain else type(self).tls()
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = Client(self.cfg, sock, peer, server, context, self.longest_body)
        except OSError:
            sock.close()
            return
        self.nr_conns += 1
        self._watch(client, self._readable)

    def _watch(self, client: Client, on_readable: Callable[[Client], None]) -> None:
        self._waiting[client] = None
        self.poller.register(client.sock, selectors.EVENT_READ, lambda _: on_readable(client))

    def _unwatch(self, client: Client) -> None:
        self._waiting.pop(client, None)
        with contextlib.suppress(KeyError, ValueError, OSError):
            self.poller.unregister(client.sock)

    def _readable(self, client: Client) -> None:
        if client not in self._waiting:  # cut by an earlier event of the same round
            return
        try:
            ready = client.take_in()
        except Ended as why:
            self.log.debug("connection ended: %s", why)
            self._end(client)
            return
        if ready:
            self._answer(client)
        elif len(client.taken) > LONGEST_HEAD and sum(len(each.taken) for each in self._waiting) > HELD:
            self._end(client)

    def _answer(self, client: Client) -> None:
        if self.waits_for_nothing(client.taken) and not self._answer_here(client):
            return  # one after the other from the same client goes by way of a thread: others have their turn
        self._unwatch(client)
        client.hand_over()
        self.enqueue_req(client)

    def _answer_here(self, client: Client) -> bool:
        """Whether one more request is there already. A client that does not take its answer at once is cut."""
        client.hand_over()
        client.write_seconds = HERE_SECONDS
        stays = self.handle(client)
        client.write_seconds = WRITE_SECONDS
        try:
            if not stays:
                self._unwatch(client)
                self._linger(client)
            elif client.rest():
                return True
            elif client not in self._waiting:  # it came from a thread
                self._watch(client, self._readable)
        except (OSError, ValueError, Ended):
            self._end(client)
        return False

    def finish_request(self, conn: Client, fs: Future[bool]) -> None:
        """Called in the loop when a thread has answered."""
        try:
            if fs.cancelled() or not fs.result():
                self._linger(conn)
            elif conn.rest():
                self._answer(conn)
            else:
                if not self.alive:
                    conn.timeout = min(conn.timeout, time.monotonic() + LINGER_SECONDS)
                self._watch(conn, self._readable)
        except (OSError, ValueError, Ended):
            self._end(conn)

    def _linger(self, client: Client) -> None:
        """No more from us; what the client still sends is thrown away until it ends."""
        client.taken.clear()
        client.sock.setblocking(False)
        client.sock.shutdown(socket.SHUT_WR)
        client.timeout = time.monotonic() + LINGER_SECONDS
        self._watch(client, self._discard)

    def _discard(self, client: Client) -> None:
        try:
            if client.sock.recv(_CHUNK):
                return
        except _NOTHING_YET:
            return
        except OSError:
            pass
        self._end(client)

    def _end(self, client: Client) -> None:
        self._unwatch(client)
        self.nr_conns -= 1
        client.close()

    def murder_keepalived(self, force: bool = False) -> None:
        """Cut whoever is late (at a forced end: all)."""
        now = time.monotonic()
        for client in [each for each in self._waiting if force or each.timeout <= now]:
            self._end(client)

    def murder_pending(self) -> None:
        """There is one list only."""

    def _cap_keepalive(self, deadline: float) -> None:
        for client in self._waiting:
            if client.idle:
                client.timeout = min(client.timeout, deadline)

    # --- the threads ------------------------------------------------------------------------------------------------------

    def handle_request(self, req: Any, conn: Client) -> bool:
        """Ask the application; whether the connection may stay. Without gunicorn's hooks and access log, which nobody uses."""
        pieces = _Pieces()
        answer, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg,
                                      response_class=lambda req, _, cfg: wsgi.Response(req, pieces, cfg))  # fmt: skip
        environ["wsgi.multithread"] = True
        if not self.alive:
            answer.force_close()
        parts = self.wsgi(environ, answer.start_response)
        try:
            for part in parts:
                answer.write(part)
            answer.close()
        finally:
            if hasattr(parts, "close"):
                parts.close()
        conn.sock.sendall(pieces)
        return not answer.should_close()

    def handle(self, conn: Client) -> bool:
        """Answer the request in the buffer; whether the connection may stay."""
        req = None
        try:
            conn.sock.settimeout(conn.write_seconds)
            req = next(conn.parser)
            if not conn.entire:
                req.force_close()
            return bool(self.handle_request(req, conn)) and conn.entire and bool(conn.parser.finish_body())
        except (http.errors.NoMoreData, StopIteration, OSError) as error:
            self.log.debug("connection ended: %s", error)
        except Exception as error:  # what the parser refuses
            self.handle_error(req, conn.sock, conn.client, error)
        return False


class QuietLogger(glogging.Logger):  # type: ignore[misc]
    """gunicorn's lines go where all lines go; requests are counted, not written down."""

    def setup(self, cfg: Any) -> None:
        self.cfg = cfg
        self.error_log = logging.getLogger("gunicorn.error")
        self.access_log = logging.getLogger("gunicorn.access")

    def access(self, *_: Any) -> None:
        pass

    def close_on_exec(self) -> None:
        pass
