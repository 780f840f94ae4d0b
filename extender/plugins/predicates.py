"""predicates -- which nodes may take a pod: kube-scheduler's filters, without the one for amounts (the actions compare those).

pods on the node, NodeUnschedulable, NodeAffinity, TaintToleration, NodePorts look at one node at a time; InterPodAffinity and
PodTopologySpread look across nodes, at pods that this session has placed, promised room or evicted, too; DynamicResources at
devices, which nodes may share, and VolumeRestrictions, NodeVolumeLimits, VolumeBinding and VolumeZone at volumes: what was given
to a pod is written before it is bound.
The rules are in core/kube, core/dra and core/volumes. Source: volcano ed72c7c, pkg/scheduler/plugins/predicates/predicates.go."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import ClassVar

from extender.api.meta import Kind
from extender.api.operations import Prior
from extender.api.pod import PodSpec
from extender.core.axis import PODS, BoolN
from extender.core.dra.filter import ClaimFilter
from extender.core.followed import DEVICES, VOLUMES
from extender.core.kube import inter_pod_affinity, node_affinity, ports, taints, topology_spread, unschedulable
from extender.core.kube.neighbours import DomainCounts, Neighbours
from extender.core.kube.pod_terms import Lookers
from extender.core.plugin import Across, Arguments, At, Change, Plugin, Refusal, TaskClass
from extender.core.reasons import TOO_MANY_PODS
from extender.core.session import Session
from extender.core.snapshot import Nodes
from extender.core.volumes.filter import Objection, VolumeFilter
from extender.core.volumes.needed import ALL

FILTER_TIMEOUT = "dynamicresources.filterTimeoutSeconds"
BIND_TIMEOUT = "volumebinding.bindTimeoutSeconds"
_TRIES_A_SECOND = 10_000  # what bounds the search for devices, so that its answer does not depend on the machine

# Filters that look at nodes only: one answer a session for all pods that say the same. Evictions cannot cure these refusals.
_STATIC: tuple[tuple[str, str, Callable[[PodSpec, Nodes], BoolN | None]], ...] = (
    ("", unschedulable.REASON, unschedulable.refused),
    ("node_affinity", node_affinity.REASON, node_affinity.refused),
    ("taints", taints.REASON, taints.refused),
)


@dataclass(frozen=True, slots=True)
class PredicatesArgs:
    node_affinity: bool = True
    ports: bool = True
    taints: bool = True
    pod_affinity: bool = True
    topology_spread: bool = True
    claims: bool = True  # devices by ResourceClaim; as the feature gate DynamicResourceAllocation, on since Kubernetes 1.34
    claim_tries: int = 10 * _TRIES_A_SECOND  # how long the search for devices on a node may go on
    volumes: frozenset[str] = ALL  # plugins of kube-scheduler for volumes that are switched on
    bind_timeout: float = 600.0  # seconds until a pod whose claims nobody binds is given up


@dataclass(slots=True, eq=False)
class _Found:
    """What was worked out for one class."""

    static: list[tuple[str, BoolN]]
    ports: DomainCounts | None
    affinity: inter_pod_affinity.Rules | None
    spread: topology_spread.Rules | None


class Predicates(Plugin[PredicatesArgs]):
    name: ClassVar[str] = "predicates"

    @classmethod
    def parse(cls, arguments: Arguments) -> PredicatesArgs:
        arguments.boolean("predicate.CacheEnable", False)  # it would save nothing: a class is judged once
        # Points for volumes count only with a feature gate of Kubernetes that is off.
        arguments.integer("volumebinding.weight", 1)
        arguments.anything("volumebinding.shape")
        return PredicatesArgs(
            node_affinity=arguments.boolean("predicate.NodeAffinityEnable", True),
            ports=arguments.boolean("predicate.NodePortsEnable", True),
            taints=arguments.boolean("predicate.TaintTolerationEnable", True),
            pod_affinity=arguments.boolean("predicate.PodAffinityEnable", True),
            topology_spread=arguments.boolean("predicate.PodTopologySpreadEnable", True),
            claims=arguments.boolean("predicate.DynamicResourceAllocationEnable", True),
            claim_tries=_TRIES_A_SECOND * _seconds(arguments, FILTER_TIMEOUT, 10),
            volumes=frozenset(plugin for plugin in ALL if arguments.boolean(f"predicate.{plugin}Enable", True)),
            bind_timeout=float(_seconds(arguments, BIND_TIMEOUT, 600)),
        )

    @classmethod
    def follows(cls, args: PredicatesArgs) -> tuple[Kind, ...]:
        return (*(DEVICES if args.claims else ()), *(VOLUMES if args.volumes else ()))

    def open(self, ssn: Session) -> None:
        self._neighbours = Neighbours(ssn.snapshot)
        self._lookers: Lookers | None = None
        self._ports: dict[int, list[ports.HostPort]] | None = None
        self._static: dict[Hashable, list[tuple[str, BoolN]]] = {}
        self._claims = ClaimFilter(ssn, self.args.claim_tries) if self.args.claims else None
        self._volumes = VolumeFilter(ssn.snapshot, self._neighbours, self.args.volumes)

    def distinguish(self, ssn: Session, task: int) -> Hashable:
        spec = ssn.shape_of(task).spec
        if spec.volumes is None and not spec.resource_claims:
            return None
        devices = self._claims.distinguish(task) if self._claims is not None else None
        volumes = self._volumes.distinguish(task)
        return devices if volumes is None else (devices, volumes)

    def pre_predicate(self, ssn: Session, cls: TaskClass) -> str | None:
        del ssn
        if self._claims is not None and (problem := self._claims.problem(cls)):
            return f"plugin DynamicResources pre-predicates failed {problem}"
        if self.args.node_affinity and node_affinity.names(cls.spec) == frozenset():
            return f"plugin NodeAffinity pre-predicates failed {node_affinity.CONFLICT}"
        unusable = self._volumes.problem(cls)
        return str(unusable) if unusable is not None else None

    def predicate(self, ssn: Session, cls: TaskClass, at: At) -> list[Refusal]:
        found = self._found(ssn, cls)
        refusals: list[Refusal] = []
        full = at.requested[:, PODS] >= at.allocatable[:, PODS]
        if full.any():
            refusals.append(Refusal(TOO_MANY_PODS, full, plugin=self.name))
        for reason, mask in found.static:
            there = mask[at.rows]
            if there.any():
                refusals.append(Refusal(reason, there, unresolvable=True, plugin=self.name))
        if found.ports is not None:
            taken = (found.ports.counts[at.rows + 1] > 0) | (at.extra > 0)
            if taken.any():
                refusals.append(Refusal(ports.REASON, taken, plugin=self.name))
        crowded = self._volumes.crowded(cls, at.rows, at.extra)
        if crowded is not None and crowded.mask.any():
            refusals.append(_refusal(crowded))
        return refusals

    def predicate_across(self, ssn: Session, cls: TaskClass) -> list[Refusal] | None:
        found = self._found(ssn, cls)
        unserved = self._claims.refusals(cls) if self._claims is not None else None
        volumes = self._volumes.changes(cls)
        if found.affinity is None and found.spread is None and unserved is None and not volumes:
            return None
        refusals: list[Refusal] = []

        def refuse(reason: str, mask: BoolN, unresolvable: bool = False) -> None:
            if mask.any():
                refusals.append(Refusal(reason, mask, unresolvable, self.name))

        if found.affinity is not None:
            for reason, unresolvable, mask in found.affinity.refused():
                refuse(reason, mask, unresolvable)
        if found.spread is not None:
            missing, skewed = found.spread.refused()
            refuse(topology_spread.MISSING_REASON, missing, True)
            refuse(topology_spread.REASON, skewed)
        if volumes:
            refusals += [_refusal(each) for each in self._volumes.passing(cls) if each.mask.any()]
        return [*refusals, *(unserved or ())]

    def batch_node_order(self, ssn: Session, cls: TaskClass, feasible: BoolN) -> Across | None:
        """Nodes that can give what a claim would rather have."""
        del ssn
        points = self._claims.points(cls, feasible) if self._claims is not None else None
        return Across(points, moves=True) if points is not None else None

    def before_bind(self, ssn: Session, task: int) -> list[Prior]:
        spec = ssn.shape_of(task).spec
        if spec.volumes is None and not spec.resource_claims:
            return []
        devices = self._claims.before_bind(task) if self._claims is not None else []
        return [*devices, *self._volumes.before_bind(task, self.args.bind_timeout)]

    def allocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self._neighbours.moves.add(change.tasks, change.nodes, 1)
        if self._claims is not None:
            self._claims.take(change)
        self._volumes.take(change)

    def deallocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self._neighbours.moves.add(change.tasks, change.nodes, -1)
        if self._claims is not None:
            self._claims.give_back(change)
        self._volumes.give_back(change)

    # --- once a class -------------------------------------------------------------------------------------------------------

    def _found(self, ssn: Session, cls: TaskClass) -> _Found:
        found: _Found | None = cls.cache.get(self.name)
        if found is None:
            found = cls.cache[self.name] = self._judge(ssn, cls)
        return found

    def _judge(self, ssn: Session, cls: TaskClass) -> _Found:
        if self._lookers is None:
            self._lookers = Lookers(self._neighbours)
        return _Found(
            [*self._static_refusals(cls.spec, ssn.nodes), *((each.reason, each.mask) for each in self._volumes.lasting(cls))],
            self._port_holders(cls) if self.args.ports else None,
            inter_pod_affinity.rules(cls, self._neighbours, self._lookers) if self.args.pod_affinity else None,
            topology_spread.rules(cls, self._neighbours) if self.args.topology_spread else None,
        )

    def _static_refusals(self, spec: PodSpec, nodes: Nodes) -> list[tuple[str, BoolN]]:
        selector = tuple(sorted((spec.node_selector or {}).items()))
        said = (spec.tolerations, selector, node_affinity.required(spec))
        known = self._static.get(said)
        if known is None:
            known = self._static[said] = [
                (reason, mask)
                for switch, reason, refused in _STATIC
                if (not switch or getattr(self.args, switch)) and (mask := refused(spec, nodes)) is not None
            ]
        return known

    def _port_holders(self, cls: TaskClass) -> DomainCounts | None:
        wanted = ports.host_ports(cls.spec)
        if not wanted:
            return None
        if self._ports is None:
            self._ports = ports.by_shape(self._neighbours.snapshot.shapes)
        return ports.holders(wanted, self._ports, self._neighbours)


def _refusal(said: Objection) -> Refusal:
    """Volumes are made and freed without any eviction: what they refuse is no reason to say never."""
    return Refusal(said.reason, said.mask, said.unresolvable, Predicates.name, for_now=said.unresolvable)


def _seconds(arguments: Arguments, key: str, default: int) -> int:
    seconds = arguments.integer(key, default)
    if seconds < 0:
        arguments.wrong(key, f"must not be negative, not {seconds}")
        return default
    return seconds
