"""Manifests that would make more pods than a run takes are refused before anything is made."""

from __future__ import annotations

import pytest

from extender.api.meta import Json
from extender.ctl.found import Found, Refused
from extender.ctl.sizing import MOST_PODS, check_size


def found(api_version: str, kind: str, spec: Json, **metadata: object) -> Found:
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}
    return Found(manifest, "f.yaml", 1)


def replica_set(count: int, **metadata: object) -> Found:
    return found("apps/v1", "ReplicaSet", {"replicas": count}, **metadata)


def owner(uid: str) -> list[Json]:
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": uid, "controller": True}]


def test_as_many_as_a_run_takes_are_taken() -> None:
    check_size([replica_set(MOST_PODS)])


def test_what_is_owned_is_counted_with_its_owner() -> None:
    """A cluster lists the Deployment, its ReplicaSet and the pods of that."""
    deployment = found("apps/v1", "Deployment", {"replicas": MOST_PODS}, uid="d")
    check_size([deployment, replica_set(MOST_PODS, uid="r", ownerReferences=owner("d"))])


def test_what_is_owned_by_something_else_is_counted() -> None:
    with pytest.raises(Refused, match="100,000 pods after 100,000 of what comes before"):
        check_size([replica_set(MOST_PODS), replica_set(MOST_PODS, ownerReferences=owner("gone"))])


def test_a_daemon_set_has_a_pod_on_every_node() -> None:
    nodes = [found("v1", "Node", {}) for _ in range(2)]
    with pytest.raises(Refused, match="DaemonSet x: spec: 2 pods after 99,999"):
        check_size([*nodes, replica_set(MOST_PODS - 1), found("apps/v1", "DaemonSet", {})])


def test_a_batch_job_makes_its_completions() -> None:
    job = found("batch/v1", "Job", {"parallelism": 2**31 - 1, "completions": 3})
    check_size([job])


@pytest.mark.parametrize(
    ("kind", "path"),
    [("CronJob", ("jobTemplate", "spec")), ("Job", ()), ("JobTemplate", ())],
    ids=["CronJob", "Job", "JobTemplate"],
)
def test_the_tasks_of_a_job_are_counted_wherever_it_stands(kind: str, path: tuple[str, ...]) -> None:
    spec: Json = {"tasks": [{"replicas": 5}, {"replicas": MOST_PODS}]}
    for part in reversed(path):
        spec = {part: spec}
    group = "flow" if kind == "JobTemplate" else "batch"
    field = ".".join(("spec", *path, "tasks[1].replicas")).replace("[", r"\[")
    with pytest.raises(Refused, match=f"{field}: 100,000 pods after 5 of what comes before"):
        check_size([found(f"{group}.volcano.sh/v1alpha1", kind, spec)])
