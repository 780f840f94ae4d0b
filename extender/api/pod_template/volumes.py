"""Volumes of a pod: one source each, what the source needs, and what containers mount of them.

Source: kubernetes v1.36.1, validation.go, ValidateVolumes, ValidateVolumeMounts, ValidateVolumeDevices."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from extender.api import quantity
from extender.api.checks import (
    DNS_LABEL,
    DNS_SUBDOMAIN,
    FILE_MODE,
    Check,
    Faults,
    amount_fault,
    annotation_faults,
    apply,
    between,
    inner_path,
    label_faults,
    no_backsteps,
    one_of,
    only_one,
    optional,
    repeated,
    required,
    selector_faults,
)
from extender.api.errors import Fault
from extender.api.meta import Json
from extender.api.pod_template.projected import downward_file_faults, item_faults, projection_faults
from extender.api.shapes import VOLUME_SOURCES

_HOST_PATH_TYPES = one_of("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_PARTITION, _LUN = between(0, 255), between(0, 255)
_PULL = one_of("Always", "IfNotPresent", "Never")
ACCESS_MODE = one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def _absolute(value: Any) -> str:
    return "" if str(value).startswith("/") else f"'{value}' must be an absolute path"


_INITIATORS = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z", re.ASCII),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}\Z"),
}


def _initiator(value: Any) -> str:
    form = _INITIATORS.get(str(value)[:3])
    right = form is not None and form.search(str(value))
    return "" if right else f"'{value}' must be iqn.<year>-<month>.<domain>:<name>, eui.<16 digits> or naa.<32 digits>"


def _host_ports(value: Any) -> str:
    pairs = str(value).split(",")
    good = all(re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", pair) for pair in pairs)
    return "" if good else f"'{value}' must be host:port pairs, joined by ','"


def _tenant(value: Any) -> str:
    return "" if len(str(value)) <= 64 else f"has {len(str(value))} characters, at most 64 are allowed"


def _csi_driver(value: Any) -> str:
    return DNS_SUBDOMAIN(str(value).lower()) or ("" if len(str(value)) <= 63 else f"'{value}' has more than 63 characters")


def _not_negative(value: Any) -> str:
    return f"is {value}, must not be negative" if quantity.nanos(value) < 0 else ""


# source: what it cannot do without, and checks of what it has
_SOURCES: Mapping[str, tuple[tuple[str, ...], Mapping[str, Check]]] = {
    "hostPath": (("path",), {"path": no_backsteps, "type": _HOST_PATH_TYPES}),
    "emptyDir": ((), {"sizeLimit": _not_negative}),
    "gcePersistentDisk": (("pdName",), {"partition": _PARTITION}),
    "awsElasticBlockStore": (("volumeID",), {"partition": _PARTITION}),
    "gitRepo": (("repository",), {"directory": inner_path}),
    "secret": (("secretName",), {"defaultMode": FILE_MODE}),
    "nfs": (("server", "path"), {"path": optional(_absolute)}),
    "iscsi": (("targetPortal", "iqn"), {"iqn": optional(_initiator), "initiatorName": _initiator, "lun": _LUN}),
    "glusterfs": (("endpoints", "path"), {}),
    "persistentVolumeClaim": (("claimName",), {}),
    "rbd": (("monitors", "image"), {}),
    "flexVolume": (("driver",), {}),
    "cinder": (("volumeID",), {}),
    "cephfs": (("monitors",), {}),
    "downwardAPI": ((), {"defaultMode": FILE_MODE}),
    "fc": ((), {}),
    "azureFile": (("secretName", "shareName"), {}),
    "configMap": (("name",), {"defaultMode": FILE_MODE}),
    "vsphereVolume": (("volumePath",), {}),
    "quobyte": (("registry", "volume"), {"registry": optional(_host_ports), "tenant": _tenant}),
    "azureDisk": (("diskName", "diskURI"), {"cachingMode": one_of("None", "ReadOnly", "ReadWrite"),
                                            "kind": one_of("Shared", "Dedicated", "Managed")}),
    "photonPersistentDisk": (("pdID",), {}),
    "projected": ((), {"defaultMode": FILE_MODE}),
    "portworxVolume": (("volumeID",), {}),
    "scaleIO": (("gateway", "system", "volumeName"), {}),
    "csi": (("driver",), {"driver": optional(_csi_driver)}),
    "image": ((), {"pullPolicy": optional(_PULL)}),
}  # fmt: skip


def volume_faults(volumes: list[Json], path: str) -> Faults:
    for index, volume in enumerate(volumes):
        at = f"{path}[{index}]"
        yield from required(volume, at, "name")
        yield from apply({"name": optional(DNS_LABEL)}, volume, at)
        yield from only_one(volume, at, VOLUME_SOURCES, needed=False)
        source = next((name for name in VOLUME_SOURCES if name in volume), None)
        if source:
            yield from _source_faults(source, volume[source], f"{at}.{source}")
    yield from repeated((volume.get("name") for volume in volumes), path, "name")


def _source_faults(kind: str, source: Json, path: str) -> Faults:
    needed, checks = _SOURCES.get(kind, ((), {}))
    yield from required(source, path, *needed)
    yield from apply(checks, source, path)
    match kind:
        case "secret" | "configMap":
            yield from item_faults(source.get("items", []), f"{path}.items")
        case "downwardAPI":
            yield from downward_file_faults(source.get("items", []), f"{path}.items")
        case "projected":
            yield from projection_faults(source.get("sources", []), path)
        case "ephemeral":
            yield from _ephemeral_faults(source, path)
        case "iscsi" if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and "secretRef" not in source:
            yield Fault(f"{path}.secretRef", "CHAP authentication needs a secret")
        case "fc":
            yield from _fibre_channel_faults(source, path)
        case "cinder" if "secretRef" in source:
            yield from required(source["secretRef"], f"{path}.secretRef", "name")
        case "csi" if "nodePublishSecretRef" in source:
            secret, at = source["nodePublishSecretRef"], f"{path}.nodePublishSecretRef"
            yield from required(secret, at, "name")
            yield from apply({"name": optional(DNS_SUBDOMAIN)}, secret, at)
        case "glusterfs" | "flocker" | "storageos" | "azureDisk" | "flexVolume":
            yield from _rare_source_faults(kind, source, path)


def _rare_source_faults(kind: str, source: Json, path: str) -> Faults:
    if kind == "flocker":
        yield from only_one({k: v for k, v in source.items() if v}, path, ("datasetName", "datasetUUID"))
        yield from apply({"datasetName": optional(_no_slash)}, source, path)
    elif kind == "storageos":
        yield from required(source, path, "volumeName")
        yield from apply({"volumeName": optional(DNS_LABEL), "volumeNamespace": optional(DNS_LABEL)}, source, path)
        if "secretRef" in source:
            yield from required(source["secretRef"], f"{path}.secretRef", "name")
    elif kind == "flexVolume":
        for name in source.get("options", {}):
            if f".{name.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
                yield Fault(f"{path}.options.{name}", "kubernetes.io and k8s.io are reserved: give it a domain of its own")
    elif kind == "azureDisk":
        managed = source.get("kind", "Shared") == "Managed"
        prefix = "/subscriptions/" if managed else "https://"
        if not source.get("diskURI", "").startswith(prefix):
            yield Fault(f"{path}.diskURI", f"must begin with '{prefix}' for a disk of kind {source.get('kind', 'Shared')}")


def _no_slash(value: Any) -> str:
    return f"'{value}' must not contain '/'" if "/" in str(value) else ""


def _fibre_channel_faults(source: Json, path: str) -> Faults:
    names, ids = source.get("targetWWNs"), source.get("wwids")
    if bool(names) == bool(ids):
        yield Fault(f"{path}.targetWWNs", "give either targetWWNs or wwids")
    if names and "lun" not in source:
        yield Fault(f"{path}.lun", "lun is required with targetWWNs")
    elif names:
        yield from apply({"lun": _LUN}, source, path)


# --- claims made for the pod ---------------------------------------------------------------------------------------------------
def _ephemeral_faults(source: Json, path: str) -> Faults:
    template, at = source.get("volumeClaimTemplate"), f"{path}.volumeClaimTemplate"
    if template is None:
        yield Fault(at, "volumeClaimTemplate is required")
        return
    meta = template.get("metadata", {})
    yield from label_faults(meta.get("labels", {}), f"{at}.metadata.labels")
    yield from annotation_faults(meta.get("annotations", {}), f"{at}.metadata.annotations")
    for name in meta.keys() - {"labels", "annotations"}:
        if meta[name] != "":
            yield Fault(f"{at}.metadata.{name}", "cannot be set in a template; only labels and annotations can")
    yield from claim_faults(template.get("spec", {}), f"{at}.spec")


def claim_faults(spec: Json, path: str) -> Faults:
    """A PersistentVolumeClaim's spec."""
    modes = spec.get("accessModes", [])
    if not modes:
        yield Fault(f"{path}.accessModes", "at least one access mode is required")
    for mode in filter(ACCESS_MODE, modes):
        yield Fault(f"{path}.accessModes", ACCESS_MODE(mode))
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield Fault(f"{path}.accessModes", "ReadWriteOncePod cannot be combined with other modes")
    storage = spec.get("resources", {}).get("requests", {}).get("storage")
    where = f"{path}.resources.requests.storage"
    if storage is None:
        yield Fault(where, "the size of the claim is required")
    elif quantity.nanos(storage) <= 0 or amount_fault("storage", storage):
        yield Fault(where, f"is {storage}, must be greater than zero")
    yield from apply({**dict.fromkeys(("storageClassName", "volumeAttributesClassName"), optional(DNS_SUBDOMAIN)),
                      "volumeMode": one_of("Block", "Filesystem")}, spec, path)  # fmt: skip
    yield from selector_faults(spec.get("selector", {}), f"{path}.selector")
    for name in ("dataSource", "dataSourceRef"):
        if name in spec:
            yield from _data_source_faults(spec[name], f"{path}.{name}")
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef", {})
    if source is not None and reference.get("namespace"):
        yield Fault(f"{path}.dataSource", "cannot be combined with dataSourceRef.namespace: give the reference alone")
    elif source is not None and reference and any(source.get(name) != reference.get(name) for name in _OF_SOURCE):
        yield Fault(f"{path}.dataSource", "must be the same as dataSourceRef: give one of them")


