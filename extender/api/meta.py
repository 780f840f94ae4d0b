"""Names of things: Key, Kind and the table KINDS, owner references, times. Reads JSON objects, never writes them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from extender.api.errors import InvalidObject

# What Go reads as a metav1.Time; fromisoformat would take dates, weeks and times without a zone as well.
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")

Json = dict[str, Any]
Time = float  # seconds since the epoch, UTC


class Key(NamedTuple):
    """Namespace and name; the namespace of cluster-scoped objects is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Kind(NamedTuple):
    """One API kind. `status_subresource`: spec writes drop status and status writes drop all else (never for PodGroup)."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    status_subresource: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return self.name


POD = Kind("", "v1", "Pod", "pods")
NODE = Kind("", "v1", "Node", "nodes", namespaced=False)
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
SERVICE = Kind("", "v1", "Service", "services")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", status_subresource=False)
SECRET = Kind("", "v1", "Secret", "secrets", status_subresource=False)
EVENT = Kind("", "v1", "Event", "events", status_subresource=False)
PVC = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PV = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
RESOURCE_QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas")
LIMIT_RANGE = Kind("", "v1", "LimitRange", "limitranges", status_subresource=False)
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", status_subresource=False)
REPLICATION_CONTROLLER = Kind("", "v1", "ReplicationController", "replicationcontrollers")
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, False)
PDB = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", status_subresource=False)
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Kind("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = Kind("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SET = Kind("apps", "v1", "DaemonSet", "daemonsets")
BATCH_JOB = Kind("batch", "v1", "Job", "jobs")
BATCH_CRON_JOB = Kind("batch", "v1", "CronJob", "cronjobs")
STORAGE_CLASS = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", False, False)
CSI_NODE = Kind("storage.k8s.io", "v1", "CSINode", "csinodes", False, False)
CSI_DRIVER = Kind("storage.k8s.io", "v1", "CSIDriver", "csidrivers", False, False)
CSI_STORAGE_CAPACITY = Kind("storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", status_subresource=False)
VOLUME_ATTACHMENT = Kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)
RESOURCE_CLAIM = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", True, False)
RESOURCE_SLICE = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", False, False)
DEVICE_CLASS = Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", False, False)
MUTATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False, False
)
VALIDATING_WEBHOOKS = Kind(
    "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False, False
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases", status_subresource=False)
JOB = Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs")
CRON_JOB = Kind("batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs")
COMMAND = Kind("bus.volcano.sh", "v1alpha1", "Command", "commands", status_subresource=False)
POD_GROUP = Kind("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", status_subresource=False)
QUEUE = Kind("scheduling.volcano.sh", "v1beta1", "Queue", "queues", namespaced=False)
JOB_FLOW = Kind("flow.volcano.sh", "v1alpha1", "JobFlow", "jobflows")
JOB_TEMPLATE = Kind("flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates")
HYPER_NODE = Kind("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", namespaced=False)
NUMATOPOLOGY = Kind("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", False, False)
NODE_SHARD = Kind("shard.volcano.sh", "v1alpha1", "NodeShard", "nodeshards", namespaced=False)
COLOCATION = Kind("config.volcano.sh", "v1alpha1", "ColocationConfiguration", "colocationconfigurations")

KINDS: tuple[Kind, ...] = (
    POD, NODE, NAMESPACE, SERVICE, CONFIG_MAP, SECRET, EVENT, PVC, PV, RESOURCE_QUOTA, LIMIT_RANGE, SERVICE_ACCOUNT,
    REPLICATION_CONTROLLER, PRIORITY_CLASS, PDB, NETWORK_POLICY, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET,
    BATCH_JOB, BATCH_CRON_JOB, STORAGE_CLASS, CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT, RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE, DEVICE_CLASS, MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, LEASE, JOB,
    CRON_JOB, COMMAND, POD_GROUP, QUEUE, JOB_FLOW, JOB_TEMPLATE, HYPER_NODE, NUMATOPOLOGY, NODE_SHARD, COLOCATION,
)  # fmt: skip

_BY_GVK = {(kind.api_version, kind.name): kind for kind in KINDS}


def kind_of(obj: Mapping[str, Any]) -> Kind:
    """The Kind of a JSON object. Raises InvalidObject where apiVersion and kind name none that is known."""
    api_version, name = obj.get("apiVersion"), obj.get("kind")
    kind = _BY_GVK.get((str(api_version), str(name)))
    if kind is None:
        raise InvalidObject(f"no such kind: apiVersion {api_version!r}, kind {name!r}", path="kind")
    return kind


def key_of(obj: Mapping[str, Any]) -> Key:
    meta = obj.get("metadata") or {}
    return Key(meta.get("namespace") or "", meta.get("name") or "")


def uid_of(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def controller_of(obj: Mapping[str, Any]) -> Json | None:
    """The owner reference with `controller: true`, if any."""
    for owner in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return dict(owner)
    return None


def owner_reference(owner: Mapping[str, Any]) -> Json:
    """A controller reference to `owner`, as controllers write it on what they make."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def parse_time(text: str | None) -> Time | None:
    """RFC 3339 -> seconds since the epoch, to the microsecond; None for an absent time. Raises InvalidObject."""
    if not text:
        return None
    try:
        return dt.datetime.fromisoformat(text).timestamp() if _TIME.fullmatch(text) else _no_time(text)
    except ValueError:
        return _no_time(text)


def _no_time(text: str) -> Time:
    raise InvalidObject(f"'{text}' is not a time (such as 2025-01-06T00:00:00Z)")


def format_time(when: Time) -> str:
    """Seconds since the epoch -> RFC 3339 to the second in UTC, as Kubernetes writes it."""
    return dt.datetime.fromtimestamp(int(when), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
