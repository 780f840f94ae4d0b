"""Session: one pass of the scheduler over a snapshot. Plugins and actions read it; only a Statement changes it.

It overlays the frozen snapshot with working copies of what a session moves: task states, node sums, job sums. The answers
of the plugins are combined here, as extension_points.py says. schedule.py runs the whole: open, actions, close."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from extender.api import meta, queue
from extender.api.meta import Key, Time
from extender.api.node import Service
from extender.api.operations import Operation, Patch, PatchStatus
from extender.core import status as st
from extender.core.axis import BoolN, IntNR, IntR
from extender.core.conf import Conf
from extender.core.extension_points import POINTS
from extender.core.placement import Plan
from extender.core.plugin import Change, NotAdmitted, Plugin, Refused, TaskClass, Vote
from extender.core.reasons import FitErrors
from extender.core.reservations import Reservations
from extender.core.snapshot import Snapshot
from extender.core.statement import Statement

Hook = Callable[..., Any]


class Session:
    """`now` in seconds since the epoch; `rng` breaks ties where the configuration asks for it."""

    def __init__(
        self, snapshot: Snapshot, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations | None = None
    ) -> None:
        self.snapshot, self.conf, self.now, self.rng = snapshot, conf, now, rng
        self.reservations = reservations if reservations is not None else Reservations()
        self.id = f"{int(now * 1000):x}"
        self.axis = snapshot.axis
        self.nodes, self.tasks, self.jobs, self.queues = snapshot.nodes, snapshot.tasks, snapshot.jobs, snapshot.queues
        self.facts = snapshot.facts

        self.task_status = snapshot.tasks.status.copy()
        self.task_node = snapshot.tasks.node.copy()
        self.allocatable = snapshot.nodes.allocatable
        self.used = snapshot.nodes.used.copy(order="K")
        self.requested = self.used.copy(order="K")  # as kube-scheduler counts: with pipelined, without evicted tasks
        self.nonzero = snapshot.nodes.nonzero.copy(order="K")
        self.releasing = snapshot.nodes.releasing.copy(order="K")
        self.idle = self.allocatable - self.used
        self.future = self.idle + self.releasing  # idle + releasing - pipelined
        self.job_counts = snapshot.jobs.counts.copy()
        self.job_allocated = snapshot.jobs.allocated.copy()
        self.job_pending_best_effort = snapshot.jobs.pending_best_effort.copy()
        self.job_phase = snapshot.jobs.phase.copy()
        self.total = self.allocatable[self.nodes.exists].sum(axis=0)  # (R,) of the cluster

        self.touched: list[int] = []  # node rows in the order in which this session changed them
        self.operations: list[Operation] = []
        self.fit_errors: dict[int, FitErrors] = {}  # task -> why it found no node, last attempt
        self.over_limit: dict[int, IntR] = {}  # job -> request that its queue may not take now
        self.last_transaction: dict[int, tuple[int, int, bool]] = {}  # task -> status, node, after an eviction
        self.promised_by_eviction: set[int] = set()  # pipelined tasks for which something was evicted
        self.enqueue_refusals: dict[int, list[NotAdmitted]] = defaultdict(list)  # job -> why it was not admitted
        self.evicted_for: dict[int, int] = {}  # victim -> the task it made room for

        self._classes: dict[Hashable, TaskClass] = {}
        self._class_of: dict[int, TaskClass] = {}
        self._plans: dict[int, Plan] = {}
        self.only_on: dict[int, BoolN] = {}  # class -> the only nodes that it may take; to be set before its first plan
        self._label_keys = snapshot.selector_keys | _service_keys(snapshot)
        self.plugins: list[Plugin[Any]] = []
        self.hooks: dict[str, list[list[tuple[str, Hook]]]] = {point.hook: [] for point in POINTS}
        self._register()
        self._flat: dict[str, list[Hook]] = {
            hook: [method for tier in tiers for _, method in tier] for hook, tiers in self.hooks.items()
        }
        # Nodes other schedulers' shards own are no candidates in hard sharding mode.
        self.candidates: BoolN = snapshot.nodes.exists.copy()
        if conf.shard is not None and conf.shard.mode == "hard":
            ours = np.zeros(len(self.candidates), dtype=bool)
            ours[[row for name, row in self.nodes.rows.items() if name in conf.shard.nodes]] = True
            self.candidates &= ours
        for plugin in self.plugins:
            plugin.open(self)

    def _register(self) -> None:
        """A plugin that stands in several places answers in each of them, with the arguments of the last one, as upstream."""
        made = {entry.name: entry.make() for tier in self.conf.tiers for entry in tier}
        self.plugins = list(made.values())
        for tier in self.conf.tiers:
            for hooks in self.hooks.values():
                hooks.append([])
            for entry in tier:
                plugin = made[entry.name]
                for point in POINTS:
                    method = getattr(plugin, point.hook, None)
                    if method is not None and (not point.switch or entry.switches[point.switch]):
                        self.hooks[point.hook][-1].append((entry.name, method))

    def close(self) -> None:
        for plugin in self.plugins:
            plugin.close(self)

    # --- finding things -----------------------------------------------------------------------------------------------

    def job_of(self, task: int) -> int:
        return int(self.tasks.job[task])

    def queue_of(self, job: int) -> int:
        """Row of the job's queue, -1 where it is unknown."""
        return int(self.jobs.queue[job]) if job >= 0 else -1

    def task_key(self, task: int) -> Key:
        key = self.tasks.key[task]
        assert key is not None
        return key

    def _uid(self, task: int) -> str:
        pod = self.tasks.pod[task]
        return pod.metadata.uid if pod is not None else ""

    def job_key(self, job: int) -> Key:
        key = self.jobs.key[job]
        assert key is not None
        return key

    def live_jobs(self) -> list[int]:
        """Jobs with a PodGroup and a known queue: the only ones a session sees."""
        groups, queues = self.jobs.group, self.jobs.queue
        return [job for job in self.jobs.rows.values() if groups[job] is not None and queues[job] >= 0]

    def pending_tasks(self, job: int) -> list[int]:
        """Tasks of the job that are Pending now."""
        return [task for task in self.jobs.pending_tasks[job] if self.task_status[task] == st.PENDING]

    def shape_of(self, task: int) -> Any:
        return self.snapshot.shapes[self.tasks.shape[task]]

    def request(self, task: int) -> IntR:
        """(R,) of one task, 1 in the pods column."""
        return self.shape_of(task).request  # type: ignore[no-any-return]

    @cached_property
    def shape_requests(self) -> IntNR:
        """(S, R) what a task of each shape asks, 1 in the pods column: for sums over many tasks."""
        requests = np.zeros((len(self.snapshot.shapes), self.future.shape[1]), dtype=np.int64)
        for shape in self.snapshot.shapes:
            if shape is not None:
                requests[shape.id, : len(shape.request)] = shape.request
        return requests

    def task_class(self, task: int) -> TaskClass:
        """The class of a task: tasks of one class cannot be told apart when it comes to nodes."""
        known = self._class_of.get(task)
        if known is not None:
            return known
        pod = self.tasks.pod[task]
        assert pod is not None
        labels = pod.metadata.labels or {}
        looked_at = tuple(sorted((k, v) for k, v in labels.items() if k in self._label_keys)) if self._label_keys else ()
        extra = tuple(distinguish(self, task) for distinguish in self._flat["distinguish"])
        code = (int(self.tasks.shape[task]), pod.metadata.namespace, looked_at, extra)
        cls = self._classes.get(code)
        if cls is None:
            cls = self._classes[code] = TaskClass(len(self._classes), task, self.shape_of(task), pod)
        self._class_of[task] = cls
        return cls

    def plan(self, cls: TaskClass) -> Plan:
        """Masks and scores of the class for all nodes, kept while the session runs."""
        plan = self._plans.get(cls.id)
        if plan is None:
            plan = self._plans[cls.id] = Plan(self, cls)
        return plan

    def statement(self) -> Statement:
        return Statement(self)

    def ready_count(self, job: int) -> int:
        return int(self.job_counts[job][st.IS_READY].sum())

    # --- order --------------------------------------------------------------------------------------------------------

    def job_order(self, job: int) -> tuple[Any, ...]:
        """Sort key; the lower goes first. Ends in creation time and name, so that it is total."""
        key = self.job_key(job)
        return (*(order(self, job) for order in self._flat["job_order"]), float(self.jobs.created[job]), key)

    def job_plugin_order(self, job: int) -> tuple[Any, ...]:
        """The plugins' part of job_order, for victims, where age does not count."""
        return tuple(order(self, job) for order in self._flat["job_order"])

    def queue_order(self, row: int) -> tuple[Any, ...]:
        keys = (order(self, row) for order in self._flat["queue_order"])
        return (*keys, float(self.queues.created[row]), self.queues.name[row])

    def task_order(self, task: int) -> tuple[Any, ...]:
        key = self.task_key(task)
        uid = self._uid(task)
        return (*self.task_plugin_order(task), _index(key.name), float(self.tasks.created[task]), uid, key)

    def task_plugin_order(self, task: int) -> tuple[Any, ...]:
        """The plugins' part of task_order, where neither index nor age count."""
        return tuple(order(self, task) for order in self._flat["task_order"])

    def victim_queue_order(self, row: int, preemptor_queue: int) -> tuple[Any, ...]:
        return tuple(order(self, row, preemptor_queue) for order in self._flat["victim_queue_order"])

    # --- queues -------------------------------------------------------------------------------------------------------

    def overused(self, row: int) -> bool:
        return any(hook(self, row) for hook in self._flat["overused"])

    def preemptive(self, row: int, request: IntR) -> bool:
        return all(hook(self, row, request) for hook in self._flat["preemptive"])

    def allocatable_tasks(self, row: int, tasks: Sequence[int]) -> int:
        """How many of the tasks, which ask the same, the queue may take now."""
        count, request = len(tasks), self.request(tasks[0])
        for hook in self._flat["allocatable"]:
            count = min(count, hook(self, row, request, count))
            if count <= 0:
                return 0
        return min((hook(self, row, tasks[:count]) for hook in self._flat["allocatable_claims"]), default=count)

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def job_valid(self, job: int) -> Refused | None:
        return next((refused for hook in self._flat["job_valid"] if (refused := hook(self, job)) is not None), None)

    def job_ready(self, job: int) -> bool:
        return all(hook(self, job) for hook in self._flat["job_ready"])

    def tasks_to_ready(self, job: int) -> int:
        """A lower bound of the tasks that must still take nodes before job_ready can hold; at least 1."""
        wants = [p.tasks_to_ready(self, job) for p in self.plugins if hasattr(p, "tasks_to_ready")]
        return int(max([1, *wants]))

    def job_pipelined(self, job: int) -> bool:
        return self._vote("job_pipelined", job)

    def job_enqueueable(self, job: int) -> bool:
        return self._vote("job_enqueueable", job)

    def _vote(self, hook: str, job: int) -> bool:
        for tier in self.hooks[hook]:
            permitted = False
            for _, method in tier:
                vote = method(self, job)
                if vote == Vote.REJECT:
                    return False
                permitted = permitted or vote == Vote.PERMIT
            if permitted:
                return True
        return True

    def job_enqueued(self, job: int) -> None:
        for hook in self._flat["job_enqueued"]:
            hook(self, job)

    def job_starving(self, job: int) -> bool:
        for tier in self.hooks["job_starving"]:
            if tier:
                return all(method(self, job) for _, method in tier)
        return False

    # --- victims ------------------------------------------------------------------------------------------------------

    def victims(self, hook: str, task: int, candidates: Sequence[int]) -> list[int]:
        """`hook` is preemptable or reclaimable. The first tier whose plugins agree on any victim decides."""
        for tier in self.hooks[hook]:
            agreed: list[int] | None = None
            for _, method in tier:
                chosen = method(self, task, candidates)
                if chosen is None:
                    continue
                if agreed is None:
                    agreed = list(chosen)
                else:
                    also = set(chosen)
                    agreed = [victim for victim in agreed if victim in also]
                if not agreed:
                    break
            if agreed:
                return agreed
        return []

    def victim_tasks(self, tasks: Sequence[int]) -> list[int]:
        for tier in self.hooks["victim_tasks"]:
            union = dict.fromkeys(victim for _, method in tier for victim in method(self, tasks))
            if union:
                return list(union)
        return []

    # --- state, changed by Statement only --------------------------------------------------------------------------------

    def set_status(self, tasks: Iterable[int], job: int, request: IntR, old: int, new: int) -> None:
        """Move tasks of one job from one state to another in the job's sums."""
        count = 0
        for task in tasks:
            self.task_status[task] = new
            count += 1
        if job < 0:
            return
        counts = self.job_counts[job]
        counts[old] -= count
        counts[new] += count
        if st.IS_ALLOCATED[old] != st.IS_ALLOCATED[new]:
            width = len(request)
            self.job_allocated[job, :width] += request * (count if st.IS_ALLOCATED[new] else -count)

    def tell(self, hook: str, job: int, tasks: Sequence[int], nodes: Sequence[int], request: IntR) -> None:
        """Tell every plugin that these tasks took nodes (`allocated`) or gave them back (`deallocated`)."""
        handlers = self._flat[hook]
        if handlers:
            change = Change(job, self.queue_of(job), tasks, nodes, request, request * len(tasks))
            for handler in handlers:
                handler(self, change)

    def before_bind(self, task: int) -> list[Patch | PatchStatus]:
        return [write for hook in self._flat["before_bind"] for write in hook(self, task)]

    def queue_is_open(self, row: int) -> bool:
        return self.queues.queue[row].status.state == queue.OPEN


def _service_keys(snapshot: Snapshot) -> frozenset[str]:
    services = snapshot.facts.get(meta.SERVICE, {}).values()
    return frozenset(key for s in services if isinstance(s, Service) for key in s.spec.selector or ())


def _index(name: str) -> int:
    """`train-worker-3` -> 3: pods of Volcano jobs go in the order of their index; other names have none."""
    parts = name.split("-")
    if len(parts) >= 3 and parts[-1].isdecimal():
        return int(parts[-1])
    return 0

