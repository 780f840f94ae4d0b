"""ResourceSlices > pools: the devices that a node can reach.

Of each pool only the newest generation counts. A pool of which slices are still missing is incomplete, one whose slices
contradict each other is broken: nothing is given from either. Source: k8s.io/dynamic-resource-allocation v0.36.1,
structured/internal/*/pools*.go; there a pool may go on with an old generation where the new one does not concern the node."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from extender.api import quantity
from extender.api.device import Device, ResourceSlice
from extender.api.node import Node
from extender.api.selectors import NodeSelector
from extender.core.dra.cel import CelError, Domains, Quantity, Value
from extender.core.dra.cel.values import semver

PoolId = tuple[str, str]  # driver, pool


class DeviceId(NamedTuple):
    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class Offer:
    """One device of a slice, for all nodes of the session."""

    def __init__(self, slice_: ResourceSlice, device: Device) -> None:
        self.slice, self.device = slice_, device
        self.id = DeviceId(slice_.spec.driver, slice_.spec.pool.name, device.name)
        self.shared = bool(device.allow_multiple_allocations)

    @cached_property
    def counters(self) -> dict[tuple[str, str], int]:
        """(set, counter) -> nano-units that it takes from its pool."""
        return {
            (use.counter_set, name): quantity.nanos(amount.value)
            for use in self.device.consumes_counters or ()
            for name, amount in (use.counters or {}).items()
        }

    @cached_property
    def capacity(self) -> dict[str, int]:
        """Capacity by its name as written -> nano-units."""
        return {name: quantity.nanos(amount.value) for name, amount in (self.device.capacity or {}).items()}

    @cached_property
    def variables(self) -> Mapping[str, Value]:
        """What a selector sees. Raises CelError where an attribute has no value that is known."""
        attributes, capacity = Domains(), Domains()
        for name in self.device.attributes or ():
            domain, short = self._qualified(name)
            attributes.setdefault(domain, {})[short] = self._attribute(name)
        for name, amount in self.capacity.items():
            domain, short = self._qualified(name)
            capacity.setdefault(domain, {})[short] = Quantity(amount)
        seen = {"driver": self.id.driver, "attributes": attributes, "capacity": capacity}
        return {"device": {**seen, "allowMultipleAllocations": self.shared}}

    def _qualified(self, name: str) -> tuple[str, str]:
        domain, slash, short = name.partition("/")
        return (domain, short) if slash else (self.id.driver, name)

    def _attribute(self, name: str) -> Value:
        attribute = (self.device.attributes or {})[name]
        if attribute.version is not None:
            version = semver(attribute.version)
            if version is None:
                raise CelError(f"attribute {name} of device {self.id}: {attribute.version!r} is no semantic version")
            return version
        values = (attribute.integer, attribute.boolean, attribute.string)
        value = next((value for value in values if value is not None), None)
        if value is None:
            raise CelError(f"attribute {name} of device {self.id} has no value of a type that is known")
        return value

    def attribute(self, qualified: str) -> tuple[str, Value] | None:
        """Type and value of an attribute by its full name "domain/name", as constraints compare them; None: not there."""
        attributes = self.device.attributes or {}
        found = attributes.get(qualified)
        domain, _, short = qualified.partition("/")
        if found is None and domain == self.id.driver:
            found = attributes.get(short)
        if found is None:
            return None
        values = {"int": found.integer, "bool": found.boolean, "string": found.string, "version": found.version}
        return next(((kind, value) for kind, value in values.items() if value is not None), None)

    def on(self, node: Node) -> bool:
        """Where the slice leaves it to its devices: can the node reach this one?"""
        if not self.slice.spec.per_device_node_selection:
            return True
        return _reaches(node, self.device.node_name, self.device.all_nodes, self.device.node_selector)


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """What of a pool a node can reach. `counters`: by set and name, nano-units; `consumers`: all devices that take from them."""

    id: PoolId
    offers: Sequence[Offer] = ()
    incomplete: bool = False
    broken: str = ""
    counters: Mapping[tuple[str, str], int] | None = None
    consumers: Sequence[Offer] = ()

    def __str__(self) -> str:
        return "/".join(self.id)


class Slices:
    """All slices of the session."""

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        ordered = sorted(slices, key=lambda s: s.metadata.name)
        newest: dict[PoolId, int] = {}
        for each in ordered:
            newest[_pool(each)] = max(newest.get(_pool(each), 0), each.spec.pool.generation)
        self._of_pool: dict[PoolId, list[ResourceSlice]] = defaultdict(list)
        self._of_node: dict[str, list[ResourceSlice]] = defaultdict(list)
        self._of_many: list[ResourceSlice] = []
        for each in ordered:
            if each.spec.pool.generation < newest[_pool(each)]:
                continue
            self._of_pool[_pool(each)].append(each)
            if each.spec.node_name:
                self._of_node[each.spec.node_name].append(each)
            elif not each.spec.shared_counters:
                self._of_many.append(each)
        self._offers: dict[str, list[Offer]] = {}

    def pools(self, node: Node) -> list[Pool]:
        """The pools with a slice that concerns the node, by driver and name."""
        mine: dict[PoolId, list[ResourceSlice]] = defaultdict(list)
        for each in (*self._of_node.get(node.metadata.name, ()), *self._of_many):
            if not each.spec.shared_counters and self._concerns(each, node):
                mine[_pool(each)].append(each)
        return [self._build(pool, slices, node) for pool, slices in sorted(mine.items())]

    def _concerns(self, slice_: ResourceSlice, node: Node) -> bool:
        spec = slice_.spec
        if spec.per_device_node_selection:
            return any(offer.on(node) for offer in self._offered(slice_))
        return _reaches(node, spec.node_name, spec.all_nodes, spec.node_selector)

    def _offered(self, slice_: ResourceSlice) -> list[Offer]:
        name = slice_.metadata.name
        if name not in self._offers:
            self._offers[name] = [Offer(slice_, device) for device in slice_.spec.devices or ()]
        return self._offers[name]

    def _build(self, pool: PoolId, slices: list[ResourceSlice], node: Node) -> Pool:
        whole = self._of_pool[pool]
        slices = sorted(slices, key=lambda s: s.metadata.name)
        if len(whole) != slices[0].spec.pool.resource_slice_count:
            return Pool(pool, incomplete=True)
        offers = [offer for each in slices for offer in self._offered(each)]
        counters = {
            (set_.name, name): quantity.nanos(amount.value)
            for each in whole
            for set_ in each.spec.shared_counters or ()
            for name, amount in (set_.counters or {}).items()
        }
        consumers = [offer for each in whole if not each.spec.shared_counters for offer in self._offered(each) if offer.counters]
        broken = _broken(offers, consumers, counters)
        if broken:
            return Pool(pool, broken=broken)
        return Pool(pool, [offer for offer in offers if offer.on(node)], counters=counters, consumers=consumers)


def _pool(slice_: ResourceSlice) -> PoolId:
    return slice_.spec.driver, slice_.spec.pool.name


def _reaches(node: Node, name: str, all_nodes: bool | None, selector: NodeSelector | None) -> bool:
    if name:
        return node.metadata.name == name
    if all_nodes:
        return True
    return selector is not None and selector.matches(node.metadata.name, node.metadata.labels or {})


def _broken(offers: list[Offer], consumers: list[Offer], counters: Mapping[tuple[str, str], int]) -> str:
    twice = [name for name, times in Counter(offer.id.name for offer in offers).items() if times > 1]
    if twice:
        return f"device {twice[0]} is there twice"
    for offer in consumers:
        unknown = [key for key in offer.counters if key not in counters]
        if unknown:
            return f"device {offer.id.name} takes from counter {'/'.join(unknown[0])}, which there is not"
    return ""
