"""The shapes of pods and of what others have in common with them: every field with its type and nothing else.

Maybe marks what is a pointer in Go: there a zero is not a missing field. Source: k8s.io/api v0.36.1, core/v1/types.go."""

from __future__ import annotations

from extender.api.decode import (
    DURATION,
    FLAG,
    INT32,
    INT64,
    PORT,
    QUANTITY,
    TEXT,
    Inline,
    ListOf,
    MapOf,
    Maybe,
    Shape,
    fields,
)

TEXTS = ListOf(TEXT)
TEXT_MAP = MapOf(TEXT)
QUANTITIES = MapOf(QUANTITY)
MAYBE_TEXT, MAYBE_FLAG, MAYBE_INT32, MAYBE_INT64 = Maybe(TEXT), Maybe(FLAG), Maybe(INT32), Maybe(INT64)
MAYBE_QUANTITY, MAYBE_DURATION = Maybe(QUANTITY), Maybe(DURATION)

Fields = dict[str, Shape]

METADATA: Fields = {
    **fields(TEXT, "name generateName namespace uid"),
    **fields(TEXT_MAP, "labels annotations"),
    "finalizers": TEXTS,
    "ownerReferences": ListOf({
        **fields(TEXT, "apiVersion kind name uid"), **fields(MAYBE_FLAG, "controller blockOwnerDeletion"),
    }),
}  # fmt: skip
REQUIREMENT: Fields = {**fields(TEXT, "key operator"), "values": TEXTS}
LABEL_SELECTOR: Fields = {"matchLabels": TEXT_MAP, "matchExpressions": ListOf(REQUIREMENT)}
RESOURCES: Fields = {
    **fields(QUANTITIES, "limits requests"),
    "claims": ListOf(fields(TEXT, "name request")),
}

# --- affinity -------------------------------------------------------------------------------------------------------------
NODE_TERM: Fields = fields(ListOf(REQUIREMENT), "matchExpressions matchFields")
POD_TERM: Fields = {
    "topologyKey": TEXT,
    **fields(TEXTS, "namespaces matchLabelKeys mismatchLabelKeys"),
    **fields(LABEL_SELECTOR, "labelSelector namespaceSelector"),
}
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
POD_AFFINITY: Fields = {
    REQUIRED: ListOf(POD_TERM),
    PREFERRED: ListOf({"weight": INT32, "podAffinityTerm": Inline(POD_TERM)}),
}
AFFINITY: Fields = {
    "nodeAffinity": {
        REQUIRED: {"nodeSelectorTerms": ListOf(NODE_TERM)},
        PREFERRED: ListOf({"weight": INT32, "preference": Inline(NODE_TERM)}),
    },
    "podAffinity": POD_AFFINITY,
    "podAntiAffinity": POD_AFFINITY,
}
TOLERATION: Fields = {**fields(TEXT, "key operator value effect"), "tolerationSeconds": MAYBE_INT64}
TOPOLOGY_SPREAD: Fields = {
    **fields(TEXT, "topologyKey whenUnsatisfiable"),
    **fields(MAYBE_TEXT, "nodeAffinityPolicy nodeTaintsPolicy"),
    "maxSkew": INT32, "minDomains": MAYBE_INT32, "matchLabelKeys": TEXTS, "labelSelector": LABEL_SELECTOR,
}  # fmt: skip

