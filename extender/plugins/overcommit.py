"""overcommit -- let jobs in as long as their minimums fit the cluster taken `overcommit-factor` times.

    admitted + asked <= total * factor - used        in every resource that is asked for

`admitted` is what jobs that were let in before may still come to use: the whole minimum of a job until it runs, then what
its minimum leaves over. So what the tasks of a job hold that is not yet running counts twice, here and in `used`.
Source: volcano ed72c7c, plugins/overcommit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from extender.core import status as st
from extender.core.amounts import beyond
from extender.core.plugin import Arguments, Plugin, Vote
from extender.core.quotas import account, admitted_amounts, asked_at_admission, not_admitted
from extender.core.session import Session

KEY = "overcommit-factor"
FACTOR = 1.2


@dataclass(frozen=True, slots=True)
class OvercommitArgs:
    factor: float = FACTOR


class Overcommit(Plugin[OvercommitArgs]):
    name = "overcommit"
    admits_by_minimum = True

    @classmethod
    def parse(cls, arguments: Arguments) -> OvercommitArgs:
        factor = arguments.number(KEY, FACTOR)
        if not 1 <= factor < math.inf:
            arguments.wrong(KEY, f"must be at least 1, not {factor:g}")
        return OvercommitArgs(factor)

    def open(self, ssn: Session) -> None:
        self.used = ssn.used[ssn.nodes.exists].sum(axis=0)
        self.limit = ssn.total * self.args.factor
        admitted = admitted_amounts(ssn)
        not_running = ssn.job_phase == st.PHASE_INQUEUE
        admitted[not_running] = asked_at_admission(ssn, not_running)
        self.admitted = admitted[ssn.jobs.queue >= 0].sum(axis=0)

    def job_enqueueable(self, ssn: Session, job: int) -> Vote:
        asked = ssn.jobs.min_resources[job]
        columns = beyond(self.admitted + asked, self.limit - self.used, asked)
        if not len(columns):
            return Vote.PERMIT
        who = f"the cluster taken {self.args.factor:g} times"
        told = account(ssn, who, columns, asked, self.limit, "limit", used=self.used, admitted=self.admitted)
        refusal = not_admitted(ssn, "resource in cluster is overused", "overused", columns, told)
        ssn.enqueue_refusals[job].append(refusal)
        return Vote.REJECT

    def job_enqueued(self, ssn: Session, job: int) -> None:
        self.admitted = self.admitted + asked_at_admission(ssn, job)
