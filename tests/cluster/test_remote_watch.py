"""A watch on connections that bring what no server would send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from extender.cluster.connection import Connection
from extender.cluster.remote_watch import RemoteWatch

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
