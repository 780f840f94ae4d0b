"""The embedded kubelet plays pods through their phases, and only when the clock says so."""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import labels
from extender.api.meta import NODE, POD, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.kubelet import Kubelet
from extender.cluster.memory import MemoryCluster
from extender.testing.builders import PodBuilder, node, pod


class World:
    """A node, a kubelet and a clock; `at` plays on to a second after the start."""

    def __init__(self, memory: MemoryCluster, clock: VirtualClock, **settings: Any) -> None:
        self.memory, self.clock, self.start = memory, clock, clock.now()
        self.kubelet = Kubelet(memory, clock, **settings)
        memory.create(NODE, node("n1"))

    def run(self, asked: PodBuilder) -> None:
        made = self.memory.create(POD, asked)
        self.memory.bind(Key("default", made["metadata"]["name"]), "n1")

    def at(self, second: float) -> None:
        while (due := self.kubelet.next_due()) is not None and due <= self.start + second:
            self.clock.advance_to(due)
            self.kubelet.tick()
        self.clock.advance_to(self.start + second)
        self.kubelet.tick()

    def pods(self) -> dict[str, str]:
        return {each["metadata"]["name"]: each["status"]["phase"] for each in self.memory.list(POD).objects}

    def pod(self, name: str = "p") -> Json:
        return self.memory.get(POD, Key("default", name))


@pytest.fixture
def world(memory: MemoryCluster, clock: VirtualClock) -> World:
    return World(memory, clock)


def ending(name: str, seconds: str, code: str = "", policy: str = "Never") -> PodBuilder:
    built = pod(name).with_("spec.restartPolicy", policy).annotate(labels.RUN_SECONDS, seconds)
    return built.annotate(labels.EXIT_CODE, code) if code else built


def test_a_bound_pod_runs_a_second_later(world: World) -> None:
    world.run(pod("p"))
    world.at(0.9)
    before = world.pods()
    world.at(1)
    assert (before, world.pods()) == ({"p": "Pending"}, {"p": "Running"})


def test_a_running_pod_is_ready(world: World) -> None:
    world.run(pod("p"))
    world.at(1)
    conditions = {each["type"]: each["status"] for each in world.pod()["status"]["conditions"]}
    assert conditions == dict.fromkeys(("PodScheduled", "Initialized", "Ready", "ContainersReady"), "True")


def test_how_long_a_start_takes_can_be_set(memory: MemoryCluster, clock: VirtualClock) -> None:
    world = World(memory, clock, start_seconds=5)
    world.run(pod("p"))
    world.at(4)
    before = world.pods()
    world.at(5)
    assert (before, world.pods()) == ({"p": "Pending"}, {"p": "Running"})


def test_a_pod_without_node_waits(world: World) -> None:
    world.memory.create(POD, pod("p"))
    world.at(100)
    assert world.pods() == {"p": "Pending"}


def test_a_pod_on_a_node_that_is_not_there_waits_for_it(world: World) -> None:
    world.memory.create(POD, pod("p"))
    world.memory.bind(Key("default", "p"), "n2")
    world.at(10)
    before = world.pods()
    world.memory.create(NODE, node("n2"))
    world.at(11)
    assert (before, world.pods()) == ({"p": "Pending"}, {"p": "Running"})


def test_a_held_pod_stays_pending_until_it_is_let_go(world: World) -> None:
    world.run(pod("p").annotate(labels.HOLD, "true"))
    world.at(10)
    before = world.pods()
    world.memory.patch(POD, Key("default", "p"), {"metadata": {"annotations": {labels.HOLD: None}}})
    world.at(11)
    assert (before, world.pods()) == ({"p": "Pending"}, {"p": "Running"})


def test_pods_do_not_end_of_themselves(world: World) -> None:
    world.run(pod("p"))
    world.at(1_000_000)
    assert world.pods() == {"p": "Running"}


def test_not_ready_pods_run(memory: MemoryCluster, clock: VirtualClock) -> None:
    world = World(memory, clock, not_ready=["slow-*"])
    world.run(pod("slow-1"))
    world.at(1)
    status = world.pod("slow-1")["status"]
    ready = {each["type"]: each["status"] for each in status["conditions"]}["Ready"]
    assert (status["phase"], ready) == ("Running", "False")


# --- ending -----------------------------------------------------------------------------------------------------------


def test_a_glob_says_when_pods_succeed(memory: MemoryCluster, clock: VirtualClock) -> None:
    world = World(memory, clock, complete_after={"short-*": 10})
    world.run(pod("short-1"))
    world.run(pod("long-1"))
    world.at(11)
    assert world.pods() == {"short-1": "Succeeded", "long-1": "Running"}


RUNS = {"seconds": ("30", 31.0), "a duration": ("1m30s", 91.0), "a fraction": ("0.5", 1.5)}


