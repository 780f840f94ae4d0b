"""Whether an object can be read at all: its fields have the types of their kind, and those that our readers read.

The schema of custom kinds says more (schema.py); the types of core kinds are in rules/shapes.py, our readers are the views of
extender/api. A real API server fails likewise, when it decodes the request."""

from __future__ import annotations

from typing import Any

import msgspec

from extender.api import meta
from extender.api.claim import ClaimSpec as DeviceClaimSpec
from extender.api.claim import DeviceClass, ResourceClaim
from extender.api.device import ResourceSlice
from extender.api.errors import InvalidObject
from extender.api.meta import Json, Kind
from extender.api.node import Node, PriorityClass, Service
from extender.api.pod import Pod
from extender.api.views import Metadata, View, view_as_written
from extender.api.volume import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.cluster import refusals
from extender.cluster.metadata import is_custom
from extender.cluster.rules.table import check_shape


class _Metadata(Metadata, frozen=True):
    generate_name: str = ""


class _Envelope(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class _MadeClaim(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: DeviceClaimSpec = DeviceClaimSpec()


class _MadeClaims(View, frozen=True):
    """ResourceClaimTemplate."""

    spec: _MadeClaim = _MadeClaim()


_VIEWS: dict[Kind, type[View]] = {
    meta.POD: Pod, meta.NODE: Node, meta.PRIORITY_CLASS: PriorityClass, meta.SERVICE: Service,
    meta.PVC: PersistentVolumeClaim, meta.PV: PersistentVolume, meta.STORAGE_CLASS: StorageClass,
    meta.VOLUME_ATTACHMENT: VolumeAttachment, meta.CSI_NODE: CsiNode, meta.CSI_DRIVER: CsiDriver,
    meta.CSI_STORAGE_CAPACITY: CsiStorageCapacity,
    meta.RESOURCE_CLAIM: ResourceClaim, meta.RESOURCE_CLAIM_TEMPLATE: _MadeClaims,
    meta.RESOURCE_SLICE: ResourceSlice, meta.DEVICE_CLASS: DeviceClass,
}  # fmt: skip


def readable(kind: Kind, new: Json, old: Json | None = None) -> Json:
    """The object as it can be read: in metadata and in built-in kinds a null counts as not written, elsewhere in a custom
    kind where its schema says so.

    What is shared with the stored object was read before. Raises BadRequest naming the field."""
    if is_custom(kind):
        metadata = new.get("metadata")
        if metadata and b"null" in msgspec.json.encode(metadata):
            new = {**new, "metadata": _without_nulls(metadata)}
    elif b"null" in msgspec.json.encode(new):
        new = _without_nulls(new)
    try:
        _read(kind, new, old)
    except InvalidObject as error:
        raise refusals.unreadable(kind, error) from None
    return new


def _read(kind: Kind, new: Json, old: Json | None) -> None:
    if old is None or new.get("metadata") is not old["metadata"]:
        view_as_written(_Envelope, new)
    if old is None or any(new[part] is not old.get(part) for part in new if part != "metadata"):
        check_shape(kind, new)
        if kind in _VIEWS:
            view_as_written(_VIEWS[kind], new)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
