"""Builders for storage: `volume("v", "10Gi")`, `claim("data")`, `mounts(task("t"), "data")`, `csi_node("n1", 2)`."""

from __future__ import annotations

from typing import Self

from extender.api import labels, meta
from extender.api.meta import Json
from extender.api.volume import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER
from extender.testing.builders import Built, PodBuilder

DRIVER = "csi.test"
LOCAL, FAST, NOW = "local", "fast", "now"  # classes: volumes made by hand, made when a pod is placed, made at once


def storage_class(name: str, provisioner: str = DRIVER, mode: str = WAIT_FOR_FIRST_CONSUMER) -> Built:
    made = Built(meta.STORAGE_CLASS, name)
    made.update(provisioner=provisioner, volumeBindingMode=mode, reclaimPolicy="Delete")
    return made


def classes() -> list[Built]:
    return [storage_class(LOCAL, NO_PROVISIONER), storage_class(FAST), storage_class(NOW, mode="Immediate")]


class VolumeBuilder(Built):
    """One that may be had, of the class LOCAL, to be reached from all nodes."""

    def __init__(self, name: str, size: str) -> None:
        super().__init__(meta.PV, name)
        self["spec"] = {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL,
            "volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/data"},
        }  # fmt: skip
        self["status"] = {"phase": "Available"}

    def of(self, storage: str) -> Self:
        return self.with_("spec.storageClassName", storage)

    def only_on(self, *nodes: str) -> Self:
        line = {"key": labels.HOSTNAME, "operator": "In", "values": list(nodes)}
        return self.with_("spec.nodeAffinity", {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}})

    def csi(self, driver: str = DRIVER) -> Self:
        del self["spec"]["hostPath"]
        return self.with_("spec.csi", {"driver": driver, "volumeHandle": self["metadata"]["name"]})

    def for_(self, claim: Json, *, uid: bool = True) -> Self:
        """Meant for the claim; by name only where `uid` is off."""
        whose = {part: claim["metadata"][part] for part in ("namespace", "name", *(("uid",) if uid else ()))}
        return self.with_("spec.claimRef", whose)


class ClaimBuilder(Built):
    """For 1Gi of the class LOCAL."""

    def __init__(self, name: str) -> None:
        super().__init__(meta.PVC, name)
        self["spec"] = {"accessModes": ["ReadWriteOnce"], "storageClassName": LOCAL}
        self.size("1Gi")
        self["status"] = {"phase": "Pending"}

    def of(self, storage: str | None) -> Self:
        """None: it names no class."""
        return self.with_("spec.storageClassName", storage)

    def size(self, amount: str) -> Self:
        return self.with_("spec.resources.requests.storage", amount)

    def modes(self, *modes: str) -> Self:
        return self.with_("spec.accessModes", list(modes))

    def bound_to(self, volume: str) -> Self:
        self.with_("spec.volumeName", volume).with_("status.phase", "Bound")
        return self.annotate(labels.BIND_COMPLETED, "yes")

    def selected(self, node: str) -> Self:
        return self.annotate(labels.SELECTED_NODE, node)


def volume(name: str, size: str = "10Gi") -> VolumeBuilder:
    return VolumeBuilder(name, size)


def claim(name: str) -> ClaimBuilder:
    return ClaimBuilder(name)


def bound(name: str, volume: VolumeBuilder) -> list[Built]:
    """A claim and its volume."""
    made = claim(name).of(volume["spec"]["storageClassName"]).bound_to(volume["metadata"]["name"])
    return [made, volume.for_(made).with_("status.phase", "Bound")]


def mounts(pod: PodBuilder, *names: str) -> PodBuilder:
    """The pod with claims by name."""
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(names)]
    return pod.with_("spec.volumes", [*pod["spec"].get("volumes", ()), *volumes])


def ephemeral(pod: PodBuilder, storage: str = FAST) -> PodBuilder:
    """The pod with a volume `own` whose claim is made for it."""
    asks = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage, "resources": {"requests": {"storage": "1Gi"}}}
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": asks}}}
    return pod.with_("spec.volumes", [*pod["spec"].get("volumes", ()), own])


def csi_node(name: str, limit: int, driver: str = DRIVER) -> Built:
    drivers = [{"name": driver, "nodeID": name, "allocatable": {"count": limit}}]
    return Built(meta.CSI_NODE, name).with_("spec.drivers", drivers)
