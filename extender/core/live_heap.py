"""LiveHeap: a priority queue whose keys are asked for again when an item comes up, because shares move as tasks are placed.

Keys of items inside may only have grown since they were pushed (what was allocated makes a queue or job wait longer)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any


class LiveHeap:
    """Items are row numbers; the lowest key comes first."""

    def __init__(self, items: Iterable[int], key: Callable[[int], Any]) -> None:
        self._key = key
        self._heap = [(key(item), item) for item in items]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, item: int) -> None:
        heapq.heappush(self._heap, (self._key(item), item))

    def pop(self) -> int:
        """The item whose key is lowest now."""
        while True:
            _, item = self._heap[0]
            key = self._key(item)
            if len(self._heap) == 1 or not key > _second(self._heap):
                heapq.heappop(self._heap)
                return item
            heapq.heapreplace(self._heap, (key, item))


def _second(heap: list[tuple[Any, int]]) -> Any:
    """The lowest key below the root as it was when pushed."""
    return heap[1][0] if len(heap) == 2 else min(heap[1][0], heap[2][0])
