"""Members: the tasks of one job by role and by part (sub-group), so that readiness is a count over columns.

Roles are `minTaskMember` of the PodGroup, parts its sub-jobs (sub_jobs.py) but for the default one, which no policy counts.
Source: volcano ed72c7c, pkg/scheduler/api/job_info.go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.api.podgroup import PodGroup
from extender.core import status as st
from extender.core.axis import BoolN
from extender.core.session import Session
from extender.core.sub_jobs import DEFAULT

IntM = NDArray[np.intp]

READY_OR_PROMISED = st.IS_READY | (np.arange(st.STATUSES) == st.PIPELINED)
ALIVE = READY_OR_PROMISED | (np.arange(st.STATUSES) == st.PENDING)


@dataclass(frozen=True, slots=True, eq=False)
class Members:
    """M tasks. `role` and `part` are codes, -1 where a task has none that counts."""

    tasks: IntM  # (M,) rows of the task table
    best_effort: BoolN  # (M,)
    role: IntM  # (M,)
    roles: tuple[str, ...]  # by role code; empty where they do not bind
    role_minimum: IntM  # by role code; empty where the roles do not bind
    part: IntM  # (M,)
    part_size: IntM  # by part: how many of its tasks make it ready
    part_policy: IntM  # by part
    policy_minimum: IntM  # by policy: how many parts must be ready

    @staticmethod
    def of(ssn: Session, job: int) -> Members | None:
        """None where the PodGroup says nothing of roles and parts: then its minMember alone counts."""
        group = ssn.jobs.group[job]
        if group is None or not (group.spec.min_task_member or group.spec.sub_group_policy):
            return None
        tasks = list(ssn.jobs.tasks[job])
        roles = binding_roles(group)
        code = {role: i for i, role in enumerate(roles)}
        parts = [sub_job for sub_job in ssn.sub_jobs(job) if sub_job.policy != DEFAULT]
        part_of = {task: i for i, part in enumerate(parts) for task in part.tasks.tolist()}
        return Members(
            tasks=np.array(tasks, dtype=np.intp),
            best_effort=np.array([ssn.shape_of(task).best_effort for task in tasks], dtype=bool),
            role=np.array([code.get(ssn.tasks.role[task], -1) for task in tasks], dtype=np.intp),
            roles=tuple(roles),
            role_minimum=np.array(list(roles.values()), dtype=np.intp),
            part=np.array([part_of.get(task, -1) for task in tasks], dtype=np.intp),
            part_size=np.array([part.min_available for part in parts], dtype=np.intp),
            part_policy=np.array([part.policy for part in parts], dtype=np.intp),
            policy_minimum=np.array([policy.min_sub_groups or 0 for policy in group.spec.sub_group_policy or ()], dtype=np.intp),
        )

    def counted(self, ssn: Session, states: BoolN, *, pending_best_effort: bool) -> BoolN:
        """(M,) tasks in one of `states` (10,); a pending task that asks nothing counts too where it is said so."""
        status = ssn.task_status[self.tasks]
        mask = states[status]
        return mask | (self.best_effort & (status == st.PENDING)) if pending_best_effort else mask

    def role_lacks(self, counted: BoolN) -> IntM:
        """By role: how many tasks it is short of its minimum."""
        of_role = self.role[counted & (self.role >= 0)]
        lacks: IntM = np.maximum(self.role_minimum - np.bincount(of_role, minlength=len(self.role_minimum)), 0)
        return lacks

    def part_lacks(self, counted: BoolN) -> IntM:
        """By part: how many tasks it is short of being ready."""
        of_part = self.part[counted & (self.part >= 0)]
        lacks: IntM = np.maximum(self.part_size - np.bincount(of_part, minlength=len(self.part_size)), 0)
        return lacks

    def enough_parts(self, among: BoolN) -> bool:
        """Of every policy there are as many parts `among` (parts,) as it asks."""
        have = np.bincount(self.part_policy[among], minlength=len(self.policy_minimum))
        return bool((have >= self.policy_minimum).all())

    def fewest_to_ready(self, counted: BoolN) -> int:
        """A lower bound of the tasks still lacking: roles may overlap with parts, so the larger of the two counts."""
        lacks = self.part_lacks(counted)
        parts = 0
        for policy, minimum in enumerate(self.policy_minimum):
            of_policy = np.sort(lacks[self.part_policy == policy])
            parts += int(of_policy[:minimum].sum())
        return max(int(self.role_lacks(counted).sum()), parts)


def binding_roles(group: PodGroup) -> Mapping[str, int]:
    """Role -> minimum. They bind nobody where minMember is below their sum."""
    roles = {role: minimum for role, minimum in (group.spec.min_task_member or {}).items() if minimum > 0}
    return roles if group.spec.min_member >= sum((group.spec.min_task_member or {}).values()) else {}
