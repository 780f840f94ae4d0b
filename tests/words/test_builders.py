"""The builders of tests give objects as an API server would."""

from __future__ import annotations

from extender.api import meta
from extender.api.node import Node
from extender.api.pod import Pod
from extender.api.views import view
from extender.core.mirror import Mirror
from extender.testing.builders import node, pod, podgroup, queue, task


def test_a_node_offers_what_it_is_given() -> None:
    """Capacity and allocatable are both set; the hostname label is there."""
    seen = view(Node, node("a").cpu(2).memory("4Gi").gpu(8))
    assert seen.status.allocatable == {"pods": "110", "cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "8"}


def test_a_task_is_a_pod_of_a_group() -> None:
    """`task` differs from `pod` by scheduler and group."""
    seen = view(Pod, task("t-1", "g").cpu("500m").on("a"))
    assert (seen.spec.scheduler_name, seen.group, seen.spec.node_name, seen.status.phase) == ("volcano", "g", "a", "Running")


def test_a_foreign_pod_has_no_group() -> None:
    seen = view(Pod, pod("p"))
    assert (seen.spec.scheduler_name, seen.group) == ("default-scheduler", "")


def test_a_mirror_reads_them() -> None:
    """All kinds reach the mirror without being refused."""
    mirror = Mirror()
    for obj in (
        queue("q").capability(cpu=4, gpu=2),
        node("a").cpu(4),
        podgroup("g").queue("q").members(2),
        task().cpu(1).on("a"),
    ):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    assert (mirror.unreadable, mirror.nodes.used[0, 0]) == ({}, 1000)
