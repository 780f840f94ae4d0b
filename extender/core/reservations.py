"""Reservations: all that outlives a session. Given to a session and handed back changed.

First admission times and back-off of writes live here; node reservations of gangs join with the extender."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.api.meta import Time

_FIRST_DELAY, _MAX_DELAY = 1.0, 300.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Writes about a pod that failed in a row, and when it may be tried again."""

    failures: int
    until: Time


@dataclass(slots=True)
class Reservations:
    """`seen`: job uid -> when a session first met it (waiting time starts there). `failed`: pod uid -> its back-off."""

    seen: dict[str, Time] = field(default_factory=dict)
    failed: dict[str, Backoff] = field(default_factory=dict)

    def write_failed(self, uid: str, now: Time) -> None:
        """The pod is left alone for 1 s, then 2 s, 4 s and so on, five minutes at most."""
        failures = self.failed[uid].failures + 1 if uid in self.failed else 1
        self.failed[uid] = Backoff(failures, now + min(_FIRST_DELAY * 2.0 ** min(failures - 1, 16), _MAX_DELAY))

    def forget(self, uid: str) -> None:
        """A write went well, or the pod is gone."""
        self.failed.pop(uid, None)

    def held(self, now: Time) -> frozenset[str]:
        """The uids of pods that are not to be tried yet."""
        return frozenset(uid for uid, backoff in self.failed.items() if backoff.until > now)

    def next_due(self, now: Time) -> Time | None:
        """When the first of them may be tried again."""
        return min((backoff.until for backoff in self.failed.values() if backoff.until > now), default=None)
