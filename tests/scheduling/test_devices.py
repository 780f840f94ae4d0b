"""Dynamic resource allocation: which devices claims get, which nodes are refused, what is written before a pod is bound."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given as examples
from hypothesis import settings
from hypothesis import strategies as st

from extender.actions import ACTIONS
from extender.api import meta
from extender.api.claim import ResourceClaim
from extender.api.errors import NotFound, Unavailable
from extender.api.meta import POD, QUEUE, RESOURCE_CLAIM, Json, Key, Kind
from extender.api.operations import Bind, Evict, Patch, PatchStatus
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Listing
from extender.core import conf as configuration
from extender.core.conf import Conf
from extender.core.mirror import Mirror
from extender.core.reasons import Reason
from extender.core.scheduling import Result, schedule
from extender.core.snapshot import Snapshot
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task
from extender.testing.devices import asks, claim, claims, device, device_class, from_template, given, offers

TIERS = "tiers: [{plugins: [{name: gang}, {name: predicates}]}]"


def conf(arguments: str = "") -> Conf:
    tiers = TIERS.replace("name: predicates", f"name: predicates, arguments: {{{arguments}}}")
    return configuration.load(f'actions: "enqueue, allocate"\n{tiers}', PLUGINS, ACTIONS)


def session(*objects: Json, arguments: str = "") -> Result:
    mirror = Mirror()
    for obj in (queue(), device_class(), *objects):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    assert not mirror.unreadable, mirror.unreadable
    return schedule(Snapshot.build(mirror), conf(arguments), 0.0)


def binds(result: Result) -> dict[str, Bind]:
    return {operation.pod.name: operation for operation in result.operations if isinstance(operation, Bind)}


def devices_of(bind: Bind) -> list[str]:
    """Names of the devices that claims are given before the pod is bound."""
    statuses = [write.patch["status"] for write in bind.before if isinstance(write, PatchStatus)]
    allocations = [status["allocation"] for status in statuses if "allocation" in status]
    return [result["device"] for allocation in allocations for result in allocation["devices"]["results"]]


def one_pod(*names: str) -> list[Json]:
    return [podgroup(), claims(task("t").cpu(1), *names)]


# --- which devices ------------------------------------------------------------------------------------------------------

GPUS = [device("a", model="A100", numa=0), device("b", model="H100", numa=0), device("c", model="H100", numa=1)]
MODEL = 'device.attributes["gpu.test"].model == "{}"'.format
TAINTED = {**device("t"), "taints": [{"key": "sick", "effect": "NoSchedule"}]}
SHARED = {**device("s", capacity={"memory": "8Gi"}), "allowMultipleAllocations": True}
PARTS = [
    {**device(f"part{i}"), "consumesCounters": [{"counterSet": "card", "counters": {"slices": {"value": "2"}}}]} for i in range(3)
]
AGREE = {"constraints": [{"matchAttribute": "gpu.test/numa"}]}
DIFFER = {"constraints": [{"distinctAttribute": "gpu.test/numa"}]}


def card(slices: int) -> list[Json]:
    """A card that is handed out in parts."""
    counters = offers("", pool="n1", count=2).with_("spec.devices", None)
    counters.with_("spec.sharedCounters", [{"name": "card", "counters": {"slices": {"value": str(slices)}}}])
    return [offers("n1", *PARTS, count=2), counters]


CHOICES: dict[str, tuple[list[Json], Json, list[str]]] = {
    "the first that is free": ([offers("n1", *GPUS), given(claim("old"), "a", node="n1")], claim("mine"), ["b"]),
    "what the request selects": ([offers("n1", *GPUS)], claim("mine", asks(2, MODEL("H100"))), ["b", "c"]),
    "a later one where the first does not go with the rest": (
        [offers("n1", *GPUS)], claim("mine", asks(1), asks(1, MODEL("H100")), **DIFFER), ["a", "c"],
    ),
    "devices that agree": ([offers("n1", *GPUS[1:], device("d", numa=1))], claim("mine", asks(2), **AGREE), ["c", "d"]),
    "none where they cannot agree": ([offers("n1", *GPUS)], claim("mine", asks(3), **AGREE), []),
    "all that match": ([offers("n1", *GPUS)], claim("mine", asks(0, MODEL("H100"), allocationMode="All")), ["b", "c"]),
    "not all where one is taken": (
        [offers("n1", *GPUS), given(claim("old"), "c", node="n1")], claim("mine", asks(0, allocationMode="All")), [],
    ),
    "the first alternative that can be had": (
        [offers("n1", *GPUS)], claim("mine", [asks(3, MODEL("H100")), asks(2, MODEL("H100")), asks(1)]), ["b", "c"],
    ),
    "what is taken, for administration": (
        [offers("n1", *GPUS), given(claim("old"), "a", node="n1")], claim("mine", asks(1, adminAccess=True)), ["a"],
    ),
    "not one that is tainted": ([offers("n1", TAINTED)], claim("mine"), []),
    "a tainted one for who tolerates it": (
        [offers("n1", TAINTED)], claim("mine", asks(tolerations=[{"key": "sick", "operator": "Exists"}])), ["t"],
    ),
    "one that all nodes reach": ([offers("", device("nic"))], claim("mine"), ["nic"]),
    "only the newest generation": (
        [offers("n1", device("old")), offers("n1", device("new"), generation=2)], claim("mine"), ["new"],
    ),
    "nothing of a pool that is being updated": ([offers("n1", *GPUS, count=2)], claim("mine"), []),
    "nothing of a pool with a name twice": ([offers("n1", GPUS[0], GPUS[0])], claim("mine"), []),
    "none of another node": ([offers("n2", *GPUS)], claim("mine"), []),
    "a share of one that has room": (
        [offers("n1", SHARED)], claim("mine", asks(capacity={"requests": {"memory": "8Gi"}})), ["s"],
    ),
    "no share where there is too little": (
        [offers("n1", SHARED)], claim("mine", asks(capacity={"requests": {"memory": "9Gi"}})), [],
    ),
    "parts as far as the card goes": (card(4), claim("mine", asks(2)), ["part0", "part1"]),
    "no more parts than the card has": (card(4), claim("mine", asks(3)), []),
}  # fmt: skip


@pytest.mark.parametrize(("there", "wanted", "want"), CHOICES.values(), ids=CHOICES)
def test_choice(there: list[Json], wanted: Json, want: list[str]) -> None:
    """The devices of a claim on a node; without them the pod is not bound."""
    result = session(node("n1").cpu(4), *there, wanted, *one_pod("mine"))
    assert [name for bind in binds(result).values() for name in devices_of(bind)] == want


def test_all_nodes_are_searched_for_the_device() -> None:
    """The pod goes where the device is, wherever else there is more room."""
    slices = [offers("n1", GPUS[0]), offers("n2", GPUS[1])]
    result = session(node("n1").cpu(9), node("n2").cpu(1), *slices, claim("mine", asks(1, MODEL("H100"))), *one_pod("mine"))
    assert binds(result)["t"].node == "n2"


def test_nodes_that_give_what_is_rather_wanted_go_first() -> None:
    """Of a claim's alternatives the earlier is worth more points."""
    slices = [offers("n1", GPUS[0]), offers("n2", GPUS[1])]
    wanted = claim("mine", [asks(1, MODEL("H100")), asks(1)])
    assert binds(session(node("n1").cpu(1), node("n2").cpu(1), *slices, wanted, *one_pod("mine")))["t"].node == "n2"


