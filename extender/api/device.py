"""ResourceSlice (resource.k8s.io/v1): the devices that a driver offers, on one node or from many.

Amounts are checked as they are read, so that a slice that is wrong is kept out of every session."""

from __future__ import annotations

from msgspec import field

from extender.api import quantity
from extender.api.selectors import NodeSelector, Taint
from extender.api.views import Metadata, View


class Attribute(View, frozen=True):
    """Exactly one of them is set."""

    integer: int | None = field(default=None, name="int")
    boolean: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class Amount(View, frozen=True):
    """Of a counter."""

    value: str | int | float = 0

    def __post_init__(self) -> None:
        quantity.nanos(self.value, "value")


class ValidRange(View, frozen=True):
    min: str | int | float | None = None
    max: str | int | float | None = None
    step: str | int | float | None = None

    def __post_init__(self) -> None:
        for amount in (self.min, self.max, self.step):
            quantity.nanos(amount if amount is not None else 0, "validRange")


class RequestPolicy(View, frozen=True):
    """How much of a capacity may be asked for: one of the values, or a step of the range; the default where none is asked."""

    default: str | int | float | None = None
    valid_values: tuple[str | int | float, ...] | None = None
    valid_range: ValidRange | None = None

    def __post_init__(self) -> None:
        for amount in (self.default, *(self.valid_values or ())):
            quantity.nanos(amount if amount is not None else 0, "requestPolicy")


class Capacity(View, frozen=True):
    value: str | int | float = 0
    request_policy: RequestPolicy | None = None

    def __post_init__(self) -> None:
        quantity.nanos(self.value, "value")


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
    capacity: dict[str, Capacity] | None = None
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
