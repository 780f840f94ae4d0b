"""batch Job: pods until enough have succeeded or too many failed. Source: kubernetes v1.36.1 pkg/controller/job
(job_controller.go). Retries are not delayed, and what is counted are the pods that are still there."""

from __future__ import annotations

from collections.abc import Iterable

from extender.api.meta import BATCH_JOB, POD, Json, Time, annotations_of, format_time
from extender.api.operations import Create, Operation
from extender.cluster.pod_rules import with_condition
from extender.cluster.workloads import pods as p

INDEX = "batch.kubernetes.io/job-completion-index"


def batch_job(job: Json, pods: Iterable[Json], now: Time) -> list[Operation]:
    if finished(job):
        return []
    pods = list(pods)
    spec = job["spec"]
    active = p.active(pods)
    failed = [pod for pod in pods if p.phase(pod) == "Failed"]
    succeeded = _succeeded(job, pods)
    verdict = _verdict(job, len(failed), succeeded, active)
    operations: list[Operation] = []
    if verdict or spec.get("suspend") or p.going(job):
        operations += [p.delete_pod(pod) for pod in active]
    else:
        operations += _missing(job, pods, active, succeeded)
        operations += [p.delete_pod(pod) for pod in p.surplus_first(active)[: max(len(active) - _parallelism(job), 0)]]
    left = 0 if verdict or spec.get("suspend") else len(active)
    return operations + p.status_patch(BATCH_JOB, job, _status(job, active, left, len(failed), succeeded, verdict, now))


def finished(job: Json) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] in ("Complete", "Failed") and each["status"] == "True" for each in conditions)


def _parallelism(job: Json) -> int:
    return int(job["spec"].get("parallelism", 1))


def _indexed(job: Json) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def _succeeded(job: Json, pods: list[Json]) -> int:
    done = [pod for pod in pods if p.phase(pod) == "Succeeded"]
    return len({annotations_of(pod).get(INDEX) for pod in done}) if _indexed(job) else len(done)


def _verdict(job: Json, failed: int, succeeded: int, active: list[Json]) -> str:
    """Complete, Failed or nothing yet. Without `completions` one success is enough, once no pod runs any more."""
    completions = job["spec"].get("completions")
    if failed > job["spec"].get("backoffLimit", 6):
        return "Failed"
    if completions is None:
        return "Complete" if succeeded and not active else ""
    return "Complete" if succeeded >= completions else ""


def _missing(job: Json, pods: list[Json], active: list[Json], succeeded: int) -> list[Operation]:
    completions = job["spec"].get("completions")
    if completions is None:
        wanted = len(active) if succeeded else _parallelism(job)
    else:
        wanted = min(_parallelism(job), completions - succeeded)
    count = wanted - len(active)
    if not _indexed(job):
        return [Create(POD, p.pod_from(job["spec"]["template"], job)) for _ in range(count)]
    taken = {annotations_of(pod).get(INDEX) for pod in pods if p.phase(pod) != "Failed"}
    free = [index for index in range(completions or 0) if str(index) not in taken]
    return [Create(POD, _numbered(job, index)) for index in free[: max(count, 0)]]


def _numbered(job: Json, index: int) -> Json:
    pod = p.pod_from(job["spec"]["template"], job, labels={INDEX: str(index)})
    pod["metadata"]["generateName"] = f"{job['metadata']['name']}-{index}-"
    pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), INDEX: str(index)}
    number = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
    pod["spec"]["containers"] = [{**each, "env": [*(each.get("env") or []), number]} for each in pod["spec"]["containers"]]
    return pod


def _status(job: Json, active: list[Json], left: int, failed: int, succeeded: int, verdict: str, now: Time) -> Json:
    before = job.get("status") or {}
    status: Json = {
        "active": left,
        "ready": len(p.ready(active)) if left else 0,
        "failed": failed,
        "succeeded": succeeded,
    }
    if not before.get("startTime") and not job["spec"].get("suspend"):
        status["startTime"] = format_time(now)
    if verdict:
        condition = {"type": verdict, "status": "True"}
        if verdict == "Failed":
            condition |= {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
        else:
            status["completionTime"] = format_time(now)
        status["conditions"] = with_condition(before, condition, format_time(now))["conditions"]
    return status
