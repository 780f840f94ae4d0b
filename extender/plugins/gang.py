"""gang -- all or nothing: a job runs with its minimum of members or not at all, and gives up none below it.

    ready      tasks with a node, and pending ones that ask nothing, reach minMember, every role's minTaskMember and
               every policy's minSubGroups
    pipelined  the same with those that are promised room

A sub-job is ready, or pipelined, with subGroupSize of its own tasks. As in the reference, a later tier whose plugins give victims
overrules that gang gives none: docs/configuration.md says how to keep gangs whole then.
The conditions of the PodGroup are written when the session closes (core/closing.py). Source: volcano ed72c7c, plugins/gang."""

from __future__ import annotations

from collections.abc import Sequence

from extender.core import status as st
from extender.core.axis import BoolN, Rows
from extender.core.hyper_nodes import Eviction
from extender.core.members import ALIVE, READY_OR_PROMISED, Members
from extender.core.plugin import NoArgs, Plugin, Refused, Vote
from extender.core.session import Session
from extender.core.sub_jobs import SubJob

NOT_ENOUGH_OF_TASK = "NotEnoughPodsOfTask"
NOT_ENOUGH = "NotEnoughTasks"


class Gang(Plugin[NoArgs]):
    name = "gang"
    keeps = "their gangs need them (minAvailable)"
    judges_by_members = True

    def open(self, ssn: Session) -> None:
        del ssn
        self._members: dict[int, Members | None] = {}

    def _of(self, ssn: Session, job: int) -> Members | None:
        if job not in self._members:
            self._members[job] = Members.of(ssn, job)
        return self._members[job]

    # --- may it run at all --------------------------------------------------------------------------------------------

    def job_valid(self, ssn: Session, job: int) -> Refused | None:
        """Enough pods exist: of each role, of each policy's parts, and in all."""
        members = self._of(ssn, job)
        if members is not None:
            alive = members.counted(ssn, ALIVE, pending_best_effort=False)
            lacks = members.role_lacks(alive)
            if lacks.any():
                roles = zip(members.roles, members.role_minimum.tolist(), lacks.tolist(), strict=True)
                short = ", ".join(f"{role} {minimum - lack} of {minimum}" for role, minimum, lack in roles if lack)
                return Refused(NOT_ENOUGH_OF_TASK, f"there are too few pods for the gang: {short}")
            if not members.enough_parts(members.part_policy >= 0):
                return Refused(NOT_ENOUGH_OF_TASK, "there are too few subgroups for the gang, see minSubGroups")
        valid, least = _count(ssn, job, ALIVE), int(ssn.jobs.min_available[job])
        if valid < least:
            return Refused(NOT_ENOUGH, f"there are too few pods for the gang: {valid} of {least}")
        return None

    # --- is it whole --------------------------------------------------------------------------------------------------

    def job_order(self, ssn: Session, job: int) -> bool:
        """Jobs that are not ready go before those that are."""
        return self.job_ready(ssn, job)

    def job_ready(self, ssn: Session, job: int) -> bool:
        return self._lacking(ssn, job, st.IS_READY) <= 0 and self._whole(ssn, job, st.IS_READY)

    def job_pipelined(self, ssn: Session, job: int) -> Vote:
        """Never abstains, so later tiers cannot overrule it."""
        promised = READY_OR_PROMISED
        whole = self._lacking(ssn, job, promised) <= 0 and self._whole(ssn, job, promised)
        return Vote.PERMIT if whole else Vote.REJECT

    def sub_job_order(self, ssn: Session, sub_job: SubJob) -> bool:
        """Sub-jobs that are not ready go before those that are."""
        return self.sub_job_ready(ssn, sub_job)

    def sub_job_ready(self, ssn: Session, sub_job: SubJob) -> bool:
        return self._sub_job_lacks(ssn, sub_job, st.IS_READY) <= 0

    def sub_job_pipelined(self, ssn: Session, sub_job: SubJob) -> Vote:
        return Vote.PERMIT if self._sub_job_lacks(ssn, sub_job, READY_OR_PROMISED) <= 0 else Vote.REJECT

    def tasks_to_sub_job_ready(self, ssn: Session, sub_job: SubJob) -> int:
        return self._sub_job_lacks(ssn, sub_job, st.IS_READY)

    def _sub_job_lacks(self, ssn: Session, sub_job: SubJob, states: BoolN) -> int:
        return sub_job.min_available - sub_job.count(ssn.task_status, states)

    def _lacking(self, ssn: Session, job: int, states: BoolN) -> int:
        """How many tasks the job is short of minMember, negative where it has more."""
        have = _count(ssn, job, states) + int(ssn.job_pending_best_effort[job])
        return int(ssn.jobs.min_available[job]) - have

    def _whole(self, ssn: Session, job: int, states: BoolN) -> bool:
        """Every role and every policy has its minimum."""
        members = self._of(ssn, job)
        if members is None:
            return True
        counted = members.counted(ssn, states, pending_best_effort=True)
        return not members.role_lacks(counted).any() and members.enough_parts(members.part_lacks(counted) == 0)

    def tasks_to_ready(self, ssn: Session, job: int) -> int:
        """A lower bound of the tasks that must still take nodes before the job is ready."""
        lacking = self._lacking(ssn, job, st.IS_READY)
        members = self._of(ssn, job)
        if members is None:
            return lacking
        counted = members.counted(ssn, st.IS_READY, pending_best_effort=True)
        return max(lacking, members.fewest_to_ready(counted))

    def job_starving(self, ssn: Session, job: int) -> bool:
        """Short of minMember with all that it has been promised; pending tasks that ask nothing do not count here."""
        return _count(ssn, job, READY_OR_PROMISED) < int(ssn.jobs.min_available[job])

    # --- who may be taken from it ---------------------------------------------------------------------------------------

    def preemptable(self, ssn: Session, task: int, candidates: Sequence[int]) -> list[int]:
        """Of each job the first candidates that it has beyond minMember."""
        del task
        left: dict[int, int] = {}
        victims = []
        for victim in candidates:
            job = ssn.job_of(victim)
            if job < 0:
                continue
            ready = left.get(job)
            if ready is None:
                ready = ssn.ready_count(job)
            if ready > ssn.jobs.min_available[job]:
                victims.append(victim)
                ready -= 1
            left[job] = ready
        return victims

    reclaimable = preemptable

    def unified_evictable(self, ssn: Session, eviction: Eviction, candidates: Sequence[int]) -> Sequence[int]:
        """Anybody: an action that evicts for a whole gang looks itself at what each job can spare, and may take all of one."""
        del ssn, eviction
        return candidates

    def evictable(self, ssn: Session, hook: str, task: int, rows: Rows) -> BoolN:
        """Tasks of jobs that have more than minMember."""
        del hook, task
        more: BoolN = ssn.job_counts[:, st.IS_READY].sum(axis=1) > ssn.jobs.min_available
        return more[ssn.tasks.job[rows]]


def _count(ssn: Session, job: int, states: BoolN) -> int:
    """Tasks of the job in one of the states."""
    return int(ssn.job_counts[job].dot(states))
