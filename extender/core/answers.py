"""Answers: what the plugins of a configuration say, combined as extension_points.py says. The half of a Session that plugins
and actions ask; it holds no state of its own but the plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from extender.api.meta import Key
from extender.api.operations import Prior
from extender.core.axis import BoolN, FloatN, IntN, IntR
from extender.core.conf import Conf
from extender.core.extension_points import POINTS
from extender.core.hyper_nodes import Eviction, Gradient, HyperNode, Purpose
from extender.core.plugin import At, Plugin, Refused, TaskClass, Vote
from extender.core.snapshot import Jobs, Queues, Tasks
from extender.core.sub_jobs import SubJob

Hook = Callable[..., Any]


class Answers:
    """Hooks by name: `hooks` has them tier by tier, with the name of the plugin whose they are, `flat` one after the other."""

    jobs: Jobs
    queues: Queues
    tasks: Tasks

    def __init__(self, conf: Conf) -> None:
        """A plugin that stands in several places answers in each of them, with the arguments of the last one, as upstream."""
        self.conf = conf
        self.by_name: dict[str, Plugin[Any]] = {entry.name: entry.make() for tier in conf.tiers for entry in tier}
        self.plugins = list(self.by_name.values())
        self.hooks: dict[str, list[list[tuple[str, Hook]]]] = {point.hook: [] for point in POINTS}
        for tier in conf.tiers:
            for hooks in self.hooks.values():
                hooks.append([])
            for entry in tier:
                for point in POINTS:
                    method = getattr(self.by_name[entry.name], point.hook, None)
                    if method is not None and (not point.switch or entry.switches[point.switch]):
                        self.hooks[point.hook][-1].append((entry.name, method))
        self.flat: dict[str, list[Hook]] = {
            hook: [method for tier in tiers for _, method in tier] for hook, tiers in self.hooks.items()
        }

    # --- order --------------------------------------------------------------------------------------------------------

    def job_order(self, job: int) -> tuple[Any, ...]:
        """Sort key; the lower goes first. Ends in creation time and name, so that it is total."""
        return (*self.job_plugin_order(job), float(self.jobs.created[job]), self.job_key(job))

    def job_plugin_order(self, job: int) -> tuple[Any, ...]:
        """The plugins' part of job_order, for victims, where age does not count."""
        return tuple(order(self, job) for order in self.flat["job_order"])

    def sub_job_order(self, sub_job: SubJob) -> tuple[Any, ...]:
        keys = (order(self, sub_job) for order in self.flat["sub_job_order"])
        return (*keys, sub_job.match_index, sub_job.name)

    def queue_order(self, row: int) -> tuple[Any, ...]:
        keys = (order(self, row) for order in self.flat["queue_order"])
        return (*keys, float(self.queues.created[row]), self.queues.name[row])

    def cluster_order(self, cluster: str) -> tuple[Any, ...]:
        return (*(order(self, cluster) for order in self.flat["cluster_order"]), cluster)

    def task_order(self, task: int) -> tuple[Any, ...]:
        key, pod = self.task_key(task), self.tasks.pod[task]
        uid = pod.metadata.uid if pod is not None else ""
        return (*self.task_plugin_order(task), _index(key.name), float(self.tasks.created[task]), uid, key)

    def task_plugin_order(self, task: int) -> tuple[Any, ...]:
        """The plugins' part of task_order, where neither index nor age count."""
        return tuple(order(self, task) for order in self.flat["task_order"])

    def victim_queue_order(self, row: int, preemptor_queue: int) -> tuple[Any, ...]:
        return tuple(order(self, row, preemptor_queue) for order in self.flat["victim_queue_order"])

    def job_key(self, job: int) -> Key:
        key = self.jobs.key[job]
        assert key is not None
        return key

    def task_key(self, task: int) -> Key:
        key = self.tasks.key[task]
        assert key is not None
        return key

    # --- nodes, for placement.py ----------------------------------------------------------------------------------------

    def mapped_points(self, cls: TaskClass, at: At) -> list[IntN | None]:
        """What each `node_map` says of the places, rounded down; None where the class does not concern it."""
        raw = (hook(self, cls, at) for hook in self.flat["node_map"])
        return [np.floor(points).astype(np.int64) if points is not None else None for points in raw]

    def reduced_points(self, cls: TaskClass, mapped: Sequence[IntN | None], feasible: BoolN) -> Iterator[FloatN]:
        """The same, of all nodes, each normalised by its plugin's `node_reduce`, where it has one."""
        names = [(tier, name) for tier, listed in enumerate(self.hooks["node_map"]) for name, _ in listed]
        for (tier, name), points in zip(names, mapped, strict=True):
            if points is None:
                continue
            own = points.copy()
            for reducing, reduce in self.hooks["node_reduce"][tier]:
                if reducing == name:
                    reduce(self, cls, own, feasible)
                    break
            yield own.astype(np.float64)

    # --- HyperNodes ---------------------------------------------------------------------------------------------------

    def hyper_node_gradient_for_job(self, job: int, root: HyperNode, purpose: Purpose) -> Gradient:
        gradient: Gradient = self._alone("hyper_node_gradient_for_job", job, root, purpose, default=[[root]])
        return gradient

    def hyper_node_gradient_for_sub_job(self, sub_job: SubJob, root: HyperNode, purpose: Purpose) -> Gradient:
        gradient: Gradient = self._alone("hyper_node_gradient_for_sub_job", sub_job, root, purpose, default=[[root]])
        return gradient

    def hyper_node_order(self, sub_job: SubJob, candidates: Mapping[str, HyperNode]) -> dict[str, float]:
        """Points by name; 0 where no plugin has any."""
        totals = dict.fromkeys(candidates, 0.0)
        for hook in self.flat["hyper_node_order"]:
            for name, points in hook(self, sub_job, candidates).items():
                if name in totals:
                    totals[name] += points
        return totals

    # --- queues -------------------------------------------------------------------------------------------------------

    def overused(self, row: int) -> bool:
        return any(hook(self, row) for hook in self.flat["overused"])

    def preemptive(self, row: int, request: IntR) -> bool:
        return all(hook(self, row, request) for hook in self.flat["preemptive"])

    # --- jobs ---------------------------------------------------------------------------------------------------------

    def job_valid(self, job: int) -> Refused | None:
        return next((refused for hook in self.flat["job_valid"] if (refused := hook(self, job)) is not None), None)

    def job_ready(self, job: int) -> bool:
        return all(hook(self, job) for hook in self.flat["job_ready"])

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        """A sub-job that is the whole job is ready with it."""
        if sub_job.whole:
            return self.job_ready(sub_job.job)
        return all(hook(self, sub_job) for hook in self.flat["sub_job_ready"])

    def tasks_to_ready(self, sub_job: SubJob) -> int:
        """A lower bound of the tasks that must still take nodes before sub_job_ready can hold; at least 1."""
        hook, what = ("tasks_to_ready", sub_job.job) if sub_job.whole else ("tasks_to_sub_job_ready", sub_job)
        wants = [getattr(plugin, hook)(self, what) for plugin in self.plugins if hasattr(plugin, hook)]
        return int(max([1, *wants]))

    def job_pipelined(self, job: int) -> bool:
        return self._vote("job_pipelined", job)

    def sub_job_pipelined(self, sub_job: SubJob) -> bool:
        if sub_job.whole:
            return self.job_pipelined(sub_job.job)
        return self._vote("sub_job_pipelined", sub_job)

    def job_enqueueable(self, job: int) -> bool:
        return self._vote("job_enqueueable", job)

    def all_admit_by_minimum(self) -> bool:
        """Do jobs of one queue and namespace that ask the same always get the same answer in this session?"""
        return all(getattr(_owner(method), "admits_by_minimum", False) for method in self.flat["job_enqueueable"])

    @cached_property
    def all_judge_by_members(self) -> bool:
        """Are jobs with equal minimums and equal members always valid, ready and pipelined together?"""
        judges = (method for hook in ("job_valid", "job_ready", "job_pipelined") for method in self.flat[hook])
        return all(getattr(_owner(method), "judges_by_members", False) for method in judges)

    def _vote(self, hook: str, what: int | SubJob) -> bool:
        for tier in self.hooks[hook]:
            permitted = False
            for _, method in tier:
                vote = method(self, what)
                if vote == Vote.REJECT:
                    return False
                permitted = permitted or vote == Vote.PERMIT
            if permitted:
                return True
        return True

    def job_enqueued(self, job: int) -> None:
        for hook in self.flat["job_enqueued"]:
            hook(self, job)

    def job_starving(self, job: int) -> bool:
        for tier in self.hooks["job_starving"]:
            if tier:
                return all(method(self, job) for _, method in tier)
        return False

    def target_job(self, jobs: Sequence[int]) -> int | None:
        """One of the jobs; None where the plugin that is asked wants none, or none is asked."""
        found: int | None = self._alone("target_job", jobs, default=None)
        return found

    def reserved_nodes(self) -> None:
        for hook in self.flat["reserved_nodes"]:
            hook(self)

    def _alone(self, hook: str, *about: Any, default: Any) -> Any:
        """The answer of the first plugin that has the hook, whatever it is."""
        return next((method(self, *about) for method in self.flat[hook]), default)

    # --- victims ------------------------------------------------------------------------------------------------------

    def victims(self, hook: str, task: int, candidates: Sequence[int]) -> list[int]:
        """`hook` is preemptable or reclaimable."""
        return self._victims(hook, task, candidates)

    def unified_evictable(self, eviction: Eviction, candidates: Sequence[int]) -> list[int]:
        return self._victims("unified_evictable", eviction, candidates)

    def _victims(self, hook: str, whom_for: int | Eviction, candidates: Sequence[int]) -> list[int]:
        """The first tier whose plugins agree on any victim decides."""
        for tier in self.hooks[hook]:
            agreed: list[int] | None = None
            for _, method in tier:
                chosen = method(self, whom_for, candidates)
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

    def before_bind(self, task: int) -> list[Prior]:
        return [write for hook in self.flat["before_bind"] for write in hook(self, task)]


def _owner(method: Hook) -> object:
    """The plugin whose hook it is."""
    return getattr(method, "__self__", None)


def _index(name: str) -> int:
    """`train-worker-3` -> 3: pods of Volcano jobs go in the order of their index; other names have none."""
    parts = name.split("-")
    if len(parts) >= 3 and parts[-1].isdecimal():
        return int(parts[-1])
    return 0
