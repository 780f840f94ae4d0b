"""Closing a session: PodGroup phases and conditions, pod conditions, events, and why every waiting job waits.

Only what changed is written. Source: volcano ed72c7c, pkg/scheduler/framework/{session,job_updater}.go and plugins/gang."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from extender.api.meta import POD, POD_GROUP, Json, format_time
from extender.api.operations import Emit, PatchStatus
from extender.api.pod import Pod
from extender.api.podgroup import SCHEDULED, UNSCHEDULABLE, PodGroup, PodGroupCondition, same_cause
from extender.core import status as st
from extender.core.queue_use import write_queue_use
from extender.core.reasons import Reason, Waiting
from extender.core.session import Session
from extender.core.waiting import Telling, task_text


def close(ssn: Session, *, undecided: Callable[[int], bool] = lambda _: False, pods: bool = True) -> list[Waiting]:
    """Close the plugins, add the status writes to ssn.operations, return one Waiting for each job that waits.

    `undecided`: jobs of which nobody has tried yet whether they fit; their conditions are left as they are. `pods`: the pods'
    own conditions are for us to write."""
    ssn.close()
    waiting: list[Waiting] = []
    gangs = any(plugin.name == "gang" for plugin in ssn.plugins)
    leaving = _leaving(ssn)
    phases, telling = _phases(ssn, leaving), Telling(ssn)
    for job in _worth_a_look(ssn, phases):
        why = _why_waits(ssn, job, telling)
        if why is not None:
            waiting.append(why)
        unschedulable = gangs and ssn.jobs.group[job] is not None and _lacks_members(ssn, job, int(leaving[job]))
        in_part = unschedulable and ssn.job_counts[job][st.RUNNING]
        phase = st.PHASES[st.PHASE_UNKNOWN if in_part else phases[job]]
        nothing_to_say = not gangs or (unschedulable and undecided(job))
        verdict = None if nothing_to_say else telling.gang_text(job, why) if unschedulable else ""
        _close_group(ssn, job, why, phase, verdict)
        if pods and why is not None:
            _close_tasks(ssn, job, why)
    write_queue_use(ssn)
    return waiting


def _why_waits(ssn: Session, job: int, telling: Telling) -> Waiting | None:
    """Nothing that happens in the cluster helps where no action places pods."""
    why = telling.why_waits(job)
    untried = why is not None and (
        why.reason == Reason.WAITING_FOR_GANG or (why.reason == Reason.NOT_ADMITTED and job not in ssn.enqueue_refusals)
    )
    if why is None or ssn.conf.places or not untried:
        return why
    return replace(
        why, reason=Reason.NO_ACTION, message="no action of scheduler.conf gives nodes to pods; add 'allocate' to its actions"
    )


def _leaving(ssn: Session) -> NDArray[np.int64]:
    """(J,) tasks that leave a node. Those that never had one are no part of what was started."""
    rows = np.flatnonzero((ssn.task_status == st.RELEASING) & (ssn.task_node >= 0) & (ssn.tasks.job >= 0))
    return np.bincount(ssn.tasks.job[rows], minlength=len(ssn.job_phase))


def _worth_a_look(ssn: Session, phases: NDArray[np.int8]) -> list[int]:
    """Jobs that have unbound tasks, or whose PodGroup shows other numbers or another phase than they have now."""
    counts = ssn.job_counts
    unbound = counts[:, list(st.UNBOUND_SET)].sum(axis=1) > 0
    shown = ssn.jobs.shown
    now = counts[:, [st.RUNNING, st.SUCCEEDED, st.FAILED]]
    differs = (shown != now).any(axis=1) | (ssn.job_phase != ssn.jobs.phase) | (phases != ssn.jobs.phase)
    waiting_to_enter = ssn.job_phase <= st.PHASE_PENDING
    short = counts[:, st.IS_READY].sum(axis=1) < ssn.jobs.min_available
    rows = np.flatnonzero(unbound | differs | waiting_to_enter | short | ~ssn.jobs.shows_scheduled)
    keys = ssn.jobs.key
    return [int(row) for row in rows if keys[row] is not None]


def _phases(ssn: Session, leaving: NDArray[np.int64]) -> NDArray[np.int8]:
    """(J,) phase codes by the rule of the reference, without Unknown, which needs the gang's verdict."""
    counts = ssn.job_counts
    ended = counts[:, st.SUCCEEDED] + counts[:, st.FAILED]
    scheduled = counts[:, st.RUNNING] + counts[:, st.BOUND] + ended + leaving
    enough = (scheduled >= ssn.jobs.min_available) & (scheduled > 0)
    phases = np.where(ssn.job_phase == st.PHASE_INQUEUE, st.PHASE_INQUEUE, st.PHASE_PENDING)
    phases = np.where(enough, np.where(scheduled == ended, st.PHASE_COMPLETED, st.PHASE_RUNNING), phases)
    return phases.astype(np.int8)


