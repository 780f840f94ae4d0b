"""ResourceClaim (resource.k8s.io/v1): devices by claim. Only what quotas count."""

from __future__ import annotations

from msgspec import field

from extender.api.views import Metadata, Quantities, View

ALL = "All"  # allocation mode: every matching device of a pool


class CapacityAsked(View, frozen=True):
    requests: Quantities | None = None


class ExactRequest(View, frozen=True):
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int = 0
    capacity: CapacityAsked = CapacityAsked()


class DeviceRequest(View, frozen=True):
    """`first_available` gives alternatives instead of `exactly`; which one comes true is open until then."""

    name: str = ""
    exactly: ExactRequest | None = None


class DeviceClaim(View, frozen=True):
    requests: tuple[DeviceRequest, ...] | None = None


class ClaimSpec(View, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaim(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = field(default_factory=ClaimSpec)
