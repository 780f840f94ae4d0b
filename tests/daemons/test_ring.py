"""Schedulers that divide the cluster by a hash of names: the reference's division, everything once, gangs whole."""

from __future__ import annotations

import pytest

from extender.api.errors import UsageError
from extender.api.meta import POD, POD_GROUP, Json, Key
from extender.cli import assemble
from extender.cluster.clock import VirtualClock
from extender.cluster.flags import parse
from extender.cluster.memory import MemoryCluster
from extender.options import PROGRAM, Options, share_of, with_lease
from extender.ring import Ring, Share
from extender.testing.builders import node, podgroup, queue, task

KEYS = [*(f"node-{i}" for i in range(24)), "", "a",
        "job-with-a-name-that-is-longer-than-sixty-three-characters-0123456789-abcdef", "ünïcode"]  # fmt: skip
# Recorded from stathat.com/c/consistent v1.0.0 with members volcano-scheduler-0 ...: the number of the member of each key.
RECORDED = {1: "0000000000000000000000000000", 2: "0000001101010110010101110000", 3: "2002202101012112210101212200",
            5: "2003203101012344310301232440"}  # fmt: skip


@pytest.mark.parametrize("members", RECORDED)
def test_keys_belong_to_whom_they_belong_in_the_reference(members: int) -> None:
    ring = Ring(f"volcano-scheduler-{i}" for i in range(members))
    assert "".join(ring[key].removeprefix("volcano-scheduler-") for key in KEYS) == RECORDED[members]


def environ(member: str = "vc-0", number: str | None = "2") -> dict[str, str]:
    more = {"SCHEDULER_NUM": number} if number is not None else {}
    return {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_POD_NAME": member, **more}


WRONG = {
    "no pod of a StatefulSet": (environ("scheduler"), "SCHEDULER_POD_NAME: 'scheduler' is no name"),
    "no name at all": (environ(""), "SCHEDULER_POD_NAME"),
    "no number": (environ(number="two"), "SCHEDULER_NUM: 'two' must be the number"),
    "a member beyond the number": (environ("vc-2"), "of which vc-2 is one"),
}


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_divided(given: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Share.of(given)


@pytest.mark.parametrize("given", [{}, {"MULTI_SCHEDULER_ENABLE": "false", "SCHEDULER_POD_NAME": "vc-0"}])
def test_one_scheduler_has_everything(given: dict[str, str]) -> None:
    assert Share.of(given) is None


def test_without_a_number_there_is_one() -> None:
    share = Share.of(environ(number=None))
    assert share is not None
    assert share.has_node(node("anything"))


def test_each_has_a_lease_of_its_own() -> None:
    options = Options()
    assert with_lease(options, environ("vc-1")).lease.name == "vc-1"
    assert with_lease(options, {}).lease.name == "volcano"


def test_the_extender_cannot_be_divided() -> None:
    options = parse(Options(), ["--extender-only", "--extender-address=:8090"], {}, PROGRAM).options
    with pytest.raises(UsageError, match="MULTI_SCHEDULER_ENABLE"):
        share_of(options, environ())


# --- two at work ----------------------------------------------------------------------------------------------------------

GANGS, SIZE = 12, 3


def divided(owners: bool) -> tuple[dict[str, set[str]], dict[str, str]]:
    """What each of two schedulers binds to which nodes, of gangs with PodGroups that have an owner or none."""
    clock = VirtualClock(1e9)
    cluster = MemoryCluster(clock)
    cluster.load([queue(), *(node(f"n{i}").cpu(64).memory("64Gi").pods(100) for i in range(8))])
    for number in range(GANGS):
        group: Json = podgroup(f"g{number}").members(SIZE)
        if owners:
            group["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": f"j{number}", "uid": "u"}]
        cluster.create(POD_GROUP, group)
        for i in range(SIZE):
            cluster.create(POD, task(f"g{number}-{i}", f"g{number}").cpu(1))
    bound: dict[str, set[str]] = {}
    for member in ("vc-0", "vc-1"):
        before = placed(cluster)
        options = parse(Options(), ["--leader-elect=false"], {}, PROGRAM).options
        standalone = assemble(options, cluster, environ(member), clock=clock).standalone
        for _ in range(3):
            standalone.turn()
            clock.sleep(1)
        bound[member] = set(placed(cluster)) - set(before)
    return bound, placed(cluster)


def placed(cluster: MemoryCluster) -> dict[str, str]:
    pods = cluster.list(POD).objects
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


@pytest.mark.parametrize("owners", [False, True], ids=["nobody's", "owned"])
def test_each_gang_is_placed_whole_by_one_of_them_on_nodes_of_its_own(owners: bool) -> None:
    bound, nodes = divided(owners)
    assert len(nodes) == GANGS * SIZE
    shares = {member: Share.of(environ(member)) for member in bound}
    for member, share in shares.items():
        assert share is not None
        gangs = {name.partition("-")[0] for name in bound[member]}
        assert bound[member] == {f"{gang}-{i}" for gang in gangs for i in range(SIZE)}
        assert gangs
        assert all(share.has_node({"metadata": {"name": nodes[name]}}) for name in bound[member])


def test_what_is_not_ours_is_not_written() -> None:
    """A PodGroup of the other one keeps its status."""
    clock = VirtualClock(1e9)
    cluster = MemoryCluster(clock)
    share = Share.of(environ("vc-0"))
    assert share is not None
    theirs = next(name for name in (f"g{i}" for i in range(99)) if not share.has_group(podgroup(name)))
    cluster.load([queue(), node("n0").cpu(1).memory("1Gi")])
    cluster.create(POD_GROUP, podgroup(theirs).members(1))
    cluster.create(POD, task(f"{theirs}-0", theirs).cpu(1))
    before = cluster.get(POD_GROUP, Key("default", theirs))
    assemble(
        parse(Options(), ["--leader-elect=false"], {}, PROGRAM).options, cluster, environ("vc-0"), clock=clock
    ).standalone.turn()
    assert cluster.get(POD_GROUP, Key("default", theirs)) == before
