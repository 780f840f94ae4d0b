"""An open watch on the embedded cluster: a cursor into the history of one kind."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from extender.api.meta import Json
from extender.cluster.clock import Clock
from extender.cluster.history import Change, History
from extender.cluster.matching import Predicate
from extender.cluster.port import WatchEvent


class MemoryWatch:
    """`lag`: seconds by which events come in late (a slow watch, for tests of what happens then)."""

    def __init__(
        self,
        history: History,
        position: int,
        first: Sequence[WatchEvent],
        *,
        changed: threading.Condition,
        clock: Clock,
        namespace: str = "",
        predicate: Predicate | None = None,
    ) -> None:
        self.lag = 0.0
        self._history = history
        self._position = position
        self._first = list(first)
        self._changed = changed
        self._clock = clock
        self._namespace = namespace
        self._predicate = predicate
        self._closed = False

    def poll(self, timeout: float = 0.0) -> list[WatchEvent]:
        with self._changed:
            events = self._take()
            if not events and timeout > 0 and not self._closed:
                if self.lag:
                    self._changed.wait(min(timeout, 0.1))
                else:
                    self._changed.wait_for(self._due, timeout)
                events = self._take()
            return events

    def _due(self) -> bool:
        return self._closed or bool(self._first) or self._position != self._history.end

    def __iter__(self) -> Iterator[WatchEvent]:
        while not self._closed:
            yield from self.poll(timeout=3600.0)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _take(self) -> list[WatchEvent]:
        if self._first:
            events, self._first = self._first, []
            return events
        if self._position == self._history.end:
            return []
        changes = self._history.since(self._position)
        if self.lag:
            limit = self._clock.now() - self.lag
            changes = [change for change in changes if change.when <= limit]
        self._position += len(changes)
        if not self._namespace and self._predicate is None:
            return [WatchEvent(change.type, change.object) for change in changes]
        return [event for change in changes if (event := self._seen(change)) is not None]

    def _seen(self, change: Change) -> WatchEvent | None:
        """The event as this watch sees it: an object that begins or ceases to match is ADDED or DELETED."""
        if self._namespace and change.object["metadata"].get("namespace") != self._namespace:
            return None
        if self._predicate is None:
            return WatchEvent(change.type, change.object)
        was = change.old is not None and self._predicate(change.old)
        if change.type == "DELETED":
            return WatchEvent("DELETED", change.object) if was else None
        if self._predicate(change.object):
            return WatchEvent("MODIFIED" if was else "ADDED", change.object)
        return WatchEvent("DELETED", last_seen(change)) if was else None


def last_seen(change: Change) -> Json:
    """The object as it was before the change, at the version of the change."""
    old = change.old or change.object
    return {**old, "metadata": {**old["metadata"], "resourceVersion": str(change.version)}}
