"""PersistentVolumes and their claims: as on a real server, and what the embedded cluster plays besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from extender.api import labels
from extender.api.errors import NotFound
from extender.api.meta import POD, PV, PVC, STORAGE_CLASS, Json, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster
from extender.cluster.workloads.storage import StorageController
from extender.testing.builders import node, pod
from extender.testing.storage import NOW, claim, classes, ephemeral, mounts, storage_class, volume
from tests.cluster.conftest import Becomes
from tests.controlplane.waiting import wait_until

# --- on both ----------------------------------------------------------------------------------------------------------------


class Storage:
    """Volumes and claims of one namespace, and of a class named after it."""

    def __init__(self, cluster: Cluster, ns: str) -> None:
        self.cluster, self.ns = cluster, ns
        self.controller = StorageController(cluster, VirtualClock()) if isinstance(cluster, MemoryCluster) else None
        self.made: list[str] = []

    def class_(self, mode: str, **annotations: str) -> None:
        made = storage_class(self.ns, "kubernetes.io/no-provisioner", mode)
        for key, value in annotations.items():
            made.annotate(key, value)
        self.cluster.create(STORAGE_CLASS, made)

    def volume(self, name: str, size: str, **spec: object) -> str:
        made = volume(f"{self.ns}-{name}", size).of(self.ns).with_("spec.hostPath", {"path": "/x"})
        made["spec"].update(spec)
        self.cluster.create(PV, made)
        self.made.append(f"{self.ns}-{name}")
        return self.made[-1]

    def claim(self, size: str = "1Gi", **spec: object) -> Json:
        made = claim("data").of(self.ns).size(size)
        made["metadata"]["namespace"] = self.ns
        made["spec"].update(spec)
        return self.cluster.create(PVC, made)

    def pod(self) -> None:
        made = mounts(pod("p", self.ns), "data").with_("spec.terminationGracePeriodSeconds", 0)
        self.cluster.create(POD, made)
        self.cluster.bind(Key(self.ns, "p"), "n1")

    def until(self, holds: Callable[[], object], what: str) -> None:
        if self.controller is None:
            wait_until(holds, what)
        else:
            self.controller.reconcile()
            assert holds(), what

    def seen(self) -> Json | None:
        try:
            return self.cluster.get(PVC, Key(self.ns, "data"))
        except NotFound:
            return None

    def phase(self, name: str = "") -> str:
        """Of a volume, or of the claim."""
        obj = self.cluster.get(PV, Key("", name)) if name else self.seen()
        return str(((obj or {}).get("status") or {}).get("phase", ""))


@pytest.fixture
def storage(cluster: Cluster, ns: str) -> Iterator[Storage]:
    made = Storage(cluster, ns)
    yield made
    for name in made.made:
        cluster.delete(PV, Key("", name))
    if any(obj["metadata"]["name"] == ns for obj in cluster.list(STORAGE_CLASS).objects):
        cluster.delete(STORAGE_CLASS, Key("", ns))


def test_a_claim_gets_the_smallest_volume_that_does(storage: Storage) -> None:
    """Both sides say so."""
    large, small, tiny = storage.volume("large", "9Gi"), storage.volume("small", "2Gi"), storage.volume("tiny", "500Mi")
    storage.until(lambda: all(storage.phase(name) == "Available" for name in (large, small, tiny)), "the volumes")
    uid = storage.claim()["metadata"]["uid"]
    storage.until(lambda: storage.phase() == "Bound", "the claim to be bound")
    seen, whose = storage.seen(), storage.cluster.get(PV, Key("", small))["spec"]["claimRef"]
    assert seen is not None
    assert (seen["spec"]["volumeName"], seen["status"]["capacity"]) == (small, {"storage": "2Gi"})
    assert seen["metadata"]["annotations"].keys() >= {labels.BIND_COMPLETED, labels.BOUND_BY_CONTROLLER}
    assert (whose["name"], whose["uid"]) == ("data", uid)
    storage.until(lambda: storage.phase(small) == "Bound", "the volume to be bound")


def test_a_claim_of_a_class_that_waits_is_bound_by_whom_the_volume_names(storage: Storage, becomes: Becomes) -> None:
    """This is what a scheduler writes."""
    storage.class_("WaitForFirstConsumer")
    name = storage.volume("one", "5Gi")
    made = storage.claim()
    storage.until(lambda: storage.phase(name) == "Available", "the volume")
    becomes(storage.phase, "Pending")
    whose = {"apiVersion": "v1", "kind": PVC.name, "namespace": storage.ns, "name": "data", "uid": made["metadata"]["uid"]}
    note = {"annotations": {labels.BOUND_BY_CONTROLLER: "yes"}}
    storage.cluster.patch(PV, Key("", name), {"spec": {"claimRef": whose}, "metadata": note})
    storage.until(lambda: storage.phase() == "Bound", "the claim to be bound")


def test_a_claim_that_names_its_volume_gets_it(storage: Storage) -> None:
    """However large it is."""
    storage.volume("a", "1Gi")
    storage.volume("b", "9Gi")
    storage.claim(volumeName=f"{storage.ns}-b")
    storage.until(lambda: storage.phase() == "Bound", "the claim to be bound")
    assert storage.phase(f"{storage.ns}-a") == "Available"


def test_a_volume_whose_claim_is_gone_is_kept(storage: Storage) -> None:
    """Its policy is Retain."""
    name = storage.volume("one", "5Gi")
    storage.claim()
    storage.until(lambda: storage.phase() == "Bound", "the claim to be bound")
    storage.cluster.delete(PVC, Key(storage.ns, "data"))
    storage.until(lambda: storage.phase(name) == "Released", "the volume to be released")


def test_a_claim_that_a_pod_uses_stays_until_the_pod_is_gone(storage: Storage) -> None:
    storage.volume("one", "5Gi")
    storage.claim()
    storage.until(lambda: storage.phase() == "Bound", "the claim to be bound")
    storage.pod()
    storage.cluster.delete(PVC, Key(storage.ns, "data"))
    seen = storage.seen()
    assert seen is not None
    assert "deletionTimestamp" in seen["metadata"]
    storage.cluster.delete(POD, Key(storage.ns, "p"), grace_seconds=0)
    storage.until(lambda: storage.seen() is None, "the claim to go")


def test_a_claim_that_names_no_class_gets_the_default_one(storage: Storage) -> None:
    """One that names the empty class does not."""
    storage.class_("WaitForFirstConsumer", **{labels.DEFAULT_STORAGE_CLASS: "true"})
    assert storage.claim(storageClassName=None)["spec"]["storageClassName"] == storage.ns
    storage.cluster.delete(PVC, Key(storage.ns, "data"))
    storage.until(lambda: storage.seen() is None, "the claim to go")
    assert storage.claim(storageClassName="")["spec"]["storageClassName"] == ""


# --- the embedded cluster alone ------------------------------------------------------------------------------------------------


@pytest.fixture
def controller(memory: MemoryCluster, clock: VirtualClock) -> StorageController:
    memory.load([*classes(), node("n1").zone("z1"), node("n2").zone("z2")])
    return StorageController(memory, clock)


def data(memory: MemoryCluster, name: str = "data") -> Json:
    return memory.get(PVC, Key("default", name))


def test_a_volume_is_made_at_once(memory: MemoryCluster, controller: StorageController) -> None:
    """By the class's provisioner, of the size that is asked for; it goes with its claim."""
    memory.create(PVC, claim("data").of(NOW).size("3Gi"))
    controller.reconcile()
    name = data(memory)["spec"]["volumeName"]
    made = memory.get(PV, Key("", name))
    assert (made["spec"]["capacity"], made["spec"]["csi"]["driver"]) == ({"storage": "3Gi"}, "csi.test")
    assert made["status"]["phase"] == "Bound"
    memory.delete(PVC, Key("default", "data"))
    controller.reconcile()
    assert memory.list(PV).objects == []


