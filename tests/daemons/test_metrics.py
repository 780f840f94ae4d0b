"""Metrics: upstream's names, fed from sessions; no label grows with jobs unless it is asked for; the page in docs is current."""

from __future__ import annotations

import itertools
import re
import sys
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from controller import metrics as controllers
from extender import server
from extender.actions import ACTIONS
from extender.api.errors import Unavailable
from extender.api.meta import POD_GROUP, Key
from extender.cluster.clock import VirtualClock
from extender.cluster.memory import MemoryCluster
from extender.cluster.metrics import SHARED, Metric, documentation, exponential_range, new_registry
from extender.core.conf import load
from extender.loop import Loop, decide
from extender.metrics import names
from extender.metrics.scheduler import SchedulerMetrics
from extender.metrics.timed import Timed
from extender.plugins import PLUGINS
from extender.testing.builders import node, podgroup, queue, task
from webhook import metrics as admission

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
START = 1_736_121_600.0
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: drf}, {name: %s}]
"""
Values = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Refusing(MemoryCluster):
    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        if pod.name.startswith("refused"):
            raise Unavailable("not now")
        super().bind(pod, node, uid=uid, annotations=annotations)


class Scheduled:
    """A scheduler with its metrics, on a clock of its own; sessions take 10 ms, and so does each part of them."""

    def __init__(self, plugin: str = "proportion", *, per_job: bool = False) -> None:
        self.clock = VirtualClock(START)
        self.cluster = Refusing(self.clock)
        self.cluster.load([queue().weight(3).capability(cpu=8), node("n1").cpu(4).memory("8Gi")])
        self.registry = new_registry()
        self.metrics = SchedulerMetrics(self.registry, per_job=per_job)
        ticks = itertools.count()
        timed = Timed(self.metrics, timer=lambda: next(ticks) * 0.01)
        self.loop = Loop(self.cluster, load(CONF % plugin, PLUGINS, ACTIONS), self.clock, decide=timed)
        self.loop.observers.append(lambda cycle: self.metrics.observe(cycle, self.clock.now()))
        self.metrics.watch(self.loop.mirror)
        self.loop.start()

    def job(self, name: str, tasks: int = 1, least: int = 1, cpu: float = 1) -> None:
        self.cluster.load([podgroup(name).members(least).created(START - 60),
                           *(task(f"{name}-{i}", name).cpu(cpu).created(START - 30) for i in range(tasks))])  # fmt: skip

    def values(self) -> Values:
        self.loop.step()
        text = generate_latest(self.registry).decode()
        return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                for family in text_string_to_metric_families(text) for sample in family.samples}  # fmt: skip


def value(values: Values, name: str, **labels: str) -> float:
    return values[name, tuple(sorted(labels.items()))]


@pytest.fixture(scope="module")
def after() -> Values:
    """One job bound, one of which nobody may be bound, one that lacks two members, one pod refused."""
    scheduled = Scheduled()
    scheduled.job("ok", tasks=2, least=2)
    scheduled.job("big", tasks=2, least=2, cpu=9)
    scheduled.job("refused")
    return scheduled.values()


SHOWN: dict[str, tuple[str, dict[str, str], float]] = {
    "bound": ("volcano_schedule_attempts_total", {"result": "scheduled"}, 2),
    "refused": ("volcano_schedule_attempts_total", {"result": "error"}, 1),
    "waiting": ("volcano_schedule_attempts_total", {"result": "unschedulable"}, 1),
    "refusals by reason": ("volcano_write_failures_total", {"operation": "Bind", "reason": "ServiceUnavailable"}, 1),
    "age when decided": ("volcano_task_scheduling_latency_milliseconds_sum", {"stage": "Assumed"}, 90_000),
    "age when bound": ("volcano_task_scheduling_latency_milliseconds_sum", {"stage": "Bound"}, 60_000),
    "age of the group": ("volcano_e2e_job_scheduling_latency_milliseconds_sum", {}, 180_000),
    "jobs that lack members": ("volcano_unschedule_job_count", {}, 1),
    "sessions": ("volcano_sessions_total", {}, 1),
    "when": ("volcano_last_session_timestamp_seconds", {}, START),
    "reasons": ("volcano_waiting_jobs", {"reason": "NeverFits"}, 1),
    "other reasons": ("volcano_waiting_jobs", {"reason": "NotAdmitted"}, 0),
    "held": ("volcano_queue_allocated_milli_cpu", {"queue_name": "default"}, 3000),
    "asked": ("volcano_queue_request_milli_cpu", {"queue_name": "default"}, 21000),
    "capability": ("volcano_queue_capacity_milli_cpu", {"queue_name": "default"}, 8000),
    "no capability": ("volcano_queue_capacity_memory_bytes", {"queue_name": "default"}, sys.float_info.max),
    "deserved": ("volcano_queue_deserved_milli_cpu", {"queue_name": "default"}, 4000),
    "the most there can be": ("volcano_queue_real_capacity_milli_cpu", {"queue_name": "default"}, 4000),
    "pods are scalars": ("volcano_queue_request_scalar_resources", {"queue_name": "default", "resource": "pods"}, 5),
    "share": ("volcano_queue_share", {"queue_name": "default"}, 0.75),
    "weight": ("volcano_queue_weight", {"queue_name": "default"}, 3),
    "overused": ("volcano_queue_overused", {"queue_name": "default"}, 0),
    "unreadable": ("volcano_unreadable_objects", {}, 0),
    "sessions measured": ("volcano_e2e_scheduling_latency_milliseconds_count", {}, 1),
    "openings measured": ("volcano_open_session_duration_milliseconds_count", {}, 1),
    "actions measured": ("volcano_action_scheduling_latency_milliseconds_count", {"action": "backfill"}, 1),
    "an action takes one tick": ("volcano_action_scheduling_latency_milliseconds_sum", {"action": "backfill"}, 10),
    "plugins measured": ("volcano_plugin_scheduling_latency_milliseconds_sum",
                         {"plugin": "drf", "OnSession": "OnSessionOpen"}, 10),
    "plugins measured at the end": ("volcano_plugin_scheduling_latency_milliseconds_count",
                                    {"plugin": "drf", "OnSession": "OnSessionClose"}, 1),
}  # fmt: skip


@pytest.mark.parametrize(("name", "labels", "want"), SHOWN.values(), ids=SHOWN)
def test_after_a_session(after: Values, name: str, labels: dict[str, str], want: float) -> None:
    assert value(after, name, **labels) == pytest.approx(want)


def test_no_label_grows_with_jobs_pods_or_nodes(after: Values) -> None:
    """Whatever is there, no series has the name of one of them."""
    named = {text for _, labels in after for _, text in labels}
    assert not named & {"ok", "big", "refused", "ok-0", "n1", "default/ok", "default/big"}


def test_capacity_has_the_same_queue_metrics() -> None:
    scheduled = Scheduled("capacity")
    scheduled.job("ok", tasks=2)
    values = scheduled.values()
    assert [value(values, f"volcano_queue_{name}", queue_name="default") for name in (
        "allocated_milli_cpu", "deserved_milli_cpu", "real_capacity_milli_cpu", "overused")] == [2000, 0, 4000, 0]  # fmt: skip


def test_per_job_metrics_are_shown_on_request() -> None:
    scheduled = Scheduled(per_job=True)
    scheduled.job("ok", tasks=2)
    scheduled.job("big", tasks=2, least=2, cpu=9)
    values = scheduled.values()
    labels = {"job_name": "ok", "queue": "default", "job_namespace": "default"}
    assert (
        value(values, "volcano_e2e_job_scheduling_duration", **labels),
        value(values, "volcano_e2e_job_scheduling_start_time", **labels),
        value(values, "volcano_e2e_job_scheduling_last_time", **labels),
        value(values, "volcano_unschedule_task_count", job_id="default/big"),
        value(values, "volcano_job_retry_counts", job_id="default/big"),
        value(values, "volcano_job_share", job_ns="default", job_id="ok"),
    ) == (60_000, START - 60, START, 2, 1, 0.5)


def test_series_of_a_job_go_with_it() -> None:
    scheduled = Scheduled(per_job=True)
    scheduled.job("ok")
    scheduled.job("big", tasks=2, least=2, cpu=9)
    before = scheduled.values()
    for name in ("ok", "big"):
        scheduled.cluster.delete(POD_GROUP, Key("default", name))
    after = scheduled.values()
    assert ([any("ok" in dict(labels).values() for _, labels in each) for each in (before, after)],
            any("default/big" in dict(labels).values() for _, labels in after)) == ([True, False], False)  # fmt: skip


def test_a_session_is_the_same_whether_it_is_measured_or_not() -> None:
    """What is put around actions and plugins decides nothing."""

    def binds(*, timed: bool) -> list[str]:
        clock = VirtualClock(START)
        cluster = MemoryCluster(clock)
        cluster.load([queue(), *(node(f"n{i}").cpu(i + 1).memory("8Gi") for i in range(4)), podgroup("g").members(3),
                      *(task(f"g-{i}", "g").cpu(1) for i in range(3))])  # fmt: skip
        conf = load(CONF % "proportion", PLUGINS, ACTIONS)
        metrics = SchedulerMetrics(new_registry())
        loop = Loop(cluster, conf, clock, decide=Timed(metrics) if timed else decide)
        loop.start()
        cycle = loop.step()
        assert cycle is not None
        return [str(each) for each in cycle.result.operations]

    assert binds(timed=True) == binds(timed=False)


BUCKETS: dict[str, tuple[Metric, int, float, float]] = {
    "sessions": (names.E2E, 20, 1, 5000),
    "openings": (names.OPEN, 20, 1, 5000),
    "actions": (names.ACTION, 20, 1, 2000),
    "plugins": (names.PLUGIN, 15, 0.1, 100),
    "stages": (names.STAGE, 20, 0.1, 500),
    "tasks": (names.TASK, 30, 50, 60000),
    "jobs": (names.JOB_LATENCY, 30, 100, 120000),
}


@pytest.mark.parametrize(("metric", "count", "first", "last"), BUCKETS.values(), ids=BUCKETS)
def test_buckets(metric: Metric, count: int, first: float, last: float) -> None:
    """Those of the reference."""
    assert (len(metric.buckets), metric.buckets[0], metric.buckets[-1]) == (count, first, last)


def test_buckets_grow_by_the_same_factor() -> None:
    assert exponential_range(1, 1000, 4) == (1, 10, 100, 1000)


EVERY = (*SHARED, *names.SCHEDULER, *controllers.CONTROLLERS, *admission.ADMISSION, *server.PROGRAM)


@pytest.mark.parametrize("metric", EVERY, ids=lambda metric: metric.name)
def test_names_are_well_formed(metric: Metric) -> None:
    """Of the same family, with words that end in a stop; counters end in _total."""
    assert re.fullmatch(r"volcano_[a-z0-9_]+", metric.name)
    assert metric.help.endswith(".")
    assert metric.name.endswith("_total") == (metric.type == "counter")


def test_names_are_used_once() -> None:
    assert len({metric.name for metric in EVERY}) == len(EVERY)


def test_the_page_is_current(update: bool) -> None:
    """docs/metrics.md, made of the same rows as the metrics."""
    programs = {"vc-scheduler": names.SCHEDULER, "vc-controller-manager": controllers.CONTROLLERS,
                "vc-webhook-manager": admission.ADMISSION, "vc-scheduler --extender-only": server.PROGRAM}  # fmt: skip
    text = documentation({"Every daemon": SHARED, **programs})
    if update:
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "pytest tests/daemons --update writes it anew"
