"""proportion -- queues share the cluster by weight; what one does not ask for goes to the others.

    deserved   by water-filling (core/water.py) over the queues that have jobs, once a session
    share      max_r taken[r] / deserved[r]; the queue with the smallest is served first
    taken      follows every placement and eviction; a queue may take up to deserved, and gives up what it has beyond it
    admission  minimums are let in up to the queue's capability, not to what it deserves

Source: volcano ed72c7c, plugins/proportion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.core.amounts import all_within, beyond, divisor, largest_share, room
from extender.core.axis import BoolN, IntR, Rows
from extender.core.plugin import Change, NoArgs, Plugin, Vote
from extender.core.quotas import account, asked_at_admission, called_by, not_admitted, queue_sums, real_capability
from extender.core.session import Session
from extender.core.water import water_fill


class Proportion(Plugin[NoArgs]):
    name = "proportion"
    keeps = "no queue has more than it deserves"
    admits_by_minimum = True

    def open(self, ssn: Session) -> None:
        sums = queue_sums(ssn)
        self.taken, self.admitted, self.elastic = sums.allocated, sums.admitted, sums.elastic  # (Q, R) each
        self.limit = real_capability(ssn)
        busy = sums.jobs > 0
        weight = np.array([queue.spec.weight for queue in ssn.queues.queue], dtype=np.float64)
        self.deserved = np.zeros(self.limit.shape)
        self.deserved[busy] = water_fill(
            ssn.total, weight[busy], sums.request[busy], self.limit[busy], ssn.queues.guarantee.values[busy]
        )
        self.divisor = divisor(self.deserved)

    def queue_order(self, ssn: Session, queue: int) -> tuple[int, float]:
        return (-ssn.queues.queue[queue].spec.priority, float(largest_share(self.taken[queue], self.divisor[queue])))

    # --- how much a queue may take --------------------------------------------------------------------------------------

    def overused(self, ssn: Session, queue: int) -> bool:
        """It has all that it deserves, of every resource."""
        del ssn
        return all_within(self.deserved[queue], self.taken[queue])

    def allocatable(self, ssn: Session, queue: int, request: IntR, count: int) -> int:
        if not ssn.queue_is_open(queue):
            return 0
        return room(self.taken[queue], self.deserved[queue], request, count)

    def preemptive(self, ssn: Session, queue: int, request: IntR) -> bool:
        return self.allocatable(ssn, queue, request, 1) == 1

    def reclaimable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        """Tasks of queues that have more than they deserve of something, as long as they do."""
        del task
        left: dict[int, IntR] = {}
        victims = []
        for victim in candidates:
            queue = ssn.queue_of(ssn.job_of(victim))
            if queue < 0:
                continue
            taken = left.get(queue, self.taken[queue])
            if not all_within(taken, self.deserved[queue]):
                left[queue] = taken - ssn.request(victim)
                victims.append(victim)
        return victims

    def evictable(self, ssn: Session, hook: str, task: int, rows: Rows) -> BoolN:
        """Tasks of queues that have more than they deserve of something."""
        del hook, task
        queues = range(len(ssn.queues))
        more = np.array([*(not all_within(self.taken[queue], self.deserved[queue]) for queue in queues), False])
        chosen: BoolN = more[np.append(ssn.jobs.queue, -1)[ssn.tasks.job[rows]]]  # row -1: no job, no queue
        return chosen

    def explain_queue(self, ssn: Session, queue: int, request: IntR) -> tuple[str, dict[str, object]] | None:
        taken, deserved = self.taken[queue], self.deserved[queue]
        columns = beyond(taken + request, deserved, request)
        if not len(columns):
            return None
        limited = called_by(ssn, [queue], self.limit[queue])

        def called(column: int) -> tuple[str, str]:
            """By what was written where that is what holds it back, and not the share of others."""
            key, word = limited(column) if deserved[column] >= self.limit[queue, column] else ("", "")
            return (key, word) if key == "capability" else ("deserved", "deserved")

        return account(ssn, f"queue {ssn.queues.name[queue]}", columns, request, deserved, called, used=taken)

    # --- admission --------------------------------------------------------------------------------------------------------

    def job_enqueueable(self, ssn: Session, job: int) -> Vote:
        queue = ssn.queue_of(job)
        if queue < 0 or not ssn.queue_is_open(queue):
            return Vote.REJECT
        asked = ssn.jobs.min_resources[job]
        used = np.maximum(self.taken[queue] - self.elastic[queue], 0)
        columns = beyond(used + self.admitted[queue] + asked, self.limit[queue], asked)
        if not len(columns):
            return Vote.PERMIT
        who, admitted = f"queue {ssn.queues.name[queue]}", self.admitted[queue]
        limit = self.limit[queue]
        told = account(ssn, who, columns, asked, limit, called_by(ssn, [queue], limit), used=used, admitted=admitted)
        refusal = not_admitted(ssn, "queue resource quota insufficient", "insufficient", columns, told)
        ssn.enqueue_refusals[job].append(refusal)
        return Vote.REJECT

    def job_enqueued(self, ssn: Session, job: int) -> None:
        queue = ssn.queue_of(job)
        if queue >= 0:
            self.admitted[queue] += asked_at_admission(ssn, job)

    # --- what happens in the session ----------------------------------------------------------------------------------------

    def allocated(self, ssn: Session, change: Change) -> None:
        del ssn
        if change.queue >= 0:
            self.taken[change.queue] += change.total

    def deallocated(self, ssn: Session, change: Change) -> None:
        del ssn
        if change.queue >= 0:
            self.taken[change.queue] -= change.total
