"""The extender beside the loop: one mirror, one set of books. What one has assumed the other counts as used."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import urllib3

from extender import cli
from extender.actions import ACTIONS
from extender.api.errors import UsageError
from extender.api.meta import NODE, POD, POD_GROUP, QUEUE, Json, Key, key_of
from extender.api.pod import Pod
from extender.api.views import view
from extender.cluster.clock import SteadyClock, VirtualClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.core import conf
from extender.loop import Loop
from extender.options import Options
from extender.plugins import PLUGINS
from extender.service import Service, Settings
from extender.testing.builders import PodBuilder, node, pod, podgroup, queue, task
from extender.verbs.answering import NotSeenYet, Turn
from extender.verbs.wire import Asked, Binding, Filtered
from tests.extending.world import member

CONF = conf.load(conf.DEFAULT, PLUGINS, ACTIONS)


class Both:
    """A loop for schedulerName volcano and an extender for kube-scheduler's pods, without threads."""

    def __init__(self, *objects: Json) -> None:
        self.clock = VirtualClock(1000.0)
        self.cluster = MemoryCluster(self.clock)
        self.cluster.load([queue("root"), queue(), *objects])
        self.service = Service(self.cluster, CONF, self.clock, Settings(), beside=["volcano"])
        self.loop = Loop(self.cluster, CONF, self.clock, intake=self.service.intake, reservations=self.service.reservations)
        self.extender = self.service.extender
        self.service.feed()

    def session(self) -> None:
        """One session of the loop, and what it wrote comes back."""
        self.loop.cycle()
        self.service.feed()

    def filter(self, name: str) -> Filtered:
        nodes = [key_of(obj).name for obj in self.cluster.list(NODE).objects]
        return self.extender.filter(Asked(view(Pod, self.pod(name)), nodes), self.clock.now())

    def ask(self, name: str, on: str) -> Turn:
        uid = self.pod(name)["metadata"]["uid"]
        return self.extender.ask_to_bind(Binding(Key("default", name), uid, on), self.clock.now()).turn

    def pod(self, name: str) -> Json:
        return self.cluster.get(POD, Key("default", name))

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))


def foreign(name: str) -> PodBuilder:
    """A pod of kube-scheduler's without a gang."""
    return pod(name).scheduler("default-scheduler")


def test_the_loop_leaves_pods_to_kube_scheduler() -> None:
    """Members of gangs too: they are let in by its sessions and placed when kube-scheduler brings them."""
    both = Both(node("n0").cpu(4), podgroup("g").members(1), member("g-0").cpu(1), podgroup("v"), task("v-0", "v").cpu(1))
    both.session()
    assert (both.node_of("v-0"), both.node_of("g-0"), both.filter("g-0").names) == ("n0", "", ["n0"])


def test_what_is_kept_for_a_gang_is_used_for_the_loop() -> None:
    both = Both(node("n0").cpu(4), podgroup("g").members(3), *(member(f"g-{i}").cpu(1) for i in range(3)), podgroup("v"),
                task("v-0", "v").cpu(2))  # fmt: skip
    both.filter("g-0")
    both.session()
    assert both.node_of("v-0") == ""


def test_what_the_loop_binds_is_used_for_kube_scheduler_at_once() -> None:
    """Before any watch has shown it. kube-scheduler could evict nobody for that room, so it is told not to try."""
    both = Both(node("n0").cpu(4), podgroup("v"), task("v-0", "v").cpu(3), foreign("x").cpu(2))
    both.loop.cycle()
    assert both.filter("x").hopeless == {"n0": "room is kept for pods that are starting"}


def test_a_bind_looks_at_the_room_once_more() -> None:
    """Between filter and bind the loop may have taken it: the pod goes back to kube-scheduler."""
    both = Both(node("n0").cpu(4), podgroup("v"), task("v-0", "v").cpu(3), foreign("x").cpu(2))
    assert both.filter("x").names == ["n0"]
    both.session()
    assert both.ask("x", "n0") is Turn.NO


def test_a_bind_looks_at_host_ports_once_more() -> None:
    ports = [{"containerPort": 80, "hostPort": 80}]
    containers = [{"name": "c", "image": "c", "ports": ports, "resources": {"requests": {"cpu": "1"}}}]
    both = Both(node("n0").cpu(4), podgroup("v"), task("v-0", "v").with_("spec.containers", containers),
                foreign("x").with_("spec.containers", containers))  # fmt: skip
    both.filter("x")
    both.session()
    assert both.ask("x", "n0") is Turn.NO


def test_what_kube_scheduler_binds_is_used_for_the_loop_at_once() -> None:
    both = Both(node("n0").cpu(4), podgroup("v"), task("v-0", "v").cpu(3), foreign("x").cpu(2))
    both.filter("x")
    assert both.ask("x", "n0") is Turn.GO
    both.session()
    assert both.node_of("v-0") == ""


