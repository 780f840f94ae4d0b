"""reclaim -- a queue that has less than its share takes room back from queues that hold more than theirs.

    while a queue that is not overused has starving jobs:
        the first queue by queue_order; its first job by job_order
        each task that the queue may claim room for evicts running tasks of other queues, all or nothing for the job

What a queue may claim is said by `preemptive`, from whom by `reclaimable`. Source: volcano ed72c7c, actions/reclaim."""

from __future__ import annotations

import numpy as np

from extender.actions.starving import comes_later, make_room_for_job, starving_jobs
from extender.core import status as st
from extender.core.conf import Action
from extender.core.live_heap import LiveHeap
from extender.core.plugin import Arguments
from extender.core.session import Session
from extender.core.victims import BoolT, Manner, VictimSearch


def run(ssn: Session, args: bool) -> None:
    del args
    by_queue: dict[int, list[int]] = {}
    for job in starving_jobs(ssn):
        by_queue.setdefault(ssn.queue_of(job), []).append(job)
    before_allocate = comes_later(ssn, "reclaim", "allocate")
    manner = Manner(by_score=False, free_first=before_allocate, only_tenanted=not before_allocate, sparing=False)
    search = VictimSearch(ssn, "reclaimable", "reclaim", manner)
    reclaimable = _reclaimable(ssn, search)
    jobs = {row: LiveHeap(listed, ssn.job_order) for row, listed in by_queue.items()}
    queues = LiveHeap(jobs, ssn.queue_order)
    while queues:
        row = queues.pop()
        if not jobs[row] or ssn.overused(row):
            continue
        _reclaim(ssn, search, jobs[row].pop(), reclaimable)
        queues.push(row)


def _reclaim(ssn: Session, search: VictimSearch, job: int, reclaimable: BoolT) -> None:
    row = ssn.queue_of(job)
    tenants = reclaimable & (search.queue != row)
    make_room_for_job(
        ssn,
        search,
        job,
        candidates=lambda _: tenants & (ssn.task_status == st.RUNNING),
        may=lambda task: ssn.preemptive(row, ssn.request(task)),
    )


def _reclaimable(ssn: Session, search: VictimSearch) -> BoolT:
    """(T,) tasks of queues that let others take back what they lent."""
    lends = np.array([*(queue.spec.reclaimable is not False for queue in ssn.queues.queue), False])  # row -1: no queue
    result: BoolT = search.may_leave & lends[search.queue]
    return result


def _parse(arguments: Arguments) -> bool:
    return arguments.boolean("predicateErrorCacheEnable", True)


ACTION = Action("reclaim", run, _parse, places=False)
