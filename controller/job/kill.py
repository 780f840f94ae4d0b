"""Killing a job or a part of it: pods are marked as ours to delete, then deleted, then the status says so.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_actions.go, killPods. Differences: pods that stay are still
counted; what the plugins made for the whole job outlives a restart of a part; a kill that finds nothing to do writes
nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.job.counts import Counts, count
from controller.job.phases import Step
from controller.job.plugins.base import Plugin
from controller.job.requests import Request
from controller.job.seen import JobSeen, PodSeen
from controller.job.status import Outcome, status_patch
from controller.reconciler import NOTHING, Decision, Stage
from extender.api import labels as names
from extender.api import pod as phases
from extender.api.job import RESTART_PARTITION, RESTART_POD, RESTART_TASK
from extender.api.meta import POD, POD_GROUP, Key, Time, key_of, uid_of
from extender.api.operations import Delete, Patch

RETAINED = (phases.SUCCEEDED, phases.FAILED)
MARK = {"metadata": {"annotations": {names.OUT_OF_SYNC: "true"}}}


def kill_job(seen: JobSeen, step: Step, plugins: Iterable[Plugin], now: Time) -> Decision:
    """All pods, the plugins' objects and the group. On the last retry pods that have ended stay, whatever the step says:
    their logs are the only account of what went wrong. The group goes last: once the status says what is wanted, nobody
    makes the pods anew, and the kills that follow take care of a group that could not be deleted."""
    job = seen.job
    soft = step.soft or job.status.retry_count >= job.spec.max_retry - 1
    victims = [pod for pod in seen.pods.values() if not pod.terminating and not (soft and pod.phase in RETAINED)]
    objects, group = list(_plugin_objects(seen, plugins)), list(_group(seen))
    worked = bool(victims or objects or group or step.retry)
    controlled = job.status.controlled_resources or {}
    outcome = Outcome(
        counts=_counts_after(seen, victims),
        rules=step.rules,
        version=job.status.version + worked,
        retry_count=job.status.retry_count + step.retry,
        controlled={name: value for name, value in controlled.items() if not name.startswith("plugin-")},
        killed=True,
    )
    return Decision((*delete_pods(seen, victims), Stage(objects), Stage(status_patch(seen, outcome, now)), Stage(group)))


def kill_part(seen: JobSeen, step: Step, request: Request, action: str, now: Time) -> Decision:
    """The task, the pod or the partition that the request is about."""
    target = targets(seen, request, action)
    if target is None:
        return NOTHING
    victims = [pod for pod in target if not pod.terminating]
    status = seen.job.status
    outcome = Outcome(
        counts=_counts_after(seen, victims),
        rules=step.rules,
        version=status.version,
        retry_count=status.retry_count + step.retry,
        controlled=status.controlled_resources or {},
        killed=True,
    )
    return Decision((*delete_pods(seen, victims), Stage(status_patch(seen, outcome, now))))


def targets(seen: JobSeen, request: Request, action: str) -> list[PodSeen] | None:
    """None where the action cannot be about this request: there is no such partition."""
    of_task = [pod for pod in seen.pods.values() if pod.task == request.task]
    if action == RESTART_PARTITION:
        return [pod for pod in of_task if pod.partition == request.partition] if request.partition else None
    if action == RESTART_POD:
        return [pod for pod in of_task if pod.name == request.pod]
    assert action == RESTART_TASK
    return of_task


def delete_pods(seen: JobSeen, victims: Sequence[PodSeen]) -> tuple[Stage, ...]:
    """Marked first: the deletion of a marked pod is no incident. A pod that cannot be marked is left alone."""
    if not victims:
        return ()
    keys = {pod.name: Key(seen.key.namespace, pod.name) for pod in victims}
    mark = [Patch(POD, keys[pod.name], MARK, uid=pod.uid) for pod in victims if not pod.out_of_sync]
    delete = [Delete(POD, keys[pod.name], uid=pod.uid) for pod in victims]
    return Stage(mark), Stage(delete, regardless=True)


def _counts_after(seen: JobSeen, victims: Sequence[PodSeen]) -> Counts:
    gone = {pod.name for pod in victims}
    staying = [pod for pod in seen.pods.values() if not pod.terminating and pod.name not in gone]
    return count(staying, terminating=len(seen.pods) - len(staying))


def _plugin_objects(seen: JobSeen, plugins: Iterable[Plugin]) -> Iterable[Delete]:
    """What initialised plugins have made."""
    controlled = seen.job.status.controlled_resources or {}
    for plugin in plugins:
        if f"plugin-{plugin.name}" in controlled:
            yield from (Delete(kind, key) for kind, key in plugin.belongings(seen.key))


def _group(seen: JobSeen) -> Iterable[Delete]:
    if seen.group is not None:
        yield Delete(POD_GROUP, key_of(seen.group), uid=uid_of(seen.group))
