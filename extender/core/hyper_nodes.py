"""HyperNodes: sets of nodes that are close to each other, such as a rack. Allocate looks for room in one of them at a time.

There is always one, the root, which holds every node. A plugin may come up with others (hyper_node_gradient_for_job and its
like), from labels for instance: an action only ever looks at a HyperNode's name and nodes.
Source: volcano ed72c7c, pkg/scheduler/framework/session.go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from extender.core.axis import BoolN

ROOT = "<cluster-top-hypernode>"
GANG_RECLAIM = "gangreclaim"  # the action that evicts for whole gangs across queues


class Purpose(StrEnum):
    """What HyperNodes are looked for."""

    ALLOCATE = "allocate"
    EVICT = "evict"


@dataclass(frozen=True, slots=True, eq=False)
class HyperNode:
    """`tier`: the lower, the closer are its nodes."""

    name: str
    nodes: BoolN  # (N,)
    tier: int = 1

    @property
    def is_root(self) -> bool:
        return self.name == ROOT


Gradient = Sequence[Sequence[HyperNode]]  # lists to be tried one after the other


@dataclass(frozen=True, slots=True, eq=False)
class Eviction:
    """What tasks are to be evicted for together: by which action (`reason`), for which job, and within which HyperNode."""

    reason: str
    job: int
    within: HyperNode
