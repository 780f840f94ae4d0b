"""The controller of job flows: jobs made from templates, one after the other.

Source: volcano ed72c7c, pkg/controllers/jobflow. Differences: a job that vanishes unfinished is made again at
once, one that had completed never; patches are applied; names too long for a label are kept in the annotation only;
jobs that are completing or terminating are listed as running."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controller.jobtemplate import marked_places
from controller.merge import merge_diff
from controller.reconciler import NOTHING, Decision, Lookup, NotYet, PlainController, Settings, Stage
from controller.store import Change, Index
from extender.api import job as words
from extender.api import labels as names
from extender.api.duration import seconds
from extender.api.errors import PumiceError
from extender.api.meta import (
    JOB,
    JOB_FLOW,
    JOB_TEMPLATE,
    Json,
    Key,
    Kind,
    Time,
    controller_of,
    format_time,
    key_of,
    owner_reference,
    parse_time,
    uid_of,
)
from extender.api.operations import Create, Delete, Emit, Operation, PatchStatus

PENDING, RUNNING, SUCCEED, FAILED = "Pending", "Running", "Succeed", "Failed"
LABEL_LENGTH = 63
_CRD_DEFAULTS = {"queue": "default", "maxRetry": 3}  # what a patch has without its author having written it

_LISTS = {
    words.PENDING: "pendingJobs",
    words.RUNNING: "runningJobs",
    words.COMPLETING: "runningJobs",
    words.TERMINATING: "runningJobs",
    words.FAILED: "failedJobs",
    words.COMPLETED: "completedJobs",
    words.TERMINATED: "terminatedJobs",
}
_OTHER_LIST = "unKnowJobs"  # the API's spelling


@dataclass(frozen=True, slots=True)
class FlowRequest:
    flow: Key


@dataclass(frozen=True, slots=True, eq=False)
class FlowSeen:
    """A flow, the templates it names, and its jobs by name."""

    flow: Json
    templates: Mapping[str, Json]
    jobs: Mapping[str, Json]

    @property
    def key(self) -> Key:
        return key_of(self.flow)

    @property
    def phase(self) -> str:
        return str(((self.flow.get("status") or {}).get("state") or {}).get("phase") or "")

    def phase_of(self, job: str) -> str:
        """That of the job, or, where it has gone, Completed if that was the last that was seen of it."""
        if job in self.jobs:
            return str(((self.jobs[job].get("status") or {}).get("state") or {}).get("phase") or "")
        listed = (self.flow.get("status") or {}).get("jobStatusList") or ()
        done = any(each["name"] == job and each.get("state") == words.COMPLETED for each in listed)
        return words.COMPLETED if done else ""

    def exists(self, job: str) -> bool:
        return job in self.jobs or self.phase_of(job) == words.COMPLETED


def reconcile(seen: FlowSeen, now: Time) -> Decision:
    """Raises NotYet where a template is missing."""
    if seen.phase not in ("", PENDING, RUNNING, SUCCEED):
        return NOTHING
    if seen.phase == SUCCEED and seen.flow["spec"].get("jobRetainPolicy") == "delete":
        gone = [Delete(JOB, key_of(job), uid=uid_of(job)) for job in seen.jobs.values()]
        return Decision((Stage(gone),))
    made = [Create(JOB, new_job(seen, flow)) for flow in _ready(seen)] if seen.phase != SUCCEED else []
    told = [Emit(JOB_FLOW, seen.key, "Normal", "Created", f"create a job named {each.object['metadata']['name']}",
                 uid_of(seen.flow)) for each in made]  # fmt: skip
    return Decision((Stage(made), Stage(told), Stage(_status(seen, now))))


def job_name(flow: Json, entry: Json) -> str:
    return f"{flow['metadata']['name']}-{entry['name']}"


def _ready(seen: FlowSeen) -> Iterable[Json]:
    """The entries whose job is to be made now: all they wait for has completed."""
    for entry in seen.flow["spec"].get("flows") or ():
        targets = (entry.get("dependsOn") or {}).get("targets") or ()
        waits = (seen.phase_of(f"{seen.key.name}-{target}") != words.COMPLETED for target in targets)
        if not seen.exists(job_name(seen.flow, entry)) and not any(waits):
            yield entry


def new_job(seen: FlowSeen, entry: Json) -> Json:
    template = seen.templates.get(entry["name"])
    if template is None:
        raise NotYet(f"there is no JobTemplate '{entry['name']}'; create it, and the flow goes on", "SyncJobFlow")
    marks = {
        names.CREATED_BY_JOB_TEMPLATE: f"{seen.key.namespace}.{entry['name']}",
        names.CREATED_BY_JOB_FLOW: f"{seen.key.namespace}.{seen.key.name}",
    }
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.name,
        "metadata": {
            "name": job_name(seen.flow, entry),
            "namespace": seen.key.namespace,
            "labels": {name: value for name, value in marks.items() if len(value) <= LABEL_LENGTH},
            "annotations": marks,
            "ownerReferences": [owner_reference(seen.flow)],
        },
        "spec": patched(copy.deepcopy(template["spec"]), (entry.get("patch") or {}).get("jobSpec") or {}),
    }


def patched(spec: Json, patch: Json) -> Json:
    """A template's spec with a patch over it; tasks are matched by name. Values the CRD fills into every patch are not the
    author's. minAvailable is held to the number of pods: flows that upstream accepts, ignoring the patch, still run."""
    asked = {name: value for name, value in patch.items() if _CRD_DEFAULTS.get(name) != value}
    result: Json = _merged(spec, asked)
    replicas = sum(task.get("replicas") or 0 for task in result.get("tasks") or ())
    if "minAvailable" in asked and result["minAvailable"] > replicas:
        result["minAvailable"] = spec.get("minAvailable", replicas)
    return result


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {**base, **{name: _merged(base.get(name), value) for name, value in over.items()}}
    if isinstance(base, list) and isinstance(over, list) and all(isinstance(each, dict) and "name" in each for each in over):
        by_name = {each["name"]: each for each in over}
        known = {each.get("name") for each in base}
        merged = [_merged(each, by_name[each["name"]]) if each.get("name") in by_name else each for each in base]
        return [*merged, *(each for each in over if each["name"] not in known)]
    return over


