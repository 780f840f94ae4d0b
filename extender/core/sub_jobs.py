"""Sub-jobs: the tasks of one job by `subGroupPolicy` of its PodGroup. A sub-job is placed whole or not at all.

The first policy whose selector a pod matches and whose match labels it has puts it into a sub-job of that policy, one for
each combination of label values. Unlike in the reference a policy with a selector alone has one sub-job. Pods that no policy
takes are the default sub-job, which is the whole job where there are no policies.
Source: volcano ed72c7c, pkg/scheduler/api/sub_job_info.go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.api.podgroup import SubGroupPolicy
from extender.core import status as st
from extender.core.axis import BoolN, Rows
from extender.core.snapshot import Snapshot

DEFAULT = -1  # in place of a policy


@dataclass(slots=True, eq=False)
class SubJob:
    """M tasks. `policy` is its place in the PodGroup's list, or DEFAULT; `whole`: the job has no policies, this is all of it.

    Most jobs are one sub-job that nobody asks more of than whose it is, so what costs time is worked out when it is asked for."""

    name: str  # ns/job for the default one, else ns/job/policy-values
    job: int
    policy: int
    whole: bool
    min_available: int  # subGroupSize: so many of its tasks make it ready
    values: tuple[str, ...]  # of the policy's match labels
    members: Collection[int]  # its tasks, in the order of the job's
    snapshot: Snapshot
    _tasks: Rows | None = None
    _best_effort: BoolN | None = None

    @property
    def tasks(self) -> Rows:
        """(M,)"""
        if self._tasks is None:
            self._tasks = np.fromiter(self.members, dtype=np.intp, count=len(self.members))
        return self._tasks

    @property
    def best_effort(self) -> BoolN:
        """(M,) tasks that ask for nothing but a place."""
        if self._best_effort is None:
            shapes = (self.snapshot.shapes[shape] for shape in self.snapshot.tasks.shape[self.tasks].tolist())
            self._best_effort = np.array([shape is not None and shape.best_effort for shape in shapes], dtype=bool)
        return self._best_effort

    @property
    def match_index(self) -> int:
        """The first label value, where it is a number."""
        return _number(self.values[0]) if self.values else 0

    @property
    def priority(self) -> int:
        """Of its most important task; never below 0."""
        return int(self.snapshot.tasks.priority[self.tasks].max(initial=0))

    def count(self, status: NDArray[np.int8], states: BoolN) -> int:
        """Its tasks in one of `states` (10,); pending ones that ask for nothing count too. `status` (T,) of all tasks."""
        own = status[self.tasks]
        return int((states[own] | (self.best_effort & (own == st.PENDING))).sum())


def sub_jobs_of(snapshot: Snapshot, job: int) -> tuple[SubJob, ...]:
    """In the order in which their first tasks are met."""
    group, jobs = snapshot.jobs.group[job], snapshot.jobs
    policies = (group.spec.sub_group_policy if group is not None else None) or ()
    if not policies:
        return (SubJob(str(jobs.key[job]), job, DEFAULT, True, int(jobs.min_available[job]), (), jobs.tasks[job], snapshot),)
    members: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for task in jobs.tasks[job]:
        pod = snapshot.tasks.pod[task]
        members.setdefault(_place(policies, (pod.metadata.labels if pod is not None else None) or {}), []).append(task)
    return tuple(
        SubJob(
            _name(str(jobs.key[job]), policies, policy, values),
            job,
            policy,
            False,
            _size(policies, policy),
            values,
            tasks,
            snapshot,
        )
        for (policy, values), tasks in members.items()
    )


def _name(job: str, policies: Sequence[SubGroupPolicy], policy: int, values: Sequence[str]) -> str:
    return f"{job}/{policies[policy].name}-{'-'.join(values)}" if policy != DEFAULT else job


def _size(policies: Sequence[SubGroupPolicy], policy: int) -> int:
    size = policies[policy].sub_group_size if policy != DEFAULT else None
    return 1 if size is None else size


def _number(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        return 0


def _place(policies: Sequence[SubGroupPolicy], labels: Mapping[str, str]) -> tuple[int, tuple[str, ...]]:
    """The policy that a pod with these labels belongs to, and its label values."""
    for i, policy in enumerate(policies):
        values = _values(policy, labels)
        if values is not None:
            return i, values
    return DEFAULT, ()


def _values(policy: SubGroupPolicy, labels: Mapping[str, str]) -> tuple[str, ...] | None:
    """None: the policy is not for pods with these labels."""
    keys = policy.match_label_keys or ()
    if policy.label_selector is None and not keys:
        return None
    if policy.label_selector is not None and not policy.label_selector.matches(labels):
        return None
    values = tuple(labels.get(key, "") for key in keys)
    return values if all(values) else None
