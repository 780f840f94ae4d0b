"""Pods whose claims have yet to be bound: their nodes and volumes are kept, they are bound once the claims are, or given up."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.api import labels, meta
from extender.api.errors import Conflict
from extender.api.meta import EVENT, NODE, POD, PV, PVC, Json, Key, Kind
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.workloads.storage import StorageController
from extender.core import conf
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task
from extender.testing.storage import FAST, claim, classes, mounts, volume

CONF = """actions: "enqueue, allocate"
tiers: [{plugins: [{name: gang}, {name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 30}}]}]"""
DATA = Key("default", "data")


class World(MemoryCluster):
    """Two nodes, a pod `t` that mounts the claim `data`, a scheduler. Nobody binds claims until `volumes` is asked to."""

    def __init__(self, *objects: Json) -> None:
        self.ticks = VirtualClock(1_000_000.0)
        super().__init__(self.ticks)
        self.written: list[tuple[Kind, Key]] = []
        self.refusals = 0
        self.volumes = StorageController(self, self.ticks)
        self.load([queue("root"), queue(), *classes(), node("n1").cpu(4), node("n2").cpu(1), podgroup(),
                   mounts(task("t").cpu(1), "data"), *objects])  # fmt: skip
        self.loop = Loop(self, conf.load(CONF, PLUGINS, ACTIONS), self.ticks)
        self.loop.start()
        self.written.clear()

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        if kind is PV and self.refusals:
            self.refusals -= 1
            raise Conflict("the object has been modified")
        self.written.append((kind, key))
        return super().patch(kind, key, patch, subresource=subresource, dry_run=dry_run)

    def step(self, seconds: int = 1) -> None:
        for _ in range(seconds):
            self.ticks.sleep(1.0)
            self.loop.step()

    def node_of(self, name: str = "t") -> str:
        return str(self.get(POD, Key("default", name))["spec"].get("nodeName", ""))

    def told(self) -> list[str]:
        """Why bindings were given up."""
        texts = [event["message"] for event in self.list(EVENT).objects if event["reason"] == "FailedScheduling"]
        return [text for text in texts if text.startswith("binding volumes: ")]


def test_a_pod_is_bound_once_its_claim_is() -> None:
    """The volume is told at once; the controller binds; the next turn binds the pod."""
    world = World(volume("v"), claim("data"))
    world.step(3)
    whose = world.get(PV, Key("", "v"))["spec"]["claimRef"]
    assert (world.node_of(), whose["name"], whose["uid"]) == ("", "data", "persistentvolumeclaim-default-data")
    world.volumes.reconcile()
    world.step()
    assert world.node_of() == "n1"
    assert world.get(PVC, DATA)["spec"]["volumeName"] == "v"


def test_a_volume_is_made_for_the_node() -> None:
    """The node is written to the claim, once."""
    world = World(claim("data").of(FAST))
    world.step(3)
    assert world.get(PVC, DATA)["metadata"]["annotations"] == {labels.SELECTED_NODE: "n1"}
    assert [key for kind, key in world.written if kind is PVC] == [DATA]
    world.volumes.reconcile()
    world.step()
    assert world.node_of() == "n1"


def test_meanwhile_the_room_is_kept_and_others_go_on() -> None:
    """A pod that comes meanwhile does not get the room, and one that fits elsewhere is bound."""
    world = World(claim("data").of(FAST))
    world.step()
    world.load([podgroup("big"), task("big", "big").cpu(4), podgroup("small"), task("small", "small").cpu(1)])
    world.step(2)
    assert (world.node_of(), world.node_of("big"), bool(world.node_of("small"))) == ("", "", True)


def test_nobody_binds_the_claim_in_time() -> None:
    """Given up after the time that the configuration says, with an event; then decided anew, and tried again."""
    world = World(volume("v"), claim("data"))
    world.step(25)
    assert world.told() == []
    world.step(10)
    assert world.told() == ["binding volumes: its claims were not bound within 30 s"]
    world.volumes.reconcile()
    world.step(10)
    assert world.node_of() == "n1"


def test_the_driver_cannot_make_the_volume() -> None:
    """It takes the node away from the claim: another is chosen."""
    world = World(claim("data").of(FAST))
    world.step()
    world.patch(NODE, Key("", "n1"), {"spec": {"unschedulable": True}})
    world.patch(PVC, DATA, {"metadata": {"annotations": {labels.SELECTED_NODE: None}}})
    world.step(5)
    assert world.told() == ['binding volumes: provisioning failed for PVC "data", or its volume is gone']
    world.volumes.reconcile()
    world.step()
    assert world.node_of() == "n2"


GONE = {
    "the claim": (PVC, DATA, 'binding volumes: persistentvolumeclaim "data" not found'),
    "the volume": (PV, Key("", "v"), 'binding volumes: provisioning failed for PVC "data", or its volume is gone'),
    "the node": (NODE, Key("", "n1"), "binding volumes: node n1 is gone"),
}


@pytest.mark.parametrize(("kind", "key", "words"), GONE.values(), ids=GONE)
def test_something_goes_while_the_pod_waits(kind: Kind, key: Key, words: str) -> None:
    """The pod is free for another decision, and says why."""
    world = World(volume("v").only_on("n1"), claim("data"))
    world.step()
    world.delete(kind, key)
    world.step(5)
    assert (world.node_of(), world.told()) == ("", [words])
    assert not world.loop.mirror.tasks.node[world.loop.mirror.tasks.rows[Key("default", "t")]] >= 0


def test_the_pod_goes_while_it_waits() -> None:
    """Nothing more is written about it; what was promised to its claim stays the claim's."""
    world = World(volume("v"), claim("data"))
    world.step()
    world.delete(POD, Key("default", "t"))
    world.volumes.reconcile()
    world.step(40)
    assert world.told() == []


