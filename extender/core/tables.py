"""The mirror's tables: one row per node, task and job, in columns that a snapshot copies with memcpy.

Rows are reused after removal; a free row is all zero and its object column holds None."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.api import labels as names
from extender.api import podgroup
from extender.api.boolean import parse_bool
from extender.api.meta import Key
from extender.api.node import Node
from extender.api.pod import Pod
from extender.api.podgroup import PodGroup
from extender.core import status as st
from extender.core.axis import IntR
from extender.core.shapes import Shape

K = TypeVar("K")
_FIRST, _WIDTH = 64, 3  # rows and resources a table starts with


def _longer(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """The array with room for `rows` rows, memory order kept."""
    column_major = array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous
    grown: NDArray[Any] = np.zeros((rows, *array.shape[1:]), dtype=array.dtype, order="F" if column_major else "C")
    grown[: len(array)] = array
    return grown


def _wider(array: NDArray[Any], width: int, order: Literal["C", "F"]) -> NDArray[Any]:
    grown: NDArray[Any] = np.zeros((len(array), width), dtype=array.dtype, order=order)
    grown[:, : array.shape[1]] = array
    return grown


class _Table(Generic[K]):
    """Keys and their rows: a row that nobody has is used again, columns grow together."""

    COLUMNS: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self.rows: dict[K, int] = {}
        self._free: list[int] = []
        self._made = 0

    def _take(self, key: K) -> tuple[int, bool]:
        """(a row for the key, whether it was never used, so that the object columns must grow by one)."""
        new = not self._free
        if new:
            row, self._made = self._made, self._made + 1
            if row >= len(getattr(self, self.COLUMNS[0])):
                for column in self.COLUMNS:
                    setattr(self, column, _longer(getattr(self, column), 2 * row))
        else:
            row = self._free.pop()
        self.rows[key] = row
        return row, new

    def _give_back(self, key: K) -> None:
        self._free.append(self.rows.pop(key))


class NodeTable(_Table[str]):
    """One row per node name that was ever seen on a node or a pod. Matrices are (N, R) int64, column-major."""

    COLUMNS = ("exists", "allocatable", "used", "releasing", "nonzero")

    def __init__(self) -> None:
        super().__init__()
        self.width = width = _WIDTH
        self.name: list[str] = []
        self.node: list[Node | None] = []
        self.tasks: list[dict[int, None]] = []  # tasks on it that have not ended, in order of arrival
        self.exists = np.zeros(_FIRST, dtype=bool)
        self.allocatable = np.zeros((_FIRST, width), dtype=np.int64, order="F")
        self.used = np.zeros((_FIRST, width), dtype=np.int64, order="F")
        self.releasing = np.zeros((_FIRST, width), dtype=np.int64, order="F")
        self.nonzero = np.zeros((_FIRST, 2), dtype=np.int64, order="F")

    def row_of(self, name: str, width: int) -> int:
        """The row of a node, made as a placeholder where there is none yet."""
        row = self.rows.get(name)
        if row is not None:
            return row
        if width > self.width:
            self.widen(width)
        row, new = self._take(name)
        if new:
            self.name.append(name)
            self.node.append(None)
            self.tasks.append({})
        self.name[row] = name
        return row

    def set(self, row: int, node: Node, allocatable: IntR) -> None:
        self.node[row] = node
        self.exists[row] = True
        self.allocatable[row] = 0
        self.allocatable[row, : len(allocatable)] = allocatable

    def unset(self, row: int) -> None:
        """The node object is gone; the row stays while tasks name it."""
        self.node[row] = None
        self.exists[row] = False
        self.allocatable[row] = 0
        self.drop_if_empty(row)

    def drop_if_empty(self, row: int) -> None:
        if not self.exists[row] and not self.tasks[row] and self.rows.get(self.name[row]) == row:
            self._give_back(self.name[row])

    def account(self, row: int, task: int, shape: Shape, releasing: bool, sign: int) -> None:
        width = len(shape.request)
        self.used[row, :width] += sign * shape.request
        self.nonzero[row] += sign * shape.nonzero
        if releasing:
            self.releasing[row, :width] += sign * shape.request
        if sign > 0:
            self.tasks[row][task] = None
        else:
            self.tasks[row].pop(task, None)

    def widen(self, width: int) -> None:
        self.allocatable = _wider(self.allocatable, width, "F")
        self.used = _wider(self.used, width, "F")
        self.releasing = _wider(self.releasing, width, "F")
        self.width = width


class TaskTable(_Table[Key]):
    """One row per pod that we follow. `job` and `node` are rows or -1. `brought`: by kube-scheduler, to the extender."""

    COLUMNS = ("status", "node", "job", "shape", "priority", "created", "preemptable", "namespace", "brought")

    def __init__(self) -> None:
        super().__init__()
        self.key: list[Key | None] = []
        self.pod: list[Pod | None] = []
        self.role: list[str] = []
        self.status = np.zeros(_FIRST, dtype=np.int8)
        self.node = np.full(_FIRST, -1, dtype=np.int32)
        self.job = np.full(_FIRST, -1, dtype=np.int32)
        self.shape = np.zeros(_FIRST, dtype=np.int32)
        self.priority = np.zeros(_FIRST, dtype=np.int32)
        self.created = np.zeros(_FIRST, dtype=np.float64)
        self.preemptable = np.zeros(_FIRST, dtype=bool)
        self.namespace = np.zeros(_FIRST, dtype=np.int32)
        self.brought = np.zeros(_FIRST, dtype=bool)
        self.namespaces: dict[str, int] = {}  # in the order in which they were met

    def add(self, key: Key, pod: Pod, shape: int, status: int, node: int, job: int, *, brought: bool) -> int:
        row, new = self._take(key)
        if new:
            self.key.append(None)
            self.pod.append(None)
            self.role.append("")
        self.key[row], self.pod[row], self.role[row] = key, pod, pod.role
        self.status[row], self.node[row], self.job[row], self.shape[row] = status, node, job, shape
        self.priority[row] = task_priority(pod)
        self.created[row], self.brought[row] = pod.metadata.created, brought
        self.namespace[row] = self.namespaces.setdefault(key.namespace, len(self.namespaces))
        self.preemptable[row] = preemptable(pod)
        return row

    def remove(self, row: int) -> None:
        key = self.key[row]
        assert key is not None
        self._give_back(key)
        self.key[row], self.pod[row], self.role[row] = None, None, ""
        self.status[row], self.node[row], self.job[row], self.namespace[row] = 0, -1, -1, -1


class JobTable(_Table[Key]):
    """One row per PodGroup, or per group name that a pod of ours names. Sums are (J, R) int64 and (J, 10) by task status."""

    COLUMNS = (
        "min_available", "min_resources", "priority", "phase", "created", "allocated", "pending", "blocked", "total", "counts",
        "pending_best_effort", "shown", "shows_scheduled",
    )  # fmt: skip
    OF_GROUP = ("min_available", "min_resources", "priority", "phase", "created", "shown", "shows_scheduled")

    def __init__(self) -> None:
        super().__init__()
        self.width = width = _WIDTH
        self.key: list[Key | None] = []
        self.group: list[PodGroup | None] = []
        self.queue: list[str] = []
        self.tasks: list[dict[int, None]] = []
        self.pending_tasks: list[dict[int, None]] = []
        self.min_available = np.zeros(_FIRST, dtype=np.int64)
        self.priority = np.zeros(_FIRST, dtype=np.int64)
        self.phase = np.zeros(_FIRST, dtype=np.int8)
        self.created = np.zeros(_FIRST, dtype=np.float64)
        self.allocated = np.zeros((_FIRST, width), dtype=np.int64)
        self.pending = np.zeros((_FIRST, width), dtype=np.int64)
        self.blocked = np.zeros((_FIRST, width), dtype=np.int64)
        self.min_resources = np.zeros((_FIRST, width), dtype=np.int64)
        self.total = np.zeros((_FIRST, width), dtype=np.int64)
        self.counts = np.zeros((_FIRST, st.STATUSES), dtype=np.int64)
        self.pending_best_effort = np.zeros(_FIRST, dtype=np.int64)
        self.shown = np.zeros((_FIRST, 3), dtype=np.int64)  # running, succeeded, failed as the PodGroup's status has them
        self.shows_scheduled = np.zeros(_FIRST, dtype=bool)  # its condition Scheduled is True

    def row_of(self, key: Key, width: int) -> int:
        """The row of a job, made where there is none yet."""
        row = self.rows.get(key)
        if row is not None:
            return row
        if width > self.width:
            self.widen(width)
        row, new = self._take(key)
        if new:
            self.key.append(key)
            self.group.append(None)
            self.queue.append("")
            self.tasks.append({})
            self.pending_tasks.append({})
        self.key[row] = key
        return row

    def set(self, row: int, group: PodGroup, queue: str, priority: int, min_resources: IntR) -> None:
        self.group[row] = group
        self.min_resources[row] = min_resources
        self.queue[row] = queue
        self.min_available[row] = group.spec.min_member
        self.priority[row] = priority
        phase = group.status.phase
        self.phase[row] = st.PHASES.index(phase) if phase in podgroup.PHASES else 0
        self.created[row] = group.metadata.created
        self.shown[row] = group.status.running, group.status.succeeded, group.status.failed
        shown = group.status.conditions or ()
        self.shows_scheduled[row] = any(each.type == podgroup.SCHEDULED and each.status == "True" for each in shown)

    def unset(self, row: int) -> None:
        """The PodGroup is gone; the row stays while tasks name it."""
        self.group[row], self.queue[row] = None, ""
        for column in self.OF_GROUP:
            getattr(self, column)[row] = 0
        self.drop_if_empty(row)

    def drop_if_empty(self, row: int) -> None:
        key = self.key[row]
        if self.group[row] is None and not self.tasks[row] and key is not None:
            self._give_back(key)
            self.key[row], self.queue[row] = None, ""
            for column in self.COLUMNS:
                getattr(self, column)[row] = 0

    def account(self, row: int, task: int, shape: Shape, status: int, sign: int) -> None:
        width = len(shape.request)
        change = sign * shape.request
        self.counts[row, status] += sign
        self.total[row, :width] += change
        if st.IS_ALLOCATED[status]:
            self.allocated[row, :width] += change
        if status == st.PENDING:
            self.pending[row, :width] += change
            self.pending_best_effort[row] += sign * shape.best_effort
            if shape.blocked:
                self.blocked[row, :width] += change
        if sign > 0:
            self.tasks[row][task] = None
            if status == st.PENDING:
                self.pending_tasks[row][task] = None
        else:
            self.tasks[row].pop(task, None)
            self.pending_tasks[row].pop(task, None)

    def widen(self, width: int) -> None:
        self.allocated = _wider(self.allocated, width, "C")
        self.pending = _wider(self.pending, width, "C")
        self.blocked = _wider(self.blocked, width, "C")
        self.min_resources = _wider(self.min_resources, width, "C")
        self.total = _wider(self.total, width, "C")
        self.width = width


def task_priority(pod: Pod) -> int:
    """Annotation volcano.sh/task-priority, else spec.priority, else 1."""
    text = pod.metadata.annotation(names.TASK_PRIORITY)
    if text is not None:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is not None and -(2**31) <= value < 2**31:
            return value
    return pod.spec.priority if pod.spec.priority is not None else 1


def preemptable(pod: Pod) -> bool:
    """Annotation volcano.sh/preemptable, else the label; true where there is neither, false where it cannot be read."""
    annotation = pod.metadata.annotation(names.PREEMPTABLE)
    text = annotation if annotation is not None else pod.metadata.label(names.PREEMPTABLE)
    return True if text is None else bool(parse_bool(text))
