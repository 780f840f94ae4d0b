"""PodTopologySpread: constraints on how evenly pods of a kind are spread over domains.

Filter (DoNotSchedule): count(domain) + self - least count > maxSkew refuses; the least is 0 with fewer domains than
minDomains. Only nodes that have all keys and pass the inclusion policies count.
Points (ScheduleAnyway): round(sum over constraints of count * ln(domains + 2) + maxSkew - 1); the fewer the better. A pod
without constraints is spread over hostnames and zones by the selectors of its services and its owner.
Source: k8s.io/kubernetes v1.36.1, podtopologyspread/{common,filtering,scoring}.go, helper/spread.go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from extender.api.labels import HOSTNAME, ZONE
from extender.api.pod import TopologySpreadConstraint
from extender.api.selectors import LabelSelector, Requirement
from extender.core import status as st
from extender.core.axis import BoolN, FloatN, IntN
from extender.core.kube import node_affinity, taints
from extender.core.kube.neighbours import Codes, DomainCounts, Neighbours, Weights
from extender.core.plugin import TaskClass

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_REASON = f"{REASON} (missing required label)"
_HARD, _SOFT = "DoNotSchedule", "ScheduleAnyway"
_ONE = np.array([0, 1], dtype=np.int64)
_DEFAULTS = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=_SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE, when_unsatisfiable=_SOFT, max_skew=5),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Hard:
    max_skew: int
    itself: int  # 1 where the class' pods count in the constraint
    domains: Codes
    counts: DomainCounts
    known: Codes  # domains that some node which counts is in
    too_few_domains: bool

    def skewed(self) -> BoolN:
        """(N,) nodes where one more would be too many; nodes without the key hold rubbish."""
        counts = self.counts.counts
        least = 0 if self.too_few_domains else int(counts[self.known].min())
        return self.counts.at(self.domains) > self.max_skew + least - self.itself


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What the filter holds for one class while a session runs."""

    constraints: tuple[_Hard, ...]

    def refused(self) -> tuple[BoolN, BoolN]:
        """(N,) nodes that lack a key (evictions cannot cure that), (N,) nodes that are too full."""
        missing = np.zeros(len(self.constraints[0].domains), dtype=bool)
        skewed = missing.copy()
        for constraint in self.constraints:
            missing |= ~skewed & (constraint.domains == 0)
            skewed |= ~missing & constraint.skewed()
        return missing, skewed


def rules(cls: TaskClass, neighbours: Neighbours) -> Rules | None:
    """The filter of a class; None where it has no DoNotSchedule constraint."""
    wanted = [c for c in cls.spec.topology_spread_constraints or () if c.when_unsatisfiable == _HARD]
    if not wanted:
        return None
    counted = _Counted(cls, neighbours, [c.topology_key for c in wanted])
    return Rules(tuple(_hard(c, cls, counted) for c in wanted))


def _hard(constraint: TopologySpreadConstraint, cls: TaskClass, counted: _Counted) -> _Hard:
    selector = _selector(constraint, cls.labels)
    where = counted.where(constraint)
    known = np.unique(where[counted.neighbours.nodes.exists])
    known = known[known != 0]
    return _Hard(
        max_skew=constraint.max_skew,
        itself=int(selector is not None and selector.matches(cls.labels)),
        domains=counted.neighbours.domains(constraint.topology_key),
        counts=counted.pods(selector, where),
        known=known,
        too_few_domains=len(known) < (1 if constraint.min_domains is None else constraint.min_domains) or not len(known),
    )


