"""Pod: the fields we schedule on, and what a pod asks of its node (effective requests)."""

from __future__ import annotations

from msgspec import field
from msgspec.structs import replace

from extender.api import labels as names
from extender.api import quantity
from extender.api.errors import InvalidObject
from extender.api.selectors import LabelSelector, NodeAffinity, Toleration
from extender.api.views import Metadata, Quantities, View

PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN = "Pending", "Running", "Succeeded", "Failed", "Unknown"
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
        return self.resources is not None and any(_pod_level(name) for name in self.resources.requests or ())


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
    def ended(self) -> bool:
        return self.status.phase in (SUCCEEDED, FAILED)


def effective_requests(spec: PodSpec, subject: str = "") -> dict[str, int]:
    """What the pod asks of its node: resource name -> nano-units, zero entries kept, without the pod itself.

    max over time of what runs side by side: sum of containers and sidecars (init containers with restartPolicy
    Always), or a running init container together with the sidecars started before it; pod-level resources replace the
    dimensions that they name; overhead is added. Raises InvalidObject naming the field. Limits are not looked at: where
    a request is missing the API server has written the limit there already, on creation.
    Source: k8s.io/component-helpers v0.36.1 resource.PodRequests."""
    total: dict[str, int] = {}
    for i, container in enumerate(spec.containers):
        _add(total, _amounts(container.resources.requests, f"spec.containers[{i}].resources.requests", subject))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(spec.init_containers or ()):
        asked = _amounts(container.resources.requests, f"spec.initContainers[{i}].resources.requests", subject)
        if container.sidecar:
            _add(total, asked)
            _add(sidecars, asked)
            running = sidecars
        else:
            running = dict(sidecars)
            _add(running, asked)
        for name, amount in running.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    if spec.resources is not None:
        asked = _amounts(spec.resources.requests, "spec.resources.requests", subject)
        total.update((name, amount) for name, amount in asked.items() if _pod_level(name))
    if spec.overhead:
        _add(total, _amounts(spec.overhead, "spec.overhead", subject))
    return total


def sized(pod: Pod) -> PodSpec:
    """The spec with requests as large as the pod now is: while a resize is under way the largest of asked, granted and in use.

    A resize that the node called infeasible does not count as asked. Without a resize it is the pod's own spec.
    Source: k8s.io/component-helpers v0.36.1 resource.PodRequests with UseStatusResources, on since Kubernetes 1.33."""
    spec, status = pod.spec, pod.status
    if not (status.container_statuses or status.init_container_statuses or status.resources):
        return spec
    asked_counts = not _resize_infeasible(status)
    states = {state.name: state for state in (*(status.container_statuses or ()), *(status.init_container_statuses or ()))}
    changes: dict[str, object] = {}
    containers = tuple(_sized(c, states.get(c.name), asked_counts) for c in spec.containers)
    if containers != spec.containers:
        changes["containers"] = containers
    inits = tuple(_sized(c, states.get(c.name), asked_counts) if c.sidecar else c for c in spec.init_containers or ())
    if inits != (spec.init_containers or ()):
        changes["init_containers"] = inits
    if spec.resources is not None and spec.resources.requests and status.resources is not None:
        grown = _largest(spec.resources.requests, status.resources.requests, status.allocated_resources, asked_counts)
        requests = {name: grown.get(name, 0) for name in spec.resources.requests}
        if requests != spec.resources.requests:
            changes["resources"] = replace(spec.resources, requests=requests)
    return replace(spec, **changes) if changes else spec


def _sized(container: Container, state: ContainerStatus | None, asked_counts: bool) -> Container:
    asked = container.resources.requests
    if state is None or state.resources is None or asked == state.resources.requests == (state.allocated_resources or asked):
        return container
    requests = _largest(asked, state.resources.requests, state.allocated_resources, asked_counts)
    if requests == (asked or {}):
        return container
    return replace(container, resources=replace(container.resources, requests=requests))


def _largest(asked: Quantities | None, used: Quantities | None, granted: Quantities | None, asked_counts: bool) -> Quantities:
    """Per resource the largest amount, in the words of who has it; what cannot be read is left for effective_requests."""
    largest: Quantities = {}
    for listed in (asked if asked_counts else None, used, granted):
        for name, text in (listed or {}).items():
            if name not in largest or _comparable(text) > _comparable(largest[name]):
                largest[name] = text
    return largest


def _comparable(text: str | int | float) -> float:
    try:
        return quantity.nanos(text)
    except InvalidObject:
        return float("inf")


def _resize_infeasible(status: PodStatus) -> bool:
    pending = next((c for c in status.conditions or () if c.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _pod_level(name: str) -> bool:
    """Resources that pod-level requests may name; Kubernetes passes over all others."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _amounts(listed: Quantities | None, path: str, subject: str) -> dict[str, int]:
    if not listed:
        return {}
    amounts = {}
    for name, text in listed.items():
        try:
            amounts[name] = quantity.nanos(text)
        except InvalidObject as error:
            raise InvalidObject(str(error), path=f"{path}[{name}]", subject=subject) from None
        if amounts[name] < 0:
            raise InvalidObject(f"'{text}' is negative", path=f"{path}[{name}]", subject=subject)
    return amounts


def _add(total: dict[str, int], amounts: dict[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
