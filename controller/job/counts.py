"""How many pods of a job there are, by phase and by task: counted from what is seen, read by the rules of phases.py, written
to the job's status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controller.job.seen import PodSeen
from extender.api import pod as pods

NAMES = ("pending", "running", "succeeded", "failed", "terminating", "unknown")  # fields of the job's status
_PHASES = {pods.PENDING: "pending", pods.RUNNING: "running", pods.SUCCEEDED: "succeeded", pods.FAILED: "failed"}


@dataclass(slots=True)
class Counts:
    """`tasks`: phase -> number, by task."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, task: str, phase: str) -> None:
        name = _PHASES.get(phase, "unknown")
        setattr(self, name, getattr(self, name) + 1)
        of_task = self.tasks.setdefault(task, {})
        shown = phase if phase in _PHASES else pods.UNKNOWN
        of_task[shown] = of_task.get(shown, 0) + 1

    def by_name(self) -> Mapping[str, int]:
        return {name: getattr(self, name) for name in NAMES}


def count(alive: Iterable[PodSeen], terminating: int) -> Counts:
    """Pods that are not ending by task and phase; those that end only by their number."""
    counts = Counts(terminating=terminating)
    for pod in alive:
        counts.add(pod.task, pod.phase)
    return counts
