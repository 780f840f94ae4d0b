"""Nodes whose conditions are bad have the taints that stand for them, as the node lifecycle controller writes them."""

from __future__ import annotations

import pytest

from extender.api.meta import NODE, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.workloads import Workloads
from extender.testing.builders import node

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
OWN = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def says(memory: MemoryCluster, **conditions: str) -> None:
    listed = [{"type": name, "status": status} for name, status in conditions.items()]
    memory.patch(NODE, Key("", "n1"), {"status": {"conditions": listed}}, subresource="status")


def taints(memory: MemoryCluster) -> list[Json]:
    return memory.get(NODE, Key("", "n1"))["spec"].get("taints") or []


@pytest.mark.parametrize(
    ("condition", "status", "key"),
    [
        ("Ready", "False", "not-ready"),
        ("Ready", "Unknown", "unreachable"),
        ("MemoryPressure", "True", "memory-pressure"),
        ("DiskPressure", "True", "disk-pressure"),
        ("PIDPressure", "True", "pid-pressure"),
        ("NetworkUnavailable", "True", "network-unavailable"),
    ],
)
def test_a_bad_condition_has_its_taint(memory: MemoryCluster, clock: VirtualClock, condition: str, status: str, key: str) -> None:
    memory.create(NODE, node("n1"))
    says(memory, **{condition: status})
    Workloads(memory, clock).reconcile()
    assert taints(memory) == [{"key": f"node.kubernetes.io/{key}", "effect": "NoSchedule"}]


def test_the_taint_goes_with_the_condition_and_others_stay(memory: MemoryCluster, clock: VirtualClock) -> None:
    memory.create(NODE, node("n1").taint("dedicated", "gpu"))
    workloads = Workloads(memory, clock)
    says(memory, Ready="False")
    workloads.reconcile()
    before = taints(memory)
    says(memory, Ready="True")
    workloads.reconcile()
    assert (before, taints(memory)) == ([OWN, NOT_READY], [OWN])


def test_one_that_is_there_already_is_not_written_again(memory: MemoryCluster, clock: VirtualClock) -> None:
    memory.create(NODE, node("n1").taint("node.kubernetes.io/not-ready"))
    says(memory, Ready="False")
    assert Workloads(memory, clock).reconcile() == 0


def test_of_what_a_node_says_nothing_the_taint_is_left(memory: MemoryCluster, clock: VirtualClock) -> None:
    memory.create(NODE, node("n1").taint("node.kubernetes.io/disk-pressure"))
    assert Workloads(memory, clock).reconcile() == 0
