"""Which kinds of objects are followed, and by which view each is read.

Nodes, pods, PodGroups and queues become rows of columns (tables.py). All others are facts: kept as they are, by their keys."""

from __future__ import annotations

from extender.api import meta
from extender.api.claim import DeviceClass, ResourceClaim, ResourceClaimTemplate
from extender.api.device import ResourceSlice
from extender.api.meta import Kind
from extender.api.node import Namespace, PodDisruptionBudget, PriorityClass, ResourceQuota, Service
from extender.api.views import View
from extender.api.volume import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.api.workload import ReplicaSet, ReplicationController, StatefulSet

_ORDINARY: dict[Kind, type[View]] = {
    meta.PRIORITY_CLASS: PriorityClass,
    meta.NAMESPACE: Namespace,
    meta.RESOURCE_QUOTA: ResourceQuota,
    meta.PDB: PodDisruptionBudget,
    meta.SERVICE: Service,
    meta.REPLICATION_CONTROLLER: ReplicationController,
    meta.REPLICA_SET: ReplicaSet,
    meta.STATEFUL_SET: StatefulSet,
}
_DEVICES: dict[Kind, type[View]] = {
    meta.RESOURCE_CLAIM: ResourceClaim,
    meta.RESOURCE_CLAIM_TEMPLATE: ResourceClaimTemplate,
    meta.RESOURCE_SLICE: ResourceSlice,
    meta.DEVICE_CLASS: DeviceClass,
}
_VOLUMES: dict[Kind, type[View]] = {
    meta.PV: PersistentVolume,
    meta.PVC: PersistentVolumeClaim,
    meta.STORAGE_CLASS: StorageClass,
    meta.CSI_NODE: CsiNode,
    meta.CSI_DRIVER: CsiDriver,
    meta.CSI_STORAGE_CAPACITY: CsiStorageCapacity,
    meta.VOLUME_ATTACHMENT: VolumeAttachment,
}

FACTS = {**_ORDINARY, **_DEVICES, **_VOLUMES}
ALWAYS: tuple[Kind, ...] = (*_ORDINARY, meta.QUEUE, meta.NODE, meta.POD_GROUP, meta.POD)
# Followed where a plugin of the configuration asks for them (Plugin.follows).
DEVICES, VOLUMES = tuple(_DEVICES), tuple(_VOLUMES)
