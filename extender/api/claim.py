"""ResourceClaim, ResourceClaimTemplate and DeviceClass (resource.k8s.io/v1): who asks for devices, and which it was given."""

from __future__ import annotations

from typing import Any

from msgspec import field

from extender.api import quantity
from extender.api.selectors import NodeSelector, Toleration
from extender.api.views import Metadata, Quantities, View

ALL, EXACT_COUNT = "All", "ExactCount"  # allocation modes: every matching device there is, or so many
FINALIZER = "resource.kubernetes.io/delete-protection"  # on a claim while it has devices
MOST_CONSUMERS = 256  # of one claim at a time: ResourceClaimReservedForMaxSize
MOST_DEVICES = 32  # of one claim: AllocationResultsMaxSize


class CelSelector(View, frozen=True):
    expression: str = ""


class DeviceSelector(View, frozen=True):
    cel: CelSelector | None = None


class DeviceConfiguration(View, frozen=True):
    """Settings for a driver, handed on unread."""

    requests: tuple[str, ...] | None = None
    opaque: dict[str, Any] | None = None


def _check(amounts: Quantities | None, path: str) -> None:
    """Raises InvalidObject: an object that is wrong is kept out of every session."""
    for name, amount in (amounts or {}).items():
        quantity.nanos(amount, f"{path}[{name}]")


class CapacityAsked(View, frozen=True):
    requests: Quantities | None = None

    def __post_init__(self) -> None:
        _check(self.requests, "capacity.requests")


class ExactRequest(View, frozen=True):
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    selectors: tuple[DeviceSelector, ...] | None = None
    tolerations: tuple[Toleration, ...] | None = None
    capacity: CapacityAsked = CapacityAsked()


class SubRequest(ExactRequest, frozen=True):
    """One of the alternatives of `firstAvailable`; it has no admin access."""

    name: str = ""


class DeviceRequest(View, frozen=True):
    """`first_available` gives alternatives instead of `exactly`; which one comes true is open until then."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[SubRequest, ...] | None = None


class DeviceConstraint(View, frozen=True):
    """The devices of these requests (none named: of all) have the same value of an attribute "domain/name", or all another."""

    requests: tuple[str, ...] | None = None
    match_attribute: str = ""
    distinct_attribute: str = ""


class DeviceClaim(View, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None
    constraints: tuple[DeviceConstraint, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None


class ClaimSpec(View, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(View, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    share_id: str = field(default="", name="shareID")  # of devices that several claims use: which share this is
    consumed_capacity: Quantities | None = None

    def __post_init__(self) -> None:
        _check(self.consumed_capacity, "consumedCapacity")


class AllocatedDevices(View, frozen=True):
    results: tuple[AllocatedDevice, ...] | None = None


class Allocation(View, frozen=True):
    """No node selector: the devices can be used from every node."""

    devices: AllocatedDevices = AllocatedDevices()
    node_selector: NodeSelector | None = None


class Consumer(View, frozen=True):
    """Who a claim is reserved for, a pod mostly."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(View, frozen=True):
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] | None = None


class ResourceClaim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplate(View, frozen=True):
    """Only whether it is there matters here; Kubernetes makes the claims."""

    metadata: Metadata = Metadata()


class DeviceClassSpec(View, frozen=True):
    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceConfiguration, ...] | None = None


class DeviceClass(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()
