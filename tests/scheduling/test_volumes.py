"""Volumes: which claims get which, which nodes are refused and in which words, what a binding writes and waits for.

That single nodes are judged as kube-scheduler does is shown by tests/parity/test_kube_scores.py; here is what a session makes
of it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.actions import ACTIONS
from extender.api import labels, meta
from extender.api.meta import Json, Key
from extender.api.operations import Bind, ClaimsBound, Evict, Patch
from extender.core import conf as configuration
from extender.core.conf import Conf
from extender.core.mirror import Mirror
from extender.core.reasons import Reason
from extender.core.scheduling import Result, schedule
from extender.core.snapshot import Snapshot
from extender.core.volumes import restrictions
from extender.plugins import PLUGINS
from extender.testing.builders import Built, node, podgroup, priority_class, queue, task
from extender.testing.storage import (
    FAST,
    LOCAL,
    NOW,
    bound,
    claim,
    classes,
    csi_node,
    ephemeral,
    mounts,
    storage_class,
    volume,
)

TIERS = "tiers: [{plugins: [{name: gang}, {name: predicates}]}]"


def conf(arguments: str = "") -> Conf:
    tiers = TIERS.replace("name: predicates", f"name: predicates, arguments: {{{arguments}}}")
    return configuration.load(f'actions: "enqueue, allocate, backfill"\n{tiers}', PLUGINS, ACTIONS)


def mirror_of(*objects: Json) -> Mirror:
    mirror = Mirror()
    for obj in (queue(), *classes(), *objects):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    assert not mirror.unreadable, mirror.unreadable
    return mirror


def session(*objects: Json, arguments: str = "") -> Result:
    return schedule(Snapshot.build(mirror_of(*objects)), conf(arguments), 0.0)


def binds(result: Result) -> dict[str, Bind]:
    return {operation.pod.name: operation for operation in result.operations if isinstance(operation, Bind)}


def nodes(result: Result) -> dict[str, str]:
    return {name: bind.node for name, bind in binds(result).items()}


def given_to(*binds_: Bind) -> dict[str, str]:
    """Claim -> the volume, or the node for which one is to be made, that is written before the pods are bound."""
    found = {}
    for write in (write for bind in binds_ for write in bind.before):
        if write.kind is meta.PV:
            found[write.patch["spec"]["claimRef"]["name"]] = write.key.name
        else:
            found[write.key.name] = write.patch["metadata"]["annotations"][labels.SELECTED_NODE]
    return found


def one_pod(*names: str) -> list[Json]:
    return [podgroup(), mounts(task("t").cpu(1), *names)]


TWO_NODES = [node("n1").cpu(4), node("n2").cpu(4)]

# --- which volume -----------------------------------------------------------------------------------------------------------

CHOICES: dict[str, tuple[list[Json], dict[str, str]]] = {
    "the smallest that does": ([volume("a", "9Gi"), volume("b", "2Gi"), volume("c", "500Mi"), claim("d")], {"d": "b"}),
    "of equal ones the first by name": ([volume("b"), volume("a"), claim("d")], {"d": "a"}),
    "the one that is meant for it, however large": (
        [volume("a", "1Gi"), volume("z").for_(claim("d"), uid=False), claim("d")], {"d": "z"},
    ),
    "not one that is somebody's": ([volume("a").for_(claim("other")), volume("b", "99Gi"), claim("d")], {"d": "b"}),
    "only with all its modes": ([volume("a"), volume("b").with_("spec.accessModes", ["ReadWriteOnce", "ReadWriteMany"]),
                                 claim("d").modes("ReadWriteMany")], {"d": "b"}),
    "only of its class": ([volume("a").of("other"), claim("d")], {}),
    "only of its volume mode": ([volume("a").with_("spec.volumeMode", "Block"), claim("d")], {}),
    "only what its selector matches": (
        [volume("a"), volume("b").labels(tier="gold"), claim("d").with_("spec.selector", {"matchLabels": {"tier": "gold"}})],
        {"d": "b"},
    ),
    "only of its attributes class": ([volume("a").with_("spec.volumeAttributesClassName", "gold"), claim("d")], {}),
    "none that is not ready": ([volume("a").with_("status.phase", "Released"), claim("d")], {}),
    "none that is going": ([volume("a").with_("metadata.deletionTimestamp", "2025-01-06T00:00:00Z"), claim("d")], {}),
    "one that is made for its node": ([claim("d").of(FAST)], {"d": "n1"}),
    "one that is there rather than one that is made": ([volume("a").of(FAST), claim("d").of(FAST)], {"d": "a"}),
    "the small one for the small claim": (
        [volume("a", "2Gi"), volume("b", "4Gi"), claim("d").size("3Gi"), claim("e").size("1Gi")], {"d": "b", "e": "a"},
    ),
    "none for one claim is none for the other": ([volume("a"), claim("d"), claim("e")], {}),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), CHOICES.values(), ids=CHOICES)
def test_choice(objects: list[Json], want: dict[str, str]) -> None:
    """What the claims of a single pod get."""
    names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "PersistentVolumeClaim"]
    assert given_to(*binds(session(*TWO_NODES, *objects, *one_pod(*names))).values()) == want


def room(size: int, on: str) -> Built:
    """That a driver has for volumes of the class FAST."""
    made = Built(meta.CSI_STORAGE_CAPACITY, on).with_("nodeTopology.matchLabels", {labels.HOSTNAME: on})
    return made.with_("storageClassName", FAST).with_("capacity", f"{size}Gi")


PLACES: dict[str, tuple[list[Json], list[str]]] = {
    "where its volume is": ([*bound("d", volume("a").only_on("n2"))], ["n2"]),
    "where a volume is for it": ([volume("a").only_on("n2"), claim("d")], ["n2"]),
    "where all of its claims are served": (
        [volume("a").only_on("n1"), volume("b").only_on("n2"), volume("c", "5Gi").only_on("n2"), claim("d"), claim("e")], ["n2"],
    ),
    "where its volume is to be made already": ([claim("d").of(FAST).selected("n2")], ["n2"]),
    "in the zone of its volume": ([*bound("d", volume("a").labels({labels.ZONE: "z2"}))], ["n2"]),
    "in one of the zones of its volume": ([*bound("d", volume("a").labels({labels.ZONE_BETA: "z2__z3"}))], ["n2"]),
    "where its class makes volumes": (
        [storage_class("z").with_("allowedTopologies", [{"matchLabelExpressions": [{"key": labels.ZONE, "values": ["z2"]}]}]),
         claim("d").of("z")], ["n2"],
    ),
    "where the driver has room": (
        [Built(meta.CSI_DRIVER, "csi.test").with_("spec.storageCapacity", True), room(1, "n1"), room(5, "n2"),
         claim("d").of(FAST).size("3Gi")], ["n2"],
    ),
    "nowhere if the affinity of two volumes is at odds": (
        [*bound("d", volume("a").only_on("n1")), *bound("e", volume("b").only_on("n2"))], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "want"), PLACES.values(), ids=PLACES)
def test_place(objects: list[Json], want: list[str]) -> None:
    """n1 is in zone z1, n2 in z2; without volumes the pod would go to n1."""
    names = [obj["metadata"]["name"] for obj in objects if obj["kind"] == "PersistentVolumeClaim"]
    zoned = [node("n1").cpu(4).zone("z1"), node("n2").cpu(4).zone("z2")]
    assert list(nodes(session(*zoned, *objects, *one_pod(*names))).values()) == want


# --- why a pod waits --------------------------------------------------------------------------------------------------------

REASONS: dict[str, tuple[list[Json], str]] = {
    "no claim": ([], '0/2 nodes are unavailable: 2 persistentvolumeclaim "d" not found.'),
    "no class": ([claim("d").of("")], "(d has no volume, and names no StorageClass that could make one)"),
    "a class that is not there": ([claim("d").of("x")], "(d has no volume, and there is no StorageClass x)"),
    "a volume that comes at once": ([claim("d").of(NOW)], "pod has unbound immediate PersistentVolumeClaims"),
    "half bound": ([claim("d").with_("spec.volumeName", "a")], "(d is not bound to its volume a yet)"),
    "a claim that goes": (
        [claim("d").with_("metadata.deletionTimestamp", "2025-01-06T00:00:00Z")], 'persistentvolumeclaim "d" is being deleted',
    ),
    "a volume that is lost": (
        [claim("d").bound_to("a").with_("status.phase", "Lost")],
        'persistentvolumeclaim "d" bound to non-existent persistentvolume "a"',
    ),
    "a volume that is not there": ([claim("d").bound_to("a")], '0/2 nodes are unavailable: 2 persistentvolume "a" not found.'),
    "no volume for it": ([claim("d")], "2 node(s) didn't find available persistent volumes to bind"),
    "a volume elsewhere": ([*bound("d", volume("a").only_on("n9"))], "2 node(s) didn't match PersistentVolume's node affinity"),
    "other zones": ([*bound("d", volume("a").labels({labels.ZONE: "z9"}))], "2 node(s) had no available volume zone"),
    "too many attached": (
        [*bound("d", volume("a").csi()), csi_node("n1", 0), csi_node("n2", 0)], "2 node(s) exceed max volume count",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "words"), REASONS.values(), ids=REASONS)
def test_reason(objects: list[Json], words: str) -> None:
    """In kube-scheduler's words, and what they leave open."""
    zoned = [node("n1").cpu(4).zone("z1"), node("n2").cpu(4).zone("z2")]
    result = session(*zoned, *objects, *one_pod("d"))
    assert not binds(result)
    assert words in result.waiting[0].message


