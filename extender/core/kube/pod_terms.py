"""Pod affinity terms: resolved for the pod that has them, and an index of everyone's terms by whom they look for.

kube-scheduler leaves matchLabelKeys and mismatchLabelKeys to the API server, which writes them into the label selector when a
pod is created. So do we. Source: kube-scheduler v0.36.1, framework/types.go, AffinityTerm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from extender.api.pod import PodAffinityTerm, PodSpec
from extender.api.selectors import LabelSelector
from extender.core.axis import IntN
from extender.core.kube.neighbours import Neighbours, Weights
from extender.core.plugin import TaskClass
from extender.core.shapes import Shape


class Kind(Enum):
    AFFINITY = "podAffinity, required"
    ANTI_AFFINITY = "podAntiAffinity, required"
    PREFERRED = "podAffinity, preferred"
    PREFERRED_NOT = "podAntiAffinity, preferred"


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One term of a pod in `namespaces`' sense: listed ones, and those that `namespace_selector` matches."""

    kind: Kind
    topology_key: str
    selector: LabelSelector | None
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Whether it looks at a pod in that namespace with these labels."""
        there = namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        )
        return there and self.selector is not None and self.selector.matches(labels)

    def namespaces_of(self, neighbours: Neighbours) -> frozenset[str] | None:
        """For the pod to be placed: all namespaces that it looks into; None: every one.

        A selector that would match a namespace without labels looks everywhere: kube-scheduler adds the namespaces that it
        matches to the list, and then asks it again, of no labels (interpodaffinity/plugin.go works on a copy of the term)."""
        if self.namespace_selector is None:
            return self.namespaces
        if self.namespace_selector.matches({}):
            return None
        return self.namespaces | frozenset(neighbours.namespaces_matching(self.namespace_selector))


def terms(shape: Shape, namespace: str) -> list[Term]:
    """All terms of a pod of that shape and namespace. The shape keeps them from one session to the next."""
    known = shape.extra.setdefault("pod_terms", {})
    assert isinstance(known, dict)
    if namespace not in known:
        known[namespace] = _terms(shape.spec, namespace)
    found: list[Term] = known[namespace]
    return found


def _terms(spec: PodSpec, namespace: str) -> list[Term]:
    if spec.affinity is None:
        return []
    found: list[Term] = []
    for affinity, required, preferred in (
        (spec.affinity.pod_affinity, Kind.AFFINITY, Kind.PREFERRED),
        (spec.affinity.pod_anti_affinity, Kind.ANTI_AFFINITY, Kind.PREFERRED_NOT),
    ):
        if affinity is not None:
            hard = affinity.required_during_scheduling_ignored_during_execution or ()
            soft = affinity.preferred_during_scheduling_ignored_during_execution or ()
            found += [_resolved(required, term, namespace, 0) for term in hard]
            found += [_resolved(preferred, w.pod_affinity_term, namespace, w.weight) for w in soft]
    return found


def _resolved(kind: Kind, term: PodAffinityTerm, namespace: str, weight: int) -> Term:
    listed = frozenset(term.namespaces or ())
    if not listed and term.namespace_selector is None:
        listed = frozenset((namespace,))
    return Term(kind, term.topology_key, term.label_selector, listed, term.namespace_selector, weight)


@dataclass(frozen=True, slots=True, eq=False)
class Looker:
    """A term and the group of tasks (one shape, one namespace) that have it."""

    group: int
    term: Term


class Lookers:
    """Every task's own terms, on nodes or not, so that a class finds the terms that look at it without asking all."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self.group_of, groups = _groups(neighbours)
        self.size = len(groups)
        self._by_label: dict[tuple[str, str], list[Looker]] = {}
        self._general: list[Looker] = []
        for group, (shape, namespace) in enumerate(groups):
            of = neighbours.snapshot.shapes[shape]
            assert of is not None
            for term in terms(of, namespace):
                self._index(Looker(group, term))

    def _index(self, looker: Looker) -> None:
        selector = looker.term.selector
        if selector is None:
            return
        if selector.match_labels:
            self._by_label.setdefault(next(iter(selector.match_labels.items())), []).append(looker)
            return
        for requirement in selector.match_expressions or ():
            if requirement.operator == "In" and requirement.values:
                for value in requirement.values:
                    self._by_label.setdefault((requirement.key, value), []).append(looker)
                return
        self._general.append(looker)

    def at(self, cls: TaskClass) -> Iterator[Looker]:
        """The terms that look at pods of the class."""
        if not self.size:
            return
        namespace_labels = self._neighbours.namespace_labels(cls.namespace)
        for some in (self._general, *(self._by_label.get(pair, ()) for pair in cls.labels.items())):
            for looker in some:
                if looker.term.matches(cls.namespace, cls.labels, namespace_labels):
                    yield looker

    def weights(self, by_group: Mapping[int, int]) -> Weights:
        """What a task counts by its group."""
        table: IntN = np.zeros(self.size + 1, dtype=np.int64)
        for group, weight in by_group.items():
            table[group + 1] = weight
        return Weights(self.group_of, table)


def _groups(neighbours: Neighbours) -> tuple[NDArray[np.int32], list[tuple[int, str]]]:
    """(T,) number of the group of each task, counted from 1, 0 for tasks without terms; the groups' shapes and namespaces."""
    tasks, shapes = neighbours.tasks, neighbours.snapshot.shapes
    looking = np.array([shape is not None and shape.own_affinity for shape in shapes], dtype=bool)
    group_of = np.zeros(len(tasks), dtype=np.int32)
    if not looking.any():
        return group_of, []
    rows = np.flatnonzero(looking[tasks.shape])
    rows = rows[tasks.namespace[rows] >= 0]
    names = list(tasks.namespaces)
    code = tasks.shape[rows].astype(np.int64) * len(names) + tasks.namespace[rows]
    distinct, group_of[rows] = np.unique(code, return_inverse=True)
    group_of[rows] += 1
    return group_of, [(int(c) // len(names), names[int(c) % len(names)]) for c in distinct.tolist()]
