"""Queue (scheduling.volcano.sh/v1beta1), cluster scoped."""

from __future__ import annotations

from extender.api.views import Metadata, Quantities, View

OPEN, CLOSED, CLOSING, UNKNOWN = "Open", "Closed", "Closing", "Unknown"
ROOT, DEFAULT = "root", "default"
# Actions of Commands about queues (volcano ed72c7c, apis/bus).
SYNC_QUEUE, OPEN_QUEUE, CLOSE_QUEUE = "SyncQueue", "OpenQueue", "CloseQueue"


class Guarantee(View, frozen=True):
    resource: Quantities | None = None


class GroupAffinity(View, frozen=True):
    required_during_scheduling_ignored_during_execution: tuple[str, ...] | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[str, ...] | None = None


class QueueAffinity(View, frozen=True):
    node_group_affinity: GroupAffinity | None = None
    node_group_anti_affinity: GroupAffinity | None = None


class QueueSpec(View, frozen=True):
    weight: int = 1
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: Guarantee = Guarantee()
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: str = ""
    affinity: QueueAffinity | None = None
    extend_clusters: tuple[dict[str, object], ...] | None = None


class QueueStatus(View, frozen=True):
    state: str = ""
    allocated: Quantities | None = None


class Queue(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
