"""ResourceClaims on the embedded cluster: made from templates, used by the scheduler, free again when nobody uses them."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.api.meta import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.workloads import Workloads
from extender.core.conf import load
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import Built, node, podgroup, queue, task
from extender.testing.devices import claim, claims, device, device_class, from_template, offers


class World:
    """One node with one device, and a template of claims for it."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_000_000.0)
        self.cluster = MemoryCluster(self.clock)
        self.workloads = Workloads(self.cluster, self.clock)
        text = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]'
        self.loop = Loop(self.cluster, load(text, PLUGINS, ACTIONS), self.clock)
        self.cluster.load([queue("root"), queue(), device_class(), node("n1").cpu(8), offers("n1", device("a"))])
        self.loop.start()

    def template(self) -> None:
        spec = {"metadata": {"labels": {"from": "one"}}, "spec": claim("x")["spec"]}
        self.cluster.load([Built(RESOURCE_CLAIM_TEMPLATE, "one").with_("spec", spec)])

    def pod(self, name: str) -> None:
        self.cluster.load([podgroup(name), from_template(task(name, name).cpu(1), "one")])

    def go_on(self, seconds: int = 3) -> None:
        for _ in range(seconds):
            self.clock.sleep(1.0)
            self.workloads.reconcile()
            self.loop.step()
            self.workloads.reconcile()
            self.cluster.settle()

    def claims(self) -> list[Json]:
        return self.cluster.list(RESOURCE_CLAIM).objects

    def on_a_node(self) -> set[str]:
        return {pod["metadata"]["name"] for pod in self.cluster.list(POD).objects if pod["spec"].get("nodeName")}

    def end(self, name: str) -> None:
        self.cluster.patch(POD, Key("default", name), {"status": {"phase": "Succeeded"}}, subresource="status")


@pytest.fixture
def world() -> World:
    return World()


def test_a_claim_is_made_from_its_template(world: World) -> None:
    """It belongs to the pod, and the pod is told its name."""
    world.template()
    world.pod("p")
    world.go_on()
    [made] = world.claims()
    assert made["metadata"]["labels"] == {"from": "one"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "pod-default-p"
    shown = world.cluster.get(POD, Key("default", "p"))["status"]["resourceClaimStatuses"]
    assert shown == [{"name": "gpu", "resourceClaimName": made["metadata"]["name"]}]
    assert world.on_a_node() == {"p"}


def test_a_pod_waits_for_its_template(world: World) -> None:
    """Nothing is made without it; once it is there the pod starts."""
    world.pod("p")
    world.go_on()
    assert not world.claims()
    world.template()
    world.go_on()
    assert world.on_a_node() == {"p"}


@pytest.mark.parametrize("how", ["ends", "is deleted"])
def test_a_device_is_free_again_once_its_pod_is_done(world: World, how: str) -> None:
    """The next pod gets it; the claim that was made for the first is gone."""
    world.template()
    world.pod("p")
    world.go_on()
    world.pod("q")
    world.go_on()
    assert world.on_a_node() == {"p"}
    if how == "ends":
        world.end("p")
    else:
        world.cluster.delete(POD, Key("default", "p"), grace_seconds=0)
    world.go_on()
    assert "q" in world.on_a_node()
    assert len(world.claims()) == 1


def test_a_named_claim_stays_without_devices(world: World) -> None:
    """With the last of its users its devices are free, yet the claim is the user's."""
    mine = claim("mine").with_("status", {
        "allocation": {"devices": {"results": [{"request": "r0", "driver": "gpu.test", "pool": "n1", "device": "a"}]}},
        "reservedFor": [{"resource": "pods", "name": "gone", "uid": "gone"}],
    })  # fmt: skip
    world.cluster.load([mine])
    world.go_on()
    status = world.cluster.get(RESOURCE_CLAIM, Key("default", "mine")).get("status") or {}
    assert "allocation" not in status
    assert not status.get("reservedFor")


def test_a_claim_in_use_goes_after_its_pod(world: World) -> None:
    """Whoever deletes it waits; otherwise its device would look free."""
    key = Key("default", "mine")
    world.cluster.load([claim("mine"), podgroup("p"), claims(task("p", "p").cpu(1), "mine")])
    world.go_on()
    assert world.on_a_node() == {"p"}
    world.cluster.delete(RESOURCE_CLAIM, key)
    world.go_on()
    assert world.cluster.get(RESOURCE_CLAIM, key)["status"]["allocation"]
    world.end("p")
    world.go_on()
    assert not world.claims()
