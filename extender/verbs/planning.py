"""One gang, all of it, on the cluster as it stands: the ordinary allocate for one job, by the rules of its queue.

The member that asks goes first, so that a gang with more members than it needs is planned around those who have come. Only
nodes that kube-scheduler's own filters passed come into question for it, and for members like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.actions.enqueue import admit
from extender.actions.placing import AllocateArgs, gated
from extender.actions.worksheet import Worksheet, place_job
from extender.api.meta import Time
from extender.api.operations import Bind
from extender.core import status as st
from extender.core.axis import BoolN, FloatN
from extender.core.conf import Conf
from extender.core.mirror import Mirror
from extender.core.reasons import Reason, Waiting
from extender.core.reservations import Reservations
from extender.core.session import Session
from extender.core.snapshot import Snapshot
from extender.core.statement import Statement
from extender.core.waiting import why_waits
from extender.verbs.preempting import who_leaves


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """Where the members go. `scores` (N,): what each node is worth to the member that asked."""

    binds: Sequence[Bind]
    scores: FloatN


@dataclass(frozen=True, slots=True, eq=False)
class Refused:
    """Why the gang cannot be placed whole. `text` is short and the same for every node.

    `leaving`: node -> uids of the pods that would have to leave it for the member that asked, where that would help."""

    text: str
    why: Waiting
    leaving: Mapping[str, Sequence[str]] = field(default_factory=dict)


def open_session(mirror: Mirror, conf: Conf, now: Time, reservations: Reservations) -> Session:
    """Ties go to the lowest row, or are broken by the time where the configuration wants chance."""
    rng = np.random.default_rng(int(now * 1000))
    return Session(Snapshot.build(mirror), conf, now, rng, reservations, brought=True)


def plan(ssn: Session, task: int, only_on: BoolN | None) -> Planned | Refused:
    """Place the gang of the task. `only_on` (N,): the nodes that may be taken by it and its like; None: all."""
    job = ssn.job_of(task)
    if only_on is not None:
        ssn.only_on[ssn.task_class(task).id] = only_on
    refused = _not_its_turn(ssn, job)
    if refused is not None:
        return _refusal(ssn, job, refused, 0)
    others = (t for t in sorted(ssn.pending_tasks(job), key=ssn.task_order) if t != task and not gated(ssn, t))
    work = Worksheet(ssn, job, [task, *others], first=task)
    with ssn.statement() as stmt:
        if _place_whole(ssn, stmt, work) and ssn.task_status[task] == st.ALLOCATED:
            scores = ssn.plan(ssn.task_class(task)).scores.copy()
            stmt.commit()
            binds = [replace(each, before=(), awaits=None) for each in ssn.operations if isinstance(each, Bind)]
            return Planned(binds, scores)
        fit = ssn.ready_count(job) + int(ssn.job_counts[job][st.PIPELINED])
    why = why_waits(ssn, job) or Waiting(str(ssn.job_key(job)), Reason.WAITING_FOR_GANG, "it has to wait")
    refusal = _refusal(ssn, job, why, fit)
    leaving = who_leaves(ssn, task)
    return replace(refusal, leaving=leaving) if leaving else refusal


def fits(ssn: Session, job: int) -> bool:
    """Could the gang be placed whole as the session stands? Changes nothing but the reasons that it leaves behind."""
    if not ssn.pending_tasks(job) or _not_its_turn(ssn, job) is not None:
        return False
    work = Worksheet(ssn, job, (task for task in sorted(ssn.pending_tasks(job), key=ssn.task_order) if not gated(ssn, task)))
    with ssn.statement() as stmt:
        return bool(work) and _place_whole(ssn, stmt, work)


def _place_whole(ssn: Session, stmt: Statement, work: Worksheet) -> bool:
    """As allocate does; members that ask for nothing, which it leaves to backfill, need a node as well to make the gang whole."""
    job = work.job
    if not place_job(ssn, stmt, work, AllocateArgs()) or not ssn.job_ready(job):
        return False
    while work and ssn.ready_count(job) < ssn.jobs.min_available[job] and place_job(ssn, stmt, work, AllocateArgs()):
        pass
    return ssn.ready_count(job) >= int(ssn.jobs.min_available[job])


def _not_its_turn(ssn: Session, job: int) -> Waiting | None:
    """Why the queue, or the gang itself, does not even let it try. Lets it in as enqueue would."""
    if ssn.jobs.group[job] is None or ssn.queue_of(job) < 0:
        return why_waits(ssn, job)
    if ssn.job_phase[job] <= st.PHASE_PENDING:
        if not ssn.conf.has_action("enqueue"):
            ssn.job_phase[job] = st.PHASE_INQUEUE
        elif not admit(ssn, job):
            return why_waits(ssn, job)
    if ssn.job_valid(job) is not None or ssn.overused(ssn.queue_of(job)):
        return why_waits(ssn, job)
    return None


_ABOUT_NODES = (Reason.INSUFFICIENT_RESOURCES, Reason.NEVER_FITS, Reason.NODES_REFUSE, Reason.WAITING_FOR_RELEASE)


def _refusal(ssn: Session, job: int, why: Waiting, fit: int) -> Refused:
    name, minimum = ssn.job_key(job).name, int(ssn.jobs.min_available[job])
    cause = why.message
    if why.reason in _ABOUT_NODES and isinstance(causes := why.numbers.get("causes"), Mapping) and causes:
        dominant = max(causes, key=lambda each: (causes[each], each))
        cause = f"{dominant} on {causes[dominant]} of {why.numbers['nodes']} nodes"
    elif why.reason in (Reason.QUEUE_LIMIT, Reason.NOT_ADMITTED):
        cause = why.message.removeprefix("its minimum can never fit: ")
    if fit < minimum and why.reason in (*_ABOUT_NODES, Reason.QUEUE_LIMIT, Reason.WAITING_FOR_GANG):
        return Refused(f"gang {name}: only {fit} of {minimum} fit: {cause}", why)
    return Refused(f"gang {name}: {cause}", why)
