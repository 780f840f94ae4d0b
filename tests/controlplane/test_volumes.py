"""Volumes on a real server: our scheduler decides and writes, kube-controller-manager binds the claims, then the pods are bound.

Nobody makes volumes there: the test plays the provisioner of the class."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from extender.actions import ACTIONS
from extender.api import labels
from extender.api.meta import NODE, POD, POD_GROUP, PV, PVC, QUEUE, STORAGE_CLASS, Json, Key, Kind, uid_of
from extender.api.volume import NO_PROVISIONER
from extender.cluster.clock import SystemClock
from extender.cluster.kubernetes import KubernetesCluster
from extender.core import conf
from extender.loop import Loop
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, task
from extender.testing.storage import claim, mounts, storage_class, volume
from tests.controlplane.waiting import wait_until

NODES = ("disk-1", "disk-2")
BY_HAND, MADE = "by-hand", "made-by-the-test"


@pytest.fixture(scope="module")
def storage(kubernetes: KubernetesCluster) -> Iterator[None]:
    """Two nodes, two volumes on the second, a class for them and one whose volumes are made."""
    made: list[tuple[Kind, Json]] = [(NODE, node(name).cpu(9).memory("8Gi")) for name in NODES]
    made += [(STORAGE_CLASS, storage_class(BY_HAND, NO_PROVISIONER)), (STORAGE_CLASS, storage_class(MADE, "made.test"))]
    disks = [volume(name, size).of(BY_HAND).only_on("disk-2") for name, size in (("disk-a", "2Gi"), ("disk-b", "5Gi"))]
    made += [(PV, disk.with_("spec.hostPath", {"path": "/x"})) for disk in disks]
    for kind, obj in made:
        kubernetes.create(kind, obj)
    yield
    for kind, obj in made:
        kubernetes.delete(kind, Key("", obj["metadata"]["name"]))


@pytest.fixture
def scheduler(kubernetes: KubernetesCluster) -> Iterator[Loop]:
    loop = Loop(kubernetes, conf.load(conf.DEFAULT, PLUGINS, ACTIONS), SystemClock())
    loop.start()
    kubernetes.patch(QUEUE, Key("", "default"), {"status": {"state": "Open"}}, subresource="status")
    yield loop
    loop.close()


def pods(kubernetes: KubernetesCluster, ns: str) -> dict[str, str]:
    """Pod -> its node."""
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in kubernetes.list(POD, ns).objects}


def create(kubernetes: KubernetesCluster, ns: str, storage: str, size: str) -> None:
    """A gang of two, each with a claim of its own."""
    kubernetes.create(POD_GROUP, podgroup("g", ns).members(2))
    for i in range(2):
        own: Json = claim(f"data-{i}").of(storage).size(size)
        own["metadata"]["namespace"] = ns
        kubernetes.create(PVC, own)
        kubernetes.create(POD, mounts(task(f"t-{i}", "g", ns).cpu(1), f"data-{i}"))


@pytest.mark.usefixtures("storage")
def test_a_gang_goes_where_its_volumes_are(
    kubernetes: KubernetesCluster, scheduler: Loop, new_namespace: Callable[[], str]
) -> None:
    ns = new_namespace()
    wait_until(lambda: all(obj["status"].get("phase") == "Available" for obj in kubernetes.list(PV).objects), "the volumes")
    create(kubernetes, ns, BY_HAND, "1Gi")
    wait_until(lambda: scheduler.step() is None and all(pods(kubernetes, ns).values()), "the gang to be bound")
    assert set(pods(kubernetes, ns).values()) == {"disk-2"}
    assert {obj["spec"]["volumeName"] for obj in kubernetes.list(PVC, ns).objects} == {"disk-a", "disk-b"}


@pytest.mark.usefixtures("storage")
def test_volumes_are_made_where_the_scheduler_says(
    kubernetes: KubernetesCluster, scheduler: Loop, new_namespace: Callable[[], str]
) -> None:
    """No pod has its node before its claim has its volume."""
    ns, made = new_namespace(), []
    create(kubernetes, ns, MADE, "1Gi")

    def chosen() -> list[Json]:
        scheduler.step()
        notes = [(obj["metadata"].get("annotations") or {}).get(labels.SELECTED_NODE) for obj in kubernetes.list(PVC, ns).objects]
        return kubernetes.list(PVC, ns).objects if all(notes) else []

    wait_until(chosen, "the nodes to be chosen")
    scheduler.step()
    assert set(pods(kubernetes, ns).values()) == {""}
    for obj in chosen():
        disk = volume(f"pvc-{uid_of(obj)}", "1Gi").of(MADE).for_(obj).with_("spec.hostPath", {"path": "/x"})
        disk.with_("spec.claimRef.kind", PVC.name).annotate(labels.PROVISIONED_BY, "made.test")
        made.append(kubernetes.create(PV, disk))
    wait_until(lambda: scheduler.step() is None and all(pods(kubernetes, ns).values()), "the gang to be bound")
    wait_until(lambda: {obj["status"]["phase"] for obj in kubernetes.list(PVC, ns).objects} == {"Bound"}, "the claims to say so")
    for obj in made:
        kubernetes.delete(PV, Key("", obj["metadata"]["name"]))
