"""PersistentVolumes and their claims: who gets which, volumes made for those that ask a class for one, and what comes of volumes
whose claims are gone.

Source: kubernetes v1.36.1 pkg/controller/volume: persistentvolume, ephemeral, pvcprotection. Whatever provisioner a class names
is played: it makes its volume at once, and never fails."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from extender.api import labels as names
from extender.api.meta import PV, PVC, Json, Key, key_of, labels_of, owner_reference, uid_of
from extender.api.operations import Create, Delete, Operation, Patch, PatchStatus
from extender.api.views import view
from extender.api.volume import AVAILABLE, LOST, PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.cluster.core_kinds import CLAIM_PROTECTION, default_class
from extender.cluster.workloads import pods as p

_BOUND, _RELEASED = "Bound", "Released"


@dataclass(slots=True, eq=False)
class Storage:
    """What there is. `users`: claim -> pods that mount it, by uid; `nodes` by name, only their labels matter."""

    volumes: dict[Key, Json] = field(default_factory=dict)
    claims: dict[Key, Json] = field(default_factory=dict)
    classes: dict[Key, Json] = field(default_factory=dict)
    users: dict[Key, dict[str, Json]] = field(default_factory=dict)
    nodes: dict[str, Json] = field(default_factory=dict)


def sync_claim(claim: Json, storage: Storage) -> list[Operation]:
    """One step for a claim; what it changes is looked at again."""
    key, seen = key_of(claim), view(PersistentVolumeClaim, claim)
    if p.going(claim):
        return _unprotect(claim, storage.users.get(key, {}))
    if seen.bound:
        there = Key("", seen.spec.volume_name) in storage.volumes
        lost = not there and seen.status.phase != LOST
        return [PatchStatus(PVC, key, {"status": {"phase": LOST}}, uid_of(claim))] if lost else []
    volume = _volume_for(seen, storage)
    if volume is not None:
        return _bind(volume, claim)
    if seen.spec.volume_name:
        return []
    return _with_default_class(claim, storage) or _provision(claim, seen, storage)


def _volume_for(claim: PersistentVolumeClaim, storage: Storage) -> Json | None:
    """The one it names, the one that is meant for it, or the smallest that does, where its class does not wait for a pod."""
    if claim.spec.volume_name:
        named = storage.volumes.get(Key("", claim.spec.volume_name))
        return named if named is not None and _may_have(claim, view(PersistentVolume, named)) else None
    class_ = _class_of(claim, storage)
    waits = class_ is not None and class_.waits
    found: list[tuple[bool, int, str, Json]] = []
    for key, volume in storage.volumes.items():
        whose = volume["spec"].get("claimRef")
        if whose.get("name") != claim.metadata.name if whose else waits:
            continue
        seen = view(PersistentVolume, volume)
        if claim.takes(seen) and (seen.is_for(claim) or (not waits and _is_open(claim, seen))):
            found.append((not seen.is_for(claim), seen.size, key.name, volume))
    return min(found, key=lambda each: each[:3])[3] if found else None


def _is_open(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    return volume.spec.claim_ref is None and volume.storage_class == claim.storage_class and claim.may_choose(volume)


def _may_have(claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
    same_class = volume.storage_class == claim.storage_class
    return volume.is_for(claim) or (volume.spec.claim_ref is None and same_class and claim.takes(volume))


def _class_of(claim: PersistentVolumeClaim, storage: Storage) -> StorageClass | None:
    found = storage.classes.get(Key("", claim.storage_class))
    return view(StorageClass, found) if found is not None else None


def _bind(volume: Json, claim: Json) -> list[Operation]:
    """Both sides learn of each other."""
    key, spec = key_of(claim), claim["spec"]
    ours: Json = {"annotations": {names.BIND_COMPLETED: "yes"}}
    theirs: Json = {}
    if not spec.get("volumeName"):
        ours["annotations"][names.BOUND_BY_CONTROLLER] = "yes"
    if (volume["spec"].get("claimRef") or {}).get("uid") != uid_of(claim):
        theirs = {"spec": {"claimRef": _reference(claim)}}
        if not volume["spec"].get("claimRef"):
            theirs["metadata"] = {"annotations": {names.BOUND_BY_CONTROLLER: "yes"}}
    status = {"phase": _BOUND, "accessModes": volume["spec"].get("accessModes") or [], "capacity": volume["spec"]["capacity"]}
    return [
        *([Patch(PV, key_of(volume), theirs, uid_of(volume))] if theirs else []),
        *_phase(volume, _BOUND),
        Patch(PVC, key, {"metadata": ours, "spec": {"volumeName": volume["metadata"]["name"]}}, uid_of(claim)),
        PatchStatus(PVC, key, {"status": status}, uid_of(claim)),
    ]


def _reference(claim: Json) -> Json:
    key = key_of(claim)
    return {"apiVersion": PVC.api_version, "kind": PVC.name, **key._asdict(), "uid": uid_of(claim)}


def _with_default_class(claim: Json, storage: Storage) -> list[Operation]:
    """A claim that says nothing of classes gets the default one, also where that comes later."""
    name = default_class(claim, storage.classes.values())
    return [Patch(PVC, key_of(claim), {"spec": {"storageClassName": name}}, uid_of(claim))] if name else []


def _provision(claim: Json, seen: PersistentVolumeClaim, storage: Storage) -> list[Operation]:
    """A volume for the claim, once its class makes any and a scheduler has said where, if the class waits for that."""
    class_ = _class_of(seen, storage)
    if class_ is None or not class_.makes_volumes or (class_.waits and not seen.selected_node):
        return []
    name, spec = f"pvc-{uid_of(claim)}", claim["spec"]
    made: Json = {
        "capacity": {"storage": ((spec.get("resources") or {}).get("requests") or {}).get("storage", "0")},
        "accessModes": spec.get("accessModes") or [],
        "claimRef": _reference(claim),
        "storageClassName": class_.metadata.name,
        "volumeMode": spec.get("volumeMode", "Filesystem"),
        "persistentVolumeReclaimPolicy": storage.classes[Key("", class_.metadata.name)].get("reclaimPolicy") or "Delete",
        "csi": {"driver": class_.provisioner, "volumeHandle": name},
    }
    terms = _topology(class_, labels_of(storage.nodes.get(seen.selected_node, {})))
    if terms:
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = {"name": name, "annotations": {names.PROVISIONED_BY: class_.provisioner}}
    return [Create(PV, {"apiVersion": PV.api_version, "kind": PV.name, "metadata": metadata, "spec": made})]


def _topology(class_: StorageClass, node: Mapping[str, str]) -> list[Json]:
    """From where the volume can be used: the place of the node that was chosen, otherwise wherever the class makes volumes."""
    terms = [
        {
            line.key: [node[line.key]] if line.key in node else list(line.values or ())
            for line in term.match_label_expressions or ()
        }
        for term in class_.allowed_topologies or ()
    ]
    unlike = [term for number, term in enumerate(terms) if term not in terms[:number]]
    return [{"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in term.items()]}
            for term in unlike]  # fmt: skip


def _unprotect(claim: Json, users: Mapping[str, Json]) -> list[Operation]:
    """One that is to go stays while a pod that has a node mounts it."""
    finalizers = claim["metadata"].get("finalizers") or []
    if CLAIM_PROTECTION not in finalizers or any(pod["spec"].get("nodeName") for pod in users.values()):
        return []
    rest = [name for name in finalizers if name != CLAIM_PROTECTION]
    return [Patch(PVC, key_of(claim), {"metadata": {"finalizers": rest or None}}, uid_of(claim))]


def sync_volume(volume: Json, claims: Mapping[Key, Json]) -> list[Operation]:
    """A volume that is nobody's is there to be had; one whose claim is gone goes too, or is kept for a person to look at."""
    whose = volume["spec"].get("claimRef") or {}
    if not whose.get("uid"):
        return _phase(volume, AVAILABLE)
    claim = claims.get(Key(whose.get("namespace", ""), whose.get("name", "")))
    if claim is not None and uid_of(claim) == whose["uid"]:
        return []
    gone = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" and not p.going(volume)
    return [*_phase(volume, _RELEASED), *([Delete(PV, key_of(volume), uid_of(volume))] if gone else [])]


