"""What a kubelet reports of a pod: phase, conditions, container statuses, as patches of `status`.

Source: kubernetes v1.36.1 pkg/kubelet/status/generate.go and pkg/kubelet/kubelet_pods.go."""

from __future__ import annotations

from extender.api.duration import format_duration
from extender.api.meta import Json, key_of
from extender.api.pod import DISRUPTION_TARGET, ENDED, FAILED
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


def crashed(pod: Json, now: str, exit_code: int, wait: float) -> Json:
    """Every container has terminated and waits for its next start."""
    last = {"terminated": _terminated(pod, exit_code, now)}
    status = _with_ready(pod["status"], False, "ContainersNotReady", now)
    statuses = []
    for each in pod["spec"].get("containers") or ():
        message = f"back-off {format_duration(wait)} restarting failed container={each['name']} pod={key_of(pod).name}"
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        statuses.append({**_container(pod, each, waiting, ready=False), "lastState": last})
    return {"conditions": status["conditions"], "containerStatuses": statuses}


def restarted(pod: Json, now: str, exit_code: int, *, ready: bool) -> Json:
    """Every container has terminated, now or before it waited, and runs again."""
    ended = {"terminated": _terminated(pod, exit_code, now)}
    status = _with_ready(pod["status"], ready, "ContainersNotReady", now)
    statuses = []
    for each in pod["spec"].get("containers") or ():
        before = _before(pod, each)
        last = before["lastState"] if "waiting" in before.get("state", ()) else ended
        again = _container(pod, each, {"running": {"startedAt": now}}, ready=ready)
        statuses.append({**again, "lastState": last, "restartCount": again["restartCount"] + 1})
    return {"conditions": status["conditions"], "containerStatuses": statuses}


def orphaned(pod: Json, now: str) -> Json:
    """The pod garbage collector's words for a pod whose node is gone, unless it has ended before."""
    condition = {
        "type": DISRUPTION_TARGET,
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
    }
    status = with_condition(pod["status"], condition, now)
    phase = pod["status"].get("phase")
    return {"phase": phase if phase in ENDED else FAILED, "conditions": status["conditions"]}


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


def _before(pod: Json, container: Json) -> Json:
    """What was reported of the container last."""
    return next((s for s in pod["status"].get("containerStatuses") or () if s.get("name") == container["name"]), {})


def _container(pod: Json, container: Json, state: Json, *, ready: bool) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": _before(pod, container).get("restartCount", 0),
        "state": state,
    }