def test_a_bind_waits_until_the_pod_has_been_seen() -> None:
    """Else the loop would not know that its room is taken."""
    both = Both(node("n0").cpu(4))
    both.cluster.create(POD, foreign("x").cpu(2))
    both.filter("x")
    with pytest.raises(NotSeenYet):
        both.ask("x", "n0")
    both.service.feed()
    assert both.ask("x", "n0") is Turn.GO


def test_both_count_in_one_queue() -> None:
    """A queue's capability holds for the sum of what the loop and kube-scheduler place."""
    small = queue("small").capability(cpu=3)
    both = Both(node("n0").cpu(9), small, podgroup("g").members(2).queue("small"), *(member(f"g-{i}").cpu(1) for i in range(2)),
                podgroup("v").queue("small"), task("v-0", "v").cpu(2))  # fmt: skip
    both.session()
    assert (both.node_of("v-0"), both.filter("g-0").names) == ("n0", [])


def test_nobody_but_the_loop_writes_about_groups_and_queues() -> None:
    """Two that wrote about one object would undo each other's words."""
    both = Both(node("n0").cpu(1), podgroup("g").members(2), *(member(f"g-{i}").cpu(1) for i in range(2)))
    both.filter("g-0")
    both.session()
    before = {kind: both.cluster.list(kind).resource_version for kind in (POD_GROUP, QUEUE)}
    both.clock.sleep(1)
    both.service.survey()
    both.session()
    assert {kind: both.cluster.list(kind).resource_version for kind in (POD_GROUP, QUEUE)} == before


def test_conditions_of_pods_are_left_to_kube_scheduler() -> None:
    both = Both(node("n0").cpu(1), podgroup("g").members(2), *(member(f"g-{i}").cpu(1) for i in range(2)))
    both.session()
    assert not both.pod("g-0")["status"].get("conditions")


# --- as a daemon ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def running() -> Iterator[tuple[cli.Scheduler, MemoryCluster, str]]:
    """vc-scheduler with --extender-address, at work."""
    cluster = MemoryCluster(SteadyClock())
    cluster.load([queue("root"), queue(), node("n0").cpu(4), podgroup("v"), task("v-0", "v").cpu(3), foreign("x").cpu(2)])
    words = ["--extender-address=127.0.0.1:0", "--leader-elect=false", "--schedule-period=10ms"]
    scheduler = cli.assemble(parse(Options(), words, {}, "x").options, cluster, {})
    assert scheduler.extending is not None
    ended: list[int] = []
    working = threading.Thread(target=lambda: ended.append(scheduler.daemon.run()))
    working.start()
    yield scheduler, cluster, f"http://127.0.0.1:{scheduler.extending.server.port}"
    scheduler.daemon.ask_to_stop()
    working.join()
    assert ended == [0]


def test_one_process_does_both(running: tuple[cli.Scheduler, MemoryCluster, str]) -> None:
    """The loop binds its pod; then kube-scheduler is told that there is no room for its own."""
    _, cluster, address = running
    with urllib3.PoolManager(retries=False, timeout=10.0) as http:
        while http.request("GET", f"{address}/readyz").status != 200:
            threading.Event().wait(0.01)
        asked = {"Pod": cluster.get(POD, Key("default", "x")), "NodeNames": ["n0"]}
        answer = http.request("POST", f"{address}/filter", json=asked)
    bound = cluster.get(POD, Key("default", "v-0"))["spec"]["nodeName"]
    assert (bound, answer.json()["NodeNames"]) == ("n0", [])


def test_nobody_places_pods_of_both() -> None:
    """Two that decided about one pod would bind it twice."""
    given = parse(Options(), ["--extender-address=127.0.0.1:0", "--scheduler-name=default-scheduler"], {}, "x")
    with pytest.raises(UsageError, match="both name default-scheduler"):
        given.options.check()


def test_whoever_does_not_lead_answers_nothing() -> None:
    """And is not ready, so that the Service sends nobody there; a later leader reads the cluster anew."""
    cluster = MemoryCluster(SteadyClock())
    given = parse(Options(), ["--extender-address=127.0.0.1:0"], {}, "x")
    scheduler = cli.assemble(given.options, cluster, {})
    assert scheduler.extending is not None
    address = f"http://127.0.0.1:{scheduler.extending.server.port}"
    with urllib3.PoolManager(retries=False, timeout=10.0) as http:
        ready = http.request("GET", f"{address}/readyz").status
        told = http.request("POST", f"{address}/filter", json={}).json()
    scheduler.extending.server.close()
    assert (ready, told) == (500, {"Error": "node cache not synced"})
