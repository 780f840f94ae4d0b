"""Whom a pod without constraints is spread from: the pods of its services and of its owner.

Source: k8s.io/kubernetes v1.36.1, plugins/helper/spread.go, DefaultSelector."""

from __future__ import annotations

from extender.api import meta
from extender.api.meta import Key, Kind
from extender.api.node import Service
from extender.api.pod import Pod
from extender.api.selectors import LabelSelector, Requirement
from extender.api.workload import ReplicaSet, ReplicationController, StatefulSet
from extender.core.snapshot import Snapshot

_OWNERS: dict[tuple[str, str], Kind] = {
    (kind.api_version, kind.name): kind for kind in (meta.REPLICATION_CONTROLLER, meta.REPLICA_SET, meta.STATEFUL_SET)
}


class DefaultSelectors:
    """Services by namespace, and owners that select pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._facts = snapshot.facts
        self._services: dict[str, list[dict[str, str]]] = {}
        for key, service in self._facts[meta.SERVICE].items():
            if isinstance(service, Service) and service.spec.selector is not None:
                self._services.setdefault(key.namespace, []).append(service.spec.selector)
        self.any_owners = any(self._facts[kind] for kind in _OWNERS.values())

    def owner(self, pod: Pod) -> tuple[Kind, Key] | None:
        """The owner whose selector counts, where we know it."""
        if not self.any_owners:
            return None
        owner = pod.metadata.controller
        kind = _OWNERS.get((owner.api_version, owner.kind)) if owner is not None else None
        if owner is None or kind is None:
            return None
        key = Key(pod.metadata.namespace, owner.name)
        return (kind, key) if key in self._facts[kind] else None

    def selector(self, pod: Pod) -> LabelSelector | None:
        """The selector of a pod; None where nobody selects it."""
        labels = pod.metadata.labels or {}
        wanted: dict[str, str] = {}
        for selector in self._services.get(pod.metadata.namespace, ()):
            if selector.items() <= labels.items():
                wanted |= selector
        expressions: tuple[Requirement, ...] = ()
        owner = self.owner(pod)
        match self._facts[owner[0]][owner[1]] if owner else None:
            case ReplicationController(spec=spec):
                wanted |= spec.selector or {}
            case ReplicaSet(spec=spec) | StatefulSet(spec=spec) if spec.selector is not None:
                same = (Requirement(key, "In", (value,)) for key, value in (spec.selector.match_labels or {}).items())
                expressions = (*same, *(spec.selector.match_expressions or ()))
        found = LabelSelector(wanted or None, expressions or None)
        return None if found.empty else found
