"""Jobs, their pods and what a controller sees of them, with only what matters to a test."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from controller.job.pods import new_pod
from controller.job.seen import JobSeen, PodSeen, pod_seen
from extender.api.job import Job
from extender.api.meta import JOB, POD_GROUP, QUEUE, Json, Key
from extender.api.queue import Queue
from extender.api.views import view

UID = "job-uid"


def task(name: str = "w", replicas: int = 1, **fields: Any) -> Json:
    container = {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container]}}, **fields}


def job(*tasks: Json, phase: str = "", status: Json | None = None, annotations: Json | None = None,
        labels: Json | None = None, **spec: Any) -> Json:  # fmt: skip
    listed = list(tasks) or [task()]
    replicas = sum(each["replicas"] for each in listed)
    metadata = {"name": "j", "namespace": "default", "uid": UID, "resourceVersion": "7",
                "annotations": annotations or {}, "labels": labels or {}}  # fmt: skip
    known = {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "maxRetry": 3, "tasks": listed}
    state = {"state": {"phase": phase}} if phase else {}
    return {
        "apiVersion": JOB.api_version, "kind": JOB.name, "metadata": metadata,
        "spec": {**known, **spec}, "status": {**state, **(status or {})},
    }  # fmt: skip


def group(phase: str = "Inqueue", **spec: Any) -> Json:
    metadata = {"name": f"j-{UID}", "namespace": "default", "uid": "group-uid"}
    known = {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name, "metadata": metadata}
    return {**known, "spec": spec, "status": {"phase": phase}}


def pods_of(raw: Json, phases: dict[str, str], marked: Iterable[str] = (), ending: Iterable[str] = ()) -> dict[str, PodSeen]:
    """Pods of the job by name (without the job's), in the given phases."""
    seen = JobSeen(view(Job, raw), raw)
    found = {}
    for short, phase in phases.items():
        name, _, index = short.rpartition("-")
        spec = next(each for each in seen.job.spec.tasks if each.name == name)
        pod = new_pod(seen, spec, int(index), ())
        pod["metadata"]["uid"] = f"uid-{short}"
        pod["status"] = {"phase": phase}
        if short in marked:
            pod["metadata"]["annotations"]["volcano.sh/controller-out-of-sync"] = "true"
        if short in ending:
            pod["metadata"]["deletionTimestamp"] = "2025-01-06T00:00:00Z"
        looked = pod_seen(pod)
        assert looked is not None
        found[looked.name] = looked
    return found


def seen(raw: Json, phases: dict[str, str] | None = None, **more: Any) -> JobSeen:
    """A job in an open queue with pods in the given phases."""
    marked, ending = more.pop("marked", ()), more.pop("ending", ())
    queue = view(Queue, {"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "default"}, "spec": {}})
    known = {"pods": pods_of(raw, phases or {}, marked, ending), "queue": queue, **more}
    return JobSeen(view(Job, raw), raw, **known)


def key(name: str) -> Key:
    return Key("default", name)
