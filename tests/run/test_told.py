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
    node = NODE % (', uid: u1, resourceVersion: "5"', f", conditions: [{{type: Ready, status: '{ready}'}}]")
    assert pumice("run", "a.yaml", files={"a.yaml": node + JOB % ("", "")}).status == status


# --- commands -----------------------------------------------------------------------------------------------------------

COMMAND = """apiVersion: bus.volcano.sh/v1alpha1
kind: Command
metadata: {name: c, annotations: {pumice.io/arrives-after: "10"}}
action: %s
target: {apiVersion: %s, kind: %s, name: %s}
"""
BATCH, SCHEDULING = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("AbortJb", BATCH, "Job", "j"), "action: a Job knows no action 'AbortJb'; did you mean 'AbortJob'?"),
        (("AbortJob", SCHEDULING, "Queue", "default"),
         "action: a Queue knows no action 'AbortJob'; known: CloseQueue, OpenQueue, SyncQueue"),
        (("AbortJob", "batch/v1", "Job", "j"),
         f"target: 'batch/v1 Job' takes no commands, only {BATCH} Job or {SCHEDULING} Queue"),
        (("AbortJob", BATCH, "Job", "zz"), "target.name: no Job 'default/zz' when it comes"),
        (("CloseQueue", SCHEDULING, "Queue", "zz"), "target.name: no Queue 'zz' when it comes"),
    ],
)  # fmt: skip
def test_a_command_that_would_come_to_nothing_is_refused(pumice: Command, command: tuple[str, ...], says: str) -> None:
    ran = pumice("run", "a.yaml", files={"a.yaml": JOB % ("", "") + COMMAND % command})
    assert (ran.status, ran.fault) == (1, f"a.yaml: document 2: Command c: {says}")


def test_a_command_for_a_uid_that_is_not_here_is_told(pumice: Command) -> None:
    command = (COMMAND % ("AbortJob", BATCH, "Job", "zz")).replace("name: zz", "name: zz, uid: u9")
    ran = pumice("run", "a.yaml", files={"a.yaml": JOB % ("", "") + command})
    says = "warning: a.yaml: document 2: Command c: target.name: no Job 'default/zz' when it comes: it does nothing\n"
    assert (ran.status, says in ran.err) == (0, True)


# --- namespaces and times -----------------------------------------------------------------------------------------------

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: prod}\n---\n"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (NAMESPACE + JOB % ("", ", namespace: prdo"), "; did you mean 'prod'?"),
        (NAMESPACE + JOB % ("", ", namespace: other"), "; known: prod"),
        (NAMESPACE + JOB % ("", ", namespace: prod"), None),
        (NAMESPACE + JOB % ("", ""), None),
        (JOB % ("", ", namespace: prdo"), None),
    ],
)
def test_a_namespace_that_was_not_written_is_told(pumice: Command, files: str, says: str | None) -> None:
    ran = pumice("run", "a.yaml", files={"a.yaml": files})
    assert ("metadata.namespace: no Namespace '" in ran.err) == (says is not None)
    assert says is None or f"in these manifests, it is made{says}\n" in ran.err


@pytest.mark.parametrize(("until", "told"), [("30m", True), ("60m", True), ("61m", False)])
def test_what_arrives_after_the_end_is_told(pumice: Command, until: str, told: bool) -> None:
    ran = pumice("run", "a.yaml", "--until", until, files={"a.yaml": JOB % ("pumice.io/arrives-after: 1h", "")})
    words = f"warning: a.yaml: document 1: Job j never arrives: it is due after 1h0m0s, the run ends after {until[:-1]}m0s\n"
    assert (words.replace("60m0s", "1h0m0s") in ran.err) == told


# --- annotations --------------------------------------------------------------------------------------------------------

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d, annotations: {scheduling.volcano.sh/group-min-member: "%s"}}
spec:
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {schedulerName: volcano, containers: [{name: m, image: a}]}}
"""


@pytest.mark.parametrize(("members", "told"), [("many", True), ("-1", True), ("1", False)])
def test_a_minimum_that_is_no_number_is_told(pumice: Command, members: str, told: bool) -> None:
    ran = pumice("run", "a.yaml", files={"a.yaml": DEPLOYMENT % members})
    says = f"metadata.annotations[scheduling.volcano.sh/group-min-member]: '{members}' is no number of pods: it counts as 1\n"
    assert (ran.status, says in ran.err) == (0, told)


# --- arguments of job plugins -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugins", "says"),
    [
        ('svc: ["--disable-network-polcy=true"]',
         ["svc: '--disable-network-polcy=true' is not understood; did you mean 'disable-network-policy'?"]),
        ('pytorch: ["--port=many", "--master=w"]', ["pytorch: '--port=many' is not understood, nor is what follows"]),
        ('pytorch: ["--master=nobody", "--worker=w"]', ["pytorch: --master=nobody: there is no task 'nobody'"]),
        ('env: [], svc: ["--inject-hosts-env=false"], tensorflow: ["--worker", "w"]', []),
    ],
)  # fmt: skip
def test_arguments_of_plugins_that_nobody_reads_are_told(pumice: Command, plugins: str, says: list[str]) -> None:
    ran = pumice("run", "a.yaml", files={"a.yaml": (JOB % ("", "")).replace("spec: {", f"spec: {{plugins: {{{plugins}}}, ", 1)})
    told = [line for line in ran.err.splitlines() if ".plugins." in line]
    assert told == [f"warning: a.yaml: document 1: Job j: spec.plugins.{each}" for each in says]