# --- why not ------------------------------------------------------------------------------------------------------------

ONE_NODE: list[Json] = [node("n1").cpu(4), offers("n1", *GPUS)]
REASONS: dict[str, tuple[list[Json], str]] = {
    "too few devices": ([claim("mine", asks(4)), *one_pod("mine")], "1 cannot allocate all claims"),
    "a selector without an answer": (
        [claim("mine", asks(1, 'device.attributes["x"].healthy')), *one_pod("mine")],
        "1 claim default/mine, request r0: selector #0: no such key: healthy",
    ),
    "devices of another node": (
        [given(claim("mine"), "x", node="n2"), *one_pod("mine")], "1 resourceclaim not available on the node",
    ),
    "too many use it": (
        [
            given(claim("mine"), "a", node="n1").with_("status.reservedFor", [{"uid": str(i)} for i in range(256)]),
            *one_pod("mine"),
        ],
        "1 resourceclaim in use",
    ),
    "no such claim": (one_pod("mine"), 'pre-predicates failed resourceclaim "mine" not found'),
    "a claim that goes": (
        [claim("mine").with_("metadata.deletionTimestamp", "2025-01-06T00:00:00Z"), *one_pod("mine")],
        'resourceclaim "mine" is being deleted',
    ),
    "no such class": ([claim("mine", asks(class_name="tpu")), *one_pod("mine")], "request r0: device class tpu does not exist"),
    "no such template": (
        [podgroup(), from_template(task("t").cpu(1), "one")],
        'ResourceClaim not created yet: there is no ResourceClaimTemplate "one"',
    ),
    "a claim that is not made yet": (
        [{**claim("one"), "kind": "ResourceClaimTemplate"}, podgroup(), from_template(task("t").cpu(1), "one")],
        'ResourceClaim not created yet from template "one"',
    ),
    "a claim made for another pod": (
        [claim("t-gpu").owned_by(task("other")), podgroup(), from_template(task("t").cpu(1), "one", "t-gpu")],
        'resourceclaim "t-gpu" was not created for the pod',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("objects", "words"), REASONS.values(), ids=REASONS)
def test_reason(objects: list[Json], words: str) -> None:
    """A pod that cannot have its devices waits and says why."""
    result = session(*ONE_NODE, *objects)
    assert not binds(result)
    assert words in result.waiting[0].message


def test_devices_that_others_have_may_come_back() -> None:
    """Waiting for them is not waiting for ever; waiting for a selector that has no answer is."""
    words = [
        session(*ONE_NODE, claim("mine", request), *one_pod("mine")).waiting[0].reason
        for request in (asks(4), asks(1, 'device.attributes["x"].healthy'))
    ]
    assert words == [Reason.NODES_REFUSE, Reason.NEVER_FITS]


def test_a_search_that_has_no_end_is_given_up() -> None:
    """Many devices and constraints that nothing satisfies: the answer comes, and the same one every time."""
    many = [device(f"d{i}", numa=i) for i in range(32)]
    wanted = claim("mine", asks(6), asks(6), constraints=[{"matchAttribute": "gpu.test/numa", "requests": ["r1"]}])
    result = session(node("n1").cpu(4), offers("n1", *many), wanted, *one_pod("mine"))
    assert "the search for devices was given up" in result.waiting[0].message


def test_switched_off_nobody_looks_at_claims() -> None:
    """predicate.DynamicResourceAllocationEnable: false."""
    result = session(*ONE_NODE, *one_pod("mine"), arguments="predicate.DynamicResourceAllocationEnable: false")
    assert binds(result)["t"].before == ()


# --- claims and pods ------------------------------------------------------------------------------------------------------


def workers(count: int, least: int, *names: str) -> list[Json]:
    return [podgroup().members(least), *(claims(task(f"t-{i}").cpu(1), *names) for i in range(count))]


def test_pods_that_share_a_claim_share_its_devices() -> None:
    """The first gets them, the others go where they can be used; each is reserved."""
    result = session(node("n1").cpu(2), node("n2").cpu(9), offers("n2", *GPUS), claim("ours"), *workers(3, 3, "ours"))
    bound = binds(result)
    assert {bind.node for bind in bound.values()} == {"n2"}
    assert [devices_of(bind) for bind in bound.values()] == [["a"], [], []]
    last = list(bound.values())[-1].before[0].patch["status"]
    assert [consumer["name"] for consumer in last["reservedFor"]] == ["t-0", "t-1", "t-2"]


def test_a_shared_claim_pins_a_gang_to_its_node() -> None:
    """Where the node of the device has no room for all, none is bound."""
    assert not binds(session(node("n1").cpu(2), node("n2").cpu(9), offers("n1", *GPUS), claim("ours"), *workers(3, 3, "ours")))


def test_a_gang_that_does_not_get_its_devices_gives_them_back() -> None:
    """Three workers for two devices get none; the single pod after them does."""
    own = [claim(f"c{i}") for i in range(3)]
    gang = [podgroup("big").members(3), *(claims(task(f"big-{i}", "big").cpu(1), f"c{i}") for i in range(3))]
    result = session(node("n1").cpu(9), offers("n1", *GPUS[:2]), *own, *gang, claim("mine"), *one_pod("mine"))
    assert {name: devices_of(bind) for name, bind in binds(result).items()} == {"t": ["a"]}


def test_claims_made_from_a_template_are_alike() -> None:
    """Each worker has a claim of its own; they are judged together and get a device each."""
    pods = [task(f"t-{i}").cpu(1) for i in range(3)]
    made = [claim(f"t-{i}-gpu").owned_by(pod) for i, pod in enumerate(pods)]
    members = [from_template(pod, "one", f"t-{i}-gpu") for i, pod in enumerate(pods)]
    result = session(node("n1").cpu(2), node("n2").cpu(2), offers("n1", *GPUS[:2]), offers("n2", GPUS[2]), *made,
                     podgroup().members(3), *members)  # fmt: skip
    assert sorted(name for bind in binds(result).values() for name in devices_of(bind)) == ["a", "b", "c"]
    assert len({result.session.task_class(row).id for row in result.session.tasks.rows.values()}) == 1


def test_a_device_that_many_nodes_reach_is_given_once() -> None:
    """Taking it on one node refuses it to the pods of all others."""
    own = [claim("c0"), claim("c1")]
    pods = [claims(task(f"t-{i}").cpu(1), f"c{i}") for i in range(2)]
    result = session(node("n1").cpu(1), node("n2").cpu(1), offers("", device("nic")), *own, podgroup(), *pods)
    assert [devices_of(bind) for bind in binds(result).values()] == [["nic"]]


def test_what_is_written() -> None:
    """Protection, then allocation and reservation of the claim; the first holds only for the version that was seen. Settings
    of class and claim are handed on."""
    settings_ = {"opaque": {"driver": "gpu.test", "parameters": {"mode": "exclusive"}}}
    class_ = device_class("tuned").with_("spec.config", [settings_])
    wanted = claim("mine", asks(class_name="tuned"), config=[settings_]).with_("metadata.resourceVersion", "7")
    wanted.with_("status.reservedFor", [{"resource": "pods", "name": "old", "uid": "u"}])
    result = session(*ONE_NODE, class_, wanted, *one_pod("mine"))
    protection, write = binds(result)["t"].before
    protected = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    assert protection == Patch(RESOURCE_CLAIM, Key("default", "mine"), protected, "resourceclaim-default-mine", "7")
    assert write == PatchStatus(RESOURCE_CLAIM, Key("default", "mine"), {"status": {
        "allocation": {
            "devices": {
                "results": [{"request": "r0", "driver": "gpu.test", "pool": "n1", "device": "a"}],
                "config": [{"source": "FromClass", "requests": ["r0"], **settings_}, {"source": "FromClaim", **settings_}],
            },
            "nodeSelector": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
            ]},
        },
        "reservedFor": [
            {"resource": "pods", "name": "old", "uid": "u"}, {"resource": "pods", "name": "t", "uid": "pod-default-t"},
        ],
    }}, "resourceclaim-default-mine")  # fmt: skip


