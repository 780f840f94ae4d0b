"""Pod: the fields we schedule on. What it asks of its node is worked out in pod_requests.py."""

from __future__ import annotations

from msgspec import field

from extender.api import labels as names
from extender.api.selectors import LabelSelector, NodeAffinity, Toleration
from extender.api.views import Metadata, Quantities, View

PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN = "Pending", "Running", "Succeeded", "Failed", "Unknown"
PHASES = (PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN)
ENDED = (SUCCEEDED, FAILED)  # the phases that no pod leaves
DISRUPTION_TARGET, PREEMPTED = "DisruptionTarget", "PreemptionByScheduler"  # condition and reason on a victim


class ContainerPort(View, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class Resources(View, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(View, frozen=True):
    name: str = ""
    image: str = ""
    restart_policy: str = ""
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] | None = None

    @property
    def sidecar(self) -> bool:
        """Of an init container: it goes on beside the containers proper."""
        return self.restart_policy == "Always"


class PodAffinityTerm(View, frozen=True):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None
    mismatch_label_keys: tuple[str, ...] | None = None


class WeightedPodAffinityTerm(View, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(View, frozen=True):
    """The shape of podAffinity and of podAntiAffinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] | None = None


class Affinity(View, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(View, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] | None = None


class SchedulingGate(View, frozen=True):
    name: str = ""


class ClaimVolume(View, frozen=True):
    claim_name: str = ""


class EphemeralVolume(View, frozen=True):
    """The pod has a claim of its own, made from a template; its name follows from those of pod and volume."""


class ImageVolume(View, frozen=True):
    reference: str = ""


class GoogleDisk(View, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AmazonDisk(View, frozen=True):
    volume_id: str = field(default="", name="volumeID")


class IscsiDisk(View, frozen=True):
    iqn: str = ""
    read_only: bool = False


class RadosDisk(View, frozen=True):
    monitors: tuple[str, ...] = ()
    pool: str = ""
    image: str = ""
    read_only: bool = False


class Volume(View, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    image: ImageVolume | None = None
    gce_persistent_disk: GoogleDisk | None = None
    aws_elastic_block_store: AmazonDisk | None = None
    iscsi: IscsiDisk | None = None
    rbd: RadosDisk | None = None

    @property
    def claimed(self) -> bool:
        return self.persistent_volume_claim is not None or self.ephemeral is not None

    @property
    def disk(self) -> GoogleDisk | AmazonDisk | IscsiDisk | RadosDisk | None:
        """One that only one node may write to, named in the pod itself."""
        return self.gce_persistent_disk or self.aws_elastic_block_store or self.iscsi or self.rbd


class PodClaim(View, frozen=True):
    """A ResourceClaim by name, or (where that is empty) one made for the pod from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(View, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] | None = None
    overhead: Quantities | None = None
    resources: Resources | None = None
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodClaim, ...] | None = None
    termination_grace_period_seconds: int | None = None

    @property
    def pod_level(self) -> bool:
        """Whether the pod itself, not only its containers, asks for something."""
        return self.resources is not None and any(is_pod_level(name) for name in self.resources.requests or ())


class PodCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ContainerStatus(View, frozen=True):
    """Of a container's status only its sizes: `resources` is what it runs with, `allocated_resources` what the node granted."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: Quantities | None = None


class ClaimStatus(View, frozen=True):
    """Which ResourceClaim was made for a claim of the pod."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(View, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: Resources | None = None
    allocated_resources: Quantities | None = None
    resource_claim_statuses: tuple[ClaimStatus, ...] | None = None


class Pod(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def group(self) -> str:
        """Name of the PodGroup it belongs to, "" for none."""
        return self.metadata.annotation(names.GROUP_NAME) or ""

    @property
    def role(self) -> str:
        """Task name within its job (Volcano's task-spec): annotation, then label."""
        return self.metadata.annotation(names.TASK_SPEC) or self.metadata.label(names.TASK_SPEC) or ""

    @property
    def claims(self) -> list[str]:
        """Names of its ResourceClaims, those left out that are yet to be made from a template."""
        made = {status.name: status.resource_claim_name for status in self.status.resource_claim_statuses or ()}
        names_ = (of.resource_claim_name or made.get(of.name, "") for of in self.spec.resource_claims or ())
        return [name for name in names_ if name]

    @property
    def priority(self) -> int:
        """As kube-scheduler counts it (k8s.io/component-helpers v0.36.1, PodPriority): 0 where it is not written."""
        return self.spec.priority or 0

    @property
    def ended(self) -> bool:
        return self.status.phase in ENDED


def is_pod_level(name: str) -> bool:
    """Resources that pod-level requests may name; Kubernetes passes over all others."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")
