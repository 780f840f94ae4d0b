"""The standalone scheduler: watch, mirror, one session after the other, write what it decided.

    watch > mirror > snapshot > schedule > mirror.assume > apply, and mirror.forget where a write failed

The loop decides nothing itself. It never schedules before every kind has delivered its list, and it leaves a session out
where neither the cluster nor the time could have changed the last one's answer."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from extender.api import queue
from extender.api.errors import AlreadyExists, ClusterError, NotFound, TooManyRequests
from extender.api.meta import NODE, POD, QUEUE, Json, Key, Kind, Time, uid_of
from extender.api.operations import Bind, Evict, Operation, PatchStatus
from extender.cluster.apply import OnFailure, apply
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder
from extender.cluster.following import Follower
from extender.cluster.port import Cluster, WatchEvent
from extender.core.conf import Conf
from extender.core.mirror import FOLLOWED, Mirror
from extender.core.reservations import Reservations
from extender.core.scheduling import Result, schedule
from extender.core.snapshot import Snapshot

DEFAULT_SCHEDULERS = ("volcano",)
PERIOD = 1.0  # --schedule-period
_BACKOFF = 5.0  # seconds to wait where the API server does not answer
_QUEUES: tuple[tuple[str, Json], ...] = (
    (queue.ROOT, {"weight": 1, "reclaimable": False}),
    (queue.DEFAULT, {"weight": 1, "reclaimable": True}),
)


class Decide(Protocol):
    """Holds one session. Whoever measures or records sessions puts itself around `decide`."""

    def __call__(
        self, mirror: Mirror, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations
    ) -> Result: ...


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

    `our_node`: nodes of which it is not true are not there for this scheduler (--node-selector)."""

    def __init__(
        self,
        cluster: Cluster,
        conf: Conf,
        clock: Clock,
        *,
        scheduler_names: Iterable[str] = DEFAULT_SCHEDULERS,
        default_queue: str = queue.DEFAULT,
        seed: int = 0,
        decide: Decide = decide,
        carry_out: CarryOut = apply,
        our_node: Callable[[Json], bool] | None = None,
    ) -> None:
        self.conf = conf
        self.observers: list[Callable[[Cycle], None]] = []
        self.last: Cycle | None = None
        names = tuple(scheduler_names)
        self.mirror = Mirror(names, default_queue)
        self.reservations = Reservations()
        self._cluster, self._clock, self._decide, self._carry_out = cluster, clock, decide, carry_out
        self._our_node = our_node
        self._default_queue = default_queue
        self._events = EventRecorder(clock, names[0] if len(names) == 1 else DEFAULT_SCHEDULERS[0])
        self._followers = [Follower(cluster, kind) for kind in FOLLOWED]
        self._followers += [Follower(cluster, kind, optional=True) for kind in conf.kinds]
        self._rng = np.random.default_rng(seed)
        self._doubtful: dict[tuple[Kind, Key], None] = {}  # a write about it failed: what does it show now?
        self._tried = -math.inf  # until when back-offs that ended have been looked at
        self._seen = -1  # mirror.changes when the last session began
        self._conf_used: Conf | None = None

    # --- one after the other --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Make the queues root and default where they are missing, then wait for the list of every kind."""
        for name, spec in _QUEUES:
            self._ensure_queue(self._default_queue if name == queue.DEFAULT else name, spec)
        self.feed()

    def feed(self) -> int:
        """Take in what the watches have brought and what time has ended; the number of changes."""
        before = self.mirror.changes
        self._try_again()
        self._look_again()
        followed = {follower.kind for follower in self._followers}
        asked = (kind for kind in self.conf.kinds if kind not in followed)
        self._followers += [Follower(self._cluster, kind, optional=True) for kind in asked]
        for follower in self._followers:
            for event in follower.poll():
                if follower.kind is NODE and self._our_node is not None and not self._our_node(event.object):
                    self._turn_away(event)
                    continue
                self.mirror.apply(follower.kind, event.type, event.object)
                if follower.kind is POD and self.reservations.failed and _settled(event):
                    self.reservations.settled(uid_of(event.object))
        return self.mirror.changes - before

    def lagging(self) -> list[Kind]:
        """Kinds whose list has not come yet."""
        return [follower.kind for follower in self._followers if not follower.synced]

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
        at = [self.reservations.next_due(self.last.at), *(plugin.next_due(ssn) for plugin in ssn.plugins)]
        return min((when for when in at if when is not None), default=None)

    def cycle(self) -> Cycle:
        """One session, and its decisions carried out."""
        now = self._clock.now()
        self._seen, self._conf_used = self.mirror.changes, self.conf
        result = self._decide(self.mirror, self.conf, now, self._rng, self.reservations)
        cycle = Cycle(self.last.number + 1 if self.last else 1, now, result)
        self.last = cycle
        self.mirror.assume(result.operations)

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
        for follower in self._followers:
            follower.close()

    def _turn_away(self, event: WatchEvent) -> None:
        """A node that is not ours, or not any more."""
        if self.mirror.has_node(event.object["metadata"]["name"]):
            self.mirror.apply(NODE, "DELETED", event.object)

    # --- what failed ----------------------------------------------------------------------------------------------------

    def _take_back(self, operation: Operation, error: ClusterError) -> None:
        """A refused binding keeps its room while its pod is left alone, so that nobody breaks into a gang that has started."""
        match operation:
            case Bind(before=writes) if self._pending(operation):
                self._doubtful.update({(write.kind, write.key): None for write in writes})
                transient = error.status >= 500 or isinstance(error, TooManyRequests)
                self.reservations.bind_failed(operation, self._clock.now(), transient=transient)
            case Bind(pod=pod) | Evict(pod=pod):
                self.mirror.forget(operation)
                self._doubtful[POD, pod] = None
            case PatchStatus(kind=kind, key=key):
                self._doubtful[kind, key] = None

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
        for backoff in self.reservations.over(self._tried, now):
            bind = backoff.failed
            if not self.mirror.assumes(bind):
                continue
            if backoff.again and self.mirror.has_node(bind.node):
                self._write([bind], self._take_back)
            else:
                self.mirror.forget(bind)
        self._tried = now

    def _write(self, operations: Sequence[Operation], on_failure: OnFailure) -> None:
        self._carry_out(self._cluster, operations, clock=self._clock, on_failure=on_failure, events=self._events)

    def _look_again(self) -> None:
        """Read what was refused anew: the watch has nothing to tell about an object that did not change."""
        for kind, key in list(self._doubtful):
            try:
                self.mirror.apply(kind, "MODIFIED", self._cluster.get(kind, key))
            except NotFound:
                self.mirror.apply(kind, "DELETED", {"metadata": {"namespace": key.namespace, "name": key.name}})
            except ClusterError:
                continue  # next time
            del self._doubtful[kind, key]

    def _ensure_queue(self, name: str, spec: Json) -> None:
        try:
            self._cluster.get(QUEUE, Key("", name))
        except NotFound:
            obj = {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}, "spec": dict(spec)}
            try:
                self._cluster.create(QUEUE, obj)
            except AlreadyExists:
                return


def _settled(event: WatchEvent) -> bool:
    """Nothing can fail about the pod any more."""
    return event.type == "DELETED" or bool((event.object.get("spec") or {}).get("nodeName"))
