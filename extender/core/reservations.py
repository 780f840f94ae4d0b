"""Reservations: all that outlives a session. Given to a session and handed back changed.

First admission times and back-off of writes live here; node reservations of gangs join with the extender."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.api.meta import Time
from extender.api.operations import Bind

_FIRST_DELAY, _MAX_DELAY = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Bindings of a pod that failed in a row; `until` then the room that the last one was to take stays booked for it."""

    failures: int
    until: Time
    failed: Bind


@dataclass(slots=True)
class Reservations:
    """`seen`: job uid -> when a session first met it (waiting time starts there). `failed`: pod uid -> its back-off."""

    seen: dict[str, Time] = field(default_factory=dict)
    failed: dict[str, Backoff] = field(default_factory=dict)

    def bind_failed(self, bind: Bind, now: Time) -> None:
        """The pod is left alone for 1 s, then 2 s, 4 s and so on, a minute at most."""
        failures = self.failed[bind.uid].failures + 1 if bind.uid in self.failed else 1
        delay = min(_FIRST_DELAY * 2.0 ** min(failures - 1, 16), _MAX_DELAY)
        self.failed[bind.uid] = Backoff(failures, now + delay, bind)

    def settled(self, uid: str) -> None:
        """The pod has a node, or is gone."""
        self.failed.pop(uid, None)

    def over(self, since: Time, now: Time) -> list[Bind]:
        """Bindings whose back-off has ended between the two: their pods may be tried again."""
        return [backoff.failed for backoff in self.failed.values() if since < backoff.until <= now]

    def next_due(self, now: Time) -> Time | None:
        """When the next back-off ends."""
        return min((backoff.until for backoff in self.failed.values() if backoff.until > now), default=None)
