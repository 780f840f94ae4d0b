"""Random histories: kube-scheduler as we play it, pods and nodes that come and go, news that come late, time that passes.

Whatever the order, no gang is ever started in part, no node and no queue holds more than it may, and in the end all have run.
The same beside a loop that places gangs of its own on the same nodes, from the same queues."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as some
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from extender.actions import ACTIONS
from extender.api import labels
from extender.api.errors import NotFound
from extender.api.meta import NODE, POD, POD_GROUP, QUEUE, Json, Key, annotations_of, key_of
from extender.api.operations import Bind
from extender.api.pod import Pod
from extender.api.views import view
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.core import conf
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.service import Service, Settings
from extender.testing.builders import node, pod, podgroup, queue, task
from extender.verbs.answering import NotSeenYet, Turn
from extender.verbs.wire import Asked, Binding
from tests.extending.world import member

CPU, MOST_NODES = 4, 6
LOOPS = "v"  # how names of gangs begin that the loop places
LIMIT = 6  # cpu that queue `small` may have
BARRIER = 25.0
CONF = conf.load(conf.DEFAULT, PLUGINS, ACTIONS)


def asks(obj: Json) -> int:
    return int(obj["spec"]["containers"][0]["resources"]["requests"].get("cpu", 0))


def ended(obj: Json) -> bool:
    return obj["status"].get("phase") in ("Succeeded", "Failed")


@dataclass
class Waiting:
    """A bind whose answer has not come yet."""

    bind: Bind
    until: float


@dataclass
class KubeScheduler:
    """The part of kube-scheduler that matters: what it assumes, its own check for room, its calls, one pod at a time."""

    cluster: MemoryCluster
    service: Service
    assumed: dict[str, str] = field(default_factory=dict)  # pod uid -> node
    chosen: list[Binding] = field(default_factory=list)  # binds that are on their way to us
    waiting: list[Waiting] = field(default_factory=list)

    def pods(self) -> list[Json]:
        return self.cluster.list(POD).objects

    def free(self) -> dict[str, int]:
        room = {key_of(each).name: CPU for each in self.cluster.list(NODE).objects}
        for each in self.pods():
            on = each["spec"].get("nodeName") or self.assumed.get(each["metadata"]["uid"], "")
            if on in room and not ended(each):
                room[on] -= asks(each)
        return room

    def pending(self) -> list[Json]:
        """Pods that kube-scheduler is to place."""
        return [each for each in self.pods() if each["spec"]["schedulerName"] == labels.DEFAULT_SCHEDULER
                and not each["spec"].get("nodeName") and each["metadata"]["uid"] not in self.assumed]  # fmt: skip

    def schedule(self, obj: Json) -> None:
        names = [name for name, free in self.free().items() if free >= asks(obj)]
        if not names:
            return
        extender, now = self.service.extender, self.cluster.clock.now()
        try:
            found = extender.filter(Asked(view(Pod, obj), names), now)
        except NotSeenYet:
            return
        assert set(found.names) <= set(names)
        assert found.names or found.error or set(names) == {*found.curable, *found.hopeless}
        if found.error or not found.names:
            return
        uid, on = obj["metadata"]["uid"], found.names[0]
        self.assumed[uid] = on
        self.chosen.append(Binding(key_of(obj), uid, on))

    def ask(self) -> None:
        """The binds arrive."""
        chosen, self.chosen = self.chosen, []
        for asked in chosen:
            try:
                verdict = self.service.extender.ask_to_bind(asked, self.cluster.clock.now())
            except NotSeenYet:
                del self.assumed[asked.uid]
                continue
            if verdict.turn is Turn.NO:
                del self.assumed[asked.uid]
            else:
                self.waiting.append(Waiting(verdict.bind, self.cluster.clock.now() + BARRIER))
        self.hear()

    def hear(self) -> None:
        """Answers that are there by now; those that have waited too long give up first."""
        now, extender = self.cluster.clock.now(), self.service.extender
        for each in self.waiting:
            if each.until <= now and extender.turn(each.bind).turn is Turn.WAIT:
                extender.give_up(each.bind)
        still = []
        for each in self.waiting:
            foreign = extender.books.find(each.bind.uid) is None and self._foreign(each.bind)
            turn = Turn.GO if foreign else extender.turn(each.bind).turn
            if turn is Turn.WAIT:
                still.append(each)
                continue
            self.assumed.pop(each.bind.uid, None)
            if turn is Turn.GO:
                self._bind(each.bind)
        self.waiting = still

    def _foreign(self, bind: Bind) -> bool:
        task = self.service.extender.mirror.tasks.rows.get(bind.pod)
        known = self.service.extender.mirror.tasks.pod[task] if task is not None else None
        return known is None or not known.group

    def _bind(self, bind: Bind) -> None:
        try:
            self.cluster.bind(bind.pod, bind.node, uid=bind.uid)
        except NotFound as error:
            self.service.extender.bind_failed(bind, error)
        else:
            self.service.extender.bound(bind)


class Histories(RuleBasedStateMachine):
    gangs = Bundle("gangs")

    @initialize(count=some.integers(1, 3))
    def begin(self, count: int) -> None:
        self.clock = VirtualClock(1000.0)
        self.cluster = MemoryCluster(self.clock)
        self.cluster.load([queue("root"), queue(), queue("small").capability(cpu=LIMIT)])
        self.numbers = itertools.count()
        self.sizes: dict[str, int] = {}
        self.disturbed: set[str] = set()  # gangs that lost something that was theirs
        self._start()
        for _ in range(count):
            self.node_comes()
        self.news()

    def _start(self) -> None:
        self.service = Service(self.cluster, CONF, self.clock, Settings(barrier=BARRIER))
        self.kube = KubeScheduler(self.cluster, self.service)

    # --- what happens -------------------------------------------------------------------------------------------------

    @rule(target=gangs, size=some.integers(1, 5), more=some.integers(0, 2), small=some.booleans())
    def gang_comes(self, size: int, more: int, small: bool) -> str:
        return self._gang_comes(f"g{next(self.numbers)}", size, more, small)

    def _gang_comes(self, name: str, size: int, more: int, small: bool) -> str:
        self.sizes[name] = size
        group = podgroup(name).members(size).queue("small" if small else "default")
        self.cluster.create(POD_GROUP, group)
        for i in range(size + more):
            self._create(f"{name}-{i}", name)
        return name

    def _create(self, name: str, gang: str) -> None:
        self.cluster.create(POD, (task if gang.startswith(LOOPS) else member)(name, gang).cpu(1))

    @rule(cpu=some.integers(0, CPU))
    def foreign_pod_comes(self, cpu: int) -> None:
        self.cluster.create(POD, pod(f"x{next(self.numbers)}").cpu(cpu))

    @rule(which=some.integers(0, 50))
    def kube_scheduler_takes_a_pod(self, which: int) -> None:
        """It does not wait for the bind."""
        pending = self.kube.pending()
        if pending:
            self.kube.schedule(pending[which % len(pending)])

    @rule()
    def binds_arrive(self) -> None:
        self.kube.ask()

    @rule()
    def kube_scheduler_takes_all(self) -> None:
        for obj in self.kube.pending():
            self.kube.schedule(obj)
            self.kube.ask()

    @rule()
    def news(self) -> None:
        """The watches bring what has happened."""
        self.service.feed()
        self.kube.hear()

    @rule(seconds=some.sampled_from([1, 10, 40]))
    def time_passes(self, seconds: int) -> None:
        self.clock.sleep(seconds)
        self.service.feed()
        self.service.survey()
        self.kube.ask()

    @rule(gang=gangs, i=some.integers(0, 6), again=some.booleans())
    def member_is_deleted(self, gang: str, i: int, again: bool) -> None:
        try:
            self.cluster.delete(POD, Key("default", f"{gang}-{i}"), grace_seconds=0)
        except NotFound:
            return
        self.disturbed.add(gang)
        if again:
            self._create(f"{gang}-{i}", gang)

    @rule(gang=gangs)
    def minimum_is_raised(self, gang: str) -> None:
        """While members may have been given nodes already, before any of them has been bound; never to more than a queue may
        hold, so that in the end all can run."""
        members = self._members(gang)
        if len(members) > self.sizes[gang] < LIMIT and not any(each["spec"].get("nodeName") for each in members):
            self.sizes[gang] += 1
            self.cluster.patch(POD_GROUP, Key("default", gang), {"spec": {"minMember": self.sizes[gang]}})
            self.news()

    @rule(gang=gangs)
    def group_is_made_again(self, gang: str) -> None:
        """Its members stay."""
        key = Key("default", gang)
        spec = self.cluster.get(POD_GROUP, key)["spec"]
        self.cluster.delete(POD_GROUP, key)
        self.news()
        self.cluster.create(POD_GROUP, podgroup(gang).members(spec["minMember"]).queue(spec["queue"]))

    @rule(name=some.sampled_from(["default", "small"]), state=some.sampled_from(["Open", "Closed"]))
    def queue_is(self, name: str, state: str) -> None:
        self.cluster.patch(QUEUE, Key("", name), {"status": {"state": state}}, subresource="status")

    @rule(gang=gangs)
    def gang_ends(self, gang: str) -> None:
        """If all of its members have a node."""
        pods = self._members(gang)
        if all(each["spec"].get("nodeName") for each in pods):
            self._end(pods)

    def _end(self, pods: list[Json]) -> None:
        for each in pods:
            self.cluster.patch(POD, key_of(each), {"status": {"phase": "Succeeded"}}, subresource="status")

    @rule()
    def node_comes(self) -> None:
        if len(self.cluster.list(NODE).objects) < MOST_NODES:
            self.cluster.create(NODE, node(f"n{next(self.numbers)}").cpu(CPU))

    @rule(which=some.integers(0, 5))
    def node_goes(self, which: int) -> None:
        """And its pods with it."""
        nodes = self.cluster.list(NODE).objects
        if len(nodes) < 2:
            return
        name = key_of(nodes[which % len(nodes)]).name
        self.cluster.delete(NODE, Key("", name))
        for each in self.kube.pods():
            if each["spec"].get("nodeName") == name:
                self.disturbed.add(annotations_of(each).get(labels.GROUP_NAME, ""))
                self.cluster.delete(POD, key_of(each), grace_seconds=0)

    @rule()
    def extender_restarts(self) -> None:
        """All that it kept in memory is gone; binds that waited have failed."""
        self.service.close()
        self._start()
        self.service.feed()
        self.service.begin()

    # --- what must hold -----------------------------------------------------------------------------------------------

    def _members(self, gang: str) -> list[Json]:
        return [each for each in self.kube.pods() if annotations_of(each).get(labels.GROUP_NAME) == gang]

    @invariant()
    def no_gang_is_started_in_part(self) -> None:
        on_nodes = Counter(annotations_of(each).get(labels.GROUP_NAME, "") for each in self.kube.pods()
                           if each["spec"].get("nodeName"))  # fmt: skip
        parts = {gang: n for gang, n in on_nodes.items() if gang and gang not in self.disturbed and n < self.sizes[gang]}
        assert not parts

    @invariant()
    def no_node_has_more_than_it_can(self) -> None:
        assert all(free >= 0 for free in self.kube.free().values())

    @invariant()
    def no_queue_has_more_than_it_may(self) -> None:
        small = {key_of(each).name for each in self.cluster.list(POD_GROUP).objects if each["spec"]["queue"] == "small"}
        held = sum(asks(each) for each in self.kube.pods() if each["spec"].get("nodeName") and not ended(each)
                   and annotations_of(each).get(labels.GROUP_NAME) in small)  # fmt: skip
        assert held <= LIMIT

    def teardown(self) -> None:
        """Nothing is lost: where whatever runs ends after a while, every gang that has its members, and room, has run."""
        if not hasattr(self, "kube"):
            return
        for name in ("default", "small"):
            self.queue_is(name, "Open")
        while len(self.cluster.list(NODE).objects) < MOST_NODES:  # so that each queue deserves room for the largest gang
            self.node_comes()
        for _ in range(40):
            if not any(self._could_run(each) for each in self._pending()):
                break
            self._end([each for each in self.kube.pods() if each["spec"].get("nodeName") and not ended(each)])
            self.time_passes(10)
            self.kube_scheduler_takes_all()
            self.news()
        left = [key_of(each).name for each in self._pending() if self._could_run(each)]
        self.service.close()
        assert not left

    def _pending(self) -> list[Json]:
        return [each for each in self.kube.pods() if not each["spec"].get("nodeName")]

    def _could_run(self, obj: Json) -> bool:
        gang = annotations_of(obj).get(labels.GROUP_NAME)
        return gang is None or len(self._members(gang)) >= self.sizes[gang]


class Beside(Histories):
    """With a loop that shares the extender's books."""

    def _start(self) -> None:
        self.service = Service(self.cluster, CONF, self.clock, Settings(barrier=BARRIER), beside=["volcano"])
        self.loop = Loop(self.cluster, CONF, self.clock, intake=self.service.intake, reservations=self.service.reservations)
        self.kube = KubeScheduler(self.cluster, self.service)

    @rule(target=Histories.gangs, size=some.integers(1, 5), more=some.integers(0, 2), small=some.booleans())
    def gang_of_the_loop_comes(self, size: int, more: int, small: bool) -> str:
        return self._gang_comes(f"{LOOPS}{next(self.numbers)}", size, more, small)

    @rule()
    def session(self) -> None:
        """On what the last news said."""
        if self.loop.due():
            self.service.begin()
            self.loop.cycle()

    @rule(target=Histories.gangs, cpu=some.integers(1, CPU), size=some.integers(1, CPU))
    def both_at_once(self, cpu: int, size: int) -> str:
        """A session between what kube-scheduler chooses and the binds that come of it."""
        self.foreign_pod_comes(cpu)
        gang = self._gang_comes(f"{LOOPS}{next(self.numbers)}", size, 0, False)
        self.news()
        for obj in self.kube.pending():
            self.kube.schedule(obj)
        self.session()
        self.kube.ask()
        return gang

    @rule(seconds=some.sampled_from([1, 10, 40]))
    def time_passes(self, seconds: int) -> None:
        super().time_passes(seconds)
        self.loop.feed()
        self.session()
        self.news()


@pytest.mark.parametrize("machine", [Histories, Beside])
def test_no_history_starts_a_gang_in_part(machine: type[Histories]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=25, stateful_step_count=30, deadline=None, derandomize=True,
                                     suppress_health_check=list(HealthCheck)),
    )  # fmt: skip
