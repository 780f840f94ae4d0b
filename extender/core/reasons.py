"""Why a task waits: one dominant reason out of a closed list, with numbers, and the texts that users of Volcano know.

The same record feeds PodGroup conditions, pod conditions, events and the commands for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from extender.core.axis import BoolN

if TYPE_CHECKING:
    from extender.core.hyper_nodes import HyperNode
    from extender.core.placement import Plan
    from extender.core.plugin import TaskClass
    from extender.core.session import Session


class Reason(StrEnum):
    """The closed list. Values are stable: they are part of the JSON output."""

    NOT_ADMITTED = "NotAdmitted"  # enqueue has not let the job in: cluster or queue has no room for its minimum
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_UNKNOWN = "QueueUnknown"
    QUEUE_LIMIT = "QueueLimit"  # the queue may not take more now
    GROUP_UNKNOWN = "PodGroupUnknown"
    NOT_ENOUGH_TASKS = "NotEnoughTasks"  # fewer pods exist than the gang needs
    INSUFFICIENT_RESOURCES = "InsufficientResources"  # no node has room now
    NEVER_FITS = "NeverFits"  # no node could take it even if it were empty
    NODES_REFUSE = "NodesRefuse"  # affinity, taints, ports and the like
    WAITING_FOR_GANG = "WaitingForGang"  # it fits; others of its gang do not
    NO_ACTION = "NoAction"  # no action of the configuration places pods
    WAITING_FOR_RELEASE = "WaitingForRelease"  # room is promised, once it is released
    GATED = "SchedulingGated"
    UNREADABLE = "Unreadable"


TOO_MANY_PODS = "node(s) pod number exceeded"
_INSUFFICIENT = "Insufficient "
OF_ONE_ROLE = "node(s) refused another task of the role"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a job (or a task that has none) waits. `numbers` by name, such as {"cpu": {"asked": ..., "free": ...}}."""

    job: str
    reason: Reason
    message: str
    numbers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class FitErrors:
    """Why one task found no node: nodes by cause. `unresolvable` (N,): there was room, and evicting pods cannot help it."""

    counts: Mapping[str, int]
    nodes: int
    unresolvable: BoolN | None = None
    text: str = ""  # replaces the usual head
    never: bool = False  # no node would take it even if it were empty

    def __str__(self) -> str:
        head = self.text or f"0/{self.nodes} nodes are unavailable"
        if not self.counts:
            return head
        causes = ", ".join(sorted(f"{count} {cause}" for cause, count in self.counts.items()))
        return f"{head}: {causes}."


def explain(plan: Plan, within: HyperNode | None = None, open_to: BoolN | None = None) -> FitErrors:
    """Judge every node (or those of the HyperNode) for the class once more and count the causes, as the reference words them.

    `open_to` (N,): nodes that no other task of its role was refused by for good; None: all."""
    ssn, cls = plan.ssn, plan.cls
    partly = within is not None and not within.is_root
    exists = plan.candidates() & within.nodes if within is not None else plan.candidates()
    elsewhere = np.zeros_like(exists) if partly else ssn.elsewhere
    size = int(exists.sum() + elsewhere.sum())
    text = f"In hyperNode {within.name}: 0/{size} nodes are unavailable" if within is not None and partly else ""
    if plan.never is not None:
        return FitErrors({plan.never: size}, size, exists.copy(), text)
    plan.refresh()
    counts: Counter[str] = Counter()
    if elsewhere.any():
        counts["node isn't in scheduler node shard"] = int(elsewhere.sum())
    short = exists & ~plan.fits_future
    unaccounted = short.copy()
    for column in plan.asked:
        lacking = unaccounted & (ssn.future[:, column] < cls.request[column])
        if lacking.any():
            counts[insufficient(ssn.axis.names[column])] += int(lacking.sum())
            unaccounted &= ~lacking
    unresolvable, lasting = np.zeros(len(exists), dtype=bool), np.zeros(len(exists), dtype=bool)
    rest = exists & ~short
    if open_to is not None:
        unresolvable |= rest & ~open_to
        rest &= open_to
        if unresolvable.any():
            counts[OF_ONE_ROLE] += int(unresolvable.sum())
    for refusal in plan.every_refusal():
        refused = rest & refusal.mask
        if refused.any():
            counts[refusal.message] += int(refused.sum())
        if refusal.unresolvable:
            unresolvable |= refused
            if not refusal.for_now:
                lasting |= refusal.mask
            rest &= ~refusal.mask
    too_small = (ssn.allocatable[:, plan.asked] < plan.amount).any(axis=1)
    never = not partly and bool((~(exists | elsewhere) | too_small | lasting).all())
    return FitErrors(dict(counts), size, unresolvable, text, never)


def no_room(ssn: Session, cls: TaskClass) -> FitErrors | None:
    """Why no node has room for the class as the session stands, None where one has."""
    plan = ssn.plan(cls)
    asked = len(ssn.touched)
    if plan.no_room is None or plan.no_room[0] != asked:
        plan.no_room = (asked, None if plan.feasible(releasing=True).any() else explain(plan))
    return plan.no_room[1]


def insufficient(resource: str) -> str:
    """The cause where a node has too little of a resource, as upstream words it."""
    return TOO_MANY_PODS if resource == "pods" else f"{_INSUFFICIENT}{resource}"


def is_insufficient(cause: str) -> bool:
    return cause == TOO_MANY_PODS or cause.startswith(_INSUFFICIENT)


def merged(errors: Iterable[FitErrors]) -> Counter[str]:
    """Causes added up over tasks."""
    total: Counter[str] = Counter()
    for error in errors:
        total.update(error.counts)
    return total
