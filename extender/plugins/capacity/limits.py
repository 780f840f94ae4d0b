"""What each queue may have at most, deserves and is guaranteed, flat or along the tree.

    flat   limit    = min(total - all guarantees + own guarantee, capability)
           deserved = max(min(spec.deserved, limit), guarantee)
    tree   limit    = min(parent's limit - guarantees of all its children + own guarantee, capability)
           deserved = max(spec.deserved, guarantee)
           capability = spec.capability, and the parent's where it says nothing

Source: volcano ed72c7c, plugins/capacity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extender.core.amounts import ceiling
from extender.core.axis import CPU, MEMORY, Amounts, FloatR
from extender.core.quotas import real_capability
from extender.core.session import Session
from extender.plugins.capacity.tree import QueueTree


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """(Q, R) each."""

    limit: FloatR
    deserved: Amounts
    guarantee: FloatR

    @staticmethod
    def of(ssn: Session, tree: QueueTree, *, hierarchical: bool) -> Limits:
        queues = ssn.queues
        guarantee, wish = queues.guarantee, queues.deserved
        limit = _down_the_tree(ssn, tree) if hierarchical else real_capability(ssn)
        deserved = wish.values if hierarchical else np.minimum(wish.values, limit)
        named = wish.named | guarantee.named
        return Limits(limit, Amounts(np.maximum(deserved, guarantee.values), named), guarantee.values)

    def deserved_of(self, queue: int) -> Amounts:
        return Amounts(self.deserved.values[queue], self.deserved.named[queue])


def _down_the_tree(ssn: Session, tree: QueueTree) -> FloatR:
    """(Q, R) the most a queue can have. Root is unlimited where it says nothing, in what the cluster has at all."""
    guarantee = ssn.queues.guarantee.values
    capability = ceiling(ssn.queues.capability)
    known = ssn.total > 0
    known[[CPU, MEMORY]] = True
    limit = np.where(known, capability, 0.0)
    for rows in tree.levels_down():
        parents = tree.parent[rows]
        promised = np.zeros_like(guarantee)
        np.add.at(promised, parents, guarantee[rows])
        capability[rows] = np.where(np.isinf(capability[rows]), capability[parents], capability[rows])
        rest = np.maximum(limit[parents] - promised[parents], 0)
        limit[rows] = np.minimum(rest + guarantee[rows], capability[rows])
    return limit