def _phase(volume: Json, phase: str) -> list[Operation]:
    if (volume.get("status") or {}).get("phase") == phase:
        return []
    return [PatchStatus(PV, key_of(volume), {"status": {"phase": phase}}, uid_of(volume))]


def ephemeral_claims(pod: Json, claims: Iterable[Key]) -> list[Operation]:
    """Claims that are made for the pod's ephemeral volumes and that it lacks."""
    if p.going(pod) or p.ended(pod):
        return []
    there, key = set(claims), key_of(pod)
    operations: list[Operation] = []
    for volume in pod["spec"].get("volumes") or ():
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        name = f"{key.name}-{volume.get('name')}"
        if template and Key(key.namespace, name) not in there:
            meta = template.get("metadata") or {}
            given = {part: dict(meta[part]) for part in ("labels", "annotations") if meta.get(part)}
            metadata = {"name": name, "namespace": key.namespace, **given, "ownerReferences": [owner_reference(pod)]}
            made = {"apiVersion": PVC.api_version, "kind": PVC.name, "metadata": metadata, "spec": template.get("spec") or {}}
            operations.append(Create(PVC, made))
    return operations


def mounted(pod: Json) -> list[Key]:
    """The claims of a pod."""
    namespace, name = key_of(pod)
    found = []
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if volume.get("persistentVolumeClaim"):
            found.append(Key(namespace, volume["persistentVolumeClaim"].get("claimName", "")))
        elif volume.get("ephemeral"):
            found.append(Key(namespace, f"{name}-{volume.get('name')}"))
    return found
