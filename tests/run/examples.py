"""Volcano's example folder: its files, what they need beside them, and how each of them ends.

The folder is found by PUMICE_EXAMPLES (relative to the project's root); without it, ../shared/volcano/examples."""

from __future__ import annotations

import os

from extender.testing.cases import ROOT

VARIABLE, DEFAULT = "PUMICE_EXAMPLES", "../shared/volcano/examples"
FOLDER = (ROOT / (os.environ.get(VARIABLE) or DEFAULT)).resolve()
NAMES = sorted(file.stem for file in FOLDER.glob("*.yaml"))
MISSING = f"no examples: set {VARIABLE} to the folder that holds them (now {FOLDER})"

_QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\n---\n"
_CLASS = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high-priority}\nvalue: 10\n"

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
    # The guide's pod asks for an extended resource without a limit, which no API server takes.
    "pod-resource-strategy-custom-resource": "spec.containers[0].resources.limits",
}

# Kinds and versions that are not served, and files that are no manifests.
UNSERVED = {
    "admission-conf-resource-groups": "apiVersion",
    "helm-values-sharding-configmap": "apiVersion",
    "hyperjob-heterogeneous-clusters": "kind",
    "hyperjob-llm-training-auto-split": "kind",
    "priorityclass-high-legacy-beta": "apiVersion",
    "spark-application-with-legacy-podgroup": "apiVersion",
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
    "pod-vgpu-modes": (4, "NeverFits", "volcano.sh/vgpu-"),
    "pod-vnpu-ascend": (4, "NeverFits", "huawei.com/Ascend310P"),
    "pod-vnpu-ascend-hami-core": (4, "NeverFits", "huawei.com/Ascend310P"),
}
CONFS = [name for name in NAMES if name.startswith("scheduler-conf-")]
CONF_MAPS = [name for name in NAMES if name.startswith("configmap-scheduler-")]
AGENT = "agent-scheduler-conf"  # of another scheduler, which is not ours
PLAYED = [name for name in NAMES if name not in {*REFUSED, *UNSERVED, *FOREIGN, *WAITS, *CONFS, *CONF_MAPS, AGENT}]
