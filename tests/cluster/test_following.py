"""Following one kind: nothing twice, nothing missed, whatever becomes of the watch."""

from __future__ import annotations

from typing import Any

from extender.api.meta import NODE, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.following import Follower
from extender.cluster.memory import MemoryCluster
from extender.cluster.watching import MemoryWatch
from extender.testing.builders import node


def told(follower: Follower) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in follower.poll()]


def cluster_of(*names: str, history: int = 1000) -> MemoryCluster:
    cluster = MemoryCluster(VirtualClock(1000.0), history=history)
    cluster.load([node(name).uid(f"first-{name}").cpu(1) for name in names])
    return cluster


def test_the_list_comes_first() -> None:
    """Each object is ADDED once, then the follower is synced."""
    cluster = cluster_of("a", "b")
    follower = Follower(cluster, NODE)
    before = follower.synced
    assert (before, told(follower), follower.synced) == (False, [("ADDED", "a"), ("ADDED", "b")], True)


def test_then_what_changes() -> None:
    cluster = cluster_of("a")
    follower = Follower(cluster, NODE)
    follower.poll()
    cluster.load([node("b")])
    cluster.delete(NODE, Key("", "a"))
    assert told(follower) == [("ADDED", "b"), ("DELETED", "a")]


def test_who_fell_behind_hears_the_difference() -> None:
    """The watch is Gone: what vanished is DELETED, what changed MODIFIED, a namesake DELETED and ADDED, the rest is silent."""
    cluster = cluster_of("changes", "namesake", "stays", "vanishes", history=4)
    follower = Follower(cluster, NODE)
    follower.poll()
    for name in ("vanishes", "namesake"):
        cluster.delete(NODE, Key("", name))
    cluster.load([node("new"), node("namesake").uid("second")])
    for number in range(40):
        cluster.patch(NODE, Key("", "changes"), {"metadata": {"labels": {"n": str(number)}}})
    assert told(follower) == [
        ("DELETED", "vanishes"), ("MODIFIED", "changes"), ("DELETED", "namesake"), ("ADDED", "namesake"), ("ADDED", "new"),
    ]  # fmt: skip


class EndsWhileItLists(MemoryCluster):
    """Somebody closes the follower at the very moment in which its watch comes about."""

    follower: Follower

    def watch(self, *args: Any, **kwargs: Any) -> MemoryWatch:
        self.opened = super().watch(*args, **kwargs)
        self.follower.close()
        return self.opened


def test_no_watch_stays_open_behind_one_that_is_closed() -> None:
    cluster = EndsWhileItLists(VirtualClock(1000.0))
    cluster.load([node("a")])
    cluster.follower = Follower(cluster, NODE)
    assert (told(cluster.follower), list(cluster.opened), told(cluster.follower)) == ([], [], [])
