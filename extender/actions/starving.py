"""What preempt and reclaim have in common: whose turn it is, which of its tasks may look for victims, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator

from extender.actions.allocate import gated
from extender.core import status as st
from extender.core.session import Session
from extender.core.statement import Statement
from extender.core.victims import VictimSearch, waits_for_victims

NEVER = "Never"  # spec.preemptionPolicy


def starving_jobs(ssn: Session) -> Iterator[int]:
    """Admitted, valid jobs that lack what they need to run, and have tasks to place."""
    for job in ssn.live_jobs():
        if not ssn.jobs.pending_tasks[job] or ssn.job_phase[job] <= st.PHASE_PENDING:
            continue
        if ssn.pending_tasks(job) and ssn.job_valid(job) is None and ssn.job_starving(job):
            yield job


def tasks_in_order(ssn: Session, job: int) -> list[int]:
    """The job's tasks that may look for victims: pending, not gated, whose owner did not say never, and not waiting for the
    victims of an earlier session."""
    tasks = []
    for task in ssn.pending_tasks(job):
        pod = ssn.tasks.pod[task]
        if pod is not None and pod.spec.preemption_policy != NEVER and not gated(ssn, task):
            tasks.append(task)
    return [task for task in sorted(tasks, key=ssn.task_order) if not waits_for_victims(ssn, task)]


def finish(ssn: Session, search: VictimSearch, stmt: Statement, job: int, victims: dict[int, list[int]]) -> None:
    """Keep what was done for the job if it can run now, else undo all of it. `victims`: task -> who left for it."""
    if not len(stmt):
        return
    if ssn.job_pipelined(job):
        stmt.commit()
        ssn.evicted_for.update((victim, task) for task, left in victims.items() for victim in left)
    else:
        stmt.discard()
        search.changed()
