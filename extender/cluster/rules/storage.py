"""Claims, volumes and their classes. Source: kubernetes v1.36.1 pkg/apis/core/validation, pkg/apis/storage/validation."""

from __future__ import annotations

from collections.abc import Mapping

from extender.api import quantity
from extender.api.checks import (
    DNS_SUBDOMAIN,
    NOT_NEGATIVE,
    Check,
    Faults,
    apply,
    apply_each,
    one_of,
    only_one,
    optional,
    qualified_name,
    repeated,
    required,
    selector_faults,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.placement import node_selector_faults
from extender.api.pod_template.volumes import ACCESS_MODE, claim_faults
from extender.cluster.rules.shapes import VOLUME_KINDS

_VOLUME: Mapping[str, Check] = {
    "persistentVolumeReclaimPolicy": optional(one_of("Retain", "Recycle", "Delete")), "storageClassName": optional(DNS_SUBDOMAIN),
    "volumeMode": one_of("Block", "Filesystem"),
}  # fmt: skip
_CLASS: Mapping[str, Check] = {
    "provisioner": optional(qualified_name), "reclaimPolicy": optional(one_of("Retain", "Delete")),
    "volumeBindingMode": one_of("Immediate", "WaitForFirstConsumer"),
}  # fmt: skip
_NEEDED = {"csi": ("driver", "volumeHandle"), "local": ("path",), "hostPath": ("path",), "nfs": ("server", "path")}


def claim_object_faults(new: Json) -> Faults:
    yield from claim_faults(new.get("spec", {}), "spec")


def claim_changes(new: Json, old: Json) -> Faults:
    spec, before = new.get("spec", {}), old.get("spec", {})
    if _unchangeable(spec, before) != _unchangeable(before, before):
        yield Fault("spec", "cannot be changed any more, but for resources.requests of a bound claim")
    now, had = (part.get("resources", {}).get("requests", {}).get("storage", 0) for part in (spec, before))
    if quantity.nanos(now) < quantity.nanos(had):
        yield Fault("spec.resources.requests.storage", f"is {now}, must not be less than before ({had})")


def _unchangeable(spec: Json, before: Json) -> Json:
    """What a claim keeps. Its volume is written once, when it is bound, and a default class that comes late likewise."""
    written_once = (name for name in ("volumeName", "storageClassName") if name not in before)
    free = {"resources", "volumeAttributesClassName", *written_once}
    kept = {name: value for name, value in spec.items() if name not in free}
    return {**kept, "limits": spec.get("resources", {}).get("limits", {})}


def volume_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    yield from required(spec, "spec", "accessModes", "capacity")
    for mode in filter(ACCESS_MODE, spec.get("accessModes", [])):
        yield Fault("spec.accessModes", ACCESS_MODE(mode))
    if "ReadWriteOncePod" in spec.get("accessModes", []) and len(spec["accessModes"]) > 1:
        yield Fault("spec.accessModes", "ReadWriteOncePod cannot be combined with other modes")
    for name, amount in spec.get("capacity", {}).items():
        if name != "storage":
            yield Fault("spec.capacity", f"'{name}' is not supported; known: storage")
        elif quantity.nanos(amount) <= 0:
            yield Fault("spec.capacity[storage]", f"is {amount}, must be greater than zero")
    if not VOLUME_KINDS.keys() & spec.keys():
        yield Fault("spec", "a volume needs a source, such as csi, nfs, local or hostPath")
    yield from only_one(spec, "spec", VOLUME_KINDS, needed=False)
    for source, names in _NEEDED.items():
        if source in spec:
            yield from required(spec[source], f"spec.{source}", *names)
    yield from apply(_VOLUME, spec, "spec")
    yield from _node_affinity_faults(spec)


def volume_changes(new: Json, old: Json) -> Faults:
    if any(new.get("spec", {}).get(source) != old.get("spec", {}).get(source) for source in VOLUME_KINDS):
        yield Fault("spec", "the source of a volume cannot be changed")
    if "nodeAffinity" in old.get("spec", {}) and new.get("spec", {}).get("nodeAffinity") != old["spec"]["nodeAffinity"]:
        yield Fault("spec.nodeAffinity", "cannot be changed")


def _node_affinity_faults(spec: Json) -> Faults:
    at = "spec.nodeAffinity.required"
    if "nodeAffinity" in spec and "required" not in spec["nodeAffinity"]:
        yield Fault(at, "is required in a nodeAffinity")
    elif "nodeAffinity" in spec:
        yield from node_selector_faults(spec["nodeAffinity"]["required"], at)
    elif "local" in spec:
        yield Fault("spec.nodeAffinity", "a local volume needs to say on which node it is")


def class_faults(new: Json) -> Faults:
    yield from required(new, "", "provisioner")
    yield from apply(_CLASS, new, "")
    for index, term in enumerate(new.get("allowedTopologies", [])):
        at = f"allowedTopologies[{index}].matchLabelExpressions"
        lines = term.get("matchLabelExpressions", [])
        yield from repeated((line.get("key") for line in lines), at, "key")
        for position, line in enumerate(lines):
            yield from required(line, f"{at}[{position}]", "values")
            yield from repeated(line.get("values", []), f"{at}[{position}].values")
            yield from apply({"key": qualified_name}, {"key": line.get("key", "")}, f"{at}[{position}]")


def driver_faults(new: Json) -> Faults:
    """Of a CSINode: its drivers, and how many volumes of each it can have attached."""
    drivers = new.get("spec", {}).get("drivers", [])
    for index, driver in enumerate(drivers):
        at = f"spec.drivers[{index}]"
        yield from required(driver, at, "name", "nodeID")
        yield from apply({"name": optional(lambda name: DNS_SUBDOMAIN(name.lower()))}, driver, at)
        yield from apply({"count": NOT_NEGATIVE}, driver.get("allocatable", {}), f"{at}.allocatable")
        yield from apply_each(qualified_name, driver.get("topologyKeys", []), f"{at}.topologyKeys")
        yield from repeated(driver.get("topologyKeys", []), f"{at}.topologyKeys")
    yield from repeated((driver.get("name") for driver in drivers), "spec.drivers", "name")


def capacity_faults(new: Json) -> Faults:
    """Of a CSIStorageCapacity."""
    yield from apply({"storageClassName": DNS_SUBDOMAIN}, {"storageClassName": new.get("storageClassName", "")}, "")
    yield from selector_faults(new.get("nodeTopology", {}), "nodeTopology")
    if quantity.nanos(new.get("capacity", 0)) < 0:
        yield Fault("capacity", f"is {new['capacity']}, must not be negative")
