"""Nodes that say they are not well get the taints that keep new pods away, and lose them when they say they are well again.

What a node says nothing of is left as it is. Pods that run there stay: nobody here evicts for a taint NoExecute.
Source: kubernetes v1.36.1 pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass."""

from __future__ import annotations

from extender.api.meta import NODE, Json, key_of, uid_of
from extender.api.operations import Operation, Patch

_PREFIX = "node.kubernetes.io/"
# Condition -> its status -> the taint that stands for it.
_TAINTS = {
    "Ready": {"False": "not-ready", "Unknown": "unreachable"},
    "MemoryPressure": {"True": "memory-pressure"},
    "DiskPressure": {"True": "disk-pressure"},
    "PIDPressure": {"True": "pid-pressure"},
    "NetworkUnavailable": {"True": "network-unavailable"},
}


def conditions(node: Json) -> dict[str, str]:
    """Condition -> status, of those that matter here."""
    listed = (node.get("status") or {}).get("conditions") or ()
    return {each["type"]: each.get("status", "") for each in listed if each.get("type") in _TAINTS}


def tainted_by_condition(node: Json) -> list[Operation]:
    """The write that brings the node's taints in line with its conditions; nothing where they are."""
    said = conditions(node)
    spoken_of = {_PREFIX + name for condition in said for name in _TAINTS[condition].values()}
    wanted = {_PREFIX + _TAINTS[condition][status] for condition, status in said.items() if status in _TAINTS[condition]}
    before = (node.get("spec") or {}).get("taints") or []
    kept = [each for each in before if each["effect"] != "NoSchedule" or each["key"] not in spoken_of - wanted]
    there = {each["key"] for each in kept if each["effect"] == "NoSchedule"}
    taints = kept + [{"key": key, "effect": "NoSchedule"} for key in sorted(wanted - there)]
    return [Patch(NODE, key_of(node), {"spec": {"taints": taints}}, uid=uid_of(node))] if taints != before else []
