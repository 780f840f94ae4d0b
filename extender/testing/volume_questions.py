"""The storage of a random question: classes, volumes, claims, CSINodes, and pods that mount them.

    storage = Storage(rng, names of the nodes)
    storage.mount(pod, asked=True);  objects = storage.objects

What kube-scheduler decides by the order of a Go map is left out: two volumes of one size for the same claim, a claim twice in
one pod, a class without a binding mode."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from extender.api import labels as names
from extender.api.meta import Json
from extender.api.volume import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER

_DRIVER = "csi.test"
_CLASSES: dict[str, Json] = {
    "fast": {"provisioner": _DRIVER, "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER},
    "local": {"provisioner": NO_PROVISIONER, "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER},
    "now": {"provisioner": _DRIVER, "volumeBindingMode": "Immediate"},
    "zonal": {
        "provisioner": "zonal.test", "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER,
        "allowedTopologies": [{"matchLabelExpressions": [{"key": names.ZONE, "values": ["z1", "z2"]}]}],
    },
    "full": {"provisioner": "full.test", "volumeBindingMode": WAIT_FOR_FIRST_CONSUMER},
}  # fmt: skip
_DELETED = "2026-01-01T00:00:00Z"


class Storage:
    """`objects` grows with what pods mount."""

    def __init__(self, rng: Random, nodes: Sequence[str]) -> None:
        self._rng, self._nodes = rng, nodes
        self._made = 0
        self.objects: list[Json] = [
            {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, **fields}
            for name, fields in _CLASSES.items() if not self._maybe(0.03)
        ]  # fmt: skip
        self.objects.append(_object("CSIDriver", "full.test", api="storage.k8s.io/v1", spec={"storageCapacity": True}))
        self.objects += [self._csi_node(name) for name in nodes if self._maybe(0.6)]
        self.objects += [self._volume(self._rng.choice((*_CLASSES, ""))) for _ in range(rng.randint(0, 8))]
        self._shared = [self._bound_claim(space) for space in ("blue", "green", "red") for _ in range(rng.randint(1, 2))]

    def _maybe(self, chance: float) -> bool:
        return self._rng.random() < chance

    def mount(self, pod: Json, *, asked: bool) -> None:
        """Give the pod volumes. Claims that are shared are bound; of its own the pod that is asked about has any."""
        volumes = pod["spec"].setdefault("volumes", [])
        space = pod["metadata"]["namespace"]
        shared = [claim for claim in self._shared if claim["metadata"]["namespace"] == space]
        for claim in self._rng.sample(shared, min(self._rng.choice((0, 0, 1, 1, 2) if asked else (1, 1, 2)), len(shared))):
            volumes.append({"persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}})
        if self._maybe(0.25):
            volumes.append(self._disk())
        for _ in range(self._rng.choice((0, 1, 1, 1, 2, 2, 3)) if asked else 0):
            volumes.append(self._own_claim(pod) if self._maybe(0.85) else self._ephemeral(pod, f"v{len(volumes)}"))
        for number, volume in enumerate(volumes):
            volume.setdefault("name", f"v{number}")

    # --- volumes ------------------------------------------------------------------------------------------------------------

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _size(self) -> str:
        """No two are the same."""
        return f"{1024 * self._rng.choice((1, 2, 5, 10)) + self._next()}Mi"

    def _volume(self, storage_class: str, **fields: object) -> Json:
        name = f"pv{self._next()}"
        spec: Json = {
            "capacity": {"storage": self._size()},
            "accessModes": self._modes(),
            "storageClassName": storage_class,
            **fields,
        }
        if self._maybe(0.15):
            spec["volumeMode"] = self._rng.choice(("Block", "Filesystem"))
        if self._maybe(0.5):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [self._term() for _ in range(self._rng.randint(1, 2))]}}
        if self._maybe(0.6):
            spec["csi"] = {"driver": self._rng.choice((_DRIVER, "zonal.test")), "volumeHandle": name}
        if self._maybe(0.05):
            spec["claimRef"] = {"namespace": "blue", "name": "somebody"}
        volume = _object("PersistentVolume", name, spec=spec)
        volume["status"] = {"phase": self._rng.choice(("Available",) * 6 + ("Pending", "Released"))}
        if self._maybe(0.3):
            key = self._rng.choice((names.ZONE, names.REGION, names.ZONE_BETA, names.REGION_BETA))
            zones = ("r1", "r2", "r1__r2") if "region" in key else ("z1", "z2", "z1__z3", "z1__", "")
            volume["metadata"]["labels"] = {key: self._rng.choice(zones)}
        if self._maybe(0.3):
            volume["metadata"].setdefault("labels", {})["kind"] = self._rng.choice(("a", "b"))
        if self._maybe(0.03):
            volume["metadata"] |= {"deletionTimestamp": _DELETED, "finalizers": ["x/y"]}
        return volume

    def _modes(self) -> list[str]:
        return self._rng.choice((["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOncePod"]))

    def _term(self) -> Json:
        key, values = self._rng.choice(
            ((names.HOSTNAME, self._nodes), (names.ZONE, ("z1", "z2", "z3")), ("disk", ("ssd", "hdd")))
        )
        operator = self._rng.choice(("In", "In", "In", "NotIn", "Exists"))
        line: Json = {"key": key, "operator": operator}
        if operator != "Exists":
            line["values"] = self._rng.sample(list(values), self._rng.randint(1, min(2, len(values))))
        term: Json = {"matchExpressions": [line]}
        if self._maybe(0.05):
            term["matchFields"] = [{"key": "metadata.name", "operator": self._rng.choice(("In", "NotIn")), "values": ["n1"]}]
        return term

    def _disk(self) -> Json:
        read_only = {"readOnly": True} if self._maybe(0.5) else {}
        number = self._rng.randint(1, 2)
        return self._rng.choice((
            {"iscsi": {"targetPortal": "p", "iqn": f"iqn{number}", "lun": 0, **read_only}},
            {"rbd": {"monitors": self._rng.sample(["m1", "m2", "m3"], 2), "pool": "p", "image": f"i{number}", **read_only}},
        ))  # fmt: skip

    # --- claims ---------------------------------------------------------------------------------------------------------------

    def _claim(self, namespace: str, name: str, storage_class: str | None) -> Json:
        spec: Json = {"accessModes": self._modes(), "resources": {"requests": {"storage": self._size()}}}
        if storage_class is not None:
            spec["storageClassName"] = storage_class
        if self._maybe(0.1):
            spec["selector"] = {"matchLabels": {"kind": "a"}}
        if self._maybe(0.1):
            spec["volumeMode"] = "Block"
        if self._maybe(0.03):
            del spec["resources"]["requests"]
        claim = _object("PersistentVolumeClaim", name, spec=spec)
        claim["metadata"] |= {"namespace": namespace, "uid": f"uid-{namespace}-{name}"}
        claim["status"] = {"phase": "Pending"}
        return claim

    def _bound_claim(self, namespace: str) -> Json:
        """With its volume, which may be missing."""
        claim = self._claim(namespace, f"shared{self._next()}", self._rng.choice((*_CLASSES, "")))
        self._bind(claim)
        self.objects.append(claim)
        return claim

    def _bind(self, claim: Json) -> None:
        volume = self._volume(claim["spec"].get("storageClassName") or "")
        volume["spec"]["claimRef"] = {part: claim["metadata"][part] for part in ("namespace", "name", "uid")}
        volume["status"] = {"phase": "Bound"}
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["status"] = {"phase": "Bound"}
        if not self._maybe(0.03):
            claim["metadata"]["annotations"] = {names.BIND_COMPLETED: "yes"}
        if not self._maybe(0.03):
            self.objects.append(volume)

    def _own_claim(self, pod: Json) -> Json:
        name = f"own{self._next()}"
        claim = self._claim(pod["metadata"]["namespace"], name, self._rng.choice(("fast", "local", "local", "zonal", "full")))
        if self._maybe(0.04):
            claim["spec"]["storageClassName"] = self._rng.choice(("now", "", "gone"))
        elif self._maybe(0.2):
            self._bind(claim)
        elif self._maybe(0.15):
            claim["metadata"]["annotations"] = {names.SELECTED_NODE: self._rng.choice([*self._nodes, "gone"])}
        elif self._maybe(0.15):
            volume = self._volume(claim["spec"]["storageClassName"])
            volume["spec"]["claimRef"] = {"namespace": claim["metadata"]["namespace"], "name": name}
            self.objects.append(volume)
        if self._maybe(0.02):
            claim["status"]["phase"] = "Lost"
        if self._maybe(0.02):
            claim["metadata"] |= {"deletionTimestamp": _DELETED, "finalizers": ["x/y"]}
        if not self._maybe(0.03):
            self.objects.append(claim)
        return {"persistentVolumeClaim": {"claimName": name}}

    def _ephemeral(self, pod: Json, volume: str) -> Json:
        claim = self._claim(pod["metadata"]["namespace"], f"{pod['metadata']['name']}-{volume}", "fast")
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
        if not self._maybe(0.1):
            claim["metadata"]["ownerReferences"] = [owner]
        if self._maybe(0.3):
            self._bind(claim)
        if not self._maybe(0.1):
            self.objects.append(claim)
        return {"name": volume, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}

    def _csi_node(self, name: str) -> Json:
        drivers: list[Json] = []
        for driver in (_DRIVER, "zonal.test"):
            if self._maybe(0.7):
                limit = {"allocatable": {"count": self._rng.choice((0, 1, 1, 2, 3, 30))}} if self._maybe(0.8) else {}
                drivers.append({"name": driver, "nodeID": name, **limit})
        return _object("CSINode", name, api="storage.k8s.io/v1", spec={"drivers": drivers})


def _object(kind: str, name: str, *, api: str = "v1", spec: Json) -> Json:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}