# --- no device twice --------------------------------------------------------------------------------------------------------


@examples(
    nodes=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    shared=st.integers(0, 2),
    groups=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=5),
)
@settings(deadline=None, max_examples=60)
def test_no_device_is_given_twice(nodes: list[int], shared: int, groups: list[tuple[int, int, bool]]) -> None:
    """Gangs of so many pods with so many devices each, or one claim for all of them: no device is in two claims, every bound
    pod has its devices on its node, and what was undone left nothing behind."""
    objects: list[Json] = [offers("", *(device(f"net{i}") for i in range(shared)))] if shared else []
    for i, count in enumerate(nodes):
        objects += [node(f"n{i}").cpu(4), offers(f"n{i}", *(device(f"n{i}-{k}") for k in range(count)))]
    for g, (size, asked, common) in enumerate(groups):
        objects += [podgroup(f"g{g}").members(size)]
        for i in range(size):
            name = f"g{g}" if common else f"g{g}-{i}"
            objects += [claim(name, asks(asked + 1))] if not common or i == 0 else []
            objects += [claims(task(f"g{g}-{i}", f"g{g}").cpu(1), name)]
    result = session(*objects)
    bound = binds(result)
    held = Counter(name for bind in bound.values() for name in devices_of(bind))
    assert all(times == 1 for times in held.values())
    for bind in bound.values():
        assert all(name.startswith(("net", bind.node)) for name in devices_of(bind))
    for g, (size, asked, common) in enumerate(groups):
        members = [bound[f"g{g}-{i}"] for i in range(size) if f"g{g}-{i}" in bound]
        assert len(members) in (0, size)
        wanted = (asked + 1) * (1 if common else size) if members else 0
        assert sum(len(devices_of(bind)) for bind in members) == wanted
    claims_ = next(p for p in result.session.plugins if p.name == "predicates")._claims  # type: ignore[attr-defined]
    assert +claims_._books.taken.whole == Counter({d: 1 for d in claims_._books.taken.whole if held[d.name]})


