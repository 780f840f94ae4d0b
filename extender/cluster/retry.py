"""How often and how fast: a token bucket for requests, waits that double between attempts. Time comes from a Clock."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

from extender.cluster.clock import Clock


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits double from `first` to `longest`; each is shortened at random by up to `jitter` of it, lest all come at once."""

    first: float = 0.1
    longest: float = 30.0
    jitter: float = 0.5

    def wait(self, attempt: int, rng: random.Random) -> float:
        """Before attempt number `attempt` + 1; the first attempt is 0."""
        full = min(self.first * 2.0 ** min(attempt, 32), self.longest)
        return full * (1.0 - self.jitter * rng.random())


class TokenBucket:
    """At most `rate` requests a second in the long run and `burst` at once (--kube-api-qps, --kube-api-burst).

    `rate` 0 or less: no limit. Whoever comes too early sleeps; the order is that of arrival."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._rate, self._burst, self._clock = rate, max(burst, 1), clock
        self._lock = threading.Lock()
        self._free_at = 0.0  # when the bucket will be, or was, full

    def take(self) -> None:
        if self._rate <= 0:
            return
        with self._lock:
            now = self._clock.now()
            full_span = self._burst / self._rate
            self._free_at = max(self._free_at, now) + 1.0 / self._rate
            wait = self._free_at - now - full_span
        if wait > 0:
            self._clock.sleep(wait)
