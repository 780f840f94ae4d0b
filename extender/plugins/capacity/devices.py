"""Quotas of devices that pods get by ResourceClaim: keys of a queue's lists that name a device class.

    deviceclass/<class>              number of devices
    <dimension>.deviceclass/<class>  consumable capacity, with capacity.DRAConsumableCapacityEnable

Only capability limits. A claim that several pods of a queue share counts once. Requests for all devices of a pool, or for the
first that is available, have no number and are not counted. Source: volcano ed72c7c, plugins/capacity and cache.go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from extender.api import claim, meta, quantity
from extender.api.meta import Key
from extender.core import status as st
from extender.core.axis import read_quantities
from extender.core.session import Session
from extender.plugins.capacity.tree import QueueTree

CLASS = "deviceclass/"
DIMENSION = ".deviceclass/"
Amounts = Counter[str]  # key as in a queue's list -> nano-units


class Devices:
    """The books of all queues that limit devices, in one session."""

    def __init__(self, ssn: Session, tree: QueueTree, *, consumable: bool) -> None:
        self.tree, self.consumable = tree, consumable
        self.limits: dict[int, Amounts] = {
            row: limits for row, of in enumerate(ssn.queues.queue) if (limits := _limits(of.spec.capability)) is not None
        }
        self.used: dict[int, Amounts] = defaultdict(Counter)
        self.admitted: dict[int, Amounts] = defaultdict(Counter)
        self.holders: dict[int, Counter[Key]] = defaultdict(Counter)  # by queue: claim -> tasks that hold it
        self.refused: dict[int, str] = {}  # leaf queue -> why it took no more, last time
        self._asked: dict[Key, Amounts] = {}
        if self.limits:
            for task in _holding(ssn):
                self.move(ssn, ssn.queue_of(ssn.job_of(task)), [task], +1)

    # --- what tasks ask ---------------------------------------------------------------------------------------------------

    def claims(self, ssn: Session, task: int) -> dict[Key, Amounts]:
        """Claim -> what it asks, of the claims of a task that exist."""
        pod = ssn.tasks.pod[task]
        if pod is None:
            return {}
        keys = [Key(pod.metadata.namespace, name) for name in pod.claims]
        return {key: asked for key in keys if (asked := self._of(ssn, key))}

    def _of(self, ssn: Session, key: Key) -> Amounts:
        if key not in self._asked:
            found = ssn.facts[meta.RESOURCE_CLAIM].get(key)
            self._asked[key] = _asked(found, consumable=self.consumable) if isinstance(found, claim.ResourceClaim) else Counter()
        return self._asked[key]

    # --- questions ----------------------------------------------------------------------------------------------------------

    def room(self, ssn: Session, queue: int, tasks: Sequence[int]) -> int:
        """How many of the tasks, in their order, the queue and all above it may take."""
        rows = [row for row in self.tree.path(queue) if row in self.limits]
        if not rows:
            return len(tasks)
        more: dict[int, Amounts] = {row: Counter() for row in rows}
        seen: set[Key] = set()
        for done, task in enumerate(tasks):
            fresh = {key: asked for key, asked in self.claims(ssn, task).items() if key not in seen}
            for row in rows:
                for key, asked in fresh.items():
                    if not self.holders[row][key]:
                        more[row].update(asked)
                told = self._beyond(ssn, row, more[row], self.used[row], "used")
                if told:
                    self.refused[queue] = told
                    return done
            seen.update(fresh)
        return len(tasks)

    def admits(self, ssn: Session, queue: int, job: int) -> str:
        """Why the devices of the job's minimum do not fit, "" where they do."""
        asked = self._minimum(ssn, job)
        rows = [row for row in self.tree.path(queue) if row in self.limits]
        refusals = (self._beyond(ssn, row, asked, self.used[row] + self.admitted[row], "used or let in") for row in rows)
        return next((told for told in refusals if told), "")

    def _beyond(self, ssn: Session, queue: int, asked: Amounts, used: Amounts, held: str) -> str:
        limits = self.limits[queue]
        classes = {_class(name) for name in limits}
        for key, amount in sorted(asked.items()):
            limit = limits[key]
            unlimited = _class(key) not in classes or (key.startswith(CLASS) and limit <= 0)
            if not unlimited and amount and used[key] + amount > limit:
                words = f"{_text(used[key])} {held} + {_text(amount)} asked > capability {_text(limit)}"
                return f"queue {ssn.queues.name[queue]}: {key} {words}"
        return ""

    def _minimum(self, ssn: Session, job: int) -> Amounts:
        """What the tasks that the job needs at least ask together."""
        group = ssn.jobs.group[job]
        asking = [task for task in ssn.jobs.tasks[job] if self.claims(ssn, task)]
        total: Amounts = Counter()
        if group is None:
            return total
        asking.sort(key=ssn.task_key)
        if not group.spec.min_task_member:
            for task in asking[: group.spec.min_member]:
                total.update(_sum(self.claims(ssn, task).values()))
            return total
        first: dict[str, int] = {}
        for task in asking:
            first.setdefault(ssn.tasks.role[task], task)
        for role, task in first.items():
            times = group.spec.min_task_member.get(role, 0)
            total.update({key: times * amount for key, amount in _sum(self.claims(ssn, task).values()).items()})
        return total

    # --- what happens -------------------------------------------------------------------------------------------------------

    def move(self, ssn: Session, queue: int, tasks: Iterable[int], sign: int) -> None:
        """Tasks take their claims, or give them back (-1): a claim counts while somebody holds it."""
        rows = [row for row in self.tree.path(queue) if row in self.limits] if queue >= 0 and self.limits else ()
        for row in rows:
            holders = self.holders[row]
            for task in tasks:
                for key, asked in self.claims(ssn, task).items():
                    holders[key] += sign
                    if holders[key] == (1 if sign > 0 else 0):
                        for name, amount in asked.items():
                            self.used[row][name] += sign * amount

    def let_in(self, ssn: Session, queue: int, job: int) -> None:
        if self.limits:
            asked = self._minimum(ssn, job)
            for row in self.tree.path(queue):
                self.admitted[row].update(asked)


