"""What the controllers' metrics page shows, worked out from their picture of the cluster when it is asked for.

Names as in volcano ed72c7c, pkg/controllers/metrics. Differences: the phases of jobs are counted by queue; series with the
name of a job are given only on request, for they grow with the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from controller.store import Store
from extender.api.job import COMPLETED, FAILED
from extender.api.meta import JOB, JOB_FLOW, POD_GROUP, QUEUE, Json
from extender.cluster.metrics import GAUGE, HISTOGRAM, LEADER, WRITE_FAILURES, Metric, exponential_range

GROUP_PHASES = ("pending", "running", "inqueue", "completed", "unknown")
_PER_JOB = {COMPLETED: "volcano_job_completed_phase_count", FAILED: "volcano_job_failed_phase_count"}
_PER_FLOW = {"Succeed": "volcano_jobflow_succeed_phase_count", "Failed": "volcano_jobflow_failed_phase_count"}

WAITING_REQUESTS = Metric("volcano_controller_requests", GAUGE, "Requests that wait to be handled, those for a retry included.")
ON_REQUEST = (
    *(Metric(f"volcano_queue_pod_group_{phase}_count", GAUGE, f"PodGroups of the queue in phase {phase.capitalize()}.",
             ("queue_name",)) for phase in GROUP_PHASES),
    Metric("volcano_jobs", GAUGE, "Jobs by queue and phase.", ("queue_name", "phase")),
    *(Metric(name, GAUGE, f"1 for a job in phase {phase}.", ("job_name", "queue_name"), per_job=True)
      for phase, name in _PER_JOB.items()),
    *(Metric(name, GAUGE, f"JobFlows in phase {phase}.", ("jobflow_namespace",)) for phase, name in _PER_FLOW.items()),
)  # fmt: skip
JOB_TO_POD = Metric("volcano_controller_job_to_pod_creation_latency_milliseconds", HISTOGRAM,
                    "Age of a job when one of its pods had been made.", buckets=exponential_range(50, 60000, 30))  # fmt: skip
CONTROLLERS = (*ON_REQUEST, WAITING_REQUESTS, JOB_TO_POD)
PROGRAM = (*CONTROLLERS, LEADER, WRITE_FAILURES)  # all that vc-controller-manager makes itself


class Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


def samples(store: Store, *, per_job: bool = False) -> Iterator[Sample]:
    """Everything, in the order of names."""
    yield from _groups(store)
    yield from _jobs(store)
    if per_job:
        yield from _each_job(store)
    yield from _flows(store)


def _groups(store: Store) -> Iterator[Sample]:
    counted: Counter[tuple[str, str]] = Counter()
    for group in store.all(POD_GROUP).values():
        phase = str((group.get("status") or {}).get("phase") or "Pending").lower()
        counted[(group.get("spec") or {}).get("queue") or "", phase] += 1
    for key in store.all(QUEUE):
        for phase in GROUP_PHASES:
            yield Sample(f"volcano_queue_pod_group_{phase}_count", {"queue_name": key.name}, counted[key.name, phase])


def _jobs(store: Store) -> Iterator[Sample]:
    counted = Counter((_queue(job), _phase(job)) for job in store.all(JOB).values())
    for (queue, phase), number in sorted(counted.items()):
        yield Sample("volcano_jobs", {"queue_name": queue, "phase": phase}, number)


def _each_job(store: Store) -> Iterator[Sample]:
    for key, job in store.all(JOB).items():
        name = _PER_JOB.get(_phase(job))
        if name is not None:
            yield Sample(name, {"job_name": str(key), "queue_name": _queue(job)}, 1)


def _flows(store: Store) -> Iterator[Sample]:
    counted = Counter((_phase(flow), key.namespace) for key, flow in store.all(JOB_FLOW).items())
    for (phase, namespace), number in sorted(counted.items()):
        if phase in _PER_FLOW:
            yield Sample(_PER_FLOW[phase], {"jobflow_namespace": namespace}, number)


def _phase(obj: Json) -> str:
    return str(((obj.get("status") or {}).get("state") or {}).get("phase") or "")


def _queue(job: Json) -> str:
    return str((job.get("spec") or {}).get("queue") or "")
