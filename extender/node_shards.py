"""Nodes divided among schedulers by NodeShard objects (--scheduler-sharding-mode): which are ours, and saying so.

    ours        = spec.nodesDesired of our shard, but for what others still have in status.nodesInUse
    our status  = {nodesInUse: ours, nodesToAdd: desired - ours, nodesToRemove: ours - desired}

A node so changes hands only when its old owner has said that it is done with it. `hard`: no other nodes; `soft`: others where
none of ours will do (core/placement.py). Source: volcano ed72c7c, pkg/scheduler/cache/shard_coordinator.go."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from extender.api.errors import ClusterError
from extender.api.meta import NODE_SHARD, Json, Key, uid_of
from extender.api.operations import Operation, PatchStatus
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.following import Follower
from extender.cluster.logs import about
from extender.cluster.port import Cluster
from extender.core.conf import Conf, Shard

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """A NodeShard as the watch shows it."""

    uid: str
    version: str
    desired: frozenset[str]
    in_use: frozenset[str]
    status: Json

    @classmethod
    def of(cls, obj: Json) -> Seen:
        status = obj.get("status") or {}
        desired = frozenset((obj.get("spec") or {}).get("nodesDesired") or ())
        return cls(uid_of(obj), obj["metadata"]["resourceVersion"], desired, frozenset(status.get("nodesInUse") or ()), status)


class NodeShards:
    """`mode`: hard or soft; `name`: of our own shard. May raise a ClusterError, and be asked again."""

    def __init__(self, cluster: Cluster, clock: Clock, mode: str, name: str) -> None:
        self._cluster, self._clock, self._name = cluster, clock, name
        self._follower = Follower(cluster, NODE_SHARD)
        self._shards: dict[str, Seen] = {}
        self._shard = Shard(mode, frozenset())
        self._missing = False

    def into(self, conf: Conf) -> Conf:
        """The configuration with the nodes that are ours by now; the same object where nothing has changed."""
        for event in self._follower.poll():
            name = event.object["metadata"]["name"]
            if event.type == "DELETED":
                self._shards.pop(name, None)
            else:
                self._shards[name] = Seen.of(event.object)
        own = self._shards.get(self._name)
        self._say_missing(own is None)
        if own is not None:
            others = (each.in_use for name, each in self._shards.items() if name != self._name)
            ours = own.desired.difference(*others)
            if ours != self._shard.nodes:
                self._shard = replace(self._shard, nodes=ours)
            self._tell(own, ours)
        return conf if conf.shard is self._shard else replace(conf, shard=self._shard)

    def close(self) -> None:
        self._follower.close()

    def _tell(self, own: Seen, ours: frozenset[str]) -> None:
        """Before the session that uses them, and only what has changed."""
        status = {"nodesInUse": sorted(ours), "nodesToAdd": sorted(own.desired - ours), "nodesToRemove": []}
        if all(sorted(own.status.get(field) or ()) == nodes for field, nodes in status.items()):
            return
        write = PatchStatus(NODE_SHARD, Key("", self._name), {"status": status}, own.uid, own.version)
        if not apply(self._cluster, [write], clock=self._clock, on_failure=_refused).failures:
            self._shards[self._name] = replace(own, status=own.status | status)

    def _say_missing(self, missing: bool) -> None:
        if missing and not self._missing:
            log.error("our NodeShard is missing, its nodes stay what they were", extra=about(shard=self._name))
        self._missing = missing


def _refused(_: Operation, error: ClusterError) -> None:
    log.warning("the status of our NodeShard could not be written", extra=about(error=str(error)))
