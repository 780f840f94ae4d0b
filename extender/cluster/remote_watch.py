"""An open watch on a real API server: a thread reads, a bounded queue holds what has come in until it is polled.

A watch that breaks, or that the server ends in its own time, goes on from the last version seen; whoever polls does not
notice. Only where that version is too old does `poll` raise Gone. A slow reader makes the thread wait, and in the end the
server: it is never this queue that grows."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import orjson
import urllib3

from extender.api.errors import ClusterError, Gone, TooManyRequests, Unavailable
from extender.api.meta import Json
from extender.cluster.answers import error_of, error_of_status
from extender.cluster.port import WatchEvent
from extender.cluster.retry import Backoff

if TYPE_CHECKING:
    from extender.cluster.connection import Connection

QUEUED = 20_000  # events that wait to be polled
OPEN_SECONDS = (300, 600)  # how long the server is asked to keep one connection open, as client-go's reflectors do
SILENCE = 60.0  # seconds beyond that after which a connection that brings nothing is given up
_BACKOFF = Backoff(first=0.2, longest=30.0)
_CHUNK = 65536
_SHOWN = 200  # bytes of a line that is no event
_CLOSING = 5.0  # seconds that `close` waits for the thread

log = logging.getLogger(__name__)


class RemoteWatch:
    """`path_from(version, seconds)` is what to GET; `first` are events that come before all others."""

    def __init__(self, connection: Connection, name: str, version: str, path_from: Callable[[str, int], str],
                 first: Iterable[WatchEvent] = (), *, queued: int = QUEUED) -> None:  # fmt: skip
        self._connection, self._name, self._version, self._path_from = connection, name, version, path_from
        self._rng = random.Random()
        self._limit = queued
        self._events: deque[WatchEvent] = deque(first)
        self._error: ClusterError | None = None
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._response: urllib3.BaseHTTPResponse | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch-{name}", daemon=True)
        self._thread.start()

    # --- who polls ---

    def poll(self, timeout: float = 0.0) -> list[WatchEvent]:
        with self._changed:
            if timeout > 0:
                self._changed.wait_for(lambda: self._events or self._error or self._closed.is_set(), timeout)
            if not self._events and self._error is not None:
                error = self._error
                if not isinstance(error, Gone):
                    self._error = None  # told once; the thread goes on trying
                raise error
            events = list(self._events)
            self._events.clear()
            self._changed.notify_all()
        return events

    def __iter__(self) -> Iterator[WatchEvent]:
        while not self._closed.is_set():
            yield from self.poll(timeout=3600.0)

    def close(self) -> None:
        with self._changed:
            self._closed.set()
            self._events.clear()
            response = self._response
            self._changed.notify_all()
        if response is not None:
            with contextlib.suppress(OSError, RuntimeError):  # it ended by itself in this very moment
                response.shutdown()
        self._thread.join(_CLOSING)

    # --- the thread ---

    def _run(self) -> None:
        attempt = 0
        while not self._closed.is_set():
            before = self._version
            try:
                self._read_once()
            except Gone as error:
                self._tell(error)
                return
            except (Unavailable, TooManyRequests) as error:
                log.warning("watching %s: %s; it goes on from version %s", self._name, error, self._version)
            except ClusterError as error:
                self._tell(error)
            attempt = 0 if self._version != before else attempt + 1
            if attempt:
                self._closed.wait(_BACKOFF.wait(attempt - 1, self._rng))

    def _read_once(self) -> None:
        """One connection, until it ends."""
        seconds = self._rng.randint(*OPEN_SECONDS)
        response = self._connection.stream(self._path_from(self._version, seconds), seconds + SILENCE)
        try:
            if response.status != 200:
                raise error_of(response.status, response.data, response.headers)
            with self._changed:
                self._response = response
            if not self._closed.is_set():
                for lines in _lines(response):
                    self._take_in(lines)
        except (urllib3.exceptions.HTTPError, ValueError) as error:  # a connection that is cut may bring rubbish
            if not self._closed.is_set():
                log.info("the watch on %s broke: %s", self._name, error)
        finally:
            with self._changed:
                self._response = None
            response.close()

    def _take_in(self, lines: list[bytes]) -> None:
        events: list[WatchEvent] = []
        for line in lines:
            kind, obj = _event(line)
            if kind == "ERROR":
                self._put(events)
                raise error_of_status(obj)
            self._version = _version(obj)
            if kind != "BOOKMARK":
                events.append(WatchEvent(kind, without_managed_fields(obj)))
        self._put(events)

    def _put(self, events: list[WatchEvent]) -> None:
        if not events:
            return
        with self._changed:
            self._changed.wait_for(lambda: len(self._events) < self._limit or self._closed.is_set())
            if not self._closed.is_set():
                self._events.extend(events)
                self._changed.notify_all()

    def _tell(self, error: ClusterError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()


def without_managed_fields(obj: Json) -> Json:
    """They are as large as the rest of an object, and nobody here reads them; a write without them changes nothing about them."""
    obj["metadata"].pop("managedFields", None)
    return obj


def _event(line: bytes) -> tuple[str, Json]:
    """Type and object. Raises ValueError for what no API server says."""
    event = orjson.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("object"), dict):
        raise ValueError(f"no event: {line[:_SHOWN]!r}")
    return str(event.get("type")), event["object"]


def _version(obj: Json) -> str:
    """Raises ValueError for an object that has none."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("resourceVersion"), str):
        raise ValueError("an object without metadata.resourceVersion")
    return str(metadata["resourceVersion"])


def _lines(response: urllib3.BaseHTTPResponse) -> Iterator[list[bytes]]:
    """Whole lines, as many at once as have come in."""
    rest = b""
    for chunk in response.stream(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines
