"""The pods of a job: which there should be, and what one of them looks like.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_util.go, createJobPod."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from controller.job.plugins.base import Plugin
from controller.job.seen import JobSeen, PodSeen, group_name, pod_name, task_minimum, task_name
from controller.job.volumes import mount
from extender.api import labels as names
from extender.api.job import Job, TaskSpec
from extender.api.meta import POD, Json, owner_reference
from extender.api.pod import RUNNING, SUCCEEDED

_FROM_JOB_ANNOTATIONS = (names.PREEMPTABLE, names.COOLDOWN_TIME, names.REVOCABLE_ZONE)
_FROM_JOB_LABELS = (names.PREEMPTABLE, names.COOLDOWN_TIME)
_BUDGETS = (names.JDB_MIN_AVAILABLE, names.JDB_MAX_UNAVAILABLE)  # the first that is set counts
FORWARDED = "true"


def new_pod(seen: JobSeen, task: TaskSpec, index: int, plugins: Iterable[Plugin]) -> Json:
    """Pod `index` of a task. May raise what a plugin raises."""
    template = copy.deepcopy(task.template)
    spec = template.setdefault("spec", {})
    pod: Json = {
        "apiVersion": POD.api_version,
        "kind": POD.name,
        "metadata": {
            "name": pod_name(seen.job, task, index),
            "namespace": seen.key.namespace,
            "labels": _labels(seen.job, task, index, template),
            "annotations": _annotations(seen.job, task, index, template),
            "ownerReferences": [owner_reference(seen.raw)],
        },
        "spec": spec,
    }
    if not spec.get("schedulerName") and seen.job.spec.scheduler_name:
        spec["schedulerName"] = seen.job.spec.scheduler_name
    if not spec.get("priorityClassName") and seen.job.spec.priority_class_name:
        spec["priorityClassName"] = seen.job.spec.priority_class_name
    mount(seen.job, pod)
    for plugin in plugins:
        plugin.decorate(seen, task, index, pod)
    return pod


def _labels(job: Job, task: TaskSpec, index: int, template: Json) -> dict[str, str]:
    given = (template.get("metadata") or {}).get("labels") or {}
    ours = {
        names.TASK_INDEX: str(index),
        names.TASK_SPEC: task_name(task),
        names.JOB_NAME: job.metadata.name,
        names.JOB_NAMESPACE: job.metadata.namespace,
        names.QUEUE_NAME: job.spec.queue,
        **{name: value for name in _FROM_JOB_LABELS if (value := job.metadata.label(name)) is not None},
    }
    if is_forwarded(job):
        ours[names.JOB_FORWARDING] = FORWARDED
    parts = task.partition_policy
    if parts is not None:
        ours[names.PARTITION_ID] = str(index // parts.partition_size if parts.partition_size > 0 else 0)
    return {**given, **ours}


def _annotations(job: Job, task: TaskSpec, index: int, template: Json) -> dict[str, str]:
    given = (template.get("metadata") or {}).get("annotations") or {}
    ours = {
        names.TASK_INDEX: str(index),
        names.TASK_SPEC: task_name(task),
        names.GROUP_NAME: group_name(job),
        names.JOB_NAME: job.metadata.name,
        names.QUEUE_NAME: job.spec.queue,
        names.JOB_VERSION: str(job.status.version),
        names.JOB_RETRY_COUNT: str(job.status.retry_count),
        names.TEMPLATE_UID: f"{job.metadata.name}-{task.name}",
        **{name: value for name in _FROM_JOB_ANNOTATIONS if (value := job.metadata.annotation(name)) is not None},
    }
    budget = next((name for name in _BUDGETS if job.metadata.annotation(name) is not None), None)
    if budget is not None:
        ours[budget] = job.metadata.annotation(budget) or ""
    if task.topology_policy:
        ours[names.NUMA_POLICY] = task.topology_policy
    if is_forwarded(job):
        ours[names.JOB_FORWARDING] = FORWARDED
    return {**given, **ours}


def is_forwarded(job: Job) -> bool:
    return job.metadata.annotation(names.JOB_FORWARDING) == FORWARDED


def dependencies_ready(seen: JobSeen, task: TaskSpec) -> bool:
    """May the pods of a task be made: are the tasks it depends on (all of them, or any one) ready?"""
    needs = task.depends_on.name if task.depends_on is not None else None
    if not needs:
        return True
    tasks = {each.name: each for each in seen.job.spec.tasks}
    ready = [name in tasks and _ready(seen, tasks[name]) for name in needs]
    return any(ready) if len(needs) > 1 and task.depends_on is not None and task.depends_on.iteration == "any" else all(ready)


def _ready(seen: JobSeen, task: TaskSpec) -> bool:
    """Its minimum has succeeded or runs with all containers ready; without a minimum of its own it always is."""
    if task.min_available is None:
        return True
    pods = (seen.pods.get(pod_name(seen.job, task, index)) for index in range(task.replicas))
    return sum(pod is not None and _serves(pod) for pod in pods) >= task_minimum(task)


def _serves(pod: PodSeen) -> bool:
    return pod.phase == SUCCEEDED or (pod.phase == RUNNING and pod.ready)
