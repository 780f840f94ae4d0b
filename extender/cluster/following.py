"""Following one kind: list, then watch, and list again where the watch has lost the thread.

Whoever follows sees each object ADDED once, every later state as MODIFIED and its end as DELETED, whatever happened to the
connection in between. It keeps only names and versions, never objects."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from extender.api.errors import Gone, NotFound
from extender.api.meta import Json, Key, Kind, key_of, uid_of
from extender.cluster.port import Cluster, Watch, WatchEvent


class Follower:
    """Not started until the first `poll`. A ClusterError leaves it where it was: poll again later.

    `close` may come from another thread than `poll`, and ends it for good. `optional`: an API server that does not know the kind
    has no objects of it, for as long as it is followed."""

    def __init__(self, cluster: Cluster, kind: Kind, *, optional: bool = False) -> None:
        self.kind = kind
        self._optional, self._unknown = optional, False
        self._cluster = cluster
        self._watch: Watch | None = None
        self._closed = False
        self._closing = threading.Lock()  # a watch that comes about while `close` is called is closed by one of the two
        self._seen: dict[Key, tuple[str, str]] = {}  # uid and resourceVersion

    @property
    def synced(self) -> bool:
        """Whether the first list has been delivered."""
        return self._watch is not None or self._unknown

    def poll(self, timeout: float = 0.0) -> list[WatchEvent]:
        """What is new; waits up to `timeout` real seconds for the first event."""
        if self._unknown or self._closed:
            return []
        watch = self._watch
        if watch is None:
            return self._list()
        try:
            events = watch.poll(timeout)
        except Gone:
            self._end_watch()
            return self._list()
        return [event for event in events if self._note(event)]

    def close(self) -> None:
        with self._closing:
            self._closed = True
        self._end_watch()

    def _end_watch(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def _note(self, event: WatchEvent) -> bool:
        if event.type == "BOOKMARK":
            return False
        if event.type == "DELETED":
            self._seen.pop(key_of(event.object), None)
        else:
            self._seen[key_of(event.object)] = _version(event.object)
        return True

    def _list(self) -> list[WatchEvent]:
        try:
            listing = self._cluster.list(self.kind)
        except NotFound:
            if not self._optional:
                raise
            self._unknown = True
            return []
        watch = self._cluster.watch(self.kind, listing.resource_version)
        with self._closing:
            if self._closed:
                watch.close()
                return []
            self._watch = watch
        before, self._seen = self._seen, {key_of(obj): _version(obj) for obj in listing.objects}
        gone = [WatchEvent("DELETED", self._remains(key, uid)) for key, (uid, _) in before.items() if key not in self._seen]
        return [*gone, *self._differences(listing.objects, before)]

    def _differences(self, objects: list[Json], before: dict[Key, tuple[str, str]]) -> Iterator[WatchEvent]:
        for obj in objects:
            key = key_of(obj)
            known = before.get(key)
            if known is None:
                yield WatchEvent("ADDED", obj)
            elif known[0] != uid_of(obj):
                yield WatchEvent("DELETED", self._remains(key, known[0]))
                yield WatchEvent("ADDED", obj)
            elif known != _version(obj):
                yield WatchEvent("MODIFIED", obj)

    def _remains(self, key: Key, uid: str) -> Json:
        """All that is still known of an object that vanished while nobody watched."""
        metadata = {"name": key.name, "uid": uid, **({"namespace": key.namespace} if key.namespace else {})}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.name, "metadata": metadata}


def _version(obj: Json) -> tuple[str, str]:
    return uid_of(obj), str(obj["metadata"].get("resourceVersion") or "")
