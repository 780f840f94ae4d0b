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
    at_least,
    between,
    file_path,
    inner_path,
    label_faults,
    no_backsteps,
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
    "csi": (("driver",), {"driver": optional(lambda name: DNS_SUBDOMAIN(name.lower()))}),
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
            yield from _item_faults(source.get("items", []), f"{path}.items")
        case "downwardAPI":
            yield from downward_file_faults(source.get("items", []), f"{path}.items")
        case "projected":
            yield from _projection_faults(source.get("sources", []), path)
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
        case "glusterfs" | "flocker" | "storageos" | "azureDisk":
            yield from _rare_source_faults(kind, source, path)


def _rare_source_faults(kind: str, source: Json, path: str) -> Faults:
    if kind == "flocker":
        yield from only_one({k: v for k, v in source.items() if v}, path, ("datasetName", "datasetUUID"))
        yield from apply({"datasetName": optional(_no_slash)}, source, path)
    elif kind == "storageos":
        yield from required(source, path, "volumeName")
        yield from apply({"volumeName": optional(DNS_LABEL), "volumeNamespace": optional(DNS_LABEL)}, source, path)
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


def _item_faults(items: list[Json], path: str) -> Faults:
    for index, item in enumerate(items):
        at = f"{path}[{index}]"
        yield from required(item, at, "key", "path")
        yield from apply({"path": file_path, "mode": FILE_MODE}, item, at)


# --- the downward API, of files and of the environment -----------------------------------------------------------------------
_LABELLED = ("metadata.labels", "metadata.annotations")
FILE_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", *_LABELLED)
ENV_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
              "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")  # fmt: skip
_AMOUNTS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage"))
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_CPU_DIVISORS = {quantity.nanos(text) for text in ("1m", "1")}
_DIVISORS = {quantity.nanos(f"1{suffix}") for suffix in ("", *"kMGTPE", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")}


def field_reference_faults(reference: Json, allowed: tuple[str, ...], path: str) -> Faults:
    field, version = reference.get("fieldPath", ""), reference.get("apiVersion", "") or "v1"
    yield from required(reference, path, "fieldPath")
    if version != "v1":
        yield Fault(f"{path}.apiVersion", f"'{version}' is not supported; use v1")
    name, bracket, key = field.partition("['")
    if bracket and key.endswith("']"):
        wrong = qualified_name(key.removesuffix("']").lower() if name == "metadata.annotations" else key.removesuffix("']"))
        if name not in _LABELLED:
            wrong = f"'{name}' has no keys: only {' and '.join(_LABELLED)} take ['key']"
        if wrong:
            yield Fault(f"{path}.fieldPath", wrong)
    elif field:
        yield from apply({"fieldPath": one_of(*allowed)}, reference, path)


def resource_reference_faults(reference: Json, path: str, *, of_volume: bool) -> Faults:
    resource, divisor = reference.get("resource", ""), reference.get("divisor", "0")
    yield from required(reference, path, *(("containerName",) if of_volume else ()), "resource")
    if resource and not resource.startswith(_HUGE):
        yield from apply({"resource": one_of(*_AMOUNTS)}, reference, path)
    known = _CPU_DIVISORS if resource.endswith(".cpu") else _DIVISORS
    if quantity.nanos(divisor) not in {0, *known}:
        yield Fault(f"{path}.divisor", f"'{divisor}' does not divide {resource or 'the amount'}: use 1 or a unit such as 1Mi")


def downward_file_faults(files: list[Json], path: str) -> Faults:
    for index, file in enumerate(files):
        at = f"{path}[{index}]"
        yield from required(file, at, "path")
        yield from apply({"path": file_path, "mode": FILE_MODE}, file, at)
        yield from only_one(file, at, ("fieldRef", "resourceFieldRef"))
        if "fieldRef" in file:
            yield from field_reference_faults(file["fieldRef"], FILE_FIELDS, f"{at}.fieldRef")
        elif "resourceFieldRef" in file:
            yield from resource_reference_faults(file["resourceFieldRef"], f"{at}.resourceFieldRef", of_volume=True)


# --- projected volumes and claims made for the pod ---------------------------------------------------------------------------
_PROJECTIONS = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
_KEY_TYPES = one_of("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def _projection_faults(sources: list[Json], path: str) -> Faults:
    paths: list[str] = []
    for index, source in enumerate(sources):
        at = f"{path}.sources[{index}]"
        yield from only_one(source, at, _PROJECTIONS, needed=False)
        for kind in ("secret", "configMap"):
            if kind in source:
                yield from required(source[kind], f"{at}.{kind}", "name")
                yield from _item_faults(source[kind].get("items", []), f"{at}.{kind}.items")
                paths += [item.get("path", "") for item in source[kind].get("items", [])]
        if "downwardAPI" in source:
            yield from downward_file_faults(source["downwardAPI"].get("items", []), f"{at}.downwardAPI.items")
            paths += [item.get("path", "") for item in source["downwardAPI"].get("items", [])]
        if "serviceAccountToken" in source:
            token = source["serviceAccountToken"]
            yield from required(token, f"{at}.serviceAccountToken", "path")
            yield from apply({"path": file_path, "expirationSeconds": between(600, 2**32)}, token, f"{at}.serviceAccountToken")
        if "clusterTrustBundle" in source:
            yield from _bundle_faults(source["clusterTrustBundle"], f"{at}.clusterTrustBundle")
            paths.append(source["clusterTrustBundle"].get("path", ""))
        if "podCertificate" in source:
            yield from _certificate_faults(source["podCertificate"], f"{at}.podCertificate")
    for fault in repeated(paths, f"{path}.sources"):
        yield Fault(f"{path}.sources", f"two files on one path: {fault.message}")


def _bundle_faults(bundle: Json, path: str) -> Faults:
    yield from required(bundle, path, "path")
    yield from only_one(bundle, path, ("name", "signerName"))
    yield from apply({"path": file_path}, bundle, path)
    if "name" in bundle and "labelSelector" in bundle:
        yield Fault(f"{path}.labelSelector", "goes with signerName, not with name")
    yield from selector_faults(bundle.get("labelSelector", {}), f"{path}.labelSelector")


def _certificate_faults(certificate: Json, path: str) -> Faults:
    places = ("credentialBundlePath", "keyPath", "certificateChainPath")
    yield from required(certificate, path, "signerName", "keyType")
    yield from apply({"keyType": optional(_KEY_TYPES), "maxExpirationSeconds": at_least(3600),
                      **dict.fromkeys(places, file_path)}, certificate, path)  # fmt: skip
    if not any(certificate.get(place) for place in places):
        yield Fault(path, f"one of {', '.join(places)} is required")


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
