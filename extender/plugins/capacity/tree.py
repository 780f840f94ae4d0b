"""The tree of queues: who is whose parent, and which queues hang together up to `root`.

A queue whose parent is missing, or that stands in a ring, is out of the tree with all below it; the others are not harmed
(the reference stops the whole cluster). Source: volcano ed72c7c, plugins/capacity, buildHierarchicalQueueAttrs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.api.queue import ROOT
from extender.core.snapshot import Queues

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class QueueTree:
    """Rows of Queues. `parent` is -1 for root and for what has none; `depth` is 0 at root and -1 outside the tree."""

    parent: Rows
    depth: Rows
    leaf: NDArray[np.bool_]
    _paths: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @staticmethod
    def of(queues: Queues, *, hierarchical: bool) -> QueueTree:
        """Without a hierarchy every queue is a tree of its own."""
        size = len(queues)
        if not hierarchical:
            return QueueTree(np.full(size, -1), np.zeros(size, dtype=np.intp), np.ones(size, dtype=bool))
        root = queues.rows.get(ROOT, -1)
        parent = np.array([queues.rows.get(queue.spec.parent or ROOT, -1) for queue in queues.queue], dtype=np.intp)
        depth = np.full(size, -1)
        leaf = np.ones(size, dtype=bool)
        leaf[parent[(parent >= 0) & (np.arange(size) != root)]] = False
        if root >= 0:
            parent[root], depth[root] = -1, 0
        level = 0
        while (reached := (depth == -1) & (parent >= 0) & (depth[parent] == level)).any():
            level += 1
            depth[reached] = level
        return QueueTree(parent, depth, leaf)

    def usable(self, queue: int) -> bool:
        """Jobs may run in it: it hangs in the tree and nothing hangs below it."""
        return bool(self.depth[queue] >= 0 and self.leaf[queue])

    def path(self, queue: int) -> tuple[int, ...]:
        """From the queue up to root, both included; just the queue where there is no hierarchy."""
        known = self._paths.get(queue)
        if known is None:
            rows = [queue]
            while (above := int(self.parent[rows[-1]])) >= 0 and self.depth[queue] >= 0:
                rows.append(above)
            known = self._paths[queue] = tuple(rows)
        return known

    def above(self, queue: int, distance: int) -> int:
        """The ancestor so many levels up, -1 where that is root or beyond."""
        path = self.path(queue)
        return path[distance] if distance < len(path) - 1 else -1

    def level(self, a: int, b: int) -> int:
        """How deep the two have the same ancestors: 0 where only root is common."""
        return max(self._agreement(self.path(a)[:0:-1], self.path(b)[:0:-1]) - 1, 0)

    @staticmethod
    def _agreement(a: tuple[int, ...], b: tuple[int, ...]) -> int:
        return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

    def levels_down(self) -> Iterator[Rows]:
        """The rows of each level below root, from the top."""
        for level in range(1, int(self.depth.max(initial=0)) + 1):
            yield np.flatnonzero(self.depth == level)

    def add_up(self, amounts: NDArray[np.int64]) -> None:
        """(Q, R): add to every queue, in place, what is below it."""
        for rows in reversed(list(self.levels_down())):
            np.add.at(amounts, self.parent[rows], amounts[rows])
