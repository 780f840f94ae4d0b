"""The third way to use Pumice, whole: plain workloads of a namespace that asks for it run as gangs, on the embedded cluster."""

from __future__ import annotations

import pytest

from extender.actions import ACTIONS
from extender.api.labels import GROUP_NAME, RUN_SECONDS, SCHEDULE
from extender.api.meta import DEPLOYMENT, NAMESPACE, POD, POD_GROUP, Json, annotations_of
from extender.cluster.clock import VirtualClock
from extender.core.conf import DEFAULT, load
from extender.local import ADMISSION, COMPONENTS, Local
from extender.plugins import PLUGINS
from extender.testing.builders import node

START = 1_736_121_600.0
CONTAINER = {"name": "main", "image": "example.test/app:1", "resources": {"requests": {"cpu": "1"}}}


def world(*, admission: bool = True) -> Local:
    components = [name for name in COMPONENTS if admission or name != ADMISSION]
    made = Local(load(DEFAULT, PLUGINS, ACTIONS), VirtualClock(START), components=components)
    asks = {"name": "batch", "labels": {SCHEDULE: "true"}}
    made.load([node("n1").cpu(8), {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": asks}])
    return made


def deployment(namespace: str) -> Json:
    labels = {"app": "web"}
    spec = {"replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [CONTAINER]}}}  # fmt: skip
    return {"apiVersion": DEPLOYMENT.api_version, "kind": DEPLOYMENT.name, "spec": spec,
            "metadata": {"name": "web", "namespace": namespace}}  # fmt: skip


def test_a_deployment_becomes_one_group_and_runs() -> None:
    local = world()
    local.create([deployment("batch")])
    local.run(10)
    pods, groups = local.cluster.list(POD).objects, local.cluster.list(POD_GROUP).objects
    assert {(pod["spec"]["schedulerName"], pod["status"]["phase"]) for pod in pods} == {("volcano", "Running")}
    assert [group["metadata"]["name"] for group in groups] == [annotations_of(pods[0])[GROUP_NAME]]
    assert len(pods) == 3


def test_a_plain_pod_runs_as_a_group_of_one() -> None:
    """Its group comes from the controller: it has no uid while it is admitted."""
    local = world()
    meta = {"name": "p", "namespace": "batch", "annotations": {RUN_SECONDS: "5"}}
    spec = {"restartPolicy": "Never", "containers": [CONTAINER]}
    local.create([{"apiVersion": "v1", "kind": POD.name, "metadata": meta, "spec": spec}])
    local.run("settled")
    (pod,) = local.cluster.list(POD).objects
    assert (pod["spec"]["schedulerName"], pod["status"]["phase"]) == ("volcano", "Succeeded")


@pytest.mark.parametrize("admission", [True, False], ids=["with admission", "without"])
def test_a_namespace_that_does_not_ask_is_left_alone(admission: bool) -> None:
    local = world(admission=admission)
    local.create([deployment("default")])
    local.run(5)
    assert {pod["spec"]["schedulerName"] for pod in local.cluster.list(POD).objects} == {"default-scheduler"}
    assert local.cluster.list(POD_GROUP).objects == []
