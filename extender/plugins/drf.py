"""drf -- dominant resource fairness between jobs: the job whose largest share of the cluster is smallest goes first.

    share[j] = max_r taken[j,r] / total[r]

over resources that the cluster has; taken follows every placement and eviction of the session. A task may push out one
of another job as long as its own job's share does not rise above what the other keeps. Queue hierarchies (enableHierarchy) are
not in this version: the plain rule holds for all jobs. Source: volcano ed72c7c, plugins/drf."""

from __future__ import annotations

from collections.abc import Sequence

from extender.core.amounts import divisor, largest_share
from extender.core.axis import BoolN, IntR, Rows
from extender.core.plugin import Change, NoArgs, Plugin
from extender.core.session import Session

SAME = 1e-6  # shares closer than this count as equal


class Drf(Plugin[NoArgs]):
    name = "drf"
    keeps = "no job holds a larger share"

    def open(self, ssn: Session) -> None:
        self.divisor = divisor(ssn.total)
        self.taken = ssn.job_allocated.copy()  # (J, R) with pipelined tasks, without those evicted in this session
        self.shares = largest_share(self.taken, self.divisor)

    def job_order(self, ssn: Session, job: int) -> float:
        del ssn
        return float(self.shares[job])

    def preemptable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        """Candidates whose job, without them, keeps at least the share that the preemptor's job comes to have."""
        job = ssn.job_of(task)
        if job < 0:
            return []
        mine = self._share(self.taken[job] + ssn.request(task))
        left: dict[int, IntR] = {}
        victims = []
        for victim in candidates:
            other = ssn.job_of(victim)
            if other < 0:
                continue
            kept = left[other] = left.get(other, self.taken[other]) - ssn.request(victim)
            theirs = self._share(kept)
            if mine < theirs or abs(mine - theirs) <= SAME:
                victims.append(victim)
        return victims

    def evictable(self, ssn: Session, hook: str, task: int, rows: Rows) -> BoolN:
        """Tasks without which their job keeps enough, were each the only one to go."""
        del hook
        mine = self._share(self.taken[ssn.job_of(task)] + ssn.request(task))
        kept = self.taken[ssn.tasks.job[rows]] - ssn.shape_requests[ssn.tasks.shape[rows]]
        return largest_share(kept, self.divisor) >= mine - SAME

    def allocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self._move(change.job, change.total)

    def deallocated(self, ssn: Session, change: Change) -> None:
        del ssn
        self._move(change.job, -change.total)

    def _move(self, job: int, change: IntR) -> None:
        if job >= 0:
            self.taken[job] += change
            self.shares[job] = self._share(self.taken[job])

    def _share(self, taken: IntR) -> float:
        return float(largest_share(taken, self.divisor))
