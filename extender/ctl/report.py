"""What a run came to, as plain data: the shape of `pumice run -o json`, the rows of its tables and its exit status.

Groups are told by the names people gave: a gang is called after the Job or workload that it was made for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from extender.api import labels
from extender.api.meta import EVENT, JOB, POD, POD_GROUP, QUEUE, Json, Key, annotations_of, key_of, uid_of
from extender.core.reasons import Reason
from extender.ctl.failures import Failure, failures
from extender.ctl.group_names import GroupNames
from extender.ctl.lines import JobLine, NodeLine, QueueLine, job_lines, job_phase_of, node_lines, phase_of, queue_lines
from extender.local import Outcome

OTHER_SCHEDULER = "OtherScheduler"  # the pod is not ours to place
NOT_STARTED = "NotStarted"  # the job has no pods yet: its controller waits for something
GIVEN_UP = "GivenUp"  # its controller could not make what it needs, and ended it
PLACED, MUST_WAIT, NEVER_FITS = 0, 3, 4  # exit status


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a job waits; `podgroup` is its gang's own name, "" where it has none."""

    job: str
    reason: str
    message: str
    numbers: Mapping[str, object] = field(default_factory=dict)
    podgroup: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """`clock`: seconds since the start; `ended` as in Outcome."""

    clock: float
    ended: str
    cycles: int
    pods: Mapping[str, Mapping[str, str]]
    jobs: Mapping[str, str]
    podgroups: Mapping[str, str]
    queues: Mapping[str, Json]
    waiting: Sequence[Wait]
    failed: Sequence[Failure]
    evictions: Sequence[Json]
    job_lines: Sequence[JobLine]
    node_lines: Sequence[NodeLine]
    queue_lines: Sequence[QueueLine]

    @property
    def exit_status(self) -> int:
        if any(wait.reason == Reason.NEVER_FITS for wait in self.waiting):
            return NEVER_FITS
        return MUST_WAIT if self.waiting else PLACED

    def as_json(self) -> Json:
        """The documented shape: docs/run.md."""
        return {
            "pods": self.pods,
            "jobs": self.jobs,
            "podgroups": self.podgroups,
            "queues": self.queues,
            "waiting": [
                {"job": wait.job, "podgroup": wait.podgroup, "reason": str(wait.reason), "message": wait.message,
                 "numbers": wait.numbers}
                for wait in self.waiting
            ],
            "failed": [{"job": each.job, "message": each.message} for each in self.failed],
            "evictions": self.evictions,
            "clock": round(self.clock, 3),
            "ended": self.ended,
            "cycles": self.cycles,
        }  # fmt: skip


def report(outcome: Outcome, schedulers: Collection[str]) -> Report:
    """`schedulers`: whose pods were ours to place."""
    objects = outcome.objects
    names = GroupNames(objects)
    waiting = list(_waiting(outcome, names, schedulers))
    lines = job_lines(outcome, names)
    return Report(
        clock=outcome.now - outcome.started,
        ended=outcome.ended,
        cycles=outcome.cycles,
        pods={
            str(key_of(pod)): {"node": pod["spec"].get("nodeName", ""), "phase": phase_of(pod)} for pod in objects.get(POD, ())
        },
        jobs={str(key_of(job)): job_phase_of(job) for job in objects.get(JOB, ())},
        podgroups={str(key_of(group)): phase_of(group) for group in objects.get(POD_GROUP, ())},
        queues={key_of(queue).name: dict(queue.get("status") or {}) for queue in objects.get(QUEUE, ())},
        waiting=waiting,
        failed=list(failures(outcome, lines)),
        evictions=[
            {"pod": str(each.pod), "at": round(each.at - outcome.started, 3), "reason": each.reason} for each in outcome.evictions
        ],
        job_lines=lines,
        node_lines=list(node_lines(objects)),
        queue_lines=list(queue_lines(outcome)),
    )


# --- what waits -------------------------------------------------------------------------------------------------------


def _waiting(outcome: Outcome, names: GroupNames, schedulers: Collection[str]) -> Iterator[Wait]:
    groups = {str(key_of(group)) for group in outcome.objects.get(POD_GROUP, ())}
    called = {each.job: names.of(Key(*each.job.split("/", 1))) for each in outcome.waiting}
    untold = list(_untold(outcome, names, schedulers, partly=set(called.values())))
    others = {wait.job: wait.message for wait in untold if wait.reason == OTHER_SCHEDULER}
    told: set[str] = set()
    for each in outcome.waiting:
        name, podgroup = called[each.job], each.job if each.job in groups else ""
        told.add(name)
        if each.reason == Reason.NOT_ENOUGH_TASKS and name in others:  # they exist, and are not ours
            yield Wait(name, OTHER_SCHEDULER, others[name], each.numbers, podgroup)
        else:
            yield Wait(name, each.reason, each.message, each.numbers, podgroup)
    for wait in untold:
        if wait.job not in told:
            told.add(wait.job)
            yield wait
    for job in outcome.objects.get(JOB, ()):
        name, phase, message = str(key_of(job)), job_phase_of(job), _message(job)
        if name not in told and phase in ("", "Pending") and not _has_pods(job):
            text = message or _last_warning(outcome, job) or "its pods have not been made yet"
            yield Wait(name, NOT_STARTED, text)
        elif phase == "Terminated" and message:
            yield Wait(name, GIVEN_UP, message)


def _untold(outcome: Outcome, names: GroupNames, schedulers: Collection[str], partly: Collection[str]) -> Iterator[Wait]:
    """Pods that wait and of which the scheduler has said nothing: those of others. `partly`: jobs with pods that are ours."""
    for pod in outcome.objects.get(POD, ()):
        if pod["spec"].get("nodeName") or phase_of(pod) != "Pending" or "deletionTimestamp" in pod["metadata"]:
            continue
        group = Key(key_of(pod).namespace, annotations_of(pod).get(labels.GROUP_NAME, ""))
        scheduler = pod["spec"].get("schedulerName", "")
        name = names.of(group) if group.name else f"Pod {key_of(pod)}"
        if scheduler in schedulers:
            yield Wait(name, NOT_STARTED, "the run ended before the scheduler had looked at it")
        else:
            whose = (
                "its schedulerName" if not group.name else f"the schedulerName of {'some of ' if name in partly else ''}its pods"
            )
            text = f"{whose} is '{scheduler}', which nobody here is; --scheduler-name {scheduler} makes it ours"
            yield Wait(name, OTHER_SCHEDULER, text)


def _message(job: Json) -> str:
    """What its controller says about it."""
    return str(((job.get("status") or {}).get("state") or {}).get("message") or "")


def _has_pods(job: Json) -> bool:
    status = job.get("status") or {}
    return any(status.get(field) for field in ("pending", "running", "succeeded", "failed", "terminating", "unknown"))


def _last_warning(outcome: Outcome, job: Json) -> str:
    """What the controller said last about it."""
    said = [
        event
        for event in outcome.objects.get(EVENT, ())
        if event.get("type") == "Warning" and (event.get("involvedObject") or {}).get("uid") == uid_of(job)
    ]
    last = max(said, key=lambda event: str(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"]), default=None)
    return str(last["message"]) if last is not None else ""
