"""PodGroup (scheduling.volcano.sh/v1beta1): the gang. It has no status subresource: spec and status share one version."""

from __future__ import annotations

import re

from msgspec import field

from extender.api.selectors import LabelSelector
from extender.api.views import Metadata, Quantities, View

PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED = "Pending", "Inqueue", "Running", "Unknown", "Completed"
_FIGURES = re.compile(r"[0-9.]+")
SCHEDULED, UNSCHEDULABLE = "Scheduled", "Unschedulable"  # types of conditions
PHASES = (PENDING, INQUEUE, RUNNING, UNKNOWN, COMPLETED)


class NetworkTopology(View, frozen=True):
    mode: str = "hard"
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(View, frozen=True):
    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodGroupSpec(View, frozen=True):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Quantities | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] | None = None


class PodGroupCondition(View, frozen=True):
    type: str = ""
    status: str = ""
    transition_id: str = field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(View, frozen=True):
    phase: str = ""
    conditions: tuple[PodGroupCondition, ...] | None = None
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()


def same_cause(message: str, other: str) -> bool:
    """Do they differ in figures only? These move with every pod; a long queue would be written anew each time."""
    return message == other or _FIGURES.sub("", message) == _FIGURES.sub("", other)
