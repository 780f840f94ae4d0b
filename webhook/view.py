"""What handlers may see of the cluster besides the object they are asked about: queues, namespaces, owners; read only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from extender.api import shapes as pod_shapes
from extender.api.decode import decode
from extender.api.errors import NotFound
from extender.api.meta import NAMESPACE, QUEUE, Json, Key, Kind, uid_of
from extender.cluster.port import Reader
from webhook import shapes


class ClusterView(Protocol):
    """Objects may be somewhat old (upstream reads queues from a cache too)."""

    def queue(self, name: str) -> Json | None: ...

    def queues(self) -> Sequence[Json]: ...

    def children(self, parent: str) -> Sequence[Json]:
        """The queues whose spec.parent is that name."""

    def namespace(self, name: str) -> Json | None: ...

    def owner(self, kind: Kind, key: Key, uid: str) -> Json | None:
        """The workload that owns a pod, as it is stored; None where there is none of that uid. May raise ClusterError."""


class ReaderView:
    """A ClusterView over a Reader for the time of one request: what was read once stays as it was.

    Objects come out decoded by their shape, so that a broken stored object cannot break a handler."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._queues: dict[str, Json] | None = None

    def queue(self, name: str) -> Json | None:
        return self._by_name().get(name)

    def queues(self) -> Sequence[Json]:
        return list(self._by_name().values())

    def children(self, parent: str) -> Sequence[Json]:
        return [queue for queue in self.queues() if queue.get("spec", {}).get("parent") == parent]

    def namespace(self, name: str) -> Json | None:
        try:
            found = self._reader.get(NAMESPACE, Key("", name))
        except NotFound:
            return None
        return as_dict(found, pod_shapes.NAMESPACE)

    def owner(self, kind: Kind, key: Key, uid: str) -> Json | None:
        try:
            found = self._reader.get(kind, key)
        except NotFound:
            return None
        return found if uid_of(found) == uid else None

    def _by_name(self) -> dict[str, Json]:
        if self._queues is None:
            listed = (as_dict(queue, shapes.QUEUE) for queue in self._reader.list(QUEUE).objects)
            self._queues = {queue.get("metadata", {}).get("name", ""): queue for queue in listed}
        return self._queues


def as_dict(obj: Json, shape: pod_shapes.Fields) -> Json:
    """The readable part of a stored object."""
    read: Json = decode(obj, shape)[0]
    return read
