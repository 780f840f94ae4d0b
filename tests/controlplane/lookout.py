"""What is on a real cluster and what happens there, seen once for everybody who wants to know."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extender.api.meta import KINDS, LEASE, Json, Key, Kind, key_of
from extender.cluster.following import Follower
from extender.cluster.kubernetes import KubernetesCluster
from extender.cluster.port import WatchEvent

_PAUSE = 0.02  # seconds between two looks
Hear = Callable[[Kind, WatchEvent], None]


class Lookout:
    """One thread follows every kind. `changed` is notified of all that happens, and held while listeners hear of it."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self.changed = threading.Condition()
        self.there: dict[Kind, dict[Key, Json]] = defaultdict(dict)
        self._error: Exception | None = None
        self._followers = [Follower(cluster, kind, optional=True) for kind in KINDS if kind != LEASE]
        self._listeners: list[Hear] = []
        self._stop = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._run, name="lookout")
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for follower in self._followers:
            follower.close()

    @contextmanager
    def telling(self, hear: Hear) -> Iterator[None]:
        """Of every event from now on."""
        with self.changed:
            self._listeners.append(hear)
        try:
            yield
        finally:
            with self.changed:
                self._listeners.remove(hear)

    def wait(self, seconds: float) -> None:
        """For something to happen; who waits holds `changed`. Raises AssertionError where nobody looks any more."""
        assert self._error is None, f"the lookout has ended: {self._error!r}"
        self.changed.wait(seconds)

    def _run(self) -> None:
        try:
            while not self._stop.wait(_PAUSE):
                self._look()
        except Exception as error:
            self._error = error

    def _look(self) -> None:
        for follower in self._followers:
            events = follower.poll()
            if not events:
                continue
            with self.changed:
                for event in events:
                    self._take(follower.kind, event)
                self.changed.notify_all()

    def _take(self, kind: Kind, event: WatchEvent) -> None:
        if event.type == "DELETED":
            self.there[kind].pop(key_of(event.object), None)
        else:
            self.there[kind][key_of(event.object)] = event.object
        for hear in self._listeners:
            hear(kind, event)
