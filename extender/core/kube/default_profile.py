"""What kube-scheduler's default profile says about one pod: which filter refuses each node, and every scorer's points.

Plugins in the profile's order; the first that refuses a node speaks for it. Left out: plugins for claims of devices and for
declared features, which refuse nothing to a pod without them. Source: k8s.io/kubernetes v1.36.1,
pkg/scheduler/apis/config/v1/default_plugins.go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from extender.core.axis import CPU, MEMORY, PODS, BoolN, IntN
from extender.core.kube import (
    image_locality,
    inter_pod_affinity,
    node_affinity,
    node_name,
    normalise,
    ports,
    resources,
    taints,
    topology_spread,
    unschedulable,
)
from extender.core.kube.default_spread import DefaultSelectors
from extender.core.kube.neighbours import Neighbours
from extender.core.kube.pod_terms import Lookers
from extender.core.plugin import TaskClass
from extender.core.snapshot import Snapshot
from extender.core.volumes.filter import VolumeFilter
from extender.core.volumes.needed import BINDING, RESTRICTIONS, ZONE

WEIGHTS = {
    "TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "PodTopologySpread": 2, "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1,
}  # fmt: skip
UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
_HARD_AFFINITY = 1  # what others' required affinity is worth


class Refusal(NamedTuple):
    """What one plugin says of the nodes in `mask` (N,)."""

    plugin: str
    code: str
    reason: str
    mask: BoolN


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """`passed` (N,); `refusals` of nodes by row: plugin, code, reasons; `points` by scorer (N,), meant for passed nodes."""

    passed: BoolN
    refusals: dict[int, tuple[str, str, list[str]]]
    points: dict[str, IntN] = field(default_factory=dict)

    def total(self) -> IntN:
        """(N,) points times weights."""
        total: IntN = np.zeros(len(self.passed), dtype=np.int64)
        for name, points in self.points.items():
            total += WEIGHTS[name] * points
        return total


def judge(snapshot: Snapshot, cls: TaskClass, wanted_node: str = "") -> Judgement:
    """`wanted_node`: the pod's spec.nodeName, which a class does not hold."""
    pods = Neighbours(snapshot)
    lookers = Lookers(pods)
    open_: BoolN = snapshot.nodes.exists.copy()
    refusals: dict[int, tuple[str, str, list[str]]] = {}
    speaker = ""
    for refusal in _filters(snapshot, cls, wanted_node, pods, lookers):
        if refusal.plugin != speaker:
            speaker, still_open = refusal.plugin, open_.copy()
        for row in np.flatnonzero(refusal.mask & still_open).tolist():
            if row in refusals:
                _, code, reasons = refusals[row]
                code = refusal.code if refusal.code == UNRESOLVABLE else code
                refusals[row] = (refusal.plugin, code, [*reasons, refusal.reason])
            else:
                refusals[row] = (refusal.plugin, refusal.code, [refusal.reason] if refusal.reason else [])
        open_ &= ~refusal.mask
    points = dict(_scorers(snapshot, cls, open_, pods, lookers)) if open_.any() else {}
    return Judgement(open_, refusals, points)


# --- filters --------------------------------------------------------------------------------------------------------------


def _filters(snapshot: Snapshot, cls: TaskClass, wanted_node: str, pods: Neighbours, lookers: Lookers) -> Iterator[Refusal]:
    nodes, spec = snapshot.nodes, cls.spec
    volumes = VolumeFilter(snapshot, pods)
    yield from _of_the_pod(snapshot, cls, volumes)
    if volumes.problem(cls) is not None:
        return
    for plugin, reason, mask in (
        ("NodeUnschedulable", unschedulable.REASON, unschedulable.refused(spec, nodes)),
        ("NodeName", node_name.REASON, node_name.refused(wanted_node, nodes)),
        ("TaintToleration", taints.REASON, taints.refused(spec, nodes)),
        ("NodeAffinity", node_affinity.REASON, node_affinity.refused(spec, nodes)),
    ):
        if mask is not None:
            yield Refusal(plugin, UNRESOLVABLE, reason, mask)
    wanted = ports.host_ports(spec)
    if wanted:
        held = ports.holders(wanted, ports.by_shape(snapshot.shapes), pods)
        yield Refusal("NodePorts", UNSCHEDULABLE, ports.REASON, held.counts[1:] > 0)
    yield from _short(snapshot, cls)
    yield from _by_volumes(snapshot, cls, volumes)
    spread = topology_spread.rules(cls, pods)
    if spread is not None:
        missing, skewed = spread.refused()
        yield Refusal("PodTopologySpread", UNRESOLVABLE, topology_spread.MISSING_REASON, missing)
        yield Refusal("PodTopologySpread", UNSCHEDULABLE, topology_spread.REASON, skewed)
    affinity = inter_pod_affinity.rules(cls, pods, lookers)
    if affinity is not None:
        for reason, unresolvable, mask in affinity.refused():
            yield Refusal("InterPodAffinity", UNRESOLVABLE if unresolvable else UNSCHEDULABLE, reason, mask)


