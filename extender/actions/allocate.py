"""allocate -- give pending tasks their nodes: gangs whole, queues in turn.

    while a queue has jobs:
        the first queue by queue_order, unless it is overused; its first job by job_order
        place the job's tasks in task_order until the job is ready
        ready: commit, and back in line while it has tasks; pipelined: keep the room for this session; else undo

Equal tasks in a row are placed in one go (core/placement.py). Source: volcano ed72c7c, actions/allocate."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterator
from dataclasses import dataclass

from extender.core import status as st
from extender.core.axis import BoolN
from extender.core.conf import Action
from extender.core.live_heap import LiveHeap
from extender.core.plugin import Arguments, TaskClass
from extender.core.reasons import FitErrors, explain, no_room
from extender.core.session import Session
from extender.core.statement import Statement


@dataclass(frozen=True)
class AllocateArgs:
    # What a node can never cure in one task of a role it is taken to refuse in all tasks of that role (of the same job):
    # roles are meant to be of one template. Only what placing tasks cannot change is remembered.
    predicate_error_cache: bool = True


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
            done = place_job(ssn, stmt, job, work[job], args)
            if done and ssn.job_ready(job):
                stmt.commit()
                if work[job]:
                    jobs[row].push(job)
            elif done:
                stmt.keep()
        queues.push(row)


def _collect(ssn: Session) -> dict[int, deque[int]]:
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
            work[job] = deque(sorted(tasks, key=ssn.task_order))
    return work


def gated(ssn: Session, task: int) -> bool:
    """Scheduling gates keep the task out of every action."""
    return bool(ssn.shape_of(task).gated)


def place_job(ssn: Session, stmt: Statement, job: int, tasks: deque[int], args: AllocateArgs) -> bool:
    """Place tasks until the job is ready. True where it is ready or pipelined; tasks that were tried are taken out."""
    row = ssn.queue_of(job)
    open_to = _OpenTo(ssn, args.predicate_error_cache)
    failed: dict[int, FitErrors] = {}  # class -> why; other classes of the same role are judged on their own
    for equal in _runs(ssn, job, tasks):
        cls = ssn.task_class(equal[0])
        allowed = ssn.allocatable_tasks(row, equal)
        placed = _place(ssn, stmt, cls, equal[:allowed], open_to(cls, equal[0])) if cls.id not in failed else 0
        if allowed < len(equal):
            _over_limit(ssn, stmt, job, cls, equal[allowed:])
        if placed < allowed:
            if cls.id not in failed:
                failed[cls.id] = explain(ssn.plan(cls))
            for task in equal[placed:allowed]:
                ssn.fit_errors[task] = failed[cls.id]
            if not _can_become_ready(ssn, job, failed, tasks):
                break
        if placed and ssn.job_ready(job):
            break
    return ssn.job_ready(job) or ssn.job_pipelined(job)


def _over_limit(ssn: Session, stmt: Statement, job: int, cls: TaskClass, tasks: list[int]) -> None:
    """The queue refuses these. Beside members that are placed, the nodes may be full too: then that is the better reason."""
    ssn.over_limit[job] = cls.request
    errors = no_room(ssn, cls) if len(stmt) else None
    if errors is not None:
        ssn.fit_errors.update(dict.fromkeys(tasks, errors))


def _runs(ssn: Session, job: int, tasks: deque[int]) -> Iterator[list[int]]:
    """Take from `tasks`, a run at a time, equal tasks that may be placed at once: no more than the job still lacks."""
    while tasks:
        most = ssn.tasks_to_ready(job)
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

    def __init__(self, ssn: Session, remember: bool) -> None:
        self._ssn, self._remember = ssn, remember
        self._by_role: dict[str, tuple[int, BoolN | None]] = {}  # role -> last class that was judged, nodes still open

    def __call__(self, cls: TaskClass, task: int) -> BoolN | None:
        role = self._ssn.tasks.role[task]
        if not role or not self._remember:
            return None
        last, nodes = self._by_role.get(role, (-1, None))
        if last == cls.id:
            return nodes
        mine = self._ssn.plan(cls).not_ruled_out()
        self._by_role[role] = (cls.id, mine if nodes is None else nodes & mine)
        return nodes


def _place(ssn: Session, stmt: Statement, cls: TaskClass, tasks: list[int], within: BoolN | None) -> int:
    """Place equal tasks, idle room first, then room that is being released. How many found a node."""
    done = 0
    if len(tasks) == 1 and (node := _on_nominated(ssn, cls, tasks[0])) is not None:
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


def _on_nominated(ssn: Session, cls: TaskClass, task: int) -> int | None:
    """The node that an earlier session promised the task, if it is still good."""
    name = _nominated(ssn, task)
    node = ssn.nodes.rows.get(name) if name else None
    if node is None or not ssn.plan(cls).feasible(releasing=True)[node]:
        return None
    return node


def _can_become_ready(ssn: Session, job: int, failed: Container[int], rest: deque[int]) -> bool:
    """After a task found no node: can the tasks that are left still bring the job to its minimums?"""
    group = ssn.jobs.group[job]
    assert group is not None
    left = [task for task in rest if ssn.task_class(task).id not in failed]
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


ACTION = Action("allocate", run, _parse)
