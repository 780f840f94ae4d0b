"""Which scheduler has which nodes."""

from __future__ import annotations

import pytest

from controller.manager import Manager
from controller.nodeshard import ShardingController
from controller.reconciler import Settings
from controller.sharding import NodeSeen, ShardFlags, assign, from_flags, from_yaml, moved_enough
from extender.api.errors import ConfError
from extender.api.meta import CONFIG_MAP, NODE, NODE_SHARD, POD, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster

NODES = [
    NodeSeen("empty", {}, 0.0), NodeSeen("half", {}, 0.5), NodeSeen("warm", {"node.volcano.sh/warmup": "true"}, 0.7),
    NodeSeen("full", {}, 1.0), NodeSeen("odd", {}, None),
]  # fmt: skip


def conf(*schedulers: str) -> str:
    return "schedulerConfigs:\n" + "".join(f"- {each}\n" for each in schedulers)


ASSIGNED = {
    "the defaults": (None, {"volcano": ["half", "empty"], "agent-scheduler": ["warm", "full"]}),
    "the first takes first": (
        conf("{name: a, policies: [{name: node-limit, arguments: {maxNodes: 2}}]}", "{name: b, policies: [{name: warmup}]}"),
        {"a": ["empty", "half"], "b": ["warm", "full", "odd"]}),
    "weights": (
        conf("{name: a, policies: [{name: warmup, weight: 2}, {name: allocation-rate}]}"),
        {"a": ["warm", "full", "half", "empty"]}),
    "both ends belong to a range": (
        conf("{name: a, cpuUtilizationMin: 0.5, cpuUtilizationMax: 0.7}"), {"a": ["warm", "half"]}),
    "older fields": (
        conf("{name: a, preferWarmupNodes: true, maxNodes: 1, cpuUtilizationMin: 0.5}"), {"a": ["warm"]}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "want"), ASSIGNED.values(), ids=ASSIGNED)
def test_assignment(text: str | None, want: dict[str, list[str]]) -> None:
    """Filters, scores, limits; each from what is left."""
    found = from_yaml(text) if text is not None else from_flags()
    assert assign(found, NODES) == want


WRONG = {
    "no scheduler": ("schedulerConfigs: []", "at least one"),
    "no name": (conf("{type: volcano}"), "has no name"),
    "no such policy": (conf("{name: a, policies: [{name: warmpu}]}"), "did you mean 'warmup'"),
    "no range": (conf("{name: a, cpuUtilizationMin: 0.8, cpuUtilizationMax: 0.2}"), "no range"),
    "a weight below zero": (conf("{name: a, policies: [{name: warmup, weight: -1}]}"), "below zero"),
    "no YAML": ("{", "sharding.yaml"),
    "no switch": ("enableNodeEventTrigger: 3\n" + conf("{name: a}"), "enableNodeEventTrigger: must be true or false"),
    "no pause": ("shardSyncPeriod: 0s\n" + conf("{name: a}"), "more than 0"),
    "no duration": ("shardSyncPeriod: soon\n" + conf("{name: a}"), "shardSyncPeriod"),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG)
def test_a_configuration_that_cannot_be_used(text: str, message: str) -> None:
    """Says what is wrong with it."""
    with pytest.raises(ConfError, match=message):
        from_yaml(text)


MOVES = {
    "the same": (["a", "b"], ["b", "a"], False),
    "one more": (["a"], ["a", "b"], True),
    "one of twenty exchanged": ([str(n) for n in range(20)], [str(n) for n in range(1, 21)], False),
    "two of twenty exchanged": ([str(n) for n in range(20)], [str(n) for n in range(2, 22)], True),
}


@pytest.mark.parametrize(("now", "wanted", "want"), MOVES.values(), ids=MOVES)
def test_small_moves_are_not_written(now: list[str], wanted: list[str], want: bool) -> None:
    """A tenth is the least."""
    assert moved_enough(now, wanted) is want


def node(name: str) -> Json:
    room = {"cpu": "10", "memory": "1Gi", "pods": "10"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"capacity": room, "allocatable": room}}


def running(flags: ShardFlags = ShardFlags()) -> tuple[VirtualClock, MemoryCluster, Manager]:  # noqa: B008
    clock = VirtualClock(1e9)
    cluster = MemoryCluster(clock)
    cluster.load([node("n1"), node("n2")])
    manager = Manager(cluster, clock, Settings(shard_flags=flags), [ShardingController()])
    manager.start()
    clock.sleep(1)
    manager.step()
    return clock, cluster, manager


def shard(cluster: MemoryCluster, name: str) -> list[str]:
    return sorted(cluster.get(NODE_SHARD, Key("", name))["spec"]["nodesDesired"])


def test_a_node_that_fills_goes_to_the_other_scheduler() -> None:
    """Soon, not at the next round."""
    clock, cluster, manager = running()
    before = shard(cluster, "volcano"), shard(cluster, "agent-scheduler")
    container = {"name": "m", "image": "i", "resources": {"requests": {"cpu": "9"}}}
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"nodeName": "n1", "containers": [container]}}
    cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", **pod})
    manager.step()
    clock.sleep(0.3)
    manager.step()
    assert (before, shard(cluster, "volcano"), shard(cluster, "agent-scheduler")) == ((["n1", "n2"], []), ["n2"], ["n1"])


def test_a_new_node_is_assigned() -> None:
    """And the shard of a scheduler that is not configured goes."""
    clock, cluster, manager = running()
    cluster.create(NODE, node("n3"))
    cluster.create(NODE_SHARD, {"apiVersion": NODE_SHARD.api_version, "kind": "NodeShard", "metadata": {"name": "old"},
                                "spec": {"nodesDesired": []}})  # fmt: skip
    manager.step()
    clock.sleep(0.3)
    manager.step()
    names = sorted(obj["metadata"]["name"] for obj in cluster.list(NODE_SHARD).objects)
    assert (shard(cluster, "volcano"), names) == (["n1", "n2", "n3"], ["agent-scheduler", "volcano"])


def test_without_events_it_waits_for_the_end_of_the_period() -> None:
    """By the flags, as long as no ConfigMap says it."""
    clock, cluster, manager = running(ShardFlags(("mine:volcano:0:1:false:0:0",), 5.0, on_events=False))
    cluster.create(NODE, node("n3"))
    held = []
    for pause in (0.3, 5.0):
        manager.step()
        clock.sleep(pause)
        manager.step()
        held.append(shard(cluster, "mine"))
    assert held == [["n1", "n2"], ["n1", "n2", "n3"]]


def test_the_last_good_configuration_stays() -> None:
    """Whatever is written after it."""
    clock, cluster, manager = running()
    name = {"name": "volcano-sharding-configmap", "namespace": "volcano-system"}
    cluster.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}])
    known = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": name}
    cluster.create(CONFIG_MAP, {**known, "data": {"sharding.yaml": conf("{name: mine}")}})
    manager.step()
    cluster.update(CONFIG_MAP, {**known, "data": {"sharding.yaml": conf("{name: mine, policies: [{name: nonsense}]}")}})
    clock.sleep(61)
    manager.step()
    assert shard(cluster, "mine") == ["n1", "n2"]