def _of_the_pod(snapshot: Snapshot, cls: TaskClass, volumes: VolumeFilter) -> Iterator[Refusal]:
    """What is refused before any single node is looked at (PreFilter)."""
    nodes = snapshot.nodes
    everything = np.ones(len(nodes), dtype=bool)
    named, problem = node_affinity.names(cls.spec), volumes.problem(cls)
    if named is not None and not named:
        yield Refusal("NodeAffinity", UNRESOLVABLE, node_affinity.CONFLICT, everything)
    if problem is not None:
        yield Refusal(problem.plugin, UNRESOLVABLE, problem.text, everything)
    if named is not None:
        others = everything.copy()
        others[[nodes.rows[name] for name in named if name in nodes.rows]] = False
        yield Refusal("PreFilter", UNSCHEDULABLE, "", others)


def _by_volumes(snapshot: Snapshot, cls: TaskClass, volumes: VolumeFilter) -> Iterator[Refusal]:
    lasting = volumes.lasting(cls)
    passing = list(volumes.passing(cls)) if volumes.changes(cls) else []
    rows = np.arange(len(snapshot.nodes))
    crowded = volumes.crowded(cls, rows, np.zeros_like(rows))
    in_order = [
        *(each for each in passing if each.plugin == RESTRICTIONS),
        *([crowded] if crowded is not None else []),
        *(each for each in (*lasting, *passing) if each.plugin == BINDING),
        *(each for each in lasting if each.plugin == ZONE),
    ]
    for each in in_order:
        yield Refusal(each.plugin, UNRESOLVABLE if each.unresolvable else UNSCHEDULABLE, each.reason, each.mask)


def _short(snapshot: Snapshot, cls: TaskClass) -> Iterator[Refusal]:
    """NodeResourcesFit: every amount that is short; evictions do not help where even the empty node is too small."""
    nodes, names = snapshot.nodes, snapshot.axis.names
    first = {PODS: -1, CPU: 0, MEMORY: 1}
    for column in sorted(np.flatnonzero(cls.request).tolist(), key=lambda c: first.get(c, 2 + (names[c] != "ephemeral-storage"))):
        asked, room = cls.request[column], nodes.allocatable[:, column]
        short = asked > room - nodes.used[:, column]
        if not short.any():
            continue
        if column == PODS:
            yield Refusal("NodeResourcesFit", UNSCHEDULABLE, "Too many pods", short)
            continue
        reason = f"Insufficient {names[column]}"
        never = asked > room
        yield Refusal("NodeResourcesFit", UNRESOLVABLE, reason, short & never)
        yield Refusal("NodeResourcesFit", UNSCHEDULABLE, reason, short & ~never)


# --- scorers --------------------------------------------------------------------------------------------------------------


def _scorers(
    snapshot: Snapshot, cls: TaskClass, feasible: BoolN, pods: Neighbours, lookers: Lookers
) -> Iterator[tuple[str, IntN]]:
    nodes, spec = snapshot.nodes, cls.spec
    number = len(nodes)
    tainted = taints.prefer_not(spec, nodes)
    if tainted is None:
        tainted = np.zeros(number, dtype=np.int64)
    yield "TaintToleration", normalise.by_maximum(tainted, feasible, reverse=True)
    preferred = node_affinity.preferred(spec, nodes)
    if preferred is not None:
        yield "NodeAffinity", normalise.by_maximum(preferred, feasible)
    room = nodes.allocatable[:, CPU : MEMORY + 1]
    yield "NodeResourcesFit", resources.least_allocated(nodes.nonzero + resources.scored_request(cls), room)
    spread = topology_spread.preferences(cls, pods, lambda: DefaultSelectors(snapshot).selector(cls.pod))
    if spread is not None:
        yield "PodTopologySpread", normalise.fewer_is_better(spread.raw(feasible), feasible, spread.ignored)
    affinity = inter_pod_affinity.preferences(cls, pods, lookers, _HARD_AFFINITY)
    raw = affinity.raw() if affinity is not None else None
    if raw is not None:
        yield "InterPodAffinity", normalise.by_range(raw, feasible)
    if cls.request[CPU : MEMORY + 1].any():
        used, asked = nodes.used[:, CPU : MEMORY + 1], cls.request[CPU : MEMORY + 1]
        yield "NodeResourcesBalancedAllocation", resources.balanced_allocation(used, asked, room)
    images = image_locality.points(spec, nodes)
    yield "ImageLocality", images if images is not None else np.zeros(number, dtype=np.int64)
