"""The controller of NodeShards: which scheduler has which nodes (sharding.py decides, this one knows how full they are).

Source: volcano ed72c7c, pkg/controllers/sharding. Differences: how full a node is is kept pod by pod, never counted anew; what
is to be added and removed is really written, to the status. Off by default."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.reconciler import Decision, Lookup, PlainController, Settings, Stage
from controller.sharding import KEY, NodeSeen, ShardingConf, assign, from_yaml, moved_enough
from controller.store import Change
from extender.api import quantity
from extender.api.errors import ConfError
from extender.api.meta import (
    CONFIG_MAP,
    NODE,
    NODE_SHARD,
    POD,
    Json,
    Key,
    Kind,
    Time,
    annotations_of,
    format_time,
    labels_of,
    uid_of,
)
from extender.api.operations import Create, Delete, Operation, Patch, PatchStatus
from extender.api.pod import FAILED, SUCCEEDED

MIRROR = "kubernetes.io/config.mirror"  # annotation of the kubelet's own pods; k8s.io/api core/v1
SOON = 0.2  # seconds after a node came, went or filled
MUCH = 0.5  # of a node's CPU

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reassign:
    """Work out all shards."""


class NodeUse:
    """What the pods of each node ask of its CPU, in nano-units, kept by each event."""

    def __init__(self) -> None:
        self._pods: dict[Key, tuple[str, int]] = {}
        self._asked: dict[str, int] = {}

    def look_at(self, key: Key, pod: Json | None) -> str:
        """The node that it was or is on, "" for none."""
        node, asked = self._pods.pop(key, ("", 0))
        if node:
            self._asked[node] -= asked
        place = pod["spec"].get("nodeName") or "" if pod is not None and _counts(pod) else ""
        if pod is not None and place:
            amount = _cpu(pod)
            self._pods[key] = (place, amount)
            self._asked[place] = self._asked.get(place, 0) + amount
        return place or node

    def of(self, node: Json) -> float | None:
        capacity = ((node.get("status") or {}).get("capacity") or {}).get("cpu")
        total = quantity.nanos(capacity) if capacity is not None else 0
        return min(self._asked.get(node["metadata"]["name"], 0) / total, 1.0) if total else None


def _counts(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") not in (SUCCEEDED, FAILED) and MIRROR not in annotations_of(pod)


def _cpu(pod: Json) -> int:
    asked = ((each.get("resources") or {}).get("requests") or {} for each in pod["spec"].get("containers") or ())
    return sum(quantity.nanos(requests["cpu"]) for requests in asked if "cpu" in requests)


def reconcile(conf: ShardingConf, nodes: Sequence[NodeSeen], shards: Mapping[str, Json], now: Time) -> Decision:
    """Make, change and delete shards; a change too small to matter is not written."""
    operations: list[Operation] = []
    told: list[Operation] = []
    wanted = assign(conf, nodes)
    for name, desired in wanted.items():
        shard = shards.get(name)
        if shard is None:
            made = {"apiVersion": NODE_SHARD.api_version, "kind": NODE_SHARD.name, "metadata": {"name": name}}
            operations.append(Create(NODE_SHARD, {**made, "spec": {"nodesDesired": desired}}))
        elif moved_enough(shard["spec"].get("nodesDesired") or (), desired):
            key = Key("", name)
            operations.append(Patch(NODE_SHARD, key, {"spec": {"nodesDesired": desired}}, uid=uid_of(shard)))
            told.append(PatchStatus(NODE_SHARD, key, {"status": _status(shard, desired, now)}, uid=uid_of(shard)))
    gone = [Delete(NODE_SHARD, Key("", name), uid=uid_of(shard)) for name, shard in shards.items() if name not in wanted]
    return Decision((Stage([*operations, *gone]), Stage(told)), later=((Reassign(), now + conf.period),))


def _status(shard: Json, desired: Sequence[str], now: Time) -> Json:
    """What its scheduler has still to take up, and to give up."""
    used = (shard.get("status") or {}).get("nodesInUse") or ()
    return {
        "nodesToAdd": sorted(set(desired) - set(used)),
        "nodesToRemove": sorted(set(used) - set(desired)),
        "lastUpdateTime": format_time(now),
    }


class ShardingController(PlainController):
    name = "sharding-controller"
    kinds: Sequence[Kind] = (NODE, POD, NODE_SHARD, CONFIG_MAP)

    def start(self, lookup: Lookup, settings: Settings) -> None:
        self._store = lookup.store
        self._configuration = settings.sharding
        self._conf = settings.shard_flags.conf()
        self._use = NodeUse()
        self._began = False  # the first assignment does not wait for the end of a period
        self._seen: dict[str, float] = {}  # utilisation when the shards were last worked out

    def only(self, kind: Kind) -> Key | None:
        return self._configuration if kind == CONFIG_MAP else None

    def observe(self, change: Change, now: Time) -> Iterable[Hashable | tuple[Hashable, Time]]:
        if change.kind == POD:
            node = self._use.look_at(change.key, change.new)
            if node and self._listens() and self._filled(node):
                yield Reassign(), now + SOON
        elif change.kind == NODE:
            if self._listens() and (change.old is None or change.new is None or labels_of(change.old) != labels_of(change.new)):
                yield Reassign(), now + SOON
        elif change.kind == CONFIG_MAP:
            if change.key == self._configuration:
                self._configure(change.new)
                yield Reassign()
        elif change.old is None or change.new is None:
            yield Reassign()

    def _listens(self) -> bool:
        return self._conf.on_events or not self._began

    def _configure(self, config_map: Json | None) -> None:
        """Live; what cannot be used leaves the last good configuration in force, and so does its deletion."""
        text = ((config_map or {}).get("data") or {}).get(KEY)
        if text is None:
            return
        try:
            self._conf = from_yaml(text)
        except ConfError as error:
            log.warning("%s; the configuration before stays in force", error)

    def _filled(self, name: str) -> bool:
        node = self._store.get(NODE, Key("", name))
        use = self._use.of(node) if node is not None else None
        return use is not None and abs(use - self._seen.get(name, use)) > MUCH

    def reconcile(self, request: Hashable, now: Time) -> Decision:
        self._began = True
        stored = self._store.all(NODE)
        nodes = [NodeSeen(key.name, labels_of(stored[key]), self._use.of(stored[key])) for key in sorted(stored)]
        self._seen = {node.name: node.utilisation for node in nodes if node.utilisation is not None}
        shards = {key.name: shard for key, shard in self._store.all(NODE_SHARD).items()}
        return reconcile(self._conf, nodes, shards, now)
