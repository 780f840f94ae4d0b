"""nodeorder -- points for nodes: the sum of kube-scheduler's scorers, each 0..100 times its weight.

Free room, fullness, balance and images are points of one node; the others are relative to the nodes that are feasible.
The formulas are in core/kube. Source: volcano ed72c7c, pkg/scheduler/plugins/nodeorder/nodeorder.go."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from extender.api.pod import PodSpec
from extender.core.axis import CPU, MEMORY, BoolN, FloatN, IntN
from extender.core.kube import image_locality, inter_pod_affinity, node_affinity, normalise, resources, taints, topology_spread
from extender.core.kube.default_spread import DefaultSelectors
from extender.core.kube.neighbours import Neighbours
from extender.core.kube.pod_terms import Lookers
from extender.core.plugin import Across, Arguments, At, Change, Plugin, TaskClass
from extender.core.session import Session
from extender.core.snapshot import Nodes

_HARD_AFFINITY = 0  # what others' required affinity is worth; 1 in kube-scheduler's own default profile
_GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class NodeOrderArgs:
    """Weights; 0 switches a scorer off."""

    least_requested: int = 1
    most_requested: int = 0
    node_affinity: int = 2
    pod_affinity: int = 2
    balanced_resource: int = 1
    taint_toleration: int = 3
    image_locality: int = 1
    pod_topology_spread: int = 2


@dataclass(slots=True, eq=False)
class _Found:
    """What was worked out for one class; None: the scorer gives every node the same."""

    images: IntN | None
    affinity: IntN | None
    taints: IntN | None
    pods: inter_pod_affinity.Preferences | None
    spread: topology_spread.Preferences | None
    request: IntN  # (2,) cpu and memory as the scorers of free room count them
    balanced: list[int]  # columns

    @property
    def relative(self) -> bool:
        return any(part is not None for part in (self.affinity, self.taints, self.pods, self.spread))


class NodeOrder(Plugin[NodeOrderArgs]):
    name: ClassVar[str] = "nodeorder"

    @classmethod
    def parse(cls, arguments: Arguments) -> NodeOrderArgs:
        default = NodeOrderArgs()
        return NodeOrderArgs(
            least_requested=arguments.integer("leastrequested.weight", default.least_requested),
            most_requested=arguments.integer("mostrequested.weight", default.most_requested),
            node_affinity=arguments.integer("nodeaffinity.weight", default.node_affinity),
            pod_affinity=arguments.integer("podaffinity.weight", default.pod_affinity),
            balanced_resource=arguments.integer("balancedresource.weight", default.balanced_resource),
            taint_toleration=arguments.integer("tainttoleration.weight", default.taint_toleration),
            image_locality=arguments.integer("imagelocality.weight", default.image_locality),
            pod_topology_spread=arguments.integer("podtopologyspread.weight", default.pod_topology_spread),
        )

    def open(self, ssn: Session) -> None:
        self._neighbours = Neighbours(ssn.snapshot)
        self._lookers: Lookers | None = None
        self._defaults = DefaultSelectors(ssn.snapshot)
        self._known: dict[tuple[str, Hashable], IntN | None] = {}

    def distinguish(self, ssn: Session, task: int) -> Hashable:
        """Pods of different owners are spread from different pods."""
        if not self.args.pod_topology_spread or not self._defaults.any_owners:
            return None
        pod = ssn.tasks.pod[task]
        return self._defaults.owner(pod) if pod is not None else None

    def node_order(self, ssn: Session, cls: TaskClass, at: At) -> FloatN | None:
        args, found = self.args, self._found(ssn, cls)
        total: IntN = np.zeros(len(at.rows), dtype=np.int64)
        if args.least_requested or args.most_requested:
            requested, room = at.nonzero + found.request, at.allocatable[:, CPU : MEMORY + 1]
            if args.least_requested:
                total += args.least_requested * resources.least_allocated(requested, room)
            if args.most_requested:
                total += args.most_requested * resources.most_allocated(requested, room)
        if args.balanced_resource and found.balanced:
            columns = found.balanced
            before, room = at.requested[:, columns], at.allocatable[:, columns]
            total += args.balanced_resource * resources.balanced_allocation(before, cls.request[columns], room)
        if found.images is not None:
            total += args.image_locality * found.images[at.rows]
        return total.astype(np.float64)

    def batch_node_order(self, ssn: Session, cls: TaskClass, feasible: BoolN) -> Across | None:
        args, found = self.args, self._found(ssn, cls)
        if not found.relative:
            return None
        total: IntN = np.zeros(len(feasible), dtype=np.int64)
        if found.affinity is not None:
            total += args.node_affinity * normalise.by_maximum(found.affinity, feasible)
        if found.taints is not None:
            total += args.taint_toleration * normalise.by_maximum(found.taints, feasible, reverse=True)
        if found.pods is not None and (raw := found.pods.raw()) is not None:
            total += args.pod_affinity * normalise.by_range(raw, feasible)
        if found.spread is not None:
            spread = found.spread
            total += args.pod_topology_spread * normalise.fewer_is_better(spread.raw(feasible), feasible, spread.ignored)
        return Across(total.astype(np.float64), moves=found.pods is not None or found.spread is not None)

    def allocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self._neighbours.moves.add(change.tasks, change.nodes, 1)

    def deallocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self._neighbours.moves.add(change.tasks, change.nodes, -1)

    # --- once a class -------------------------------------------------------------------------------------------------------

    def _found(self, ssn: Session, cls: TaskClass) -> _Found:
        found: _Found | None = cls.cache.get(self.name)
        if found is None:
            found = cls.cache[self.name] = self._work_out(ssn, cls)
        return found

    def _work_out(self, ssn: Session, cls: TaskClass) -> _Found:
        args, spec, nodes = self.args, cls.spec, ssn.nodes
        pods = spread = None
        if args.pod_affinity:
            if self._lookers is None:
                self._lookers = Lookers(self._neighbours)
            pods = inter_pod_affinity.preferences(cls, self._neighbours, self._lookers, _HARD_AFFINITY)
        if args.pod_topology_spread:
            spread = topology_spread.preferences(cls, self._neighbours, lambda: self._defaults.selector(cls.pod))
        return _Found(
            images=self._once(args.image_locality, image_locality.points, spec, nodes, image_locality.images(spec)),
            affinity=self._once(args.node_affinity, node_affinity.preferred, spec, nodes, node_affinity.preferred_terms(spec)),
            taints=self._once(args.taint_toleration, taints.prefer_not, spec, nodes, spec.tolerations),
            pods=pods,
            spread=spread,
            request=resources.scored_request(cls),
            balanced=_balanced_columns(ssn, cls),
        )

    def _once(
        self, weight: int, points: Callable[[PodSpec, Nodes], IntN | None], spec: PodSpec, nodes: Nodes, said: Hashable
    ) -> IntN | None:
        """Points that depend on nodes and on what the pod said only: worked out once a session for all that say the same."""
        if not weight:
            return None
        key = (points.__module__, said)
        if key not in self._known:
            self._known[key] = points(spec, nodes)
        return self._known[key]


def _balanced_columns(ssn: Session, cls: TaskClass) -> list[int]:
    """cpu, memory and, where the class asks for them, GPUs; empty where it asks for none of these."""
    gpu = ssn.axis.column.get(_GPU)
    columns = [CPU, MEMORY, *([gpu] if gpu is not None and gpu < len(cls.request) and cls.request[gpu] else [])]
    return columns if cls.request[columns].any() else []
