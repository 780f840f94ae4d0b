"""QueueFacts: what a queue's spec says in amounts, read once when the queue changes and not in every session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.api.queue import Queue
from extender.core.axis import Amounts, Axis


@dataclass(frozen=True, slots=True, eq=False)
class QueueFacts:
    """The lists are as wide as the axis was when they were read."""

    queue: Queue
    created: float
    capability: Amounts
    deserved: Amounts
    guarantee: Amounts

    @staticmethod
    def of(queue: Queue, axis: Axis) -> QueueFacts:
        """Raises InvalidObject where a quantity cannot be read."""
        spec = queue.spec
        return QueueFacts(
            queue=queue,
            created=queue.metadata.created,
            capability=axis.amounts(spec.capability),
            deserved=axis.amounts(spec.deserved),
            guarantee=axis.amounts(spec.guarantee.resource),
        )


def in_order(facts: Mapping[str, QueueFacts]) -> list[QueueFacts]:
    """By creation time, then name."""
    return sorted(facts.values(), key=lambda fact: (fact.created, fact.queue.metadata.name))


def stacked(lists: Sequence[Amounts], width: int) -> Amounts:
    """Q lists -> (Q, width) values and names."""
    values, named = np.zeros((len(lists), width)), np.zeros((len(lists), width), dtype=bool)
    for row, amounts in enumerate(lists):
        values[row, : len(amounts.values)] = amounts.values
        named[row, : len(amounts.named)] = amounts.named
    values.flags.writeable = named.flags.writeable = False
    return Amounts(values, named)
