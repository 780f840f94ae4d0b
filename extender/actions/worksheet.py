"""Placing a job: what is left of it by sub-job, and in which HyperNode it and each of its sub-jobs find room.

    for each list of HyperNodes for the job, as long as none of the lists before has room for it:
        in each of them, from the same beginning:
            the first sub-job, those that its minimum needs first, then by sub_job_order:
                for each list of HyperNodes for the sub-job, the same with its tasks; the best by hyper_node_order
            until the job is ready
    the one whose sub-jobs have the most points

A sub-job that is only promised what it lacks holds nothing but promises, so that it is never bound in part. A job without
sub-groups and without network topology is placed in one go, anywhere. Source: volcano ed72c7c, actions/allocate."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from extender.actions.placing import AllocateArgs, place_tasks
from extender.core.hyper_nodes import Gradient, HyperNode, Purpose
from extender.core.live_heap import LiveHeap
from extender.core.reasons import FitErrors
from extender.core.session import Session
from extender.core.statement import Statement, Step
from extender.core.sub_jobs import SubJob

L = TypeVar("L")
Left = dict[int, deque[int]]


class Worksheet:
    """`tasks` at the beginning, in their order. `left`: sub-job (its place in ssn.sub_jobs) -> those of them that are to be
    placed still; sub-jobs without any are not in it.

    `first`: a task whose sub-job goes before all others."""

    def __init__(self, ssn: Session, job: int, tasks: Iterable[int], first: int | None = None) -> None:
        self.job, self.tasks = job, list(tasks)
        self.sub_jobs = ssn.sub_jobs(job)
        if len(self.sub_jobs) == 1:
            self.left: Left = {0: deque(self.tasks)}
        else:
            of_task = {task: i for i, sub_job in enumerate(self.sub_jobs) for task in sub_job.tasks.tolist()}
            self.left = {}
            for task in self.tasks:
                self.left.setdefault(of_task[task], deque()).append(task)
        self._first = first
        self._needed = _needed(ssn, job, self.sub_jobs) if ssn.has_sub_jobs(job) else frozenset()

    def __bool__(self) -> bool:
        return any(self.left.values())

    def key(self, ssn: Session, number: int) -> tuple[Any, ...]:
        """The lowest is placed first."""
        sub_job = self.sub_jobs[number]
        asked_for = self._first is not None and self._first in sub_job.tasks
        return (not asked_for, number not in self._needed, *ssn.sub_job_order(sub_job))


def _needed(ssn: Session, job: int, sub_jobs: Sequence[SubJob]) -> frozenset[int]:
    """The first sub-jobs by sub_job_order that, with those that are ready, make the minSubGroups of each policy."""
    group = ssn.jobs.group[job]
    policies = (group.spec.sub_group_policy if group is not None else None) or ()
    ready = [ssn.sub_job_ready(sub_job) for sub_job in sub_jobs]
    have = Counter(sub_job.policy for sub_job, there in zip(sub_jobs, ready, strict=True) if there)
    needed = set()
    for number in sorted(range(len(sub_jobs)), key=lambda number: ssn.sub_job_order(sub_jobs[number])):
        policy = sub_jobs[number].policy
        if not ready[number] and policy >= 0 and have[policy] < (policies[policy].min_sub_groups or 0):
            needed.add(number)
            have[policy] += 1
    return frozenset(needed)


def place_job(ssn: Session, stmt: Statement, work: Worksheet, args: AllocateArgs) -> bool:
    """Place tasks until the job is ready. True where it is ready or pipelined; `work` then holds what is left to place."""
    if not ssn.has_sub_jobs(work.job) and not _has_topology(ssn, work.job):
        return place_tasks(ssn, stmt, work.sub_jobs[0], work.left[0], ssn.root, args)
    found = _search(
        ssn, stmt, ssn.jobs.pending_tasks[work.job],
        ssn.hyper_node_gradient_for_job(work.job, ssn.root, Purpose.ALLOCATE),
        lambda trial, hyper_node: _place_sub_jobs(ssn, trial, work, hyper_node, args),
    )  # fmt: skip
    if found is None:
        return False
    work.left = found.left
    return True


def _has_topology(ssn: Session, job: int) -> bool:
    group = ssn.jobs.group[job]
    return group is not None and group.spec.network_topology is not None


def _place_sub_jobs(ssn: Session, stmt: Statement, work: Worksheet, within: HyperNode, args: AllocateArgs) -> _Found[Left] | None:
    """The job's sub-jobs, one after the other, within one HyperNode. A sub-job that has no room there is left out."""
    left = {number: tasks for number, tasks in work.left.items() if tasks}
    heap = LiveHeap(left, lambda number: work.key(ssn, number))
    points = 0.0
    while heap:
        number = heap.pop()
        found = _place_sub_job(ssn, stmt, work.sub_jobs[number], left.pop(number), within, args)
        if found is None:
            continue
        points += found.points
        if found.left:
            left[number] = found.left
            heap.push(number)
        if ssn.job_ready(work.job):
            break
    if ssn.job_ready(work.job) or ssn.job_pipelined(work.job):
        return _Found(left, points)
    return None


