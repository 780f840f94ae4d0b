"""The standalone loop on the embedded cluster: what it writes, when it stays silent, what it does about refusals."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.api.errors import Unavailable
from extender.api.meta import NODE, POD, POD_GROUP, QUEUE, Json, Key, Kind
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.core.conf import Conf, load
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: gang
"""


class Flaky(MemoryCluster):
    """Refuses as many bindings and patches of groups as it is told to."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.refusals = 0
        self.asked: list[float] = []
        self.broken_groups = 0

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        if kind == POD_GROUP and self.broken_groups:
            self.broken_groups -= 1
            raise Unavailable("try again later")
        return super().patch(kind, key, patch, subresource=subresource, dry_run=dry_run)

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        self.asked.append(self.clock.now())
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("try again later")
        super().bind(pod, node, uid=uid, annotations=annotations)


def conf() -> Conf:
    return load(CONF, PLUGINS, ACTIONS)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1_000_000.0)


@pytest.fixture
def cluster(clock: VirtualClock) -> Flaky:
    cluster = Flaky(clock)
    cluster.load([queue(), node("n1").cpu(4).memory("8Gi"), podgroup("g"), task("g-0", "g").cpu(1)])
    return cluster


def node_of(cluster: MemoryCluster, pod: str) -> str:
    found: Json = cluster.get(POD, Key("default", pod))
    return str(found["spec"].get("nodeName", ""))


def test_it_binds(cluster: Flaky, clock: VirtualClock) -> None:
    """A pending pod of ours is bound in the first cycle."""
    loop = Loop(cluster, conf(), clock)
    loop.start()
    loop.step()
    assert node_of(cluster, "g-0") == "n1"


def test_it_makes_the_queues_it_needs(clock: VirtualClock) -> None:
    """root and the default queue are there after the start, as `--default-queue` names it."""
    cluster = MemoryCluster(clock)
    Loop(cluster, conf(), clock, default_queue="main").start()
    assert [q["metadata"]["name"] for q in cluster.list(QUEUE).objects] == ["main", "root"]


def test_nothing_is_written_when_nothing_changed(cluster: Flaky, clock: VirtualClock) -> None:
    """A cluster at rest sees no write and no session, even for a pod that waits."""
    cluster.load([podgroup("big").members(2), task("big-0", "big").cpu(9), task("big-1", "big").cpu(9)])
    loop = Loop(cluster, conf(), clock)
    loop.start()
    for _ in range(5):
        clock.sleep(1)
        loop.step()
    version = cluster.list(POD).resource_version
    clock.sleep(1)
    assert (loop.step(), cluster.list(POD).resource_version) == (None, version)


def test_a_refused_binding_is_tried_again_after_a_pause(cluster: Flaky, clock: VirtualClock) -> None:
    """The pod is left alone for the length of its back-off, which doubles."""
    cluster.refusals = 2
    loop = Loop(cluster, conf(), clock)
    loop.start()
    for _ in range(6):
        loop.step()
        clock.sleep(1)
    assert ([when - cluster.asked[0] for when in cluster.asked], node_of(cluster, "g-0")) == ([0, 1, 3], "n1")


def test_a_refused_binding_keeps_its_room(cluster: Flaky, clock: VirtualClock) -> None:
    """Who comes during the back-off does not get the room of a pod whose binding was refused."""
    cluster.load([node("small").cpu(1).memory("8Gi")])
    cluster.refusals = 1
    loop = Loop(cluster, conf(), clock)
    loop.start()
    loop.step()
    cluster.load([podgroup("h"), task("h-0", "h").cpu(4)])
    loop.step()
    clock.sleep(1)
    loop.step()
    assert [node_of(cluster, "g-0"), node_of(cluster, "h-0")] == ["n1", ""]


def test_a_pod_that_vanished_before_its_binding_gives_its_room_back(cluster: Flaky, clock: VirtualClock) -> None:
    """The binding answers not found: neither node nor job count the pod any longer."""
    loop = Loop(cluster, conf(), clock)
    loop.start()
    loop.feed()
    cluster.delete(POD, Key("default", "g-0"), grace_seconds=0)
    loop.cycle()
    assert not loop.mirror.nodes.used.any()


def test_the_echo_of_our_own_writes_is_no_news(cluster: Flaky, clock: VirtualClock) -> None:
    """What we wrote into the status of a waiting group and its pods does not make us decide again."""
    cluster.load([podgroup("big").phase("Pending").members(2), task("big-0", "big").cpu(9)])
    loop = Loop(cluster, conf(), clock)
    loop.start()
    for _ in range(3):  # the binding of g-0 is seen, then that its group runs
        loop.step()
    version = cluster.list(POD_GROUP).resource_version
    loop.feed()
    assert (loop.due(), cluster.list(POD_GROUP).resource_version) == (False, version)


def test_a_group_that_starts_to_run_lets_the_next_one_in(clock: VirtualClock) -> None:
    """Until it runs its minimum counts beside what it uses. That it runs is our own writing, and nothing happens after it."""
    cluster = MemoryCluster(clock)
    cluster.load([queue(), node("n1").cpu(10).memory("8Gi"), podgroup("a").asks(cpu=7)])
    cluster.load([task("a-0", "a").cpu(7).on("n1"), podgroup("b").asks(cpu=3).phase("Pending"), task("b-0", "b").cpu(3)])
    loop = Loop(cluster, load(CONF + "  - name: overcommit\n", PLUGINS, ACTIONS), clock)
    loop.start()
    for _ in range(3):
        loop.step()
    assert node_of(cluster, "b-0") == "n1"


def test_a_heartbeat_is_no_news(cluster: Flaky, clock: VirtualClock) -> None:
    """A node that says that it is still there does not cause a session; one with more room does."""
    loop = Loop(cluster, conf(), clock)
    loop.start()
    while loop.step():
        clock.sleep(1)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2025-01-06T00:00:10Z"}
    cluster.patch(NODE, Key("", "n1"), {"status": {"conditions": [ready]}}, subresource="status")
    loop.feed()
    after_heartbeat = loop.due()
    cluster.patch(NODE, Key("", "n1"), {"status": {"allocatable": {"cpu": "8"}}}, subresource="status")
    loop.feed()
    assert (after_heartbeat, loop.due()) == (False, True)


def test_a_refused_status_is_written_again(cluster: Flaky, clock: VirtualClock) -> None:
    """What the group shows is right in the end, although the first write of it failed."""
    cluster.load([podgroup("late").phase("Pending"), task("late-0", "late").cpu(9)])
    cluster.broken_groups = 1
    loop = Loop(cluster, conf(), clock)
    loop.start()
    for _ in range(3):
        loop.step()
        clock.sleep(1)
    assert cluster.get(POD_GROUP, Key("default", "late"))["status"]["phase"] == "Inqueue"


def test_observers_see_each_cycle(cluster: Flaky, clock: VirtualClock) -> None:
    """They are told number, time and result."""
    loop = Loop(cluster, conf(), clock)
    seen: list[int] = []
    loop.observers.append(lambda cycle: seen.append(cycle.number))
    loop.start()
    loop.step()
    loop.step()
    assert seen == [1, 2]


def test_a_group_that_runs_shows_it(cluster: Flaky, clock: VirtualClock) -> None:
    """The PodGroup's phase follows its pods."""
    loop = Loop(cluster, conf(), clock)
    loop.start()
    loop.step()
    cluster.patch(POD, Key("default", "g-0"), {"status": {"phase": "Running"}}, subresource="status")
    loop.step()
    assert cluster.get(POD_GROUP, Key("default", "g"))["status"]["phase"] == "Running"


