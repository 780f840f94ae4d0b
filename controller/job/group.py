"""The PodGroup of a job: the gang the scheduler admits and places.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_actions.go, createOrUpdatePodGroup, calcPGMinResources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.job.seen import JobSeen, group_name, task_minimum
from controller.merge import merge_diff
from extender.api import labels as names
from extender.api.job import Job, TaskSpec
from extender.api.meta import POD_GROUP, Json, Key, owner_reference, uid_of
from extender.api.operations import Create, Patch
from extender.api.usage import Amounts, add, as_quantities, pod_usage


def group_operations(seen: JobSeen) -> tuple[Create | Patch, ...]:
    """Make the group, or bring its spec in line with the job's; queue and topology of an existing one stay."""
    if seen.group is None:
        return (Create(POD_GROUP, new_group(seen)),)
    stored = seen.group.get("spec") or {}
    wanted = {**stored, **_following(seen)}
    wanted["minTaskMember"] = {**(stored.get("minTaskMember") or {}), **wanted["minTaskMember"]}
    diff = merge_diff(stored, {name: value for name, value in wanted.items() if value not in ("", [], {})})
    if not diff:
        return ()
    key = Key(seen.key.namespace, seen.group["metadata"]["name"])
    return (Patch(POD_GROUP, key, {"spec": diff}, uid=uid_of(seen.group)),)


def new_group(seen: JobSeen) -> Json:
    job, meta = seen.job, seen.job.metadata
    spec = {name: value for name, value in _following(seen).items() if value not in ("", [])}
    if job.spec.queue:
        spec["queue"] = job.spec.queue
    topology = seen.raw["spec"].get("networkTopology")
    if topology is not None:
        spec["networkTopology"] = _one_bound(topology)
    metadata: Json = {
        "name": group_name(job),
        "namespace": meta.namespace,
        "ownerReferences": [owner_reference(seen.raw)],
    }
    if meta.labels:
        metadata["labels"] = dict(meta.labels)
    if meta.annotations:
        metadata["annotations"] = dict(meta.annotations)
    return {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name, "metadata": metadata, "spec": spec}


def _following(seen: JobSeen) -> Json:
    """The part of the spec that follows the job for as long as it lives."""
    job, listed = seen.job, seen.raw["spec"].get("tasks") or ()
    return {
        "minMember": job.spec.min_available,
        "minTaskMember": {task.name: _task_member(task) for task in job.spec.tasks},
        "minResources": min_resources(job, seen.priorities),
        "priorityClassName": job.spec.priority_class_name,
        "subGroupPolicy": [_sub_group(task, raw) for task, raw in zip(job.spec.tasks, listed, strict=True)
                           if task.partition_policy is not None],
    }  # fmt: skip


def _task_member(task: TaskSpec) -> int:
    parts = task.partition_policy
    if task.min_available is None and parts is not None and parts.min_partitions and parts.partition_size:
        return parts.min_partitions * parts.partition_size
    return task_minimum(task)


def _sub_group(task: TaskSpec, raw: Json) -> Json:
    parts = task.partition_policy
    assert parts is not None
    policy: Json = {
        "name": task.name,
        "subGroupSize": parts.partition_size,
        "minSubGroups": parts.min_partitions,
        "labelSelector": {"matchLabels": {names.TASK_SPEC: task.name}},
        "matchLabelKeys": [names.PARTITION_ID],
    }
    topology = raw["partitionPolicy"].get("networkTopology")
    if topology is not None:
        policy["networkTopology"] = _one_bound(topology)
    return policy


def _one_bound(topology: Json) -> Json:
    """The tier number wins over the tier's name."""
    copy = dict(topology)
    if copy.get("highestTierAllowed") is not None:
        copy.pop("highestTierName", None)
    return copy


def min_resources(job: Job, priorities: Mapping[str, int]) -> dict[str, str]:
    """What the first minAvailable pods use, tasks of high priority first, each task's own minimum before the rest."""
    tasks = sorted(
        job.spec.tasks,
        key=lambda task: -priorities.get((task.template.get("spec") or {}).get("priorityClassName") or "", 0),
    )
    total: Amounts = {}
    specs = []
    for task, number in _first_pods(tasks, job.spec.min_available):
        spec = task.template.get("spec") or {}
        specs.append(spec)
        add(total, pod_usage(spec), number)
    return as_quantities(total, specs)


def _first_pods(tasks: list[TaskSpec], wanted: int) -> Iterator[tuple[TaskSpec, int]]:
    promised = sum(task_minimum(task) for task in tasks)
    if wanted < promised:
        for task in tasks:
            taken = min(wanted, task.replicas)
            wanted -= taken
            if taken > 0:
                yield task, taken
        return
    for task in tasks:
        if task.min_available is not None:
            taken = min(wanted, task.min_available)
            wanted -= taken
            if taken > 0:
                yield task, taken
    for task in tasks:
        taken = min(wanted, task.replicas - (task.min_available or 0))
        wanted -= taken
        if taken > 0:
            yield task, taken
