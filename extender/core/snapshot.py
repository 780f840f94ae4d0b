"""Snapshot: what one session sees. Arrays are copies and read-only; object columns are shared with the mirror, which does
not move while a session runs (one lock, or one thread, drives both).

Building one costs a few memory copies, whatever the cluster's age: nothing is rebuilt from objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.api.meta import Key, Kind
from extender.api.node import Node
from extender.api.pod import Pod
from extender.api.podgroup import PodGroup
from extender.api.queue import Queue
from extender.api.views import View
from extender.core.axis import Amounts, Axis, BoolN, IntNR
from extender.core.columns import LabelColumns
from extender.core.mirror import Mirror
from extender.core.queue_facts import QueueFacts, in_order, stacked
from extender.core.shapes import Shape
from extender.core.traits import NodeTraits


@dataclass(frozen=True, slots=True, eq=False)
class Nodes:
    """N rows; rows that do not exist (placeholders, freed) have no allocatable and are never candidates."""

    name: list[str]
    node: list[Node | None]
    rows: Mapping[str, int]
    tasks: list[dict[int, None]]  # per node: tasks on it that have not ended
    exists: BoolN
    allocatable: IntNR
    used: IntNR  # everything on the node, releasing tasks included
    releasing: IntNR
    nonzero: NDArray[np.int64]  # (N, 2) used cpu and memory with kube-scheduler's defaults for empty requests
    labels: LabelColumns
    traits: NodeTraits

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """T rows. `node` and `job` are rows or -1, `shape` an id in Snapshot.shapes. Free rows have pod None."""

    key: list[Key | None]
    pod: list[Pod | None]
    role: list[str]
    rows: Mapping[Key, int]
    status: NDArray[np.int8]
    node: NDArray[np.int32]
    job: NDArray[np.int32]
    shape: NDArray[np.int32]
    priority: NDArray[np.int32]
    created: NDArray[np.float64]
    preemptable: BoolN
    brought: BoolN  # by kube-scheduler to the extender: no session of the loop places them
    namespace: NDArray[np.int32]  # number of the namespace in `namespaces`
    namespaces: Mapping[str, int]
    labels: LabelColumns

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class Jobs:
    """J rows. `queue` is a row of Queues or -1; group None: pods name a PodGroup that does not exist."""

    key: list[Key | None]
    group: list[PodGroup | None]
    rows: Mapping[Key, int]
    queue_name: list[str]
    queue: NDArray[np.int32]
    tasks: list[dict[int, None]]
    pending_tasks: list[dict[int, None]]
    min_available: NDArray[np.int64]
    min_resources: IntNR  # (J, R) spec.minResources, 0 where it names nothing
    priority: NDArray[np.int64]
    phase: NDArray[np.int8]
    created: NDArray[np.float64]
    allocated: IntNR  # (J, R) of tasks in the Allocated set
    pending: IntNR  # (J, R) of Pending tasks
    blocked: IntNR  # (J, R) of Pending tasks that a foreign scheduling gate holds back
    total: IntNR  # (J, R) of all tasks
    counts: IntNR  # (J, 10) tasks by status
    pending_best_effort: NDArray[np.int64]
    shown: IntNR  # (J, 3) running, succeeded, failed as the PodGroup's status has them
    shows_scheduled: BoolN  # its condition Scheduled is True

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True, eq=False)
class Queues:
    """Q rows, in order of creation time, then name."""

    name: list[str]
    queue: list[Queue]
    rows: Mapping[str, int]
    created: NDArray[np.float64]
    capability: Amounts  # (Q, R) spec.capability, spec.deserved and spec.guarantee.resource, and what they name
    deserved: Amounts
    guarantee: Amounts

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    axis: Axis
    nodes: Nodes
    tasks: Tasks
    jobs: Jobs
    queues: Queues
    shapes: list[Shape | None]
    selector_keys: frozenset[str]  # label keys that some pod affinity term or spread constraint looks at
    facts: Mapping[Kind, Mapping[Key, View]]  # followed.py

    @staticmethod
    def build(mirror: Mirror) -> Snapshot:
        """Copy the mirror's columns. O(N·R + T + J·R) bytes, no loop over objects except the jobs' queue names."""
        n, t, j = len(mirror.nodes.name), len(mirror.tasks.key), len(mirror.jobs.key)
        queues = _queues(mirror.queues, len(mirror.axis))
        node, task, job = mirror.nodes, mirror.tasks, mirror.jobs
        rows = queues.rows
        return Snapshot(
            axis=mirror.axis,
            nodes=Nodes(
                name=node.name, node=node.node, rows=node.rows, tasks=node.tasks,
                exists=_copy(node.exists, n), allocatable=_copy(node.allocatable, n), used=_copy(node.used, n),
                releasing=_copy(node.releasing, n), nonzero=_copy(node.nonzero, n), labels=mirror.node_labels,
                traits=mirror.node_traits,
            ),
            tasks=Tasks(
                key=task.key, pod=task.pod, role=task.role, rows=task.rows,
                status=_copy(task.status, t), node=_copy(task.node, t), job=_copy(task.job, t), shape=_copy(task.shape, t),
                priority=_copy(task.priority, t), created=_copy(task.created, t), preemptable=_copy(task.preemptable, t),
                brought=_copy(task.brought, t),
                namespace=_copy(task.namespace, t), namespaces=task.namespaces, labels=mirror.task_labels,
            ),
            jobs=Jobs(
                key=job.key, group=job.group, rows=job.rows, queue_name=job.queue,
                queue=np.fromiter((rows.get(name, -1) for name in job.queue), dtype=np.int32, count=j),
                tasks=job.tasks, pending_tasks=job.pending_tasks,
                min_available=_copy(job.min_available, j), priority=_copy(job.priority, j), phase=_copy(job.phase, j),
                created=_copy(job.created, j), allocated=_copy(job.allocated, j), pending=_copy(job.pending, j),
                blocked=_copy(job.blocked, j), min_resources=_copy(job.min_resources, j),
                total=_copy(job.total, j), counts=_copy(job.counts, j),
                pending_best_effort=_copy(job.pending_best_effort, j),
                shown=_copy(job.shown, j), shows_scheduled=_copy(job.shows_scheduled, j),
            ),
            queues=queues,
            shapes=mirror.shapes.by_id,
            selector_keys=frozenset(mirror.selector_keys),
            facts=mirror.facts,
        )  # fmt: skip


def _copy(column: NDArray[Any], rows: int) -> NDArray[Any]:
    copied = column[:rows].copy(order="K")
    copied.flags.writeable = False
    return copied


def _queues(by_name: Mapping[str, QueueFacts], width: int) -> Queues:
    facts = in_order(by_name)
    names = [fact.queue.metadata.name for fact in facts]
    return Queues(
        name=names,
        queue=[fact.queue for fact in facts],
        rows={name: i for i, name in enumerate(names)},
        created=np.array([fact.created for fact in facts], dtype=np.float64),
        capability=stacked([fact.capability for fact in facts], width),
        deserved=stacked([fact.deserved for fact in facts], width),
        guarantee=stacked([fact.guarantee for fact in facts], width),
    )
