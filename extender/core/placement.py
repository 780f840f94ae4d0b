"""Placement: masks, scores and best nodes for a task class.

A Plan holds, for one class, which nodes every check passes and how many points each gets, and keeps them true while the
session changes nodes: only rows that were touched since are judged again. To hand out many equal tasks at once it looks
ahead: it judges the best nodes as they would stand with one, two, three more tasks of the class, in one vector pass.
Ties go to the lowest row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from extender.core.axis import BoolN, FloatN, IntNR
from extender.core.plugin import At, Refusal, TaskClass

if TYPE_CHECKING:
    from extender.core.reasons import FitErrors
    from extender.core.session import Session

IntN = NDArray[np.intp]
_AHEAD = 4  # tasks more that the first look ahead judges
_FAR = 16  # and each later one
_GROUPS = 6  # groups of equal scores that are picked one by one before a partition is cheaper
NOWHERE = -np.inf


class Plan:
    """One class against all N nodes. `passes` and `scores` are of checks and points that look at one node at a time."""

    def __init__(self, ssn: Session, cls: TaskClass) -> None:
        self.ssn, self.cls = ssn, cls
        self.asked = np.flatnonzero(cls.request)
        self.amount = cls.request[self.asked]
        self.never: str | None = _first(hook(ssn, cls) for hook in ssn.flat["pre_predicate"])
        self.across_checks = [hook for hook in ssn.flat["predicate_across"] if hook(ssn, cls) is not None]
        self.no_room: tuple[int, FitErrors | None] | None = None  # reasons.py: the last answer, and after how many changes
        self._open_to = ssn.only_on.get(cls.id)
        self._seen = len(ssn.touched)
        everything = np.arange(len(ssn.nodes))
        at = self.at(everything)
        self.refusals: list[Refusal] = self.refused(at)
        self.passes: BoolN = self.candidates() & ~_any(self.refusals, len(everything))
        self.scores: FloatN = self.points(at)
        self.mapped: list[IntN | None] = ssn.mapped_points(cls, at)
        self.fits_future: BoolN = self._room(ssn.future, everything)
        self.fits_idle: BoolN = self.fits_future & self._room(ssn.idle, everything)

    def candidates(self) -> BoolN:
        """(N,) nodes that come into question for the class at all."""
        return self.ssn.candidates if self._open_to is None else self.ssn.candidates & self._open_to

    # --- what a row looks like ----------------------------------------------------------------------------------------

    def at(self, rows: IntN, extra: IntN | None = None) -> At:
        """The rows as they stand, each with `extra` (K,) tasks of the class more on it."""
        ssn, cls = self.ssn, self.cls
        whole = len(rows) == len(ssn.nodes) and extra is None
        used, requested, nonzero = (
            (ssn.used, ssn.requested, ssn.nonzero) if whole else (ssn.used[rows], ssn.requested[rows], ssn.nonzero[rows])
        )
        if extra is None:
            more = np.zeros(len(rows), dtype=np.intp)
        else:
            more = extra
            used = used + extra[:, None] * cls.request
            requested = requested + extra[:, None] * cls.request
            nonzero = nonzero + extra[:, None] * cls.nonzero
        allocatable = ssn.allocatable if whole else ssn.allocatable[rows]
        return At(rows, allocatable, used, requested, nonzero, more)

    def refused(self, at: At) -> list[Refusal]:
        """(K,) each: what checks of one node refuse."""
        found: list[Refusal] = []
        for hook in self.ssn.flat["predicate"]:
            found.extend(hook(self.ssn, self.cls, at))
        return found

    def points(self, at: At) -> FloatN:
        """(K,) sum of the points that look at one node."""
        total = np.zeros(len(at.rows))
        for hook in self.ssn.flat["node_order"]:
            points = hook(self.ssn, self.cls, at)
            if points is not None:
                total += points
        return total

    def _room(self, free: IntNR, rows: IntN) -> BoolN:
        room = np.ones(len(rows), dtype=bool)
        whole = len(rows) == len(self.ssn.nodes)
        for column, amount in zip(self.asked, self.amount, strict=True):
            room &= (free[:, column] if whole else free[rows, column]) >= amount
        return room

    def refresh(self) -> None:
        """Judge again the rows that were touched since the last time."""
        touched = self.ssn.touched
        if self._seen == len(touched):
            return
        rows = np.unique(np.array(touched[self._seen :], dtype=np.intp))
        self._seen = len(touched)
        at = self.at(rows)
        refused = self.refused(at)
        self.passes[rows] = self.candidates()[rows] & ~_any(refused, len(rows))
        self.refusals = _updated(self.refusals, refused, rows, len(self.ssn.nodes))
        self.scores[rows] = self.points(at)
        if self.mapped:
            self._map_again(rows, at)
        self.fits_future[rows] = self._room(self.ssn.future, rows)
        self.fits_idle[rows] = self.fits_future[rows] & self._room(self.ssn.idle, rows)

    def _map_again(self, rows: IntN, at: At) -> None:
        for known, fresh in zip(self.mapped, self.ssn.mapped_points(self.cls, at), strict=True):
            if known is not None and fresh is not None:
                known[rows] = fresh

    # --- choosing -------------------------------------------------------------------------------------------------------

    def feasible(self, *, releasing: bool = False, within: BoolN | None = None) -> BoolN:
        """(N,) nodes that pass every check and have room now (`releasing`: once what is being released is free)."""
        self.refresh()
        if self.never is not None:
            return np.zeros(len(self.passes), dtype=bool)
        mask = self.passes & (self.fits_future if releasing else self.fits_idle)
        if within is not None:
            mask &= within
        for refusal in self.across():
            mask &= ~refusal.mask
        return mask

    def not_ruled_out(self) -> BoolN:
        """(N,) nodes that no check of the node alone refuses for good, whatever room they have."""
        self.refresh()
        return ~_any([refusal for refusal in self.refusals if refusal.unresolvable], len(self.passes))

    def across(self) -> list[Refusal]:
        """(N,) each: what checks that look at other nodes too refuse, as the session stands."""
        return [refusal for hook in self.across_checks for refusal in hook(self.ssn, self.cls) or ()]

    def every_refusal(self) -> list[Refusal]:
        """(N,) each: of checks of one node, as they were when the plan was last refreshed, and of those across nodes."""
        return [*self.refusals, *self.across()]

    def total_scores(self, feasible: BoolN) -> tuple[FloatN, bool, bool]:
        """(N,) points where feasible; whether they depend on which nodes are feasible; whether on each placement."""
        total, depends, moves = self.scores, False, bool(self.across_checks)
        for hook in self.ssn.flat["batch_node_order"]:
            across = hook(self.ssn, self.cls, feasible)
            if across is not None:
                total = total + across.scores
                depends, moves = True, moves or across.moves
        for points in self.ssn.reduced_points(self.cls, self.mapped, feasible) if self.mapped else ():
            total = total + points
            depends = moves = True
        return total, depends, moves

    def choose(self, count: int, *, releasing: bool = False, within: BoolN | None = None) -> list[int]:
        """Up to `count` node rows for tasks of the class, in the order in which they are to be placed.

        Each is the best node with the ones before it in place. Fewer than `count` come back where the answer may change
        once these are placed: place them and ask again; none means that no node is feasible."""
        mask = self.feasible(releasing=releasing, within=within)
        if not mask.any():
            return []
        if self.ssn.preferred is not None and (mask & self.ssn.preferred).any():
            mask &= self.ssn.preferred
        scores, depends, moves = self.total_scores(mask)
        for hook in self.ssn.flat["best_node"]:
            row = hook(self.ssn, self.cls, np.where(mask, scores, NOWHERE))
            if row is not None:
                return [int(row)]
        head = np.where(mask, scores, NOWHERE)
        best = self._best(head)
        if count == 1 or moves:
            return [best]
        ahead = _Ahead(self, scores - self.scores, releasing)
        chosen: list[int] = []
        while best >= 0 and len(chosen) < count:
            chosen.append(best)
            head[best] = ahead.score(best, head, count)
            if depends and head[best] == NOWHERE:
                break  # one node less is feasible, and the points are relative to those that are
            best = self._best(head)
            if head[best] == NOWHERE:
                break
        return chosen

    def _best(self, head: FloatN) -> int:
        best = int(head.argmax())
        if self.ssn.conf.random_ties:
            equal = np.flatnonzero(head == head[best])
            return int(self.ssn.rng.choice(equal))
        return best


class _Ahead:
    """Scores of nodes with more tasks of the class on them than the session has placed yet."""

    def __init__(self, plan: Plan, offset: FloatN, releasing: bool) -> None:
        self.plan, self.offset = plan, offset
        self.free = plan.ssn.future if releasing else np.minimum(plan.ssn.idle, plan.ssn.future)
        self.taken: dict[int, int] = {}
        self.known: dict[int, list[float]] = {}  # node -> scores with 1, 2, 3 ... more

    def score(self, node: int, head: FloatN, count: int) -> float:
        """The node's score now that one more task is on it; NOWHERE where no further one has room."""
        taken = self.taken[node] = self.taken.get(node, 0) + 1
        known = self.known.get(node)
        if known is None and not self.known:
            self._look(np.union1d(_best_rows(head, count), [node]), 1, _AHEAD)
            known = self.known[node]
        if known is None or len(known) < taken:
            self._look(np.array([node]), taken, _FAR)
            known = self.known[node]
        return known[taken - 1]

    def _look(self, rows: IntN, first: int, steps: int) -> None:
        """Judge `rows` with first, first + 1 ... first + steps - 1 more tasks."""
        plan = self.plan
        extra = np.tile(np.arange(first, first + steps), len(rows))
        places = np.repeat(rows, steps)
        at = plan.at(places, extra)
        scores = plan.points(at) + self.offset[places]
        room = np.ones(len(places), dtype=bool)
        for column, amount in zip(plan.asked, plan.amount, strict=True):
            room &= self.free[places, column] >= (extra + 1) * amount
        room &= ~_any(plan.refused(at), len(places))
        scores[~room] = NOWHERE
        for row, seen in zip(rows.tolist(), scores.reshape(len(rows), steps).tolist(), strict=True):
            self.known.setdefault(row, []).extend(seen)