def _status(seen: FlowSeen, now: Time) -> Sequence[PatchStatus]:
    stored = seen.flow.get("status") or {}
    shown = [name for entry in seen.flow["spec"].get("flows") or () if seen.exists(name := job_name(seen.flow, entry))]
    shown += sorted(set(seen.jobs) - set(shown))
    lists: dict[str, list[str]] = {}
    for name in shown:
        lists.setdefault(_LISTS.get(seen.phase_of(name), _OTHER_LIST), []).append(name)
    wanted: Json = {
        **lists,
        "state": {"phase": _next_phase(seen, lists)},
        "jobStatusList": _job_statuses(seen, shown, stored.get("jobStatusList") or [], now),
        "conditions": {name: _condition(seen.jobs[name]) for name in shown if name in seen.jobs}
        | {name: old for name, old in (stored.get("conditions") or {}).items() if name in shown and name not in seen.jobs},
    }
    diff = merge_diff(stored, {name: value for name, value in wanted.items() if value not in ([], {})})
    return (PatchStatus(JOB_FLOW, seen.key, {"status": diff}, uid=uid_of(seen.flow)),) if diff else ()


def _next_phase(seen: FlowSeen, lists: Mapping[str, Sequence[str]]) -> str:
    """Source: volcano ed72c7c, jobflow/state/*.go."""
    broken = bool(lists.get("failedJobs") or lists.get("terminatedJobs"))
    if seen.phase in ("", PENDING):
        if (lists.get("runningJobs") or lists.get("completedJobs")) and not lists.get("failedJobs"):
            return RUNNING
        return FAILED if broken else PENDING
    if seen.phase == RUNNING:
        if len(lists.get("completedJobs", ())) == len(seen.flow["spec"].get("flows") or ()):
            return SUCCEED
        return FAILED if broken else RUNNING
    return seen.phase