class _Counted:
    """Which nodes and pods count for the constraints of one class."""

    def __init__(self, cls: TaskClass, neighbours: Neighbours, required_keys: list[str]) -> None:
        self.cls, self.neighbours = cls, neighbours
        self.has_all = np.ones(len(neighbours.nodes), dtype=bool)
        for key in required_keys:
            self.has_all &= neighbours.domains(key) != 0

    def where(self, constraint: TopologySpreadConstraint) -> Codes:
        """(N,) domain of the nodes that count."""
        return np.where(self.fits(constraint), self.neighbours.domains(constraint.topology_key), 0)

    def fits(self, constraint: TopologySpreadConstraint) -> BoolN:
        """(N,) nodes with all keys that pass the inclusion policies."""
        counts = self.has_all
        if constraint.node_affinity_policy == "Honor":
            matching = node_affinity.matches(self.cls.spec, self.neighbours.nodes)
            if matching is not None:
                counts = counts & matching
        if constraint.node_taints_policy == "Honor":
            untolerated = taints.refused(self.cls.spec, self.neighbours.nodes)
            if untolerated is not None:
                counts = counts & ~untolerated
        return counts

    def pods(self, selector: LabelSelector | None, where: Codes) -> DomainCounts:
        """Pods of the class' namespace that the selector matches, terminating ones left out; an empty selector counts none."""
        of = self.neighbours
        if selector is not None and selector.empty:
            selector = None
        mask = of.selected(selector, frozenset((self.cls.namespace,)))
        return DomainCounts(of, where, [Weights(mask, _ONE)], leave_out=of.tasks.status == st.RELEASING)


def _selector(constraint: TopologySpreadConstraint, labels: Mapping[str, str]) -> LabelSelector | None:
    """The constraint's selector and the pod's own values of matchLabelKeys."""
    selector = constraint.label_selector
    own = [Requirement(key, "In", (labels[key],)) for key in constraint.match_label_keys or () if key in labels]
    if selector is None or not own:
        return selector
    return LabelSelector(selector.match_labels, (*(selector.match_expressions or ()), *own))


# --- points ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Soft:
    max_skew: int
    by_host: bool  # every node for itself
    domains: Codes
    keyless: BoolN  # (N,) nodes without the key
    counts: DomainCounts

    def points(self, scored: BoolN) -> FloatN:
        """(N,) -> (N,): what the constraint adds to the raw points of each node."""
        if self.by_host:
            size, counts = int(scored.sum()), self.counts.counts[1:]
        else:
            seen = np.zeros(int(self.domains.max(initial=0)) + 1, dtype=bool)
            seen[self.domains[scored]] = True
            size, counts = int(seen.sum()), self.counts.at(self.domains)
        points: FloatN = counts * np.log(float(size + 2)) + float(self.max_skew - 1)
        points[self.keyless] = 0.0
        return points


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """What the scorer holds for one class while a session runs."""

    constraints: tuple[_Soft, ...]
    ignored: BoolN  # (N,) nodes that lack a key; they get no points

    def raw(self, feasible: BoolN) -> IntN:
        """(N,) -> (N,): raw points; the fewer the better."""
        scored = feasible & ~self.ignored
        total = np.zeros(len(feasible))
        for constraint in self.constraints:
            total += constraint.points(scored)
        whole = np.floor(total)
        return (whole + (total - whole >= 0.5)).astype(np.int64)


def preferences(
    cls: TaskClass, neighbours: Neighbours, default_selector: Callable[[], LabelSelector | None]
) -> Preferences | None:
    """The scorer of a class; None where nothing spreads it. `default_selector` is asked where it has no constraints."""
    explicit = cls.spec.topology_spread_constraints
    nodes = neighbours.nodes
    if explicit:
        wanted = [(c, _selector(c, cls.labels)) for c in explicit if c.when_unsatisfiable == _SOFT]
    else:
        selector = default_selector()
        wanted = [(c, selector) for c in _DEFAULTS] if selector is not None else []
    if not wanted:
        return None
    counted = _Counted(cls, neighbours, [c.topology_key for c, _ in wanted] if explicit else [])
    ignored = nodes.exists & ~counted.has_all
    soft = []
    for constraint, selector in wanted:
        by_host = constraint.topology_key == HOSTNAME
        domains = neighbours.domains(constraint.topology_key)
        keyless = domains == 0
        where = neighbours.each_node() if by_host else counted.where(constraint)
        unnamed = nodes.labels.code(constraint.topology_key, "")
        if not explicit and not by_host and unnamed > 0:  # nodes without the key share the domain of those that have it empty
            domains, where = np.where(keyless, unnamed, domains), np.where(keyless & counted.fits(constraint), unnamed, where)
        soft.append(_Soft(constraint.max_skew, by_host, domains, keyless, counted.pods(selector, where)))
    return Preferences(tuple(soft), ignored)