def test_a_group_without_pods_says_why_it_is_not_let_in(clock: VirtualClock) -> None:
    """Its controller makes pods only afterwards, so there is nothing else that could say it; once let in it says so."""
    cluster = MemoryCluster(clock)
    cluster.load([queue(), node("n1").cpu(4).memory("8Gi"), podgroup("g").asks(cpu=5).phase("Pending")])
    loop = Loop(cluster, load(CONF + "  - name: overcommit\n", PLUGINS, ACTIONS), clock)
    loop.start()
    shown = []
    for more in ("n2", "n3"):
        loop.step()
        status = cluster.get(POD_GROUP, Key("default", "g"))["status"]
        said = {name: status["conditions"][0][name] for name in ("type", "status", "reason", "message")}
        shown.append((status["phase"], said))
        cluster.load([node(more).cpu(4).memory("8Gi")])
    why = "its minimum can never fit: cpu 5 asked > 4 in the cluster"
    assert shown == [
        ("Pending", {"type": "Unschedulable", "status": "True", "reason": "NeverFits", "message": why}),
        ("Inqueue", {"type": "Unschedulable", "status": "False", "reason": "Admitted", "message": ""}),
    ]


def test_a_long_queue_is_not_written_anew_with_every_pod(clock: VirtualClock) -> None:
    """Why a group is not let in is written once, though the figures in it move."""
    cluster = MemoryCluster(clock)
    cluster.load([queue(), node("n1").cpu(10).memory("8Gi"), podgroup("g").asks(cpu=7).phase("Pending")])
    cluster.load([podgroup("a").members(0), *(task(f"a-{i}", "a").cpu(3).on("n1") for i in range(2))])
    loop = Loop(cluster, load(CONF + "  - name: overcommit\n", PLUGINS, ACTIONS), clock)
    loop.start()
    loop.step()
    before = cluster.get(POD_GROUP, Key("default", "g"))
    cluster.load([task("a-2", "a").cpu(3).on("n1")])
    cycle = loop.step()
    assert cycle is not None
    assert [wait.message for wait in cycle.result.waiting] == ["the cluster taken 1.2 times: cpu 9 used + 7 asked > limit 12"]
    assert cluster.get(POD_GROUP, Key("default", "g")) == before
    assert before["status"]["conditions"][0]["reason"] == "NotAdmitted"
