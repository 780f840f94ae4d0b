"""allocate: gangs whole, queues in turn, a member that fits nowhere does not stop those that do."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.meta import Json
from extender.api.operations import Bind, Emit, PatchStatus
from extender.core import conf
from extender.core.mirror import Mirror
from extender.core.reasons import Reason
from extender.core.scheduling import Result, schedule
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: binpack}]
"""


def run(objects: Sequence[Json]) -> Result:
    mirror = Mirror()
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    return schedule(Snapshot.build(mirror), conf.load(CONF, PLUGINS, ACTIONS), now=1_800_000_000.0)


def bound(result: Result) -> list[str]:
    """Names of bound pods in the order of binding."""
    return [operation.pod.name for operation in result.operations if isinstance(operation, Bind)]


def gang(name: str, size: int, least: int, cpu: int, *, in_queue: str = "default") -> list[Json]:
    members = [task(f"{name}-w-{i}", group=name).cpu(cpu) for i in range(size)]
    return [podgroup(name).members(least).queue(in_queue), *members]


def apart(size: int, topology_key: str) -> list[Json]:
    """A gang of which no two members may be in one domain."""
    terms = [{"topologyKey": topology_key, "labelSelector": {"matchLabels": {"app": "g"}}}]
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    members = [task(f"g-w-{i}", group="g").cpu(1).labels(app="g").with_("spec.affinity", affinity) for i in range(size)]
    return [podgroup("g").members(size), *members]


def nodes(count: int, cpu: int) -> list[Json]:
    return [node(f"n{i}").cpu(cpu).memory("64Gi").labels({"kubernetes.io/hostname": f"n{i}"}) for i in range(count)]


CASES: dict[str, tuple[list[Json], list[str]]] = {
    "a gang that fits is bound whole": (
        [*nodes(4, 4), queue(), *gang("g", 4, 4, 4)],
        ["g-w-0", "g-w-1", "g-w-2", "g-w-3"],
    ),
    "a gang that does not fit is not started in part": ([*nodes(4, 4), queue(), *gang("g", 5, 5, 4)], []),
    "what exceeds the minimum may stay behind": (
        [*nodes(2, 4), queue(), *gang("g", 3, 2, 4)],
        ["g-w-0", "g-w-1"],
    ),
    "a gang that cannot start leaves its room to the next": (
        [*nodes(2, 4), queue(), *gang("big", 3, 3, 4), *gang("small", 2, 2, 4)],
        ["small-w-0", "small-w-1"],
    ),
    "equal queues take turns beyond the minimum": (
        [*nodes(1, 4), queue("a"), queue("b"), *gang("x", 3, 1, 1, in_queue="a"), *gang("y", 3, 1, 1, in_queue="b")],
        ["x-w-0", "y-w-0", "x-w-1", "y-w-1"],
    ),
    "a gang without enough pods waits": ([*nodes(2, 4), queue(), podgroup("g").members(2), task("g-w-0", group="g").cpu(1)], []),
    "members of different sizes are judged apart": (
        [*nodes(1, 4), queue(), podgroup("g").members(1), task("g-w-0", group="g").cpu(9), task("g-w-1", group="g").cpu(2)],
        ["g-w-1"],
    ),
    "tasks of one role are taken to be of one template": (
        [
            node("n0").cpu(4).labels(disk="ssd"),
            node("n1").cpu(4),
            queue(),
            podgroup("g").members(2),
            task("g-w-0", group="g").cpu(1).role("w").select(disk="ssd"),
            task("g-w-1", group="g").cpu(4).role("w"),
        ],
        [],
    ),
    "tasks without a role are judged apart": (
        [
            node("n0").cpu(4).labels(disk="ssd"),
            node("n1").cpu(4),
            queue(),
            podgroup("g").members(2),
            task("g-w-0", group="g").cpu(1).select(disk="ssd"),
            task("g-w-1", group="g").cpu(4),
        ],
        ["g-w-0", "g-w-1"],
    ),
    "a gated pod is left alone": ([*nodes(1, 4), queue(), podgroup("g"), task("g-w-0", group="g").cpu(1).gated()], []),
    "a pod that asks nothing is backfilled": ([*nodes(1, 4), queue(), podgroup("g"), task("g-w-0", group="g")], ["g-w-0"]),
}


@pytest.mark.parametrize(("objects", "want"), CASES.values(), ids=CASES)
def test_which_pods_are_bound(objects: list[Json], want: list[str]) -> None:
    assert bound(run(objects)) == want


