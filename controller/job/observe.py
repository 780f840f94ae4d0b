"""From what changed to what is requested: pods, groups and jobs.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_handler.go. Differences: an event that no policy asks for is
only a request to synchronise, so that a thousand of them are one; a pod first seen when it has already ended still counts
as an incident, so a restart of the controller misses none; events of a group belong to the incarnation they are seen in."""

from __future__ import annotations

from collections.abc import Mapping

from controller.job import policies
from controller.job.requests import Request
from controller.job.seen import PodSeen, TaskTotals, task_name
from extender.api import job as words
from extender.api import pod as phases
from extender.api.job import OUT_OF_SYNC_EVENT, Job, TaskSpec
from extender.api.meta import Json, Key, uid_of
from extender.api.podgroup import UNKNOWN

_ENTERED = {phases.FAILED: words.POD_FAILED, phases.RUNNING: words.POD_RUNNING, phases.PENDING: words.POD_PENDING}
DEFAULT_TASK_RETRY = 3
UNLIMITED = -1


def pod_event(old: PodSeen | None, new: PodSeen | None, task: TaskSpec | None, totals: TaskTotals) -> str:
    """What happened to a pod, in the words of policies."""
    pod = new or old
    assert pod is not None
    if pod.out_of_sync:
        return OUT_OF_SYNC_EVENT
    if new is None:
        return words.POD_EVICTED
    if new.terminating:
        return OUT_OF_SYNC_EVENT
    entered = old is None or old.phase != new.phase
    if new.phase == phases.SUCCEEDED:
        return words.TASK_COMPLETED if entered and _all_succeeded(task, totals) else OUT_OF_SYNC_EVENT
    if entered and new.phase in _ENTERED:
        return _ENTERED[new.phase]
    if new.phase in (phases.RUNNING, phases.PENDING) and budget_spent(task, totals):
        return words.TASK_FAILED
    return OUT_OF_SYNC_EVENT


def budget_spent(task: TaskSpec | None, totals: TaskTotals) -> bool:
    """The containers of the task's pods have restarted as often as the task may."""
    if task is None or task.replicas == 0 or task.max_retry == UNLIMITED:
        return False
    return totals.restarts >= (task.max_retry or DEFAULT_TASK_RETRY)


def _all_succeeded(task: TaskSpec | None, totals: TaskTotals) -> bool:
    return task is not None and totals.succeeded >= task.replicas


def pod_request(pod: PodSeen, event: str, *, first_seen: bool) -> Request:
    """All that a policy may want to know. For a pod seen for the first time the event happened before now."""
    since = 0.0
    if first_seen:
        since = (pod.ended or 0.0) if event == words.POD_FAILED else pod.created
    return Request(
        pod.job, event, task=pod.task, pod=pod.name, pod_uid=pod.uid, partition=pod.partition,
        exit_code=pod.exit_code if event == words.POD_FAILED else 0, version=pod.version, job_uid=pod.job_uid, since=since,
    )  # fmt: skip


def simplest(job: Job | None, request: Request) -> Request:
    """The plain request to synchronise where no policy answers to the full one (a job not seen yet may have some)."""
    if job is None or policies.choose(job, request) != policies.SYNC:
        return request
    return Request(request.job)


def task_of(job: Job | None, name: str) -> TaskSpec | None:
    return next((task for task in job.spec.tasks if task_name(task) == name), None) if job is not None else None


def job_needs_look(old: Json | None, new: Json) -> bool:
    """Its spec or its phase changed (our own counts are no news)."""
    return old is None or old.get("spec") != new.get("spec") or phase_of(old) != phase_of(new)


def phase_of(job: Mapping[str, Json]) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def group_request(old: Json | None, new: Json | None, job: Job | None, key: Key) -> Request | None:
    """A group that came, changed its phase or went."""
    if new is None:
        return Request(key)
    phase = (new.get("status") or {}).get("phase")
    if old is not None and (old.get("status") or {}).get("phase") == phase:
        return None
    if phase != UNKNOWN or job is None:
        return Request(key)
    return Request(key, words.GROUP_UNKNOWN, version=job.status.version, group_uid=uid_of(new))


def owner_name(group: Json) -> str:
    """The job of a group: its owner of kind Job, else the group's own name."""
    for owner in group["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "Job" and str(owner.get("apiVersion", "")).startswith("batch.volcano.sh/"):
            return str(owner["name"])
    return str(group["metadata"]["name"])
