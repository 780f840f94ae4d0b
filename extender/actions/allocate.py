"""allocate -- give pending tasks their nodes: gangs whole, queues in turn.

    while a queue has jobs:
        the first queue by queue_order, unless it is overused; its first job by job_order
        place the job's tasks until the job is ready (worksheet.py, placing.py)
        ready: commit, and back in line while it has tasks; pipelined: keep the room for this session; else undo
        what found no room is not tried again with a job of the same kind (core/alike.py) before anything is placed

Source: volcano ed72c7c, actions/allocate."""

from __future__ import annotations

from extender.actions.placing import AllocateArgs, gated
from extender.actions.worksheet import Worksheet, place_job
from extender.core import status as st
from extender.core.alike import Alike, likeness
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
    in_vain: dict[Alike, list[int]] = {}  # what was tried since anything was placed -> the tasks that were
    while queues:
        row = queues.pop()
        if not ssn.overused(row) and _turn(ssn, jobs[row], work, in_vain, args):
            queues.push(row)


def _turn(ssn: Session, jobs: LiveHeap, work: dict[int, Worksheet], in_vain: dict[Alike, list[int]], args: AllocateArgs) -> bool:
    """Of one queue, the first job that is placed. A queue of which none can be has had its last turn: it would stay the first."""
    while jobs:
        job = jobs.pop()
        tasks = work[job].tasks
        alike = likeness(ssn, job, tasks)
        if alike in in_vain:
            _fares_as(ssn, tasks, in_vain[alike])
        elif _place(ssn, job, work[job], args):
            in_vain.clear()
            if work[job] and ssn.job_ready(job):
                jobs.push(job)
            return True
        elif alike is not None:
            in_vain[alike] = tasks
    return False


def _place(ssn: Session, job: int, work: Worksheet, args: AllocateArgs) -> bool:
    """Whether anything stays placed, or promised for this session."""
    with ssn.statement() as stmt:
        done = place_job(ssn, stmt, work, args)
        if done and ssn.job_ready(job):
            stmt.commit()
        elif done:
            stmt.keep()
    return done


def _fares_as(ssn: Session, tasks: list[int], others: list[int]) -> None:
    """What was found out of the others, one by one."""
    for task, other in zip(tasks, others, strict=True):
        if other in ssn.fit_errors:
            ssn.fit_errors[task] = ssn.fit_errors[other]
        if other in ssn.last_transaction:
            ssn.last_transaction[task] = ssn.last_transaction[other]
    if tasks and (limit := ssn.over_limit.get(ssn.job_of(others[0]))) is not None:
        ssn.over_limit[ssn.job_of(tasks[0])] = limit


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
