"""The standalone scheduler: watch, mirror, one session after the other, write what it decided.

    watch > mirror > snapshot > schedule > mirror.assume > apply, and mirror.forget where a write failed

The loop decides nothing itself. It never schedules before every kind has delivered its list, and it leaves a session out
where neither the cluster nor the time could have changed the last one's answer.

It may share mirror and reservations with the extender (service.py): then a session holds the intake's lock, and nothing else of
the loop does for longer than a moment; what was decided is written without it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from extender.api import queue
from extender.api.errors import ClusterError, Conflict, NotFound, TooManyRequests
from extender.api.labels import SCHEDULERS
from extender.api.meta import POD, Json, Kind, Time, uid_of
from extender.api.operations import Bind, Emit, Evict, Operation, PatchStatus
from extender.awaiting import Awaiting
from extender.cluster.apply import OnFailure, apply
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder
from extender.cluster.first_queues import ensure_queues
from extender.cluster.port import Cluster
from extender.core.conf import Conf
from extender.core.mirror import Mirror
from extender.core.reservations import Reservations
from extender.core.scheduling import Result, schedule
from extender.core.snapshot import Snapshot
from extender.intake import Intake, Ours

PERIOD = 1.0  # --schedule-period
_BACKOFF = 5.0  # seconds to wait where the API server does not answer


class Decide(Protocol):
    """Holds one session. Whoever measures or records sessions puts itself around `decide`."""

    def __call__(self, mirror: Mirror, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations) -> Result: ...


def decide(mirror: Mirror, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations) -> Result:
    """A snapshot and a session on it."""
    return schedule(Snapshot.build(mirror), conf, now, rng, reservations)


class CarryOut(Protocol):
    """Carries operations out and says which of them failed, at once or later, but always from the loop's own thread."""

    def __call__(
        self, cluster: Cluster, operations: Sequence[Operation], *, clock: Clock, on_failure: OnFailure, events: EventRecorder
    ) -> object: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """A write that the cluster refused."""

    operation: Operation
    error: ClusterError


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """What observers are told after each session. `failures` may still grow where writes are carried out later."""

    number: int
    at: Time
    result: Result
    failures: list[Failure] = field(default_factory=list)


