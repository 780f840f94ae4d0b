"""What the standalone scheduler's sessions do beside placing pods: let jobs in, keep PodGroups and queues telling the truth.

And one thing more: kube-scheduler looks at a refused pod again when something happens in the cluster, else after five minutes.
What it cannot see happen (room that was kept is free again; our news came later than its own) it is told by touching pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from extender.actions import enqueue
from extender.api import labels
from extender.api.meta import POD, POD_GROUP, QUEUE, Key, Time, format_time
from extender.api.operations import Emit, Operation, Patch, PatchStatus
from extender.core import status as st
from extender.core.closing import close
from extender.core.session import Session
from extender.verbs.answering import Extender
from extender.verbs.planning import fits, open_session

PATIENCE = 2.0  # seconds that a pod is given to come by itself
AGAIN = 5.0  # seconds between two touches of one pod
_TRIED = 50  # refused gangs that one survey looks at, the one that was refused first first


class Survey:
    """Remembers whom it has touched. `alone`: no loop beside it does what sessions do besides placing pods."""

    def __init__(self, extender: Extender, *, alone: bool = True) -> None:
        self._extender, self._alone = extender, alone
        self._touched: dict[str, Time] = {}  # pod uid -> when
        self._seen = -1

    def due(self) -> bool:
        """Has anything changed, or does anybody wait?"""
        extender = self._extender
        return extender.mirror.changes != self._seen or bool(extender.waiting) or bool(len(extender.books)) or extender.torn()

    def take(self, now: Time) -> list[Operation]:
        """What is to be written; what it says about PodGroups and queues is assumed already."""
        extender = self._extender
        extender.tend(now)
        extender.complete(now)
        seen = extender.mirror.changes
        ssn = open_session(extender.mirror, extender.conf, now, extender.reservations)
        if self._alone and ssn.conf.has_action("enqueue"):
            enqueue.run(ssn, None)
        pods = [*self._late(now), *self._hopeful(ssn, now)]
        if self._alone:
            close(ssn, undecided=partial(self._undecided, ssn), pods=False)
        self._seen = seen  # a survey that came to nothing has seen nothing
        if not self._alone:
            return list(self._touch(ssn, pods, now))
        told = [each for each in ssn.operations if isinstance(each, PatchStatus | Emit) and each.kind in (POD_GROUP, QUEUE)]
        extender.mirror.assume(told)
        return [*told, *self._touch(ssn, pods, now)]

    def _undecided(self, ssn: Session, job: int) -> bool:
        """It was let in, and kube-scheduler has not brought it and been refused."""
        return ssn.job_phase[job] > st.PHASE_PENDING and ssn.job_key(job) not in self._extender.waiting

    def _late(self, now: Time) -> Iterator[Key]:
        """Members whose node is kept and who were put aside before; the others are on their way, however long that takes."""
        for held in self._extender.books:
            if now - held.since >= PATIENCE:
                yield from (seat.bind.pod for seat in held.unasked if seat.bind.uid in self._extender.put_aside)

    def _hopeful(self, ssn: Session, now: Time) -> Iterator[Key]:
        """Members of gangs that were refused, have not come again, and would find their nodes by now."""
        waiting = self._extender.waiting
        for gang in [gang for gang in waiting if gang not in ssn.jobs.rows or not ssn.pending_tasks(ssn.jobs.rows[gang])]:
            del waiting[gang]
        late = [gang for gang, (at, _) in waiting.items() if now - at >= PATIENCE]
        for gang in late[:_TRIED]:
            job = ssn.jobs.rows[gang]
            if fits(ssn, job):
                yield from (ssn.task_key(task) for task in ssn.pending_tasks(job))

    def _touch(self, ssn: Session, pods: Sequence[Key], now: Time) -> Iterator[Patch]:
        self._touched = {uid: at for uid, at in self._touched.items() if now - at < AGAIN}
        for key in pods:
            row = ssn.tasks.rows.get(key)
            pod = ssn.tasks.pod[row] if row is not None else None
            if pod is not None and pod.metadata.uid not in self._touched:
                self._touched[pod.metadata.uid] = now
                yield Patch(POD, key, {"metadata": {"annotations": {labels.RETRY: format_time(now)}}}, uid=pod.metadata.uid)
