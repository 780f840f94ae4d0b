"""What would pass in silence is told: pods no kubelet takes, commands for nobody, names of namespaces, what never arrived."""

from __future__ import annotations

import json

import pytest

from tests.run.conftest import Command

NODE = """apiVersion: v1
kind: Node
metadata: {name: n%s}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}%s}
---
"""
JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: j, annotations: {%s}%s}
spec: {tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: m, image: a, resources: {requests: {cpu: 1}}}]}}}]}
---
"""


# --- nodes and kubelets -------------------------------------------------------------------------------------------------


def test_a_pod_put_on_a_node_without_room_failed_and_says_why(pumice: Command) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {nodeName: n, containers: [%s]}"
    container = "{name: m, image: a, resources: {requests: {cpu: 8}}}"
    ran = pumice("run", "a.yaml", "-o", "json", files={"a.yaml": NODE % ("", "") + pod % container})
    told = json.loads(ran.out)
    assert told["pods"] == {"default/p": {"node": "n", "phase": "Failed"}}
    why = "Pod was rejected: Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 4000"
    assert told["failed"] == [{"job": "Pod default/p", "message": why}]


@pytest.mark.parametrize(("ready", "status"), [("True", 0), ("False", 4), ("Unknown", 4)])
def test_only_a_node_that_is_ready_gets_pods(pumice: Command, ready: str, status: int) -> None:
    node = NODE % (', uid: u1, resourceVersion: "5"', ", conditions: [{type: Ready, status: '%s'}]" % ready)
    assert pumice("run", "a.yaml", files={"a.yaml": node + JOB % ("", "")}).status == status