def _best_rows(head: FloatN, count: int) -> IntN:
    """The rows of the `count` highest feasible scores; of equal ones the lowest rows."""
    rest, chosen = head.copy(), np.zeros(0, dtype=np.intp)
    for _ in range(_GROUPS):  # where nodes are alike, a few groups of equal scores are all there is
        limit = rest.max()
        if limit == NOWHERE:
            return chosen
        equal = np.flatnonzero(rest == limit)
        chosen = np.concatenate([chosen, equal[: count - len(chosen)]])
        if len(chosen) == count:
            return chosen
        rest[equal] = NOWHERE
    feasible = np.flatnonzero(rest > NOWHERE)
    wanted = count - len(chosen)
    if len(feasible) > wanted:
        feasible = feasible[np.argpartition(-rest[feasible], wanted - 1)[:wanted]]
    return np.concatenate([chosen, feasible])


def _any(refusals: list[Refusal], size: int) -> BoolN:
    refused = np.zeros(size, dtype=bool)
    for refusal in refusals:
        refused |= refusal.mask
    return refused


def _updated(old: list[Refusal], new: list[Refusal], rows: IntN, size: int) -> list[Refusal]:
    """The refusals of all nodes with those of `rows` replaced by what was found now."""
    fresh = {(r.plugin, r.message): r for r in new}
    known = {(r.plugin, r.message) for r in old}
    result = []
    for refusal in old:
        now = fresh.get((refusal.plugin, refusal.message))
        mask = refusal.mask.copy()
        mask[rows] = now.mask if now is not None else False
        result.append(Refusal(refusal.message, mask, refusal.unresolvable, refusal.plugin))
    for code, refusal in fresh.items():
        if code not in known:
            mask = np.zeros(size, dtype=bool)
            mask[rows] = refusal.mask
            result.append(Refusal(refusal.message, mask, refusal.unresolvable, refusal.plugin))
    return result


def _first(answers: Any) -> str | None:
    return next((answer for answer in answers if answer is not None), None)
