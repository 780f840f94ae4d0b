"""Quotas: the sums over jobs that every quota plugin starts from, and the words in which they refuse.

All of it is array work over job rows grouped by queue. Source: volcano ed72c7c, pkg/scheduler/plugins/{proportion,capacity}
and plugins/util."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.core import status as st
from extender.core.amounts import Row, ceiling
from extender.core.axis import BoolN, FloatR, IntNR
from extender.core.plugin import NotAdmitted
from extender.core.session import Session


@dataclass(frozen=True, slots=True, eq=False)
class QueueSums:
    """(Q, R) int64 each, over the jobs of each queue as they are when the session opens. Plugins move them on."""

    jobs: NDArray[np.int64]  # (Q,) number of jobs
    allocated: IntNR
    request: IntNR  # allocated and pending tasks
    admitted: IntNR  # what jobs that were let in may still come to use of their minimum
    elastic: IntNR  # what jobs use beyond their minimum


def queue_sums(ssn: Session) -> QueueSums:
    """One pass over the (J, R) columns of jobs."""
    jobs, size = ssn.jobs, len(ssn.queues)
    live = np.flatnonzero(jobs.queue >= 0)
    queue = jobs.queue[live]

    def by_queue(amounts: IntNR) -> IntNR:
        total = np.zeros((size, amounts.shape[1]), dtype=np.int64)
        np.add.at(total, queue, amounts[live])
        return total

    return QueueSums(
        jobs=np.bincount(queue, minlength=size),
        allocated=by_queue(ssn.job_allocated),
        request=by_queue(ssn.job_allocated + jobs.pending),
        admitted=by_queue(admitted_amounts(ssn)),
        elastic=by_queue(np.maximum(ssn.job_allocated - jobs.min_resources, 0)),
    )


def admitted_amounts(ssn: Session) -> IntNR:
    """(J, R) the part of a minimum that a job was let in for and does not use yet: of jobs that are Inqueue, and of those
    that run with at least minMember tasks. What a foreign scheduling gate holds back is not counted."""
    jobs = ssn.jobs
    holding = ssn.job_counts[:, st.IS_ALLOCATED].sum(axis=1)
    running = (ssn.job_phase == st.PHASE_RUNNING) & (holding >= jobs.min_available)
    counts: BoolN = (ssn.job_phase == st.PHASE_INQUEUE) | running
    rest: IntNR = np.maximum(np.maximum(jobs.min_resources - ssn.job_allocated, 0) - jobs.blocked, 0)
    rest[~counts] = 0
    return rest


def asked_at_admission(ssn: Session, jobs: int | BoolN) -> IntNR:
    """(R,) what a job that is let in comes to ask for; (K, R) of the K jobs of a mask."""
    asked: IntNR = np.maximum(ssn.jobs.min_resources[jobs] - ssn.jobs.blocked[jobs], 0)
    return asked


def real_capability(ssn: Session) -> FloatR:
    """(Q, R) the most a queue can ever have: the cluster without what others are guaranteed, and no more than its capability."""
    guarantee = ssn.queues.guarantee.values
    unpromised = np.maximum(ssn.total - guarantee.sum(axis=0), 0)
    limit: FloatR = np.minimum(unpromised + guarantee, ceiling(ssn.queues.capability))
    return limit


# --- words --------------------------------------------------------------------------------------------------------------


Called = Callable[[int], tuple[str, str]]  # column -> what its limit is: one word, and for people


def account(
    ssn: Session, who: str, columns: Sequence[int] | NDArray[np.intp], asked: Row, limit: Row, word: str | Called, **used: Row
) -> tuple[str, dict[str, object]]:
    """Why `asked` does not fit: "queue a: cpu 12 used + 8 asked > capability 16", and the same as numbers by resource.

    `used`: what stands against the limit already, by name; parts that are zero everywhere are left out."""
    parts = []
    numbers: dict[str, object] = {}
    for column in map(int, columns):
        amounts = {name: float(row[column]) for name, row in used.items() if row[column]} | {"asked": float(asked[column])}
        most = max(float(limit[column]), 0.0)
        key, called = (word, word) if isinstance(word, str) else word(column)
        resource = ssn.axis.names[column]
        said = " + ".join(f"{ssn.axis.said(column, amount)} {name}" for name, amount in amounts.items())
        parts.append(f"{resource} {said} > {called} {ssn.axis.said(column, most)}")
        numbers[resource] = {name: ssn.axis.text(column, amount) for name, amount in (amounts | {key: most}).items()}
    return f"{who}: {', '.join(parts)}", numbers


def called_by(ssn: Session, rows: Sequence[int], limit: Row) -> Called:
    """What a queue's limit is, in the words of whoever set it. `rows`: the queue, then those above it that limit it too."""
    written = ssn.queues.capability

    def called(column: int) -> tuple[str, str]:
        for row in rows:
            if written.named[row, column] and written.values[row, column] <= limit[column]:
                return "capability", "capability" if row == rows[0] else f"capability of {ssn.queues.name[row]}"
        if limit[column] >= ssn.total[column]:
            return "cluster", "the cluster's"
        return "unguaranteed", "what the guarantees of others leave:"

    return called


def not_admitted(
    ssn: Session, event: str, verb: str, columns: NDArray[np.intp], told: tuple[str, Mapping[str, object]]
) -> NotAdmitted:
    """The reference's event ("queue resource quota insufficient: insufficient cpu") with our account of it."""
    names = ", ".join(f"{verb} {name}" for name in sorted(ssn.axis.names[column] for column in columns))
    return NotAdmitted(f"{event}: {names}", told[0], told[1])
