"""Leader election on a Lease: who holds it works, the others watch it and wait.

Nobody trusts another's clock: a lease has run out when *we* have seen no change of it for as long as it says, whatever time
is written in it. The holder gives up before that (renew deadline), so that two never work at once.
Source: k8s.io/client-go v0.36.1, tools/leaderelection. Difference: a holder that sees another one's name in the lease stops
at once instead of trying on to its deadline."""

from __future__ import annotations

import logging
import random
import socket
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from extender.api.errors import AlreadyExists, ClusterError, Conflict, NotFound
from extender.api.meta import LEASE, Json, Key, Time
from extender.cluster.clock import Clock
from extender.cluster.logs import about
from extender.cluster.port import Cluster

JITTER = 1.2  # candidates wait up to so much of the period more, so that they do not all try at once

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """Seconds; client-go's defaults."""

    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


def identity() -> str:
    """Of this process: `<host>_<uuid>`."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Election:
    """One candidate. Call `step` when it says; ask `holds` before every piece of work. Not thread-safe but for `holds`."""

    def __init__(self, cluster: Cluster, clock: Clock, lease: Key, who: str, terms: Terms | None = None,
                 rng: random.Random | None = None) -> None:  # fmt: skip
        self.lease, self.who, self.terms = lease, who, terms or Terms()
        self.holder = ""  # as the lease showed it last
        self.lost = False  # it was ours and is not any more: the process must end
        self._cluster, self._clock, self._rng = cluster, clock, rng or random.Random()
        self._seen: Json | None = None  # the lease as it was last seen
        self._changed: Time = 0.0  # when it was seen to change
        self._renewed: Time | None = None  # the beginning of our last successful renewal; None: not ours

    def holds(self) -> bool:
        """The lease is ours, and will be for the moment."""
        renewed = self._renewed
        return renewed is not None and not self.lost and self._clock.now() < renewed + self.terms.deadline

    def step(self) -> Time:
        """Try to get or to renew the lease; the time of the next attempt."""
        leading = self._renewed is not None
        if leading and not self.holds():
            self._lose("it could not be renewed in time")
        began = self._clock.now()
        if not self.lost:
            self._attempt(began, leading)
        jitter = 0.0 if self._renewed is not None else self._rng.random() * JITTER * self.terms.retry
        return began + self.terms.retry + jitter

    def _attempt(self, began: Time, leading: bool) -> None:
        try:
            ours = self._take_or_renew(began)
        except ClusterError as error:
            what = "the lease cannot be renewed" if leading else "the lease cannot be taken"
            log.warning(what, extra=about(lease=self.lease, error=str(error)))
            if leading and isinstance(error, (Conflict, NotFound)):
                self._seen = None  # look at it anew next time
            return
        if ours:
            self._renewed = began
            if not leading:
                log.info("leading", extra=about(lease=self.lease, identity=self.who))
        elif leading:
            self._lose(f"{self.holder or 'nobody'} holds it")

    def release(self) -> None:
        """Let others take it at once. What cannot be written is left to run out."""
        if self._renewed is None or self.lost:
            return
        self._renewed = None
        try:
            self._look(self._cluster.get(LEASE, self.lease), self._clock.now())
            if self.holder == self.who and self._seen is not None:
                self._cluster.update(LEASE, self._lease(self._clock.now(), ""))
                log.info("released", extra=about(lease=self.lease))
        except ClusterError as error:
            log.warning("the lease could not be released", extra=about(lease=self.lease, error=str(error)))

    def _take_or_renew(self, now: Time) -> bool:
        """Whether it is ours now. Raises ClusterError."""
        if self._renewed is None or self._seen is None:
            try:
                self._look(self._cluster.get(LEASE, self.lease), now)
            except NotFound:
                return self._create(now)
        if self._taken(now):
            return False
        try:
            self._look(self._cluster.update(LEASE, self._lease(now, self.who)), now)
        except Conflict:
            if self._renewed is None:
                return False  # another candidate was quicker
            # Perhaps our own last write, whose answer was lost.
            self._look(self._cluster.get(LEASE, self.lease), now)
            if self._taken(now):
                return False
            self._look(self._cluster.update(LEASE, self._lease(now, self.who)), now)
        return True

    def _taken(self, now: Time) -> bool:
        """Another one has it: for good where it was ours, else as long as it shows signs of life."""
        if self.holder in ("", self.who):
            return False
        return self._renewed is not None or now < self._changed + self._promised()

    def _create(self, now: Time) -> bool:
        self._seen, self.holder = None, ""
        try:
            self._look(self._cluster.create(LEASE, self._lease(now, self.who)), now)
        except AlreadyExists:
            return False  # another candidate was quicker
        return True

    def _look(self, lease: Json, now: Time) -> None:
        if self._seen is None or lease.get("spec") != self._seen.get("spec"):
            self._changed = now
        holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
        if holder != self.holder and holder not in ("", self.who):
            log.info("another one leads", extra=about(lease=self.lease, holder=holder))
        self._seen, self.holder = lease, holder

    def _promised(self) -> float:
        """How long the holder may be silent, in its own words."""
        spec = (self._seen or {}).get("spec") or {}
        return float(spec.get("leaseDurationSeconds") or self.terms.duration)

    def _lease(self, now: Time, holder: str) -> Json:
        """The lease as we want it; with the resourceVersion that was seen, so that only one of two writers succeeds.

        Without a holder it runs out at once."""
        before = (self._seen or {}).get("spec") or {}
        same = before.get("holderIdentity") == self.who
        spec = {
            **before,
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self.terms.duration)) if holder else 1,
            "acquireTime": before.get("acquireTime") if same else micro_time(now),
            "renewTime": micro_time(now),
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if same or self._seen is None else 1),
        }
        metadata = {"namespace": self.lease.namespace, "name": self.lease.name}
        return {"apiVersion": LEASE.api_version, "kind": LEASE.name,
                "metadata": {**metadata, **(self._seen["metadata"] if self._seen else {})}, "spec": spec}  # fmt: skip

    def _lose(self, why: str) -> None:
        self.lost = True
        log.error("the lease is lost", extra=about(lease=self.lease, why=why))


def micro_time(when: Time) -> str:
    """A metav1.MicroTime."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