def _lacks_members(ssn: Session, job: int, leaving: int) -> bool:
    """The gang is short of its minimum, and not merely because members are on their way out."""
    counts = ssn.job_counts[job]
    minimum = int(ssn.jobs.min_available[job])
    if not ssn.jobs.tasks[job] or ssn.ready_count(job) + ssn.job_pending_best_effort[job] >= minimum:
        return False
    scheduled = int(sum(counts[status] for status in st.SCHEDULED_SET))
    nobody_waits = counts[st.PENDING] == 0 and counts[st.PIPELINED] == 0
    return not (leaving and nobody_waits and scheduled + leaving >= minimum)


def _close_group(ssn: Session, job: int, why: Waiting | None, phase: str, verdict: str | None) -> None:
    """`verdict`: why the gang plugin calls the group unschedulable, "" where it does not; None: it says nothing."""
    group = ssn.jobs.group[job]
    if group is None or ssn.jobs.queue[job] < 0:
        return
    counts = ssn.job_counts[job]
    status: Json = {}
    if phase != group.status.phase:
        status["phase"] = phase
    for field, code in (("running", st.RUNNING), ("succeeded", st.SUCCEEDED), ("failed", st.FAILED)):
        if getattr(group.status, field) != counts[code]:
            status[field] = int(counts[code])
    if verdict is not None and ssn.jobs.tasks[job]:
        conditions = _conditions(ssn, group, verdict)
        if conditions is not None:
            status["conditions"] = conditions
            _emit_group(ssn, group, verdict)
    elif verdict is not None:
        conditions = _admission(ssn, job, group, why)
        if conditions is not None:
            status["conditions"] = conditions
    if not ssn.jobs.tasks[job] or verdict is None:
        _emit_refusals(ssn, job, group, changed="phase" in status)
    if status:
        ssn.operations.append(PatchStatus(POD_GROUP, group.metadata.key, {"status": status}, uid=group.metadata.uid))
        ssn.job_phase[job] = st.PHASES.index(phase)


def _admission(ssn: Session, job: int, group: PodGroup, why: Waiting | None) -> list[Json] | None:
    """Of a group that has no tasks yet: its pods are made once it is let in, so this is all that says why there are none."""
    shown = next((condition for condition in group.status.conditions or () if condition.type == UNSCHEDULABLE), None)
    if ssn.job_phase[job] > st.PHASE_PENDING or why is None:
        return _updated(ssn, group, {UNSCHEDULABLE: ("False", "Admitted", "")}) if shown is not None else None
    if shown is not None and (shown.status, shown.reason) == ("True", why.reason) and same_cause(shown.message, why.message):
        return None
    return _updated(ssn, group, {UNSCHEDULABLE: ("True", str(why.reason), why.message)})


def _conditions(ssn: Session, group: PodGroup, verdict: str) -> list[Json] | None:
    """With this session's verdict on the gang."""
    shown = {condition.type for condition in group.status.conditions or ()}
    if verdict:
        wanted = {UNSCHEDULABLE: ("True", "NotEnoughResources", verdict)}
        if SCHEDULED in shown:
            wanted[SCHEDULED] = ("False", "NotEnoughResources", "")
    else:
        wanted = {SCHEDULED: ("True", "tasks in gang are ready to be scheduled", "")}
        if UNSCHEDULABLE in shown:
            wanted[UNSCHEDULABLE] = ("False", "tasks in gang are ready to be scheduled", "")
    return _updated(ssn, group, wanted)