def _place_sub_job(
    ssn: Session, stmt: Statement, sub_job: SubJob, tasks: deque[int], within: HyperNode, args: AllocateArgs
) -> _Found[deque[int]] | None:
    def attempt(trial: Statement, hyper_node: HyperNode) -> _Found[deque[int]] | None:
        left = deque(tasks)
        if not place_tasks(ssn, trial, sub_job, left, hyper_node, args):
            return None
        if not sub_job.whole and not ssn.sub_job_ready(sub_job):
            trial.only_promise()
        return _Found(left)

    def rank(candidates: dict[str, HyperNode]) -> dict[str, float]:
        return ssn.hyper_node_order(sub_job, candidates)

    gradient = ssn.hyper_node_gradient_for_sub_job(sub_job, within, Purpose.ALLOCATE)
    return _search(ssn, stmt, sub_job.tasks.tolist(), gradient, attempt, rank)


# --- looking for room in HyperNodes -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Found(Generic[L]):
    """`left`: what is left to place. The others are set where it is one of several trials."""

    left: L
    points: float = 0.0
    steps: tuple[Step, ...] = ()
    errors: dict[int, FitErrors] | None = None


def _search(
    ssn: Session, stmt: Statement, tasks: Collection[int], gradient: Gradient,
    attempt: Callable[[Statement, HyperNode], _Found[L] | None],
    rank: Callable[[dict[str, HyperNode]], dict[str, float]] | None = None,
) -> _Found[L] | None:  # fmt: skip
    """Try the HyperNodes, list by list, each from the same beginning, and do in `stmt` what was best in the first list in which
    an attempt places anything; of equals the first. `rank` gives points where the attempts do not. Why `tasks` find no node is
    told of the last attempt, or of the best."""
    for listed in gradient:
        candidates = {hyper_node.name: hyper_node for hyper_node in listed}
        found: dict[str, _Found[L]] = {}
        for name, hyper_node in candidates.items():
            for task in tasks:
                ssn.fit_errors.pop(task, None)
            with ssn.statement() as trial:
                one = attempt(trial, hyper_node)
                if one is not None and len(trial):
                    found[name] = one
                    if len(candidates) == 1:
                        stmt.merge(trial)  # there is nothing to choose from: it need not be undone
                    else:
                        one.steps, one.errors = trial.steps, dict(ssn.fit_errors)
        if found:
            return _best(ssn, stmt, {name: candidates[name] for name in found}, found, rank)
    return None


def _best(
    ssn: Session, stmt: Statement, candidates: dict[str, HyperNode], found: dict[str, _Found[L]],
    rank: Callable[[dict[str, HyperNode]], dict[str, float]] | None,
) -> _Found[L]:  # fmt: skip
    if rank is not None:
        for name, points in rank(candidates).items():
            found[name].points = points
    best = max(found.values(), key=lambda one: one.points)
    if best.errors is not None:
        ssn.fit_errors = best.errors
        stmt.replay(best.steps)
    return best
