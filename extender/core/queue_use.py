"""What queues and the queues below them hold at the end of a session, and status.allocated where a queue shows something else.

Source: volcano ed72c7c, pkg/scheduler/framework/session.go, updateQueueStatus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from extender.api import queue
from extender.api.claim import ResourceClaim
from extender.api.meta import QUEUE, Key
from extender.api.operations import PatchStatus
from extender.api.quantity import canonical, format_nanos
from extender.core.axis import CPU, MEMORY, IntR
from extender.core.dra import quota
from extender.core.session import Session


def write_queue_use(ssn: Session) -> None:
    """status.allocated of each queue and its ancestors, where it differs from what the queue shows."""
    used, devices = queue_use(ssn), _device_use(ssn)
    for row, object_ in enumerate(ssn.queues.queue):
        shown = object_.status.allocated
        now = _quantities(ssn, used[row]) | devices.get(row, {})
        if shown is None and not used[row].any() and row not in devices:
            continue
        if shown is not None and _same(ssn, shown, used[row]) and _devices_in(shown) == devices.get(row, {}):
            continue
        gone = {name: None for name in shown or () if name not in now}
        key = Key("", object_.metadata.name)
        ssn.operations.append(PatchStatus(QUEUE, key, {"status": {"allocated": {**gone, **now}}}, uid=object_.metadata.uid))


def queue_use(ssn: Session) -> NDArray[np.int64]:
    """(Q, R) what the tasks of each queue and of the queues below it hold now."""
    used = np.zeros((len(ssn.queues), ssn.job_allocated.shape[1]), dtype=np.int64)
    rows = np.flatnonzero(ssn.jobs.queue >= 0)
    np.add.at(used, ssn.jobs.queue[rows], ssn.job_allocated[rows])
    own = used.copy()
    for row in range(len(ssn.queues)):
        for ancestor in _ancestors(ssn, row):
            used[ancestor] += own[row]
    return used


def _device_use(ssn: Session) -> dict[int, dict[str, str]]:
    """Queue -> what its tasks, and those of the queues below it, hold by claim; a claim counts once in each queue."""
    held: dict[int, dict[Key, ResourceClaim]] = {}
    for task in quota.holding(ssn):
        row, pod = ssn.queue_of(ssn.job_of(task)), ssn.tasks.pod[task]
        if row >= 0 and pod is not None:
            claims = quota.claims_of(pod, ssn.facts)
            for queue_row in (row, *_ancestors(ssn, row)) if claims else ():
                held.setdefault(queue_row, {}).update(claims)
    return {
        row: {name: format_nanos(amount) for name, amount in sum(counts, Counter()).items()}
        for row, claims in held.items()
        if any(counts := [quota.counted(claim, consumable=True) for claim in claims.values()])
    }


def _devices_in(shown: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: canonical(amount) for name, amount in shown.items() if quota.is_about_devices(name)}


def _ancestors(ssn: Session, row: int) -> list[int]:
    path: list[int] = []
    name = ssn.queues.name[row]
    while name != queue.ROOT:
        name = ssn.queues.queue[ssn.queues.rows[name]].spec.parent or queue.ROOT
        parent = ssn.queues.rows.get(name)
        if parent is None or parent in path or parent == row:
            break
        path.append(parent)
    return path


def _quantities(ssn: Session, amounts: IntR) -> dict[str, str]:
    return {
        name: ssn.axis.text(i, float(amounts[i]))
        for i, name in enumerate(ssn.axis.names[: len(amounts)])
        if amounts[i] or i in (CPU, MEMORY)
    }


def _same(ssn: Session, shown: Mapping[str, str | int | float], amounts: IntR) -> bool:
    listed = {name: amount for name, amount in shown.items() if not quota.is_about_devices(name)}
    return bool((ssn.axis.quantities(listed)[: len(amounts)] == amounts).all())
