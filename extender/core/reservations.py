"""Reservations: all that outlives a session. Given to a session and handed back changed.

First admission times, back-off of writes, and the nodes that the extender keeps for gangs (gang_books.py)."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.api.meta import Key, Time
from extender.api.operations import Bind
from extender.core.dra.catalogue import Catalogue
from extender.core.gang_books import GangBooks

_FIRST_DELAY, _MAX_DELAY = 1.0, 60.0
_SAME = 8  # times that one and the same binding is tried


@dataclass(frozen=True, slots=True)
class Backoff:
    """Bindings of a pod that failed in a row; `until` then the room that the last one was to take stays booked for it."""

    failures: int
    until: Time
    failed: Bind
    again: bool  # the decision is still good: only the API server was in trouble


@dataclass(slots=True)
class Reservations:
    """`seen`: job uid -> when a session first met it (waiting time starts there). `failed`: pod uid -> its back-off.

    `devices` saves work only: every session would come to the same."""

    seen: dict[str, Time] = field(default_factory=dict)
    failed: dict[str, Backoff] = field(default_factory=dict)
    devices: Catalogue = field(default_factory=Catalogue)
    gangs: GangBooks = field(default_factory=GangBooks)
    pushed: dict[Key, set[Key]] = field(default_factory=dict)  # job -> more important ones that it has preempted

    def bind_failed(self, bind: Bind, now: Time, *, transient: bool) -> None:
        """The pod is left alone for 1 s, then 2 s, 4 s and so on, a minute at most; then the same binding is tried again, or
        a new one is decided on: where the refusal was about this one, or has gone on for too long."""
        failures = self.failed[bind.uid].failures + 1 if bind.uid in self.failed else 1
        delay = min(_FIRST_DELAY * 2.0 ** min(failures - 1, 16), _MAX_DELAY)
        self.failed[bind.uid] = Backoff(failures, now + delay, bind, transient and failures < _SAME)

    def settled(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        self.failed.pop(uid, None)

    def over(self, since: Time, now: Time) -> list[Backoff]:
        """Those that have ended between the two."""
        return [backoff for backoff in self.failed.values() if since < backoff.until <= now]

    def next_due(self, now: Time) -> Time | None:
        """When the next back-off ends."""
        return min((backoff.until for backoff in self.failed.values() if backoff.until > now), default=None)
