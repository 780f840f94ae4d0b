"""A job's status: the merge patch that brings the stored status up to date.

Differences from volcano ed72c7c: pods that stay after a kill remain counted, and lastTransitionTime moves with the phase
only, so that a finished job's time to live does not start anew with every late event; state.message says why it waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.job.counts import Counts
from controller.job.phases import Rules, Tally, next_phase
from controller.job.seen import JobSeen, waiting_message
from controller.merge import merge_diff
from extender.api.duration import format_duration
from extender.api.job import PENDING, RESTARTING, RUNNING, Job
from extender.api.meta import JOB, Json, Time, format_time
from extender.api.operations import PatchStatus

WAITS = "PodGroupPending"  # state.reason of a job whose group waits, and the reason of the event about it
_MAY_WAIT = (PENDING, RUNNING, RESTARTING)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step made of the job; what is left out stays as it is."""

    counts: Counts
    rules: Rules
    version: int
    retry_count: int
    controlled: Mapping[str, str]
    killed: bool = False  # then runningDuration is written, and minAvailable stays that of the pods it was started with


def status_patch(seen: JobSeen, outcome: Outcome, now: Time) -> tuple[PatchStatus, ...]:
    """The one write of the status, or nothing where it is as it should be. A stale view of the job is refused as a Conflict."""
    stored: Json = seen.raw.get("status") or {}
    job, counts = seen.job, outcome.counts
    phase = next_phase(outcome.rules, Tally(job.spec, outcome.retry_count, counts)) or seen.phase
    state = _explained(dict(stored.get("state") or {}), phase, waiting_message(seen.group))
    conditions = list(stored.get("conditions") or ())
    if phase != seen.phase:
        state |= {"phase": phase, "lastTransitionTime": format_time(now)}
        conditions = [each for each in conditions if each.get("status") != phase]
        conditions.append({"status": phase, "lastTransitionTime": state["lastTransitionTime"]})
    wanted: Json = {
        "state": state,
        "minAvailable": job.spec.min_available,
        **counts.by_name(),
        "version": outcome.version,
        "retryCount": outcome.retry_count,
        "taskStatusCount": {task: {"phase": dict(phases)} for task, phases in counts.tasks.items()},
        "controlledResources": dict(outcome.controlled),
        "conditions": conditions,
    }
    if outcome.killed:
        wanted["minAvailable"] = job.status.min_available
        wanted["runningDuration"] = format_duration(int(now - job.metadata.created))
    diff = merge_diff(stored, {name: value for name, value in wanted.items() if value not in (0, {}, [])})
    if set(diff) <= {"runningDuration"}:
        return ()
    meta = job.metadata
    return (PatchStatus(JOB, seen.key, {"status": diff}, uid=meta.uid, resource_version=meta.resource_version),)


def _explained(state: Json, phase: str, waits: str) -> Json:
    """With why the job waits where it does. What went wrong stays with a job that ended of it."""
    if phase in _MAY_WAIT or state.get("reason") == WAITS:
        state = {name: value for name, value in state.items() if name not in ("reason", "message")}
    return state | {"reason": WAITS, "message": waits} if waits and phase in _MAY_WAIT else state


def saying(job: Job, reason: str, message: str) -> tuple[PatchStatus, ...]:
    """state.reason and state.message of a job that may wait; nothing where they say so already, or it is stopped or over."""
    state, meta = job.status.state, job.metadata
    if state.phase not in _MAY_WAIT or (state.reason, state.message) == (reason, message):
        return ()
    said = {"reason": reason or None, "message": message or None}
    return (PatchStatus(JOB, meta.key, {"status": {"state": said}}, uid=meta.uid),)


def first_status(seen: JobSeen, now: Time) -> tuple[PatchStatus, ...]:
    """The status of a job that nobody has looked at yet."""
    time = format_time(now)
    status = {
        "state": {"phase": "Pending", "lastTransitionTime": time},
        "minAvailable": seen.job.spec.min_available,
        "conditions": [{"status": "Pending", "lastTransitionTime": time}],
    }
    meta = seen.job.metadata
    return (PatchStatus(JOB, seen.key, {"status": status}, uid=meta.uid, resource_version=meta.resource_version),)
