"""allocate -- give pending tasks their nodes: gangs whole, queues in turn.

    while a queue has jobs:
        the first queue by queue_order, unless it is overused; its first job by job_order
        place the job's tasks until the job is ready (worksheet.py, placing.py)
        ready: commit, and back in line while it has tasks; pipelined: keep the room for this session; else undo

Source: volcano ed72c7c, actions/allocate."""

from __future__ import annotations

from extender.actions.placing import AllocateArgs, gated
from extender.actions.worksheet import Worksheet, place_job
from extender.core import status as st
from extender.core.conf import Action
from extender.core.live_heap import LiveHeap
from extender.core.plugin import Arguments
from extender.core.session import Session


def _parse(arguments: Arguments) -> AllocateArgs:
    return AllocateArgs(arguments.boolean("predicateErrorCacheEnable", True))


def run(ssn: Session, args: AllocateArgs) -> None:
    work = _collect(ssn)
    by_queue: dict[int, list[int]] = {}
    for job in work:
        by_queue.setdefault(ssn.queue_of(job), []).append(job)
    jobs = {row: LiveHeap(listed, ssn.job_order) for row, listed in by_queue.items()}
    queues = LiveHeap(jobs, ssn.queue_order)
    while queues:
        row = queues.pop()
        if ssn.overused(row) or not jobs[row]:
            continue
        job = jobs[row].pop()
        with ssn.statement() as stmt:
            done = place_job(ssn, stmt, work[job], args)
            if done and ssn.job_ready(job):
                stmt.commit()
                if work[job]:
                    jobs[row].push(job)
            elif done:
                stmt.keep()
        queues.push(row)


def _collect(ssn: Session) -> dict[int, Worksheet]:
    """Job -> its tasks to place, in task_order. Jobs that are not admitted or not valid are left out."""
    work = {}
    admits = ssn.conf.has_action("enqueue")
    for job in ssn.live_jobs():
        if ssn.job_phase[job] <= st.PHASE_PENDING:
            if admits:
                continue
            ssn.job_phase[job] = st.PHASE_INQUEUE
        tasks = ssn.pending_tasks(job)
        if not tasks or ssn.job_valid(job) is not None:
            continue
        tasks = [task for task in tasks if not ssn.shape_of(task).best_effort and not gated(ssn, task)]
        if tasks:
            work[job] = Worksheet(ssn, job, sorted(tasks, key=ssn.task_order))
    return work


ACTION = Action("allocate", run, _parse)
