"""What one component sees of the cluster in a story: its writes are noted, may be refused, and its lists and watches may lag.

The component does not notice; the story's steps `fault` and `delayWatch` are played here, `slow` by Slow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial

from extender.api.errors import (
    BadRequest,
    ClusterError,
    Conflict,
    Denied,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from extender.api.meta import POD, Json, Key, Kind, Time, key_of, uid_of
from extender.api.operations import Bind, Create, Delete, Emit, Evict, Operation, Patch, PatchStatus
from extender.cluster.apply import OnFailure, apply
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Cluster, Listing
from extender.cluster.watching import MemoryWatch

_ERRORS = {error.status: error for error in (BadRequest, Denied, NotFound, Conflict, Gone, Invalid, TooManyRequests, Unavailable)}


@dataclass(slots=True)
class Fault:
    """Calls that match fail: the next `times` of them (-1: all), or only every `every`-th of those."""

    call: str
    match: str
    error: int
    times: int = -1
    every: int = 1
    seen: int = 0

    def hits(self, call: str, kind: Kind, name: str) -> bool:
        if call != self.call or not matches(self.match, kind, name):
            return False
        self.seen += 1
        return self.seen % self.every == 0 and (self.times < 0 or self.seen // self.every <= self.times)


@dataclass(frozen=True, slots=True)
class Write:
    """One write that a component made and the cluster took."""

    at: Time
    component: str
    call: str
    kind: Kind
    key: Key
    uid: str


@dataclass(slots=True)
class Trouble:
    """What is wrong between the components and the cluster, and what the components have written."""

    faults: list[Fault] = field(default_factory=list)
    lags: dict[str, float] = field(default_factory=dict)  # kind name -> seconds
    writes: list[Write] = field(default_factory=list)
    watches: list[tuple[Kind, MemoryWatch]] = field(default_factory=list)

    def delay(self, kind: str, seconds: float) -> None:
        """Lists and watches of that kind come later from now on, those that are open too."""
        self.lags[kind] = seconds
        for followed, watch in self.watches:
            if followed.name == kind:
                watch.lag = seconds


def matches(pattern: str, kind: Kind, name: str) -> bool:
    """A glob for a name or for Kind/name."""
    return fnmatchcase(f"{kind.name}/{name}" if "/" in pattern else name, pattern)


class View:
    """The cluster as one component sees it; a Cluster."""

    def __init__(self, component: str, cluster: MemoryCluster, trouble: Trouble) -> None:
        self._component, self._cluster, self._trouble = component, cluster, trouble

    def get(self, kind: Kind, key: Key) -> Json:
        return self._cluster.get(kind, key)

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        lag = self._trouble.lags.get(kind.name, 0.0)
        if not lag:
            return self._cluster.list(kind, namespace, label_selector, field_selector)
        when = self._cluster.clock.now() - lag
        return self._cluster.list_as_of(when, kind, namespace, label_selector, field_selector)

    def watch(self, kind: Kind, resource_version: str, namespace: str = "", label_selector: str = "",
              field_selector: str = "") -> MemoryWatch:  # fmt: skip
        watch = self._cluster.watch(kind, resource_version, namespace, label_selector, field_selector)
        watch.lag = self._trouble.lags.get(kind.name, 0.0)
        self._trouble.watches.append((kind, watch))
        return watch

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        name = key_of(obj).name or str(obj["metadata"].get("generateName", ""))
        self._may_fail("create", kind, name)
        made = self._cluster.create(kind, obj, dry_run=dry_run)
        return self._note("create", kind, made, dry_run)

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        call = "updateStatus" if subresource else "update"
        self._may_fail(call, kind, key_of(obj).name)
        return self._note(call, kind, self._cluster.update(kind, obj, subresource=subresource, dry_run=dry_run), dry_run)

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        call = "updateStatus" if subresource else "patch"
        self._may_fail(call, kind, key.name)
        return self._note(call, kind, self._cluster.patch(kind, key, patch, subresource=subresource, dry_run=dry_run), dry_run)

    def json_patch(self, kind: Kind, key: Key, patch: Sequence[Json], *, subresource: str = "", dry_run: bool = False) -> Json:
        call = "updateStatus" if subresource else "patch"
        self._may_fail(call, kind, key.name)
        after = self._cluster.json_patch(kind, key, patch, subresource=subresource, dry_run=dry_run)
        return self._note(call, kind, after, dry_run)

    def delete(self, kind: Kind, key: Key, *, uid: str = "", propagation: str = "Background",
               grace_seconds: int | None = None, dry_run: bool = False) -> None:  # fmt: skip
        """A scheduler's deletion of a pod is an eviction, whichever call it chooses."""
        call = "evict" if kind == POD and self._component == "scheduler" else "delete"
        self._may_fail(call, kind, key.name)
        before = self._cluster.get(kind, key)
        self._cluster.delete(kind, key, uid=uid, propagation=propagation, grace_seconds=grace_seconds, dry_run=dry_run)
        self._note(call, kind, before, dry_run)

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        self._may_fail("bind", POD, pod.name)
        self._cluster.bind(pod, node, uid=uid, annotations=annotations)
        self._note("bind", POD, self._cluster.get(POD, pod), False)

    def evict(self, pod: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        self._may_fail("evict", POD, pod.name)
        before = self._cluster.get(POD, pod)
        self._cluster.evict(pod, uid=uid, grace_seconds=grace_seconds)
        self._note("evict", POD, before, False)

    def _may_fail(self, call: str, kind: Kind, name: str) -> None:
        for fault in self._trouble.faults:
            if fault.hits(call, kind, name):
                raise _ERRORS.get(fault.error, ClusterError)(f"{call} of {kind} {name} fails with status {fault.error}")

    def _note(self, call: str, kind: Kind, obj: Json, dry_run: bool) -> Json:
        if not dry_run:
            at = self._cluster.clock.now()
            self._trouble.writes.append(Write(at, self._component, call, kind, key_of(obj), uid_of(obj)))
        return obj


@dataclass(frozen=True, slots=True)
class _Slowness:
    call: str
    match: str
    seconds: float


@dataclass(frozen=True, slots=True)
class _UnderWay:
    due: Time
    act: Callable[[], object]


class Slow:
    """Carries operations out as `apply` does; those that match a `slow` step only after their time, while the rest goes on."""

    def __init__(self) -> None:
        self._slow: list[_Slowness] = []
        self._under_way: list[_UnderWay] = []

    def slow(self, call: str, match: str, seconds: float) -> None:
        self._slow.append(_Slowness(call, match, seconds))

    def __call__(
        self, cluster: Cluster, operations: Sequence[Operation], *, clock: Clock, on_failure: OnFailure, events: EventRecorder
    ) -> None:
        def carry_out(some: Sequence[Operation]) -> None:
            apply(cluster, some, clock=clock, on_failure=on_failure, events=events)

        slow = [(seconds, operation) for operation in operations if (seconds := self._seconds(operation))]
        for seconds, operation in slow:
            self._under_way.append(_UnderWay(clock.now() + seconds, partial(carry_out, [operation])))
        carry_out([operation for operation in operations if not self._seconds(operation)])

    def arrive(self, now: Time) -> None:
        """Calls whose time has come reach the cluster."""
        arrived = [call for call in self._under_way if call.due <= now]
        self._under_way = [call for call in self._under_way if call.due > now]
        for call in arrived:
            call.act()

    def _seconds(self, operation: Operation) -> float:
        call, kind, name = _call_of(operation)
        return max((s.seconds for s in self._slow if s.call == call and matches(s.match, kind, name)), default=0.0)


def _call_of(operation: Operation) -> tuple[str, Kind, str]:
    match operation:
        case Bind(pod=pod):
            return "bind", POD, pod.name
        case Evict(pod=pod):
            return "evict", POD, pod.name
        case Create(kind=kind, object=obj):
            return "create", kind, key_of(obj).name
        case PatchStatus(kind=kind, key=key):
            return "updateStatus", kind, key.name
        case Patch(kind=kind, key=key):
            return "patch", kind, key.name
        case Delete(kind=kind, key=key):
            return "delete", kind, key.name
        case Emit(kind=kind, key=key):
            return "event", kind, key.name
