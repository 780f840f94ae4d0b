"""gunicorn's gthread worker, made safe against clients: a request gets a thread only when all of it is there, and gives it back
when its answer is.

Handshakes, requests and what a client does not take of its answer at once are the business of the worker's one event loop, which
never blocks (incoming.py). A client that is slow, silent or sends garbage costs its buffers and nothing else, and each of its
steps has a time in which it must be over. The loop also holds the plain listener of the health address, where no handshake is
made."""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from gunicorn import glogging, http
from gunicorn.http import wsgi
from gunicorn.workers.gthread import PollableMethodQueue, ThreadWorker

from extender.cluster.incoming import CHUNK, LONGEST_HEAD, NOTHING_YET, WRITE_SECONDS, Client, Ended

KEEP_ALIVE = 120  # seconds; Kubernetes closes its idle connections after 90, and who closes first should be the client
SIGN_OF_LIFE = 1.0  # seconds between two for the master
LINGER_SECONDS = 2.0  # a client still sends what we do not want: its answer must not be cut off by a reset
HELD = 64 * 1024 * 1024  # bytes that one worker keeps of requests and answers; who goes beyond that is cut


class _Pieces(bytearray):
    """Stands in for the socket of an answer, so that head and body leave in one write: one TLS record, one system call."""

    sendall = bytearray.extend


class _Settled:
    """gunicorn's settings as plain attributes: for each request it asks for dozens, and each time searches its table of them."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self.__dict__.update({name: getattr(settings, name) for name in settings.settings})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, name)


class _Wakening(PollableMethodQueue):  # type: ignore[misc]
    """A thread may end after the loop: by then the number of its pipe may be that of somebody's file."""

    def __init__(self) -> None:
        super().__init__()
        self._closing = threading.Lock()
        self._closed = False

    def defer(self, callback: Callable[..., None], *args: Any) -> None:
        with self._closing:
            if not self._closed:
                super().defer(callback, *args)

    def close(self) -> None:
        with self._closing:
            self._closed = True
            super().close()


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
        self._settled = _Settled(self.cfg)
        self._addresses = {listener.fileno(): listener.getsockname() for listener in self.sockets}
        for listener in self.sockets:  # what it accepts inherits this
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.method_queue = _Wakening()
        self._waiting: dict[Client, None] = {}  # connections that the poller watches
        self._asking: dict[Client, int] = {}  # whose request has a thread, or waits for one -> its bytes
        self._told = 0.0  # when the master last heard of us

    def run(self) -> None:
        super().run()
        for client in self._asking:  # nobody takes up what their threads still answer
            client.close()

    # --- the loop ---------------------------------------------------------------------------------------------------------

    def set_accept_enabled(self, enabled: bool) -> None:
        """At the end whoever comes is refused at once; otherwise they would wait in the backlog for nobody."""
        super().set_accept_enabled(enabled)
        if not self.alive:
            for listener in self.sockets:
                listener.close()

    def notify(self) -> None:
        """Not at each turn: it touches a file, which may be on a disk that is busy."""
        now = time.monotonic()
        if now >= self._told + SIGN_OF_LIFE:
            self._told = now
            super().notify()

    def accept(self, listener: socket.socket) -> None:
        try:
            sock, peer = listener.accept()
        except OSError:  # another worker was quicker, or the client is gone
            return
        server = self._addresses[listener.fileno()]
        context = None if server[1] in self.plain else type(self).tls()
        try:
            client = Client(self._settled, sock, peer, server, context, self.longest_body)
        except OSError:
            sock.close()
            return
        self.nr_conns += 1
        self._watch(client, self._readable)

    def _watch(self, client: Client, act: Callable[[Client], None], event: int = selectors.EVENT_READ) -> None:
        self._waiting[client] = None
        self.poller.register(client.sock, event, lambda _: act(client))

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
        elif len(client.taken) > LONGEST_HEAD:
            self._end_if_too_much(client)

    def _end_if_too_much(self, client: Client) -> None:
        held = sum(len(each.taken) + len(each.unsent) for each in self._waiting)
        if held + sum(self._asking.values()) > HELD:
            self._end(client)

    def _answer(self, client: Client) -> None:
        if self.waits_for_nothing(client.taken):
            client.hand_over()
            if not self._go_on(client, self.handle(client)):
                return  # one after the other from the same client goes by way of a thread: others have their turn
        self._unwatch(client)
        self._asking[client] = len(client.taken)
        client.hand_over()
        self.enqueue_req(client)

    def finish_request(self, conn: Client, fs: Future[bool]) -> None:
        """Called in the loop when a thread has answered."""
        del self._asking[conn]
        if self._go_on(conn, not fs.cancelled() and fs.exception() is None and fs.result()):
            self._answer(conn)

    def _go_on(self, client: Client, stays: bool) -> bool:
        """After an answer: wait until it is taken, then for one more request; whether that is there already."""
        try:
            if client.unsent:
                self._unwatch(client)
                client.timeout = time.monotonic() + WRITE_SECONDS
                self._watch(client, partial(self._writable, stays=stays), selectors.EVENT_WRITE)
                self._end_if_too_much(client)
            elif not stays:
                self._unwatch(client)
                self._linger(client)
            elif client.rest():
                return True
            elif client not in self._waiting:
                if not self.alive:
                    client.timeout = min(client.timeout, time.monotonic() + LINGER_SECONDS)
                self._watch(client, self._readable)
        except (OSError, ValueError, Ended):
            self._end(client)
        return False

    def _writable(self, client: Client, *, stays: bool) -> None:
        if client not in self._waiting:
            return
        try:
            client.flush()
        except OSError:
            self._end(client)
            return
        if not client.unsent:
            self._unwatch(client)
            if self._go_on(client, stays):
                self._answer(client)

    def _linger(self, client: Client) -> None:
        """No more from us; what the client still sends is thrown away until it ends."""
        client.taken.clear()
        client.sock.shutdown(socket.SHUT_WR)
        client.timeout = time.monotonic() + LINGER_SECONDS
        self._watch(client, self._discard)

    def _discard(self, client: Client) -> None:
        try:
            if client.sock.recv(CHUNK):
                return
        except NOTHING_YET:
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
        answer, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self._settled,
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
        conn.send(pieces)
        return not answer.should_close()

    def handle(self, conn: Client) -> bool:
        """Answer the request in the buffer; whether the connection may stay."""
        req = None
        try:
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
