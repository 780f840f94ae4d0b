"""Everything in one process on the embedded cluster: kubelets, Kubernetes' own controllers, ours, admission, the scheduler.

    local = Local(conf, VirtualClock(start))
    local.create(objects)                  # through admission, as `kubectl create` would; or local.load(objects), as found
    outcome = local.run("settled", on_cycle=print)

Time goes in whole seconds from the start. In each one the kubelets and all controllers work until nothing is left to do,
then comes one scheduling cycle, then they work again. On a virtual clock seconds in which nothing is due are jumped over; once
nothing will ever be due, the run has settled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from controller.manager import Manager
from controller.reconciler import Settings as ControllerSettings
from extender.api import queue
from extender.api.errors import PumiceError
from extender.api.labels import SCHEDULERS
from extender.api.meta import KINDS, QUEUE, Json, Key, Kind, Time, key_of, kind_of
from extender.api.operations import Evict
from extender.cluster.apply import apply
from extender.cluster.clock import Clock, VirtualClock
from extender.cluster.first_queues import first_queues
from extender.cluster.kubelet import Kubelet
from extender.cluster.memory import MemoryCluster
from extender.cluster.pod_history import PodHistory, PodSpan
from extender.cluster.port import Cluster
from extender.cluster.workloads import Workloads
from extender.core.conf import Conf
from extender.core.queue_use import queue_use
from extender.core.reasons import Waiting
from extender.loop import CarryOut, Cycle, Loop
from extender.service import Service
from extender.service import Settings as ExtenderSettings
from webhook.admission import WebhookAdmission
from webhook.settings import Settings as AdmissionSettings

SCHEDULER, CONTROLLERS, ADMISSION, EXTENDER = "scheduler", "controllers", "admission", "extender"
COMPONENTS = (SCHEDULER, CONTROLLERS, ADMISSION)  # what runs unless it is said otherwise
KNOWN = (*COMPONENTS, EXTENDER)
LIMIT = 30 * 86400.0  # seconds that a run goes on without settling
_ROUNDS = 10_000  # of work within one second; more means that components undo each other's work


class NotLoaded(PumiceError):
    """An object could not be loaded; `subject` names it, `object` is it and the cause says why."""

    def __init__(self, obj: Json, error: PumiceError) -> None:
        self.object = obj
        key = key_of(obj)
        self.subject = f"{obj.get('kind', 'object')} {key}".strip()
        super().__init__(f"{self.subject}: {error}")


class Restless(PumiceError):
    """Components go on writing within one and the same second."""


@dataclass(frozen=True, slots=True)
class QueueUse:
    """What the queues hold from `at` on: queue -> resource -> amount in the units of core/axis.py."""

    at: Time
    use: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Eviction:
    """The scheduler took a pod's node away at `at`. `reason`: the action that wanted it."""

    at: Time
    pod: Key
    uid: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a run ended. `ended`: "settled", "until", "limit", or a word of who asked early; times are seconds since the epoch."""

    ended: str
    started: Time
    now: Time
    cycles: int
    waiting: Sequence[Waiting]  # why each job that waits does so, as the last cycle saw it
    pods: Sequence[PodSpan]  # every pod that ever was, with its node and times, in order of creation
    queue_use: Sequence[QueueUse]
    evictions: Sequence[Eviction]
    objects: Mapping[Kind, Sequence[Json]] = field(repr=False)  # what is there at the end


class Local:
    """One embedded cluster and what runs on it. `view`: what each component sees of the cluster (tests put faults in between).

    `kubelet` may be replaced before the first second; `loop`, `manager`, `extender`: None where not wanted."""

    def __init__(
        self,
        conf: Conf,
        clock: Clock,
        *,
        components: Iterable[str] = COMPONENTS,
        scheduler_names: Sequence[str] = SCHEDULERS,
        controllers: ControllerSettings | None = None,
        admission: AdmissionSettings | None = None,
        seed: int = 0,
        view: Callable[[str, Cluster], Cluster] | None = None,
        carry_out: CarryOut = apply,
        kubelet: Callable[[Cluster, Clock], Kubelet] = Kubelet,
    ) -> None:
        self.conf, self.clock = conf, clock
        self.components = frozenset(components)
        self.cluster = MemoryCluster(clock, seed=seed)
        self.loop: Loop | None = None
        self.manager: Manager | None = None
        self.extender: Service | None = None
        self.queue_use: list[QueueUse] = []
        self.evictions: list[Eviction] = []
        self.cycles = 0
        self.started = clock.now()
        self._scheduler_names, self._seed, self._carry_out = tuple(scheduler_names), seed, carry_out
        self._controller_settings = controllers or ControllerSettings(scheduler_names=self._scheduler_names)
        self._seen_by = view if view is not None else _plainly
        self.history = PodHistory(self.cluster, clock)
        self.kubelet = kubelet(self.cluster, clock)
        self._workloads = Workloads(self.cluster, clock)
        self._observers: list[Callable[[Cycle], None]] = []
        self._begun = False
        if ADMISSION in self.components:
            self._admit(admission or AdmissionSettings(scheduler_names=self._scheduler_names))

    def _admit(self, settings: AdmissionSettings) -> None:
        cluster = self._seen_by(ADMISSION, self.cluster)
        self.cluster.admission = WebhookAdmission(
            cluster, settings, lambda operations: apply(cluster, operations, clock=self.clock)
        )

    # --- what is in the cluster -----------------------------------------------------------------------------------------

    def load(self, objects: Iterable[Json]) -> None:
        """Objects as they are found in a running cluster, status and uid included. Raises NotLoaded at the first fault."""
        for obj in objects:
            with _naming(obj):
                self.cluster.load([obj])

    def create(self, objects: Iterable[Json]) -> list[Json]:
        """Objects as people create them, through admission, in a cluster that runs. Raises NotLoaded at the first refused."""
        self._begin()
        made = []
        for obj in objects:
            with _naming(obj):
                made.append(self.cluster.create(kind_of(obj), obj))
            if made[-1]["kind"] == QUEUE.name:
                self.open_queues()  # only an open queue takes the jobs that follow
        return made

    def objects(self) -> dict[Kind, list[Json]]:
        """All that is there now."""
        return {kind: found for kind in KINDS if (found := self.cluster.list(kind).objects)}

    # --- the components -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the components. Done by the first second (or `create`) where nobody did."""
        self._begun = True
        self._ensure_queues()
        for component in (CONTROLLERS, SCHEDULER, EXTENDER):
            if component in self.components:
                self.restart(component)
        self.open_queues()

    def _begin(self) -> None:
        if not self._begun:
            self.start()

    def restart(self, component: str) -> None:
        """Stop the component, drop all that it holds in memory, start it anew."""
        cluster = self._seen_by(component, self.cluster)
        if component == SCHEDULER:
            if self.loop is not None:
                self.loop.close()
            self.loop = Loop(
                cluster, self.conf, self.clock, scheduler_names=self._scheduler_names, seed=self._seed, carry_out=self._carry_out
            )
            self.loop.observers.append(self._saw_cycle)
            self.loop.start()
        elif component == CONTROLLERS:
            self.manager = Manager(cluster, self.clock, self._controller_settings)
            self.manager.start()
        elif component == EXTENDER:
            if self.extender is not None:
                self.extender.close()
            settings = ExtenderSettings(barrier=0.0)  # while one request waits no other can come
            self.extender = Service(cluster, self.conf, self.clock, settings)
            self.extender.start()

    def _ensure_queues(self) -> None:
        """root and default are always there."""
        there = {key_of(obj).name for obj in self.cluster.list(QUEUE).objects}
        self.cluster.load(wanted for wanted in first_queues() if key_of(wanted).name not in there)

    def open_queues(self) -> None:
        """A queue without a state becomes Open: by the queue controller, or by us where there is none."""
        if CONTROLLERS in self.components:
            self.settle()
            return
        for obj in self.cluster.list(QUEUE).objects:
            if not (obj.get("status") or {}).get("state"):
                self.cluster.patch(QUEUE, Key("", key_of(obj).name), {"status": {"state": queue.OPEN}}, subresource="status")

    def _saw_cycle(self, cycle: Cycle) -> None:
        self.cycles += 1
        ssn = cycle.result.session
        names = ssn.axis.names
        use = {
            name: {names[i]: int(amount) for i, amount in enumerate(row) if amount}
            for name, row in zip(ssn.queues.name, queue_use(ssn), strict=True)
        }
        if not self.queue_use or self.queue_use[-1].use != use:
            self.queue_use.append(QueueUse(cycle.at, use))
        failed = {id(failure.operation) for failure in cycle.failures}
        self.evictions += [
            Eviction(cycle.at, each.pod, each.uid, each.reason)
            for each in cycle.result.operations
            if isinstance(each, Evict) and id(each) not in failed
        ]
        for observer in self._observers:
            observer(cycle)

    # --- time -----------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """All that happens in the present second: controllers, one cycle, controllers; the clock may move within it."""
        self._begin()
        self.settle()
        if self.loop is not None:
            self.loop.step()
            self.settle()
        elif self.extender is not None:
            self.extender.feed()
            self.extender.survey()
            self.settle()
        end = self._second() + 1.0
        due = self._parts_due()
        while due is not None and due < end:
            self._wait_until(due)
            self.settle()
            due = self._parts_due()

    def second(self) -> None:
        """One second: work, then wait for the next one."""
        end = self._second() + 1.0
        self.work()
        self._wait_until(end)

    def settle(self) -> None:
        """Kubelets and controllers work until none of them has anything left to do now."""
        for _ in range(_ROUNDS):
            changes = self.kubelet.tick() + self._workloads.reconcile() + self.cluster.settle()
            if self.manager is not None:
                changes += self.manager.step()
            if not changes:
                self.history.listen()
                return
        raise Restless(f"after {_ROUNDS} rounds of work the controllers still write: they undo each other's work")

    def next_due(self) -> Time | None:
        """The next whole second in which something is to be done; None where nothing can change any more."""
        dues: list[Time | None] = []
        if self.loop is not None:
            while self.loop.feed():  # it may bind pods that had to wait
                pass
            dues.append(self.clock.now() if self.loop.due() else self.loop.next_due())
        dues.append(self._parts_due())
        first = min((due for due in dues if due is not None), default=None)
        return None if first is None else self.started + math.ceil(round(first - self.started, 6))

    def run(
        self, until: float | str = "settled", *, on_cycle: Callable[[Cycle], None] | None = None, limit: float = LIMIT
    ) -> Outcome:
        """Go on until `until` seconds have passed since the start, or until nothing can change any more ("settled").

        `limit` ends a run that never settles (a CronJob, a pod that restarts for ever), in seconds since the start."""
        if on_cycle is not None:
            self._observers.append(on_cycle)
        end = self.started + (limit if isinstance(until, str) else until)
        ended = "limit" if isinstance(until, str) else "until"
        try:
            while self.clock.now() < end:
                self.work()
                due = self.next_due()
                if due is None:
                    if isinstance(until, str):
                        ended = "settled"
                        break
                    due = end
                self._wait_until(min(max(due, self._second() + 1.0), end))
        finally:
            if on_cycle is not None:
                self._observers.remove(on_cycle)
        return self.outcome(ended)

    def outcome(self, ended: str) -> Outcome:
        """What is known now; `ended` says why there is no more."""
        last = self.loop.last if self.loop is not None else None
        return Outcome(
            ended, self.started, self.clock.now(), self.cycles, last.result.waiting if last else (),
            self.history.spans(), tuple(self.queue_use), tuple(self.evictions), self.objects(),
        )  # fmt: skip

    def _second(self) -> Time:
        """The beginning of the present second."""
        return self.started + math.floor(self.clock.now() - self.started + 1e-6)

    def _parts_due(self) -> Time | None:
        parts: list[Time | None] = [self.kubelet.next_due()]
        if self.manager is not None:
            parts.append(self.manager.next_due())
        return min((due for due in parts if due is not None), default=None)

    def _wait_until(self, when: Time) -> None:
        if isinstance(self.clock, VirtualClock):
            self.clock.advance_to(when)
        else:
            self.clock.sleep(when - self.clock.now())


@contextmanager
def _naming(obj: Json) -> Iterator[None]:
    """Whatever goes wrong with the object is told with its name."""
    try:
        yield
    except PumiceError as error:
        raise NotLoaded(obj, error) from error


def _plainly(component: str, cluster: Cluster) -> Cluster:
    """A component sees the cluster as it is."""
    del component
    return cluster
