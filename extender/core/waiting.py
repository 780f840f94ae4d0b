"""The words: why a job waits, the gang's condition, the condition of each waiting pod. Texts that upstream's users know are
kept; numbers come with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from extender.core import status as st
from extender.core.alike import likeness
from extender.core.axis import IntR
from extender.core.members import Members
from extender.core.never import gang_too_large, members_too_large, with_sizes
from extender.core.reasons import FitErrors, Reason, Waiting, is_insufficient, merged, no_room
from extender.core.session import Session


class Telling:
    """What is told of the jobs as they stand at the end of a session: worked out once for all of a kind that fared the same."""

    def __init__(self, ssn: Session) -> None:
        self._ssn = ssn
        self._one_of: dict[Hashable, int] = {}  # kind and fate -> the first job
        self._as: dict[int, int] = {}  # job -> the first that fared the same
        self._why: dict[int, Waiting | None] = {}
        self._gang: dict[int, str] = {}

    def why_waits(self, job: int) -> Waiting | None:
        ssn = self._ssn
        fate = self._fate(job)
        first = self._as[job] = job if fate is None else self._one_of.setdefault(fate, job)
        if first == job:
            why = self._why[job] = why_waits(ssn, job)
            return why
        for task, other in zip(ssn.jobs.pending_tasks[job], ssn.jobs.pending_tasks[first], strict=True):
            if other in ssn.fit_errors:  # those that were judged only now
                ssn.fit_errors[task] = ssn.fit_errors[other]
        why = self._why[first]
        return why and Waiting(str(ssn.job_key(job)), why.reason, why.message, why.numbers)

    def gang_text(self, job: int, why: Waiting | None) -> str:
        first = self._as[job]
        if first not in self._gang:
            self._gang[first] = gang_text(self._ssn, job, why)
        return self._gang[first]

    def _fate(self, job: int) -> Hashable:
        """All that why_waits and gang_text look at; None where the job stands for itself."""
        ssn, tasks = self._ssn, self._ssn.jobs.pending_tasks[job]
        alike = likeness(ssn, job, tasks)
        group = ssn.jobs.group[job]
        if alike is None or group is None:
            return None
        limit = ssn.over_limit.get(job)
        tried = tuple((ssn.fit_errors.get(task), ssn.last_transaction.get(task)) for task in tasks)
        kept = tuple(ssn.not_evicted.get(job, {}).items())
        if ssn.job_phase[job] > st.PHASE_PENDING:
            return alike, tried, kept, limit is not None and limit.tobytes()
        asked = (ssn.jobs.min_resources[job].tobytes(), bool(group.metadata.owner_references))
        return alike, tried, kept, asked, id(ssn.enqueue_refusals.get(job))


def why_waits(ssn: Session, job: int) -> Waiting | None:
    """The dominant reason why the job has tasks without a node or is not let in; None where it does not wait."""
    counts = ssn.job_counts[job]
    unbound = int(sum(counts[status] for status in st.UNBOUND_SET))
    group = ssn.jobs.group[job]
    not_admitted = group is not None and ssn.job_phase[job] <= st.PHASE_PENDING
    if not unbound and not not_admitted:
        return None
    name = str(ssn.job_key(job))
    numbers = _numbers(ssn, job)
    if group is None:
        return Waiting(name, Reason.GROUP_UNKNOWN, f"PodGroup {name} does not exist: create it, or drop the annotation", numbers)
    row = ssn.queue_of(job)
    queue = ssn.jobs.queue_name[job]
    if row < 0:
        return Waiting(name, Reason.QUEUE_UNKNOWN, f"queue {queue} does not exist", numbers)
    if not_admitted:
        return _not_admitted(ssn, job, name, queue, row, numbers)
    refused = ssn.job_valid(job)
    if refused is not None:
        return Waiting(name, Reason.NOT_ENOUGH_TASKS, refused.message, numbers)
    return _no_place(ssn, job, name, queue, row, numbers)


def _numbers(ssn: Session, job: int) -> dict[str, object]:
    counts = ssn.job_counts[job]
    minimum = int(ssn.jobs.min_available[job])
    ready = ssn.ready_count(job)
    return {
        "tasks": len(ssn.jobs.tasks[job]),
        "minAvailable": minimum,
        "ready": ready,
        "pending": int(counts[st.PENDING]),
        "fit": _fit(ssn, job),
        "lacking": max(minimum - _fit(ssn, job), 0),
    }


def _not_admitted(ssn: Session, job: int, name: str, queue: str, row: int, numbers: dict[str, object]) -> Waiting:
    group = ssn.jobs.group[job]
    assert group is not None
    if not ssn.queue_is_open(row):
        return Waiting(name, Reason.QUEUE_CLOSED, _closed(ssn, queue, row), numbers)
    never = _never_let_in(ssn, job, row)
    if never:
        return Waiting(name, Reason.NEVER_FITS, never, numbers)
    refusals = ssn.enqueue_refusals.get(job, [])
    text = "; ".join(dict.fromkeys(refusal.text for refusal in refusals)) or "it has not been let in yet"
    return Waiting(name, Reason.NOT_ADMITTED, text, numbers | {k: v for refusal in refusals for k, v in refusal.numbers.items()})


def _closed(ssn: Session, queue: str, row: int) -> str:
    state = ssn.queues.queue[row].status.state or "without a state"
    return f"queue {queue} is {state}: it takes no new work"


def _never_let_in(ssn: Session, job: int, row: int) -> str:
    """What no waiting will change; looked at once for all jobs without pods that ask the same."""
    group, minimum, asked = ssn.jobs.group[job], int(ssn.jobs.min_available[job]), ssn.jobs.min_resources[job]
    assert group is not None
    code = None if ssn.jobs.tasks[job] else (row, minimum, asked.tobytes(), bool(group.metadata.owner_references))
    if code in ssn.never_let_in:
        return ssn.never_let_in[code]
    beyond = _beyond(ssn, asked, row) or members_too_large(ssn, job, asked)
    crowd = "" if beyond else gang_too_large(ssn, job)
    told = f"its minimum can never fit: {beyond}" if beyond else f"gang of {minimum}: {crowd}" if crowd else ""
    if code is not None:
        ssn.never_let_in[code] = told
    return told


def _beyond(ssn: Session, asked: IntR, row: int) -> str:
    """What of a minimum exceeds the whole cluster or the queue's capability."""
    named, most = ssn.queues.capability.named[row], ssn.queues.capability.values[row]
    for i in map(int, np.flatnonzero((asked > ssn.total) | (named & (asked > most)))):
        name, amount = ssn.axis.names[i], ssn.axis.said(i, float(asked[i]))
        if asked[i] > ssn.total[i]:
            return f"{name} {amount} asked > {ssn.axis.said(i, float(ssn.total[i]))} in the cluster"
        return f"{name} {amount} asked > capability {ssn.axis.said(i, float(most[i]))} of queue {ssn.queues.name[row]}"
    return ""


