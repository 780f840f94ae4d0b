"""The scheduler's metrics, fed with each cycle of the loop and with each reload of the configuration."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily

from extender.api.meta import Time
from extender.api.operations import Bind, Evict
from extender.cluster.metrics import WRITE_FAILURES, Metric, OnRequest
from extender.core.mirror import Mirror
from extender.core.reasons import Reason
from extender.core.session import Session
from extender.loop import Cycle
from extender.metrics.names import (
    ATTEMPTS,
    EVICTIONS,
    JOB_DURATION,
    JOB_LAST,
    JOB_LATENCY,
    JOB_START,
    LAST_SESSION,
    ON_REQUEST,
    PREEMPTIONS,
    PROGRAM,
    RELOADED,
    RELOADED_AT,
    RELOADS,
    RETRIES,
    SESSIONS,
    STAGE,
    TASK,
    UNREADABLE,
    VICTIMS,
    WAITING,
)
from extender.metrics.queues import labels_of, lacking_members, of_jobs, of_queues

_MS = 1000.0


class SchedulerMetrics:
    """Of one process. `per_job`: also series with the names of jobs, for jobs that are there."""

    def __init__(self, registry: CollectorRegistry, *, per_job: bool = False) -> None:
        self._per_job = per_job
        wanted = [each for each in PROGRAM if each not in ON_REQUEST and (per_job or not each.per_job)]
        self._made = {each.name: each.make(registry) for each in wanted}
        self._session: Session | None = None
        self._mirror: Mirror | None = None
        self._series: dict[tuple[str, str, str], str] = {}  # labels of jobs that have series -> uid
        for reason in Reason:
            self[WAITING].labels(reason.value).set(0)
        registry.register(OnRequest(self._collect))

    def __getitem__(self, metric: Metric) -> Any:
        return self._made[metric.name]

    # --- what happened ----------------------------------------------------------------------------------------------------

    def reloaded(self, now: Time, *, success: bool) -> None:
        self[RELOADS].labels("success" if success else "failure").inc()
        self[RELOADED].set(success)
        if success:
            self[RELOADED_AT].set(now)

    def bound_in(self, seconds: float) -> None:
        self[STAGE].labels("Bind").observe(seconds * _MS)

    def observe(self, cycle: Cycle, now: Time) -> None:
        """`now`: when all was written."""
        self._session = ssn = cycle.result.session
        self[SESSIONS].inc()
        self[LAST_SESSION].set(cycle.at)
        binds = [each for each in cycle.result.operations if isinstance(each, Bind)]
        refused = {failure.operation.uid for failure in cycle.failures if isinstance(failure.operation, Bind)}
        for failure in cycle.failures:
            self[WRITE_FAILURES].labels(type(failure.operation).__name__, failure.error.reason).inc()
        self._note_placed(ssn, binds, refused, cycle.at, now)
        self._note_evicted(ssn, [each for each in cycle.result.operations if isinstance(each, Evict)])
        waiting = Tally(each.reason for each in cycle.result.waiting)
        for reason in Reason:
            self[WAITING].labels(reason.value).set(waiting[reason])
        for result, count in (("scheduled", len(binds) - len(refused)), ("error", len(refused)),
                              ("unschedulable", len(cycle.result.waiting))):  # fmt: skip
            self[ATTEMPTS].labels(result).inc(count)
        if self._per_job:
            self._note_jobs(ssn)

    def _note_placed(self, ssn: Session, binds: list[Bind], refused: set[str], at: Time, now: Time) -> None:
        assumed, bound = self[TASK].labels("Assumed"), self[TASK].labels("Bound")
        for bind in binds:
            task = ssn.tasks.rows.get(bind.pod)
            if task is None:
                continue
            created = float(ssn.tasks.created[task])
            assumed.observe(max(at - created, 0.0) * _MS)
            if bind.uid not in refused:
                bound.observe(max(now - created, 0.0) * _MS)
            job = ssn.job_of(task)
            if job >= 0 and ssn.jobs.group[job] is not None:
                age = max(at - float(ssn.jobs.created[job]), 0.0)
                self[JOB_LATENCY].observe(age * _MS)
                if self._per_job:
                    labels = labels_of(ssn, job)
                    self[JOB_DURATION].labels(*labels).set(age * _MS)
                    self[JOB_LAST].labels(*labels).set(at)

    def _note_evicted(self, ssn: Session, evictions: list[Evict]) -> None:
        self[VICTIMS].set(len(evictions))
        self[PREEMPTIONS].inc(len(set(ssn.evicted_for.values())))
        for action in {each.reason for each in evictions}:
            self[EVICTIONS].labels(action).inc()

    def _note_jobs(self, ssn: Session) -> None:
        """Series of jobs that are gone go, too."""
        lacking = lacking_members(ssn)
        seen: dict[tuple[str, str, str], str] = {}
        for job in ssn.live_jobs():
            labels, group = labels_of(ssn, job), ssn.jobs.group[job]
            seen[labels] = group.metadata.uid if group is not None else ""
            self[JOB_START].labels(*labels).set(ssn.jobs.created[job])
            if lacking[job] > 0:
                self[RETRIES].labels(str(ssn.jobs.key[job])).inc()
        for labels, uid in self._series.items():
            if seen.get(labels) != uid:
                for metric in (JOB_DURATION, JOB_LAST, *([JOB_START] if labels not in seen else [])):
                    self[metric].remove(*labels)
                self[RETRIES].remove(f"{labels[2]}/{labels[0]}")
        self._series = seen

    # --- what is worked out when it is asked for ----------------------------------------------------------------------------

    def watch(self, mirror: Mirror) -> None:
        self._mirror = mirror

    def _collect(self) -> Iterator[GaugeMetricFamily]:
        if self._mirror is not None:
            family = UNREADABLE.family()
            family.add_metric((), len(self._mirror.unreadable))
            yield family
        if self._session is not None:
            yield from of_jobs(self._session, per_job=self._per_job)
            yield from of_queues(self._session)