class Loop:
    """`conf` may be replaced at any time; the next cycle uses it. `start` may raise a ClusterError and be called again.

    `ours`: by kind, the objects that are there for this scheduler (--node-selector); else all. `intake` and `reservations`:
    those of the extender, where both work on one mirror; it knows whose pods are ours then, and others feed it."""

    def __init__(
        self,
        cluster: Cluster,
        conf: Conf,
        clock: Clock,
        *,
        scheduler_names: Iterable[str] = SCHEDULERS,
        default_queue: str = queue.DEFAULT,
        seed: int = 0,
        decide: Decide = decide,
        carry_out: CarryOut = apply,
        ours: Ours | None = None,
        intake: Intake | None = None,
        reservations: Reservations | None = None,
    ) -> None:
        self.conf = conf
        self.observers: list[Callable[[Cycle], None]] = []
        self.last: Cycle | None = None
        names = tuple(scheduler_names)
        self._feeds = intake is None
        self.intake = intake or Intake(cluster, Mirror(names, default_queue), conf.kinds, ours=ours)
        self.intake.listeners.append(self._saw)
        self.mirror = self.intake.mirror
        self.reservations = reservations or Reservations()
        self._cluster, self._clock, self._decide, self._carry_out = cluster, clock, decide, carry_out
        self._default_queue = default_queue
        self._events = EventRecorder(clock, names[0] if len(names) == 1 else SCHEDULERS[0])
        self._rng = np.random.default_rng(seed)
        self._awaiting = Awaiting()
        self._tried = -math.inf  # until when back-offs that ended have been looked at
        self._seen = -1  # mirror.changes when the last session began
        self._conf_used: Conf | None = None

    # --- one after the other --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Make the queues root and default where they are missing, then wait for the list of every kind."""
        ensure_queues(self._cluster, self._default_queue)
        self.feed()

    def feed(self) -> int:
        """Take in what the watches have brought and what time has ended; the number of changes."""
        before = self.mirror.changes
        self._try_again()
        self.intake.look_again()
        if self._feeds:
            self.intake.add(self.conf.kinds)
            self.intake.feed()
        self._bind_those_that_waited()
        return self.mirror.changes - before

    def lagging(self) -> list[Kind]:
        """Kinds whose list has not come yet."""
        return self.intake.lagging()

    def due(self) -> bool:
        """Could a session decide anything that the last one did not? Feed first."""
        if self.lagging():
            return False
        if self.last is None or self.conf is not self._conf_used or self.mirror.changes != self._seen:
            return True
        retry = self.next_due()
        return retry is not None and retry <= self._clock.now()

    def next_due(self) -> Time | None:
        """When the passing of time alone makes a session worth while; None: only a change in the cluster does."""
        if self.last is None:
            return None
        ssn = self.last.result.session
        with self.intake.lock:
            at = [self.reservations.next_due(self.last.at), self._awaiting.next_due()]
            at += [plugin.next_due(ssn) for plugin in ssn.plugins]
        return min((when for when in at if when is not None), default=None)

    def cycle(self) -> Cycle:
        """One session, and its decisions carried out."""
        with self.intake.lock:
            now, seen, conf = self._clock.now(), self.mirror.changes, self.conf
            result = self._decide(self.mirror, conf, now, self._rng, self.reservations)
            self._seen, self._conf_used = seen, conf  # a session that came to nothing has seen nothing
            self.mirror.assume(result.operations)
        cycle = Cycle(self.last.number + 1 if self.last else 1, now, result)
        self.last = cycle

        def failed(operation: Operation, error: ClusterError) -> None:
            cycle.failures.append(Failure(operation, error))
            self._take_back(operation, error)

        self._write(result.operations, failed)
        for observer in self.observers:
            observer(cycle)
        return cycle

    def step(self) -> Cycle | None:
        """Feed, then a cycle if one is due."""
        self.feed()
        return self.cycle() if self.due() else None

    def run(self, stop: threading.Event, period: float = PERIOD) -> None:
        """Go on until `stop` is set. An API server that does not answer is asked again after a pause."""
        started = False
        while not stop.is_set():
            try:
                if not started:
                    self.start()
                    started = True
                self.step()
            except ClusterError:
                stop.wait(_BACKOFF)
            else:
                stop.wait(period)
        self.close()

    def close(self) -> None:
        self.intake.close()

    def _saw(self, kind: Kind, event: str, obj: Json) -> None:
        """Nothing can fail any more about a pod that has a node, or is gone."""
        if kind is POD and self.reservations.failed and (event == "DELETED" or (obj.get("spec") or {}).get("nodeName")):
            self.reservations.settled(uid_of(obj))

    # --- what failed ----------------------------------------------------------------------------------------------------

    def _take_back(self, operation: Operation, error: ClusterError) -> None:
        """A refused binding keeps its room while its pod is left alone, so that nobody breaks into a gang that has started."""
        match operation:
            case Bind(before=writes) if self._pending(operation):
                for write in writes:
                    self.intake.doubt(write.kind, write.key)
                transient = error.status >= 500 or isinstance(error, TooManyRequests)
                with self.intake.lock:
                    self.reservations.bind_failed(operation, self._clock.now(), transient=transient)
            case Bind(pod=pod) | Evict(pod=pod):
                self._forget(operation)
                self.intake.doubt(POD, pod)
            case PatchStatus(kind=kind, key=key):
                self.intake.doubt(kind, key)

    def _forget(self, operation: Operation) -> None:
        with self.intake.lock:
            self.mirror.forget(operation)

    def _pending(self, bind: Bind) -> bool:
        """Is the pod still there and without a node?"""
        try:
            pod = self._cluster.get(POD, bind.pod)
        except NotFound:
            return False
        except ClusterError:
            return True  # the API server is in trouble, not the pod
        return uid_of(pod) == bind.uid and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]

    def _try_again(self) -> None:
        """Bindings whose back-off is over: the same once more, or the pod is pending again."""
        now = self._clock.now()
        with self.intake.lock:
            over = self.reservations.over(self._tried, now)
        for backoff in over:
            bind = backoff.failed
            if not self.mirror.assumes(bind):
                continue
            if backoff.again and self.mirror.has_node(bind.node):
                self._write([bind], self._take_back)
            else:
                self._forget(bind)
        self._tried = now

    def _write(self, operations: Sequence[Operation], on_failure: OnFailure) -> None:
        refused: set[int] = set()

        def failed(operation: Operation, error: ClusterError) -> None:
            refused.add(id(operation))
            on_failure(operation, error)

        self._carry_out(self._cluster, operations, clock=self._clock, on_failure=failed, events=self._events)
        for bind in (each for each in operations if isinstance(each, Bind) and each.awaits and id(each) not in refused):
            with self.intake.lock:
                self._awaiting.add(bind, self._clock.now())

    def _bind_those_that_waited(self) -> None:
        """Pods whose claims have been bound by now; those for which that will not come to be are given up."""
        with self.intake.lock:
            refused = [backoff.failed for backoff in self.reservations.failed.values()]
            over = list(self._awaiting.over(self.mirror, self._clock.now(), refused))
        for bind, why in over:
            if why:
                self._give_up(bind, Conflict(f"binding volumes: {why}"))
                told = Emit(POD, bind.pod, "Warning", "FailedScheduling", f"binding volumes: {why}", bind.uid)
                self._write([told], lambda *_: None)
        self._write([replace(bind, before=(), awaits=None) for bind, why in over if not why], self._take_back)

    def _give_up(self, bind: Bind, error: Conflict) -> None:
        """A pod by itself is left alone for a while. Of a gang all are free at once: none starts beside one that is kept."""
        row = self.mirror.tasks.rows.get(bind.pod)
        job = int(self.mirror.tasks.job[row]) if row is not None else -1
        if job < 0 or self.mirror.jobs.min_available[job] <= 1:
            self._take_back(bind, error)
            return
        self._forget(bind)
        for write in bind.before:
            self.intake.doubt(write.kind, write.key)
