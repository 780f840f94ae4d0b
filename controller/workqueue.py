"""Keys that wait: each at most once, in order of the time it is due, with exponential back-off, on an injected Clock.

Of those that are due the urgent ones come first: an incident is handled before the state it left behind is looked at.
Items of one group (say, all requests about one job) are never out at the same time, so a reconciler needs no locks.
Back-off as in k8s.io/client-go v0.36.1, util/workqueue, ItemExponentialFailureRateLimiter: 5 ms * 2^n, at most 1000 s."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from extender.api.meta import Time
from extender.cluster.clock import Clock

BASE_DELAY = 0.005
MAX_DELAY = 1000.0

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class _Failures:
    count: int
    not_before: Time


def _own_group(item: Hashable) -> Hashable:
    return item


def _all_urgent(_: Hashable) -> bool:
    return True


class WorkQueue(Generic[K]):
    """Not thread-safe: whoever shares it holds a lock (controller/manager.py does)."""

    def __init__(self, clock: Clock, group_of: Callable[[K], Hashable] = _own_group,
                 is_urgent: Callable[[K], bool] = _all_urgent) -> None:  # fmt: skip
        self._clock = clock
        self._group_of = group_of
        self._is_urgent = is_urgent
        self._due: dict[K, tuple[Time, int]] = {}
        self._heap: list[tuple[Time, int, K]] = []  # by the time they are due
        self._ready: list[tuple[bool, int, K]] = []  # due: urgent ones first, then in the order they came
        self._failures: dict[K, _Failures] = {}
        self._active: set[Hashable] = set()
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, item: K) -> None:
        """Due now; one that waits already keeps its place, one that waits for later comes forward."""
        self.add_at(item, self._clock.now())

    def add_at(self, item: K, when: Time) -> None:
        """Due at `when`, or earlier where it is already waiting for an earlier time."""
        waiting = self._due.get(item)
        if waiting is not None and waiting[0] <= when:
            return
        self._sequence += 1
        self._due[item] = (when, self._sequence)
        heapq.heappush(self._heap, (when, self._sequence, item))

    def retry(self, item: K) -> int:
        """Due again after its back-off; how often it has failed by now.

        A failure before the back-off has passed (an event brought the item forward) does not count: events must not
        use up the budget of an item."""
        now = self._clock.now()
        failed = self._failures.get(item, _Failures(0, now))
        if now >= failed.not_before:
            delay = min(BASE_DELAY * 2.0 ** min(failed.count, 64), MAX_DELAY)
            failed = _Failures(failed.count + 1, now + delay)
            self._failures[item] = failed
        self.add_at(item, failed.not_before)
        return failed.count

    def forget(self, item: K) -> None:
        """It went well: its back-off starts anew."""
        self._failures.pop(item, None)

    def cancel(self, item: K) -> None:
        """It is not wanted any more."""
        self._due.pop(item, None)
        self._failures.pop(item, None)

    def pop(self) -> K | None:
        """The first item that is due and whose group is free, or None. The caller says `done` when it is finished."""
        self._ripen()
        held, found = [], None
        while self._ready:
            entry = heapq.heappop(self._ready)
            _, sequence, item = entry
            if self._due.get(item, (0.0, 0))[1] != sequence:
                continue
            if self._group_of(item) in self._active:
                held.append(entry)
                continue
            found = item
            del self._due[item]
            self._active.add(self._group_of(item))
            break
        for entry in held:
            heapq.heappush(self._ready, entry)
        return found

    def done(self, item: K) -> None:
        self._active.discard(self._group_of(item))

    def next_due(self) -> Time | None:
        """When the next item is due (it may be overdue), or None where nothing waits."""
        self._ripen()
        ready = (self._due[item][0] for _, sequence, item in self._ready if self._due.get(item, (0.0, 0))[1] == sequence)
        found = next(ready, None)
        if found is not None:
            return found
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _ripen(self) -> None:
        """Move what is due by now among the ready."""
        now = self._clock.now()
        while self._heap and self._heap[0][0] <= now:
            when, sequence, item = heapq.heappop(self._heap)
            if self._due.get(item) == (when, sequence):
                heapq.heappush(self._ready, (not self._is_urgent(item), sequence, item))
