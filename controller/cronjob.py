"""The controller of cron jobs: makes a job at each start of a schedule and keeps the history short.

Of the starts that it missed, being down or suspended, only the last is made up for, unless spec.startingDeadlineSeconds has
passed.

Source: volcano ed72c7c, pkg/controllers/cronjob. Differences: an unfinished job of ours is always listed as active, so a lost
status write heals; an aborted job does not hold up the schedule; terminated jobs count as failed in the history."""

from __future__ import annotations

import copy
import datetime as dt
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from controller import schedule
from controller.merge import merge_diff
from controller.reconciler import NOTHING, Decision, Lookup, PlainController, Settings, Stage
from controller.schedule import Schedule
from controller.store import Change, Index
from extender.api import labels as names
from extender.api.errors import InvalidObject, PumiceError
from extender.api.job import ABORTED, COMPLETED, FAILED, FINISHED, TERMINATED
from extender.api.meta import (
    CRON_JOB,
    JOB,
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

MISSED = 100  # more starts than this missed at once are worth a warning
AFTERWARDS = 0.1  # seconds after a start at which it is looked for
_HISTORY = {
    "successfulJobsHistoryLimit": ((COMPLETED,), 3),
    "failedJobsHistoryLimit": ((FAILED, TERMINATED), 1),
}


@dataclass(frozen=True, slots=True)
class CronRequest:
    cron: Key


@dataclass(frozen=True, slots=True, eq=False)
class CronSeen:
    """A cron job, the jobs it controls, and the namesake of the job to be made, whoever's it is."""

    cron: Json
    jobs: Sequence[Json]
    everything: Lookup

    @property
    def key(self) -> Key:
        return key_of(self.cron)

    def tell(self, level: str, reason: str, message: str) -> Emit:
        return Emit(CRON_JOB, self.key, level, reason, message, uid=uid_of(self.cron))


def reconcile(seen: CronSeen, now: Time) -> Decision:
    """Bring the history and the list of active jobs up to date, then see whether a start is due."""
    spec, status = seen.cron["spec"], dict(seen.cron.get("status") or {})
    told = [seen.tell("Normal", "SawCompletedJob", f"Saw completed job {_name(job)}, status {_phase(job)}")
            for job in _just_finished(seen, status)]  # fmt: skip
    told += [seen.tell("Warning", "StaleReference", f"Active job {each.get('name')} does not exist any more")
             for each in _stale(seen, status)]  # fmt: skip
    surplus = [job for limit in _HISTORY for job in _surplus(seen, limit)]
    trimmed = [Delete(JOB, key_of(job), uid=uid_of(job)) for job in surplus]
    told += [seen.tell("Normal", "SuccessfulDelete", f"Deleted job {_name(job)}") for job in surplus]
    before = [Stage(trimmed)]
    if spec.get("suspend"):
        return _done(seen, before, told, status, now)
    try:
        plan = _plan(seen, now)
    except InvalidObject as error:
        reason = "InvalidTimeZone" if "timeZone" in error.path else "UnParseableCronJobSchedule"
        return _done(seen, before, [*told, seen.tell("Warning", reason, str(error))], status, now)
    told += plan.told
    if plan.start is not None:
        before += plan.stages
        status["lastScheduleTime"] = format_time(plan.start)
    return _done(seen, before, told, status, now, again=plan.again)


@dataclass(frozen=True, slots=True)
class _Plan:
    """`start` is the start that is dealt with by `stages` (None: none is), `again` when to look next."""

    start: Time | None
    stages: Sequence[Stage]
    told: Sequence[Emit]
    again: Time | None


def _plan(seen: CronSeen, now: Time) -> _Plan:
    spec = seen.cron["spec"]
    times = schedule_of(spec)
    told = []
    if "TZ" in spec["schedule"]:
        told.append(seen.tell("Warning", "UnsupportedSchedule", "the zone belongs in spec.timeZone, not in the schedule"))
    base = _base(seen, now)
    first = times.after(base)
    following = times.after(now)
    again = following + AFTERWARDS if following is not None else None
    if first is None or following is None:
        never = f"the schedule '{spec['schedule']}' never comes"
        return _Plan(None, (), [*told, seen.tell("Warning", "InvalidSchedule", never)], None)
    start = times.latest(base, now) if first <= now else None
    last = parse_time((seen.cron.get("status") or {}).get("lastScheduleTime"))
    if start is None or start == last:
        return _Plan(None, (), told, again)
    second = times.after(first)
    if second is not None and (start - first) / (second - first) > MISSED:
        told.append(seen.tell("Warning", "TooManyMissedTimes", "too many missed start times; check the clock and the deadline"))
    stages, more = _start(seen, start)
    return _Plan(start if stages is not None else None, stages or (), [*told, *more], again)


def _start(seen: CronSeen, start: Time) -> tuple[Sequence[Stage] | None, list[Emit]]:
    """The stages that deal with a start, or None where it is left for later."""
    policy = seen.cron["spec"].get("concurrencyPolicy") or "Allow"
    active = _active(seen)
    key = Key(seen.key.namespace, f"{seen.key.name}-{int(start) // 60}")
    if any(_name(job) == key.name for job in seen.jobs):
        return (), []
    if policy == "Forbid" and any(_phase(job) != ABORTED for job in active):
        return None, [seen.tell("Warning", "ForbidConcurrent", "Not starting a job: the former one is still active")]
    if seen.everything.store.get(JOB, key) is not None:
        return None, [seen.tell("Warning", "ForeignJob", f"There is a job {key.name} that is not ours")]
    stages, told = [], []
    if policy == "Replace" and active:
        told.append(seen.tell("Warning", "ReplaceConcurrent", "Replacing the job that is still active"))
        told += [seen.tell("Normal", "SuccessfulDelete", f"Deleted job {_name(job)}") for job in active]
        stages.append(Stage([Delete(JOB, key_of(job), uid=uid_of(job)) for job in active]))
    created = seen.tell("Normal", "SuccessfulCreate", f"Created job {key.name}")
    return [*stages, Stage([Create(JOB, new_job(seen.cron, key, start))]), Stage([created])], told


def new_job(cron: Json, key: Key, start: Time) -> Json:
    """The job of one start. Only labels and annotations of the template's metadata are taken."""
    template = copy.deepcopy(cron["spec"]["jobTemplate"])
    given = template.get("metadata") or {}
    zone = schedule.time_zone(cron["spec"].get("timeZone") or "")
    stamp = dt.datetime.fromtimestamp(start, zone).isoformat().replace("+00:00", "Z")
    metadata: Json = {
        "name": key.name,
        "namespace": key.namespace,
        "annotations": {**(given.get("annotations") or {}), names.CRON_SCHEDULED_TIMESTAMP: stamp},
        "ownerReferences": [owner_reference(cron)],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"apiVersion": JOB.api_version, "kind": JOB.name, "metadata": metadata, "spec": template["spec"]}


def schedule_of(spec: Json) -> Schedule:
    """Raises InvalidObject."""
    return schedule.parse(spec["schedule"], schedule.time_zone(spec.get("timeZone") or ""))


def _base(seen: CronSeen, now: Time) -> Time:
    """Starts are looked for after this time."""
    last = parse_time((seen.cron.get("status") or {}).get("lastScheduleTime"))
    base = last if last is not None else parse_time(seen.cron["metadata"].get("creationTimestamp")) or now
    deadline = seen.cron["spec"].get("startingDeadlineSeconds")
    return max(base, now - deadline) if deadline is not None else base


def _done(seen: CronSeen, before: Sequence[Stage], told: Sequence[Emit], status: Json, now: Time,
          again: Time | None = None) -> Decision:  # fmt: skip
    """The status: who is active, and when a job last succeeded."""
    deleted = {each.key for stage in before for each in stage.operations if isinstance(each, Delete)}
    status["active"] = [_reference(job) for job in _active(seen) if key_of(job) not in deleted]
    successes = [_finished_at(job) for job in seen.jobs if _phase(job) == COMPLETED]
    if any(successes):
        status["lastSuccessfulTime"] = max([*successes, str(status.get("lastSuccessfulTime") or "")])
    diff = merge_diff(seen.cron.get("status") or {}, {name: value for name, value in status.items() if value != []})
    write = [PatchStatus(CRON_JOB, seen.key, {"status": diff}, uid=uid_of(seen.cron))] if diff else []
    later = ((CronRequest(seen.key), max(again, now)),) if again is not None else ()
    return Decision([*before, Stage(write), Stage(list(told))], later=later)


def _just_finished(seen: CronSeen, status: Json) -> list[Json]:
    listed = {each.get("uid") for each in status.get("active") or ()}
    return [job for job in seen.jobs if uid_of(job) in listed and _phase(job) in FINISHED]


def _stale(seen: CronSeen, status: Json) -> list[Json]:
    there = {uid_of(job) for job in seen.jobs}
    return [each for each in status.get("active") or () if each.get("uid") not in there]


def _surplus(seen: CronSeen, limit: str) -> list[Json]:
    phases, default = _HISTORY[limit]
    kept = seen.cron["spec"].get(limit)
    jobs = sorted((job for job in seen.jobs if _phase(job) in phases),
                  key=lambda job: (job["metadata"].get("creationTimestamp") or "", _name(job)))  # fmt: skip
    return jobs[: max(len(jobs) - (default if kept is None else kept), 0)]


def _active(seen: CronSeen) -> list[Json]:
    jobs = (job for job in seen.jobs if _phase(job) not in FINISHED and not job["metadata"].get("deletionTimestamp"))
    return sorted(jobs, key=lambda job: (job["metadata"].get("creationTimestamp") or "", _name(job)))


def _reference(job: Json) -> Json:
    key = key_of(job)
    return {"apiVersion": JOB.api_version, "kind": JOB.name, "name": key.name, "namespace": key.namespace, "uid": uid_of(job)}


def _name(job: Json) -> str:
    return str(job["metadata"]["name"])


def _phase(job: Json) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase") or "")


def _finished_at(job: Json) -> str:
    return str(job["status"]["state"].get("lastTransitionTime") or "")


class CronJobController(PlainController):
    name = "cronjob-controller"
    kinds: Sequence[Kind] = (CRON_JOB, JOB)
    indexes: Sequence[Index] = (Index("jobs by cron job", JOB, lambda job: _owner_uid(job)),)

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._lookup = lookup

    def observe(self, change: Change, now: Time) -> Iterable[Hashable]:
        if change.kind == CRON_JOB:
            if change.new is not None and (change.old is None or change.old["spec"] != change.new["spec"]):
                yield CronRequest(change.key)
            return
        owner = controller_of(change.object)
        ours = owner is not None and (owner.get("apiVersion"), owner.get("kind")) == (CRON_JOB.api_version, CRON_JOB.name)
        moved = change.old is None or change.new is None or _phase(change.old) != _phase(change.new)
        if owner is not None and ours and moved:
            yield CronRequest(Key(change.key.namespace, owner["name"]))

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        assert isinstance(request, CronRequest)
        cron = self._lookup.store.get(CRON_JOB, request.cron)
        if cron is None or cron["metadata"].get("deletionTimestamp"):
            return NOTHING
        jobs = list(self._lookup.store.by("jobs by cron job", uid_of(cron)))
        return reconcile(CronSeen(cron, jobs, self._lookup), now)

    def failed(self, request: Hashable, operation: Operation | None, error: PumiceError) -> Iterable[Operation]:
        assert isinstance(request, CronRequest)
        reasons: dict[type, str] = {Create: "FailedCreate", Delete: "FailedDelete"}
        cron = self._lookup.store.get(CRON_JOB, request.cron)
        if cron is not None and type(operation) in reasons:
            yield Emit(CRON_JOB, request.cron, "Warning", reasons[type(operation)], str(error), uid=uid_of(cron))

    def gave_up(self, request: Hashable, now: Time) -> Decision:
        """The next start is another chance."""
        assert isinstance(request, CronRequest)
        cron = self._lookup.store.get(CRON_JOB, request.cron)
        following = schedule_of(cron["spec"]).after(now) if cron is not None else None
        return Decision(later=((request, following),)) if following is not None else NOTHING


def _owner_uid(job: Json) -> Iterable[str]:
    owner = controller_of(job)
    return (owner["uid"],) if owner is not None and owner.get("kind") == CRON_JOB.name else ()
