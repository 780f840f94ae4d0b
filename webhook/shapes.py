"""The shapes of our own kinds, as admission reads them; those of pods are in extender/api/shapes.py.

Source: volcano ed72c7c, staging/src/volcano.sh/apis."""

from __future__ import annotations

from extender.api.decode import INT32, INT64, TEXT, Inline, ListOf, MapOf, fields
from extender.api.shapes import (
    CLAIM_SPEC,
    LABEL_SELECTOR,
    MAYBE_DURATION,
    MAYBE_FLAG,
    MAYBE_INT32,
    MAYBE_INT64,
    MAYBE_TEXT,
    METADATA,
    POD_SPEC,
    PREFERRED,
    QUANTITIES,
    REQUIRED,
    TEXTS,
    Fields,
)

TOPOLOGY: Fields = {**fields(TEXT, "mode highestTierName"), "highestTierAllowed": MAYBE_INT64}
POLICIES = ListOf({
    **fields(TEXT, "action event"), "events": TEXTS, "exitCode": MAYBE_INT32, "timeout": MAYBE_DURATION,
})  # fmt: skip
TASK: Fields = {
    "name": TEXT, "replicas": INT32, "minAvailable": MAYBE_INT32, "maxRetry": INT32, "topologyPolicy": TEXT,
    "template": Inline({"metadata": Inline(METADATA), "spec": Inline(POD_SPEC)}), "policies": POLICIES,
    "dependsOn": {"name": TEXTS, "iteration": TEXT},
    "partitionPolicy": {**fields(INT32, "totalPartitions partitionSize minPartitions"), "networkTopology": TOPOLOGY},
}  # fmt: skip
JOB_SPEC: Fields = {
    **fields(TEXT, "schedulerName queue priorityClassName"), **fields(INT32, "minAvailable maxRetry"),
    **fields(MAYBE_INT32, "ttlSecondsAfterFinished minSuccess"), "runningEstimate": MAYBE_DURATION,
    "volumes": ListOf({**fields(TEXT, "mountPath volumeClaimName"), "volumeClaim": CLAIM_SPEC}),
    "tasks": ListOf(TASK), "policies": POLICIES, "plugins": MapOf(TEXTS), "networkTopology": TOPOLOGY,
}  # fmt: skip
JOB: Fields = {"metadata": METADATA, "spec": JOB_SPEC}
CRON_JOB: Fields = {
    "metadata": METADATA,
    "spec": {
        **fields(TEXT, "schedule concurrencyPolicy"), **fields(MAYBE_TEXT, "timeZone"), "suspend": MAYBE_FLAG,
        "startingDeadlineSeconds": MAYBE_INT64, **fields(MAYBE_INT32, "successfulJobsHistoryLimit failedJobsHistoryLimit"),
        "jobTemplate": {"metadata": METADATA, "spec": JOB_SPEC},
    },
}  # fmt: skip
POD_GROUP: Fields = {
    "metadata": METADATA,
    "spec": {
        "minMember": INT32, "minTaskMember": MapOf(INT32), **fields(TEXT, "queue priorityClassName"),
        "minResources": QUANTITIES, "networkTopology": TOPOLOGY,
        "subGroupPolicy": ListOf({
            "name": TEXT, **fields(MAYBE_INT32, "subGroupSize minSubGroups"), "labelSelector": LABEL_SELECTOR,
            "matchLabelKeys": TEXTS, "networkTopology": TOPOLOGY,
        }),
    },
}  # fmt: skip
_GROUP_AFFINITY: Fields = fields(TEXTS, f"{REQUIRED} {PREFERRED}")
QUEUE: Fields = {
    "metadata": METADATA,
    "spec": {
        **fields(TEXT, "parent type dequeueStrategy"), **fields(INT32, "weight priority"), "reclaimable": MAYBE_FLAG,
        **fields(QUANTITIES, "capability deserved"), "guarantee": {"resource": QUANTITIES},
        "affinity": fields(_GROUP_AFFINITY, "nodeGroupAffinity nodeGroupAntiAffinity"),
        "extendClusters": ListOf({"name": TEXT, "weight": INT32, "capacity": QUANTITIES}),
    },
    "status": {"state": TEXT, "allocated": QUANTITIES},
}  # fmt: skip
_PROBES: Fields = {
    "httpGetList": ListOf({
        **fields(TEXT, "taskName path"), "port": INT64, "httpHeader": fields(TEXT, "name value"),
    }),
    "tcpSocketList": ListOf({"taskName": TEXT, "port": INT64}),
    "taskStatusList": ListOf(fields(TEXT, "taskName phase")),
}  # fmt: skip
JOB_FLOW: Fields = {
    "metadata": METADATA,
    "spec": {
        "jobRetainPolicy": TEXT,
        "flows": ListOf({
            "name": TEXT, "dependsOn": {"targets": TEXTS, "probe": _PROBES}, "patch": {"jobSpec": JOB_SPEC},
        }),
    },
}  # fmt: skip
HYPER_NODE: Fields = {
    "metadata": METADATA,
    "spec": {
        "tier": INT64, "tierName": TEXT,
        "members": ListOf({
            "type": TEXT,
            "selector": {
                "exactMatch": {"name": TEXT}, "regexMatch": {"pattern": TEXT}, "labelMatch": LABEL_SELECTOR,
            },
        }),
    },
}  # fmt: skip
