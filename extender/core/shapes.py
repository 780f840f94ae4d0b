"""Shapes: what a pod asks, interned. A thousand equal workers share one Shape; the mirror keeps one small row for each.

A Shape is everything in a pod's spec that decides where it may run, without its name, labels and node. Labels join in
when the session makes task classes (session.py), and only where some selector in the cluster looks at them."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.api import quantity
from extender.api.labels import QUEUE_ALLOCATION_GATE
from extender.api.meta import Key
from extender.api.pod import Container, PodAffinity, PodAffinityTerm, PodSpec, Volume
from extender.api.pod_requests import effective_requests
from extender.core.axis import Axis, IntR

# What kube-scheduler assumes for a container that asks nothing (k8s.io/kubernetes pkg/scheduler/util/pod_resources.go)
_FILL = {"cpu": "100m", "memory": str(200 * 1024 * 1024)}
_FILL_NANOS = {name: quantity.nanos(amount) for name, amount in _FILL.items()}


@dataclass(eq=False, slots=True)
class Shape:
    """One interned spec. `request` is (R,) with 1 in the pods column and is widened when the axis grows. Arrays are read-only:
    sessions and plugins see these very ones."""

    id: int
    spec: PodSpec
    requests: dict[str, int]  # resource name -> nano-units
    request: IntR
    nonzero: NDArray[np.int64]  # (2,) milli-cpu and bytes, with defaults for containers that ask nothing
    best_effort: bool
    gated: bool
    blocked: bool  # gated by more than the queue's own gate: it does not count as waiting for its queue
    selector_keys: frozenset[str]  # label keys that its affinity terms and spread constraints look at
    own_affinity: bool = False  # has required or preferred pod (anti-)affinity or spread constraints
    users: int = 0  # tasks that have this shape now
    extra: dict[str, object] = field(default_factory=dict)  # derived facts that a plugin caches per shape


class Shapes:
    """The table of shapes. Ids are reused once nobody has the shape."""

    def __init__(self, axis: Axis) -> None:
        self.axis = axis
        self.by_id: list[Shape | None] = []
        self._ids: dict[bytes, int] = {}
        self._free: list[int] = []
        self._encoder = msgspec.json.Encoder()

    def of(self, spec: PodSpec, key: Key) -> Shape:
        """The shape of a spec. Raises InvalidObject where a quantity cannot be read."""
        bare = msgspec.structs.replace(
            spec, node_name="", priority=None, priority_class_name="", scheduler_name="", volumes=_telling(spec.volumes)
        )
        code = self._encoder.encode(bare)
        known = self._ids.get(code)
        if known is not None:
            shape = self.by_id[known]
            assert shape is not None
            return shape
        requests = effective_requests(spec, subject=f"Pod {key}")
        self.axis.add(requests)
        shape = self._make(bare, requests)
        self._ids[code] = shape.id
        return shape

    def _make(self, spec: PodSpec, requests: dict[str, int]) -> Shape:
        request = self.axis.vector(requests)
        best_effort = not request.any()
        request[2] = 1
        new = self._free.pop() if self._free else len(self.by_id)
        shape = Shape(
            id=new,
            spec=spec,
            requests=requests,
            request=_fixed(request),
            nonzero=_fixed(nonzero_requests(spec, requests)),
            best_effort=best_effort,
            gated=bool(spec.scheduling_gates),
            blocked=[gate.name for gate in spec.scheduling_gates or ()] not in ([], [QUEUE_ALLOCATION_GATE]),
            selector_keys=frozenset(_selector_keys(spec)),
            own_affinity=_looks_at_pods(spec),
        )
        if new == len(self.by_id):
            self.by_id.append(shape)
        else:
            self.by_id[new] = shape
        return shape

    def widen(self) -> None:
        """Make every request as long as the axis."""
        width = len(self.axis)
        for shape in self.by_id:
            if shape is not None and len(shape.request) < width:
                more = np.zeros(width - len(shape.request), dtype=np.int64)
                shape.request = _fixed(np.concatenate([shape.request, more]))

    def release(self, shape: Shape) -> None:
        """One task less; forgets the shape with its last."""
        shape.users -= 1
        if shape.users == 0:
            del self._ids[self._encoder.encode(shape.spec)]
            self.by_id[shape.id] = None
            self._free.append(shape.id)


def _fixed(amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    amounts.flags.writeable = False
    return amounts


def _telling(volumes: tuple[Volume, ...] | None) -> tuple[Volume, ...] | None:
    """Those that decide where a pod may run. Names do not, and often have a random part; only the claims of ephemeral volumes
    are called after them."""
    found = tuple(
        volume if volume.ephemeral is not None else msgspec.structs.replace(volume, name="")
        for volume in volumes or ()
        if volume.claimed or volume.image is not None or volume.disk is not None
    )
    return found or None


def nonzero_requests(spec: PodSpec, requests: dict[str, int]) -> NDArray[np.int64]:
    """(2,) cpu and memory with kube-scheduler's defaults for each container that asks nothing; `requests` as effective.

    Where the pod itself names requests, only what nobody names is filled. Source: k8s.io/kubernetes v1.36.1,
    pkg/scheduler/framework/types.go, CalculateResource."""
    if not spec.init_containers and spec.resources is None:
        filled = dict(requests)
        for container in spec.containers:
            for name, amount in _FILL_NANOS.items():
                if name not in (container.resources.requests or ()):
                    filled[name] = filled.get(name, 0) + amount
    else:
        fill = {name: amount for name, amount in _FILL.items() if not spec.pod_level or name not in requests}
        filled = effective_requests(
            msgspec.structs.replace(
                spec,
                containers=tuple(_filled(c, fill) for c in spec.containers),
                init_containers=tuple(_filled(c, fill) for c in spec.init_containers or ()),
            )
        )
    cpu, memory = -(-filled.get("cpu", 0) // 10**6), -(-filled.get("memory", 0) // 10**9)
    return np.array([min(cpu, quantity.MAX), min(memory, quantity.MAX)], dtype=np.int64)


def _filled(container: Container, fill: dict[str, str]) -> Container:
    asked = {**fill, **(container.resources.requests or {})}
    return msgspec.structs.replace(container, resources=msgspec.structs.replace(container.resources, requests=asked))


def _affinity_terms(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    if affinity is None:
        return []
    preferred = affinity.preferred_during_scheduling_ignored_during_execution or ()
    return [
        *(affinity.required_during_scheduling_ignored_during_execution or ()),
        *(weighted.pod_affinity_term for weighted in preferred),
    ]


def affinity_terms(spec: PodSpec) -> list[PodAffinityTerm]:
    """Every pod affinity and anti-affinity term of a spec, required and preferred."""
    if spec.affinity is None:
        return []
    return [*_affinity_terms(spec.affinity.pod_affinity), *_affinity_terms(spec.affinity.pod_anti_affinity)]


def _selector_keys(spec: PodSpec) -> set[str]:
    keys: set[str] = set()
    for term in affinity_terms(spec):
        keys |= term.label_selector.keys() if term.label_selector else set()
        keys |= {*(term.match_label_keys or ()), *(term.mismatch_label_keys or ())}
    for constraint in spec.topology_spread_constraints or ():
        keys |= constraint.label_selector.keys() if constraint.label_selector else set()
        keys |= set(constraint.match_label_keys or ())
    return keys


def _looks_at_pods(spec: PodSpec) -> bool:
    return bool(affinity_terms(spec) or spec.topology_spread_constraints)
