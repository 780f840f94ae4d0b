"""InterPodAffinity: required and preferred terms of the pod to place, and those of others that look at it.

Required: every term's domain must hold a pod that matches all terms (or nobody matches anywhere, and the pod matches its
own terms); no domain of an anti-affinity term may hold a matching pod; nor a pod whose own anti-affinity looks at this one.
Points: weights of terms that match, in both directions, summed over the node's domains.
Source: k8s.io/kubernetes v1.36.1, interpodaffinity/{filtering,scoring}.go."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from extender.core.axis import BoolN, IntN
from extender.core.kube.neighbours import Codes, DomainCounts, Neighbours, Weights
from extender.core.kube.pod_terms import Kind, Lookers, Term, terms
from extender.core.plugin import TaskClass

AFFINITY_REASON = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY_REASON = "node(s) didn't match pod anti-affinity rules"
EXISTING_REASON = "node(s) didn't satisfy existing pods anti-affinity rules"
_ONE = np.array([0, 1], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Topology:
    """Pods counted over the domains of one topology key."""

    domains: Codes
    counts: DomainCounts

    def raw(self) -> IntN:
        return self.counts.at(self.domains)


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What the filter holds for one class while a session runs."""

    affinity: tuple[_Topology, ...]
    anti_affinity: tuple[_Topology, ...]
    existing: tuple[_Topology, ...]
    matches_itself: bool

    def refused(self) -> list[tuple[str, bool, BoolN]]:
        """Reason, whether evictions cannot cure it, and (N,) nodes, for each rule; a node is in the first that it breaks."""
        found: list[tuple[str, bool, BoolN]] = []
        broken: BoolN | None = None
        for reason, unresolvable, mask in (
            (AFFINITY_REASON, True, self._lonely()),
            (ANTI_AFFINITY_REASON, False, _occupied(self.anti_affinity)),
            (EXISTING_REASON, False, _occupied(self.existing)),
        ):
            if mask is not None:
                found.append((reason, unresolvable, mask if broken is None else mask & ~broken))
                broken = mask if broken is None else broken | mask
        return found

    def _lonely(self) -> BoolN | None:
        """(N,) nodes without a matching pod in every term's domain."""
        if not self.affinity:
            return None
        counts = [topology.counts.entries for topology in self.affinity]
        first_of_its_kind = self.matches_itself and not any(counts)
        met = np.ones(len(self.affinity[0].domains), dtype=bool)
        for topology in self.affinity:
            met &= (topology.domains != 0) if first_of_its_kind else topology.raw() > 0
        return ~met


def _occupied(topologies: tuple[_Topology, ...]) -> BoolN | None:
    if not topologies:
        return None
    occupied = topologies[0].raw() > 0
    for topology in topologies[1:]:
        occupied |= topology.raw() > 0
    return occupied


def rules(cls: TaskClass, neighbours: Neighbours, lookers: Lookers) -> Rules | None:
    """The filter of a class; None where neither it nor anyone else has a required term that concerns it."""
    own = terms(cls.shape, cls.namespace) if cls.shape.own_affinity else []
    affinity = [term for term in own if term.kind is Kind.AFFINITY]
    anti = [term for term in own if term.kind is Kind.ANTI_AFFINITY]
    against: dict[str, dict[int, int]] = defaultdict(dict)
    for looker in lookers.at(cls):
        if looker.term.kind is Kind.ANTI_AFFINITY:
            against[looker.term.topology_key][looker.group] = 1
    if not affinity and not anti and not against:
        return None
    return Rules(
        affinity=_affinity(affinity, neighbours),
        anti_affinity=tuple(_topology(neighbours, key, some) for key, some in _by_key(anti, neighbours).items()),
        existing=tuple(_topology(neighbours, key, [lookers.weights(groups)]) for key, groups in against.items()),
        matches_itself=bool(affinity) and all(_looks_at(term, cls, neighbours) for term in affinity),
    )


def _affinity(affinity: list[Term], neighbours: Neighbours) -> tuple[_Topology, ...]:
    """Only pods that match every term count, in the domains of each."""
    if not affinity:
        return ()
    everything = np.ones(len(neighbours.tasks), dtype=bool)
    for term in affinity:
        everything &= neighbours.selected(term.selector, term.namespaces_of(neighbours))
    keys = dict.fromkeys(term.topology_key for term in affinity)
    return tuple(_topology(neighbours, key, [Weights(everything, _ONE)]) for key in keys)


def _by_key(own: list[Term], neighbours: Neighbours) -> dict[str, list[Weights]]:
    found: dict[str, list[Weights]] = defaultdict(list)
    for term in own:
        mask = neighbours.selected(term.selector, term.namespaces_of(neighbours))
        weight = {Kind.PREFERRED: term.weight, Kind.PREFERRED_NOT: -term.weight}.get(term.kind, 1)
        found[term.topology_key].append(Weights(mask, _ONE * weight))
    return found


def _topology(neighbours: Neighbours, key: str, weights: list[Weights]) -> _Topology:
    domains = neighbours.domains(key)
    return _Topology(domains, DomainCounts(neighbours, domains, weights))


def _looks_at(term: Term, cls: TaskClass, neighbours: Neighbours) -> bool:
    """Whether the class' own term matches the class itself."""
    namespaces = term.namespaces_of(neighbours)
    there = namespaces is None or cls.namespace in namespaces
    return there and term.selector is not None and term.selector.matches(cls.labels)


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """What the scorer holds for one class while a session runs."""

    topologies: tuple[_Topology, ...]

    def raw(self) -> IntN | None:
        """(N,) sums of weights, which may be negative; None where nobody matches."""
        total: IntN | None = None
        for topology in self.topologies:
            if topology.counts.entries:
                some = topology.raw()
                total = some if total is None else total + some
        return total


def preferences(cls: TaskClass, neighbours: Neighbours, lookers: Lookers, hard_weight: int) -> Preferences | None:
    """The scorer of a class; None where no term concerns it. `hard_weight`: what others' required affinity is worth."""
    own = terms(cls.shape, cls.namespace) if cls.shape.own_affinity else []
    by_key = _by_key([term for term in own if term.kind in (Kind.PREFERRED, Kind.PREFERRED_NOT)], neighbours)
    theirs: dict[tuple[str, Kind], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    worth = {Kind.PREFERRED: 1, Kind.PREFERRED_NOT: -1}
    for looker in lookers.at(cls):
        term = looker.term
        weight = worth[term.kind] * term.weight if term.kind in worth else hard_weight * (term.kind is Kind.AFFINITY)
        if weight:
            theirs[term.topology_key, term.kind][looker.group] += weight
    for (key, _), groups in theirs.items():
        by_key.setdefault(key, []).append(lookers.weights(groups))
    if not by_key:
        return None
    return Preferences(tuple(_topology(neighbours, key, weights) for key, weights in by_key.items()))
