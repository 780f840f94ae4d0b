"""Queues: states, the tree, and the groups in them."""

from __future__ import annotations

import pytest

from controller import queue as queues
from controller.queue import QueueSeen
from extender.api.errors import ClusterError
from extender.api.meta import COMMAND, POD_GROUP, QUEUE, Json, Key
from extender.api.operations import PatchStatus
from extender.api.queue import Queue
from extender.api.views import view
from tests.reconcile.builders import key
from tests.reconcile.world import World


def raw(name: str = "q", state: str = "", parent: str = "root") -> Json:
    known = {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}}
    return {**known, "spec": {"parent": parent}, "status": {"state": state} if state else {}}


def after(state: str, action: str, groups: int = 0, parent: str = "Open") -> str:
    """The state after an action."""
    obj = raw(state=state, parent="p")
    seen = QueueSeen(view(Queue, obj), obj, view(Queue, raw("p", parent)), {"running": groups})
    for stage in queues.reconcile(seen, action).stages:
        for operation in stage.operations:
            if isinstance(operation, PatchStatus) and "state" in operation.patch["status"]:
                return str(operation.patch["status"]["state"])
    return state


STATES = {
    "a new queue is open": ("", "SyncQueue", 0, "Open"),
    "closing an empty one": ("Open", "CloseQueue", 0, "Closed"),
    "closing one with groups": ("Open", "CloseQueue", 2, "Closing"),
    "the last group goes": ("Closing", "SyncQueue", 0, "Closed"),
    "groups are left": ("Closing", "SyncQueue", 1, "Closing"),
    "opening again": ("Closing", "OpenQueue", 1, "Open"),
    "closed stays closed": ("Closed", "SyncQueue", 1, "Closed"),
    "unknown stays unknown": ("Unknown", "SyncQueue", 0, "Unknown"),
    "an unknown action synchronises": ("Open", "Frobnicate", 0, "Open"),
}


@pytest.mark.parametrize(("state", "action", "groups", "want"), STATES.values(), ids=STATES)
def test_state(state: str, action: str, groups: int, want: str) -> None:
    """The table."""
    assert after(state, action, groups) == want


def test_a_queue_does_not_open_below_a_shut_one() -> None:
    """The parent comes first."""
    with pytest.raises(ClusterError, match="open its parent p first"):
        after("Closed", "OpenQueue", parent="Closed")


def test_a_state_that_is_none_is_an_error() -> None:
    """It says what to do."""
    with pytest.raises(ClusterError, match=r"set its status\.state"):
        after("Weird", "SyncQueue")


def command(world: World, action: str, queue: str) -> None:
    target = {"apiVersion": QUEUE.api_version, "kind": "Queue", "name": queue, "uid": "any"}
    known = {"apiVersion": COMMAND.api_version, "kind": COMMAND.name, "metadata": {"name": f"{action.lower()}-{queue}"}}
    world.create({**known, "action": action, "target": target})
    world.settle()


def tree(world: World) -> None:
    for name, parent in (("org", "root"), ("dev", "org"), ("sub", "dev"), ("ops", "org")):
        world.create({"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}})
        world.manager.step()
    world.settle()


def states(world: World) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["status"]["state"] for obj in world.cluster.list(QUEUE).objects}


def test_a_tree_closes_and_opens_but_for_what_was_closed_by_hand() -> None:
    """A child closed by a person stays closed."""
    world = World()
    tree(world)
    command(world, "CloseQueue", "ops")
    command(world, "CloseQueue", "org")
    closed = {name for name, state in states(world).items() if state == "Closed"}
    command(world, "OpenQueue", "org")
    left = {name for name, state in states(world).items() if state == "Closed"}
    assert (closed, left) == ({"org", "dev", "sub", "ops"}, {"ops"})


def group(name: str, phase: str, queue: str = "default") -> Json:
    known = {"apiVersion": POD_GROUP.api_version, "kind": POD_GROUP.name, "metadata": {"name": name, "namespace": "default"}}
    return {**known, "spec": {"minMember": 1, "queue": queue}, "status": {"phase": phase}}


def test_groups_are_counted_by_phase() -> None:
    """And the counts follow them."""
    world = World(admission=False)
    world.cluster.load([group("a", "Running"), group("b", "Unknown"), group("c", "Completed")])
    world.manager.step()
    before = world.get(QUEUE, "default")["status"]
    world.cluster.delete(POD_GROUP, key("a"))
    world.manager.step()
    after = world.get(QUEUE, "default")["status"]
    assert (before["running"], before["unknown"], before["completed"], after.get("running", 0)) == (1, 1, 1, 0)


def test_what_others_write_to_the_status_stays() -> None:
    """The scheduler's allocated."""
    world = World(admission=False)
    allocated = {"status": {"allocated": {"cpu": "3"}}}
    world.cluster.patch(QUEUE, Key("", "default"), allocated, subresource="status")
    world.cluster.load([group("a", "Running")])
    world.manager.step()
    assert world.get(QUEUE, "default")["status"]["allocated"] == {"cpu": "3"}


def test_the_default_parent_is_root() -> None:
    """Written where a queue names none."""
    world = World(admission=False)
    world.create({"apiVersion": QUEUE.api_version, "kind": "Queue", "metadata": {"name": "q"}, "spec": {}})
    world.settle()
    assert world.get(QUEUE, "q")["spec"]["parent"] == "root"