@pytest.mark.parametrize(("text", "end"), RUNS.values(), ids=RUNS)
def test_an_annotation_says_how_long_a_pod_runs(world: World, text: str, end: float) -> None:
    world.run(ending("p", text))
    world.at(end - 0.25)
    before = world.pods()
    world.at(end)
    assert (before, world.pods()) == ({"p": "Running"}, {"p": "Succeeded"})


def test_an_exit_code_other_than_zero_is_a_failure(world: World) -> None:
    world.run(ending("p", "5", "3"))
    world.at(6)
    status = world.pod()["status"]
    assert (status["phase"], status["containerStatuses"][0]["state"]["terminated"]["exitCode"]) == ("Failed", 3)


def test_an_ended_pod_is_not_ready(world: World) -> None:
    world.run(ending("p", "5"))
    world.at(6)
    assert {each["type"]: each["status"] for each in world.pod()["status"]["conditions"]}["Ready"] == "False"


RESTARTS = {
    "Never ends": ("Never", "1", "Failed"),
    "OnFailure starts again": ("OnFailure", "1", "Running"),
    "OnFailure ends well": ("OnFailure", "0", "Succeeded"),
    "Always starts again": ("Always", "0", "Running"),
}


@pytest.mark.parametrize(("policy", "code", "phase"), RESTARTS.values(), ids=RESTARTS)
def test_the_restart_policy(world: World, policy: str, code: str, phase: str) -> None:
    world.run(ending("p", "5", code, policy))
    world.at(6)
    assert world.pods() == {"p": phase}


BACK_OFF = {
    "the first restart comes at once": ("5", 6, 1),
    "the second after ten seconds, not yet": ("5", 11 + 9, 1),
    "the second after ten seconds": ("5", 11 + 10, 2),
    "the third after twenty": ("5", 26 + 20, 3),
    "five minutes at most, and time goes on where it ends at once": ("0", 1 + 10 + 20 + 40 + 80 + 160 + 300 + 300, 8),
    "whoever runs for more than ten minutes begins anew": ("601", 1 + 3 * 601, 3),
    "whoever does not, does not": ("600", 1 + 2 * 600 + 9, 1),
}


@pytest.mark.parametrize(("runs", "at", "restarts"), BACK_OFF.values(), ids=BACK_OFF)
def test_restarts_back_off(world: World, runs: str, at: float, restarts: int) -> None:
    world.run(ending("p", runs, "1", "OnFailure"))
    world.at(at)
    assert world.pod()["status"]["containerStatuses"][0]["restartCount"] == restarts