def test_a_volume_that_may_come_is_no_reason_to_say_never() -> None:
    """Nothing but what the volume itself says of nodes lasts."""
    waits = session(*TWO_NODES, claim("d"), *one_pod("d")).waiting[0].reason
    never = session(*TWO_NODES, *bound("d", volume("a").only_on("n9")), *one_pod("d")).waiting[0].reason
    assert (waits, never) == (Reason.NODES_REFUSE, Reason.NEVER_FITS)


OFF = {
    "VolumeBinding": [claim("d").bound_to("a").with_("status.phase", "Lost"), volume("a")],
    "VolumeZone": [*bound("d", volume("a").labels({labels.ZONE: "z9"}))],
    "NodeVolumeLimits": [*bound("d", volume("a").csi()), csi_node("n1", 0)],
    "VolumeRestrictions": [
        *bound("d", volume("a")), claim("d").bound_to("a").modes("ReadWriteOncePod"), mounts(task("u", "other").on("n1"), "d"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("plugin", OFF)
def test_each_plugin_can_be_switched_off(plugin: str) -> None:
    """predicate.<plugin>Enable: false."""
    objects = [node("n1").cpu(4).zone("z1"), *OFF[plugin], *one_pod("d")]
    assert not binds(session(*objects))
    assert "t" in binds(session(*objects, arguments=f"predicate.{plugin}Enable: false"))


def test_switched_off_nobody_gives_or_awaits_volumes() -> None:
    """Then the pod is bound, and its claim is somebody else's business."""
    bind = binds(session(*TWO_NODES, claim("d").of(FAST), *one_pod("d"), arguments="predicate.VolumeBindingEnable: false"))["t"]
    assert (bind.before, bind.awaits) == ((), None)


# --- several pods -----------------------------------------------------------------------------------------------------------


def workers(count: int, least: int, *names: str, group: str = "g") -> list[Json]:
    pods = [mounts(task(f"{group}-{i}", group).cpu(1), *(name.format(i) for name in names)) for i in range(count)]
    return [podgroup(group).members(least), *pods]


def test_a_volume_goes_to_one_claim_only() -> None:
    """Two volumes, three pods with a claim each."""
    own = [claim(f"d{i}") for i in range(3)]
    result = session(*TWO_NODES, volume("a", "2Gi"), volume("b", "3Gi"), *own, *workers(3, 1, "d{}"))
    assert given_to(*binds(result).values()) == {"d0": "a", "d1": "b"}


def test_a_gang_that_is_not_placed_gives_its_volumes_back() -> None:
    """Three workers for two volumes get none; the pod after them gets the smallest."""
    own = [claim(f"d{i}") for i in range(3)]
    result = session(*TWO_NODES, volume("a", "2Gi"), volume("b", "3Gi"), *own, claim("e"),
                     *workers(3, 3, "d{}"), podgroup("h").created(9), mounts(task("t", "h").cpu(1), "e"))  # fmt: skip
    assert given_to(*binds(result).values()) == {"e": "a"}


def test_pods_that_share_a_claim_share_its_volume() -> None:
    """The first decides where; one write, and all wait for the claim."""
    result = session(node("n1").cpu(2), node("n2").cpu(9), volume("a").only_on("n2"), claim("d"), *workers(3, 3, "d"))
    found = binds(result)
    assert {bind.node for bind in found.values()} == {"n2"}
    assert [len(bind.before) for bind in found.values()] == [1, 0, 0]
    assert {bind.awaits for bind in found.values()} == {ClaimsBound((Key("default", "d"),), 600.0)}


def test_a_volume_that_is_made_for_one_node_keeps_the_gang_there() -> None:
    """n1 has no room for all of them; nobody else may go to n2 once the volume is for n1."""
    objects = [claim("d").of(FAST), *workers(3, 3, "d")]
    assert not binds(session(node("n1").cpu(2), node("n2").cpu(2), *objects))
    assert len(binds(session(node("n1").cpu(3), node("n2").cpu(2), *objects))) == 3


def test_pods_with_bound_claims_are_placed_at_once() -> None:
    """A shared volume costs nothing per pod: the class is judged once, and nothing is judged across nodes."""
    result = session(node("n1").cpu(9), *bound("d", volume("a").csi()), csi_node("n1", 1), *workers(8, 8, "d"))
    plan = result.session.plan(result.session.task_class(result.session.tasks.rows[Key("default", "g-0")]))
    assert (len(binds(result)), plan.across_checks) == (8, [])
    assert {(bind.before, bind.awaits) for bind in binds(result).values()} == {((), None)}


def test_one_pod_at_a_time() -> None:
    """A claim of the mode ReadWriteOncePod is for one pod, in this session too."""
    own = [claim("d").modes("ReadWriteOncePod").bound_to("a"), volume("a")]
    result = session(*TWO_NODES, *own, *workers(2, 1, "d"))
    assert list(nodes(result)) == ["g-0"]
    assert "1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod" in str(
        session(node("n1").cpu(4), *own, mounts(task("u", "other").on("n1"), "d"), *one_pod("d")).waiting[0].message
    )


def test_a_gang_that_shares_what_is_for_one_pod() -> None:
    """Two of it can never run at once; one that may run alone, or beside others, waits for its turn."""
    own = [claim("d").modes("ReadWriteOncePod").bound_to("a"), volume("a")]
    both, alone = (session(*TWO_NODES, *own, *workers(2, least, "d")).waiting[0] for least in (2, 1))
    assert (both.reason, alone.reason) == (Reason.NEVER_FITS, Reason.NODES_REFUSE)
    assert "claim d is for one pod at a time (ReadWriteOncePod), 2 that mount it must run at once; " in both.message


def test_nodes_that_the_claim_of_another_does_not_reach_are_counted_once() -> None:
    """A volume made on demand is promised to the first of the gang, on its node."""
    wait = session(*TWO_NODES, storage_class("z"), claim("d").of("z").modes("ReadWriteOncePod"), *workers(2, 2, "d")).waiting[0]
    assert wait.numbers["causes"] == {restrictions.IN_USE: 2}


_AMAZON = {"awsElasticBlockStore": {"volumeID": "a", "readOnly": True}}
DISKS: dict[str, tuple[Json, Json, bool]] = {
    "the same, written": ({"iscsi": {"iqn": "a"}}, {"iscsi": {"iqn": "a", "readOnly": True}}, False),
    "the same, only read": ({"iscsi": {"iqn": "a", "readOnly": True}}, {"iscsi": {"iqn": "a", "readOnly": True}}, True),
    "others": ({"gcePersistentDisk": {"pdName": "a"}}, {"gcePersistentDisk": {"pdName": "b"}}, True),
    "the same, of Amazon, only read": (_AMAZON, _AMAZON, False),
    "a monitor in common": ({"rbd": {"monitors": ["x", "y"], "image": "a"}}, {"rbd": {"monitors": ["y"], "image": "a"}}, False),
    "no monitor in common": ({"rbd": {"monitors": ["x"], "image": "a"}}, {"rbd": {"monitors": ["y"], "image": "a"}}, True),
}  # fmt: skip


@pytest.mark.parametrize(("held", "wanted", "fits"), DISKS.values(), ids=DISKS)
def test_disks_of_pods(held: Json, wanted: Json, fits: bool) -> None:
    """Two pods on one node."""
    there = task("u", "other").on("n1").with_("spec.volumes", [{"name": "v", **held}])
    comes = task("t").cpu(1).with_("spec.volumes", [{"name": "v", **wanted}])
    assert ("t" in binds(session(node("n1").cpu(4), there, podgroup(), comes))) == fits


def test_a_disk_goes_to_one_pod_of_a_session() -> None:
    """Each node takes one of those that write to it."""
    pods = [task(f"t-{i}").cpu(1).with_("spec.volumes", [{"name": "v", "iscsi": {"iqn": "a"}}]) for i in range(3)]
    assert sorted(nodes(session(*TWO_NODES, podgroup(), *pods)).values()) == ["n1", "n2"]


def test_attached_volumes_are_counted() -> None:
    """Those of pods that are there and of those placed now; a volume that is there already costs nothing."""
    there = [*bound("a", volume("a").csi()), mounts(task("u", "other").on("n1"), "a")]
    own = [obj for name in "bcd" for obj in bound(name, volume(name).csi())]
    pods = [mounts(task(f"t-{name}").cpu(1), name) for name in "abcd"]
    result = session(node("n1").cpu(9), csi_node("n1", 3), *there, *own, podgroup(), *pods)
    assert sorted(nodes(result)) == ["t-a", "t-b", "t-c"]


def test_what_is_attached_still_counts() -> None:
    """A volume whose pods have gone, until it is detached; one that comes back to its node costs nothing."""
    own = [obj for name in "ab" for obj in bound(name, volume(name).csi())]
    attached = Built(meta.VOLUME_ATTACHMENT, "x").with_("spec.attacher", "csi.test").with_("spec.nodeName", "n1")
    attached.with_("spec.source.persistentVolumeName", "a")
    pods = [mounts(task(f"t-{name}").cpu(1), name) for name in "ab"]
    result = session(node("n1").cpu(9), csi_node("n1", 1), *own, attached, podgroup(), *pods)
    assert list(nodes(result)) == ["t-a"]


def test_claims_of_ephemeral_volumes() -> None:
    """Pods with claims of their own are alike; each has its volume made, within what the node can have."""
    pods = [ephemeral(task(f"t-{i}").cpu(1)) for i in range(4)]
    own = [claim(f"t-{i}-own").of(FAST).owned_by(pod) for i, pod in enumerate(pods)]
    result = session(*TWO_NODES, csi_node("n1", 1), csi_node("n2", 2), *own, podgroup(), *pods)
    assert Counter(nodes(result).values()) == {"n1": 1, "n2": 2}
    assert len(given_to(*binds(result).values())) == 3
    assert len({result.session.task_class(row).id for row in result.session.tasks.rows.values()}) == 1


def test_an_ephemeral_volume_has_a_claim_of_its_own() -> None:
    """Until it is made the pod waits; one that was made for another pod is not taken."""
    missing = session(*TWO_NODES, podgroup(), ephemeral(task("t")))
    foreign = session(*TWO_NODES, claim("t-own").of(FAST).owned_by(task("u")), podgroup(), ephemeral(task("t")))
    assert 'waiting for ephemeral volume controller to create the persistentvolumeclaim "t-own"' in missing.waiting[0].message
    assert "PVC default/t-own was not created for pod default/t (pod is not owner)" in foreign.waiting[0].message


EVICTIONS: dict[str, tuple[list[Json], str, list[str]]] = {
    "a volume less on the node": (
        [*bound("a", volume("a").csi()), *bound("b", volume("b").csi()), csi_node("n1", 1)], "b", ["low"],
    ),
    "a claim that is for one pod": ([claim("a").modes("ReadWriteOncePod").bound_to("a"), volume("a")], "a", ["low"]),
    "no eviction makes a volume": ([*bound("a", volume("a")), claim("b")], "b", []),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "wanted", "leaving"), EVICTIONS.values(), ids=EVICTIONS)
def test_who_leaves_for_a_pod_with_volumes(objects: list[Json], wanted: str, leaving: list[str]) -> None:
    """A pod of low priority mounts `a` on n1, beside one of its gang; the important one takes what it leaves."""
    there = [mounts(task("low", "one").cpu(1).priority(1).on("n1"), "a"), task("calm", "one").cpu(1).priority(2).on("n1")]
    comes = mounts(task("high", "two").cpu(1).priority(9), wanted)
    ranks = [priority_class("minor", 1), priority_class("major", 9)]
    mirror = mirror_of(node("n1").cpu(4), *ranks, *objects, podgroup("one").priority("minor"), *there,
                       podgroup("two").priority("major"), comes)  # fmt: skip
    tiers = "tiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}]}]"
    preempting = configuration.load(f'actions: "enqueue, allocate, preempt"\n{tiers}', PLUGINS, ACTIONS)
    result = schedule(Snapshot.build(mirror), preempting, 0.0)
    assert [operation.pod.name for operation in result.operations if isinstance(operation, Evict)] == leaving


# --- what is written --------------------------------------------------------------------------------------------------------


def test_a_volume_is_told_whose_it_is() -> None:
    """If nobody has written it meanwhile; the pod then waits for the claim."""
    own = claim("d")
    seen = volume("a").with_("metadata.resourceVersion", "7")
    bind = binds(session(*TWO_NODES, seen, own, *one_pod("d"), arguments="volumebinding.bindTimeoutSeconds: 30"))["t"]
    whose = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **Key("default", "d")._asdict(), "uid": own["metadata"]["uid"]}
    patch = {"spec": {"claimRef": whose}, "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}}
    assert bind.before == (Patch(meta.PV, Key("", "a"), patch, seen["metadata"]["uid"], "7"),)
    assert bind.awaits == ClaimsBound((Key("default", "d"),), 30.0)


def test_what_says_so_already_is_not_written() -> None:
    """The volume is the claim's, the node is selected: an earlier attempt got so far."""
    own, other = claim("d"), claim("e").of(FAST).selected("n1")
    bind = binds(session(*TWO_NODES, volume("a").for_(own), own, other, *one_pod("d", "e")))["t"]
    assert (bind.before, bind.awaits) == ((), ClaimsBound((Key("default", "d"), Key("default", "e")), 600.0))


def test_what_was_promised_stays_promised_in_the_next_session() -> None:
    """Until the watch shows it, or the write has failed."""
    mirror = mirror_of(*TWO_NODES, volume("a"), claim("d"), *one_pod("d"))
    first = schedule(Snapshot.build(mirror), conf(), 0.0)
    mirror.assume(first.operations)
    for obj in (claim("e"), podgroup("h"), mounts(task("u", "h").cpu(1), "e")):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    mirror.apply(meta.PV, "MODIFIED", volume("a").labels(seen="again"))  # older than our write
    kept = binds(schedule(Snapshot.build(mirror), conf(), 1.0))
    mirror.forget(binds(first)["t"])
    free = binds(schedule(Snapshot.build(mirror), conf(), 2.0))
    assert (kept, given_to(*free.values())) == ({}, {"d": "a"})


def test_pods_without_claims_do_not_pay() -> None:
    """No plan is judged across nodes, no volume is looked at, no binding waits."""
    result = session(*TWO_NODES, volume("a"), csi_node("n1", 1), podgroup().members(2), task("t-0").cpu(1), task("t-1").cpu(1))
    plans = [result.session.plan(result.session.task_class(row)) for row in result.session.tasks.rows.values()]
    assert [plan.across_checks for plan in plans] == [[], []]
    assert {(bind.before, bind.awaits) for bind in binds(result).values()} == {((), None)}


# --- nothing twice ----------------------------------------------------------------------------------------------------------


@given(
    volumes=st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "n0", "n1", "n2"])), max_size=6),
    limits=st.lists(st.integers(0, 3), min_size=3, max_size=3),
    gangs=st.lists(
        st.tuples(st.integers(1, 3), st.lists(st.tuples(st.integers(1, 4), st.sampled_from([LOCAL, FAST])), max_size=2),
                  st.booleans()), min_size=1, max_size=5,
    ),
)  # fmt: skip
@settings(deadline=None, max_examples=80)
def test_no_volume_is_promised_twice(
    volumes: list[tuple[int, str]], limits: list[int], gangs: list[tuple[int, list[tuple[int, str]], bool]]
) -> None:
    """Gangs of so many pods with claims of their own, or in common: no volume goes to two claims, each does for its claim and
    its node, no node has more volumes attached than it can have, and what was undone left nothing behind."""
    objects: list[Json] = [node(f"n{i}").cpu(4) for i in range(3)] + [csi_node(f"n{i}", limit) for i, limit in enumerate(limits)]
    sizes = {}
    for i, (size, place) in enumerate(volumes):
        sizes[f"v{i}"] = (size, place)
        objects.append(volume(f"v{i}", f"{size}Gi").only_on(place) if place else volume(f"v{i}", f"{size}Gi"))
    asked: dict[str, tuple[int, str]] = {}
    for g, (count, wanted, common) in enumerate(gangs):
        objects.append(podgroup(f"g{g}").members(count))
        for i in range(count):
            names = [f"g{g}-{k}" if common else f"g{g}-{i}-{k}" for k in range(len(wanted))]
            objects += [claim(n).size(f"{w[0]}Gi").of(w[1]) for n, w in zip(names, wanted, strict=True) if n not in asked]
            asked |= dict(zip(names, wanted, strict=True))
            objects.append(mounts(task(f"g{g}-{i}", f"g{g}").cpu(1), *names))
    result = session(*objects)
    found = binds(result)
    promised = given_to(*found.values())
    taken = Counter(given for name, given in promised.items() if given in sizes)
    assert all(times == 1 for times in taken.values())
    attached: dict[str, set[str]] = {f"n{i}": set() for i in range(3)}
    for bind in found.values():
        for key in bind.awaits.claims if bind.awaits is not None else ():
            size, storage = asked[key.name]
            given = promised[key.name]
            if storage == FAST:
                assert given == bind.node
                attached[bind.node].add(key.name)
            else:
                assert sizes[given][0] >= size
                assert sizes[given][1] in ("", bind.node)
    assert all(len(names) <= limits[int(name[1:])] for name, names in attached.items())
    for g, (count, _, _) in enumerate(gangs):
        assert sum(name.startswith(f"g{g}-") for name in found) in (0, count)
    stock = next(p for p in result.session.plugins if p.name == "predicates")._volumes._stock  # type: ignore[attr-defined]
    kept = {key.name: given.metadata.name for key, given in stock._promised.items()}
    assert kept | {key.name: given for key, given in stock._made_for.items()} == promised
    assert stock._taken == {*kept.values()}
