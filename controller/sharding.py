"""Which scheduler has which nodes: policies over nodes, and the configuration that names them. Pure.

Source: volcano ed72c7c, pkg/controllers/sharding, policy. Differences: a configuration that cannot be used is an error and
the last good one stays; limits and exclusivity hold for all nodes together, not for batches of fifty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import yaml

from extender.api.duration import seconds
from extender.api.errors import ConfError, InvalidObject, nearest
from extender.api.yaml_text import only_document

KEY = "sharding.yaml"  # of the ConfigMap
PERIOD = 60.0
WARMUP_LABEL = "node.volcano.sh/warmup"
DEFAULT_FLAGS = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """`utilisation` is what pods ask of the node's CPU, 0 to 1; None where its capacity is not known."""

    name: str
    labels: Mapping[str, str]
    utilisation: float | None


class Policy(Protocol):
    def __init__(self, arguments: Mapping[str, Any]) -> None: ...

    def fits(self, node: NodeSeen) -> bool: ...

    def score(self, node: NodeSeen) -> float: ...

    def select(self, nodes: Sequence[NodeSeen]) -> Sequence[NodeSeen]: ...


class _Plain:
    def fits(self, node: NodeSeen) -> bool:
        return True

    def score(self, node: NodeSeen) -> float:
        return 0.0

    def select(self, nodes: Sequence[NodeSeen]) -> Sequence[NodeSeen]:
        return nodes


class AllocationRate(_Plain):
    """Nodes whose utilisation is within a range, the fuller the better: (u - min) / (max - min)."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.low, self.high = float(arguments.get("minCPUUtil", 0.0)), float(arguments.get("maxCPUUtil", 1.0))
        if not 0 <= self.low <= self.high <= 1:
            raise ConfError(f"allocation-rate: {self.low} to {self.high} is no range within 0 to 1")

    def fits(self, node: NodeSeen) -> bool:
        return node.utilisation is not None and self.low <= round(node.utilisation, 2) <= self.high

    def score(self, node: NodeSeen) -> float:
        return 1.0 if self.high == self.low else ((node.utilisation or 0.0) - self.low) / (self.high - self.low)


class Warmup(_Plain):
    """Nodes with a label come first."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.label = str(arguments.get("warmupLabel", WARMUP_LABEL))
        self.value = str(arguments.get("warmupLabelValue", "true"))

    def score(self, node: NodeSeen) -> float:
        return float(node.labels.get(self.label) == self.value)


