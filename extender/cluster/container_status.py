"""What a kubelet reports of a pod: phase, conditions, container statuses, as patches of `status`.

Source: kubernetes v1.36.1 pkg/kubelet/status/generate.go and pkg/kubelet/kubelet_pods.go."""

from __future__ import annotations

from extender.api.meta import Json
from extender.cluster.pod_rules import with_condition


def running(pod: Json, now: str, *, ready: bool, address: int) -> Json:
    """Every container runs; init containers have ended."""
    status = _with_ready(pod["status"], ready, "ContainersNotReady", now)
    status = with_condition(status, {"type": "Initialized", "status": "True"}, now)
    state = {"running": {"startedAt": now}}
    return {
        "phase": "Running",
        "conditions": status["conditions"],
        "startTime": pod["status"].get("startTime") or now,
        "podIP": f"10.{address // 65536 % 256}.{address // 256 % 256}.{address % 256}",
        "containerStatuses": [_container(pod, each, state, ready=ready) for each in pod["spec"].get("containers") or ()],
    }


def ended(pod: Json, now: str, exit_code: int) -> Json:
    """Every container has terminated for good."""
    status = _with_ready(pod["status"], False, "PodCompleted" if exit_code == 0 else "PodFailed", now)
    state = {"terminated": _terminated(pod, exit_code, now)}
    return {
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "conditions": status["conditions"],
        "containerStatuses": [_container(pod, each, state, ready=False) for each in pod["spec"].get("containers") or ()],
    }


def restarted(pod: Json, now: str, exit_code: int) -> Json:
    """Every container has terminated and runs again."""
    last = {"terminated": _terminated(pod, exit_code, now)}
    statuses = []
    for each in pod["spec"].get("containers") or ():
        status = _container(pod, each, {"running": {"startedAt": now}}, ready=True)
        statuses.append({**status, "lastState": last, "restartCount": status["restartCount"] + 1})
    return {"containerStatuses": statuses}


def orphaned(pod: Json, now: str) -> Json:
    """The pod garbage collector's words for a pod whose node is gone, unless it has ended before."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                 "message": "PodGC: node no longer exists"}
    status = with_condition(pod["status"], condition, now)
    phase = pod["status"].get("phase")
    return {"phase": phase if phase in ("Succeeded", "Failed") else "Failed", "conditions": status["conditions"]}


def _with_ready(status: Json, ready: bool, reason: str, now: str) -> Json:
    word = "True" if ready else "False"
    for name in ("Ready", "ContainersReady"):
        condition = {"type": name, "status": word} if ready else {"type": name, "status": word, "reason": reason}
        status = with_condition(status, condition, now)
    return status


def _terminated(pod: Json, exit_code: int, now: str) -> Json:
    started = pod["status"].get("startTime") or now
    reason = "Completed" if exit_code == 0 else "Error"
    return {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": now}


def _container(pod: Json, container: Json, state: Json, *, ready: bool) -> Json:
    before: Json = next((s for s in pod["status"].get("containerStatuses") or () if s.get("name") == container["name"]), {})
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": before.get("restartCount", 0),
        "state": state,
    }
