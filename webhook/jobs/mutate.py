"""Defaults of a Job: what its owner may leave out (POST /jobs/mutate, CREATE).

Only what changes is patched; upstream writes the whole task list back and loses fields it does not know."""

from __future__ import annotations

from extender.api.meta import Json
from extender.cluster.port import AdmissionRequest
from webhook.settings import Settings
from webhook.verdict import Allow, Verdict, json_patch
from webhook.view import ClusterView

_MAX_RETRY = 3
_NEED_SVC = ("tensorflow", "mpi", "pytorch", "ray")  # their hosts find each other through the svc plugin's names


def mutate(request: AdmissionRequest, _cluster: ClusterView, settings: Settings) -> Verdict:
    job = request.object or {}
    spec = dict(job.get("spec", {}))
    spec["queue"] = spec.get("queue") or settings.default_queue
    spec["schedulerName"] = spec.get("schedulerName") or settings.scheduler_name
    spec["maxRetry"] = spec.get("maxRetry") or _MAX_RETRY
    if "tasks" in spec:
        spec["tasks"] = [_with_defaults(task, index) for index, task in enumerate(spec["tasks"])]
    if not spec.get("minAvailable") and spec.get("tasks"):
        spec["minAvailable"] = sum(task["minAvailable"] for task in spec["tasks"])
    if "plugins" in spec:
        spec["plugins"] = _with_needed(spec["plugins"])
    return Allow(patch=json_patch(job, {**job, "spec": spec}))


def _with_defaults(given: Json, index: int) -> Json:
    task = dict(given)
    task["name"] = task.get("name") or f"default{index}"
    task["maxRetry"] = task.get("maxRetry") or _MAX_RETRY
    if "minAvailable" not in task:
        partitions = task.get("partitionPolicy", {})
        least = partitions.get("minPartitions", 0) * partitions.get("partitionSize", 0)
        task["minAvailable"] = least if partitions.get("minPartitions", 0) > 0 else task.get("replicas", 0)
    pod = task.get("template", {}).get("spec", {})
    if pod.get("hostNetwork") and not pod.get("dnsPolicy"):
        task["template"] = {**task["template"], "spec": {**pod, "dnsPolicy": "ClusterFirstWithHostNet"}}
    return task


def _with_needed(given: Json) -> Json:
    plugins = dict(given)
    if any(name in plugins for name in _NEED_SVC):
        plugins.setdefault("svc", [])
    if "mpi" in plugins:
        plugins.setdefault("ssh", [])
    return plugins
