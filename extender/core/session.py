"""Session: one pass of the scheduler over a snapshot. Plugins and actions read it; only a Statement changes it.

It overlays the frozen snapshot with working copies of what a session moves: task states, node sums, job sums. What the plugins
answer is combined in answers.py. scheduling.py runs the whole: open, actions, close."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.api import meta, queue
from extender.api.meta import Time
from extender.api.node import Service
from extender.api.operations import Operation
from extender.core import status as st
from extender.core.answers import Answers
from extender.core.axis import BoolN, IntNR, IntR
from extender.core.conf import Conf
from extender.core.hyper_nodes import ROOT, HyperNode
from extender.core.placement import Plan
from extender.core.plugin import Change, NotAdmitted, TaskClass
from extender.core.reasons import FitErrors
from extender.core.reservations import Reservations
from extender.core.shapes import Shape
from extender.core.snapshot import Snapshot
from extender.core.statement import Statement
from extender.core.sub_jobs import SubJob, sub_jobs_of


class Session(Answers):
    """`now` in seconds since the epoch; `rng` breaks ties where the configuration asks for it.

    `brought`: it places the pods that kube-scheduler brings to the extender, and no others; else all but those."""

    def __init__(
        self, snapshot: Snapshot, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations | None = None,
        *, brought: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(conf)
        self.snapshot, self.now, self.rng = snapshot, now, rng
        self.reservations = reservations if reservations is not None else Reservations()
        self.id = f"{int(now * 1000):x}"
        self.axis = snapshot.axis
        self.nodes, self.tasks, self.jobs, self.queues = snapshot.nodes, snapshot.tasks, snapshot.jobs, snapshot.queues
        self.facts = snapshot.facts

        self.places: BoolN = snapshot.tasks.brought == brought  # (T,) tasks that are for this session to place
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
        self.not_evicted: dict[int, dict[str, str]] = {}  # job -> action -> why it evicted nobody for the job
        self.never_let_in: dict[Hashable, str] = {}  # what waiting.py has found out of jobs without pods
        # Tasks whose eviction was tried and taken back: scores count their node without them from then on, as in the reference.
        self.displaceable: set[int] = set()
        self.evicted_for: dict[int, int] = {}  # victim -> the task it made room for

        self._classes: dict[Hashable, TaskClass] = {}
        self._class_of: dict[int, TaskClass] = {}
        self._plans: dict[int, Plan] = {}
        self._sub_jobs: dict[int, tuple[SubJob, ...]] = {}
        self.root = HyperNode(ROOT, self.nodes.exists)
        self.only_on: dict[int, BoolN] = {}  # class -> the only nodes that it may take; to be set before its first plan
        self._label_keys = snapshot.selector_keys | _service_keys(snapshot)
        ours, soft = self._own_shard(), conf.shard is not None and conf.shard.mode == "soft"
        self.candidates: BoolN = snapshot.nodes.exists & (ours | soft)
        self.elsewhere: BoolN = snapshot.nodes.exists & ~self.candidates  # of other schedulers' shards
        self.preferred: BoolN | None = ours if soft else None  # nodes that come before all others
        for plugin in self.plugins:
            plugin.open(self)

    def close(self) -> None:
        for plugin in self.plugins:
            plugin.close(self)

    def _own_shard(self) -> BoolN:
        """(N,) nodes of our shard; all where there are no shards."""
        shard = self.conf.shard
        ours = np.full(len(self.nodes), shard is None)
        if shard is not None:
            ours[[row for name, row in self.nodes.rows.items() if name in shard.nodes]] = True
        return ours

    @property
    def moved(self) -> tuple[NDArray[Any], ...]:
        """The arrays that statements write, and the session alone."""
        return (self.task_status, self.task_node, self.used, self.requested, self.nonzero, self.releasing, self.idle, self.future,
                self.job_counts, self.job_allocated, self.job_pending_best_effort, self.job_phase, self.places,
                self.candidates, self.total)  # fmt: skip

    # --- finding things -----------------------------------------------------------------------------------------------

    def job_of(self, task: int) -> int:
        return int(self.tasks.job[task])

    def queue_of(self, job: int) -> int:
        """Row of the job's queue, -1 where it is unknown."""
        return int(self.jobs.queue[job]) if job >= 0 else -1

    def live_jobs(self) -> list[int]:
        """Jobs with a PodGroup and a known queue: the only ones a session sees."""
        groups, queues = self.jobs.group, self.jobs.queue
        return [job for job in self.jobs.rows.values() if groups[job] is not None and queues[job] >= 0]

    def pending_tasks(self, job: int) -> list[int]:
        """Tasks of the job that are Pending now, and for this session to place."""
        return [task for task in self.jobs.pending_tasks[job] if self.task_status[task] == st.PENDING and self.places[task]]

    def shape_of(self, task: int) -> Shape:
        shape: Shape | None = self.snapshot.shapes[self.tasks.shape[task]]
        assert shape is not None
        return shape

    def request(self, task: int) -> IntR:
        """(R,) of one task, 1 in the pods column."""
        return self.shape_of(task).request

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
        extra = tuple(distinguish(self, task) for distinguish in self.flat["distinguish"])
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

    def sub_jobs(self, job: int) -> tuple[SubJob, ...]:
        """The job's tasks by sub-group; one sub-job, the whole job, where it has none."""
        known = self._sub_jobs.get(job)
        if known is None:
            known = self._sub_jobs[job] = sub_jobs_of(self.snapshot, job)
        return known

    def sub_job_of(self, task: int) -> SubJob:
        return next(sub_job for sub_job in self.sub_jobs(self.job_of(task)) if sub_job.whole or task in sub_job.tasks)

    def has_sub_jobs(self, job: int) -> bool:
        group = self.jobs.group[job]
        return group is not None and bool(group.spec.sub_group_policy)

    def statement(self, *, trial: bool = False) -> Statement:
        return Statement(self, trial=trial)

    def ready_count(self, job: int) -> int:
        return int(self.job_counts[job][st.IS_READY].sum())

    # --- queues -------------------------------------------------------------------------------------------------------

    def allocatable_tasks(self, row: int, tasks: Sequence[int]) -> int:
        """How many of the tasks, which ask the same, the queue may take now."""
        count, request = len(tasks), self.request(tasks[0])
        for hook in self.flat["allocatable"]:
            count = min(count, hook(self, row, request, count))
            if count <= 0:
                return 0
        return max(0, int(min([count, *(hook(self, row, tasks[:count]) for hook in self.flat["allocatable_claims"])])))

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
        handlers = self.flat[hook]
        if handlers:
            change = Change(job, self.queue_of(job), tasks, nodes, request, request * len(tasks))
            for handler in handlers:
                handler(self, change)

    def queue_is_open(self, row: int) -> bool:
        return self.queues.queue[row].status.state == queue.OPEN


def _service_keys(snapshot: Snapshot) -> frozenset[str]:
    services = snapshot.facts.get(meta.SERVICE, {}).values()
    return frozenset(key for s in services if isinstance(s, Service) for key in s.spec.selector or ())