def _queue_numbers(ssn: Session, row: int, request: IntR) -> tuple[str, dict[str, object]] | None:
    """A plugin's account of why the queue may not take `request` more."""
    for plugin in ssn.plugins:
        explain = getattr(plugin, "explain_queue", None)
        told: tuple[str, dict[str, object]] | None = explain(ssn, row, request) if explain else None
        if told:
            return told
    return None


def _no_place(ssn: Session, job: int, name: str, queue: str, row: int, numbers: dict[str, object]) -> Waiting:
    """It is let in, yet tasks have no node."""
    tasks = [t for t in ssn.jobs.pending_tasks[job] if ssn.task_status[t] in st.UNBOUND_SET]
    _judge_untried(ssn, tasks)
    errors = [ssn.fit_errors[t] for t in tasks if t in ssn.fit_errors and ssn.task_status[t] == st.PENDING]
    if errors:
        worst = next((e for e in errors if e.never), errors[0])
        numbers = numbers | {"causes": dict(worst.counts), "nodes": worst.nodes}
        if worst.never:
            task = next(t for t in tasks if ssn.fit_errors.get(t) is worst)
            return Waiting(name, Reason.NEVER_FITS, f"{_lack(ssn, job)}{with_sizes(ssn, ssn.task_class(task), worst)}", numbers)
        crowd = gang_too_large(ssn, job) if ssn.ready_count(job) < ssn.jobs.min_available[job] else ""
        if crowd:
            return Waiting(name, Reason.NEVER_FITS, f"gang of {numbers['minAvailable']}: {crowd}; {worst}", numbers)
        kept = "".join(f" {action}: {why}." for action, why in ssn.not_evicted.get(job, {}).items())
        return Waiting(name, _cause(merged(errors)), f"{_lack(ssn, job)}{worst}{kept}", numbers)
    if job in ssn.over_limit and not ssn.queue_is_open(row):
        return Waiting(name, Reason.QUEUE_CLOSED, _closed(ssn, queue, row), numbers)
    if job in ssn.over_limit or ssn.overused(row):
        request = ssn.over_limit.get(job)
        if request is None:
            request = ssn.request(tasks[0])
        told = _queue_numbers(ssn, row, request)
        text = told[0] if told else f"queue {queue} has its share already"
        return Waiting(name, Reason.QUEUE_LIMIT, text, numbers | (told[1] if told else {}))
    if any(ssn.task_status[t] == st.PIPELINED for t in tasks):
        return Waiting(name, Reason.WAITING_FOR_RELEASE, "room is promised, once it is released", numbers)
    if tasks and all(ssn.shape_of(t).gated for t in tasks):
        gates = ssn.task_class(tasks[0]).spec.scheduling_gates or ()
        return Waiting(name, Reason.GATED, f"scheduling gates: {', '.join(gate.name for gate in gates)}", numbers)
    return Waiting(name, Reason.WAITING_FOR_GANG, f"{_lack(ssn, job)}it has not been its turn", numbers)


