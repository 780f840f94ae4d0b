"""The frame of every daemon: pages up, lease taken, work done in a thread, a clean end.

SIGTERM, SIGINT     the work is told to stop and finishes what it has begun; the lease is released; status 0
a second one        the process ends at once, status 1
the lease is lost   the process ends at once, status 1: whatever it still did would be done twice
the work ends       by an error: status 1"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import NoReturn

from prometheus_client import Gauge

from extender.api.meta import Key
from extender.cluster.clock import Clock, SteadyClock
from extender.cluster.health import Health
from extender.cluster.kubernetes import KubernetesCluster, connect
from extender.cluster.lease import Election, Terms, identity
from extender.cluster.options import ClientOptions, LeaderOptions
from extender.cluster.port import Cluster
from extender.cluster.serving import HttpServer

GRACE = 25.0  # seconds to finish what was begun; pods are killed 30 s after SIGTERM
LEASE_SECONDS = 5.0  # that the server may take to answer about the lease: half of the usual deadline, as in client-go
_LOOK = 0.25  # seconds between two looks at the lease

log = logging.getLogger(__name__)

Work = Callable[[threading.Event], None]


class Daemon:
    """`work(stop)` runs in a thread, once the lease is ours, until `stop` is set. `signals`: what more to listen to."""

    def __init__(self, work: Work, election: Election | None = None, servers: Sequence[HttpServer] = (),
                 signals: Mapping[int, Callable[[], None]] | None = None, clock: Clock | None = None,
                 grace: float = GRACE) -> None:  # fmt: skip
        self.stop = threading.Event()
        self.leading = threading.Event()
        self._work, self._election, self._servers = work, election, servers
        self._signals, self._clock, self._grace = dict(signals or {}), clock or SteadyClock(), grace
        self._wake = threading.Event()  # something ended, or is to end
        self._failed = False

    def alive(self) -> str | None:
        """A check for /livez."""
        return "the work ended" if self._failed else None

    def stopping(self) -> str | None:
        """A check for /readyz."""
        return "shutting down" if self.stop.is_set() else None

    def works(self) -> bool:
        """Are we the one who works? For metrics."""
        return self.leading.is_set() and not self._lost()

    def show(self, health: Health, leader: Gauge) -> None:
        """On the pages of health, and in the metric of who leads."""
        health.alive["work"] = self.alive
        health.ready["shutdown"] = self.stopping
        leader.set_function(lambda: float(self.works()))

    def waits_for(self) -> str:
        """Who keeps us from working; "" where nobody does, or it is not known yet."""
        election = self._election
        if election is None or self.leading.is_set() or election.holder in ("", election.who):
            return ""
        return f"{election.holder} holds the lease {election.lease}"

    def listen(self) -> None:
        """Take the signals; from the main thread only."""
        for ending in (signal.SIGTERM, signal.SIGINT):
            signal.signal(ending, self._end)
        for number, act in self._signals.items():
            signal.signal(number, lambda *_, act=act: act())

    def _end(self, _: int, __: FrameType | None) -> None:
        if self.stop.is_set():
            os._exit(1)
        self.ask_to_stop()

    def ask_to_stop(self) -> None:
        self.stop.set()
        self._wake.set()

    def run(self) -> int:
        """The exit status. Where it is not 0 threads may still be at work: the caller ends the process."""
        electing = threading.Thread(target=self._guarded, args=("the election failed", self._elect), name="election", daemon=True)
        worker = threading.Thread(target=self._guarded, args=("the work failed", self._do), name="work", daemon=True)
        electing.start()
        worker.start()
        while not self._wake.wait(_LOOK):
            if self._lost():
                break
        if self._lost():
            log.error("leader election lost")
            return 1
        if self.stop.is_set():
            log.info("stopping")
        self.stop.set()
        worker.join(self._grace)
        if worker.is_alive():
            log.error("the work did not end in time")
            return 1
        electing.join(self._grace)
        if self._election is not None and not electing.is_alive():
            self._election.release()
        for server in self._servers:
            server.close()
        return 1 if self._failed else 0

    def _guarded(self, failure: str, act: Callable[[], None]) -> None:
        """Whatever ends a thread that should not have ended ends the process: nothing is left that could go on."""
        try:
            act()
        except BaseException:
            log.exception(failure)
            self._failed = True
            self._wake.set()

    def _lost(self) -> bool:
        return self._election is not None and self.leading.is_set() and not self._election.holds()

    def _elect(self) -> None:
        if self._election is None:
            self.leading.set()
            return
        while not self.stop.is_set() and not self._election.lost:
            due = self._election.step()
            if self._election.holds():
                self.leading.set()
            self.stop.wait(max(due - self._clock.now(), 0.0))

    def _do(self) -> None:
        while not self.leading.wait(_LOOK):
            if self.stop.is_set():
                return
        self._work(self.stop)
        self._failed = self._failed or not self.stop.is_set()
        self._wake.set()


def elect(options: LeaderOptions, lease: Key, cluster: Cluster) -> Election | None:
    """A candidate by the flags; None: whoever starts works."""
    if not options.leader_elect:
        return None
    terms = Terms(options.leader_elect_lease_duration, options.leader_elect_renew_deadline, options.leader_elect_retry_period)
    return Election(cluster, SteadyClock(), lease, identity(), terms)


def clients(options: ClientOptions, program: str) -> tuple[KubernetesCluster, KubernetesCluster]:
    """Two ways to the cluster: one for the work, and one for the lease, which never waits for the first and tries each
    request once, for the election has its own rhythm of attempts. Raises ConfError."""
    work = options.connect(program)
    lease = connect(options.kubeconfig, master=options.master, user_agent=f"{program}/leader-election", patience=0.0,
                    read_seconds=LEASE_SECONDS)  # fmt: skip
    return work, lease


def end(status: int) -> NoReturn:
    """End the process with whatever threads it still has; a clean end goes the ordinary way."""
    if status == 0:
        sys.exit(0)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)
