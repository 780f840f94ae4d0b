"""NodeAffinity: nodeSelector, required terms, preferred terms, over label columns.

Source: k8s.io/kubernetes v1.36.1, nodeaffinity; k8s.io/component-helpers v0.36.1, scheduling/corev1/nodeaffinity."""

from __future__ import annotations

import numpy as np

from extender.api.pod import PodSpec
from extender.api.selectors import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm, Requirement
from extender.core.axis import BoolN, IntN
from extender.core.snapshot import Nodes

REASON = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"
_NAME = "metadata.name"


def required(spec: PodSpec) -> NodeSelector | None:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required_during_scheduling_ignored_during_execution if affinity else None


def preferred_terms(spec: PodSpec) -> tuple[PreferredSchedulingTerm, ...] | None:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.preferred_during_scheduling_ignored_during_execution if affinity else None


def matches(spec: PodSpec, nodes: Nodes) -> BoolN | None:
    """(N,) nodes that nodeSelector and required affinity let in; None where the pod asks for none of that."""
    selector = required(spec)
    if not spec.node_selector and selector is None:
        return None
    mask = np.ones(len(nodes), dtype=bool)
    for key, value in (spec.node_selector or {}).items():
        mask &= nodes.labels.column(key, len(nodes)) == nodes.labels.code(key, value)
    if selector is not None:
        either = np.zeros(len(nodes), dtype=bool)
        for term in selector.node_selector_terms:
            either |= term_matches(term, nodes)
        mask &= either
    return mask


def refused(spec: PodSpec, nodes: Nodes) -> BoolN | None:
    """(N,) nodes that refuse the pod; None: no node does."""
    mask = matches(spec, nodes)
    return None if mask is None or mask.all() else ~mask


def preferred(spec: PodSpec, nodes: Nodes) -> IntN | None:
    """(N,) sum of the weights of the preferred terms that match; None where the pod has none."""
    terms = preferred_terms(spec)
    if terms is None:
        return None
    total: IntN = np.zeros(len(nodes), dtype=np.int64)
    for weighted in terms:
        total += weighted.weight * term_matches(weighted.preference, nodes)
    return total


def names(spec: PodSpec) -> frozenset[str] | None:
    """The only nodes that the required terms name by matchFields; None where some term is open to all. Empty: a conflict."""
    selector = required(spec)
    if selector is None or not selector.node_selector_terms:
        return None
    union: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        named = [frozenset(r.values or ()) for r in term.match_fields or () if r.key == _NAME and r.operator == "In"]
        if not named:
            return None
        union |= frozenset.intersection(*named)
    return union


def term_matches(term: NodeSelectorTerm, nodes: Nodes) -> BoolN:
    """(N,) nodes that one term matches; an empty term matches none."""
    if not term.match_expressions and not term.match_fields:
        return np.zeros(len(nodes), dtype=bool)
    mask = np.ones(len(nodes), dtype=bool)
    for requirement in term.match_expressions or ():
        mask &= _satisfied(requirement, nodes)
    for requirement in term.match_fields or ():
        mask &= _field_satisfied(requirement, nodes)
    return mask


def _satisfied(requirement: Requirement, nodes: Nodes) -> BoolN:
    """One line of matchExpressions; what the API server would refuse matches nothing."""
    column = nodes.labels.column(requirement.key, len(nodes))
    wanted = requirement.values or ()
    match requirement.operator:
        case "In" | "NotIn" if wanted:
            among = np.zeros(len(nodes), dtype=bool)
            for value in wanted:
                among |= column == nodes.labels.code(requirement.key, value)
            return among if requirement.operator == "In" else ~among
        case "Exists" | "DoesNotExist" if not wanted:
            there: BoolN = column != 0
            return there if requirement.operator == "Exists" else ~there
        case "Gt" | "Lt":
            values = nodes.labels.values(requirement.key)
            satisfied = [False, *(requirement.matches({requirement.key: value}) for value in values)]
            return np.array(satisfied, dtype=bool)[column]
    return np.zeros(len(nodes), dtype=bool)


def _field_satisfied(requirement: Requirement, nodes: Nodes) -> BoolN:
    mask = np.zeros(len(nodes), dtype=bool)
    if requirement.operator not in ("In", "NotIn") or not requirement.values or len(requirement.values) != 1:
        return mask
    row = nodes.rows.get(requirement.values[0]) if requirement.key == _NAME else None
    if row is not None:
        mask[row] = True
    elif requirement.key != _NAME and requirement.values[0] == "":
        mask[:] = True
    return mask if requirement.operator == "In" else ~mask
