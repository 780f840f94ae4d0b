"""Runs the volume controllers on a cluster: what changed says what to look at again."""

from __future__ import annotations

from typing import TypeVar

from extender.api.meta import NODE, POD, PV, PVC, STORAGE_CLASS, Json, Key, Kind, key_of, uid_of
from extender.api.operations import Operation
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.hearing import Hearing
from extender.cluster.port import Cluster
from extender.cluster.workloads.volumes import Storage, ephemeral_claims, mounted, sync_claim, sync_volume

K = TypeVar("K")
_KINDS = (NODE, STORAGE_CLASS, PV, PVC, POD)


class StorageController:
    """`reconcile` looks at what changed since it last did, until nothing is left to do."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster, self._clock = cluster, clock
        self._heard = Hearing(cluster, _KINDS, self._forget)
        self._forget()

    def _forget(self) -> None:
        self._storage = Storage()
        self._pods: dict[str, Json] = {}  # by uid; only those that mount claims
        self._dirty_pods: dict[str, None] = {}
        self._dirty_claims: dict[Key, None] = {}
        self._dirty_volumes: dict[Key, None] = {}

    def reconcile(self) -> int:
        """The number of changes made."""
        changes = 0
        while self._hear():
            changes += sum(self._apply(ephemeral_claims(pod, self._storage.claims)) for pod in self._next_pods())
            for key in self._next(self._dirty_volumes):
                if key in self._storage.volumes:
                    changes += self._apply(sync_volume(self._storage.volumes[key], self._storage.claims))
            for key in self._next(self._dirty_claims):
                self._hear()  # what one claim got is not there for the next
                if key in self._storage.claims:
                    changes += self._apply(sync_claim(self._storage.claims[key], self._storage))
        return changes

    def _next_pods(self) -> list[Json]:
        dirty, self._dirty_pods = self._dirty_pods, {}
        return [self._pods[uid] for uid in dirty if uid in self._pods]

    def _next(self, dirty: dict[Key, None]) -> list[Key]:
        keys = list(dirty)
        dirty.clear()
        return keys

    def _apply(self, operations: list[Operation]) -> int:
        return apply(self._cluster, operations, clock=self._clock).done if operations else 0

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self) -> bool:
        """Is there anything to look at?"""
        for kind, event in self._heard.events():
            self._hear_of(kind, event.object, gone=event.type == "DELETED")
        return bool(self._dirty_pods or self._dirty_claims or self._dirty_volumes)

    def _hear_of(self, kind: Kind, obj: Json, *, gone: bool) -> None:
        storage, key = self._storage, key_of(obj)
        match kind.name:
            case "Node":
                _keep(storage.nodes, key.name, obj, gone=gone)
            case "StorageClass":
                _keep(storage.classes, key, obj, gone=gone)
                self._look_at_unbound()
            case "PersistentVolume":
                _keep(storage.volumes, key, obj, gone=gone)
                self._dirty_volumes[key] = None
                if obj["spec"].get("claimRef"):
                    self._look_at_claim_of(obj)
                elif not gone:
                    self._look_at_unbound()
            case "PersistentVolumeClaim":
                _keep(storage.claims, key, obj, gone=gone)
                self._dirty_claims[key] = None
                if gone:
                    self._dirty_pods.update(dict.fromkeys(storage.users.get(key, ())))
                    self._dirty_volumes.update({name: None for name, volume in storage.volumes.items() if _whose(volume) == key})
            case _:
                self._hear_pod(obj, gone=gone)

    def _look_at_unbound(self) -> None:
        self._dirty_claims.update({key: None for key, claim in self._storage.claims.items() if _unbound(claim)})

    def _look_at_claim_of(self, volume: Json) -> None:
        self._dirty_claims[_whose(volume)] = None

    def _hear_pod(self, pod: Json, *, gone: bool) -> None:
        keys = mounted(pod)
        if not keys:
            return
        uid = uid_of(pod)
        _keep(self._pods, uid, pod, gone=gone)
        self._dirty_pods[uid] = None
        for key in keys:
            users = self._storage.users.setdefault(key, {})
            _keep(users, uid, pod, gone=gone)
            if not users:
                del self._storage.users[key]
            self._dirty_claims[key] = None


def _keep(there: dict[K, Json], key: K, obj: Json, *, gone: bool) -> None:
    if gone:
        there.pop(key, None)
    else:
        there[key] = obj


def _whose(volume: Json) -> Key:
    whose = volume["spec"].get("claimRef") or {}
    return Key(whose.get("namespace", ""), whose.get("name", ""))


def _unbound(claim: Json) -> bool:
    return (claim.get("status") or {}).get("phase") != "Bound"