class NodeLimit(_Plain):
    """No more than so many nodes; 0 for any number."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.least, self.most = int(arguments.get("minNodes", 0)), int(arguments.get("maxNodes", 0))
        if self.least < 0 or (self.most and self.most < self.least):
            raise ConfError(f"node-limit: {self.least} to {self.most} is no range of numbers of nodes")

    def select(self, nodes: Sequence[NodeSeen]) -> Sequence[NodeSeen]:
        return nodes[: self.most] if self.most > 0 else nodes


POLICIES: Mapping[str, type[Policy]] = {"allocation-rate": AllocationRate, "warmup": Warmup, "node-limit": NodeLimit}


@dataclass(frozen=True, slots=True)
class SchedulerShard:
    """A scheduler and its policies with their weights, in the configured order."""

    name: str
    policies: Sequence[tuple[Policy, float]]


@dataclass(frozen=True, slots=True)
class ShardingConf:
    """`on_events`: nodes that come, go or fill are a reason to assign anew, not only the end of a period."""

    schedulers: Sequence[SchedulerShard]
    period: float = PERIOD
    on_events: bool = True


@dataclass(frozen=True, slots=True)
class ShardFlags:
    """What the flags say; a ConfigMap comes before them."""

    schedulers: tuple[str, ...] = DEFAULT_FLAGS  # --scheduler-configs
    period: float = PERIOD  # --shard-sync-period
    on_events: bool = True  # --enable-node-event-trigger

    def conf(self) -> ShardingConf:
        """Raises ConfError."""
        return from_flags(self.schedulers, self.period, on_events=self.on_events)


def assign(conf: ShardingConf, nodes: Sequence[NodeSeen]) -> dict[str, list[str]]:
    """Scheduler -> its nodes, best first. Each takes from what those before it have left."""
    free, found = list(nodes), {}
    for scheduler in conf.schedulers:
        fitting = [node for node in free if all(policy.fits(node) for policy, _ in scheduler.policies)]
        chosen: Sequence[NodeSeen] = sorted(
            fitting, key=lambda node: -sum(weight * policy.score(node) for policy, weight in scheduler.policies)
        )  # fmt: skip
        for policy, _ in scheduler.policies:
            chosen = policy.select(chosen)
        found[scheduler.name] = [node.name for node in chosen]
        taken = set(found[scheduler.name])
        free = [node for node in free if node.name not in taken]
    return found


def moved_enough(now: Sequence[str], wanted: Sequence[str]) -> bool:
    """Is a shard worth writing: another number of nodes, or a tenth of them new?"""
    new = len(set(wanted) - set(now))
    return len(now) != len(wanted) or new >= max(1, len(wanted) // 10)


def from_flags(flags: Sequence[str] = DEFAULT_FLAGS, period: float = PERIOD, *, on_events: bool = True) -> ShardingConf:
    """--scheduler-configs: name:type:min_util:max_util:prefer_warmup:min_nodes:max_nodes. Raises ConfError."""
    entries = []
    for flag in flags:
        words = flag.split(":")
        if len(words) != 7:
            raise ConfError(f"--scheduler-configs: '{flag}' has {len(words)} parts, not 7")
        names = ("name", "type", "cpuUtilizationMin", "cpuUtilizationMax", "preferWarmupNodes", "minNodes", "maxNodes")
        entry: dict[str, Any] = dict(zip(names, words, strict=True))
        entry["preferWarmupNodes"] = words[4] == "true"
        entries.append(entry)
    return _conf("--scheduler-configs", entries, period, on_events=on_events)


def from_yaml(text: str) -> ShardingConf:
    """The content of the ConfigMap. Raises ConfError."""
    try:
        document = only_document(text) or {}
    except yaml.YAMLError as error:
        raise ConfError(f"{KEY}: {error}") from None
    if not isinstance(document, dict):
        raise ConfError(f"{KEY}: expected a mapping")
    try:
        period = seconds(document["shardSyncPeriod"], "shardSyncPeriod") if "shardSyncPeriod" in document else PERIOD
    except InvalidObject as error:
        raise ConfError(f"{KEY}: {error}") from None
    on_events = document.get("enableNodeEventTrigger", True)
    if not isinstance(on_events, bool):
        raise ConfError(f"{KEY}: enableNodeEventTrigger: must be true or false, not {on_events!r}")
    return _conf(f"{KEY}: schedulerConfigs", document.get("schedulerConfigs") or [], period, on_events=on_events)


def _conf(source: str, entries: Sequence[Mapping[str, Any]], period: float, *, on_events: bool) -> ShardingConf:
    if not entries:
        raise ConfError(f"{source}: at least one scheduler is needed")
    if period <= 0:
        raise ConfError(f"{source}: the pause between two assignments must be more than 0, not {period:g} s")
    return ShardingConf([_scheduler(source, entry) for entry in entries], period, on_events)


def _scheduler(source: str, entry: Mapping[str, Any]) -> SchedulerShard:
    name = str(entry.get("name") or "")
    if not name:
        raise ConfError(f"{source}: a scheduler has no name")
    try:
        return SchedulerShard(name, [_policy(each) for each in _listed(entry)])
    except (ValueError, TypeError, ConfError) as error:
        raise ConfError(f"{source}: scheduler {name}: {error}") from None


def _listed(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Its policies; where it names none, those that its older fields stand for."""
    listed = list(entry.get("policies") or ())
    arguments = entry.get("arguments") or {}
    if not listed:
        low, high = entry.get("cpuUtilizationMin", 0.0), entry.get("cpuUtilizationMax", 1.0)
        rate = {"minCPUUtil": low, "maxCPUUtil": high, **arguments}
        listed.append({"name": "allocation-rate", "arguments": rate})
        if entry.get("preferWarmupNodes"):
            listed.append({"name": "warmup"})
    least, most = int(entry.get("minNodes") or 0), int(entry.get("maxNodes") or 0)
    if (least > 0 or most > 0) and all(each.get("name") != "node-limit" for each in listed):
        listed.append({"name": "node-limit", "arguments": {"minNodes": least, "maxNodes": most}})
    return listed


def _policy(listed: Mapping[str, Any]) -> tuple[Policy, float]:
    name, weight = str(listed.get("name") or ""), float(listed.get("weight") or 1)
    if name not in POLICIES:
        raise ConfError(f"there is no policy '{name}'{nearest(name, POLICIES)}")
    if weight < 0:
        raise ConfError(f"policy {name}: the weight {weight} is below zero")
    return POLICIES[name](listed.get("arguments") or {}), weight
