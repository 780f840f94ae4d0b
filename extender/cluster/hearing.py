"""What has happened to several kinds, for those who live beside the cluster in memory: from its beginning, without a gap."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from extender.api.errors import Gone
from extender.api.meta import Kind
from extender.cluster.port import Watch, Watcher, WatchEvent


class Hearing:
    """Watches of `kinds`, heard in that order. Where one is too far behind, `forget` is called and everything comes once more."""

    def __init__(self, cluster: Watcher, kinds: tuple[Kind, ...], forget: Callable[[], None] = lambda: None) -> None:
        self._cluster, self._kinds, self._forget = cluster, kinds, forget
        self._watches: dict[Kind, Watch] = {}

    def events(self) -> Iterator[tuple[Kind, WatchEvent]]:
        """Everything since they were last asked for."""
        try:
            for kind in self._kinds:
                if kind not in self._watches:
                    self._watches[kind] = self._cluster.watch(kind, "0")
                for event in self._watches[kind].poll():
                    yield kind, event
        except Gone:
            self._watches = {}
            self._forget()
            yield from self.events()
