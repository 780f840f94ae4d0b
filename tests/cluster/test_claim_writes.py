"""What a session writes about claims is what an API server takes: protection, allocation, reservation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from extender.actions import ACTIONS
from extender.api.claim import FINALIZER
from extender.api.meta import POD, RESOURCE_CLAIM, Json, Key, key_of, kind_of
from extender.api.operations import Bind
from extender.cluster.apply import apply
from extender.cluster.clock import VirtualClock
from extender.cluster.port import Cluster
from extender.core.conf import load
from extender.core.mirror import Mirror
from extender.core.scheduling import schedule
from extender.core.snapshot import Snapshot
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task
from extender.testing.devices import asks, claim, claims, device, device_class, offers

SETTINGS = {"opaque": {"driver": "gpu.test", "parameters": {"mode": "exclusive"}}}
TAINTS = [{"key": "sick", "effect": "NoSchedule"}]
TOLERATIONS = [{"key": "sick", "operator": "Exists", "effect": "NoSchedule"}]


@pytest.fixture
def devices(cluster: Cluster, ns: str) -> Iterator[list[Json]]:
    """A class and devices of the namespace's own: one by itself, one that several may share, one that all nodes reach."""
    shared = {**device("part", capacity={"memory": "8Gi"}), "allowMultipleAllocations": True}
    net = offers("", device("nic", speed=100), pool=f"net-{ns}", driver="net.test")
    named = device_class(f"gpu-{ns}").with_("spec.config", [SETTINGS])
    made = [
        cluster.create(kind_of(obj), obj)
        for obj in (
            named, device_class(f"nic-{ns}", 'device.driver == "net.test"'), net,
            offers("n1", {**device("a", model="H100"), "taints": TAINTS}, shared, pool=f"gpu-{ns}"),
        )
    ]  # fmt: skip
    yield made
    for obj in made:
        cluster.delete(kind_of(obj), key_of(obj))


def test_what_a_session_writes_is_taken(cluster: Cluster, ns: str, devices: list[Json], clock: VirtualClock) -> None:
    """Devices of every sort in one claim; the claim then shows them all."""
    wanted = claim(
        "mine", asks(1, class_name=f"gpu-{ns}", tolerations=TOLERATIONS),
        [asks(9, class_name=f"gpu-{ns}"), asks(1, class_name=f"gpu-{ns}", capacity={"requests": {"memory": "2Gi"}})],
        asks(1, 'device.attributes["net.test"].speed >= 100', class_name=f"nic-{ns}"), config=[SETTINGS],
    )  # fmt: skip
    pod = claims(task("t", "g").cpu(1), "mine")
    made = [cluster.create(kind_of(obj), _in(ns, obj)) for obj in (wanted, pod)]
    mirror = Mirror()
    for obj in (queue(), node("n1").cpu(4), _in(ns, podgroup("g")), *devices, *made):
        mirror.apply(kind_of(obj), "ADDED", obj)
    assert not mirror.unreadable
    conf = load('actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: predicates}]}]', PLUGINS, ACTIONS)
    result = schedule(Snapshot.build(mirror), conf, 0.0)
    [bind] = [operation for operation in result.operations if isinstance(operation, Bind)]
    assert not apply(cluster, bind.before, clock=clock).failures
    written = cluster.get(RESOURCE_CLAIM, Key(ns, "mine"))
    given = {each["request"]: each["device"] for each in written["status"]["allocation"]["devices"]["results"]}
    assert given == {"r0": "a", "r1/s1": "part", "r2": "nic"}
    assert written["status"]["reservedFor"][0]["uid"] == cluster.get(POD, Key(ns, "t"))["metadata"]["uid"]
    assert FINALIZER in written["metadata"]["finalizers"]


def _in(ns: str, obj: Json) -> Json:
    """The object in the namespace; its uid is for the cluster to give."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "uid"}
    return {**obj, "metadata": metadata | {"namespace": ns}}