def _judge_untried(ssn: Session, tasks: list[int]) -> None:
    """Tasks that their queue kept from trying: where no node would have had room either, that is the reason."""
    for task in tasks:
        tried = task in ssn.fit_errors or task in ssn.last_transaction or ssn.task_status[task] != st.PENDING
        if not tried and not ssn.shape_of(task).gated:
            errors = no_room(ssn, ssn.task_class(task))
            if errors is not None:
                ssn.fit_errors[task] = errors


def _cause(causes: Counter[str]) -> Reason:
    dominant = causes.most_common(1)[0][0] if causes else ""
    return Reason.INSUFFICIENT_RESOURCES if is_insufficient(dominant) else Reason.NODES_REFUSE


def _fit(ssn: Session, job: int) -> int:
    """How many tasks have a node, or had one in the last attempt before it was given up for want of the others."""
    return ssn.ready_count(job) + len(_fitting(ssn, job))


def _fitting(ssn: Session, job: int) -> list[int]:
    """Tasks that are not ready and have, or had, a node."""
    return [
        task
        for task in ssn.jobs.pending_tasks[job]
        if ssn.task_status[task] == st.PIPELINED
        or (ssn.task_status[task] == st.PENDING and ssn.last_transaction.get(task, (st.PENDING, -1, False))[0] != st.PENDING)
    ]


def _lack(ssn: Session, job: int) -> str:
    """`gang of 8: 5 fit, 3 lack a node; `, or what it has too few of though they are enough in all; nothing for a single pod."""
    minimum, fit = int(ssn.jobs.min_available[job]), _fit(ssn, job)
    if fit < minimum:
        return f"gang of {minimum}: {fit} fit, {minimum - fit} lack a node; " if minimum > 1 else ""
    short = _short_of(ssn, job)
    if short:
        return f"gang of {minimum}: {fit} fit, but {', '.join(short)}; "
    return f"gang of {minimum}: {fit} fit, 0 lack a node; " if minimum > 1 and ssn.ready_count(job) < minimum else ""


def _short_of(ssn: Session, job: int) -> list[str]:
    """Roles and sub-groups of which fewer fit than the job needs."""
    members, group = Members.of(ssn, job), ssn.jobs.group[job]
    if members is None or group is None:
        return []
    fit = members.counted(ssn, st.IS_READY, pending_best_effort=True) | np.isin(members.tasks, _fitting(ssn, job))
    lacks = zip(members.roles, members.role_minimum.tolist(), members.role_lacks(fit).tolist(), strict=True)
    short = [f"only {least - lack} of {least} {role}" for role, least, lack in lacks if lack]
    whole = np.bincount(members.part_policy[members.part_lacks(fit) == 0], minlength=len(members.policy_minimum))
    for policy, least, have in zip(group.spec.sub_group_policy or (), members.policy_minimum, whole, strict=True):
        if have < least:
            short.append(f"only {have} of {least} sub-groups {policy.name}")
    return short


def gang_text(ssn: Session, job: int, why: Waiting | None) -> str:
    """The message of the Unschedulable condition, in the words of the reference."""
    minimum = int(ssn.jobs.min_available[job])
    hopeful = sum(
        1
        for task in ssn.jobs.pending_tasks[job]
        if ssn.task_status[task] == st.PENDING and st.IS_ALLOCATED[ssn.last_transaction.get(task, (0, -1, False))[0]]
    )
    schedulable = ssn.ready_count(job) + hopeful
    head = f"{minimum - schedulable}/{len(ssn.jobs.tasks[job])} tasks in gang unschedulable: {_counts(ssn, job)}"
    return f"{head}. Origin reason is: {why.message}" if why is not None else head


def _counts(ssn: Session, job: int) -> str:
    counts = ssn.job_counts[job]
    parts = [f"{int(counts[code])} {name}" for code, name in enumerate(st.STATUS_NAMES) if counts[code]]
    parts.append(f"{int(ssn.jobs.min_available[job])} minAvailable")
    return "pod group is not ready, " + ", ".join(sorted(parts))


def task_text(ssn: Session, task: int, why: Waiting) -> tuple[str, str, str]:
    """(reason, message, nominated node) of a task's PodScheduled condition."""
    key = ssn.task_key(task)
    status, node, after_eviction = int(ssn.task_status[task]), int(ssn.task_node[task]), task in ssn.promised_by_eviction
    if status == st.PENDING and task in ssn.last_transaction:
        status, node, after_eviction = ssn.last_transaction[task]
        after_eviction = False  # what was evicted for it was given back
    if status in (st.ALLOCATED, st.BINDING):
        where = ssn.nodes.name[node]
        return "Schedulable", f"Pod {key} can possibly be assigned to {where}, once minAvailable is satisfied", ""
    if status == st.PIPELINED:
        where = ssn.nodes.name[node]
        text = f"Pod {key} can possibly be assigned to {where}, once resource is released and minAvailable is satisfied"
        return "Unschedulable", text, where if after_eviction else ""
    errors: FitErrors | None = ssn.fit_errors.get(task)
    return "Unschedulable", str(errors) if errors is not None else why.message, ""
