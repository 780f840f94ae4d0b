"""In which order tasks leave their nodes: who matters least goes first. Lists of row numbers in, the same in order out.

    queues   by victim_queue_order, then the last by queue_order first
    jobs     the last by the plugins' part of job_order first; a job's age does not count
    tasks    the last by task_order first

Source: volcano ed72c7c, framework/session_plugins.go, BuildVictimsPriorityQueue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from extender.core.session import Session


def in_victim_order(ssn: Session, preemptor_queue: int, tasks: Sequence[int]) -> list[int]:
    """The order in which chosen victims are evicted. It is total: of equal tasks the youngest goes first."""
    return _ordered(ssn, preemptor_queue, tasks, ssn.task_order)


def by_importance(ssn: Session, preemptor_queue: int, tasks: Sequence[int]) -> list[int]:
    """The order in which plugins are offered candidates, so that what they count out goes to those who matter least.

    Tasks that no plugin tells apart stay in the order given."""
    return _ordered(ssn, preemptor_queue, tasks, ssn.task_plugin_order)


def queues_in_order(ssn: Session, preemptor_queue: int, queues: Sequence[int]) -> list[int]:
    """The queue that gives first comes first."""
    if len(queues) < 2:
        return list(queues)
    last_first = sorted(queues, key=ssn.queue_order, reverse=True)
    return sorted(last_first, key=lambda row: ssn.victim_queue_order(row, preemptor_queue))


def _ordered(ssn: Session, preemptor_queue: int, tasks: Sequence[int], task_key: Callable[[int], Any]) -> list[int]:
    by_queue: dict[int, list[int]] = {}
    for task in tasks:
        by_queue.setdefault(ssn.queue_of(ssn.job_of(task)), []).append(task)
    jobs = {job: ssn.job_plugin_order(job) for job in {ssn.job_of(task) for task in tasks}}
    ordered: list[int] = []
    for row in queues_in_order(ssn, preemptor_queue, list(by_queue)):
        within = by_queue[row]
        within.sort(key=lambda task: (jobs[ssn.job_of(task)], task_key(task)), reverse=True)
        ordered.extend(within)
    return ordered
