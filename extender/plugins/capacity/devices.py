"""Quotas of devices that pods get by ResourceClaim: keys of a queue's lists that name a device class (core/dra/quota.py).

Only capability limits. A claim that several pods of a queue share counts once.
Source: volcano ed72c7c, plugins/capacity and cache.go."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from extender.api import quantity
from extender.api.claim import ResourceClaim
from extender.api.meta import Key
from extender.core import status as st
from extender.core.axis import read_quantities
from extender.core.dra import quota
from extender.core.dra.quota import CLASS, Amounts
from extender.core.session import Session
from extender.plugins.capacity.tree import QueueTree

Told = tuple[str, dict[str, object]]  # why something does not fit: in words, and the numbers by key


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
        self.refused: dict[int, Told] = {}  # leaf queue -> why it took no more, last time
        self._asked: dict[Key, Amounts] = {}
        if self.limits:
            for task in quota.holding(ssn):
                self.move(ssn, ssn.queue_of(ssn.job_of(task)), [task], +1)
            for job in ssn.live_jobs():
                if ssn.job_phase[job] == st.PHASE_INQUEUE:
                    self.let_in(ssn, ssn.queue_of(job), job)

    # --- what tasks ask ---------------------------------------------------------------------------------------------------

    def claims(self, ssn: Session, task: int) -> dict[Key, Amounts]:
        """Claim -> what it asks, of the claims of a task that exist."""
        pod = ssn.tasks.pod[task]
        if pod is None:
            return {}
        return {key: asked for key, claim in quota.claims_of(pod, ssn.facts).items() if (asked := self._of(key, claim))}

    def _of(self, key: Key, claim: ResourceClaim) -> Amounts:
        if key not in self._asked:
            self._asked[key] = quota.counted(claim, consumable=self.consumable)
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

    def admits(self, ssn: Session, queue: int, job: int) -> Told | None:
        """Why the devices of the job's minimum do not fit, None where they do."""
        rows = [row for row in self.tree.path(queue) if row in self.limits]
        minimum = self._minimum(ssn, job) if rows else None
        for row in rows:
            assert minimum is not None
            asked = minimum.beside(self.holders[row])
            told = self._beyond(ssn, row, asked, self.used[row] + self.admitted[row], "used or let in")
            if told:
                return told
        return None

    def _beyond(self, ssn: Session, queue: int, asked: Amounts, used: Amounts, held: str) -> Told | None:
        limits = self.limits[queue]
        classes = {_class(name) for name in limits}
        for key, amount in sorted(asked.items()):
            limit = limits[key]
            unlimited = _class(key) not in classes or (key.startswith(CLASS) and limit <= 0)
            if not unlimited and amount and used[key] + amount > limit:
                numbers = {"used": _text(used[key]), "asked": _text(amount), "capability": _text(limit)}
                words = f"{numbers['used']} {held} + {numbers['asked']} asked > capability {numbers['capability']}"
                return f"queue {ssn.queues.name[queue]}: {key} {words}", {key: numbers}
        return None

    def _minimum(self, ssn: Session, job: int) -> _Minimum:
        """What the tasks that the job needs at least ask: the first minMember that claim something, or so many of each role.

        Of tasks that are not there yet each asks what the first of its role claims for itself."""
        group = ssn.jobs.group[job]
        asking = [task for task in ssn.jobs.tasks[job] if self.claims(ssn, task)]
        minimum = _Minimum({}, Counter())
        if group is None:
            return minimum
        asking.sort(key=ssn.task_key)
        if not group.spec.min_task_member:
            for task in asking[: group.spec.min_member]:
                minimum.claims.update(self.claims(ssn, task))
            return minimum
        for role, number in group.spec.min_task_member.items():
            there = [task for task in asking if ssn.tasks.role[task] == role][:number]
            for task in there:
                minimum.claims.update(self.claims(ssn, task))
            if there:
                for asked in self._own_claims(ssn, there[0]):
                    minimum.missing.update({key: (number - len(there)) * amount for key, amount in asked.items()})
        return minimum

    def _own_claims(self, ssn: Session, task: int) -> list[Amounts]:
        """What the task claims by templates, and so every task of its kind once more."""
        pod = ssn.tasks.pod[task]
        named = {claim.resource_claim_name for claim in (pod.spec.resource_claims if pod is not None else None) or ()}
        return [asked for key, asked in self.claims(ssn, task).items() if key.name not in named]

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
        rows = [row for row in self.tree.path(queue) if row in self.limits]
        minimum = self._minimum(ssn, job) if rows else None
        for row in rows:
            assert minimum is not None
            self.admitted[row].update(minimum.beside(self.holders[row]))


@dataclass(frozen=True, slots=True, eq=False)
class _Minimum:
    """Claims that there are, and what those will ask that are yet to be made."""

    claims: dict[Key, Amounts]
    missing: Amounts

    def beside(self, held: Mapping[Key, int]) -> Amounts:
        """What comes to the claims that are held already."""
        total: Amounts = Counter(self.missing)
        for key, asked in self.claims.items():
            if not held.get(key):
                total.update(asked)
        return total


def _limits(listed: dict[str, str | int | float] | None) -> Amounts | None:
    """The entries of a capability that are about devices; None where there are none."""
    about = {name: amount for name, amount in (listed or {}).items() if quota.is_about_devices(name)}
    return Counter(read_quantities(about, "")) if about else None


def _class(key: str) -> str:
    return key.split(CLASS, 1)[1]


def _text(nanos: int) -> str:
    return quantity.format_nanos(nanos)
