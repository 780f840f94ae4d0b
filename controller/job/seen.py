"""What the job controller sees of a job: frozen views that all of its pure functions read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.api import labels as names
from extender.api import pod as pods
from extender.api.integer import parse_int
from extender.api.job import Job, TaskSpec
from extender.api.meta import JOB, Json, Key, Kind, Time, annotations_of, controller_of, labels_of, parse_time
from extender.api.podgroup import PENDING, SCHEDULED, PodGroup, PodGroupCondition
from extender.api.queue import Queue
from extender.api.views import view

Resources = Mapping[tuple[Kind, Key], Json | None]
UNNAMED_TASK = "default"  # the task-spec of a task without a name


@dataclass(frozen=True, slots=True)
class PodSeen:
    """The few things about a pod of a job that decide anything. Equal ones need no look at the job."""

    job: Key
    job_uid: str
    name: str
    uid: str
    task: str
    version: int
    partition: str
    phase: str
    created: Time
    terminating: bool
    out_of_sync: bool
    ready: bool
    restarts: int
    exit_code: int
    ended: Time | None


@dataclass(slots=True)
class TaskTotals:
    """Over the pods of one task: those that have succeeded, and the container restarts of those that have not ended."""

    succeeded: int = 0
    restarts: int = 0

    def count(self, pod: PodSeen, sign: int) -> None:
        if pod.phase == pods.SUCCEEDED:
            self.succeeded += sign
        elif pod.phase in (pods.RUNNING, pods.PENDING):
            self.restarts += sign * pod.restarts


class JobPods:
    """All pods under the name of one job, with running totals, so that an event costs the same whatever their number."""

    def __init__(self) -> None:
        self.pods: dict[str, PodSeen] = {}
        self._totals: dict[str, TaskTotals] = {}

    def replace(self, name: str, new: PodSeen | None) -> PodSeen | None:
        """Put `new` in the place of what was known of the pod; what that was."""
        old = self.pods.pop(name, None)
        if old is not None:
            self.totals(old.task).count(old, -1)
        if new is not None:
            self.pods[name] = new
            self.totals(new.task).count(new, 1)
        return old

    def totals(self, task: str) -> TaskTotals:
        return self._totals.setdefault(task, TaskTotals())

    def of(self, uid: str) -> dict[str, PodSeen]:
        """Those of the job with this uid: a namesake before it may have left some."""
        return {name: pod for name, pod in self.pods.items() if pod.job_uid == uid}


@dataclass(frozen=True, slots=True, eq=False)
class JobSeen:
    """One job with all that belongs to it at one moment.

    `resources` holds the objects of the plugins that were looked up (None: not there), `claims` the names of the claims
    in its namespace that exist, `priorities` the values of priority classes."""

    job: Job
    raw: Json
    pods: Mapping[str, PodSeen] = field(default_factory=dict)
    queue: Queue | None = None
    group: Json | None = None
    claims: frozenset[str] = frozenset()
    resources: Resources = field(default_factory=dict)
    priorities: Mapping[str, int] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.job.metadata.key

    @property
    def phase(self) -> str:
        return self.job.status.state.phase

    @property
    def group_view(self) -> PodGroup | None:
        return view(PodGroup, self.group) if self.group is not None else None

    @property
    def admitted(self) -> bool:
        """The scheduler lets the job make pods."""
        group = self.group_view
        return group is not None and group.status.phase not in ("", PENDING)


def pod_seen(pod: Json) -> PodSeen | None:
    """The pod as one of a job, or None where it is none: its controller is no Job of ours, or it lacks our annotations."""
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != JOB.name or owner.get("apiVersion") != JOB.api_version:
        return None
    meta, notes, status = pod["metadata"], annotations_of(pod), pod.get("status") or {}
    version, job, task = (notes.get(name) for name in (names.JOB_VERSION, names.JOB_NAME, names.TASK_SPEC))
    number = parse_int(version, bits=32) if version is not None else None
    if job is None or task is None or number is None:
        return None
    containers = status.get("containerStatuses") or []
    terminated = (containers[0].get("state") or {}).get("terminated") if containers else None
    return PodSeen(
        job=Key(meta.get("namespace") or "", job),
        job_uid=str(owner.get("uid") or ""),
        name=meta["name"],
        uid=str(meta.get("uid") or ""),
        task=task,
        version=number,
        partition=labels_of(pod).get(names.PARTITION_ID, ""),
        phase=status.get("phase") or pods.PENDING,
        created=parse_time(meta.get("creationTimestamp")) or 0.0,
        terminating=bool(meta.get("deletionTimestamp")),
        out_of_sync=names.OUT_OF_SYNC in notes,
        ready=all(each.get("ready") for each in containers),
        restarts=sum(each.get("restartCount") or 0 for each in (*containers, *(status.get("initContainerStatuses") or ()))),
        exit_code=int((terminated or {}).get("exitCode") or 0),
        ended=parse_time((terminated or {}).get("finishedAt")),
    )


def waiting_message(group: Json | None) -> str:
    """Why the group waits: the message of its newest true condition, if that is another than Scheduled."""
    conditions = [each for each in view(PodGroup, group).status.conditions or () if each.status == "True"] if group else []
    newest = max(conditions, key=_transition, default=None)
    return newest.message or newest.reason if newest is not None and newest.type != SCHEDULED else ""


def _transition(condition: PodGroupCondition) -> str:
    return condition.last_transition_time or ""


def task_name(task: TaskSpec) -> str:
    return task.name or UNNAMED_TASK


def pod_name(job: Job, task: TaskSpec, index: int) -> str:
    """Source: volcano ed72c7c, job/helpers.MakePodName."""
    return f"{job.metadata.name}-{task.name}-{index}"


def group_name(job: Job) -> str:
    return f"{job.metadata.name}-{job.metadata.uid}"


def task_minimum(task: TaskSpec) -> int:
    return task.replicas if task.min_available is None else task.min_available
