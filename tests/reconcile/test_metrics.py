"""The controllers' metrics."""

from __future__ import annotations

from controller.metrics import samples
from controller.store import Store
from extender.api.meta import JOB, JOB_FLOW, POD_GROUP, QUEUE, Json
from tests.reconcile.builders import group, job


def filled() -> Store:
    store = Store()
    store.put(QUEUE, {"metadata": {"name": "default"}})
    store.put(POD_GROUP, group("Running", queue="default"))
    store.put(JOB, job(phase="Completed"))
    flow: Json = {"metadata": {"name": "f", "namespace": "default"}, "status": {"state": {"phase": "Succeed"}}}
    store.put(JOB_FLOW, flow)
    return store


def values(**options: bool) -> dict[str, float]:
    return {f"{each.name}{sorted(each.labels.values())}": each.value for each in samples(filled(), **options) if each.value}


def test_metrics() -> None:
    """Groups, jobs and flows are counted; no label names a job."""
    assert values() == {
        "volcano_queue_pod_group_running_count['default']": 1,
        "volcano_jobs['Completed', 'default']": 1,
        "volcano_jobflow_succeed_phase_count['default']": 1,
    }


def test_metrics_of_each_job() -> None:
    """On request."""
    assert values(per_job=True)["volcano_job_completed_phase_count['default', 'default/j']"] == 1
