"""Synchronising a job: what it needs is made, surplus pods go, the status follows the counts.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_actions.go, syncJob. Differences: a job that restarts only waits
until enough old pods are gone, and is then set up again as a pending one; counts are written even while the group waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.job.counts import Counts, count
from controller.job.group import group_operations
from controller.job.kill import delete_pods
from controller.job.phases import Rules
from controller.job.plugins.base import Plugin
from controller.job.pods import FORWARDED, dependencies_ready, is_forwarded, new_pod
from controller.job.requests import Request
from controller.job.seen import JobSeen, PodSeen, pod_name
from controller.job.status import Outcome, first_status, status_patch
from controller.job.volumes import Volumes, plan_volumes
from controller.reconciler import Decision, NotYet, Stage, at_once
from extender.api import labels as names
from extender.api import pod as phases
from extender.api.job import PENDING, RESTARTING, TaskSpec
from extender.api.meta import JOB, POD, Time, key_of, kind_of, uid_of
from extender.api.operations import Create, Operation, Patch


def sync(seen: JobSeen, rules: Rules, plugins: Sequence[Plugin], now: Time) -> Decision:
    """Raises NotYet where the queue or a claim is missing, and what a plugin raises."""
    if not seen.phase:
        return Decision(at_once(*first_status(seen, now)))
    if seen.phase == RESTARTING:
        return Decision(at_once(*_status(seen, rules, _count(seen.pods.values()), _recorded(seen), now)))
    if seen.queue is None:
        raise NotYet(f"the queue '{seen.job.spec.queue}' does not exist; create it, and the job goes on")
    volumes = plan_volumes(seen) if seen.phase == PENDING else Volumes()
    objects = [*_plugin_objects(seen, plugins), *volumes.create]
    changed = (*_forward(seen), *volumes.patch)
    if changed or (volumes.missing and objects):
        return Decision((Stage(objects), Stage(changed)), follow_up=(Request(seen.key),))
    if volumes.missing:
        claims = ", ".join(volumes.missing)
        raise NotYet(f"claims that the job mounts do not exist: {claims}; create them, and the job goes on", reason="PVCError")
    controlled = {**_recorded(seen), **_initialised(plugins), **volumes.controlled} if seen.phase == PENDING else _recorded(seen)
    pods = plan_pods(seen) if seen.admitted else _keep(seen)
    made = [Create(POD, new_pod(seen, task, index, plugins)) for task, index in pods.missing]
    status = _status(seen, rules, _count(pods.staying, ending=pods.surplus, gone=pods.ending, made=made), controlled, now)
    return Decision((
        Stage(objects),
        Stage(group_operations(seen)),
        Stage(made),
        *delete_pods(seen, pods.surplus),
        Stage(status),
    ))  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodPlan:
    """`missing` are to be made, `surplus` to be deleted; `staying` are counted by phase, `ending` pods only as such."""

    missing: Sequence[tuple[TaskSpec, int]]
    surplus: Sequence[PodSeen]
    staying: Sequence[PodSeen]
    ending: int


def plan_pods(seen: JobSeen) -> PodPlan:
    """Each task has pods 0..replicas-1, made once the tasks it depends on are ready. A pod that was marked for deletion
    and is still there is deleted again."""
    wanted, missing = set(), []
    for task in seen.job.spec.tasks:
        ready = dependencies_ready(seen, task)
        for index in range(task.replicas):
            name = pod_name(seen.job, task, index)
            wanted.add(name)
            if ready and name not in seen.pods:
                missing.append((task, index))
    alive = [pod for pod in seen.pods.values() if not pod.terminating]
    surplus = [pod for pod in alive if pod.name not in wanted or pod.out_of_sync]
    staying = [pod for pod in alive if pod.name in wanted and not pod.out_of_sync]
    return PodPlan(missing, surplus, staying, ending=len(seen.pods) - len(alive))


def _keep(seen: JobSeen) -> PodPlan:
    """While the group waits for admission no pod is made and none goes."""
    alive = [pod for pod in seen.pods.values() if not pod.terminating]
    return PodPlan((), (), alive, ending=len(seen.pods) - len(alive))


def _count(pods: Iterable[PodSeen], ending: Sequence[PodSeen] = (), gone: int = 0, made: Sequence[Create] = ()) -> Counts:
    pods = list(pods)
    alive = [pod for pod in pods if not pod.terminating]
    counts = count(alive, terminating=len(pods) - len(alive) + len(ending) + gone)
    for each in made:
        counts.add(each.object["metadata"]["annotations"][names.TASK_SPEC], phases.PENDING)
    return counts


def _status(seen: JobSeen, rules: Rules, counts: Counts, controlled: Mapping[str, str], now: Time) -> Sequence[Operation]:
    status = seen.job.status
    return status_patch(seen, Outcome(counts, rules, status.version, status.retry_count, controlled), now)


def _recorded(seen: JobSeen) -> Mapping[str, str]:
    return seen.job.status.controlled_resources or {}


def _initialised(plugins: Iterable[Plugin]) -> dict[str, str]:
    return {f"plugin-{plugin.name}": plugin.name for plugin in plugins if plugin.recorded}


def _plugin_objects(seen: JobSeen, plugins: Iterable[Plugin]) -> Iterable[Create | Patch]:
    for plugin in plugins:
        for wanted in plugin.objects(seen):
            kind, key = kind_of(wanted), key_of(wanted)
            stored = seen.resources.get((kind, key))
            if stored is None:
                yield Create(kind, wanted)
                continue
            change = plugin.align(stored, wanted)
            if change is not None:
                yield Patch(kind, key, change, uid=uid_of(stored))


def _forward(seen: JobSeen) -> Sequence[Patch]:
    """Jobs of a queue that extends to other clusters say so."""
    assert seen.queue is not None
    if not seen.queue.spec.extend_clusters or is_forwarded(seen.job):
        return ()
    note = {"metadata": {"annotations": {names.JOB_FORWARDING: FORWARDED}}}
    return (Patch(JOB, seen.key, note, uid=seen.job.metadata.uid),)
