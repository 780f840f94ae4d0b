"""A client's connection as a worker's event loop sees it: bytes are taken in without blocking until a whole request is there.

Times are those of the reference's server (volcano ed72c7c, cmd/webhook-manager/app/server.go)."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from typing import Any

from gunicorn import http
from gunicorn.workers.gthread import TConn

from extender.cluster.tls import secured

HEAD_SECONDS = 5.0  # from the connection, or the first byte of a further request, to the end of its head
REQUEST_SECONDS = 30.0  # ... to its end
WRITE_SECONDS = 60.0  # until the client has taken the answer
LONGEST_HEAD = 64 * 1024  # bytes
CHUNK = 128 * 1024
RECORD = 16 * 1024  # bytes that a record of TLS holds at most
NOTHING_YET = (ssl.SSLWantReadError, BlockingIOError)
NOT_NOW = (ssl.SSLWantWriteError, BlockingIOError)

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_EXPECTS = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*\r\n", re.IGNORECASE)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_LONG_HEAD = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
_NOT_TLS = (b"HTTP/1.0 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n"
            b"this port speaks HTTPS only\n")  # fmt: skip


class Ended(Exception):
    """The client is gone, or must go."""


class Client(TConn):  # type: ignore[misc]
    """One connection, whose socket never blocks: every system call costs Python's lock, and waits for it anew.

    `timeout`: the time (monotonic) by which its present step must be over."""

    def __init__(self, cfg: Any, sock: socket.socket, peer: Any, server: Any, context: ssl.SSLContext | None,
                 longest_body: int) -> None:  # fmt: skip
        super().__init__(cfg, sock, peer, server)
        self.shaking = context is not None
        if context is not None:
            self.sock = secured(sock, context)
        self.initialized = self.data_ready = True
        self.parser = http.get_parser(cfg, self.sock, peer)
        self.taken = bytearray()  # of the request that is coming in
        self.unsent = bytearray()  # of the answer
        self.entire = True  # all of the request is in the buffer; otherwise it is refused unread
        self.idle = False
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
        except NOTHING_YET:
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
                data = self.sock.recv(CHUNK)
            except NOTHING_YET:
                return
            if not data:
                raise Ended("closed by the client")
            if self.idle or not self.taken:
                self.begin()
            self.taken += data
            if len(data) < RECORD and not (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending()):
                return  # the poller tells of more

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

    def send(self, answer: bytearray) -> None:
        """As much as the client takes at once; the rest is `unsent`. Raises OSError."""
        self.unsent = answer
        self.flush()

    def flush(self) -> None:
        """More of what is unsent. Raises OSError."""
        with contextlib.suppress(*NOT_NOW):
            del self.unsent[: self.sock.send(self.unsent)]

    def rest(self) -> bool:
        """Wait for the next request; whether it is there already."""
        self.taken += self.parser.unreader.take_buffered()
        self.idle = not self.taken
        if self.idle:
            self.timeout = time.monotonic() + self.cfg.keepalive
            return False
        self.begin()
        return self.whole()
