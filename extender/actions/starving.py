"""What preempt and reclaim have in common: whose turn it is, which of its tasks may look for victims, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from extender.actions.placing import gated
from extender.core import status as st
from extender.core.promised import waits_for_victims
from extender.core.session import Session
from extender.core.victims import BoolT, VictimSearch

NEVER = "Never"  # spec.preemptionPolicy


def starving_jobs(ssn: Session) -> Iterator[int]:
    """Admitted, valid jobs that lack what they need to run, and have tasks to place."""
    for job in ssn.live_jobs():
        if not ssn.jobs.pending_tasks[job] or ssn.job_phase[job] <= st.PHASE_PENDING:
            continue
        if ssn.pending_tasks(job) and ssn.job_valid(job) is None and ssn.job_starving(job):
            yield job


def tasks_in_order(ssn: Session, job: int) -> list[int]:
    """The job's pending tasks that are not gated."""
    return sorted((task for task in ssn.pending_tasks(job) if not gated(ssn, task)), key=ssn.task_order)


def may_look(ssn: Session, task: int) -> bool:
    """Its owner did not say never, and it does not wait for the victims of an earlier session."""
    pod = ssn.tasks.pod[task]
    return pod is not None and pod.spec.preemption_policy != NEVER and not waits_for_victims(ssn, task)


def make_room_for_job(
    ssn: Session, search: VictimSearch, job: int, candidates: Callable[[int], BoolT], may: Callable[[int], bool] | None = None
) -> None:
    """Let the job's tasks look for victims until it starves no more; keep what was done if it can run now, else undo all of it.

    `candidates`: task -> who may be asked to leave for it; `may`: which tasks may look at all.

    A job that finds room without any eviction is left to allocate, where that comes later: it binds at once. Tasks that ask for
    nothing are promised their place, so that nobody takes room that the job does not need; backfill binds them there."""
    tasks = [task for task in tasks_in_order(ssn, job) if may_look(ssn, task)]
    hopeless, alike = search.hopeless, _code(ssn, search, job, tasks)
    if alike in hopeless:
        _tell(ssn, search, job, alike)
        return
    victims: dict[int, list[int]] = {}
    left_to_allocate = False
    stuck = -1  # the first task for which nobody leaves
    with ssn.statement() as stmt:
        for task in tasks:
            if not ssn.job_starving(job):
                break
            if may is not None and not may(task):
                continue
            with ssn.statement() as trial:
                left = search.make_room(trial, task, candidates(task))
                if left is None:
                    stuck = task if stuck < 0 else stuck
                    continue
                left_to_allocate |= not left and is_allocated_later(ssn, search.reason, task)
                stmt.merge(trial)
                victims[task] = left
        if (stmt.evicted or (victims and not left_to_allocate)) and ssn.job_pipelined(job):
            stmt.commit()
            ssn.evicted_for.update((victim, task) for task, left in victims.items() for victim in left)
            return
    search.hopeless = hopeless  # all is again as it was
    hopeless.add(alike)
    if stuck >= 0:
        search.told[alike] = search.who_stays(stuck, candidates(stuck))
        _tell(ssn, search, job, alike)


def _tell(ssn: Session, search: VictimSearch, job: int, code: Hashable) -> None:
    if code in search.told:
        ssn.not_evicted.setdefault(job, {})[search.reason] = search.told[code]


def is_allocated_later(ssn: Session, action: str, task: int) -> bool:
    """Allocate, which is still to come, would bind a task that has free room, and passes over one that is promised it."""
    return not ssn.shape_of(task).best_effort and comes_later(ssn, action, "allocate")


def comes_later(ssn: Session, action: str, other: str) -> bool:
    names = [entry.action.name for entry in ssn.conf.actions]
    return other in names[names.index(action) :]


def _code(ssn: Session, search: VictimSearch, job: int, tasks: list[int]) -> Hashable:
    """Jobs with the same code fare the same: equal tasks and equal minimums."""
    group = ssn.jobs.group[job]
    assert group is not None
    roles = tuple(sorted((group.spec.min_task_member or {}).items()))
    members = tuple((search.code(task), ssn.tasks.role[task]) for task in tasks)
    return int(ssn.jobs.min_available[job]), roles, members, job if group.spec.sub_group_policy else -1
