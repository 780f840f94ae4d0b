"""Placing the tasks of one sub-job on nodes, in their order, until the sub-job is ready. A job without sub-groups is one.

Equal tasks in a row are placed in one go (core/placement.py). Source: volcano ed72c7c, actions/allocate."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from extender.core import status as st
from extender.core.axis import BoolN
from extender.core.hyper_nodes import HyperNode
from extender.core.members import READY_OR_PROMISED
from extender.core.plugin import TaskClass
from extender.core.reasons import FitErrors, explain, no_room
from extender.core.session import Session
from extender.core.statement import Statement
from extender.core.sub_jobs import SubJob


@dataclass(frozen=True)
class AllocateArgs:
    # What a node can never cure in one task of a role it is taken to refuse in all tasks of that role (of the same job):
    # roles are meant to be of one template. Only what placing tasks cannot change is remembered.
    predicate_error_cache: bool = True


def gated(ssn: Session, task: int) -> bool:
    """Scheduling gates keep the task out of every action."""
    return bool(ssn.shape_of(task).gated)


def place_tasks(ssn: Session, stmt: Statement, sub_job: SubJob, tasks: deque[int], within: HyperNode, args: AllocateArgs) -> bool:
    """Place tasks until the sub-job is ready. True where it is ready or pipelined; tasks that were tried are taken out."""
    row = ssn.queue_of(sub_job.job)
    open_to = _OpenTo(ssn, within, args.predicate_error_cache)
    failed: dict[int, FitErrors] = {}  # class -> why; other classes of the same role are judged on their own
    failed_roles: set[str] = set()
    for equal in _runs(ssn, sub_job, tasks):
        cls = ssn.task_class(equal[0])
        allowed = ssn.allocatable_tasks(row, equal)
        nodes = open_to(cls, equal[0]) if cls.id not in failed else None
        placed = _place(ssn, stmt, cls, equal[:allowed], nodes) if cls.id not in failed else 0
        if allowed < len(equal):
            _over_limit(ssn, stmt, sub_job.job, cls, equal[allowed:])
        if placed < allowed:
            if cls.id not in failed:
                failed[cls.id] = explain(ssn.plan(cls), within)
            first = explain(ssn.plan(cls), within, nodes) if nodes is not None else failed[cls.id]
            _found_no_node(ssn, equal[placed:allowed], failed[cls.id], first, failed_roles)
            if not _can_become_ready(ssn, sub_job, failed, tasks):
                break
        if placed and ssn.sub_job_ready(sub_job):
            break
    return ssn.sub_job_ready(sub_job) or ssn.sub_job_pipelined(sub_job)


def _found_no_node(ssn: Session, tasks: list[int], why: FitErrors, first: FitErrors, failed_roles: set[str]) -> None:
    """Only the first of a role was really asked of every node; what follows preempt and reclaim may ask anew of all nodes."""
    role = ssn.tasks.role[tasks[0]]
    ssn.fit_errors.update(dict.fromkeys(tasks, replace(why, unresolvable=None) if role else why))
    if role and role not in failed_roles:
        ssn.fit_errors[tasks[0]] = first
        failed_roles.add(role)


def _over_limit(ssn: Session, stmt: Statement, job: int, cls: TaskClass, tasks: list[int]) -> None:
    """The queue refuses these. Beside members that are placed, the nodes may be full too: then that is the better reason."""
    ssn.over_limit[job] = cls.request
    errors = no_room(ssn, cls) if len(stmt) else None
    if errors is not None:
        told = replace(errors, unresolvable=None)  # no node was asked for them, so that preempt may ask all
        ssn.fit_errors.update(dict.fromkeys(tasks, told))


def _runs(ssn: Session, sub_job: SubJob, tasks: deque[int]) -> Iterator[list[int]]:
    """Take from `tasks`, a run at a time, equal tasks that may be placed at once: no more than the sub-job still lacks."""
    while tasks:
        most = ssn.tasks_to_ready(sub_job)
        equal = [tasks.popleft()]
        cls = ssn.task_class(equal[0])
        if not _nominated(ssn, equal[0]):
            while tasks and len(equal) < most and ssn.task_class(tasks[0]) is cls and not _nominated(ssn, tasks[0]):
                equal.append(tasks.popleft())
        yield equal


def _nominated(ssn: Session, task: int) -> str:
    pod = ssn.tasks.pod[task]
    return pod.status.nominated_node_name if pod is not None else ""


class _OpenTo:
    """The nodes that no task of a role has been refused by for good, per role of one job; None: all."""

    def __init__(self, ssn: Session, within: HyperNode, remember: bool) -> None:
        self._ssn, self._remember = ssn, remember
        self._within = None if within.is_root else within.nodes
        self._by_role: dict[str, tuple[int, BoolN | None]] = {}  # role -> last class that was judged, nodes still open

    def __call__(self, cls: TaskClass, task: int) -> BoolN | None:
        role = self._ssn.tasks.role[task]
        if not role or not self._remember:
            return self._within
        last, nodes = self._by_role.get(role, (-1, self._within))
        if last == cls.id:
            return nodes
        mine = self._ssn.plan(cls).not_ruled_out()
        self._by_role[role] = (cls.id, mine if nodes is None else nodes & mine)
        return nodes


def _place(ssn: Session, stmt: Statement, cls: TaskClass, tasks: list[int], within: BoolN | None) -> int:
    """Place equal tasks, idle room first, then room that is being released. How many found a node."""
    done = 0
    if len(tasks) == 1 and (node := _on_nominated(ssn, cls, tasks[0], within)) is not None:
        if ssn.plan(cls).fits_idle[node]:
            stmt.allocate(tasks, [node])
        else:
            stmt.pipeline(tasks, [node])
        return 1
    plan = ssn.plan(cls)
    for releasing, take in ((False, stmt.allocate), (True, stmt.pipeline)):
        while done < len(tasks):
            nodes = plan.choose(len(tasks) - done, releasing=releasing, within=within)
            if not nodes:
                break
            take(tasks[done : done + len(nodes)], nodes)
            done += len(nodes)
    return done


def _on_nominated(ssn: Session, cls: TaskClass, task: int, within: BoolN | None) -> int | None:
    """The node that an earlier session promised the task, if it is still good."""
    name = _nominated(ssn, task)
    node = ssn.nodes.rows.get(name) if name else None
    if node is None or not ssn.plan(cls).feasible(releasing=True, within=within)[node]:
        return None
    return node


def _can_become_ready(ssn: Session, sub_job: SubJob, failed: Container[int], rest: deque[int]) -> bool:
    """After a task found no node: can the tasks that are left still bring the sub-job to its minimums?"""
    job = sub_job.job
    group = ssn.jobs.group[job]
    assert group is not None
    left = [task for task in rest if ssn.task_class(task).id not in failed]
    if not sub_job.whole:
        return sub_job.count(ssn.task_status, READY_OR_PROMISED) + len(left) >= sub_job.min_available
    promised = ssn.ready_count(job) + int(ssn.job_counts[job][st.PIPELINED] + ssn.job_pending_best_effort[job])
    if promised + len(left) < ssn.jobs.min_available[job]:
        return False
    roles = group.spec.min_task_member or {}
    if ssn.jobs.min_available[job] < sum(roles.values()):
        return True  # roles do not bind where the total is below their sum
    have = Counter(ssn.tasks.role[task] for task in left)
    have.update(
        ssn.tasks.role[task]
        for task in ssn.jobs.tasks[job]
        if st.IS_READY[ssn.task_status[task]] or ssn.task_status[task] == st.PIPELINED or ssn.shape_of(task).best_effort
    )
    return all(have[role] >= minimum for role, minimum in roles.items())
