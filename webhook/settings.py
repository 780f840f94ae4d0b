"""What an operator decides about admission: the flags of vc-webhook-manager, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass

from extender.api.labels import SCHEDULERS
from webhook.pods.groups import ResourceGroup

DEFAULT_PATHS = (
    "/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate", "/queues/mutate", "/queues/validate",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults are those of the binary. `resource_groups` is None where no --admission-conf was loaded: /pods/mutate then
    does nothing, the scheduling gate included, as upstream."""

    enabled: tuple[str, ...] = DEFAULT_PATHS  # --enabled-admission
    scheduler_names: tuple[str, ...] = SCHEDULERS  # --scheduler-name; the first is the default of jobs
    default_queue: str = "default"
    max_queue_depth: int = 5  # --max-queue-depth
    allocated_pods_check: bool = False  # --enable-queue-allocated-pods-check
    root_queue_protection: bool = True  # --enable-root-queue-protection
    resource_groups: tuple[ResourceGroup, ...] | None = None  # --admission-conf
    queue_allocation_gate: bool = False  # feature gate SchedulingGatesQueueAdmission

    @property
    def scheduler_name(self) -> str:
        return self.scheduler_names[0] if self.scheduler_names else SCHEDULERS[0]
