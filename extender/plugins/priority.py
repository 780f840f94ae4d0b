"""priority -- the higher priority goes first and may push out the lower.

Jobs have the value of their PodGroup's PriorityClass, tasks that of their pod, sub-jobs that of their most important task.
Source: volcano ed72c7c, plugins/priority."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.core import status as st
from extender.core.axis import BoolN, Rows
from extender.core.hyper_nodes import GANG_RECLAIM, Eviction
from extender.core.plugin import NoArgs, Plugin
from extender.core.session import Session
from extender.core.sub_jobs import SubJob


class Priority(Plugin[NoArgs]):
    name = "priority"
    keeps = "none is of lower priority"

    def job_order(self, ssn: Session, job: int) -> int:
        return -int(ssn.jobs.priority[job])

    def task_order(self, ssn: Session, task: int) -> int:
        return -int(ssn.tasks.priority[task])

    def sub_job_order(self, ssn: Session, sub_job: SubJob) -> int:
        del ssn
        return -sub_job.priority

    def preemptable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        """Tasks of jobs of a lower priority; within the task's own job, tasks of a lower priority."""
        job = ssn.job_of(task)
        if job < 0:
            return []
        jobs, tasks = ssn.jobs.priority, ssn.tasks.priority
        return [
            victim
            for victim in candidates
            if (other := ssn.job_of(victim)) >= 0 and (tasks[victim] < tasks[task] if other == job else jobs[other] < jobs[job])
        ]

    def unified_evictable(self, ssn: Session, eviction: Eviction, candidates: Sequence[int]) -> Sequence[int]:
        """Tasks of jobs of a lower priority; between queues shares count and no priority."""
        if eviction.reason == GANG_RECLAIM:
            return candidates
        mine = ssn.jobs.priority[eviction.job]
        return [victim for victim in candidates if (job := ssn.job_of(victim)) >= 0 and ssn.jobs.priority[job] < mine]

    def evictable(self, ssn: Session, hook: str, task: int, rows: Rows) -> BoolN:
        del hook
        job, jobs = ssn.job_of(task), ssn.tasks.job[rows]
        lower = ssn.jobs.priority[jobs] < ssn.jobs.priority[job]
        within: BoolN = np.where(jobs == job, ssn.tasks.priority[rows] < ssn.tasks.priority[task], lower)
        return within

    def job_starving(self, ssn: Session, job: int) -> bool:
        """Some task has neither a node nor the promise of one."""
        placed = ssn.ready_count(job) + int(ssn.job_counts[job, st.PIPELINED])
        return placed < len(ssn.jobs.tasks[job])
