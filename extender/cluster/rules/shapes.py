"""The shapes of the built-in kinds. Status only where somebody writes it by hand: of nodes, budgets and claims.

Source: k8s.io/api v0.36.1, */types.go."""

from __future__ import annotations

from extender.api.decode import AMOUNT, BASE64, FLAG, INT32, INT64, PORT, QUANTITY, TEXT, TIME, ListOf, MapOf, Maybe, fields
from extender.api.shapes import (
    CLAIM_SPEC,
    LABEL_SELECTOR,
    MAYBE_FLAG,
    MAYBE_INT32,
    MAYBE_INT64,
    MAYBE_TEXT,
    METADATA,
    NODE_TERM,
    POD_SPEC,
    QUANTITIES,
    TEXT_MAP,
    TEXTS,
    VOLUME_SOURCES,
    Fields,
)

MAYBE_AMOUNT = Maybe(AMOUNT)
TEMPLATE: Fields = {"metadata": METADATA, "spec": POD_SPEC}
CLAIM: Fields = {
    "metadata": METADATA, "spec": CLAIM_SPEC,
    "status": {"phase": TEXT, "accessModes": TEXTS, "capacity": QUANTITIES},
}  # fmt: skip

# --- workloads --------------------------------------------------------------------------------------------------------
_ROLLING: Fields = {**fields(MAYBE_AMOUNT, "maxSurge maxUnavailable"), "partition": MAYBE_INT32}
_STRATEGY: Fields = {"type": TEXT, "rollingUpdate": _ROLLING}
_REPLICATED: Fields = {"replicas": MAYBE_INT32, "minReadySeconds": INT32, "template": TEMPLATE}
DEPLOYMENT: Fields = {
    "spec": {
        **_REPLICATED, "selector": LABEL_SELECTOR, "strategy": _STRATEGY, "paused": FLAG,
        **fields(MAYBE_INT32, "revisionHistoryLimit progressDeadlineSeconds"),
    },
}  # fmt: skip
REPLICA_SET: Fields = {"spec": {**_REPLICATED, "selector": LABEL_SELECTOR}}
REPLICATION_CONTROLLER: Fields = {"spec": {**_REPLICATED, "selector": TEXT_MAP}}
DAEMON_SET: Fields = {
    "spec": {
        "minReadySeconds": INT32, "template": TEMPLATE, "selector": LABEL_SELECTOR, "updateStrategy": _STRATEGY,
        "revisionHistoryLimit": MAYBE_INT32,
    },
}  # fmt: skip
STATEFUL_SET: Fields = {
    "spec": {
        **_REPLICATED, "selector": LABEL_SELECTOR, "updateStrategy": _STRATEGY, **fields(TEXT, "serviceName podManagementPolicy"),
        "revisionHistoryLimit": MAYBE_INT32, "ordinals": {"start": INT32}, "volumeClaimTemplates": ListOf(CLAIM),
        "persistentVolumeClaimRetentionPolicy": fields(TEXT, "whenDeleted whenScaled"),
    },
}  # fmt: skip
_JOB_SPEC: Fields = {
    "template": TEMPLATE, "selector": LABEL_SELECTOR, **fields(MAYBE_FLAG, "suspend manualSelector"),
    **fields(MAYBE_INT32, "parallelism completions backoffLimit ttlSecondsAfterFinished backoffLimitPerIndex maxFailedIndexes"),
    "activeDeadlineSeconds": MAYBE_INT64, **fields(MAYBE_TEXT, "completionMode podReplacementPolicy managedBy"),
    "podFailurePolicy": {
        "rules": ListOf({
            "action": TEXT, "onExitCodes": {"containerName": MAYBE_TEXT, "operator": TEXT, "values": ListOf(INT32)},
            "onPodConditions": ListOf(fields(TEXT, "type status")),
        }),
    },
    "successPolicy": {"rules": ListOf({"succeededIndexes": MAYBE_TEXT, "succeededCount": MAYBE_INT32})},
}  # fmt: skip
JOB: Fields = {"spec": _JOB_SPEC}
CRON_JOB: Fields = {
    "spec": {
        **fields(TEXT, "schedule concurrencyPolicy"), "timeZone": MAYBE_TEXT, "suspend": MAYBE_FLAG,
        "startingDeadlineSeconds": MAYBE_INT64, **fields(MAYBE_INT32, "successfulJobsHistoryLimit failedJobsHistoryLimit"),
        "jobTemplate": {"metadata": METADATA, "spec": _JOB_SPEC},
    },
}  # fmt: skip