def test_a_volume_is_made_where_the_scheduler_says(memory: MemoryCluster, controller: StorageController) -> None:
    """Not before; a class that is bound to zones makes it in the zone of the node."""
    zones = [{"matchLabelExpressions": [{"key": labels.ZONE, "values": ["z1", "z2"]}]}]
    memory.create(STORAGE_CLASS, storage_class("zonal").with_("allowedTopologies", zones))
    memory.create(PVC, claim("data").of("zonal"))
    controller.reconcile()
    assert memory.list(PV).objects == []
    memory.patch(PVC, Key("default", "data"), {"metadata": {"annotations": {labels.SELECTED_NODE: "n2"}}})
    controller.reconcile()
    term = {"matchExpressions": [{"key": labels.ZONE, "operator": "In", "values": ["z2"]}]}
    assert memory.list(PV).objects[0]["spec"]["nodeAffinity"] == {"required": {"nodeSelectorTerms": [term]}}
    assert data(memory)["status"]["phase"] == "Bound"


def test_a_default_class_that_comes_late(memory: MemoryCluster, clock: VirtualClock) -> None:
    """Is for claims that wait; a volume without a class goes first."""
    controller = StorageController(memory, clock)
    memory.create(PVC, claim("data").of(None))
    memory.create(PVC, claim("other").of(None).size("9Gi"))
    controller.reconcile()
    memory.create(PV, volume("v").of(""))
    controller.reconcile()
    memory.create(STORAGE_CLASS, storage_class("late", mode="Immediate").annotate(labels.DEFAULT_STORAGE_CLASS, "true"))
    controller.reconcile()
    bound = {name: data(memory, name)["spec"] for name in ("data", "other")}
    assert sorted(spec.get("storageClassName") or "" for spec in bound.values()) == ["", "late"]
    assert sorted(bool(spec.get("volumeName")) for spec in bound.values()) == [True, True]


def test_claims_are_made_for_ephemeral_volumes(memory: MemoryCluster, controller: StorageController) -> None:
    """Named after pod and volume, and owned by the pod."""
    memory.create(POD, ephemeral(pod("p"), NOW))
    controller.reconcile()
    made = data(memory, "p-own")
    assert made["status"]["phase"] == "Bound"
    owner = made["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "p", True)


def test_a_claim_whose_volume_is_gone_is_lost(memory: MemoryCluster, controller: StorageController) -> None:
    memory.create(PVC, claim("data").of(NOW))
    controller.reconcile()
    memory.delete(PV, Key("", data(memory)["spec"]["volumeName"]))
    controller.reconcile()
    assert data(memory)["status"]["phase"] == "Lost"


def test_many_claims_share_out_the_volumes(memory: MemoryCluster, controller: StorageController) -> None:
    """Two claims for one volume: one of them gets it."""
    memory.create(PV, volume("v").of("manual"))
    for name in ("a", "b"):
        memory.create(PVC, claim(name).of("manual"))
    controller.reconcile()
    assert sorted(data(memory, name)["status"]["phase"] for name in ("a", "b")) == ["Bound", "Pending"]
