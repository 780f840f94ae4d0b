"""Clocks: the only source of time outside the core. No other module reads the time of day."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from extender.api.meta import Time


class Clock(Protocol):
    def now(self) -> Time:
        """Seconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Return when that much time has passed on this clock."""


class SystemClock:
    """The machine's clock, but it never goes back: where that is set back, this one goes on at half its pace until the other
    has caught up. So whoever waits for a time of its own waits twice as long at most, not until an hour has come again."""

    def __init__(self, wall: Callable[[], Time] = time.time, steady: Callable[[], Time] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._shown, self._at = wall(), steady()

    def now(self) -> Time:
        with self._lock:
            at = self._steady()
            self._shown = max(self._wall(), self._shown + (at - self._at) / 2)
            self._at = at
            return self._shown

    def sleep(self, seconds: float) -> None:
        time.sleep(max(seconds, 0.0))


class SteadyClock:
    """The machine's clock as it was at the start, going on evenly from there whatever is done to it: for what must not
    be fooled by a clock that is set. Source of steps: time.monotonic."""

    def __init__(self) -> None:
        self._ahead = time.time() - time.monotonic()

    def now(self) -> Time:
        return self._ahead + time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(max(seconds, 0.0))


class VirtualClock:
    """A clock that stands still until it is told to go on: `sleep` returns at once, having moved it."""

    def __init__(self, start: Time = 0.0) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> Time:
        with self._lock:
            return self._now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._now += max(seconds, 0.0)

    def advance_to(self, when: Time) -> None:
        """Move on to `when`; never back."""
        with self._lock:
            self._now = max(self._now, when)
