"""Runs the workload controllers on a cluster: what changed says whom to look at again."""

from __future__ import annotations

from typing import NamedTuple

from extender.api.errors import NotFound
from extender.api.meta import (
    BATCH_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    NODE,
    POD,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    STATEFUL_SET,
    Json,
    Key,
    Kind,
    controller_of,
    key_of,
    uid_of,
)
from extender.api.operations import Operation
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.hearing import Hearing
from extender.cluster.port import Cluster, WatchEvent
from extender.cluster.workloads.batch import batch_job
from extender.cluster.workloads.claims import ClaimController
from extender.cluster.workloads.daemon import daemon_set
from extender.cluster.workloads.nodes import conditions, tainted_by_condition
from extender.cluster.workloads.replicas import deployment, replica_set
from extender.cluster.workloads.stateful import stateful_set
from extender.cluster.workloads.storage import StorageController

_OWNERS = (DEPLOYMENT, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, DAEMON_SET, BATCH_JOB)
_OWNED = (REPLICA_SET, POD)


class _Ref(NamedTuple):
    kind: Kind
    key: Key


class Workloads:
    """`reconcile` looks at what changed since it last did, until nothing is left to do."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._claims = ClaimController(cluster, clock)
        self._storage = StorageController(cluster, clock)
        self._heard = Hearing(cluster, (NODE, *_OWNERS, POD), self._forget)
        self._owned: dict[str, dict[_Ref, Json]] = {}  # uid of the controller -> what it owns
        self._owner_of: dict[str, _Ref] = {}  # uid -> controller
        self._nodes: dict[str, Json] = {}
        self._dirty: dict[_Ref, None] = {}
        self._failed: dict[_Ref, None] = {}  # something could not be written; tried again at the next call

    def reconcile(self) -> int:
        """The number of changes made."""
        changes = 0
        self._dirty.update(self._failed)
        self._failed.clear()
        self._hear()
        while self._dirty:
            ref = next(iter(self._dirty))
            del self._dirty[ref]
            changes += self._look_at(ref)
            self._hear()
        return changes + self._claims.reconcile() + self._storage.reconcile()

    def _look_at(self, ref: _Ref) -> int:
        try:
            obj = self._cluster.get(ref.kind, ref.key)
        except NotFound:
            return 0
        report = apply(self._cluster, self._decide(ref.kind, obj), clock=self._clock)
        if report.failures:
            self._failed[ref] = None
        return report.done

    def _decide(self, kind: Kind, obj: Json) -> list[Operation]:
        owned = list(self._owned.get(uid_of(obj), {}).values())
        pods = [each for each in owned if each["kind"] == "Pod"]
        match kind.name:
            case "Deployment":
                return deployment(obj, [each for each in owned if each["kind"] == "ReplicaSet"], self._clock.now())
            case "StatefulSet":
                return stateful_set(obj, pods)
            case "DaemonSet":
                return daemon_set(obj, pods, [self._nodes[name] for name in sorted(self._nodes)])
            case "Job":
                return batch_job(obj, pods, self._clock.now())
            case "Node":
                return tainted_by_condition(obj)
        return replica_set(obj, pods, kind)

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _hear(self) -> None:
        for kind, event in self._heard.events():
            self._hear_of(kind, event)

    def _forget(self) -> None:
        self._owned, self._owner_of, self._nodes = {}, {}, {}

    def _hear_of(self, kind: Kind, event: WatchEvent) -> None:
        if kind == NODE:
            self._hear_node(event)
            return
        ref = _Ref(kind, key_of(event.object))
        uid = uid_of(event.object)
        if kind in _OWNERS:
            if event.type == "DELETED":
                self._owner_of.pop(uid, None)
                self._owned.pop(uid, None)
            else:
                self._owner_of[uid] = ref
                self._dirty[ref] = None
        if kind in _OWNED:
            self._hear_owned(ref, event)

    def _hear_owned(self, ref: _Ref, event: WatchEvent) -> None:
        controller = controller_of(event.object)
        if controller is None:
            return
        owned = self._owned.setdefault(controller["uid"], {})
        if event.type == "DELETED":
            owned.pop(ref, None)
            if not owned:
                del self._owned[controller["uid"]]
        else:
            owned[ref] = event.object
        owner = self._owner_of.get(controller["uid"])
        if owner is not None:
            self._dirty[owner] = None

    def _hear_node(self, event: WatchEvent) -> None:
        """A node that says otherwise how it is; to DaemonSets one that comes, goes or may be used otherwise."""
        name = event.object["metadata"]["name"]
        before = self._nodes.pop(name, None)
        if event.type != "DELETED":
            self._nodes[name] = event.object
            if before is None or conditions(before) != conditions(event.object):
                self._dirty[_Ref(NODE, key_of(event.object))] = None
        if before is None or event.type == "DELETED" or _use(before) != _use(event.object):
            self._dirty.update({ref: None for ref in self._owner_of.values() if ref.kind == DAEMON_SET})


def _use(node: Json) -> tuple[object, object]:
    return node["metadata"].get("labels"), (node.get("spec") or {}).get("taints")
