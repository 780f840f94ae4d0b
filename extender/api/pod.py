"""Pod: the fields we schedule on, and what a pod asks of its node (effective requests)."""

from __future__ import annotations

from msgspec import field

from extender.api import labels as names
from extender.api import quantity
from extender.api.errors import InvalidObject
from extender.api.selectors import LabelSelector, NodeAffinity, Toleration
from extender.api.views import Metadata, Quantities, View

PENDING, RUNNING, SUCCEEDED, FAILED, UNKNOWN = "Pending", "Running", "Succeeded", "Failed", "Unknown"


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


class ImageVolume(View, frozen=True):
    reference: str = ""


class Volume(View, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    image: ImageVolume | None = None


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
    termination_grace_period_seconds: int | None = None


class PodCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(View, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    start_time: str | None = None


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
    def ended(self) -> bool:
        return self.status.phase in (SUCCEEDED, FAILED)


def effective_requests(spec: PodSpec, subject: str = "") -> dict[str, int]:
    """What the pod asks of its node: resource name -> nano-units, zero entries kept, without the pod itself.

    max over time of what runs side by side: sum of containers and sidecars (init containers with restartPolicy
    Always), or a running init container together with the sidecars started before it; pod-level resources replace the
    dimensions that they name; overhead is added. Raises InvalidObject naming the field.
    Source: k8s.io/component-helpers v0.36.1 resource.PodRequests."""
    total: dict[str, int] = {}
    for i, container in enumerate(spec.containers):
        _add(total, _amounts(container.resources.requests, f"spec.containers[{i}].resources.requests", subject))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(spec.init_containers or ()):
        asked = _amounts(container.resources.requests, f"spec.initContainers[{i}].resources.requests", subject)
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            running = dict(sidecars)
        else:
            running = dict(sidecars)
            _add(running, asked)
        for name, amount in running.items():
            peak[name] = max(peak.get(name, 0), amount)
    for name, amount in peak.items():
        total[name] = max(total.get(name, 0), amount)
    if spec.resources is not None:
        total.update(_amounts(spec.resources.requests, "spec.resources.requests", subject))
    if spec.overhead:
        _add(total, _amounts(spec.overhead, "spec.overhead", subject))
    return total


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
