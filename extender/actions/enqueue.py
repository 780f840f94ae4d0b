"""enqueue -- let waiting jobs in: phase Pending -> Inqueue, which is when controllers create a job's pods.

One job per turn of its queue; after each turn the queues are sorted anew. A job that asks no minResources and claims no
devices goes straight in.
A refused job is left for the next session and the queue's next job is tried. Where no plugin tells jobs apart that ask the
same, one is asked for all of them: a long queue that cannot be let in costs next to nothing. Source: volcano ed72c7c,
actions/enqueue."""

from __future__ import annotations

from collections.abc import Hashable

from extender.core import status as st
from extender.core.conf import Action
from extender.core.live_heap import LiveHeap
from extender.core.session import Session


def run(ssn: Session, args: None) -> None:
    del args
    waiting: dict[int, list[int]] = {}
    for job in _hopeful(ssn, [job for job in ssn.live_jobs() if ssn.job_phase[job] <= st.PHASE_PENDING]):
        waiting.setdefault(ssn.queue_of(job), []).append(job)
    jobs = {row: LiveHeap(listed, ssn.job_order) for row, listed in waiting.items()}
    queues = LiveHeap(jobs, ssn.queue_order)
    while queues:
        row = queues.pop()
        job = jobs[row].pop()
        admit(ssn, job)
        if jobs[row]:
            queues.push(row)


def _hopeful(ssn: Session, waiting: list[int]) -> list[int]:
    """Those that are not refused at once. Who is let in only takes room, so what is refused now is refused all session."""
    if not ssn.all_admit_by_minimum():
        return waiting
    alike: dict[Hashable, list[int]] = {}
    for job in waiting:
        alike.setdefault(_code(ssn, job), []).append(job)
    hopeful = []
    for jobs in alike.values():
        if _asks(ssn, jobs[0]) and not ssn.job_enqueueable(jobs[0]):
            ssn.enqueue_refusals.update(dict.fromkeys(jobs, ssn.enqueue_refusals[jobs[0]]))
        else:
            hopeful += jobs
    return hopeful


def admit(ssn: Session, job: int) -> bool:
    """Let the job in, or say why not in ssn.enqueue_refusals."""
    if _asks(ssn, job) and not ssn.job_enqueueable(job):
        return False
    ssn.job_enqueued(job)
    ssn.job_phase[job] = st.PHASE_INQUEUE
    return True


def _asks(ssn: Session, job: int) -> bool:
    group = ssn.jobs.group[job]
    assert group is not None
    return bool(group.spec.min_resources) or _claims_devices(ssn, job)


def _code(ssn: Session, job: int) -> Hashable:
    """What plugins that go by the minimum look at; a job that claims devices stands for itself."""
    group = ssn.jobs.group[job]
    assert group is not None
    if _claims_devices(ssn, job):
        return job
    return ssn.queue_of(job), group.metadata.namespace, tuple((group.spec.min_resources or {}).items())


def _claims_devices(ssn: Session, job: int) -> bool:
    return any(ssn.shape_of(task).spec.resource_claims for task in ssn.jobs.pending_tasks[job])


ACTION = Action("enqueue", run, lambda _: None, places=False)
