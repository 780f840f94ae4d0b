"""Node, PriorityClass, Namespace, ResourceQuota, PodDisruptionBudget and Service: the fields we schedule on."""

from __future__ import annotations

from msgspec import field

from extender.api.selectors import LabelSelector, Taint
from extender.api.views import Metadata, Quantities, View


class ContainerImage(View, frozen=True):
    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeSpec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeStatus(View, frozen=True):
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    images: tuple[ContainerImage, ...] | None = None


class Node(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PriorityClass(View, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class Namespace(View, frozen=True):
    metadata: Metadata = Metadata()


class QuotaStatus(View, frozen=True):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(View, frozen=True):
    metadata: Metadata = Metadata()
    status: QuotaStatus = QuotaStatus()


class BudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None
    expected_pods: int = 0


class PodDisruptionBudget(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class ServiceSpec(View, frozen=True):
    selector: dict[str, str] | None = None
    cluster_ip: str = field(default="", name="clusterIP")


class Service(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: ServiceSpec = ServiceSpec()
