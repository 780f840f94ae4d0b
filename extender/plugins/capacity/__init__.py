"""capacity -- every queue has what it deserves and no more than its capability; what nobody uses may be borrowed.

    taken      follows every placement and eviction, of the queue and of all queues above it
    share      max_r taken[r] / deserved[r]; the queue with the smallest goes first. In a hierarchy it is compared between the
               branches in which two queues part; that of a branch, unlike a queue's own, stays all session what it was at first
    a queue may take up to its limit (limits.py), and so may all above it; beyond what it deserves others may reclaim it

With enableHierarchy queues form a tree and jobs run in its leaves only. Source: volcano ed72c7c, plugins/capacity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import total_ordering

import numpy as np

from extender.api.meta import RESOURCE_CLAIM, Kind
from extender.core.amounts import Row, beyond, divisor, is_empty, largest_share, partly_within, room
from extender.core.axis import BoolN, IntR
from extender.core.axis import Rows as TaskRows
from extender.core.plugin import Arguments, Change, NotAdmitted, Plugin, Vote
from extender.core.quotas import account, asked_at_admission, called_by, not_admitted, queue_sums
from extender.core.session import Session
from extender.core.victim_order import in_victim_order
from extender.plugins.capacity.devices import Devices
from extender.plugins.capacity.limits import Limits
from extender.plugins.capacity.reclaim import Reclaim
from extender.plugins.capacity.tree import QueueTree

LEVEL = "ancestorReclaimLevel"
DEVICES = "capacity.DynamicResourceAllocationEnable"
CONSUMABLE = "capacity.DRAConsumableCapacityEnable"


@dataclass(frozen=True, slots=True)
class CapacityArgs:
    ancestor_reclaim_level: int = 0  # how far above a queue its ancestors count in reclaim; needs enableHierarchy
    # As the feature gates DynamicResourceAllocation and DRAConsumableCapacity of Kubernetes 1.36, which are on.
    devices: bool = True  # count devices by ResourceClaim (devices.py)
    consumable: bool = True  # and the capacity that claims consume of them


class Capacity(Plugin[CapacityArgs]):
    name = "capacity"
    keeps = "no queue has more than it deserves"
    admits_by_minimum = True
    hierarchical = True

    @classmethod
    def parse(cls, arguments: Arguments) -> CapacityArgs:
        level = arguments.integer(LEVEL, 0)
        if level < 0:
            arguments.wrong(LEVEL, f"must not be negative, not {level}")
        return CapacityArgs(level, arguments.boolean(DEVICES, True), arguments.boolean(CONSUMABLE, True))

    @classmethod
    def follows(cls, args: CapacityArgs) -> tuple[Kind, ...]:
        return (RESOURCE_CLAIM,) if args.devices else ()

    def open(self, ssn: Session) -> None:
        sums = queue_sums(ssn)
        self.tree = QueueTree.of(ssn.queues, hierarchical=self.hierarchy)
        self.limits = Limits.of(ssn, self.tree, hierarchical=self.hierarchy)
        self.taken, self.admitted, self.elastic = sums.allocated, sums.admitted, sums.elastic  # (Q, R) each
        for amounts in (self.taken, self.admitted, self.elastic):
            self.tree.add_up(amounts)
        self.divisor = divisor(self.limits.deserved.values)
        self.poor = is_empty(self.limits.deserved.values)  # (Q,) deserves nothing
        self._shares: dict[int, tuple[float, bool]] = {}  # by queue, until something is placed or evicted in itself
        for branch in np.flatnonzero(~self.tree.leaf).tolist():
            self._share(branch)
        self.devices = Devices(ssn, self.tree, consumable=self.args.consumable) if self.args.devices else None
        self.levels = self.args.ancestor_reclaim_level if self.hierarchy else 0

    # --- order ------------------------------------------------------------------------------------------------------------

    def queue_order(self, ssn: Session, queue: int) -> tuple[int, bool, Standing]:
        leaf = bool(self.tree.leaf[queue])
        path = self.tree.path(queue) if leaf else (queue,)
        return (-ssn.queues.queue[queue].spec.priority, not leaf, Standing(tuple((q, self._share(q)) for q in path[::-1])))

    def _share(self, queue: int) -> tuple[float, bool]:
        """Its share, and whether it deserves nothing: then it counts as full, and goes after one that is full."""
        known = self._shares.get(queue)
        if known is None:
            poor = bool(self.poor[queue])
            known = (1.0 if poor else float(largest_share(self.taken[queue], self.divisor[queue])), poor)
            self._shares[queue] = known
        return known

    def victim_queue_order(self, ssn: Session, queue: int, preemptor_queue: int) -> int:
        """Of queues in a tree the closest to the preemptor's gives first."""
        del ssn
        return -self.tree.level(queue, preemptor_queue)

    # --- how much a queue may take --------------------------------------------------------------------------------------

    def allocatable(self, ssn: Session, queue: int, request: IntR, count: int) -> int:
        if not ssn.queue_is_open(queue) or not self.tree.usable(queue):
            return 0
        rows = list(self.tree.path(queue))
        return room(self.taken[rows], self.limits.limit[rows], request, count)

    def allocatable_claims(self, ssn: Session, queue: int, tasks: Sequence[int]) -> int:
        return len(tasks) if self.devices is None else self.devices.room(ssn, queue, tasks)

    def preemptive(self, ssn: Session, queue: int, request: IntR) -> bool:
        """It may reclaim for `request`: it stays within its limit and, of something asked, within what it deserves."""
        if not ssn.queue_is_open(queue) or not self.tree.usable(queue):
            return False
        if len(beyond(self.taken[queue] + request, self.limits.limit[queue], request)):
            return False
        above = (self.tree.above(queue, distance) for distance in range(1, self.levels + 1))
        return any(
            partly_within(self.taken[row] + request, self.limits.deserved.values[row], request)
            for row in (queue, *above)
            if row >= 0
        )

    def reclaimable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        queue = ssn.queue_of(ssn.job_of(task))
        if queue < 0 or not self.tree.usable(queue):
            return []
        reclaim = Reclaim(self.tree, self.limits, self.taken, self.levels, queue, ssn.request(task))
        return reclaim.victims(ssn, in_victim_order(ssn, queue, candidates))

    def evictable(self, ssn: Session, hook: str, task: int, rows: TaskRows) -> BoolN:
        """Tasks of queues that have more of something than they deserve."""
        del hook, task
        more: BoolN = np.append((self.taken > self.limits.deserved.values).any(axis=1), False)  # last: no queue, row -1
        queue = np.append(ssn.jobs.queue, -1)[ssn.tasks.job[rows]]
        chosen: BoolN = more[queue]
        return chosen

    def explain_queue(self, ssn: Session, queue: int, request: IntR) -> tuple[str, dict[str, object]] | None:
        if not self.tree.usable(queue):
            return f"queue {ssn.queues.name[queue]}: {self._unusable(ssn, queue)}", {}
        for row in self.tree.path(queue):
            columns = beyond(self.taken[row] + request, self.limits.limit[row], request)
            if len(columns):
                return self._account(ssn, row, columns, request, used=self.taken[row])
        if self.devices is not None and queue in self.devices.refused:
            return self.devices.refused[queue]
        return None

    def _account(self, ssn: Session, row: int, columns: TaskRows, asked: IntR, **used: Row) -> tuple[str, dict[str, object]]:
        limit = self.limits.limit[row]
        called = called_by(ssn, self.tree.path(row), limit)
        return account(ssn, f"queue {ssn.queues.name[row]}", columns, asked, limit, called, **used)

    def _unusable(self, ssn: Session, queue: int) -> str:
        if self.tree.depth[queue] >= 0:
            return "has queues below it, and jobs run in the lowest queues only"
        return f"does not hang in the tree of queues: look at its parent '{ssn.queues.queue[queue].spec.parent}'"

    # --- admission --------------------------------------------------------------------------------------------------------

    def job_enqueueable(self, ssn: Session, job: int) -> Vote:
        queue = ssn.queue_of(job)
        if queue < 0 or not ssn.queue_is_open(queue) or not self.tree.usable(queue):
            return Vote.REJECT
        asked = ssn.jobs.min_resources[job]
        for row in self.tree.path(queue):
            used, admitted = np.maximum(self.taken[row] - self.elastic[row], 0), self.admitted[row]
            columns = beyond(used + admitted + asked, self.limits.limit[row], asked)
            if len(columns):
                told = self._account(ssn, row, columns, asked, used=used, admitted=admitted)
                refusal = not_admitted(ssn, "queue resource quota insufficient", "insufficient", columns, told)
                ssn.enqueue_refusals[job].append(refusal)
                return Vote.REJECT
        if self.devices is not None and (refused := self.devices.admits(ssn, queue, job)):
            event = "queue resource quota insufficient: insufficient dra-resource-exceeded"
            ssn.enqueue_refusals[job].append(NotAdmitted(event, *refused))
            return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, ssn: Session, job: int) -> None:
        queue = ssn.queue_of(job)
        if queue >= 0:
            self.admitted[list(self.tree.path(queue))] += asked_at_admission(ssn, job)
            if self.devices is not None:
                self.devices.let_in(ssn, queue, job)

    # --- what happens in the session --------------------------------------------------------------------------------------

    def allocated(self, ssn: Session, change: Change) -> None:
        self._move(ssn, change, +1)

    def deallocated(self, ssn: Session, change: Change) -> None:
        self._move(ssn, change, -1)

    def _move(self, ssn: Session, change: Change, sign: int) -> None:
        if change.queue >= 0:
            self.taken[list(self.tree.path(change.queue))] += sign * change.total
            self._shares.pop(change.queue, None)
            if self.devices is not None:
                self.devices.move(ssn, change.queue, change.tasks, sign)


SAME = (0.0, False), (0.0, False)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Shares on the way down from root to a queue. Two queues are compared where their ways part; before that, and where
    the shares are the same there, neither goes first (session.py then asks for their age)."""

    way: tuple[tuple[int, tuple[float, bool]], ...]

    def _at_parting(self, other: Standing) -> tuple[tuple[float, bool], tuple[float, bool]]:
        for mine, theirs in zip(self.way, other.way, strict=False):
            if mine[0] != theirs[0]:
                return mine[1], theirs[1]
        return SAME

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Standing):
            return NotImplemented
        mine, theirs = self._at_parting(other)
        return mine == theirs

    def __lt__(self, other: Standing) -> bool:
        mine, theirs = self._at_parting(other)
        return mine < theirs
