"""What each kind adds to the rules that hold for all: defaults, who may write status, built-in objects.

Custom kinds take their defaults and checks from their CRD (schema.py), Pods from pod_rules.py; the other core kinds are checked
by rules/, and defaulted where somebody here reads the field. Source: kubernetes v1.36.1 pkg/apis/*/v1/defaults.go and
pkg/registry/*/strategy.go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from extender.api import labels
from extender.api.errors import Fault, InvalidObject
from extender.api.meta import (
    BATCH_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    LIMIT_RANGE,
    NAMESPACE,
    NODE,
    PDB,
    POD,
    PRIORITY_CLASS,
    PV,
    PVC,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    SERVICE,
    STATEFUL_SET,
    STORAGE_CLASS,
    Json,
    Kind,
    annotations_of,
)
from extender.cluster import limits, pod_rules, refusals, schema
from extender.cluster.metadata import is_custom
from extender.cluster.rules import table
from extender.cluster.rules.policy import SYSTEM_CLASSES

# Kinds whose status a creator may set although they have the subresource: the kubelet registers a Node so.
_STATUS_AT_CREATION = {NODE}
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"  # finalizer of a claim: it stays while a pod uses it
_FIRST_PHASE = {NAMESPACE: "Active", PVC: "Pending", PV: "Pending"}

BUILT_IN: tuple[Json, ...] = (
    *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
      for name in ("default", "kube-node-lease", "kube-public", "kube-system")),
    *({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
       "preemptionPolicy": "PreemptLowerPriority"}
      for name, value in SYSTEM_CLASSES.items()),
)  # fmt: skip


# --- status -----------------------------------------------------------------------------------------------------------


def drop_status(kind: Kind, new: Json) -> None:
    """A creator cannot set the status of a kind that has the subresource."""
    if kind.status_subresource and kind not in _STATUS_AT_CREATION:
        new.pop("status", None)


def with_kept_status(kind: Kind, new: Json, old: Json) -> Json:
    """A main write leaves the status of such a kind as it was."""
    if not kind.status_subresource or new.get("status") is old.get("status"):
        return new
    kept = {name: value for name, value in new.items() if name != "status"}
    return {**kept, "status": old["status"]} if "status" in old else kept


def with_status_of(kind: Kind, new: Json, old: Json) -> Json:
    """A status write leaves the spec; of core kinds it takes labels, annotations and finalizers along."""
    written = {name: value for name, value in old.items() if name != "status"}
    if "status" in new:
        written["status"] = new["status"]
    if is_custom(kind):
        return written
    owners = old["metadata"].get("ownerReferences")
    meta = {name: value for name, value in (new.get("metadata") or {}).items() if name != "ownerReferences"}
    return {**written, "metadata": meta if owners is None else {**meta, "ownerReferences": owners}}


# --- defaults ---------------------------------------------------------------------------------------------------------


def with_defaults(kind: Kind, new: Json, old: Json | None, priority_classes: Callable[[], Sequence[Json]]) -> Json:
    """`new` may be changed in place, but not what it shares with the stored object: every step copies what it changes."""
    if is_custom(kind):
        return schema.completed(kind, new, old)
    if kind == POD:
        return pod_rules.with_defaults(new, old, priority_classes)
    if kind in _FIRST_PHASE and not (new.get("status") or {}).get("phase"):
        new = {**new, "status": {**(new.get("status") or {}), "phase": _FIRST_PHASE[kind]}}
    default = _DEFAULTS.get(kind)
    return default(new) if default is not None else new


def _spec(new: Json, **defaults: object) -> Json:
    spec = new.get("spec") or {}
    missing = {name: value for name, value in defaults.items() if value is not None and spec.get(name) in (None, "")}
    return {**new, "spec": {**spec, **missing}} if missing or new.get("spec") is None else new


def _namespace(new: Json) -> Json:
    name = new["metadata"].get("name", "")
    if (new["metadata"].get("labels") or {}).get(labels.NAMESPACE_NAME) != name:
        named = {**(new["metadata"].get("labels") or {}), labels.NAMESPACE_NAME: name}
        new = {**new, "metadata": {**new["metadata"], "labels": named}}
    return new if "deletionTimestamp" in new["metadata"] else _spec(new, finalizers=["kubernetes"])


def _node(new: Json) -> Json:
    status = new.get("status") or {}
    if status.get("capacity") and not status.get("allocatable"):
        return {**new, "status": {**status, "allocatable": status["capacity"]}}
    return new


def _template_labels(new: Json) -> Json | None:
    template = (new.get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels")


def _batch_job(new: Json) -> Json:
    """Selector and labels as the API server makes them from the uid, unless `manualSelector` is set."""
    spec = new.get("spec") or {}
    if spec.get("parallelism") is None and spec.get("completions") is None:
        spec = {**spec, "completions": 1}
    new = _spec({**new, "spec": spec}, parallelism=1, backoffLimit=6, completionMode="NonIndexed", suspend=False)
    spec = new["spec"]
    if spec.get("selector") is not None or spec.get("manualSelector"):
        return new
    uid, name = new["metadata"]["uid"], new["metadata"].get("name") or new["metadata"].get("generateName", "")
    made = {"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
            "controller-uid": uid, "job-name": name}  # fmt: skip
    template = spec.get("template") or {}
    meta = template.get("metadata") or {}
    template = {**template, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), **made}}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    return {**new, "spec": {**spec, "selector": selector, "template": template}}


_DEFAULTS: dict[Kind, Callable[[Json], Json]] = {
    NAMESPACE: _namespace,
    NODE: _node,
    BATCH_JOB: _batch_job,
    DEPLOYMENT: lambda new: _spec(
        new, replicas=1, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    ),
    REPLICA_SET: lambda new: _spec(new, replicas=1),
    REPLICATION_CONTROLLER: lambda new: _spec(new, replicas=1, selector=_template_labels(new)),
    STATEFUL_SET: lambda new: _spec(
        new, replicas=1, podManagementPolicy="OrderedReady",
        updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
    ),
    DAEMON_SET: lambda new: _spec(
        new, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}
    ),
    PRIORITY_CLASS: lambda new: {"preemptionPolicy": "PreemptLowerPriority", **new},
    SERVICE: lambda new: _spec(new, type="ClusterIP", sessionAffinity="None"),
    PV: _spec,
    STORAGE_CLASS: lambda new: {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", **new},
    PDB: _spec,
    PVC: lambda new: _spec(new, volumeMode="Filesystem"),
    LIMIT_RANGE: limits.with_defaults,
}  # fmt: skip


def admitted_claim(claim: Json, classes: Iterable[Json]) -> Json:
    """A new claim as the API server's own admission completes it (DefaultStorageClass, StorageObjectInUseProtection)."""
    finalizers = claim["metadata"].get("finalizers") or []
    if CLAIM_PROTECTION not in finalizers:
        claim = {**claim, "metadata": {**claim["metadata"], "finalizers": [*finalizers, CLAIM_PROTECTION]}}
    name = default_class(claim, classes)
    return {**claim, "spec": {**(claim.get("spec") or {}), "storageClassName": name}} if name else claim


