"""Whether an object can be read at all: fields that somebody here reads have the types they read.

The schema of custom kinds says more (schema.py); of core kinds these are the views of extender/api. A real API server fails
likewise, when it decodes the request."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from extender.api import meta
from extender.api.claim import ClaimSpec as DeviceClaimSpec
from extender.api.claim import DeviceClass, ResourceClaim
from extender.api.device import ResourceSlice
from extender.api.errors import InvalidObject
from extender.api.meta import Json, Kind
from extender.api.node import BudgetStatus, Node, PriorityClass, Service
from extender.api.pod import Pod, PodSpec
from extender.api.selectors import LabelSelector
from extender.api.views import Metadata, Quantities, View, view_as_written
from extender.api.volume import (
    ClaimSpec,
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from extender.cluster import refusals

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # an int32 of which the API server takes none below zero
Share = int | Annotated[str, Meta(pattern="^[0-9]+%$")]  # so many, or so much of all


class _Metadata(Metadata, frozen=True):
    generate_name: str = ""


class _Envelope(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class _Data(View, frozen=True):
    """ConfigMap and Secret."""

    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    string_data: dict[str, str] | None = None


class _Scope(View, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class _ScopeSelector(View, frozen=True):
    match_expressions: tuple[_Scope, ...] | None = None


class _QuotaSpec(View, frozen=True):
    hard: Quantities | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: _ScopeSelector | None = None


class _Quota(View, frozen=True):
    spec: _QuotaSpec = _QuotaSpec()


class _BudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None
    min_available: Share | None = None
    max_unavailable: Share | None = None


class _Budget(View, frozen=True):
    spec: _BudgetSpec = _BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class _MadeClaim(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: DeviceClaimSpec = DeviceClaimSpec()


class _MadeClaims(View, frozen=True):
    """ResourceClaimTemplate."""

    spec: _MadeClaim = _MadeClaim()


class _Template(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: PodSpec = PodSpec()


class _ClaimTemplate(View, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: ClaimSpec = ClaimSpec()


class _Rolling(View, frozen=True):
    partition: Count = 0
    max_unavailable: Share = 1
    max_surge: Share = 1


class _Strategy(View, frozen=True):
    type: str = ""
    rolling_update: _Rolling | None = None


class _Ordinals(View, frozen=True):
    start: Count = 0


class _WorkloadSpec(View, frozen=True):
    """What the workloads of one kind or another have."""

    replicas: Count | None = None
    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    backoff_limit: Count | None = None
    suspend: bool | None = None
    selector: LabelSelector | None = None
    template: _Template = _Template()
    strategy: _Strategy | None = None
    update_strategy: _Strategy | None = None
    ordinals: _Ordinals | None = None
    pod_management_policy: str = ""
    service_name: str = ""
    volume_claim_templates: tuple[_ClaimTemplate, ...] | None = None


class _Workload(View, frozen=True):
    spec: _WorkloadSpec = _WorkloadSpec()


class _ControllerSpec(View, frozen=True):
    replicas: Count | None = None
    selector: dict[str, str] | None = None
    template: _Template = _Template()


class _Controller(View, frozen=True):
    """A ReplicationController selects by plain labels."""

    spec: _ControllerSpec = _ControllerSpec()


_WORKLOADS = (meta.DEPLOYMENT, meta.REPLICA_SET, meta.STATEFUL_SET, meta.DAEMON_SET, meta.BATCH_JOB)
_VIEWS: dict[Kind, type[View]] = {
    meta.POD: Pod, meta.NODE: Node, meta.PRIORITY_CLASS: PriorityClass, meta.PDB: _Budget, meta.SERVICE: Service,
    meta.CONFIG_MAP: _Data, meta.SECRET: _Data, meta.RESOURCE_QUOTA: _Quota,
    meta.PVC: PersistentVolumeClaim, meta.PV: PersistentVolume, meta.STORAGE_CLASS: StorageClass,
    meta.VOLUME_ATTACHMENT: VolumeAttachment, meta.CSI_NODE: CsiNode, meta.CSI_DRIVER: CsiDriver,
    meta.CSI_STORAGE_CAPACITY: CsiStorageCapacity,
    meta.RESOURCE_CLAIM: ResourceClaim, meta.RESOURCE_CLAIM_TEMPLATE: _MadeClaims,
    meta.RESOURCE_SLICE: ResourceSlice, meta.DEVICE_CLASS: DeviceClass,
    **dict.fromkeys(_WORKLOADS, _Workload),
    meta.REPLICATION_CONTROLLER: _Controller,
}  # fmt: skip


def readable(kind: Kind, new: Json, old: Json | None = None) -> Json:
    """The object as it can be read: a null where there must be something counts as not written.

    What is shared with the stored object was read before. Raises BadRequest naming the field."""
    try:
        _read(kind, new, old)
    except InvalidObject:
        new = _without_nulls(new)
        try:
            _read(kind, new, old)
        except InvalidObject as error:
            raise refusals.unreadable(kind, error) from None
    return new


def _read(kind: Kind, new: Json, old: Json | None) -> None:
    if old is None or new.get("metadata") is not old["metadata"]:
        view_as_written(_Envelope, new)
    read_as = _VIEWS.get(kind)
    if read_as is not None and (old is None or any(new[part] is not old.get(part) for part in new if part != "metadata")):
        view_as_written(read_as, new)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
