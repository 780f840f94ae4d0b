"""Reservations: all that outlives a session. Given to a session and handed back changed.

First admission times and back-off of writes live here; node reservations of gangs join with the extender."""

from __future__ import annotations

from dataclasses import dataclass, field

from extender.api.meta import Time


@dataclass(slots=True)
class Reservations:
    """`seen`: job uid -> when a session first met it (waiting time starts there)."""

    seen: dict[str, Time] = field(default_factory=dict)