def test_what_a_pod_in_back_off_shows(world: World) -> None:
    """It counts as Running, and is not ready; the last end is kept when it runs again."""
    world.run(ending("p", "5", "3", "OnFailure"))
    world.at(12)
    waits = world.pod()["status"]
    world.at(21)
    runs = world.pod()["status"]
    ready = [next(each["status"] for each in said["conditions"] if each["type"] == "Ready") for said in (waits, runs)]
    assert (waits["phase"], ready) == ("Running", ["False", "True"])
    state = waits["containerStatuses"][0]["state"]["waiting"]
    assert state == {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting failed container=main pod=p"}
    last = [said["containerStatuses"][0]["lastState"]["terminated"] for said in (waits, runs)]
    assert (last[0]["exitCode"], last[0]) == (3, last[1])


def test_an_annotation_that_cannot_be_read_fails_the_pod(world: World) -> None:
    world.run(ending("p", "soon"))
    world.at(2)
    status = world.pod()["status"]
    assert (status["phase"], labels.RUN_SECONDS in status["message"]) == ("Failed", True)


# --- going ------------------------------------------------------------------------------------------------------------


def test_a_deleted_pod_is_gone_after_its_grace_period(world: World) -> None:
    world.run(pod("p").with_("spec.terminationGracePeriodSeconds", 10))
    world.at(5)
    world.memory.delete(POD, Key("default", "p"))
    world.at(14)
    before = world.pods()
    world.at(15)
    assert (before, world.pods()) == ({"p": "Running"}, {})


def test_a_shorter_grace_period_counts(world: World) -> None:
    world.run(pod("p"))
    world.at(5)
    world.memory.delete(POD, Key("default", "p"))
    world.memory.delete(POD, Key("default", "p"), grace_seconds=2)
    world.at(7)
    assert world.pods() == {}


def test_a_finalizer_holds_it_longer(world: World) -> None:
    world.run(pod("p").with_("metadata.finalizers", ["example.test/hold"]))
    world.memory.delete(POD, Key("default", "p"), grace_seconds=2)
    world.at(10)
    before = world.pods()
    world.memory.patch(POD, Key("default", "p"), {"metadata": {"finalizers": None}})
    assert (list(before), world.pods()) == (["p"], {})


def test_without_grace_a_deleted_pod_is_gone_at_the_next_tick(memory: MemoryCluster, clock: VirtualClock) -> None:
    world = World(memory, clock, graceful=False)
    world.run(pod("p"))
    world.at(1)
    memory.delete(POD, Key("default", "p"))
    world.kubelet.tick()
    assert world.pods() == {}


def test_a_terminating_pod_does_not_end_well(world: World) -> None:
    world.run(ending("p", "10"))
    world.at(5)
    world.memory.delete(POD, Key("default", "p"))
    world.at(20)
    assert world.pods() == {"p": "Running"}


def test_pods_outlive_a_node_that_comes_back_in_time(world: World) -> None:
    world.run(pod("p"))
    world.at(1)
    world.memory.delete(NODE, Key("", "n1"))
    world.at(40)
    world.memory.create(NODE, node("n1"))
    world.at(100)
    assert world.pods() == {"p": "Running"}


def test_pods_of_a_node_that_stays_away_go(world: World) -> None:
    world.run(pod("p"))
    world.at(1)
    world.memory.delete(NODE, Key("", "n1"))
    world.at(41)
    assert world.pods() == {}


def test_a_pod_ends_on_a_node_that_came_back(world: World) -> None:
    world.run(ending("p", "60"))
    world.at(1)
    world.memory.delete(NODE, Key("", "n1"))
    world.at(10)
    world.memory.create(NODE, node("n1"))
    world.at(61)
    assert world.pods() == {"p": "Succeeded"}


def test_a_namesake_is_another_pod(world: World) -> None:
    world.run(ending("p", "10"))
    world.at(5)
    world.memory.delete(POD, Key("default", "p"), grace_seconds=0)
    world.run(pod("p"))
    world.at(100)
    assert world.pods() == {"p": "Running"}


# --- the driver's view ------------------------------------------------------------------------------------------------


def test_nothing_is_due_in_a_quiet_cluster(world: World) -> None:
    world.run(pod("p"))
    world.at(1)
    assert world.kubelet.next_due() is None


def test_the_next_thing_due_is_known_ahead(world: World) -> None:
    world.run(ending("p", "86400"))
    world.at(1)
    assert world.kubelet.next_due() == world.start + 1 + 86400


def test_a_tick_tells_how_much_it_did(world: World) -> None:
    world.run(pod("p"))
    world.run(pod("q"))
    world.clock.sleep(1)
    assert (world.kubelet.tick(), world.kubelet.tick()) == (2, 0)


def test_a_kubelet_that_starts_late_finds_what_is_there(memory: MemoryCluster, clock: VirtualClock) -> None:
    memory.load([node("n1"), pod("pending").on("n1", phase="Pending"), ending("running", "5").on("n1")])
    world = World.__new__(World)
    world.memory, world.clock, world.start = memory, clock, clock.now()
    world.kubelet = Kubelet(memory, clock)
    world.at(10)
    assert world.pods() == {"pending": "Running", "running": "Succeeded"}


# --- what does not fit ------------------------------------------------------------------------------------------------


def roomy(world: World, **amounts: str) -> None:
    """The node has 2 CPUs, and whatever else is said."""
    world.memory.patch(NODE, Key("", "n1"), {"status": {"allocatable": {"cpu": "2", **amounts}}}, subresource="status")


def test_a_pod_that_does_not_fit_its_node_has_failed(world: World) -> None:
    roomy(world)
    world.run(pod("small").cpu("1500m"))
    world.at(1)
    world.run(pod("p").cpu("800m"))
    world.at(2)
    status = world.pod("p")["status"]
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed",
        "OutOfcpu",
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 800, used: 1500, capacity: 2000",
    )


def test_of_two_that_fit_one_at_a_time_the_first_runs(world: World) -> None:
    roomy(world)
    for name in ("a", "b"):
        world.run(pod(name).cpu("1500m"))
    world.at(1)
    assert world.pods() == {"a": "Running", "b": "Failed"}


def test_the_room_of_a_pod_that_ended_is_free(world: World) -> None:
    roomy(world)
    world.run(ending("a", "5").cpu(2))
    world.at(6)
    world.run(pod("b").cpu(2))
    world.at(7)
    assert world.pods() == {"a": "Succeeded", "b": "Running"}


def test_the_room_of_a_pod_that_was_deleted_is_free(world: World) -> None:
    roomy(world)
    world.run(pod("a").cpu(2))
    world.at(1)
    world.memory.delete(POD, Key("default", "a"))
    world.at(40)
    world.run(pod("b").cpu(2))
    world.at(41)
    assert world.pods() == {"b": "Running"}


def test_a_node_takes_so_many_pods_and_no_more(world: World) -> None:
    roomy(world, pods="1")
    for name in ("a", "b"):
        world.run(pod(name))
    world.at(1)
    assert (world.pods(), world.pod("b")["status"]["reason"]) == ({"a": "Running", "b": "Failed"}, "OutOfpods")


def test_of_what_a_node_does_not_speak_it_is_not_asked(world: World) -> None:
    world.run(pod("p").gpu(8))
    world.at(1)
    assert world.pods() == {"p": "Running"}
