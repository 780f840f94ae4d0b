"""Which tasks a queue may reclaim: those of queues that have more than they deserve, never what they are guaranteed.

A task that asks nothing of what its queue deserves is there on sufferance and goes whatever the queue has. With
ancestorReclaimLevel the queues above the victim's, up to that level, must have more than they deserve as well.
Source: volcano ed72c7c, plugins/capacity, reclaimable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from extender.core.amounts import all_within, overlap, partly_above
from extender.core.axis import IntNR, IntR
from extender.core.session import Session
from extender.plugins.capacity.limits import Limits
from extender.plugins.capacity.tree import QueueTree


@dataclass(eq=False, slots=True)
class Reclaim:
    """One question: what may `queue` take for a task that asks `request`? `left`: use after the victims chosen so far."""

    tree: QueueTree
    limits: Limits
    taken: IntNR  # (Q, R)
    levels: int  # ancestorReclaimLevel
    queue: int
    request: IntR
    left: dict[int, IntR] = field(default_factory=dict)

    def victims(self, ssn: Session, candidates: Sequence[int]) -> list[int]:
        """In the order given; each victim counts for those after it."""
        chosen = []
        for task in candidates:
            queue = ssn.queue_of(ssn.job_of(task))
            if queue >= 0 and self._gives(queue, ssn.request(task)):
                chosen.append(task)
        return chosen

    def _gives(self, queue: int, asked: IntR) -> bool:
        if not overlap(asked, self.request, pods=False):
            return False
        if not all_within(self.limits.guarantee[queue], self._left(queue) - asked):
            return False
        if not self._has_too_much(queue, asked):
            return False
        if self._on_sufferance(queue, asked) and self._equally_poor(queue):
            return False
        above = [row for distance in range(1, self.levels + 1) if (row := self._judged(queue, distance)) >= 0]
        if not all(self._has_too_much(row, asked) for row in above):
            return False
        for row in (queue, *above):
            self.left[row] = self._left(row) - asked
        return True

    def _left(self, queue: int) -> IntR:
        row: IntR = self.left.get(queue, self.taken[queue])
        return row

    def _on_sufferance(self, queue: int, asked: IntR) -> bool:
        """The task asks nothing of what the queue deserves."""
        return not overlap(asked, self.limits.deserved.values[queue], pods=True)

    def _has_too_much(self, queue: int, asked: IntR) -> bool:
        return self._on_sufferance(queue, asked) or partly_above(self._left(queue), self.limits.deserved_of(queue), asked)

    def _equally_poor(self, queue: int) -> bool:
        """Both queues are close kin, and the reclaimer deserves nothing of what it asks either: they must not fight."""
        mine = {row for distance in range(1, self.levels + 1) if (row := self.tree.above(self.queue, distance)) >= 0}
        kin = any(self.tree.above(queue, distance) in mine for distance in range(1, self.levels + 1))
        return kin and self._on_sufferance(self.queue, self.request)

    def _judged(self, queue: int, distance: int) -> int:
        """The queue so far above the victim's, -1 where there is none to judge: root, or the reclaimer's own."""
        row = self.tree.above(queue, distance)
        return -1 if row == self.tree.above(self.queue, distance) else row
