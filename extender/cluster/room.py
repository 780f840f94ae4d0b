"""What the running pods of each node have taken of it: a kubelet takes in no pod that does not fit besides them.

Whoever writes spec.nodeName by hand asks no scheduler; nor do two schedulers ask each other.
Source: kubernetes v1.36.1 pkg/kubelet/lifecycle/predicate.go (Admit, which passes over extended resources that the node
does not have; here over all that it does not speak of) and handlers.go (InsufficientResourceError)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from extender.api import quantity
from extender.api.errors import InvalidObject
from extender.api.meta import Json
from extender.api.pod import PodSpec
from extender.api.pod_requests import effective_requests
from extender.api.views import view

_PODS = "pods"


class Lacking(NamedTuple):
    """A resource of which there is not enough, in nano-units."""

    resource: str
    asked: int
    used: int
    capacity: int

    def as_status(self) -> Json:
        words = ", ".join(
            f"{name}: {_in_go(self.resource, amount)}"
            for name, amount in (("requested", self.asked), ("used", self.used), ("capacity", self.capacity))
        )
        message = f"Pod was rejected: Node didn't have enough resource: {self.resource}, {words}"
        return {"phase": "Failed", "reason": f"OutOf{self.resource}", "message": message}


class Room:
    """Pods are known by their uid; `take` again where a pod may have become another size."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, tuple[Json, Mapping[str, int]]]] = {}  # node -> uid -> spec, and what it asks

    def take(self, node: str, uid: str, spec: Json) -> None:
        taken = self._taken.setdefault(node, {})
        if uid not in taken or taken[uid][0] is not spec:
            taken[uid] = (spec, _asked(spec))

    def release(self, node: str, uid: str) -> None:
        self._taken.get(node, {}).pop(uid, None)

    def lacking(self, node: Json, spec: Json) -> Lacking | None:
        """The first resource, by name, that the node has too little of for one pod more."""
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        taken = self._taken.get(node["metadata"]["name"], {}).values()
        for name, asked in sorted(_asked(spec).items()):
            if asked == 0 or name not in allocatable:
                continue
            used, capacity = sum(each.get(name, 0) for _, each in taken), quantity.nanos(allocatable[name])
            if used + asked > capacity:
                return Lacking(name, asked, used, capacity)
        return None


def _asked(spec: Json) -> Mapping[str, int]:
    """Nothing where it cannot be read: it came from a cluster that has taken it."""
    try:
        return {**effective_requests(view(PodSpec, spec)), _PODS: quantity.NANO}
    except InvalidObject:
        return {_PODS: quantity.NANO}


def _in_go(resource: str, amount: int) -> int:
    """Thousandths of cpu, whole units of all else."""
    return -(-amount // (10**6 if resource == "cpu" else quantity.NANO))
