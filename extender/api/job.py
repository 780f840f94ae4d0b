"""Job (batch.volcano.sh/v1alpha1): the views that controllers and people's commands read. Templates stay JSON."""

from __future__ import annotations

from extender.api.meta import Json
from extender.api.podgroup import NetworkTopology
from extender.api.views import Metadata, View


class LifecyclePolicy(View, frozen=True):
    action: str = ""
    event: str = ""
    events: tuple[str, ...] | None = None
    exit_code: int | None = None
    timeout: str | None = None


class DependsOn(View, frozen=True):
    name: tuple[str, ...] | None = None
    iteration: str = ""


class PartitionPolicy(View, frozen=True):
    total_partitions: int = 0
    partition_size: int = 0
    min_partitions: int = 0
    network_topology: Json | None = None


class TaskSpec(View, frozen=True):
    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    template: Json = {}
    policies: tuple[LifecyclePolicy, ...] | None = None
    topology_policy: str = ""
    max_retry: int = 0
    depends_on: DependsOn | None = None
    partition_policy: PartitionPolicy | None = None


class VolumeSpec(View, frozen=True):
    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: Json | None = None


class JobSpec(View, frozen=True):
    scheduler_name: str = ""
    min_available: int = 0
    volumes: tuple[VolumeSpec, ...] | None = None
    tasks: tuple[TaskSpec, ...] = ()
    policies: tuple[LifecyclePolicy, ...] | None = None
    plugins: dict[str, list[str] | None] | None = None
    queue: str = ""
    max_retry: int = 3
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None
    network_topology: NetworkTopology | None = None


class JobState(View, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class JobCondition(View, frozen=True):
    status: str = ""
    last_transition_time: str | None = None


class TaskState(View, frozen=True):
    phase: dict[str, int] | None = None


class JobStatus(View, frozen=True):
    state: JobState = JobState()
    min_available: int = 0
    task_status_count: dict[str, TaskState] | None = None
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    running_duration: str | None = None
    controlled_resources: dict[str, str] | None = None
    conditions: tuple[JobCondition, ...] | None = None


class Job(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


# --- the words of status.state.phase, policies[].event and policies[].action (volcano ed72c7c, apis/batch, apis/bus) ---
PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
ABORTING, ABORTED = "Aborting", "Aborted"
COMPLETING, COMPLETED = "Completing", "Completed"
TERMINATING, TERMINATED = "Terminating", "Terminated"
FAILED = "Failed"
FINISHED = (COMPLETED, FAILED, TERMINATED)

ANY_EVENT, POD_FAILED, POD_EVICTED, POD_PENDING, POD_RUNNING = "*", "PodFailed", "PodEvicted", "PodPending", "PodRunning"
GROUP_UNKNOWN, TASK_COMPLETED, TASK_FAILED = "Unknown", "TaskCompleted", "TaskFailed"
OUT_OF_SYNC_EVENT, COMMAND_ISSUED = "OutOfSync", "CommandIssued"

ABORT_JOB, RESTART_JOB, TERMINATE_JOB = "AbortJob", "RestartJob", "TerminateJob"
COMPLETE_JOB, RESUME_JOB, SYNC_JOB = "CompleteJob", "ResumeJob", "SyncJob"
RESTART_TASK, RESTART_POD, RESTART_PARTITION = "RestartTask", "RestartPod", "RestartPartition"