def _updated(ssn: Session, group: PodGroup, wanted: Mapping[str, tuple[str, str, str]]) -> list[Json] | None:
    """The group's conditions with these, type -> status, reason, message; None where they say so already."""
    old = {condition.type: condition for condition in group.status.conditions or ()}
    if all(kind in old and (old[kind].status, old[kind].reason, old[kind].message) == said for kind, said in wanted.items()):
        return None
    kept = [_as_json(condition) for kind, condition in old.items() if kind not in wanted]
    stamp = {"transitionID": ssn.id, "lastTransitionTime": format_time(ssn.now)}
    return kept + [
        {"type": kind, "status": said[0], "reason": said[1], "message": said[2], **stamp} for kind, said in wanted.items()
    ]


def _as_json(condition: PodGroupCondition) -> Json:
    return {
        "type": condition.type, "status": condition.status, "reason": condition.reason, "message": condition.message,
        "transitionID": condition.transition_id, "lastTransitionTime": condition.last_transition_time,
    }  # fmt: skip


def _emit_group(ssn: Session, group: PodGroup, verdict: str) -> None:
    if verdict:
        event = Emit(POD_GROUP, group.metadata.key, "Warning", "Unschedulable", verdict, group.metadata.uid)
    else:
        event = Emit(POD_GROUP, group.metadata.key, "Normal", "Scheduled", "pod group is ready", group.metadata.uid)
    ssn.operations.append(event)


def _emit_refusals(ssn: Session, job: int, group: PodGroup, *, changed: bool) -> None:
    """A job without pods that enqueue keeps out: an event when that begins."""
    if changed:
        for refusal in ssn.enqueue_refusals.get(job, ()):
            ssn.operations.append(
                Emit(POD_GROUP, group.metadata.key, "Normal", "Unschedulable", refusal.event, group.metadata.uid)
            )


def _close_tasks(ssn: Session, job: int, why: Waiting) -> None:
    """Condition PodScheduled=False, event and nomination of every task that found no node."""
    for task in ssn.jobs.pending_tasks[job]:
        pod = ssn.tasks.pod[task]
        if pod is None or ssn.task_status[task] not in st.UNBOUND_SET or ssn.shape_of(task).gated or not ssn.places[task]:
            continue
        reason, message, nominated = task_text(ssn, task, why)
        if _shows(pod, reason, message, nominated):
            continue
        condition = {
            "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": _since(pod, ssn),
        }  # fmt: skip
        status: Json = {"conditions": [*_other_conditions(pod), condition]}
        if nominated:
            status["nominatedNodeName"] = nominated
        ssn.operations.append(PatchStatus(POD, pod.metadata.key, {"status": status}, uid=pod.metadata.uid))
        ssn.operations.append(Emit(POD, pod.metadata.key, "Warning", "FailedScheduling", message, pod.metadata.uid))


def _shows(pod: Pod, reason: str, message: str, nominated: str) -> bool:
    said = next((c for c in pod.status.conditions or () if c.type == "PodScheduled"), None)
    same_place = not nominated or nominated == pod.status.nominated_node_name
    return said is not None and (said.status, said.reason, said.message) == ("False", reason, message) and same_place


def _since(pod: Pod, ssn: Session) -> str:
    said = next((c for c in pod.status.conditions or () if c.type == "PodScheduled"), None)
    if said is not None and said.status == "False" and said.last_transition_time:
        return said.last_transition_time
    return format_time(ssn.now)


def _other_conditions(pod: Pod) -> list[Json]:
    return [
        {
            "type": c.type, "status": c.status, "reason": c.reason, "message": c.message,
            "lastTransitionTime": c.last_transition_time,
        }
        for c in pod.status.conditions or ()
        if c.type != "PodScheduled"
    ]  # fmt: skip
