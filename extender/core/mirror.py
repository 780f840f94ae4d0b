"""The mirror: watch events -> columns, one method per event. Cost follows change: an event touches one row of each table.

It keeps what a session needs ready to copy: node matrices, one row per task, running sums per job. It is pure: whoever
feeds it (loop.py, verbs) does the watching. Rows of tasks, jobs and nodes are reused; a freed row is all zero.

An object that cannot be read is kept out and remembered in `unreadable`; it never stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from extender.api import meta, queue
from extender.api.errors import InvalidObject
from extender.api.labels import SCHEDULERS
from extender.api.meta import Json, Key, Kind
from extender.api.node import Node, PriorityClass
from extender.api.operations import Bind, Evict, Operation, PatchStatus
from extender.api.pod import Pod
from extender.api.pod_requests import sized
from extender.api.podgroup import PodGroup
from extender.api.queue import Queue
from extender.api.views import View, view
from extender.core import status as st
from extender.core.assumed_facts import AssumedFacts
from extender.core.assuming import is_news, with_status
from extender.core.axis import Axis, keep_freed_arrays
from extender.core.columns import LabelColumns
from extender.core.followed import FACTS
from extender.core.queue_facts import QueueFacts
from extender.core.shapes import Shape, Shapes
from extender.core.tables import JobTable, NodeTable, TaskTable
from extender.core.traits import NodeTraits


class Mirror:
    """Local state of the cluster. Not thread-safe: the driver holds a lock.

    `scheduler_names`: whose pending pods our sessions place; `brought`: whose pods kube-scheduler brings one by one to the
    extender. Both are ours, and count in one and the same books."""

    def __init__(self, scheduler_names: Iterable[str] = SCHEDULERS, default_queue: str = queue.DEFAULT, *,
                 brought: Iterable[str] = ()) -> None:  # fmt: skip
        keep_freed_arrays()
        self.scheduler_names, self.brought = frozenset(scheduler_names), frozenset(brought)
        self._ours = self.scheduler_names | self.brought
        self.default_queue = default_queue
        self.axis = Axis()
        self.shapes = Shapes(self.axis)
        self.nodes = NodeTable()
        self.tasks = TaskTable()
        self.jobs = JobTable()
        self.queues: dict[str, QueueFacts] = {}
        self.facts: dict[Kind, dict[Key, View]] = {kind: {} for kind in FACTS}
        self._assumed = AssumedFacts(self.facts)
        self.node_labels = LabelColumns()
        self.node_traits = NodeTraits()
        self.task_labels = LabelColumns()
        self.selector_keys: dict[str, int] = {}  # label key -> number of shapes that look at it
        self.unreadable: dict[tuple[Kind, Key], InvalidObject] = {}
        self.changes = 0

    # --- the way in ---------------------------------------------------------------------------------------------------

    def apply(self, kind: Kind, event: str, obj: Json) -> None:
        """One watch event: `event` is ADDED, MODIFIED or DELETED. Kinds we do not follow, and what is no news, are ignored."""
        key = meta.key_of(obj)
        if event == "DELETED":
            self.changes += 1
            self.unreadable.pop((kind, key), None)
            self._deleted(kind, key)
            return
        try:
            self._changed(kind, key, obj)
        except InvalidObject as error:
            self.changes += 1
            self._deleted(kind, key)
            self.unreadable[kind, key] = error
        else:
            self.unreadable.pop((kind, key), None)

    def _changed(self, kind: Kind, key: Key, obj: Json) -> None:
        cls = FACTS.get(kind) or (_CHANGED[kind][0] if kind in _CHANGED else None)
        if cls is None:
            return
        new = view(cls, obj)
        old = self._last_seen(kind, key)
        if kind in AssumedFacts.KINDS:
            new = self._assumed.seen(kind, key, new)
        if not is_news(new, old) or (old is None and isinstance(new, Pod) and not self._concerns(new)):
            return
        self.changes += 1
        if kind in _CHANGED:
            _CHANGED[kind][1](self, key, new)
            return
        self.facts[kind][key] = new
        if kind is meta.PRIORITY_CLASS:
            self._priorities_changed()

    def _last_seen(self, kind: Kind, key: Key) -> View | None:
        """The object as it was seen last, or as our own writes will have left it."""
        if kind is meta.POD:
            row = self.tasks.rows.get(key)
            return self.tasks.pod[row] if row is not None else None
        if kind is meta.POD_GROUP:
            row = self.jobs.rows.get(key)
            return self.jobs.group[row] if row is not None else None
        if kind is meta.NODE:
            row = self.nodes.rows.get(key.name)
            return self.nodes.node[row] if row is not None else None
        if kind is meta.QUEUE:
            return self.queues[key.name].queue if key.name in self.queues else None
        return self.facts[kind].get(key)

    def _deleted(self, kind: Kind, key: Key) -> None:
        if kind in FACTS:
            if kind in AssumedFacts.KINDS:
                self._assumed.gone(kind, key)
            if self.facts[kind].pop(key, None) is not None and kind is meta.PRIORITY_CLASS:
                self._priorities_changed()
        elif kind in _DELETED:
            _DELETED[kind](self, key)

    # --- nodes ----------------------------------------------------------------------------------------------------------

    def node_changed(self, key: Key, node: Node) -> None:
        """A node came or changed. Its sums stay: they are kept for placeholders too."""
        if node.status.allocatable is None:
            raise InvalidObject("a node needs its allocatable resources", path="status.allocatable", subject=f"Node {key}")
        self._axis_grows(node.status.allocatable)
        row = self.nodes.row_of(key.name, len(self.axis))
        self.nodes.set(row, node, self.axis.quantities(node.status.allocatable, "status.allocatable"))
        self.node_labels.set(row, node.metadata.labels or {})
        self.node_traits.set(row, node)

    def node_deleted(self, key: Key) -> None:
        """The node is gone; tasks that still name it keep a placeholder row."""
        row = self.nodes.rows.get(key.name)
        if row is not None:
            self.nodes.unset(row)
            self.node_labels.set(row, None)
            self.node_traits.set(row, None)

    # --- pods -----------------------------------------------------------------------------------------------------------

    def _concerns(self, pod: Pod) -> bool:
        """Ours are followed from the start, others once they are on a node."""
        return bool(pod.spec.node_name) or pod.spec.scheduler_name in self._ours

    def pod_changed(self, key: Key, pod: Pod) -> None:
        """A pod came or changed."""
        row = self.tasks.rows.get(key)
        if not self._concerns(pod):
            if row is not None:
                self._drop_task(row)
            return
        ours = pod.spec.scheduler_name in self._ours
        status = st.status_of(pod)
        if row is not None:
            old = self.tasks.pod[row]
            assert old is not None
            same = old.metadata.uid == pod.metadata.uid
            assumed = self.tasks.status[row]
            if same and assumed == st.BINDING and status == st.PENDING:
                return  # we have assumed its binding; what the watch shows is older than that
            if same and assumed == st.RELEASING and st.status_of(old) != st.RELEASING and status in (st.BOUND, st.RUNNING):
                return  # likewise its eviction
            self._drop_task(row)
        self._add_task(key, pod, status, ours)

    def _add_task(self, key: Key, pod: Pod, status: int, ours: bool) -> None:
        shape = self.shapes.of(sized(pod), key)
        self._axis_widen()
        if shape.users == 0:
            for label in shape.selector_keys:
                self.selector_keys[label] = self.selector_keys.get(label, 0) + 1
        shape.users += 1
        spec = msgspec.structs.replace(
            shape.spec,
            node_name=pod.spec.node_name,
            scheduler_name=pod.spec.scheduler_name,
            priority=pod.spec.priority,
            priority_class_name=pod.spec.priority_class_name,
        )
        pod = msgspec.structs.replace(pod, spec=spec)
        held = spec.node_name if status not in st.ENDED_SET else ""  # what has ended holds nothing of its node
        node = self.nodes.row_of(held, len(self.axis)) if held else -1
        job = self.jobs.row_of(Key(key.namespace, pod.group), len(self.axis)) if pod.group and ours else -1
        row = self.tasks.add(key, pod, shape.id, status, node, job, brought=spec.scheduler_name in self.brought)
        self.task_labels.set(row, pod.metadata.labels or {})
        self._account(row, shape, +1)

    def pod_deleted(self, key: Key) -> None:
        row = self.tasks.rows.get(key)
        if row is not None:
            self._drop_task(row)

    def _drop_task(self, row: int) -> None:
        shape = self._shape(row)
        self._account(row, shape, -1)
        job, node = int(self.tasks.job[row]), int(self.tasks.node[row])
        self.tasks.remove(row)
        self.task_labels.set(row, None)
        self.shapes.release(shape)
        if shape.users == 0:
            for label in shape.selector_keys:
                self.selector_keys[label] -= 1
                if not self.selector_keys[label]:
                    del self.selector_keys[label]
        if job >= 0:
            self.jobs.drop_if_empty(job)
        if node >= 0:
            self.nodes.drop_if_empty(node)

    def _shape(self, row: int) -> Shape:
        shape = self.shapes.by_id[int(self.tasks.shape[row])]
        assert shape is not None
        return shape

    def _account(self, row: int, shape: Shape, sign: int) -> None:
        """Add the task to (or take it from) the sums of its node and job."""
        status, node, job = int(self.tasks.status[row]), int(self.tasks.node[row]), int(self.tasks.job[row])
        if node >= 0:
            self.nodes.account(node, row, shape, status == st.RELEASING, sign)
        if job >= 0:
            self.jobs.account(job, row, shape, status, sign)

    # --- jobs and queues ----------------------------------------------------------------------------------------------

    def group_changed(self, key: Key, group: PodGroup) -> None:
        self._axis_grows(group.spec.min_resources or {})
        row = self.jobs.row_of(key, len(self.axis))
        least = self.axis.quantities(group.spec.min_resources, "spec.minResources")
        self.jobs.set(row, group, group.spec.queue or self.default_queue, self._job_priority(group), least)

    def group_deleted(self, key: Key) -> None:
        row = self.jobs.rows.get(key)
        if row is not None:
            self.jobs.unset(row)

    def queue_changed(self, key: Key, changed: Queue) -> None:
        for listed in (changed.spec.capability, changed.spec.deserved, changed.spec.guarantee.resource):
            self._axis_grows(listed or {})
        self.queues[key.name] = QueueFacts.of(changed, self.axis)

    def queue_deleted(self, key: Key) -> None:
        self.queues.pop(key.name, None)

    def _job_priority(self, group: PodGroup) -> int:
        classes = self.facts[meta.PRIORITY_CLASS]
        named = classes.get(Key("", group.spec.priority_class_name))
        if isinstance(named, PriorityClass):
            return named.value
        if group.spec.priority_class_name in _SYSTEM_PRIORITIES:
            return _SYSTEM_PRIORITIES[group.spec.priority_class_name]
        return next((c.value for c in classes.values() if isinstance(c, PriorityClass) and c.global_default), 0)

    def _priorities_changed(self) -> None:
        for row in self.jobs.rows.values():
            group = self.jobs.group[row]
            if group is not None:
                self.jobs.priority[row] = self._job_priority(group)

    # --- what we have decided and the watch has not shown yet -----------------------------------------------------------

    def assume(self, operations: Iterable[Operation]) -> None:
        """Take what we write as done until the watch confirms it or `forget` takes it back."""
        for operation in operations:
            match operation:
                case Bind(pod=key, node=node, before=writes):
                    for write in writes:
                        self._assumed.assume(write)
                    self._move(key, st.BINDING, self.nodes.row_of(node, len(self.axis)))
                case Evict(pod=key):
                    row = self.tasks.rows.get(key)
                    if row is not None:
                        self._move(key, st.RELEASING, int(self.tasks.node[row]))
                case PatchStatus():
                    self._assume_status(operation)

    def _assume_status(self, write: PatchStatus) -> None:
        seen = self._last_seen(write.kind, write.key) if write.kind in _CHANGED else None
        if isinstance(seen, PodGroup | Queue | Pod) and seen.metadata.uid == write.uid:
            after = with_status(seen, write.patch)
            if isinstance(after, PodGroup):
                if "phase" in write.patch["status"]:
                    self.changes += 1  # admission counts a group by its phase
                self.group_changed(write.key, after)
            elif isinstance(after, Queue):
                self.queue_changed(write.key, after)
            else:
                self.tasks.pod[self.tasks.rows[write.key]] = after

    def assumes(self, bind: Bind) -> bool:
        """Is the binding assumed, and has the watch not confirmed it yet?"""
        row = self.tasks.rows.get(bind.pod)
        pod = self.tasks.pod[row] if row is not None else None
        return pod is not None and pod.metadata.uid == bind.uid and self.tasks.status[row] == st.BINDING

    def forget(self, operation: Operation) -> None:
        """A write failed: the task, and its claims, are again what the watch last showed."""
        if isinstance(operation, Bind):
            for write in operation.before:
                self._assumed.forget(write)
        if isinstance(operation, Bind | Evict):
            row = self.tasks.rows.get(operation.pod)
            pod = self.tasks.pod[row] if row is not None else None
            if pod is not None:
                node = self.nodes.row_of(pod.spec.node_name, len(self.axis)) if pod.spec.node_name else -1
                self._move(operation.pod, st.status_of(pod), node)
                self.changes += 1

    def has(self, kind: Kind, key: Key) -> bool:
        return self._last_seen(kind, key) is not None

    def has_node(self, name: str) -> bool:
        row = self.nodes.rows.get(name)
        return row is not None and bool(self.nodes.exists[row])

    def _move(self, key: Key, status: int, node: int) -> None:
        row = self.tasks.rows.get(key)
        if row is None:
            return
        shape = self._shape(row)
        self._account(row, shape, -1)
        self.tasks.status[row], self.tasks.node[row] = status, node
        self._account(row, shape, +1)

    # --- widths ---------------------------------------------------------------------------------------------------------

    def _axis_grows(self, listed: Iterable[str]) -> None:
        self.axis.add(listed)
        self._axis_widen()

    def _axis_widen(self) -> None:
        if self.nodes.width < len(self.axis) or self.jobs.width < len(self.axis):
            self.shapes.widen()
            self.nodes.widen(len(self.axis))
            self.jobs.widen(len(self.axis))


_SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

_CHANGED: dict[Kind, tuple[type[View], Callable[[Mirror, Key, Any], None]]] = {
    meta.NODE: (Node, Mirror.node_changed),
    meta.POD: (Pod, Mirror.pod_changed),
    meta.POD_GROUP: (PodGroup, Mirror.group_changed),
    meta.QUEUE: (Queue, Mirror.queue_changed),
}
_DELETED: dict[Kind, Callable[[Mirror, Key], None]] = {
    meta.NODE: Mirror.node_deleted,
    meta.POD: Mirror.pod_deleted,
    meta.POD_GROUP: Mirror.group_deleted,
    meta.QUEUE: Mirror.queue_deleted,
}
