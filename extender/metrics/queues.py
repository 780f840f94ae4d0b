"""Metrics that are worked out of the last session when they are scraped: jobs that lack members, what queues have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from prometheus_client.core import GaugeMetricFamily

from extender.core import status as st
from extender.core.amounts import ceiling, largest_share
from extender.core.axis import CPU, MEMORY, IntNR
from extender.core.session import Session
from extender.metrics.names import (
    JOB_SHARE,
    QUEUE_AMOUNTS,
    QUEUE_OVERUSED,
    QUEUE_SHARE,
    QUEUE_WEIGHT,
    UNITS,
    UNSCHEDULED_JOBS,
    UNSCHEDULED_TASKS,
)


def labels_of(ssn: Session, job: int) -> tuple[str, str, str]:
    key = ssn.job_key(job)
    return key.name, ssn.jobs.queue_name[job], key.namespace


def lacking_members(ssn: Session) -> Any:
    """(J,) members that each job lacks."""
    placed = ssn.job_counts[:, st.IS_READY].sum(axis=1) + ssn.job_pending_best_effort
    lacking = np.maximum(ssn.jobs.min_available - placed, 0)
    lacking[ssn.jobs.queue < 0] = 0
    return lacking


def of_jobs(ssn: Session, *, per_job: bool) -> Iterator[GaugeMetricFamily]:
    lacking = lacking_members(ssn)
    family = UNSCHEDULED_JOBS.family()
    family.add_metric((), int((lacking > 0).sum()))
    yield family
    if not per_job:
        return
    tasks, shares = UNSCHEDULED_TASKS.family(), JOB_SHARE.family()
    drf = _plugin(ssn, "drf")
    for job in np.flatnonzero(ssn.jobs.queue >= 0).tolist():
        key = ssn.jobs.key[job]
        if key is None:
            continue
        tasks.add_metric((str(key),), int(lacking[job]))
        if drf is not None:
            shares.add_metric((key.namespace, key.name), float(drf.shares[job]))
    yield tasks
    yield shares


def _plugin(ssn: Session, *names: str) -> Any:
    return next((plugin for plugin in ssn.plugins if plugin.name in names), None)


def of_queues(ssn: Session) -> Iterator[GaugeMetricFamily]:
    plugin = _plugin(ssn, "proportion", "capacity")
    amounts: dict[str, Any] = {
        "allocated": _by_queue(ssn, ssn.job_allocated),
        "request": _by_queue(ssn, ssn.jobs.allocated + ssn.jobs.pending),
        "capacity": ceiling(ssn.queues.capability),
    }
    if plugin is not None:
        limits = getattr(plugin, "limits", None)
        amounts |= {
            "allocated": plugin.taken,
            "inqueue": plugin.admitted,
            "deserved": limits.deserved.values if limits is not None else plugin.deserved,
            "real_capacity": limits.limit if limits is not None else plugin.limit,
        }
    for family, rows in amounts.items():
        yield from _amounts(ssn, family, rows)
    weight, share, overused = QUEUE_WEIGHT.family(), QUEUE_SHARE.family(), QUEUE_OVERUSED.family()
    for row, name in enumerate(ssn.queues.name):
        weight.add_metric((name,), ssn.queues.queue[row].spec.weight)
        if plugin is not None:
            its = float(largest_share(plugin.taken[row], plugin.divisor[row]))
            share.add_metric((name,), its)
            over = getattr(plugin, "overused", None)
            overused.add_metric((name,), bool(over(ssn, row)) if over is not None else its > 1)
    yield from (weight, share, overused)


def _by_queue(ssn: Session, amounts: IntNR) -> IntNR:
    """(J, R) -> (Q, R)."""
    total = np.zeros((len(ssn.queues), amounts.shape[1]), dtype=np.int64)
    live = np.flatnonzero(ssn.jobs.queue >= 0)
    np.add.at(total, ssn.jobs.queue[live], amounts[live])
    return total


def _amounts(ssn: Session, family: str, rows: Any) -> Iterator[GaugeMetricFamily]:
    """(Q, R) of one family. Without a limit cpu and memory show the largest number, as in the reference."""
    cpu, memory, scalar = (QUEUE_AMOUNTS[family, unit].family() for unit, _, _ in UNITS)
    for row, queue in enumerate(ssn.queues.name):
        for column, amount in enumerate(rows[row].tolist()):
            amount = min(amount, sys.float_info.max)
            if column == CPU:
                cpu.add_metric((queue,), amount)
            elif column == MEMORY:
                memory.add_metric((queue,), amount)
            elif amount < sys.float_info.max:
                scalar.add_metric((queue, ssn.axis.names[column]), amount)
    yield from (cpu, memory, scalar)