_OF_SOURCE = ("apiGroup", "kind", "name")


def _data_source_faults(source: Json, path: str) -> Faults:
    yield from required(source, path, "kind", "name")
    if not source.get("apiGroup") and source.get("kind", "") not in ("", "PersistentVolumeClaim"):
        yield Fault(f"{path}.kind", f"'{source['kind']}' needs its apiGroup; without one only PersistentVolumeClaim is known")
    yield from apply({"apiGroup": optional(DNS_SUBDOMAIN), "namespace": optional(DNS_LABEL)}, source, path)


# --- mounts -----------------------------------------------------------------------------------------------------------------
_PROPAGATION = one_of("Bidirectional", "HostToContainer", "None")
_RECURSIVE = one_of("Disabled", "IfPossible", "Enabled")


def mount_faults(container: Json, volumes: Mapping[str, Json], path: str) -> Faults:
    """Volume mounts and devices of one container against the pod's volumes."""
    mounts, devices = container.get("volumeMounts", []), container.get("volumeDevices", [])
    for index, mount in enumerate(mounts):
        at = f"{path}.volumeMounts[{index}]"
        yield from required(mount, at, "name", "mountPath")
        yield from _unknown_volume(mount.get("name", ""), volumes, at)
        yield from apply({"subPath": inner_path, "subPathExpr": inner_path, "mountPropagation": _PROPAGATION,
                          "recursiveReadOnly": _RECURSIVE}, mount, at)  # fmt: skip
        if mount.get("subPath") and mount.get("subPathExpr"):
            yield Fault(f"{at}.subPathExpr", "cannot be combined with subPath")
        yield from _mount_mode_faults(mount, container.get("securityContext", {}), at)
    for index, device in enumerate(devices):
        at, name = f"{path}.volumeDevices[{index}]", device.get("name", "")
        yield from required(device, at, "name", "devicePath")
        yield from _unknown_volume(name, volumes, at)
        if name in volumes and not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            yield Fault(f"{at}.name", f"'{name}' is no claim: only claims can be used as block devices")
        yield from apply({"devicePath": no_backsteps}, device, at)
    yield from repeated((mount.get("mountPath") for mount in mounts), f"{path}.volumeMounts", "mountPath")
    for field in ("name", "devicePath"):
        yield from repeated((device.get(field) for device in devices), f"{path}.volumeDevices", field)
    for mine, theirs in (("name", "name"), ("devicePath", "mountPath")):
        taken = {mount.get(theirs) for mount in mounts}
        for index, device in enumerate(devices):
            if device.get(mine) and device[mine] in taken:
                yield Fault(f"{path}.volumeDevices[{index}].{mine}", f"'{device[mine]}' is used in volumeMounts too")


def _unknown_volume(name: str, volumes: Mapping[str, Json], path: str) -> Faults:
    if name and name not in volumes:
        yield Fault(f"{path}.name", f"no volume '{name}' in the pod (it has {', '.join(sorted(volumes)) or 'none'})")


def _mount_mode_faults(mount: Json, security: Json, path: str) -> Faults:
    propagation = mount.get("mountPropagation", "None")
    if propagation == "Bidirectional" and not security.get("privileged"):
        yield Fault(f"{path}.mountPropagation", "Bidirectional is for privileged containers only")
    if mount.get("recursiveReadOnly") in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield Fault(f"{path}.recursiveReadOnly", "needs readOnly: true")
        if propagation != "None":
            yield Fault(f"{path}.recursiveReadOnly", "needs mountPropagation None")