def _job_statuses(seen: FlowSeen, shown: Iterable[str], stored: Sequence[Json], now: Time) -> list[Json]:
    former = {each["name"]: each for each in stored}
    return [_job_status(seen, name, former.get(name), now) for name in shown]


def _job_status(seen: FlowSeen, name: str, former: Json | None, now: Time) -> Json:
    """With a history of its phases: the last entry is closed when the next begins."""
    job = seen.jobs.get(name)
    if job is None:
        return dict(former or {"name": name, "state": seen.phase_of(name)})
    status = job.get("status") or {}
    state, created = seen.phase_of(name), job["metadata"].get("creationTimestamp")
    entry: Json = {"name": name, "state": state, "startTimestamp": created}
    if status.get("runningDuration") and created:
        entry["endTimestamp"] = format_time((parse_time(created) or 0.0) + seconds(status["runningDuration"]))
    if status.get("retryCount"):
        entry["restartCount"] = status["retryCount"]
    history = [dict(each) for each in (former or {}).get("runningHistories") or ()]
    if not history or history[-1].get("state") != state:
        stamp = format_time(now)
        if history:
            history[-1]["endTimestamp"] = stamp
        history.append({"state": state, "startTimestamp": stamp})
    return {**entry, "runningHistories": history}


def _condition(job: Json) -> Json:
    status = job.get("status") or {}
    known = {
        "phase": (status.get("state") or {}).get("phase"),
        "createTime": job["metadata"].get("creationTimestamp"),
        "runningDuration": status.get("runningDuration"),
        "taskStatusCount": status.get("taskStatusCount"),
    }
    return {name: value for name, value in known.items() if value}


class JobFlowController(PlainController):
    name = "jobflow-controller"
    kinds: Sequence[Kind] = (JOB_FLOW, JOB_TEMPLATE, JOB)
    indexes: Sequence[Index] = (
        Index("jobs by flow", JOB, lambda job: marked_places(job, names.CREATED_BY_JOB_FLOW)),
        Index("flows by namespace", JOB_FLOW, lambda flow: (key_of(flow).namespace,)),
    )

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        if change.kind == JOB_FLOW:
            if change.new is not None and _news(change.old, change.new):
                yield FlowRequest(change.key)
        elif change.kind == JOB_TEMPLATE:
            if change.old is None:
                yield from (FlowRequest(key_of(flow)) for flow in self._store.by("flows by namespace", change.key.namespace))
        else:
            owner = controller_of(change.object)
            if owner is not None and (owner.get("apiVersion"), owner.get("kind")) == (JOB_FLOW.api_version, JOB_FLOW.name):
                yield FlowRequest(Key(change.key.namespace, owner["name"]))

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        assert isinstance(request, FlowRequest)
        flow = self._store.get(JOB_FLOW, request.flow)
        if flow is None or flow["metadata"].get("deletionTimestamp"):
            return NOTHING
        space, name = request.flow
        entries = (entry["name"] for entry in flow["spec"].get("flows") or ())
        templates = {each: self._store.get(JOB_TEMPLATE, Key(space, each)) for each in entries}
        jobs = {key_of(job).name: job for job in self._store.by("jobs by flow", (space, name))}
        return reconcile(FlowSeen(flow, {each: found for each, found in templates.items() if found is not None}, jobs), now)

    def failed(self, request: Hashable, operation: Operation | None, error: PumiceError) -> Iterable[Operation]:
        if isinstance(error, NotYet):
            yield self._told(request, str(error))

    def gave_up(self, request: Hashable, now: Time) -> Decision:
        return Decision.telling([self._told(request, "the flow could not be brought up to date")])

    def _told(self, request: Hashable, message: str) -> Emit:
        assert isinstance(request, FlowRequest)
        flow = self._store.get(JOB_FLOW, request.flow)
        return Emit(JOB_FLOW, request.flow, "Warning", "SyncJobFlow", message, uid=uid_of(flow or {}))


def _news(old: Json | None, new: Json) -> bool:
    return old is None or old["spec"] != new["spec"] or old.get("status", {}).get("state") != new.get("status", {}).get("state")
