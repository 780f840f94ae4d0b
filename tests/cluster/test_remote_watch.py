"""A watch on connections that bring what no server would send."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from extender.cluster.connection import Connection
from extender.cluster.remote_watch import RemoteWatch
from tests.daemons.running import PATIENCE

EVENT = b'{"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "7"}}}\n'


class Answer:
    """One connection; its body in chunks."""

    status = 200

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks

    def stream(self, _: int) -> Iterator[bytes]:
        return iter(self._chunks)

    def shutdown(self) -> None: ...
    def close(self) -> None: ...


class Connections:
    """One after the other."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def stream(self, path: str, _: float) -> Answer:
        self.asked.append(path)
        return self._answers.pop(0) if self._answers else Answer()


RUBBISH = {
    "bytes of a TLS socket that somebody else shuts down": b"\x17\x03\x03\xff\n",
    "a page of a proxy": b"<html>gone for lunch</html>\n",
    "no object": b"null\n",
    "no event": b'{"message": "down for maintenance"}\n',
    "an event of nothing": b'{"type": "ADDED", "object": null}\n',
    "an object without a version": b'{"type": "ADDED", "object": {"metadata": {"name": "a"}}}\n',
    "an object without metadata": b'{"type": "MODIFIED", "object": {"spec": {}}}\n',
}


@pytest.mark.parametrize("rubbish", RUBBISH.values(), ids=RUBBISH)
def test_rubbish_ends_a_connection_and_not_the_watch(rubbish: bytes) -> None:
    connections = Connections(Answer(rubbish), Answer(EVENT))
    watch = RemoteWatch(cast(Connection, connections), "pods", "5", lambda version, _: version)
    events: list[Any] = watch.poll(10.0)
    watch.close()
    assert ([event.object["metadata"]["name"] for event in events], connections.asked[:2]) == (["a"], ["5", "5"])


class Ended(Answer):
    """The connection broke a moment ago, and whoever reads it has not come so far yet."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self._why, self._asked_to_end = why, threading.Event()

    def stream(self, _: int) -> Iterator[bytes]:
        yield EVENT
        self._asked_to_end.wait(PATIENCE)

    def shutdown(self) -> None:
        self._asked_to_end.set()
        raise self._why


# What a closed socket says, and urllib3 about a connection that it has taken back.
ENDED = [
    OSError(errno.EBADF, "Bad file descriptor"),
    OSError(errno.ENOTCONN, "not connected"),
    RuntimeError("released to the pool"),
]


@pytest.mark.parametrize("why", ENDED, ids=str)
def test_one_that_ends_in_the_moment_in_which_it_is_closed_is_closed(why: Exception) -> None:
    """A daemon that was asked to end would end with an error."""
    watch = RemoteWatch(cast(Connection, Connections(Ended(why))), "pods", "5", lambda version, _: version)
    assert len(watch.poll(PATIENCE)) == 1
    watch.close()
    assert watch.poll() == []
