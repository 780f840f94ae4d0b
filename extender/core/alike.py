"""Jobs that nothing tells apart but name and age: what was found out of one holds for the others, as long as nothing moves.

A long queue is mostly such jobs, each asking anew for what the one before it did not get."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from extender.core import status as st
from extender.core.session import Session

Alike = tuple[Hashable, ...]


def likeness(ssn: Session, job: int, tasks: Collection[int]) -> Alike | None:
    """Equal for jobs whose `tasks` fare the same, one by one. None where a job stands for itself: it holds something or not all
    of it is in `tasks`, its tasks claim devices or were promised nodes, it has parts or a topology, or a plugin looks at more."""
    group = ssn.jobs.group[job]
    if group is None or group.spec.sub_group_policy or group.spec.network_topology is not None or not ssn.all_judge_by_members:
        return None
    if not len(tasks) == len(ssn.jobs.tasks[job]) == ssn.job_counts[job, st.PENDING]:
        return None
    members = []
    for task in tasks:
        cls, pod = ssn.task_class(task), ssn.tasks.pod[task]
        if cls.spec.resource_claims or pod is None or pod.status.nominated_node_name:
            return None
        members.append((cls.id, ssn.tasks.role[task]))
    roles = tuple((group.spec.min_task_member or {}).items())
    return ssn.queue_of(job), int(ssn.jobs.min_available[job]), roles, *members
