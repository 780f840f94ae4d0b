"""A story that has been played: the cluster as it is at the end, the tape, and what its steps and components did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from extender.api.errors import PumiceError
from extender.api.meta import KINDS, POD, Json, Kind, key_of
from extender.cluster.memory import MemoryCluster
from extender.local import Local
from extender.testing.faults import Trouble, Write
from extender.testing.tape import Tape

_PREFERRED = {"Job": "batch.volcano.sh", "CronJob": "batch.volcano.sh"}


def kind_named(name: str) -> Kind:
    """The kind that a story means by the name: Job and CronJob are Volcano's."""
    found = [kind for kind in KINDS if kind.name == name]
    if not found:
        raise ValueError(f"no such kind: {name}")
    return next((kind for kind in found if kind.group == _PREFERRED.get(name)), found[0])


@dataclass(slots=True)
class Played:
    """All that is known of a story once it has been played."""

    case: Mapping[str, Any]
    local: Local
    tape: Tape
    trouble: Trouble
    refused: dict[str, PumiceError] = field(default_factory=dict)  # step -> why
    accepted: list[str] = field(default_factory=list)
    responses: dict[str, Any] = field(default_factory=dict)  # step -> what the extender answered, as JSON
    bound_after: list[dict[str, frozenset[str]]] = field(default_factory=list)  # per second: group -> its pods on nodes
    at: dict[float, dict[Kind, list[Json]]] = field(default_factory=dict)  # what was there at seconds asked for
    queue_depth: dict[float, int] = field(default_factory=dict)

    @property
    def cluster(self) -> MemoryCluster:
        return self.local.cluster

    def evictions(self) -> list[Write]:
        """Pods that the scheduler sent away, each uid once, in order."""
        first = {write.uid: write for write in reversed(self.trouble.writes) if write.call == "evict"}
        return [write for write in self.trouble.writes if first.get(write.uid) is write]

    def second(self, at: float) -> float:
        """Seconds since the start."""
        return at - self.local.started

    def named(self, kind: Kind, pattern: str, at: float | None = None) -> list[Json]:
        """Objects whose name (or namespace/name) matches the glob, at the end or at a second that was asked for."""
        listed = self.cluster.list(kind).objects if at is None else self.at[at].get(kind, [])
        return [obj for obj in listed if fnmatchcase(_name(obj, pattern), pattern)]

    def pods(self, patterns: str | list[str]) -> list[Json]:
        """Pods of names that match any of the globs, at the end."""
        listed = [patterns] if isinstance(patterns, str) else patterns
        return [pod for pod in self.cluster.list(POD).objects if any(fnmatchcase(_name(pod, p), p) for p in listed)]


def _name(obj: Json, pattern: str) -> str:
    key = key_of(obj)
    return str(key) if "/" in pattern else key.name