def test_the_volume_turns_out_to_be_elsewhere() -> None:
    """The controller bound another volume, which the node cannot use: the pod follows it."""
    other = volume("w").of(FAST).only_on("n2").for_(claim("data"))
    world = World(claim("data").of(FAST))
    world.patch(NODE, Key("", "n2"), {"spec": {"unschedulable": True}})
    world.step()
    world.load([other])
    world.volumes.reconcile()
    world.patch(NODE, Key("", "n2"), {"spec": {"unschedulable": None}})
    world.step(5)
    assert world.told() == ['binding volumes: pv "w" node affinity doesn\'t match node "n1"']
    assert world.node_of() == "n2"


def test_a_volume_that_somebody_else_wrote_is_looked_at_again() -> None:
    """The write is refused: the pod is not bound by it, and gets what is there then."""
    world = World(volume("v"), claim("data"))
    world.refusals = 1
    world.step()
    assert "claimRef" not in world.get(PV, Key("", "v"))["spec"]
    world.step(5)
    world.volumes.reconcile()
    world.step()
    assert world.node_of() == "n1"


def test_a_new_scheduler_goes_on_where_the_old_one_ended() -> None:
    """What was written is there: the volume stays the claim's, and nothing is written twice."""
    world = World(volume("a", "2Gi"), volume("b", "3Gi"), claim("data"))
    world.step()
    world.loop = Loop(world, conf.load(CONF, PLUGINS, ACTIONS), world.ticks)
    world.loop.start()
    world.step()
    world.volumes.reconcile()
    world.step()
    assert (world.node_of(), world.get(PVC, DATA)["spec"]["volumeName"]) == ("n1", "a")
    assert "claimRef" not in world.get(PV, Key("", "b"))["spec"]


def test_a_gang_starts_when_the_claim_that_it_shares_is_bound() -> None:
    """All its members wait for it, and are bound together."""
    workers = [mounts(task(f"w{i}", "g2").cpu(1), "data") for i in range(3)]
    world = World(claim("data").of(FAST), podgroup("g2").members(3), *workers)
    world.step(2)
    before = [world.node_of(f"w{i}") for i in range(3)]
    world.volumes.reconcile()
    world.step()
    assert (before, [world.node_of(f"w{i}") for i in range(3)]) == ([""] * 3, ["n1"] * 3)
    assert meta.PVC in world.loop.conf.kinds


def is_bound(name: str) -> Json:
    """What the controller writes to a claim."""
    return {"spec": {"volumeName": name}, "metadata": {"annotations": {labels.BIND_COMPLETED: "yes"}}}


def gang(*pods: Json) -> list[Json]:
    return [podgroup("g2").members(len(pods)), *pods]


def test_a_gang_starts_whole_though_its_volumes_come_one_by_one() -> None:
    """One member needs no volume, one has its own soon, the last late: nobody is bound before all can be."""
    world = World(claim("a").of(FAST), claim("b"), volume("v").only_on("n1"),
                  *gang(*(mounts(task(f"w-{name}", "g2").cpu(1), name) for name in "ab"), task("w-c", "g2").cpu(1)))  # fmt: skip
    world.step()
    world.load([volume("made").of(FAST).for_(world.get(PVC, Key("default", "a")))])
    world.patch(PVC, Key("default", "a"), is_bound("made"))
    world.step(3)
    before = [world.node_of(f"w-{name}") for name in "abc"]
    world.volumes.reconcile()
    world.step()
    assert (before, [world.node_of(f"w-{name}") for name in "abc"]) == ([""] * 3, ["n1"] * 3)


def test_a_gang_that_cannot_start_whole_is_given_up_whole() -> None:
    """A claim vanishes: the members that were ready are free as well."""
    world = World(claim("a"), claim("b"), volume("v").only_on("n1"), volume("w", "20Gi").only_on("n1"),
                  *gang(*(mounts(task(f"w-{name}", "g2").cpu(1), name) for name in "ab")))  # fmt: skip
    world.step()
    world.delete(PVC, Key("default", "b"))
    world.volumes.reconcile()
    world.step(5)
    assert [world.node_of(f"w-{name}") for name in "ab"] == ["", ""]
    assert sorted(world.told()) == [
        "binding volumes: its gang cannot start whole any more",
        'binding volumes: persistentvolumeclaim "b" not found',
    ]


def test_a_gang_that_has_started_goes_on_with_those_that_are_ready() -> None:
    """Members beyond its minimum do not wait for each other."""
    ready = mounts(task("w-a", "g2").cpu(1), "a")
    late = mounts(task("w-b", "g2").cpu(1), "b")
    world = World(claim("a"), claim("b").of(FAST), volume("v").only_on("n1"), podgroup("g2").members(1), task("w-0", "g2").cpu(1))
    world.step(2)
    world.load([ready, late])
    world.step()
    world.patch(PV, Key("", "v"), {"status": {"phase": "Bound"}}, subresource="status")
    world.patch(PVC, Key("default", "a"), is_bound("v"))
    world.step()
    assert (bool(world.node_of("w-0")), world.node_of("w-a"), world.node_of("w-b")) == (True, "n1", "")
