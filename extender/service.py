"""The extender as it runs: what the watches bring in, the verbs, bindings written, all around one lock.

    watch > Intake > mirror > Extender.saw         one thread for each kind
    request > verb > answer                        the request's own thread; only a bind may wait, outside the lock
    survey > operations > apply                    one thread, once a period

Until every kind has been listed it answers that it is not ready: an Error where kube-scheduler reads one, else 503."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from extender.api import labels
from extender.api.errors import ClusterError, Conflict, InvalidObject, PluginError
from extender.api.meta import POD, Json, Key, Kind, Time, uid_of
from extender.api.operations import Bind, Emit, Operation, target
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder
from extender.cluster.first_queues import ensure_queues
from extender.cluster.logs import about
from extender.cluster.port import Cluster
from extender.core.conf import Conf
from extender.core.gang_books import TTL
from extender.core.mirror import Mirror
from extender.core.reservations import Reservations
from extender.intake import Intake, Ours
from extender.verbs import wire
from extender.verbs.answering import Extender, NotSeenYet, Turn, Verdict
from extender.verbs.survey import Survey

VERBS = ("filter", "prioritize", "bind", "preempt")
PROFILES = (labels.DEFAULT_SCHEDULER, "gang-scheduler")  # of manifests/kube-scheduler/configuration.yaml
NOT_SYNCED = "node cache not synced"
_BACKOFF = 2.0
_WRITES = 16  # bindings on their way to the API server at once, however large the gang that starts
_CATCH_UP = 1.0  # seconds that a verb waits for a pod which kube-scheduler knows already

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Settings:
    """`barrier`: seconds that a member waits for the rest of its gang; kube-scheduler's httpTimeout must be longer.
    `ttl`: seconds that a node is kept without anybody coming for it. `most_waiting`: binds that may wait at once."""

    scheduler_names: tuple[str, ...] = PROFILES
    default_queue: str = "default"
    barrier: float = 25.0
    ttl: float = TTL
    most_waiting: int = 960
    period: float = 1.0


class NotReady(Exception):
    """A verb whose answer has no field for errors cannot be answered now."""


@dataclass(frozen=True, slots=True)
class Reply:
    body: bytes
    outcome: str = "ok"  # for the metrics: ok, refused, error, not ready


@dataclass(slots=True, eq=False)
class _Gate:
    """`turned`: told when it is no more time to wait, one way or the other. `waiting`: how many do."""

    turned: threading.Condition
    waiting: int = 0


class Service:
    """Thread-safe. `start` may raise a ClusterError and be called again.

    `beside`: names of schedulers whose pods a loop places that shares `intake` and `reservations`; it also keeps PodGroups and
    queues telling the truth then. `hindrance` says why nothing may be answered though all lists are there; "": nothing."""

    def __init__(self, cluster: Cluster, conf: Conf, clock: Clock, settings: Settings | None = None, *,
                 ours: Ours | None = None, beside: Iterable[str] = (),
                 hindrance: Callable[[], str] = lambda: "") -> None:  # fmt: skip
        self.settings = settings or Settings()
        self.hindrance = hindrance
        self._cluster, self._clock = cluster, clock
        mirror = Mirror(beside, self.settings.default_queue, brought=self.settings.scheduler_names)
        self.intake = Intake(cluster, mirror, conf.kinds, ours=ours)
        self._lock = self.intake.lock
        self._gates: dict[Key, _Gate] = {}  # gang -> where its members wait, for as long as any does
        self.reservations = Reservations()
        self.reservations.gangs.ttl = self.settings.ttl
        self.extender = Extender(mirror, conf, self.reservations, most_waiting=self.settings.most_waiting)
        self.intake.listeners.append(self._saw)
        self._survey = Survey(self.extender, alone=not mirror.scheduler_names)
        self._events = EventRecorder(clock, "pumice-extender")
        self._writing = threading.BoundedSemaphore(_WRITES)
        self._stop = threading.Event()
        self._begun = False

    # --- one after the other, for whoever has a single thread -------------------------------------------------------------

    def start(self) -> None:
        """Make the queues root and default where they are missing, then take in the list of every kind."""
        ensure_queues(self._cluster, self.settings.default_queue)
        self.feed()

    def feed(self) -> None:
        """Take in what the watches have brought."""
        self.intake.feed()

    def survey(self) -> None:
        """Write what has changed about PodGroups and queues, and wake whom kube-scheduler has forgotten."""
        self.intake.look_again()
        with self._locked() as now:
            if self.why_not() or not self._survey.due():
                return
            operations = self._survey.take(now)
        apply(self._cluster, operations, clock=self._clock, on_failure=self._write_failed, events=self._events)

    def lagging(self) -> list[Kind]:
        """Kinds whose list has not come yet."""
        return self.intake.lagging()

    def begin(self) -> None:
        """Before the first decision: gangs that were started in part get what they lack. Nothing before the lists are there."""
        if not self._begun and not self.lagging():
            with self._locked() as now:
                self.extender.complete(now)
                self._begun = True

    def why_not(self) -> str:
        """Why nothing can be answered now; "" where it can."""
        if self.lagging() or self._stop.is_set():
            return NOT_SYNCED
        return self.hindrance()

    # --- all at once ------------------------------------------------------------------------------------------------------

    def run(self, stop: threading.Event, each_period: Callable[[], None] = lambda: None) -> None:
        """Work until `stop` is set; then those that wait are told to ask again."""
        self._prepare(stop)
        while not stop.is_set():
            self.intake.follow(stop)
            self.intake.check()
            each_period()
            try:
                self.survey()
            except ClusterError as error:
                log.warning("the API server does not answer as it should", extra=about(error=str(error)))
            except PluginError as error:
                _blame(error)
            stop.wait(self.settings.period)
        self.close()

    def use(self, conf: Conf) -> None:
        """Another configuration from now on. Kinds that only it asks for are followed as well."""
        self.intake.add(conf.kinds)
        with self._lock:
            self.extender.conf = conf

    def close(self) -> None:
        """Whoever waits is sent home, the watches end."""
        self._stop.set()
        with self._lock:
            for gate in self._gates.values():
                gate.turned.notify_all()
        self.intake.close()

    def _prepare(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                ensure_queues(self._cluster, self.settings.default_queue)
                return
            except ClusterError as error:
                log.warning("the API server does not answer as it should", extra=about(error=str(error)))
                stop.wait(_BACKOFF)

    def _saw(self, kind: Kind, event: str, obj: Json) -> None:
        """The intake has the lock."""
        self.extender.saw(kind, event, obj)
        self._wake_turned()

    @contextmanager
    def _locked(self) -> Iterator[Time]:
        """Under the lock, with the time; those whose gang has turned are woken at the end."""
        with self._lock:
            try:
                yield self._clock.now()
            finally:
                self._wake_turned()

    def _wake_turned(self) -> None:
        turned = self.extender.books.turned
        for gang in turned & self._gates.keys():
            self._gates[gang].turned.notify_all()
        turned.clear()

    # --- the verbs ----------------------------------------------------------------------------------------------------------

    def answer(self, verb: str, body: bytes) -> Reply:
        """What kube-scheduler is told. Raises InvalidObject for a body that cannot be read, NotReady."""
        why_not = self.why_not()
        if why_not:
            if verb in ("filter", "bind"):  # where kube-scheduler reads an Error it reads it of a 200 only
                return Reply(wire.failed(why_not), "not ready")
            raise NotReady(why_not)
        try:
            self.begin()
            match verb:
                case "filter":
                    return self._filter(body)
                case "prioritize":
                    asked = wire.read_args(body)
                    with self._locked() as now:
                        scores = self.extender.prioritize(asked, now)
                    return Reply(wire.prioritized(asked.names, scores))
                case "preempt":
                    request = wire.read_preemption(body)
                    victims = self._caught_up(lambda now: self.extender.preempt(request, now))
                    return Reply(wire.preempted(victims), "ok" if victims else "refused")
                case _:
                    error = self._bind(wire.read_binding(body))
                    return Reply(wire.failed(error), "error" if error else "ok")
        except NotSeenYet as error:
            if verb == "preempt":
                return Reply(wire.preempted({}), "refused")
            return Reply(wire.failed(str(error)), "error")
        except PluginError as error:
            _blame(error)
            if verb in ("filter", "bind"):
                return Reply(wire.failed(f"a plugin failed: {error}"), "error")
            raise NotReady(f"a plugin failed: {error}") from None

    def _filter(self, body: bytes) -> Reply:
        asked = wire.read_args(body)
        result = self._caught_up(lambda now: self.extender.filter(asked, now))
        outcome = "error" if result.error else "ok" if result.names else "refused"
        return Reply(wire.filtered(asked, result), outcome)

    def _caught_up(self, ask: Callable[[Time], T]) -> T:
        """The verb's answer; a pod that kube-scheduler knows before us is given a moment to arrive. Raises NotSeenYet."""
        late = time.monotonic() + _CATCH_UP
        while True:
            with self._locked() as now:
                try:
                    return ask(now)
                except NotSeenYet:
                    left = late - time.monotonic()
                    if left <= 0 or not self.intake.arrived.wait(left):
                        raise

    def _bind(self, asked: wire.Binding) -> str:
        """Why the pod is not bound; empty where it is."""
        verdict = self._caught_up(lambda now: self.extender.ask_to_bind(asked, now))
        if verdict.turn is Turn.WAIT:
            verdict = self._wait(verdict.bind)
        if verdict.turn is not Turn.GO:
            return verdict.error
        bind = verdict.bind
        try:
            self._write(bind)
        except ClusterError as error:
            with self._locked():
                self.extender.bind_failed(bind, error)
            return f"binding {bind.pod} to {bind.node}: {error}"
        with self._locked():
            self.extender.bound(bind)
        return ""

    def _wait(self, bind: Bind) -> Verdict:
        """For the gang, at most as long as the barrier; the wait of one that ends without it ends that of all."""
        with self._locked() as now:
            found = self.extender.books.find(bind.uid)
            if found is None:
                return self.extender.turn(bind)
            gang = found[0].gang
            gate = self._gates.setdefault(gang, _Gate(threading.Condition(self._lock)))
            gate.waiting += 1
            late = now + self.settings.barrier
            try:
                while (verdict := self.extender.turn(bind)).turn is Turn.WAIT:
                    left = late - self._clock.now()
                    if left <= 0 or self._stop.is_set():
                        self.extender.give_up(bind)
                        gate.turned.notify_all()
                    else:
                        gate.turned.wait(left)
                return verdict
            finally:
                gate.waiting -= 1
                if not gate.waiting:
                    del self._gates[gang]

    def _write(self, bind: Bind) -> None:
        """A pod that is on this very node already is bound, whoever did it."""
        with self._writing:
            try:
                self._cluster.bind(bind.pod, bind.node, uid=bind.uid)
            except Conflict:
                pod = self._cluster.get(POD, bind.pod)
                if pod["spec"].get("nodeName") != bind.node or (bind.uid and uid_of(pod) != bind.uid):
                    raise

    # --- writes that failed -------------------------------------------------------------------------------------------------

    def _write_failed(self, operation: Operation, error: ClusterError) -> None:
        if isinstance(operation, Emit):
            return
        kind, key = target(operation)
        log.warning("a write was refused", extra=about(kind=kind, object=key, error=str(error)))
        self.intake.doubt(kind, key)

    # --- for people -----------------------------------------------------------------------------------------------------------

    def explain(self, group: str) -> dict[str, Any] | None:
        """Why a gang waits; None where there is no such gang. Raises InvalidObject."""
        namespace, slash, name = group.partition("/")
        if not slash or not namespace or not name:
            raise InvalidObject("must be namespace/name", path="group")
        with self._locked() as now:
            return self.extender.explain(Key(namespace, name), now)


def _blame(error: PluginError) -> None:
    log.error("nothing is decided: a plugin failed", extra=about(error=str(error)))


def unready(service: Service) -> Callable[[], str | None]:
    """A check for /readyz."""

    def check() -> str | None:
        missing: Iterable[Kind] = service.lagging()
        return f"not listed yet: {', '.join(kind.plural for kind in missing)}" if missing else service.why_not() or None

    return check
