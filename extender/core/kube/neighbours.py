"""Pods on nodes as affinity, spread and host ports see them: counted per domain, kept up while a session moves pods.

A domain is a node's value of a topology key, as the code of its label column; code 0: the node has none. Counts begin with
the snapshot and catch up with the session's moves when they are next asked for, so that a class pays only for what it looks
at. Every task of the snapshot has its answer to a selector beforehand, also those that have no node yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from extender.api import meta
from extender.api.meta import Key
from extender.api.node import Namespace
from extender.api.selectors import LabelSelector
from extender.core import status as st
from extender.core.axis import BoolN, IntN
from extender.core.snapshot import Snapshot

Codes = NDArray[np.int32]
_FEW = 8  # moves that are cheaper one by one
_ENDED = np.isin(np.arange(st.STATUSES), st.ENDED_SET)


@dataclass(slots=True)
class Moves:
    """Tasks that took a node (+1) or left it (-1), in order."""

    tasks: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)

    def add(self, tasks: Sequence[int], nodes: Sequence[int], sign: int) -> None:
        self.tasks.extend(tasks)
        self.nodes.extend(nodes)
        self.signs.extend([sign] * len(tasks))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """What each task counts: `table[kind[task]]`. `kind` (T,) is a mask or numbers of groups."""

    kind: NDArray[np.int32] | BoolN
    table: IntN

    def of(self, tasks: NDArray[np.intp]) -> IntN:
        return self.table[self.kind[tasks].astype(np.intp)]


class Neighbours:
    """One snapshot's tasks on nodes, and the moves since."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.nodes, self.tasks = snapshot.nodes, snapshot.tasks
        self.moves = Moves()
        self._here: NDArray[np.intp] | None = None
        self._selected: dict[tuple[bytes, frozenset[str] | None], BoolN] = {}

    @property
    def here(self) -> NDArray[np.intp]:
        """Rows of the tasks that are on a node in the snapshot and have not ended."""
        if self._here is None:
            self._here = np.flatnonzero((self.tasks.node >= 0) & ~_ENDED[self.tasks.status])
        return self._here

    def selected(self, selector: LabelSelector | None, namespaces: frozenset[str] | None) -> BoolN:
        """(T,) tasks in one of the namespaces (None: in any) that the selector matches."""
        code = (msgspec.json.encode(selector), namespaces)
        mask = self._selected.get(code)
        if mask is None:
            mask = self.tasks.labels.matches(selector, len(self.tasks))
            if namespaces is not None:
                numbers = [self.tasks.namespaces[name] for name in namespaces if name in self.tasks.namespaces]
                mask &= self.tasks.namespace == numbers[0] if len(numbers) == 1 else np.isin(self.tasks.namespace, numbers)
            self._selected[code] = mask
        return mask

    def domains(self, key: str) -> Codes:
        """(N,) domain of each node, 0 for none."""
        return self.nodes.labels.column(key, len(self.nodes))

    def each_node(self) -> Codes:
        """(N,) every node a domain of its own."""
        return np.arange(1, len(self.nodes) + 1, dtype=np.int32)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; none where there is no such object."""
        namespace = self.snapshot.facts[meta.NAMESPACE].get(Key("", name))
        return (namespace.metadata.labels or {}) if isinstance(namespace, Namespace) else {}

    def namespaces_matching(self, selector: LabelSelector) -> Iterable[str]:
        for key, namespace in self.snapshot.facts[meta.NAMESPACE].items():
            if isinstance(namespace, Namespace) and selector.matches(namespace.metadata.labels or {}):
                yield key.name


class DomainCounts:
    """Weighted number of pods per domain. `where` (N,) is the domain of each node that counts, 0 for nodes that do not."""

    __slots__ = ("_counts", "_entries", "_of", "_seen", "_weights", "where")

    def __init__(
        self, neighbours: Neighbours, where: Codes, weights: Sequence[Weights], *, leave_out: NDArray[np.bool_] | None = None
    ) -> None:
        """`leave_out` (T,): tasks that do not count where the snapshot has them."""
        self._of, self.where, self._weights = neighbours.moves, where, weights
        self._seen = 0
        self._entries = 0
        self._counts: IntN = np.zeros(int(where.max(initial=0)) + 1, dtype=np.int64)
        tasks = neighbours.here
        if leave_out is not None:
            tasks = tasks[~leave_out[tasks]]
        self._count(tasks, where[neighbours.tasks.node[tasks]], None)

    def _count(self, tasks: NDArray[np.intp], domains: Codes, signs: IntN | None) -> None:
        for weights in self._weights:
            weight = weights.of(tasks)
            counted = np.flatnonzero((weight != 0) & (domains != 0))
            if not len(counted):
                continue
            weight, into = weight[counted], domains[counted]
            if signs is not None:
                weight = weight * signs[counted]
                self._entries += int(signs[counted].sum())
            else:
                self._entries += len(counted)
            np.add.at(self._counts, into, weight)

    def _catch_up(self) -> None:
        moves, first = self._of, self._seen
        self._seen = len(moves.tasks)
        if self._seen - first > _FEW:
            nodes = np.array(moves.nodes[first:], dtype=np.intp)
            signs = np.array(moves.signs[first:], dtype=np.int64)
            self._count(np.array(moves.tasks[first:], dtype=np.intp), self.where[nodes], signs)
            return
        for i in range(first, self._seen):
            domain, task = self.where[moves.nodes[i]], moves.tasks[i]
            if domain:
                for weights in self._weights:
                    weight = weights.table[int(weights.kind[task])]
                    if weight:
                        self._counts[domain] += moves.signs[i] * weight
                        self._entries += moves.signs[i]

    @property
    def counts(self) -> IntN:
        """(D,) by domain; [0] is always 0."""
        if self._seen != len(self._of.tasks):
            self._catch_up()
        return self._counts

    @property
    def entries(self) -> int:
        """How many pods count anywhere; their weights may cancel out."""
        if self._seen != len(self._of.tasks):
            self._catch_up()
        return self._entries

    def at(self, codes: Codes) -> IntN:
        """(N,) counts of the domains `codes`, which may hold domains where nothing counts."""
        counts = self.counts
        highest = int(codes.max(initial=0))
        if highest >= len(counts):
            self._counts = counts = np.concatenate([counts, np.zeros(highest + 1 - len(counts), dtype=np.int64)])
        return counts[codes]
