"""preempt -- within one queue, make room for a job that lacks its minimum, by evicting tasks that matter less.

    for each queue:
        between jobs    for each starving job, by job_order: its tasks evict tasks of other jobs of the queue, all or nothing
        inside a job    what is still pending evicts less important tasks of its own job, task by task

Victims leave the queue's books as well as the node, so a queue at its limit can make room in itself on an idle cluster.
Source: volcano ed72c7c, actions/preempt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from extender.actions.starving import comes_later, is_allocated_later, make_room_for_job, may_look, starving_jobs, tasks_in_order
from extender.core import status as st
from extender.core.conf import Action
from extender.core.live_heap import LiveHeap
from extender.core.plugin import Arguments
from extender.core.session import Session
from extender.core.victims import BoolT, DryRun, Manner, VictimSearch


@dataclass(frozen=True)
class PreemptArgs:
    """`dry_run`: compare several nodes before choosing one (enableTopologyAwarePreemption); None: the best score wins.
    `predicate_error_cache`: what refuses one task of a role for good refuses all of them."""

    dry_run: DryRun | None = None
    predicate_error_cache: bool = True


def _parse(arguments: Arguments) -> PreemptArgs:
    arguments.integer("topologyAwarePreemptWorkerNum", 16)  # accepted for upstream's sake: vectors make workers moot
    usual = DryRun()
    dry_run = DryRun(
        percentage=arguments.integer("minCandidateNodesPercentage", usual.percentage),
        at_least=arguments.integer("minCandidateNodesAbsolute", usual.at_least),
        at_most=arguments.integer("maxCandidateNodesAbsolute", usual.at_most),
    )
    return PreemptArgs(
        dry_run if arguments.boolean("enableTopologyAwarePreemption", False) else None,
        arguments.boolean("predicateErrorCacheEnable", True),
    )


def run(ssn: Session, args: PreemptArgs) -> None:
    by_queue: dict[int, list[int]] = {}
    for job in starving_jobs(ssn):
        if not _has_topology(ssn, job):
            by_queue.setdefault(ssn.queue_of(job), []).append(job)
    manner = Manner(
        free_first=comes_later(ssn, "preempt", "allocate"),
        sparing=args.dry_run is not None,
        one_template=args.predicate_error_cache,
        dry_run=args.dry_run,
    )
    search = VictimSearch(ssn, "preemptable", "preempt", manner)
    queues = LiveHeap(by_queue, ssn.queue_order)
    while queues:
        starving = by_queue[queues.pop()]
        jobs = LiveHeap(starving, ssn.job_order)
        while jobs:
            make_room_for_job(ssn, search, jobs.pop(), partial(tenants, ssn, search, own_job=False))
        for job in sorted(starving, key=ssn.job_order):
            _inside_job(ssn, search, job)
    _remember(ssn)


def _remember(ssn: Session) -> None:
    """Who has preempted a more important job does so no more: that one takes the room back, and so on without end."""
    pushed = ssn.reservations.pushed
    for victim, task in ssn.evicted_for.items():
        mine, theirs = ssn.job_of(task), ssn.job_of(victim)
        if ssn.jobs.priority[theirs] > ssn.jobs.priority[mine]:
            pushed.setdefault(ssn.job_key(mine), set()).add(ssn.job_key(theirs))
    for gone in [key for key in pushed if key not in ssn.jobs.rows]:
        del pushed[gone]


def _inside_job(ssn: Session, search: VictimSearch, job: int) -> None:
    """Each task for itself, until one finds nothing or may not look."""
    for task in tasks_in_order(ssn, job):
        if not may_look(ssn, task):
            return
        with ssn.statement() as stmt:
            victims = search.make_room(stmt, task, tenants(ssn, search, task, own_job=True), own_job=True)
            if victims is None:
                return
            if victims or not is_allocated_later(ssn, "preempt", task):
                stmt.commit()
                ssn.evicted_for.update(dict.fromkeys(victims, task))


def tenants(ssn: Session, search: VictimSearch, task: int, *, own_job: bool) -> BoolT:
    """(T,) tasks that hold room of the task's queue and that the action may ask the plugins about.

    Inside a job only less important tasks: a task that makes room for its equal comes back as the next preemptor."""
    job = ssn.job_of(task)
    status = ssn.task_status
    found: BoolT = search.may_leave & ((status == st.RUNNING) | (status == st.BOUND))
    if own_job:
        found &= (ssn.tasks.job == job) & (ssn.tasks.priority < ssn.tasks.priority[task])
    else:
        found &= (search.queue == ssn.queue_of(job)) & (ssn.tasks.job != job)
        pushed = [ssn.jobs.rows[key] for key in ssn.reservations.pushed.get(ssn.job_key(job), ()) if key in ssn.jobs.rows]
        if pushed:
            found &= ~np.isin(ssn.tasks.job, pushed)
    if ssn.shape_of(task).best_effort:
        found &= best_effort_tasks(ssn)
    return found


def best_effort_tasks(ssn: Session) -> BoolT:
    """(T,) tasks that ask for nothing but a place."""
    by_shape = np.array([shape is not None and shape.best_effort for shape in ssn.snapshot.shapes], dtype=bool)
    result: BoolT = by_shape[ssn.tasks.shape]
    return result


def _has_topology(ssn: Session, job: int) -> bool:
    """Room that one node gives is of no use to a job that wants its nodes close together."""
    group = ssn.jobs.group[job]
    if group is None:
        return False
    parts = group.spec.sub_group_policy or ()
    return group.spec.network_topology is not None or any(part.network_topology is not None for part in parts)


ACTION = Action("preempt", run, _parse, places=False)
