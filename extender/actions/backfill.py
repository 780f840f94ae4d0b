"""backfill -- tasks that ask nothing but a place: they need no share of a queue and go wherever checks let them.

Each is bound at once where its job is ready, and its sub-job. Those that preempt and reclaim promised free room are bound like
the others; who waits for victims keeps the promise. Source: volcano ed72c7c, actions/backfill."""

from __future__ import annotations

import numpy as np

from extender.actions.placing import gated
from extender.core import status as st
from extender.core.conf import Action
from extender.core.plugin import Arguments
from extender.core.reasons import explain
from extender.core.session import Session
from extender.core.statement import Statement


def run(ssn: Session, args: bool) -> None:
    del args
    _take_back_promises(ssn)
    jobs = [
        job
        for job in ssn.live_jobs()
        if ssn.job_pending_best_effort[job] > 0 and ssn.job_phase[job] > st.PHASE_PENDING and ssn.job_valid(job) is None
    ]
    jobs.sort(key=lambda job: (ssn.queue_order(ssn.queue_of(job)), ssn.job_order(job)))
    for job in jobs:
        tasks = [t for t in ssn.pending_tasks(job) if ssn.shape_of(t).best_effort and not gated(ssn, t)]
        placed: list[tuple[int, Statement]] = []
        for task in sorted(tasks, key=ssn.task_order):
            plan = ssn.plan(ssn.task_class(task))
            nodes = plan.choose(1)
            if not nodes:
                ssn.fit_errors[task] = explain(plan)
                continue
            stmt = ssn.statement()
            stmt.allocate([task], nodes)
            placed.append((task, stmt))
        for task, stmt in placed:
            if ssn.job_ready(job) and ssn.sub_job_ready(ssn.sub_job_of(task)):
                stmt.commit()
            else:
                stmt.keep()


def _take_back_promises(ssn: Session) -> None:
    """Of free room: it is given now."""
    stmt = ssn.statement()
    for task in np.flatnonzero(ssn.task_status == st.PIPELINED).tolist():
        if ssn.shape_of(task).best_effort and task not in ssn.promised_by_eviction:
            stmt.take_back(task)


def _parse(arguments: Arguments) -> bool:
    return arguments.boolean("predicateErrorCacheEnable", True)


ACTION = Action("backfill", run, _parse, places=False)