def _limits(listed: dict[str, str | int | float] | None) -> Amounts | None:
    """The entries of a capability that are about devices; None where there are none."""
    about = {name: amount for name, amount in (listed or {}).items() if name.startswith(CLASS) or DIMENSION in name}
    return Counter(read_quantities(about, "")) if about else None


def _class(key: str) -> str:
    return key.split(CLASS, 1)[1]


def _asked(found: claim.ResourceClaim, *, consumable: bool) -> Amounts:
    total: Amounts = Counter()
    for request in found.spec.devices.requests or ():
        exactly = request.exactly
        if exactly is None or exactly.allocation_mode == claim.ALL or not exactly.device_class_name:
            continue
        count = exactly.count or 1
        total[CLASS + exactly.device_class_name] += count * quantity.NANO
        if consumable:
            for name, amount in read_quantities(exactly.capacity.requests, "").items():
                total[f"{name}{DIMENSION}{exactly.device_class_name}"] += count * amount
    return total


def _holding(ssn: Session) -> list[int]:
    """Tasks that hold a node and have claims; found by their shapes, not one by one."""
    by_claim = np.array([shape is not None and bool(shape.spec.resource_claims) for shape in ssn.snapshot.shapes], dtype=bool)
    if not by_claim.any():
        return []
    holds = by_claim[ssn.tasks.shape] & st.IS_ALLOCATED[ssn.task_status] & (ssn.tasks.job >= 0)
    rows: list[int] = np.flatnonzero(holds).tolist()
    return rows


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    total: Amounts = Counter()
    for each in amounts:
        total.update(each)
    return total


def _text(nanos: int) -> str:
    return quantity.format_nanos(nanos)