PORT = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]
WAITS: dict[str, tuple[list[Json], Reason, str]] = {
    "no room now": (
        [*nodes(1, 4), queue(), *gang("a", 1, 1, 3), *gang("g", 1, 1, 2)],
        Reason.INSUFFICIENT_RESOURCES,
        "0/1 nodes are unavailable: 1 Insufficient cpu.",
    ),
    "too large for every node": (
        [*nodes(2, 4), queue(), *gang("g", 1, 1, 64)],
        Reason.NEVER_FITS,
        "0/2 nodes are unavailable: 2 Insufficient cpu. It asks too much: cpu 64 asked, the largest node has 4.",
    ),
    "a gang that an empty cluster could not hold": (
        [*nodes(2, 8), queue(), *gang("g", 3, 3, 5)],
        Reason.NEVER_FITS,
        "gang of 3: even an empty cluster has room for 2 of the 3 that must run at once; "
        "0/2 nodes are unavailable: 2 Insufficient cpu.",
    ),
    "a gang of which one runs on a node, on too few nodes": (
        [*nodes(2, 8), queue(), *apart(3, "kubernetes.io/hostname")],
        Reason.NEVER_FITS,
        "gang of 3: even an empty cluster has room for 2 of the 3 that must run at once; "
        "0/2 nodes are unavailable: 2 node(s) didn't match pod anti-affinity rules.",
    ),
    "a gang that is apart in racks, and nodes without one": (
        [
            *nodes(2, 8),
            node("r0").cpu(1).memory("64Gi").labels(rack="a"),
            queue(),
            task("other", group="x").cpu(8).on("n0"),
            task("another", group="x").cpu(6).on("n1"),
            *apart(4, "rack"),
        ],
        Reason.INSUFFICIENT_RESOURCES,
        "gang of 4: 3 fit, 1 lack a node; 0/3 nodes are unavailable: 3 Insufficient cpu.",
    ),
    "a gang whose members want the same port": (
        [
            *nodes(2, 8),
            queue(),
            podgroup("g").members(3),
            *[task(f"g-w-{i}", group="g").with_("spec.containers", PORT) for i in range(3)],
        ],
        Reason.NEVER_FITS,
        "gang of 3: even an empty cluster has room for 2 of the 3 that must run at once; "
        "0/2 nodes are unavailable: 2 node(s) didn't have free ports for the requested pod ports.",
    ),
    "a gang of which some fit": (
        [*nodes(5, 4), queue(), task("other", group="x").cpu(4).on("n0"), *gang("g", 5, 5, 4)],
        Reason.INSUFFICIENT_RESOURCES,
        "gang of 5: 4 fit, 1 lack a node; 0/5 nodes are unavailable: 5 Insufficient cpu.",
    ),
    "too few pods": (
        [*nodes(1, 4), queue(), podgroup("g").members(2), task("g-w-0", group="g").cpu(1)],
        Reason.NOT_ENOUGH_TASKS,
        "there are too few pods for the gang: 1 of 2",
    ),
    "no such queue": (
        [*nodes(1, 4), queue(), *gang("g", 1, 1, 1, in_queue="nowhere")],
        Reason.QUEUE_UNKNOWN,
        "queue nowhere does not exist",
    ),
    "no such group": (
        [*nodes(1, 4), queue(), task("g-w-0", group="g").cpu(1)],
        Reason.GROUP_UNKNOWN,
        "PodGroup default/g does not exist: create it, or drop the annotation",
    ),
}


@pytest.mark.parametrize(("objects", "reason", "message"), WAITS.values(), ids=WAITS)
def test_why_a_job_waits(objects: list[Json], reason: Reason, message: str) -> None:
    waiting = [(why.reason, why.message) for why in run(objects).waiting if why.job == "default/g"]
    assert waiting == [(reason, message)]


def test_the_numbers_agree_with_the_words() -> None:
    [why] = run([*nodes(5, 4), queue(), task("other", group="x").cpu(4).on("n0"), *gang("g", 5, 5, 4)]).waiting
    assert (why.numbers["fit"], why.numbers["lacking"]) == (4, 1)


def conditions(result: Result) -> dict[str, str]:
    """Pod -> message of the PodScheduled condition that the session writes."""
    return {
        operation.key.name: operation.patch["status"]["conditions"][-1]["message"]
        for operation in result.operations
        if isinstance(operation, PatchStatus) and operation.kind is meta.POD
    }


def test_members_that_would_fit_are_told_where() -> None:
    """Four of five fit: they learn that only the gang is missing, the fifth what it lacks."""
    told = conditions(run([*nodes(4, 4), queue(), *gang("g", 5, 5, 4)]))
    assert told["g-w-0"] == "Pod default/g-w-0 can possibly be assigned to n0, once minAvailable is satisfied"
    assert told["g-w-4"] == "0/4 nodes are unavailable: 4 Insufficient cpu."


def test_nothing_is_written_again_that_the_cluster_shows_already() -> None:
    """A second session over the same cluster, its writes applied, has nothing to say."""
    mirror = Mirror()
    live: dict[object, Json] = {}
    for obj in [*nodes(1, 4), queue(), *gang("g", 1, 1, 64)]:
        live[meta.kind_of(obj), meta.key_of(obj)] = obj
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    loaded = conf.load(CONF, PLUGINS, ACTIONS)
    for operation in schedule(Snapshot.build(mirror), loaded, now=1_800_000_000.0).operations:
        if isinstance(operation, PatchStatus):
            obj = live[operation.kind, operation.key]
            obj["status"] = {**obj.get("status", {}), **operation.patch["status"]}
            mirror.apply(operation.kind, "MODIFIED", obj)
    again = schedule(Snapshot.build(mirror), loaded, now=1_800_000_001.0).operations
    assert [operation for operation in again if isinstance(operation, PatchStatus | Emit)] == []
