"""Where recorded stories are played, and what a watch has seen there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Protocol

from extender.api.meta import BATCH_JOB, JOB, JOB_FLOW, POD_GROUP, QUEUE, Json, Key, Kind, kind_of, uid_of
from extender.cluster.clock import Clock
from extender.cluster.port import Listing

NAMESPACE = "default"  # of all stories
QUIET, PATIENCE = 4, 25  # seconds without a change; seconds at most


JsonPatch = list[Json]


class Asked(Protocol):
    """What a story asks of a cluster; a part of its port."""

    def list(self, kind: Kind, namespace: str = "") -> Listing: ...
    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "") -> Json: ...
    def json_patch(self, kind: Kind, key: Key, patch: JsonPatch, *, subresource: str = "") -> Json: ...
    def delete(self, kind: Kind, key: Key, *, propagation: str = "Background", grace_seconds: int | None = None) -> None: ...


class Seen:
    """By `Kind/name`: the phases that an object went through, and the uids of those that had the name, in order."""

    def __init__(self) -> None:
        self.phases: dict[str, list[str]] = defaultdict(list)
        self.born: dict[str, list[str]] = defaultdict(list)

    def note(self, kind: Kind, obj: Json) -> None:
        if kind == BATCH_JOB:
            return
        name, uid = f"{kind.name}/{obj['metadata']['name']}", uid_of(obj)
        if uid not in self.born[name]:
            self.born[name].append(uid)
        phase = _phase(kind, obj.get("status") or {})
        if phase and (not self.phases[name] or self.phases[name][-1] != phase):
            self.phases[name].append(phase)


def _phase(kind: Kind, status: Json) -> str | None:
    if kind in (JOB, JOB_FLOW):
        return (status.get("state") or {}).get("phase")
    return status.get({QUEUE: "state", POD_GROUP: "phase"}.get(kind, ""))


class Stage(Protocol):
    """A cluster of the stories' kind."""

    @property
    def cluster(self) -> Asked: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def seen(self) -> Seen: ...

    def create(self, obj: Json) -> None: ...

    def react(self) -> None:
        """Let controllers see what there is before more comes."""

    def settle(self, wait: float, settled: Callable[[], bool]) -> None:
        """Until nothing changes any more and no sooner than after `wait` seconds; `settled` says whether it is as it shall be."""

    def settle_until(self, when: float) -> None: ...


def placed(obj: Json) -> tuple[Kind, Json]:
    """With the namespace of the stories where it needs one and names none."""
    kind = kind_of(obj)
    return kind, {**obj, "metadata": {"namespace": NAMESPACE, **obj["metadata"]}} if kind.namespaced else obj
