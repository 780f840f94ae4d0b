"""sla -- no job waits longer than its waiting time: from then on it is let in and holds the room that is promised to it.

The waiting time is the argument `sla-waiting-time`, or the PodGroup's annotation volcano.sh/sla-waiting-time. Jobs with one
go first, the earliest deadline before the others. To overrule admission (or gang) it must stand in an earlier tier.
Source: volcano ed72c7c, plugins/sla."""

from __future__ import annotations

from dataclasses import dataclass

from extender.api import duration, labels
from extender.api.errors import InvalidObject
from extender.api.meta import Time
from extender.core.plugin import Arguments, Plugin, Vote
from extender.core.session import Session

KEY = "sla-waiting-time"


@dataclass(frozen=True, slots=True)
class SlaArgs:
    waiting: float | None = None  # seconds; for jobs that say nothing themselves


class Sla(Plugin[SlaArgs]):
    name = "sla"

    @classmethod
    def parse(cls, arguments: Arguments) -> SlaArgs:
        text = arguments.text(KEY, "")
        waiting = _seconds(text)
        if text and waiting is None:
            arguments.wrong(KEY, f"must be a duration above zero such as 1h30m, not '{text}'")
        return SlaArgs(waiting)

    def open(self, ssn: Session) -> None:
        del ssn
        self._deadlines: dict[int, float | None] = {}

    def _deadline(self, ssn: Session, job: int) -> float | None:
        """When the job has waited long enough; None where it may wait for ever."""
        if job not in self._deadlines:
            waiting = _own_waiting(ssn, job) or self.args.waiting
            self._deadlines[job] = None if waiting is None else float(ssn.jobs.created[job]) + waiting
        return self._deadlines[job]

    def job_order(self, ssn: Session, job: int) -> tuple[bool, float]:
        deadline = self._deadline(ssn, job)
        return (deadline is None, deadline or 0.0)

    def job_enqueueable(self, ssn: Session, job: int) -> Vote:
        deadline = self._deadline(ssn, job)
        return Vote.PERMIT if deadline is not None and ssn.now >= deadline else Vote.ABSTAIN

    job_pipelined = job_enqueueable

    def next_due(self, ssn: Session) -> Time | None:
        """The first deadline that is still to come."""
        return min((when for when in self._deadlines.values() if when is not None and when > ssn.now), default=None)


def _own_waiting(ssn: Session, job: int) -> float | None:
    group = ssn.jobs.group[job]
    if group is None:
        return None
    text = group.metadata.annotation(labels.SLA_WAITING_TIME)
    return _seconds(text if text is not None else group.metadata.annotation(labels.SLA_WAITING_TIME_OLD))


def _seconds(text: str | None) -> float | None:
    """A duration above zero, else None."""
    try:
        length = duration.seconds(text) if text else 0.0
    except InvalidObject:
        return None
    return length if length > 0 else None
