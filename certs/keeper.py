"""Certificates of a cluster looked after for as long as the process lives, and what probes are told of it."""

from __future__ import annotations

import logging
import threading

from certs.install import Place, keep
from extender.api.errors import ClusterError
from extender.api.meta import Time
from extender.cluster.clock import Clock
from extender.cluster.logs import about
from extender.cluster.port import Cluster

AGAIN = 60.0  # seconds, after a failure
LATE = 300.0  # seconds that one look may take

log = logging.getLogger(__name__)


class Keeper:
    """Looks every `interval` seconds. `external`: others keep the certificates, we tell whom to trust."""

    def __init__(self, cluster: Cluster, place: Place, clock: Clock, interval: float, *, external: bool = False) -> None:
        self._cluster, self._place, self._clock, self._interval, self._external = cluster, place, clock, interval, external
        self._due: Time | None = None  # of the next look; None: others have the lease
        self._failed = ""

    def run(self, stop: threading.Event) -> None:
        """Until `stop` is set. What fails is tried again soon."""
        while not stop.is_set():
            self._due = self._clock.now()
            pause = self._look()
            self._due = self._clock.now() + pause
            stop.wait(pause)

    def alive(self) -> str | None:
        """A check for /livez."""
        late = self._due is not None and self._clock.now() > self._due + LATE
        return "the loop stands still" if late else None

    def ready(self) -> str | None:
        """A check for /readyz: how the last look went."""
        return self._failed or None

    def _look(self) -> float:
        """Seconds until the next one."""
        try:
            keep(self._cluster, self._place, self._clock.now(), external=self._external)
        except ClusterError as error:
            log.warning("certificates could not be kept", extra=about(error=str(error)))
            self._failed = str(error)
            return min(AGAIN, self._interval)
        self._failed = ""
        return self._interval
