"""When pods get their nodes, as a watch shows it: the same for every scheduler, and for bindings of our own."""

from __future__ import annotations

import time
from collections.abc import Callable

from extender.api.errors import Gone
from extender.api.meta import POD, Json, key_of
from extender.cluster.port import Cluster, Watch

_LOOK = 0.25  # seconds between two looks at whether it is worth to go on


class Bindings:
    """Follows the pods of one namespace from construction to `close`. Times are of time.perf_counter."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self.at: dict[str, float] = {}  # pod -> when it was first seen with a node
        self._watch = self._open()

    def wait(self, count: int, seconds: float, going_on: Callable[[], bool] = lambda: True) -> bool:
        """Until so many pods have nodes; False where the time ran out or nothing goes on."""
        deadline = time.perf_counter() + seconds
        while len(self.at) < count and time.perf_counter() < deadline and going_on():
            self._take(_LOOK)
        return len(self.at) >= count

    @property
    def first_to_last(self) -> float:
        return max(self.at.values()) - min(self.at.values()) if self.at else 0.0

    @property
    def rate(self) -> float | None:
        """Bindings a second from the first to the last; None where all of them were seen at once, as a few may be."""
        return (len(self.at) - 1) / self.first_to_last if self.first_to_last else None

    def close(self) -> None:
        self._watch.close()

    def _open(self) -> Watch:
        listing = self._cluster.list(POD, self._namespace)
        self._see(listing.objects)
        return self._cluster.watch(POD, listing.resource_version, self._namespace)

    def _take(self, timeout: float) -> None:
        try:
            self._see([event.object for event in self._watch.poll(timeout) if event.type != "DELETED"])
        except Gone:
            self._watch.close()
            self._watch = self._open()

    def _see(self, objects: list[Json]) -> None:
        now = time.perf_counter()
        for pod in objects:
            if pod["spec"].get("nodeName"):
                self.at.setdefault(key_of(pod).name, now)
