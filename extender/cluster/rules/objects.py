"""Nodes, services and what carries data. Source: kubernetes v1.36.1 pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Mapping

from extender.api.checks import (
    DNS_LABEL,
    LABEL_VALUE,
    PORT_NUMBER,
    Check,
    Faults,
    amount_fault,
    apply,
    is_ip,
    label_faults,
    one_of,
    optional,
    port_reference,
    qualified_name,
    repeated,
    required,
)
from extender.api.errors import Fault
from extender.api.meta import Json

_EFFECT = one_of("NoSchedule", "PreferNoSchedule", "NoExecute")
_SERVICE: Mapping[str, Check] = {
    "type": optional(one_of("ClusterIP", "NodePort", "LoadBalancer", "ExternalName")),
    "sessionAffinity": optional(one_of("None", "ClientIP")),
}  # fmt: skip
_PORT: Mapping[str, Check] = {
    "name": optional(DNS_LABEL), "protocol": optional(one_of("TCP", "UDP", "SCTP")), "targetPort": optional(port_reference),
    "nodePort": optional(PORT_NUMBER),
}  # fmt: skip
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_MOST_BYTES = 1024 * 1024


def node_faults(new: Json) -> Faults:
    taints = new.get("spec", {}).get("taints", [])
    for index, taint in enumerate(taints):
        at = f"spec.taints[{index}]"
        yield from required(taint, at, "effect")
        yield from apply({"key": qualified_name, "value": LABEL_VALUE, "effect": optional(_EFFECT)},
                         {"key": taint.get("key", ""), **taint}, at)  # fmt: skip
    marks = (f"{taint.get('key', '')}:{taint.get('effect', '')}" for taint in taints)
    yield from repeated(marks, "spec.taints")
    for field in ("capacity", "allocatable"):
        for name, amount in new.get("status", {}).get(field, {}).items():
            for wrong in filter(None, (qualified_name(name), amount_fault(name, amount))):
                yield Fault(f"status.{field}[{name}]", wrong)


def service_faults(new: Json) -> Faults:
    spec = new.get("spec", {})
    ports, address = spec.get("ports", []), spec.get("clusterIP", "")
    yield from apply(_SERVICE, spec, "spec")
    if spec.get("type") == "ExternalName":
        yield from required(spec, "spec", "externalName")
    elif not ports and address != "None":
        yield Fault("spec.ports", "at least one port is required, but for a headless service (clusterIP: None)")
    if address not in ("", "None") and is_ip(address):
        yield Fault("spec.clusterIP", is_ip(address))
    yield from label_faults(spec.get("selector", {}), "spec.selector")
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        yield from apply({"port": PORT_NUMBER}, {"port": port.get("port", 0)}, at)
        yield from apply(_PORT, port, at)
        if len(ports) > 1:
            yield from required(port, at, "name")
    yield from repeated((port.get("name") for port in ports), "spec.ports", "name")


def service_changes(new: Json, old: Json) -> Faults:
    """An address that is not written stays as it was."""
    address, before = (obj.get("spec", {}).get("clusterIP", "") for obj in (new, old))
    if address and before and address != before:
        yield Fault("spec.clusterIP", "cannot be changed")


def data_faults(new: Json) -> Faults:
    """ConfigMap and Secret: keys become names of files, and all of it has a place in etcd."""
    parts = {field: new.get(field, {}) for field in ("data", "binaryData", "stringData")}
    for field, data in parts.items():
        for key in data:
            if not _CONFIG_KEY.fullmatch(key) or len(key) > 253 or key in (".", "..") or key.startswith(".."):
                yield Fault(f"{field}[{key}]", f"'{key}' is no key: use letters, digits, '-', '_' and '.', 253 at most")
    for key in parts["data"].keys() & parts["binaryData"].keys():
        yield Fault(f"data[{key}]", "is in binaryData too")
    size = sum(len(value.encode()) for data in parts.values() for value in data.values())
    if size > _MOST_BYTES:
        yield Fault("", f"{size} bytes in all, at most {_MOST_BYTES} can be stored in one object")


def data_changes(new: Json, old: Json) -> Faults:
    for field in ("immutable", "data", "binaryData", "stringData") if old.get("immutable") else ():
        if new.get(field) != old.get(field):
            yield Fault(field, "cannot be changed: immutable is true")


def namespace_faults(new: Json) -> Faults:
    for index, name in enumerate(new.get("spec", {}).get("finalizers", [])):
        if name != "kubernetes" and (qualified_name(name) or "/" not in name):
            yield Fault(f"spec.finalizers[{index}]", f"'{name}' must be 'kubernetes', or a name with a domain in front")
