"""One kind of object on its way into the store: list, watch, and list again where the watch has lost its place."""

from __future__ import annotations

from collections.abc import Sequence

from controller.store import Change, Store
from extender.api.errors import Gone, NotFound
from extender.api.meta import Key, Kind, key_of, uid_of
from extender.cluster.port import Cluster, Listing, Watch, WatchEvent

News = Sequence[WatchEvent] | Listing


class Feed:
    """`poll` may wait and needs no lock; `absorb` changes the store."""

    def __init__(self, cluster: Cluster, kind: Kind, store: Store, only: Key | None = None) -> None:
        self.kind = kind
        self._namespace = only.namespace if only is not None else ""
        self._selector = f"metadata.name={only.name}" if only is not None else ""
        self._cluster = cluster
        self._store = store
        self._watch: Watch | None = None

    def open(self) -> Sequence[Change | None]:
        """A server that does not know the kind has none of it, so far."""
        try:
            return self.absorb(self._list())
        except NotFound:
            return ()

    def poll(self, timeout: float) -> News:
        """What has come in, or the whole list where some of it was lost. Raises NotFound while the server does not know
        the kind: its CRD may yet be installed."""
        if self._watch is None:
            return self._list()
        try:
            return self._watch.poll(timeout)
        except Gone:
            return self._list()

    def absorb(self, news: News) -> Sequence[Change | None]:
        """None stands for what was known already."""
        if not isinstance(news, Listing):
            return [self._put(event) for event in news]
        listed = {key_of(obj) for obj in news.objects}
        gone = [key for key in self._store.all(self.kind) if key not in listed]
        return [*(self._store.drop(self.kind, key) for key in gone), *(self._store.put(self.kind, obj) for obj in news.objects)]

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _list(self) -> Listing:
        self.close()
        chosen = {"namespace": self._namespace, "field_selector": self._selector}
        listing = self._cluster.list(self.kind, **chosen)
        self._watch = self._cluster.watch(self.kind, listing.resource_version, **chosen)
        return listing

    def _put(self, event: WatchEvent) -> Change | None:
        if event.type in ("ADDED", "MODIFIED"):
            return self._store.put(self.kind, event.object)
        if event.type == "DELETED":
            return self._store.drop(self.kind, key_of(event.object), uid_of(event.object))
        return None
