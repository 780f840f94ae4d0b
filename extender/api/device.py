"""ResourceSlice (resource.k8s.io/v1): the devices that a driver offers, on one node or from many."""

from __future__ import annotations

from msgspec import field

from extender.api.selectors import NodeSelector, Taint
from extender.api.views import Metadata, View


class Attribute(View, frozen=True):
    """Exactly one of them is set."""

    integer: int | None = field(default=None, name="int")
    boolean: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class Amount(View, frozen=True):
    """Of a device's capacity, and of a counter."""

    value: str | int | float = 0


class CounterSet(View, frozen=True):
    """What partitions of one thing share."""

    name: str = ""
    counters: dict[str, Amount] | None = None


class CounterUse(View, frozen=True):
    counter_set: str = ""
    counters: dict[str, Amount] | None = None


class Device(View, frozen=True):
    """The node fields count only where the slice says `per_device_node_selection`."""

    name: str = ""
    attributes: dict[str, Attribute] | None = None
    capacity: dict[str, Amount] | None = None
    consumes_counters: tuple[CounterUse, ...] | None = None
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[Taint, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None


class PoolName(View, frozen=True):
    """A slice belongs to a pool; of a newer generation all the older slices are void."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(View, frozen=True):
    driver: str = ""
    pool: PoolName = PoolName()
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] | None = None
    shared_counters: tuple[CounterSet, ...] | None = None


class ResourceSlice(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()
