"""Every well-known label, annotation, taint and gate that we read or write, each with who writes and who reads it.

Source: volcano ed72c7c, staging/src/volcano.sh/apis/pkg/apis/*/labels.go and pkg/scheduler/api/well_known_labels.go,
unless a line says otherwise. `W` writes, `R` reads: job controller, podgroup controller, queue controller, scheduler,
webhook, agent, user. (l) label, (a) annotation."""

from __future__ import annotations

# --- group membership ------------------------------------------------------------------------------------------------
GROUP_NAME = "scheduling.k8s.io/group-name"  # pod a. W: job and podgroup controller, webhook, user. R: scheduler
QUEUE_NAME_ANNOTATION = "scheduling.volcano.sh/queue-name"  # pod, Namespace a. W: user. R: podgroup controller, webhook
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"  # owner a. W: user. R: podgroup controller
QUEUE_ALLOCATION_GATE = "scheduling.volcano.sh/queue-allocation-gate"  # pod a and scheduling gate. R: webhook, scheduler

# --- pods of Volcano jobs (job controller writes all of them) ----------------------------------------------------------
TASK_SPEC = "volcano.sh/task-spec"  # pod l+a: task name, "the role". R: scheduler, job controller
TASK_INDEX = "volcano.sh/task-index"  # pod l+a
JOB_NAME = "volcano.sh/job-name"  # pod l+a. R: job controller, Services of the svc plugin
JOB_NAMESPACE = "volcano.sh/job-namespace"  # pod l
QUEUE_NAME = "volcano.sh/queue-name"  # pod l+a
JOB_VERSION = "volcano.sh/job-version"  # pod a: status.version at creation. R: job controller
JOB_RETRY_COUNT = "volcano.sh/job-retry-count"  # pod a
TEMPLATE_UID = "volcano.sh/template-uid"  # pod a: <job>-<task>
PARTITION_ID = "volcano.sh/partition-id"  # pod l
OUT_OF_SYNC = "volcano.sh/controller-out-of-sync"  # pod a: "true" before a deliberate delete. R: job controller
JOB_FORWARDING = "volcano.sh/job-forwarding"  # job a, pod l+a
NUMA_POLICY = "volcano.sh/numa-topology-policy"  # pod a. R: numa-aware
TOPOLOGY_DECISION = "volcano.sh/topology-decision"  # pod a. W: scheduler

# --- set by users on jobs, pods or owners -------------------------------------------------------------------------------
PREEMPTABLE = "volcano.sh/preemptable"  # a, l. R: scheduler
COOLDOWN_TIME = "volcano.sh/cooldown-time"  # a, l. R: cdp
REVOCABLE_ZONE = "volcano.sh/revocable-zone"  # a; on nodes l. R: tdm
JDB_MIN_AVAILABLE = "volcano.sh/jdb-min-available"  # a. R: tdm, webhook
JDB_MAX_UNAVAILABLE = "volcano.sh/jdb-max-unavailable"  # a. R: tdm, webhook
SLA_WAITING_TIME = "volcano.sh/sla-waiting-time"  # a. R: sla
SLA_WAITING_TIME_OLD = "sla-waiting-time"  # a. R: sla
TASK_PRIORITY = "volcano.sh/task-priority"  # pod a. R: scheduler
NETWORK_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"  # pod a. R: podgroup controller
NETWORK_TOPOLOGY_HIGHEST_TIER = "volcano.sh/network-topology-highest-tier"  # pod a. R: podgroup controller
RESOURCE_GROUP = "volcano.sh/resource-group"  # pod a. R: webhook

# --- queues --------------------------------------------------------------------------------------------------------------
HIERARCHY = "volcano.sh/hierarchy"  # Queue a: root/a/b. R: drf, webhook
HIERARCHY_WEIGHTS = "volcano.sh/hierarchy-weights"  # Queue a: 1/2/3
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"  # Queue a: "true"/"false". W, R: queue controller

# --- flows and cron jobs -------------------------------------------------------------------------------------------------
CREATED_BY_JOB_TEMPLATE = "volcano.sh/createdByJobTemplate"  # Job l+a
CREATED_BY_JOB_FLOW = "volcano.sh/createdByJobFlow"  # Job l+a
CRON_SCHEDULED_TIMESTAMP = "volcano.sh/cronjob-scheduled-timestamp"  # Job a

# --- Kubernetes' own (k8s.io/api/core/v1/well_known_labels.go, well_known_taints.go) --------------------------------------
HOSTNAME = "kubernetes.io/hostname"  # node l
ZONE = "topology.kubernetes.io/zone"  # node l
REGION = "topology.kubernetes.io/region"  # node l
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # Namespace l
SCHEDULERS = ("volcano",)  # schedulerName of pods that are ours, where no flag says otherwise
SYSTEM_NAMESPACE = "volcano-system"  # where our own parts run, where no flag says otherwise
DEFAULT_SCHEDULER = "default-scheduler"  # what the API server writes into pods that name no scheduler
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"  # node taint
TAINT_NOT_READY = "node.kubernetes.io/not-ready"  # node taint

# --- volumes (k8s.io/component-helpers v0.36.1 storage/volume, k8s.io/api v0.36.1) ----------------------------------------------
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # PersistentVolumeClaim a: make its volume for this node. W: scheduler.
# R: provisioners, which take it away where they cannot
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"  # PersistentVolumeClaim a. W: volume controller. R: scheduler
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"  # volume and claim a: nobody asked for this very one. W: volume
# controller, scheduler
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"  # PersistentVolume a. W: provisioner
BETA_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"  # volume and claim a: goes before the field. W: user
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"  # StorageClass a: "true". W: user. R: API server
ZONE_BETA = "failure-domain.beta.kubernetes.io/zone"  # node and volume l
REGION_BETA = "failure-domain.beta.kubernetes.io/region"  # node and volume l

# --- what people ask of admission (Pumice) -----------------------------------------------------------------------------------
SCHEDULE = "pumice.io/schedule"  # Namespace l, pod l: "true" gives pods our scheduler and their group; a pod may say "false".
# W: user. R: webhook, and the selectors of its configuration, so that no other pod ever waits for it

# --- the extender's (Pumice) ---------------------------------------------------------------------------------------------------
RETRY = "pumice.io/retry"  # pod a: when kube-scheduler was last told to look at the pod again. W: extender. R: nobody, any
# change of a pod that waits is enough

# --- the embedded kubelet's (Pumice) -----------------------------------------------------------------------------------------
RUN_SECONDS = "pumice.io/run-seconds"  # pod a: how long its containers run, "30" or "1m30s". W: user. R: cluster/kubelet.py
EXIT_CODE = "pumice.io/exit-code"  # pod a: what they exit with then, 0 if not written
HOLD = "test/hold"  # pod a: "true" keeps a bound pod Pending on its node
ARRIVES_AFTER = "pumice.io/arrives-after"  # a of any object given to `pumice run`: created so long after the start. W: user