# --- in a cluster -----------------------------------------------------------------------------------------------------------


class Stubborn(MemoryCluster):
    """Refuses to write claims as often as it is told to, and may not know them at all."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.refusals = 0
        self.unknown: tuple[Kind, ...] = ()

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        if kind is RESOURCE_CLAIM and self.refusals:
            self.refusals -= 1
            raise Unavailable("try again later")
        return super().patch(kind, key, patch, subresource=subresource, dry_run=dry_run)

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        if kind in self.unknown:
            raise NotFound("the server could not find the requested resource")
        return super().list(kind, namespace, label_selector, field_selector)


def running(*objects: Json, unknown: tuple[Kind, ...] = ()) -> tuple[Stubborn, Loop]:
    clock = VirtualClock(1_000_000.0)
    cluster = Stubborn(clock)
    cluster.unknown = unknown
    cluster.load([queue("root"), queue(), device_class(), *objects])
    loop = Loop(cluster, conf(), clock)
    loop.start()
    return cluster, loop


def settle(cluster: Stubborn, loop: Loop) -> None:
    """Long enough for every back-off."""
    clock = cluster.clock
    assert isinstance(clock, VirtualClock)
    for _ in range(60):
        clock.sleep(1.0)
        loop.step()


def status_of(cluster: MemoryCluster, name: str) -> Json:
    return dict(cluster.get(RESOURCE_CLAIM, Key("default", name)).get("status") or {})


def test_the_cluster_shows_who_has_the_device() -> None:
    """The claim is allocated and reserved, the queue shows the device, and the next pod does not get it."""
    cluster, loop = running(node("n1").cpu(4), offers("n1", GPUS[0]), claim("mine"), *one_pod("mine"))
    loop.step()
    status = status_of(cluster, "mine")
    assert status["allocation"]["devices"]["results"][0]["device"] == "a"
    assert status["reservedFor"] == [{"resource": "pods", "name": "t", "uid": "pod-default-t"}]
    loop.step()
    shown = cluster.get(QUEUE, Key("", "default"))["status"]["allocated"]
    assert shown["deviceclass/gpu"] == "1"
    cluster.load([claim("yours"), podgroup("h"), claims(task("u", "h").cpu(1), "yours")])
    loop.step()
    assert "nodeName" not in cluster.get(POD, Key("default", "u"))["spec"]


def test_a_claim_that_cannot_be_written_keeps_its_pod_from_being_bound() -> None:
    """Both are tried again together."""
    cluster, loop = running(node("n1").cpu(4), offers("n1", GPUS[0]), claim("mine"), *one_pod("mine"))
    cluster.refusals = 1
    loop.step()
    assert "nodeName" not in cluster.get(POD, Key("default", "t"))["spec"]
    assert "allocation" not in status_of(cluster, "mine")
    settle(cluster, loop)
    assert cluster.get(POD, Key("default", "t"))["spec"]["nodeName"] == "n1"
    assert status_of(cluster, "mine")["reservedFor"][0]["name"] == "t"


def test_a_claim_that_somebody_else_wrote_is_looked_at_again() -> None:
    """The first write holds only for the claim as it was seen; the pod is bound by what is there then."""
    cluster, loop = running(node("n1").cpu(4), offers("n1", *GPUS), claim("mine"), *one_pod("mine"))
    others = given(claim("mine"), "c", node="n1")["status"]
    cluster.patch(RESOURCE_CLAIM, Key("default", "mine"), {"status": others}, subresource="status")
    loop.cycle()
    assert "nodeName" not in cluster.get(POD, Key("default", "t"))["spec"]
    settle(cluster, loop)
    assert cluster.get(POD, Key("default", "t"))["spec"]["nodeName"] == "n1"
    status = status_of(cluster, "mine")
    assert status["allocation"] == others["allocation"]
    assert [consumer["name"] for consumer in status["reservedFor"]] == ["t"]


def test_an_api_server_without_claims_is_no_fault() -> None:
    """Kubernetes before 1.34 does not serve them: pods without claims are bound as ever."""
    unknown = (meta.RESOURCE_CLAIM, meta.RESOURCE_CLAIM_TEMPLATE, meta.RESOURCE_SLICE, meta.DEVICE_CLASS)
    cluster, loop = running(node("n1").cpu(4), podgroup(), task("t").cpu(1), unknown=unknown)
    loop.step()
    assert cluster.get(POD, Key("default", "t"))["spec"]["nodeName"] == "n1"


# --- what the watch has not shown yet ----------------------------------------------------------------------------------------


def assumed() -> tuple[Mirror, Bind, Json]:
    """A mirror that takes a claim's devices as given, the binding, and the claim as it was."""
    wanted = claim("mine")
    mirror = Mirror()
    for obj in (queue(), device_class(), node("n1").cpu(4), offers("n1", GPUS[0]), wanted, *one_pod("mine")):
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    bind = binds(schedule(Snapshot.build(mirror), conf(), 0.0))["t"]
    mirror.assume([bind])
    return mirror, bind, wanted