# --- containers -----------------------------------------------------------------------------------------------------------
OPTIONAL_KEY: Fields = {**fields(TEXT, "name key"), "optional": MAYBE_FLAG}
OPTIONAL_REF: Fields = {"name": TEXT, "optional": MAYBE_FLAG}
FIELD_REF: Fields = fields(TEXT, "apiVersion fieldPath")
RESOURCE_REF: Fields = {**fields(TEXT, "containerName resource"), "divisor": QUANTITY}
ENV: Fields = {
    **fields(TEXT, "name value"),
    "valueFrom": {
        "fieldRef": FIELD_REF, "resourceFieldRef": RESOURCE_REF, "configMapKeyRef": OPTIONAL_KEY, "secretKeyRef": OPTIONAL_KEY,
        "fileKeyRef": {**fields(TEXT, "volumeName path key"), "optional": MAYBE_FLAG},
    },
}  # fmt: skip
HANDLER: Fields = {
    "exec": {"command": TEXTS},
    "httpGet": {**fields(TEXT, "host path scheme"), "port": PORT, "httpHeaders": ListOf(fields(TEXT, "name value"))},
    "tcpSocket": {"host": TEXT, "port": PORT},
}
PROBE: Fields = {
    **HANDLER,
    "grpc": {"port": INT32, "service": MAYBE_TEXT},
    **fields(INT32, "initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold"),
    "terminationGracePeriodSeconds": MAYBE_INT64,
}
HOOK: Fields = {**HANDLER, "sleep": {"seconds": INT64}}
PROFILE: Fields = {"type": TEXT, "localhostProfile": MAYBE_TEXT}
SECURITY: Fields = {
    **fields(MAYBE_INT64, "runAsUser runAsGroup"),
    "runAsNonRoot": MAYBE_FLAG,
    "seLinuxOptions": fields(TEXT, "user role type level"),
    "windowsOptions": {
        **fields(MAYBE_TEXT, "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName"), "hostProcess": MAYBE_FLAG,
    },
    **fields(PROFILE, "seccompProfile appArmorProfile"),
}  # fmt: skip
CONTAINER: Fields = {
    **fields(TEXT, "name image workingDir imagePullPolicy terminationMessagePath terminationMessagePolicy"),
    **fields(TEXTS, "command args"),
    **fields(FLAG, "stdin stdinOnce tty"),
    "restartPolicy": MAYBE_TEXT,
    "restartPolicyRules": ListOf({"action": TEXT, "exitCodes": {"operator": TEXT, "values": ListOf(INT32)}}),
    "ports": ListOf({**fields(TEXT, "name protocol hostIP"), **fields(INT32, "containerPort hostPort")}),
    "env": ListOf(ENV),
    "envFrom": ListOf({"prefix": TEXT, **fields(OPTIONAL_REF, "configMapRef secretRef")}),
    "resources": Inline(RESOURCES),
    "resizePolicy": ListOf(fields(TEXT, "resourceName restartPolicy")),
    "volumeMounts": ListOf({
        **fields(TEXT, "name mountPath subPath subPathExpr"), **fields(MAYBE_TEXT, "mountPropagation recursiveReadOnly"),
        "readOnly": FLAG,
    }),
    "volumeDevices": ListOf(fields(TEXT, "name devicePath")),
    **fields(PROBE, "livenessProbe readinessProbe startupProbe"),
    "lifecycle": {**fields(HOOK, "postStart preStop"), "stopSignal": MAYBE_TEXT},
    "securityContext": {
        **SECURITY,
        **fields(MAYBE_FLAG, "privileged readOnlyRootFilesystem allowPrivilegeEscalation"),
        "procMount": MAYBE_TEXT, "capabilities": fields(TEXTS, "add drop"),
    },
}  # fmt: skip

# --- volumes --------------------------------------------------------------------------------------------------------------
CLAIM_SPEC: Fields = {
    "accessModes": TEXTS, "selector": LABEL_SELECTOR, "volumeName": TEXT,
    "resources": Inline(fields(QUANTITIES, "limits requests")),
    **fields(MAYBE_TEXT, "storageClassName volumeMode volumeAttributesClassName"),
    "dataSource": {**fields(TEXT, "kind name"), "apiGroup": MAYBE_TEXT},
    "dataSourceRef": {**fields(TEXT, "kind name"), **fields(MAYBE_TEXT, "apiGroup namespace")},
}  # fmt: skip
_ITEMS = ListOf({**fields(TEXT, "key path"), "mode": MAYBE_INT32})
_DOWNWARD = ListOf({"path": TEXT, "fieldRef": FIELD_REF, "resourceFieldRef": RESOURCE_REF, "mode": MAYBE_INT32})
_SECRET_REF: Fields = {"name": TEXT}
_DISK: Fields = {"fsType": TEXT, "readOnly": FLAG}
VOLUME_SOURCES: Fields = {
    "hostPath": {"path": TEXT, "type": MAYBE_TEXT},
    "emptyDir": {"medium": TEXT, "sizeLimit": MAYBE_QUANTITY},
    "gcePersistentDisk": {**_DISK, "pdName": TEXT, "partition": INT32},
    "awsElasticBlockStore": {**_DISK, "volumeID": TEXT, "partition": INT32},
    "gitRepo": fields(TEXT, "repository revision directory"),
    "secret": {"secretName": TEXT, "items": _ITEMS, "defaultMode": MAYBE_INT32, "optional": MAYBE_FLAG},
    "nfs": {**fields(TEXT, "server path"), "readOnly": FLAG},
    "iscsi": {
        **_DISK, **fields(TEXT, "targetPortal iqn iscsiInterface"), "lun": INT32, "portals": TEXTS,
        **fields(FLAG, "chapAuthDiscovery chapAuthSession"), "secretRef": _SECRET_REF, "initiatorName": MAYBE_TEXT,
    },
    "glusterfs": {**fields(TEXT, "endpoints path"), "readOnly": FLAG},
    "persistentVolumeClaim": {"claimName": TEXT, "readOnly": FLAG},
    "rbd": {**_DISK, "monitors": TEXTS, **fields(TEXT, "image pool user keyring"), "secretRef": _SECRET_REF},
    "flexVolume": {**_DISK, "driver": TEXT, "secretRef": _SECRET_REF, "options": TEXT_MAP},
    "cinder": {**_DISK, "volumeID": TEXT, "secretRef": _SECRET_REF},
    "cephfs": {"monitors": TEXTS, **fields(TEXT, "path user secretFile"), "secretRef": _SECRET_REF, "readOnly": FLAG},
    "flocker": fields(TEXT, "datasetName datasetUUID"),
    "downwardAPI": {"items": _DOWNWARD, "defaultMode": MAYBE_INT32},
    "fc": {**_DISK, **fields(TEXTS, "targetWWNs wwids"), "lun": MAYBE_INT32},
    "azureFile": {**fields(TEXT, "secretName shareName"), "readOnly": FLAG},
    "configMap": {"name": TEXT, "items": _ITEMS, "defaultMode": MAYBE_INT32, "optional": MAYBE_FLAG},
    "vsphereVolume": fields(TEXT, "volumePath fsType storagePolicyName storagePolicyID"),
    "quobyte": {**fields(TEXT, "registry volume user group tenant"), "readOnly": FLAG},
    "azureDisk": {
        **fields(TEXT, "diskName diskURI"), **fields(MAYBE_TEXT, "cachingMode fsType kind"), "readOnly": MAYBE_FLAG,
    },
    "photonPersistentDisk": fields(TEXT, "pdID fsType"),
    "projected": {
        "sources": ListOf({
            "secret": {"name": TEXT, "items": _ITEMS, "optional": MAYBE_FLAG},
            "configMap": {"name": TEXT, "items": _ITEMS, "optional": MAYBE_FLAG},
            "downwardAPI": {"items": _DOWNWARD},
            "serviceAccountToken": {**fields(TEXT, "audience path"), "expirationSeconds": MAYBE_INT64},
            "clusterTrustBundle": {
                **fields(MAYBE_TEXT, "name signerName"), "labelSelector": LABEL_SELECTOR, "optional": MAYBE_FLAG, "path": TEXT,
            },
            "podCertificate": {
                **fields(TEXT, "signerName keyType credentialBundlePath keyPath certificateChainPath"),
                "maxExpirationSeconds": MAYBE_INT32, "userAnnotations": TEXT_MAP,
            },
        }),
        "defaultMode": MAYBE_INT32,
    },
    "portworxVolume": {**_DISK, "volumeID": TEXT},
    "scaleIO": {
        **_DISK, **fields(TEXT, "gateway system protectionDomain storagePool storageMode volumeName"), "sslEnabled": FLAG,
        "secretRef": _SECRET_REF,
    },
    "storageos": {**_DISK, **fields(TEXT, "volumeName volumeNamespace"), "secretRef": _SECRET_REF},
    "csi": {
        "driver": TEXT, "readOnly": MAYBE_FLAG, "fsType": MAYBE_TEXT, "volumeAttributes": TEXT_MAP,
        "nodePublishSecretRef": _SECRET_REF,
    },
    "ephemeral": {"volumeClaimTemplate": {"metadata": Inline(METADATA), "spec": Inline(CLAIM_SPEC)}},
    "image": fields(TEXT, "reference pullPolicy"),
}  # fmt: skip

