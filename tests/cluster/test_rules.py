"""Contract: what is refused of built-in kinds, and by which field. What Kubernetes says of pods is tested in tests/parity too."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from extender.api import meta
from extender.api.errors import BadRequest, Denied, Invalid
from extender.api.meta import Json, Kind
from extender.cluster.port import Cluster

_POD: Json = {"containers": [{"name": "main", "image": "example.test/app:1"}]}
_TEMPLATE: Json = {"metadata": {"labels": {"app": "x"}}, "spec": _POD}
_ENDING: Json = {**_TEMPLATE, "spec": {**_POD, "restartPolicy": "Never"}}
_SELECTED: Json = {"selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}
_CLAIM: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_ON_N1: Json = {
    "nodeAffinity": {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["n1"]}]}]},
    },
}  # fmt: skip
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
VALID: dict[Kind, Json] = {
    meta.POD: {"spec": _POD},
    meta.NODE: {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}, "status": {"allocatable": {"cpu": "4"}}},
    meta.DEPLOYMENT: {"spec": _SELECTED},
    meta.REPLICA_SET: {"spec": _SELECTED},
    meta.DAEMON_SET: {"spec": {**_SELECTED, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}}}},
    meta.REPLICATION_CONTROLLER: {"spec": {"template": _TEMPLATE}},
    meta.STATEFUL_SET: {
        "spec": {**_SELECTED, "serviceName": "s", "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}]},
    },
    meta.BATCH_JOB: {"spec": {"template": _ENDING}},
    meta.BATCH_CRON_JOB: {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": _ENDING}}}},
    meta.PRIORITY_CLASS: {"value": 10},
    meta.PDB: {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
    meta.RESOURCE_QUOTA: {"spec": {"hard": {"pods": "3", "requests.example.test/fpga": "1"}, "scopes": ["NotTerminating"]}},
    meta.LIMIT_RANGE: {"spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "1"}}]}},
    meta.PVC: {"spec": _CLAIM},
    meta.PV: {
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}, **_ON_N1},
    },
    meta.STORAGE_CLASS: {"provisioner": "example.com/disk"},
    meta.CSI_NODE: {"spec": {"drivers": [{"name": "disk.example.com", "nodeID": "n1", "allocatable": {"count": 4}}]}},
    meta.CSI_STORAGE_CAPACITY: {"storageClassName": "fast", "capacity": "1Gi"},
    meta.SERVICE: {"spec": {"ports": [{"port": 80}]}},
    meta.CONFIG_MAP: {"data": {"a": "b"}},
    meta.SECRET: {"data": {"a": "YQ=="}},
}  # fmt: skip
_NODE_LINE = f"spec.affinity.nodeAffinity.{_REQUIRED}"


def _node_terms(**line: Any) -> Json:
    return {"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", **line}]}]}}}


# What is written at which path, and the field that is named: where ours differs from the server's, what both have in common.
REFUSED: dict[str, tuple[Kind, str, Any, str]] = {
    "an operator that there is not": (meta.POD, "spec.affinity", _node_terms(operator="Foo"), _NODE_LINE),
    "a word to be greater than": (meta.POD, "spec.affinity", _node_terms(operator="Gt", values=["a", "b"]), _NODE_LINE),
    "an unknown toleration": (meta.POD, "spec.tolerations", [{"key": "a", "operator": "Like"}], "spec.tolerations[0].operator"),
    "an unknown effect": (meta.POD, "spec.tolerations", [{"key": "a", "effect": "Never"}], "spec.tolerations[0].effect"),
    "a spread that does neither": (
        meta.POD, "spec.topologySpreadConstraints", [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Perhaps"}],
        "spec.topologySpreadConstraints[0].whenUnsatisfiable",
    ),
    "a resource without a domain": (
        meta.POD, "spec.containers.0.resources", {"requests": {"gpus": "1"}}, "spec.containers[0].resources.requests",
    ),
    "a port beyond all": (
        meta.POD, "spec.containers.0.ports", [{"containerPort": 70000}], "spec.containers[0].ports[0].containerPort",
    ),
    "a volume of no pod": (meta.POD, "spec.containers.0.volumeMounts", [{"name": "a", "mountPath": "/a"}], "spec.containers[0]"),
    "a domain of pods that is not named": (
        meta.POD, "spec.affinity", {"podAntiAffinity": {_REQUIRED: [{"labelSelector": {}}]}},
        f"spec.affinity.podAntiAffinity.{_REQUIRED}[0].topologyKey",
    ),
    "a taint of no effect": (meta.NODE, "spec.taints", [{"key": "a", "effect": "Sometimes"}], "taints[0].effect"),
    "a taint twice": (meta.NODE, "spec.taints", [{"key": "a", "effect": "NoSchedule"}] * 2, "taints[1]"),
    "half a pod": (meta.NODE, "status.allocatable", {"pods": "1.5"}, "status.allocatable"),
    "fewer replicas than none": (meta.DEPLOYMENT, "spec.replicas", -1, "spec.replicas"),
    "a selector of everything": (meta.REPLICA_SET, "spec.selector", {}, "spec.selector"),
    "a selector of others": (meta.DAEMON_SET, "spec.selector.matchLabels", {"app": "y"}, "spec.template.metadata.labels"),
    "an expression that selects others": (
        meta.DEPLOYMENT, "spec.selector.matchExpressions", [{"key": "app", "operator": "NotIn", "values": ["x"]}],
        "spec.template.metadata.labels",
    ),
    "pods that end": (meta.DEPLOYMENT, "spec.template", _ENDING, "spec.template.spec.restartPolicy"),
    "a strategy that there is not": (meta.DEPLOYMENT, "spec.strategy", {"type": "Slowly"}, "spec.strategy"),
    "nothing to be replaced": (
        meta.DEPLOYMENT, "spec.strategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        "spec.strategy.rollingUpdate.maxUnavailable",
    ),
    "pods on both sides": (
        meta.DAEMON_SET, "spec.updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        "spec.updateStrategy.rollingUpdate.maxSurge",
    ),
    "an order that there is not": (meta.STATEFUL_SET, "spec.podManagementPolicy", "Random", "spec.podManagementPolicy"),
    "claims of no mode": (
        meta.STATEFUL_SET, "spec.volumeClaimTemplates.0.spec.accessModes", [], "spec.volumeClaimTemplates[0].spec.accessModes",
    ),
    "a job that never ends": (meta.BATCH_JOB, "spec.template", _TEMPLATE, "spec.template.spec.restartPolicy"),
    "indices without an end": (
        meta.BATCH_JOB, "spec", {"template": _ENDING, "parallelism": 2, "completionMode": "Indexed"}, "spec.completions",
    ),
    "a selector of one's own": (meta.BATCH_JOB, "spec.selector", {"matchLabels": {"app": "x"}}, "spec.selector"),
    "a time to run below zero": (meta.BATCH_JOB, "spec.activeDeadlineSeconds", -1, "spec.activeDeadlineSeconds"),
    "exit codes of another container": (
        meta.BATCH_JOB, "spec.podFailurePolicy",
        {"rules": [{"action": "FailJob", "onExitCodes": {"containerName": "b", "operator": "In", "values": [1]}}]},
        "spec.podFailurePolicy.rules[0].onExitCodes.containerName",
    ),
    "an unknown way to overlap": (meta.BATCH_CRON_JOB, "spec.concurrencyPolicy", "Maybe", "spec.concurrencyPolicy"),
    "a priority that is the system's": (meta.PRIORITY_CLASS, "value", 2_000_000_000, "value"),
    "an unknown preemption": (meta.PRIORITY_CLASS, "preemptionPolicy", "Always", "preemptionPolicy"),
    "two budgets in one": (meta.PDB, "spec.maxUnavailable", 1, "spec"),
    "a budget below zero": (meta.PDB, "spec.minAvailable", -1, "spec.minAvailable"),
    "a quota on nothing": (meta.RESOURCE_QUOTA, "spec.hard", {"gpus": "1"}, "spec.hard"),
    "a scope that there is not": (meta.RESOURCE_QUOTA, "spec.scopes", ["Weekend"], "spec.scopes"),
    "a resource beyond its scope": (meta.RESOURCE_QUOTA, "spec", {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}, "spec.scopes"),
    "a default above the maximum": (meta.LIMIT_RANGE, "spec.limits.0.default.cpu", "8", "spec.limits[0].default[cpu]"),
    "a limit on nothing": (meta.LIMIT_RANGE, "spec.limits.0.max", {"gpus": "1"}, "spec.limits[0].max[gpus]"),
    "defaults of whole pods": (meta.LIMIT_RANGE, "spec.limits.0.type", "Pod", "spec.limits[0].default"),
    "a mode that there is not": (meta.PVC, "spec.accessModes", ["Sometimes"], "spec.accessModes"),
    "a claim of nothing": (meta.PVC, "spec.resources", {}, "spec.resources"),
    "a volume of nothing": (meta.PV, "spec.capacity", {"storage": "0"}, "spec.capacity"),
    "a volume that is nowhere": (
        meta.PV, "spec.nodeAffinity", {"required": {"nodeSelectorTerms": []}}, "spec.nodeAffinity.required",
    ),
    "a binding that there is not": (meta.STORAGE_CLASS, "volumeBindingMode", "Late", "volumeBindingMode"),
    "fewer volumes than none": (
        meta.CSI_NODE, "spec.drivers.0.allocatable.count", -1, "spec.drivers[0].allocatable.count",
    ),
    "a driver twice": (meta.CSI_NODE, "spec.drivers", [{"name": "a", "nodeID": "n"}] * 2, "spec.drivers[1].name"),
    "room that is less than none": (meta.CSI_STORAGE_CAPACITY, "capacity", "-1", "capacity"),
    "a service without a port": (meta.SERVICE, "spec.ports", [], "spec.ports"),
    "a key that is no file": (meta.CONFIG_MAP, "data", {"a/b": "c"}, "data[a/b]"),
}  # fmt: skip


def _object(kind: Kind, ns: str) -> Json:
    named: Json = {"name": "x", "namespace": ns} if kind.namespaced else {"name": f"x-{ns}"}
    return {"metadata": named, **copy.deepcopy(VALID[kind])}


def _write(obj: Any, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for step in way:
        obj = obj[int(step)] if isinstance(obj, list) else obj.setdefault(step, {})
    obj[last] = value


@pytest.mark.parametrize("kind", VALID, ids=str)
def test_what_is_right_is_taken(cluster: Cluster, ns: str, kind: Kind) -> None:
    assert cluster.create(kind, _object(kind, ns), dry_run=True)["metadata"]["uid"]


@pytest.mark.parametrize(("kind", "path", "value", "named"), REFUSED.values(), ids=REFUSED)
def test_what_is_wrong_is_refused_by_its_field(cluster: Cluster, ns: str, kind: Kind, path: str, value: Any, named: str) -> None:
    asked = _object(kind, ns)
    _write(asked, path, value)
    with pytest.raises(Invalid) as refused:
        cluster.create(kind, asked, dry_run=True)
    assert any(named in fault.path for fault in refused.value.faults), refused.value


UNREADABLE: dict[str, tuple[Kind, str, Any]] = {
    "text for conditions": (meta.NODE, "status.conditions", "Ready"),
    "a number for a label": (meta.DEPLOYMENT, "spec.template.metadata.labels.app", 7),
    "text for a deadline": (meta.BATCH_JOB, "spec.activeDeadlineSeconds", "soon"),
    "a list for a share": (meta.PDB, "spec.minAvailable", []),
    "a date that is none": (meta.NODE, "spec.taints.0.timeAdded", "yesterday"),
    "data that is no base64": (meta.SECRET, "data.a", "not base64!"),
    "an amount that is none": (meta.RESOURCE_QUOTA, "spec.hard.pods", "many"),
}


@pytest.mark.parametrize(("kind", "path", "value"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_of_another_type_cannot_be_read(cluster: Cluster, ns: str, kind: Kind, path: str, value: Any) -> None:
    asked = _object(kind, ns)
    _write(asked, path, value)
    with pytest.raises(BadRequest, match=f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '):
        cluster.create(kind, asked, dry_run=True)


FIXED: dict[str, tuple[Kind, str, Any]] = {
    "the selector of a deployment": (meta.DEPLOYMENT, "spec.selector.matchExpressions", [{"key": "app", "operator": "Exists"}]),
    "the claims of a stateful set": (meta.STATEFUL_SET, "spec.serviceName", "t"),
    "the value of a priority": (meta.PRIORITY_CLASS, "value", 11),
    "the scopes of a quota": (meta.RESOURCE_QUOTA, "spec.scopes", ["BestEffort"]),
    "the nodes of a volume": (meta.PV, "spec.nodeAffinity.required.nodeSelectorTerms.0.matchExpressions.0.values", ["n2"]),
    "the class of a claim": (meta.PVC, "spec.accessModes", ["ReadWriteMany"]),
    "the source of a volume": (meta.PV, "spec.hostPath.path", "/other"),
    "the provisioner of a class": (meta.STORAGE_CLASS, "provisioner", "example.com/other"),
}


@pytest.mark.parametrize(("kind", "path", "value"), FIXED.values(), ids=FIXED)
def test_what_is_fixed_cannot_be_changed(cluster: Cluster, ns: str, kind: Kind, path: str, value: Any) -> None:
    made = copy.deepcopy(cluster.create(kind, _object(kind, ns)))
    del made["metadata"]["resourceVersion"]  # controllers write too
    _write(made, path, value)
    try:
        with pytest.raises(Invalid):
            cluster.update(kind, made)
    finally:
        cluster.delete(kind, meta.key_of(made))


CHANGED: dict[str, tuple[str, Any, str]] = {
    "no image": ("spec.containers.0.image", "", "spec.containers[0].image"),
    "no time to run": ("spec.activeDeadlineSeconds", 0, "spec.activeDeadlineSeconds"),
    "nothing at all": ("spec", {}, "spec"),
}


@pytest.mark.parametrize(("path", "value", "named"), CHANGED.values(), ids=CHANGED)
def test_a_pod_that_is_changed_is_checked_anew(cluster: Cluster, ns: str, path: str, value: Any, named: str) -> None:
    made = copy.deepcopy(cluster.create(meta.POD, _object(meta.POD, ns)))
    _write(made, path, value)
    with pytest.raises(Invalid) as refused:
        cluster.update(meta.POD, made)
    assert any(named in fault.path for fault in refused.value.faults), refused.value


def test_a_service_keeps_its_address(cluster: Cluster, ns: str) -> None:
    made = copy.deepcopy(cluster.create(meta.SERVICE, _object(meta.SERVICE, ns)))
    made["spec"] = VALID[meta.SERVICE]["spec"]
    assert cluster.update(meta.SERVICE, made)["spec"]["ports"][0]["port"] == 80


def test_a_pod_cannot_have_a_preemption_of_its_own(cluster: Cluster, ns: str) -> None:
    asked = _object(meta.POD, ns)
    asked["spec"]["preemptionPolicy"] = "Never"
    with pytest.raises(Denied, match=r"the string value of PreemptionPolicy \(Never\) must not be provided in pod spec"):
        cluster.create(meta.POD, asked)
