"""Every file of Volcano's example folder: played to its end, or waiting for a reason that is true, or refused by the right field.

The folder is found by PUMICE_EXAMPLES (relative to the project's root); without it, ../shared/volcano/examples."""

from __future__ import annotations

import json
import os

import pytest

from extender.testing.cases import ROOT
from tests.run.conftest import Command

VARIABLE, DEFAULT = "PUMICE_EXAMPLES", "../shared/volcano/examples"
FOLDER = (ROOT / (os.environ.get(VARIABLE) or DEFAULT)).resolve()
NAMES = sorted(file.stem for file in FOLDER.glob("*.yaml"))
MISSING = f"no examples: set {VARIABLE} to the folder that holds them (now {FOLDER})"

_QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\n---\n"
_CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high-priority}\nvalue: 10\n"
_JOB = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: probe}
spec:
  minAvailable: 3
  tasks:
  - name: worker
    replicas: 3
    template: {spec: {containers: [{name: main, image: app, resources: {requests: {cpu: "2", memory: 2Gi}}}]}}
"""

# Files that need others beside them, from the folder or made here.
WITH = {
    "deployment-capacity-queue1": ["queue-capacity-deserved-one"],
    "deployment-capacity-queue2": ["queue-capacity-deserved-two"],
    "deployment-with-volcano-queue": ["queue-for-deployment"],
    "invalid-jobflow-cycle": ["jobtemplates-a-to-e"],
    "invalid-jobflow-undefined-target": ["jobtemplates-a-to-e"],
    "jobflow-dag-a-to-e": ["jobtemplates-a-to-e"],
    "jobflow-probes-and-patch": ["jobtemplates-a-to-e"],
    "jobs-in-hdrf-queues": ["queues-hdrf-hierarchy-annotations"],
    "queue-nodegroup-override": ["queues-nodegroup-design-hierarchy"],
}
BESIDE = {
    "invalid-job-guide-volumes": _CLASS,
    "job-cooldown-time-task-annotation": _CLASS,
    "job-dra-resourceclaim-template": _QUEUE % "gpu-team",
    "job-dra-shared-resourceclaim": _QUEUE % "gpu-team",
    "job-ttl-seconds-after-finished": _QUEUE % "testing",
}

# What is refused, and the field that is named.
REFUSED = {
    "invalid-colocation-ratio": "spec.memoryQos.highRatio",
    "invalid-cronjob-bad-schedule": "spec.schedule",
    "invalid-cronjob-concurrency-policy": "spec.concurrencyPolicy",
    "invalid-cronjob-local-timezone": "spec.timeZone",
    "invalid-cronjob-name-too-long": "metadata.name",
    "invalid-cronjob-tz-in-schedule": "spec.schedule",
    "invalid-cronjob-unknown-timezone": "spec.timeZone",
    "invalid-hypernode-bad-regex": "spec.members[0].selector.regexMatch.pattern",
    "invalid-hypernode-no-members": "spec.members",
    "invalid-hypernode-no-selector": "spec.members[0].selector",
    "invalid-hypernode-two-selectors": "spec.members[0].selector",
    "invalid-job-any-event-with-others": "spec.policies",
    "invalid-job-depends-on-cycle": "spec.tasks",
    "invalid-job-duplicate-mount-path": "spec.volumes[1].mountPath",
    "invalid-job-duplicate-policy-event": "spec.policies[1].event",
    "invalid-job-duplicate-task-name": "spec.tasks[1].name",
    "invalid-job-event-and-exit-code": "spec.policies[0]",
    "invalid-job-exit-code-zero": "spec.policies[0].exitCode",
    "invalid-job-extended-resource-without-limit": "spec.tasks[0].template.spec.containers[0].resources.limits",
    "invalid-job-guide-volumes": "spec.volumes[0]",
    "invalid-job-internal-policy-action": "spec.policies[0].action",
    "invalid-job-internal-policy-event": "spec.policies[0].event",
    "invalid-job-min-available-above-replicas": "spec.minAvailable",
    "invalid-job-min-success-zero": "spec.minSuccess",
    "invalid-job-min-task-above-replicas": "spec.tasks[0].minAvailable",
    "invalid-job-mount-path-with-colon": "spec.volumes[0].mountPath",
    "invalid-job-mpi-master-missing": "spec.plugins.mpi",
    "invalid-job-negative-replicas": "spec.tasks[0].replicas",
    "invalid-job-no-tasks": "spec.tasks",
    "invalid-job-numa-policy-fractional-cpu": "spec.tasks[0].template.spec.containers[0].resources",
    "invalid-job-partition-product-mismatch": "spec.tasks[0].replicas",
    "invalid-job-policy-events-as-string": "spec.tasks[0].policies[0].events",
    "invalid-job-policy-without-trigger": "spec.policies[0]",
    "invalid-job-queue-not-found": "spec.queue",
    "invalid-job-root-queue": "spec.queue",
    "invalid-job-tier-allowed-and-tier-name": "spec.networkTopology",
    "invalid-job-unknown-plugin": "spec.plugins.no-such-plugin",
    "invalid-job-unknown-policy-event": "spec.policies[0].event",
    "invalid-job-upper-case-task-name": "spec.tasks[0].name",
    "invalid-job-volume-both-claim-and-name": "spec.volumes[0]",
    "invalid-job-volume-without-claim": "spec.volumes[0]",
    "invalid-jobflow-cycle": "spec.flows",
    "invalid-jobflow-undefined-target": "spec.flows[0].dependsOn.targets[0]",
    "invalid-pod-budget-percentage": "metadata.annotations[volcano.sh/jdb-min-available]",
    "invalid-pod-two-budget-annotations": "metadata.annotations",
    "invalid-podgroup-network-mode": "spec.networkTopology.mode",
    "invalid-podgroup-queue-not-found": "spec.queue",
    "invalid-podgroup-tier-conflict": "spec.networkTopology",
    "invalid-queue-capability-negative": "spec.capability.cpu",
    "invalid-queue-dequeue-strategy": "spec.dequeueStrategy",
    "invalid-queue-deserved-above-capability": "spec.deserved.cpu",
    "invalid-queue-guarantee-above-deserved": "spec.deserved.cpu",
    "invalid-queue-guarantee-without-deserved": "spec.deserved.cpu",
    "invalid-queue-hierarchy-length-mismatch": "metadata.annotations[volcano.sh/hierarchy]",
    "invalid-queue-hierarchy-weight-not-positive": "metadata.annotations[volcano.sh/hierarchy-weights]",
    "invalid-queue-parent-is-self": "spec.parent",
    "invalid-queue-parent-not-found": "spec.parent",
    "invalid-queue-weight-too-large": "spec.weight",
    # Kinds and versions that are not served, and files that are no manifests.
    "admission-conf-resource-groups": "apiVersion",
    "helm-values-sharding-configmap": "apiVersion",
    "hyperjob-heterogeneous-clusters": "kind",
    "hyperjob-llm-training-auto-split": "kind",
    "priorityclass-high-legacy-beta": "apiVersion",
    "spark-application-with-legacy-podgroup": "apiVersion",
    # The guide's pod asks for an extended resource without a limit, which no API server takes.
    "pod-resource-strategy-custom-resource": "spec.containers[0].resources.limits",
}

FOREIGN = ["argo-workflow-plain-k8s-job", "argo-workflow-vcjob-dag", "argo-workflow-vcjob-steps"]  # nothing else in the file

# What waits: exit status, reason, what the message names. Devices that the nodes of the run do not have can never fit.
WAITS = {
    "deployments-colocation-online-offline": (4, "NeverFits", "kubernetes.io/batch-cpu"),
    "job-dra-resourceclaim-template": (3, "NodesRefuse", "gpu"),
    "job-dra-shared-resourceclaim": (3, "NodesRefuse", "device class gpu.nvidia.com does not exist"),
    "job-pvc-volumes": (3, "NotStarted", "existing-pvc"),
    "job-vnpu-ascend-310p": (4, "NeverFits", "huawei.com/npu-core"),
    "pod-gpu-memory-share": (4, "NeverFits", "volcano.sh/gpu-memory"),
    "pod-gpu-number": (4, "NeverFits", "volcano.sh/gpu-number"),
    "pod-vgpu-modes": (4, "NeverFits", "volcano.sh/vgpu-number"),
    "pod-vnpu-ascend": (4, "NeverFits", "huawei.com/Ascend310P"),
    "pod-vnpu-ascend-hami-core": (4, "NeverFits", "huawei.com/Ascend310P"),
}
CONFS = [name for name in NAMES if name.startswith("scheduler-conf-")]
CONF_MAPS = [name for name in NAMES if name.startswith("configmap-scheduler-")]
AGENT = "agent-scheduler-conf"  # of another scheduler, which is not ours
PLAYED = [name for name in NAMES if name not in {*REFUSED, *FOREIGN, *WAITS, *CONFS, *CONF_MAPS, AGENT}]

pytestmark = pytest.mark.skipif(not NAMES, reason=MISSING)


def _files(name: str) -> list[str]:
    return [str(FOLDER / f"{each}.yaml") for each in (name, *WITH.get(name, ()))]


def _beside(name: str) -> tuple[list[str], dict[str, str | bytes]]:
    return (["beside.yaml"], {"beside.yaml": BESIDE[name]}) if name in BESIDE else ([], {})


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(pumice: Command, name: str) -> None:
    """With file, document and field."""
    more, files = _beside(name)
    ran = pumice("run", *_files(name), *more, files=files)
    assert (ran.status, ran.out) == (1, "")
    assert ran.fault.startswith(f"{FOLDER / name}.yaml: document ")
    assert f" {REFUSED[name]}: " in ran.fault.replace(" [", " ")


@pytest.mark.parametrize("name", FOREIGN)
def test_it_is_of_another_project(pumice: Command, name: str) -> None:
    ran = pumice("run", *_files(name))
    assert (ran.status, ran.fault) == (2, f"no manifests in {FOLDER / name}.yaml that are played here, only Workflow")


@pytest.mark.parametrize("name", WAITS)
def test_it_waits(pumice: Command, name: str) -> None:
    """For a reason that names what is missing."""
    status, reason, names = WAITS[name]
    more, files = _beside(name)
    ran = pumice("run", *_files(name), *more, "-o", "json", files=files)
    told = json.loads(ran.out)["waiting"]
    assert ran.status == status
    assert [wait["reason"] for wait in told] == [reason] * len(told)
    assert names in told[0]["message"]


@pytest.mark.parametrize("name", PLAYED)
def test_it_is_played(pumice: Command, name: str) -> None:
    """All its pods get nodes, all its jobs run."""
    more, files = _beside(name)
    ran = pumice("run", *_files(name), *more, "-o", "json", files=files)
    told = json.loads(ran.out)
    assert (ran.status, told["waiting"]) == (0, [])
    assert [key for key, pod in told["pods"].items() if not pod["node"] or pod["phase"] == "Pending"] == []
    assert set(told["jobs"].values()) <= {"Running", "Completed"}


@pytest.mark.parametrize("name", CONFS)
def test_a_configuration_file(pumice: Command, name: str) -> None:
    """What Volcano reads is read, and a gang is placed under it."""
    ran = pumice("run", "job.yaml", "--conf", f"{FOLDER / name}.yaml", "-o", "json", files={"job.yaml": _JOB})
    assert (ran.status, json.loads(ran.out)["jobs"]) == (0, {"default/probe": "Running"})


@pytest.mark.parametrize("name", CONF_MAPS)
def test_a_configuration_in_a_config_map(pumice: Command, name: str) -> None:
    """Likewise, found among the manifests."""
    ran = pumice("run", "job.yaml", f"{FOLDER / name}.yaml", "-o", "json", files={"job.yaml": _JOB})
    assert f"scheduler.conf: from {FOLDER / name}.yaml: document " in ran.err
    assert (ran.status, json.loads(ran.out)["jobs"]) == (0, {"default/probe": "Running"})


def test_the_tables_name_files_that_are_there() -> None:
    """A file that is gone or has another name is no silent success."""
    assert {*REFUSED, *FOREIGN, *WAITS, *WITH, *BESIDE, AGENT} - set(NAMES) == set()
    assert len(PLAYED) > 90