# --- policy -----------------------------------------------------------------------------------------------------------
PRIORITY_CLASS: Fields = {
    "value": INT32, "globalDefault": FLAG, "description": TEXT, "preemptionPolicy": MAYBE_TEXT,
}  # fmt: skip
BUDGET: Fields = {
    "spec": {
        **fields(MAYBE_AMOUNT, "minAvailable maxUnavailable"), "selector": LABEL_SELECTOR,
        "unhealthyPodEvictionPolicy": MAYBE_TEXT,
    },
    "status": {**fields(INT32, "disruptionsAllowed currentHealthy desiredHealthy expectedPods"), "disruptedPods": MapOf(TIME)},
}  # fmt: skip
QUOTA: Fields = {
    "spec": {
        "hard": QUANTITIES, "scopes": TEXTS,
        "scopeSelector": {"matchExpressions": ListOf({**fields(TEXT, "scopeName operator"), "values": TEXTS})},
    },
    "status": fields(QUANTITIES, "hard used"),
}  # fmt: skip
LIMIT_RANGE: Fields = {
    "spec": {
        "limits": ListOf({"type": TEXT, **fields(QUANTITIES, "max min default defaultRequest maxLimitRequestRatio")}),
    },
}  # fmt: skip

# --- storage ----------------------------------------------------------------------------------------------------------
_PERSISTENT = ("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "nfs", "iscsi", "glusterfs", "rbd", "flexVolume",
               "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk", "photonPersistentDisk",
               "portworxVolume", "scaleIO", "storageos")  # fmt: skip
VOLUME_KINDS: Fields = {
    **{name: VOLUME_SOURCES[name] for name in _PERSISTENT},
    "local": {"path": TEXT, "fsType": MAYBE_TEXT},
    "csi": {**fields(TEXT, "driver volumeHandle fsType"), "readOnly": FLAG, "volumeAttributes": TEXT_MAP},
}
VOLUME: Fields = {
    "spec": {
        **VOLUME_KINDS, "capacity": QUANTITIES, **fields(TEXTS, "accessModes mountOptions"),
        **fields(TEXT, "persistentVolumeReclaimPolicy storageClassName"), "volumeMode": MAYBE_TEXT,
        "claimRef": fields(TEXT, "apiVersion kind namespace name uid resourceVersion"),
        "nodeAffinity": {"required": {"nodeSelectorTerms": ListOf(NODE_TERM)}},
    },
    "status": fields(TEXT, "phase message reason"),
}  # fmt: skip
STORAGE_CLASS: Fields = {
    "provisioner": TEXT, "parameters": TEXT_MAP, **fields(MAYBE_TEXT, "reclaimPolicy volumeBindingMode"),
    "allowVolumeExpansion": MAYBE_FLAG, "mountOptions": TEXTS,
    "allowedTopologies": ListOf({"matchLabelExpressions": ListOf({"key": TEXT, "values": TEXTS})}),
}  # fmt: skip

CSI_NODE: Fields = {
    "spec": {
        "drivers": ListOf({**fields(TEXT, "name nodeID"), "topologyKeys": TEXTS, "allocatable": {"count": MAYBE_INT32}}),
    },
}  # fmt: skip
STORAGE_CAPACITY: Fields = {
    "storageClassName": TEXT, "nodeTopology": LABEL_SELECTOR, **fields(Maybe(QUANTITY), "capacity maximumVolumeSize"),
}  # fmt: skip

# --- the rest ---------------------------------------------------------------------------------------------------------
_CONDITION: Fields = {
    **fields(TEXT, "type status reason message"), **fields(TIME, "lastHeartbeatTime lastTransitionTime"),
}  # fmt: skip
NODE: Fields = {
    "spec": {
        "unschedulable": FLAG, **fields(TEXT, "podCIDR providerID"), "podCIDRs": TEXTS,
        "taints": ListOf({**fields(TEXT, "key value effect"), "timeAdded": TIME}),
    },
    "status": {
        **fields(QUANTITIES, "capacity allocatable"), "phase": TEXT, "conditions": ListOf(_CONDITION),
        "addresses": ListOf(fields(TEXT, "type address")), "images": ListOf({"names": TEXTS, "sizeBytes": INT64}),
        "volumesInUse": TEXTS, "volumesAttached": ListOf(fields(TEXT, "name devicePath")),
    },
}  # fmt: skip
SERVICE: Fields = {
    "spec": {
        **fields(TEXT, "type clusterIP sessionAffinity externalName"), "selector": TEXT_MAP, "clusterIPs": TEXTS,
        "publishNotReadyAddresses": FLAG,
        "ports": ListOf({
            **fields(TEXT, "name protocol"), **fields(INT32, "port nodePort"), "targetPort": PORT, "appProtocol": MAYBE_TEXT,
        }),
    },
}  # fmt: skip
CONFIG_MAP: Fields = {"data": TEXT_MAP, "binaryData": MapOf(BASE64), "immutable": MAYBE_FLAG}
SECRET: Fields = {"type": TEXT, "data": MapOf(BASE64), "stringData": TEXT_MAP, "immutable": MAYBE_FLAG}
NAMESPACE: Fields = {"spec": {"finalizers": TEXTS}}
