"""Bindings that wait: whose the pods' volumes are has been written, and somebody else has to bind the claims before the pods may
be bound. Meanwhile a pod's node and volumes are kept for it, and nobody stands still for that.

A gang starts whole: its members are held until enough of them have their claims, and given up together where that cannot be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from extender.api.meta import Key, Time
from extender.api.operations import Bind
from extender.core import status as st
from extender.core.mirror import Mirror
from extender.core.volumes.awaiting import NeverBound, all_bound

NOT_WHOLE = "its gang cannot start whole any more"


@dataclass(slots=True)
class _Gang:
    """Bindings of one PodGroup, by what has come of them."""

    done: list[Bind] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)  # uid of the pod -> why it is given up
    waiting: list[Bind] = field(default_factory=list)
    given_up: list[Bind] = field(default_factory=list)
    apart: int = 0  # members whose own binding was refused, and is tried again later


class Awaiting:
    """Whoever uses it holds the mirror's lock."""

    def __init__(self) -> None:
        self._until: dict[str, tuple[Bind, Time]] = {}  # uid of the pod -> its binding, and when it is given up

    def add(self, bind: Bind, now: Time) -> None:
        assert bind.awaits is not None
        self._until[bind.uid] = (bind, now + bind.awaits.seconds)

    def next_due(self) -> Time | None:
        """When the first of them is given up."""
        return min((until for _, until in self._until.values()), default=None)

    def over(self, mirror: Mirror, now: Time, refused: Iterable[Bind]) -> Iterator[tuple[Bind, str]]:
        """Those that wait no longer, with the reason where the pod cannot be bound so. A pod that is gone is forgotten.

        `refused`: bindings that the API server refused; those whose room is kept are tried again."""
        if not self._until:
            return
        for job, gang in self._gangs(mirror, now, refused).items():
            binds, why = gang.done, ""
            if job >= 0:
                ready = int(mirror.jobs.counts[job].dot(st.IS_READY)) - len(gang.given_up)
                least = int(mirror.jobs.min_available[job])
                if ready < least:
                    binds, why = [*gang.done, *gang.waiting], NOT_WHOLE
                elif ready - len(gang.waiting) - gang.apart < least:
                    binds = []
            for bind in (*gang.given_up, *binds):
                del self._until[bind.uid]
                yield bind, gang.lost.get(bind.uid, why)

    def _gangs(self, mirror: Mirror, now: Time, refused: Iterable[Bind]) -> dict[int, _Gang]:
        """By row of the job; pods without one under -1."""
        gangs: dict[int, _Gang] = defaultdict(_Gang)
        for uid, (bind, until) in list(self._until.items()):
            if not mirror.assumes(bind):
                del self._until[uid]
                continue
            gang = gangs[_job(mirror, bind.pod)]
            done, why = _standing(bind, until, mirror, now)
            if why:
                gang.lost[uid] = why
            (gang.given_up if why else gang.done if done else gang.waiting).append(bind)
        for bind in refused:
            job = _job(mirror, bind.pod)
            if job in gangs and bind.uid not in self._until and mirror.assumes(bind):
                gangs[job].apart += 1
        return gangs


def _job(mirror: Mirror, pod: Key) -> int:
    row = mirror.tasks.rows.get(pod)
    return int(mirror.tasks.job[row]) if row is not None else -1


def _standing(bind: Bind, until: Time, mirror: Mirror, now: Time) -> tuple[bool, str]:
    """Whether all its claims are bound, or why they will not be."""
    assert bind.awaits is not None
    node = mirror.nodes.node[mirror.nodes.rows[bind.node]]
    if node is None:
        return False, f"node {bind.node} is gone"
    try:
        done = all_bound(bind.awaits.claims, node, mirror.facts)
    except NeverBound as error:
        return False, str(error)
    late = not done and now >= until
    return done, f"its claims were not bound within {bind.awaits.seconds:.0f} s" if late else ""
