"""The search that preempt and reclaim share: for one pending task, a node and the tasks that must leave it.

    reach    nodes where the task fits if all who may be asked left, and whose refusals leaving can cure: vector sums
    order    by score and then by how little their tenants matter (preempt), or the lowest row first (reclaim); where allocate
             is still to come, nodes with room of their own before all others
    victims  a node's candidates as far as the plugins give them up, least important first (victim_order.py)
    trial    evict one after the other in a statement until the task fits, the queue may take it and the checks pass;
             when comparing nodes spare again, most important first, whom it did not take; undo. What is left is evicted

The gang's floor, budgets and shares are judged on the state of the whole statement, because each eviction is already in it.
Source: volcano ed72c7c, actions/{preempt,reclaim} and kube-scheduler's preemption, whose simulate hooks are a Statement here."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.api.meta import Time, parse_time
from extender.api.pod import Pod
from extender.core import status as st
from extender.core.axis import BoolN, Rows
from extender.core.placement import Plan
from extender.core.role_refusals import Role, RoleRefusals
from extender.core.session import Session
from extender.core.statement import Statement
from extender.core.victim_order import by_importance, in_victim_order, queues_in_order

BoolT = NDArray[np.bool_]  # (T,) which tasks
_LOOKED_AT = 200  # candidates, when it is told why none of them leaves
_PRIORITY_OFFSET = 2**31  # makes every priority positive, so that more victims never weigh less


@dataclass(frozen=True, slots=True)
class DryRun:
    """Compare several nodes before choosing: percent of the nodes to compare, at least, at most."""

    percentage: int = 10
    at_least: int = 1
    at_most: int = 100

    def wanted(self, nodes: int) -> int:
        return min(nodes, self.at_most, max(self.at_least, nodes * self.percentage // 100))


@dataclass(frozen=True, slots=True)
class Manner:
    """How one caller searches."""

    by_score: bool = True  # the best score is tried first, else the lowest row
    free_first: bool = True  # nodes that need nobody to leave come before all others
    only_tenanted: bool = False  # nodes where nobody could be asked to leave do not come into question
    sparing: bool = True  # whoever turns out to be needless stays
    one_template: bool = False  # what refuses one task of a role for good refuses all of them (predicateErrorCacheEnable)
    dry_run: DryRun | None = None


class VictimSearch:
    """One action's search. `hook` is preemptable or reclaimable, `reason` goes into the evictions."""

    def __init__(self, ssn: Session, hook: str, reason: str, manner: Manner) -> None:
        self.ssn, self.hook, self.reason, self.manner = ssn, hook, reason, manner
        self._refused = RoleRefusals() if manner.one_template else None
        live = np.zeros(len(ssn.jobs) + 1, dtype=bool)  # the last row is that of tasks without a job, row -1
        live[ssn.live_jobs()] = True
        queues = np.append(ssn.jobs.queue, -1)
        self.queue: NDArray[np.int32] = queues[ssn.tasks.job]  # (T,)
        self.may_leave: BoolT = live[ssn.tasks.job] & ssn.tasks.preemptable & (ssn.tasks.node >= 0)
        self.hopeless: set[Hashable] = set()  # codes of what found nothing in the state as it is
        self.told: dict[Hashable, str] = {}  # and what was found out about it

    # --- the way in -------------------------------------------------------------------------------------------------------

    def make_room(self, stmt: Statement, task: int, candidates: BoolT, *, own_job: bool = False) -> list[int] | None:
        """Evict who must leave and promise the task its node, all in `stmt`. The victims, or None where nothing helps.

        A task that needs no eviction is given room that is free or being released. `own_job`: the candidates are of its job."""
        code = (self.code(task), own_job)
        if code in self.hopeless:
            return None
        found = self._search(task, candidates)
        if found is None:
            self.hopeless.add(code)
            return None
        node, victims = found
        for victim in victims:
            stmt.evict(victim, self.reason)
        stmt.pipeline([task], [node], after_eviction=bool(victims))
        self.hopeless = set()
        return victims

    def who_stays(self, task: int, candidates: BoolT) -> str:
        """In words, why too few leave for the task: who keeps them all, or some of them."""
        rows = np.flatnonzero(candidates)[:_LOOKED_AT].tolist()
        if not rows:
            return "there is nobody to evict"
        kept: dict[bool, list[str]] = {True: [], False: []}
        for tier in self.ssn.hooks[self.hook]:
            for name, method in tier:
                chosen = method(self.ssn, task, rows)
                if chosen is not None and len(chosen) < len(rows):
                    kept[not chosen].append(self.ssn.by_name[name].keeps or f"plugin {name} keeps them")
        if kept[True]:
            return f"nobody may leave: {', '.join(kept[True])}"
        return f"too few may leave{''.join(f', of the others {why}' for why in kept[False])}"

    def code(self, task: int) -> Hashable:
        """Tasks that no check, share or order can tell apart here have the same code: what fails for one fails for all."""
        ssn = self.ssn
        job = ssn.job_of(task)
        return (
            ssn.task_class(task).id, ssn.queue_of(job), int(ssn.jobs.priority[job]), int(ssn.tasks.priority[task]),
            bool(ssn.tasks.preemptable[task]), self._was_refused(task), job if self._is_alone(task, job) else -1,
        )  # fmt: skip

    def _was_refused(self, task: int) -> bool:
        """Some nodes do not come into question since allocate asked them."""
        errors = self.ssn.fit_errors.get(task)
        return errors is not None and errors.unresolvable is not None

    def _is_alone(self, task: int, job: int) -> bool:
        """What happens to the task depends on more of its job than other jobs could share."""
        refused = self._refused
        if self.ssn.job_key(job) in self.ssn.reservations.pushed:  # it may not ask everybody (actions/preempt.py)
            return True
        return self._has_tenants(job) or (refused is not None and refused.by_others(self._role(task), self.ssn.task_class(task)))

    def _role(self, task: int) -> Role:
        return self.ssn.job_of(task), self.ssn.tasks.role[task]

    def _has_tenants(self, job: int) -> bool:
        counts = self.ssn.job_counts[job]
        return bool(counts[st.IS_ALLOCATED].any() or counts[st.PIPELINED] or counts[st.RELEASING])

    # --- which nodes --------------------------------------------------------------------------------------------------------

    def _search(self, task: int, candidates: BoolT) -> tuple[int, list[int]] | None:
        ssn = self.ssn
        plan = ssn.plan(ssn.task_class(task))
        plan.refresh()
        if plan.never is not None:
            return None
        curable = self._curable(plan, task)
        rows = np.flatnonzero(candidates)
        if self.manner.only_tenanted:
            curable &= np.bincount(ssn.task_node[rows], minlength=len(curable)) > 0
        rows = rows[self._given_up(task, rows)]
        for shard in self._shards(curable):
            reach = shard & self._reach(plan, rows)
            if not reach.any():
                continue
            order = self._order(plan, task, shard, reach, rows)
            found = self._compare(plan, task, order, candidates) if self.manner.dry_run else None
            if found is None and not self.manner.dry_run:
                found = next(self._tries(plan, task, order, candidates), None)
            if found is not None:
                return found
        return None

    def _curable(self, plan: Plan, task: int) -> BoolN:
        """(N,) nodes that nothing refuses which would still refuse once others have left, be it another task of the role."""
        curable = self.ssn.candidates.copy()
        errors = self.ssn.fit_errors.get(task)
        if errors is not None and errors.unresolvable is not None:
            curable &= ~errors.unresolvable
        refused = np.zeros(len(curable), dtype=bool)
        for refusal in plan.every_refusal():
            if refusal.unresolvable:
                refused |= refusal.mask
        if self._refused is not None:
            refused |= self._refused.with_others(self._role(task), plan.cls, curable & refused)
        return curable & ~refused

    def _shards(self, curable: BoolN) -> Iterator[BoolN]:
        """The nodes of our own shard first, where sharding is soft (hard sharding leaves no others)."""
        ours = self.ssn.preferred
        if ours is None:
            yield curable
            return
        yield curable & ours
        yield curable & ~ours

    def _given_up(self, task: int, rows: Rows) -> BoolT:
        """(K,) upper bound of the candidates that the plugins give up: one tier's plugins must agree on each.

        Plugins may answer `evictable` for whole columns; who does not is taken to give up everybody."""
        given = np.zeros(len(rows), dtype=bool)
        for tier in self.ssn.hooks[self.hook]:
            agreed = np.full(len(rows), bool(tier))
            for name, _ in tier:
                look = getattr(self.ssn.by_name[name], "evictable", None)
                if look is not None:
                    agreed &= look(self.ssn, self.hook, task, rows)
            given |= agreed
        return given

    def _reach(self, plan: Plan, rows: Rows) -> BoolN:
        """(N,) nodes where the task fits if all of `rows` left: future + sum of their requests >= what it asks."""
        ssn = self.ssn
        nodes, shapes = ssn.task_node[rows], ssn.tasks.shape[rows]
        reach = np.ones(len(ssn.nodes), dtype=bool)
        for column, amount in zip(plan.asked, plan.amount, strict=True):
            free = ssn.future[:, column].copy()
            np.add.at(free, nodes, ssn.shape_requests[shapes, column])
            reach &= free >= amount
        return reach

    def _order(self, plan: Plan, task: int, shard: BoolN, reach: BoolN, rows: Rows) -> list[int]:
        """Nodes within reach, in the order in which to try them."""
        ssn, found = self.ssn, np.flatnonzero(reach)
        keys: list[NDArray[Any]] = [ssn.rng.permutation(len(reach)) if ssn.conf.random_ties else np.arange(len(reach))]
        if self.manner.by_score:  # over all nodes that could be cured, as an ordinary placement scores all that are feasible
            keys += [self._rank(task, rows), -plan.total_scores(shard)[0]]
        if self.manner.free_first and self._queue_takes(task):
            keys.append(~plan.feasible(releasing=True, within=shard))
        return [int(row) for row in found[np.lexsort([key[found] for key in keys])]]

    def _rank(self, task: int, rows: Rows) -> NDArray[np.int64]:
        """(N,) how much the least important candidate of each node matters; nodes without any come last."""
        ssn = self.ssn
        queues = self.queue[rows]
        place = np.zeros(len(ssn.queues), dtype=np.int64)
        present = [int(row) for row in np.flatnonzero(np.bincount(queues, minlength=len(place)))]
        place[queues_in_order(ssn, ssn.queue_of(ssn.job_of(task)), present)] = np.arange(len(present))
        rank = np.full(len(ssn.nodes), np.iinfo(np.int64).max)
        # A place among queues, then a priority of 32 bits: one number that orders by both.
        worth = place[queues] * 2**33 + ssn.jobs.priority[ssn.tasks.job[rows]]
        np.minimum.at(rank, ssn.task_node[rows], worth)
        return rank

    # --- one node -----------------------------------------------------------------------------------------------------------

    def _tries(self, plan: Plan, task: int, order: Sequence[int], candidates: BoolT) -> Iterator[tuple[int, list[int]]]:
        """Each node that can be made to fit, with those who must leave it."""
        for node in order:
            victims = self._who_leaves(plan, task, node, candidates)
            if victims is not None:
                yield node, victims

    def _who_leaves(self, plan: Plan, task: int, node: int, candidates: BoolT) -> list[int] | None:
        """The tasks whose leaving makes the node fit, in order of eviction; None where it cannot be. Changes nothing."""
        ssn = self.ssn
        tenants = [tenant for tenant in ssn.nodes.tasks[node] if candidates[tenant]]
        queue = ssn.queue_of(ssn.job_of(task))
        given_up = ssn.victims(self.hook, task, by_importance(ssn, queue, tenants)) if tenants else []
        chosen = in_victim_order(ssn, queue, given_up)
        room = ssn.future[node] + ssn.shape_requests[ssn.tasks.shape[chosen]].sum(axis=0)
        if (room[plan.asked] < plan.amount).any():
            return None
        with ssn.statement(trial=self.manner.sparing) as trial:
            waiting = iter(chosen)
            while not self._fits(plan, task, node):
                victim = next(waiting, None)
                if victim is None:
                    return None
                trial.evict(victim, self.reason)
            victims = trial.evicted
        return self._spare(plan, task, node, victims) if self.manner.sparing else victims

    def _fits(self, plan: Plan, task: int, node: int) -> bool:
        """Room, the queue's consent, and every check: what allocate will ask for once the victims are gone."""
        if (self.ssn.future[node, plan.asked] < plan.amount).any() or not self._queue_takes(task):
            return False
        plan.refresh()
        return bool(plan.passes[node]) and not any(refusal.mask[node] for refusal in plan.across())

    def _queue_takes(self, task: int) -> bool:
        ssn = self.ssn
        return ssn.allocatable_tasks(ssn.queue_of(ssn.job_of(task)), [task]) > 0

    def _spare(self, plan: Plan, task: int, node: int, victims: list[int]) -> list[int]:
        """Those of the victims without whom it does not fit; the most important are spared first."""
        if len(victims) < 2:
            return victims
        kept = list(victims)
        for spared in reversed(victims):
            if not self._room_without(plan, node, kept, spared):
                continue
            rest = [victim for victim in kept if victim != spared]
            with self.ssn.statement(trial=True) as trial:
                for victim in rest:
                    trial.evict(victim, self.reason)
                if self._fits(plan, task, node):
                    kept = rest
        return kept

    def _room_without(self, plan: Plan, node: int, victims: Sequence[int], spared: int) -> bool:
        rows = self.ssn.tasks.shape[[victim for victim in victims if victim != spared]]
        room = self.ssn.future[node] + self.ssn.shape_requests[rows].sum(axis=0)
        return bool((room[plan.asked] >= plan.amount).all())

    # --- comparing nodes --------------------------------------------------------------------------------------------------

    def _compare(self, plan: Plan, task: int, order: list[int], candidates: BoolT) -> tuple[int, list[int]] | None:
        """Of enough nodes that can be made to fit, the one whose victims matter least; a node that needs none at once."""
        assert self.manner.dry_run is not None
        wanted = self.manner.dry_run.wanted(len(order))
        found: list[tuple[int, list[int]]] = []
        for node, victims in self._tries(plan, task, order, candidates):
            if not victims:
                return node, victims
            found.append((node, victims))
            if len(found) >= wanted:
                break
        return min(found, key=lambda one: self._harm(one[1]), default=None)

    def _harm(self, victims: Sequence[int]) -> tuple[int, int, int, float]:
        """kube-scheduler's pickOneNodeForPreemption: highest priority, sum of priorities, number, and the latest to have
        started among the most important goes first."""
        pods = [pod for victim in victims if (pod := self.ssn.tasks.pod[victim]) is not None]
        highest = max(pod.priority for pod in pods)
        first = min(_started(pod, self.ssn.now) for pod in pods if pod.priority == highest)
        return highest, sum(pod.priority + _PRIORITY_OFFSET for pod in pods), len(pods), -first


def _started(pod: Pod, now: Time) -> Time:
    started = parse_time(pod.status.start_time)
    return now if started is None else started