# --- pods -----------------------------------------------------------------------------------------------------------------
POD_SPEC: Fields = {
    **fields(TEXT, "restartPolicy dnsPolicy serviceAccountName serviceAccount nodeName hostname subdomain schedulerName "
                   "priorityClassName"),
    **fields(MAYBE_TEXT, "runtimeClassName preemptionPolicy hostnameOverride"),
    **fields(FLAG, "hostNetwork hostPID hostIPC"),
    **fields(MAYBE_FLAG, "automountServiceAccountToken shareProcessNamespace enableServiceLinks setHostnameAsFQDN hostUsers"),
    **fields(MAYBE_INT64, "activeDeadlineSeconds terminationGracePeriodSeconds"),
    "priority": MAYBE_INT32,
    **fields(ListOf(CONTAINER), "containers initContainers"),
    "ephemeralContainers": ListOf({**CONTAINER, "targetContainerName": TEXT}),
    "volumes": ListOf({"name": TEXT, **VOLUME_SOURCES}),
    "nodeSelector": TEXT_MAP, "affinity": AFFINITY, "tolerations": ListOf(TOLERATION),
    "topologySpreadConstraints": ListOf(TOPOLOGY_SPREAD),
    "imagePullSecrets": ListOf(_SECRET_REF), "overhead": QUANTITIES, "resources": RESOURCES,
    "hostAliases": ListOf({"ip": TEXT, "hostnames": TEXTS}),
    "dnsConfig": {
        **fields(TEXTS, "nameservers searches"), "options": ListOf({"name": TEXT, "value": MAYBE_TEXT}),
    },
    "readinessGates": ListOf({"conditionType": TEXT}), "schedulingGates": ListOf({"name": TEXT}),
    "resourceClaims": ListOf({"name": TEXT, **fields(MAYBE_TEXT, "resourceClaimName resourceClaimTemplateName")}),
    "schedulingGroup": {"podGroupName": MAYBE_TEXT}, "os": {"name": TEXT},
    "securityContext": {
        **SECURITY,
        "fsGroup": MAYBE_INT64, "supplementalGroups": ListOf(INT64), "sysctls": ListOf(fields(TEXT, "name value")),
        **fields(MAYBE_TEXT, "fsGroupChangePolicy supplementalGroupsPolicy seLinuxChangePolicy"),
    },
}  # fmt: skip
POD: Fields = {"metadata": METADATA, "spec": POD_SPEC}
NAMESPACE: Fields = {"metadata": METADATA}
