"""Task states and PodGroup phases as small integers, so that they fit in columns.

Source: volcano ed72c7c, pkg/scheduler/api/types.go; phases in the order of api/podgroup.py."""

from __future__ import annotations

import numpy as np

from extender.api import pod as pods
from extender.api import podgroup

PENDING, ALLOCATED, PIPELINED, BINDING, BOUND, RUNNING, RELEASING, SUCCEEDED, FAILED, UNKNOWN = range(10)
STATUSES = 10
STATUS_NAMES = (
    "Pending", "Allocated", "Pipelined", "Binding", "Bound", "Running", "Releasing", "Succeeded", "Failed", "Unknown",
)  # fmt: skip

ALLOCATED_SET = (ALLOCATED, BINDING, BOUND, RUNNING)  # hold a node and count as the queue's use
READY_SET = (ALLOCATED, BINDING, BOUND, RUNNING, SUCCEEDED)  # count towards minMember
SCHEDULED_SET = (BOUND, RUNNING, SUCCEEDED, FAILED)
ENDED_SET = (SUCCEEDED, FAILED)
UNBOUND_SET = (PENDING, ALLOCATED, PIPELINED)  # the cluster knows nothing of a node for them

IS_ALLOCATED = np.isin(np.arange(STATUSES), ALLOCATED_SET)
IS_READY = np.isin(np.arange(STATUSES), READY_SET)

PHASES = ("", *podgroup.PHASES)  # an absent phase means Pending
PHASE_PENDING, PHASE_INQUEUE, PHASE_RUNNING, PHASE_UNKNOWN, PHASE_COMPLETED = range(1, 6)


def status_of(pod: pods.Pod) -> int:
    """The task state that a pod shows."""
    match pod.status.phase:
        case pods.RUNNING:
            return RELEASING if pod.metadata.deletion_timestamp else RUNNING
        case pods.SUCCEEDED:
            return SUCCEEDED
        case pods.FAILED:
            return FAILED
        case pods.UNKNOWN:
            return UNKNOWN
    if pod.metadata.deletion_timestamp:
        return RELEASING
    return BOUND if pod.spec.node_name else PENDING
