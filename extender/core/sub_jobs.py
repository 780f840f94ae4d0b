"""Sub-jobs: the tasks of one job by `subGroupPolicy` of its PodGroup. A sub-job is placed whole or not at all.

The first policy whose selector a pod matches and whose match labels it has puts it into a sub-job of that policy, one for
each combination of label values. Unlike in the reference a policy with a selector alone has one sub-job. Pods that no policy
takes are the default sub-job, which is the whole job where there are no policies.
Source: volcano ed72c7c, pkg/scheduler/api/sub_job_info.go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.api.podgroup import SubGroupPolicy
from extender.core import status as st
from extender.core.axis import BoolN, Rows
from extender.core.snapshot import Snapshot

DEFAULT = -1  # in place of a policy


@dataclass(frozen=True, slots=True, eq=False)
class SubJob:
    """M tasks. `policy` is its place in the PodGroup's list, or DEFAULT; `whole`: the job has no policies, this is all of it."""

    job: int
    name: str  # ns/job for the default one, else ns/job/policy-values
    policy: int
    whole: bool
    min_available: int  # subGroupSize: so many of its tasks make it ready
    match_index: int  # the first label value, where it is a number
    priority: int  # of its most important task
    tasks: Rows  # (M,)
    best_effort: BoolN  # (M,)

    def count(self, status: NDArray[np.int8], states: BoolN) -> int:
        """Its tasks in one of `states` (10,); pending ones that ask for nothing count too. `status` (T,) of all tasks."""
        own = status[self.tasks]
        return int((states[own] | (self.best_effort & (own == st.PENDING))).sum())


def sub_jobs_of(snapshot: Snapshot, job: int) -> tuple[SubJob, ...]:
    """In the order in which their first tasks are met."""
    group, jobs = snapshot.jobs.group[job], snapshot.jobs
    policies = (group.spec.sub_group_policy if group is not None else None) or ()
    if not policies:
        return (_made(snapshot, job, (DEFAULT, ()), list(jobs.tasks[job]), int(jobs.min_available[job]), whole=True),)
    tasks: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for task in jobs.tasks[job]:
        pod = snapshot.tasks.pod[task]
        tasks.setdefault(_place(policies, (pod.metadata.labels if pod is not None else None) or {}), []).append(task)
    return tuple(_made(snapshot, job, place, listed, _size(policies, place[0]), policies) for place, listed in tasks.items())


def _made(snapshot: Snapshot, job: int, place: tuple[int, tuple[str, ...]], tasks: list[int], least: int,
          policies: Sequence[SubGroupPolicy] = (), *, whole: bool = False) -> SubJob:  # fmt: skip
    policy, values = place
    shapes = (snapshot.shapes[snapshot.tasks.shape[task]] for task in tasks)
    rows = np.array(tasks, dtype=np.intp)
    return SubJob(
        job=job,
        name=str(snapshot.jobs.key[job]) + (f"/{policies[policy].name}-{'-'.join(values)}" if policy != DEFAULT else ""),
        policy=policy,
        whole=whole,
        min_available=least,
        match_index=_number(values[0]) if values else 0,
        priority=int(snapshot.tasks.priority[rows].max(initial=0)),
        tasks=rows,
        best_effort=np.array([shape is not None and shape.best_effort for shape in shapes], dtype=bool),
    )


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