def default_class(claim: Json, classes: Iterable[Json]) -> str:
    """Of several default classes the newest, then the first by name; "" where there is none, or the claim names one."""
    if (claim.get("spec") or {}).get("storageClassName") is not None or labels.BETA_STORAGE_CLASS in annotations_of(claim):
        return ""
    default = [each["metadata"] for each in classes if annotations_of(each).get(labels.DEFAULT_STORAGE_CLASS) == "true"]
    in_order = sorted(default, key=lambda meta: str(meta["name"]))
    newest = max(in_order, key=lambda meta: str(meta.get("creationTimestamp") or ""), default=None)
    return str(newest["name"]) if newest is not None else ""


# --- checks -----------------------------------------------------------------------------------------------------------


def check(kind: Kind, new: Json, old: Json | None) -> None:
    """Raises Invalid with every fault; BadRequest where a quantity is none."""
    with _refusing(kind, new) as faults:
        if is_custom(kind):
            faults += schema.faults(kind, new, old)
        else:
            faults += pod_rules.faults(new, old) if kind == POD else table.faults(kind, new, old)


def check_found(kind: Kind, found: Json) -> None:
    """The same of what a cluster has written, status included. Of its pods less is asked: they run already."""
    if kind != POD:
        check(kind, found, None)
        return
    with _refusing(kind, found) as faults:
        faults += pod_rules.found_faults(found)


@contextmanager
def _refusing(kind: Kind, obj: Json) -> Iterator[list[Fault]]:
    """What is put into the list is raised at the end."""
    faults: list[Fault] = []
    try:
        yield faults
    except InvalidObject as error:
        raise refusals.unreadable(kind, error) from None
    if faults:
        raise refusals.invalid(kind, obj["metadata"]["name"], faults)


def warnings(kind: Kind, new: Json, old: Json | None) -> list[str]:
    """What is allowed and yet hardly meant."""
    if kind == NODE and old is None and not (new.get("status") or {}).get("allocatable"):
        return [f'nodes "{new["metadata"]["name"]}": status.allocatable is missing: no pod will fit on it']
    return []


def grace(kind: Kind, old: Json, asked: int | None) -> int:
    """Seconds between the request to delete and the end; only pods have any."""
    return pod_rules.grace(old, asked) if kind == POD else 0