def is_given(mirror: Mirror) -> bool:
    seen = mirror.facts[RESOURCE_CLAIM][Key("default", "mine")]
    assert isinstance(seen, ResourceClaim)
    return seen.status.allocation is not None


def test_devices_are_gone_before_the_watch_says_so() -> None:
    """From the decision on, also where an older state of the claim comes in between; until the write fails."""
    mirror, bind, wanted = assumed()
    assert is_given(mirror)
    mirror.apply(RESOURCE_CLAIM, "MODIFIED", {**wanted, "metadata": {**wanted["metadata"], "labels": {"x": "y"}}})
    assert is_given(mirror)
    mirror.forget(bind)
    assert not is_given(mirror)


def test_once_the_watch_has_shown_them_it_is_the_truth() -> None:
    """A claim whose devices were taken back later is without them."""
    mirror, bind, wanted = assumed()
    mirror.apply(RESOURCE_CLAIM, "MODIFIED", {**wanted, **bind.before[-1].patch})
    mirror.apply(RESOURCE_CLAIM, "MODIFIED", wanted)
    assert not is_given(mirror)


def test_eviction_does_not_free_devices() -> None:
    """Only Kubernetes takes a claim's devices back, once nobody uses it: no pod is evicted for a device."""
    low, high = task("low", "l").cpu(1).priority(1).on("n1"), task("t").cpu(1).priority(9)
    objects: list[Json] = [
        queue(), device_class(), node("n1").cpu(4), offers("n1", GPUS[0]), given(claim("old"), "a", node="n1"), claim("mine"),
        podgroup("l").phase("Running"), podgroup(), claims(low, "old"), claims(high, "mine"),
    ]  # fmt: skip
    mirror = Mirror()
    for obj in objects:
        mirror.apply(meta.kind_of(obj), "ADDED", obj)
    text = 'actions: "allocate, preempt"\n' + TIERS.replace("{name: gang}", "{name: gang}, {name: priority}")
    result = schedule(Snapshot.build(mirror), configuration.load(text, PLUGINS, ACTIONS), 0.0)
    assert not [operation for operation in result.operations if isinstance(operation, Bind | Evict)]
