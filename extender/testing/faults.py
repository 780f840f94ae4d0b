"""A cluster that fails on purpose: calls that are refused or slow, watches that come late. Tests give it to a component
in place of the cluster itself, so that only that component suffers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

from extender.api import errors
from extender.api.meta import POD, Json, Key, Kind
from extender.cluster.memory import MemoryCluster
from extender.cluster.port import Listing, WatchEvent
from extender.cluster.watching import MemoryWatch

_ERRORS: dict[int, type[errors.ClusterError]] = {
    each.status: each
    for each in (errors.BadRequest, errors.NotFound, errors.Conflict, errors.Gone, errors.Denied,
                 errors.TooManyRequests, errors.Unavailable)
}  # fmt: skip


class Call(NamedTuple):
    """One write: `verb` is create, update, updateStatus, patch, delete, bind or evict."""

    verb: str
    kind: Kind
    key: Key

    def matches(self, verb: str, pattern: str) -> bool:
        """`pattern`: a glob of names, or of `Kind/name`. Deleting a pod is one of the two ways to evict it."""
        if verb != self.verb and not (verb == "evict" and self.verb == "delete" and self.kind == POD):
            return False
        return fnmatchcase(f"{self.kind}/{self.key.name}" if "/" in pattern else self.key.name, pattern)


@dataclass(slots=True)
class _Fault:
    verb: str
    pattern: str
    error: int
    left: int  # failures still to come; below zero: without end
    every: int
    seen: int = 0

    def strikes(self, call: Call) -> bool:
        if not self.left or not call.matches(self.verb, self.pattern):
            return False
        self.seen += 1
        if self.seen % self.every:
            return False
        self.left -= 1
        return True


class FaultyCluster:
    """`sleep` is asked for the time a slow call takes; `on_call` hears of every write before it is done."""

    def __init__(self, cluster: MemoryCluster, *, sleep: Callable[[float], None] | None = None,
                 on_call: Callable[[Call], None] = lambda _: None) -> None:
        self._cluster = cluster
        self._sleep = sleep or cluster.clock.sleep
        self._on_call = on_call
        self._faults: list[_Fault] = []
        self._slow: list[tuple[str, str, float]] = []
        self._lags: dict[Kind, float] = {}
        self._watches: dict[Kind, weakref.WeakSet[MemoryWatch]] = {}

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    def fail(self, verb: str, pattern: str, error: int = 500, *, times: int = -1, every: int = 1) -> None:
        """Such calls fail with that HTTP status, the next `times` of them, or of those only every `every`-th."""
        self._faults.append(_Fault(verb, pattern, error, times, every))

    def slow(self, verb: str, pattern: str, seconds: float) -> None:
        """Such calls take that long before the cluster acts on them."""
        self._slow.append((verb, pattern, seconds))

    def delay(self, kind: Kind, seconds: float) -> None:
        """List and watch results of a kind come that much later from now on."""
        self._lags[kind] = seconds
        for watch in self._watches.get(kind, ()):
            watch.lag = seconds

    def _call(self, verb: str, kind: Kind, key: Key) -> None:
        call = Call(verb, kind, key)
        self._on_call(call)
        for slow_verb, pattern, seconds in self._slow:
            if call.matches(slow_verb, pattern):
                self._sleep(seconds)
        for fault in self._faults:
            if fault.strikes(call):
                raise _ERRORS.get(fault.error, errors.ClusterError)(f"{verb} of {kind} {key} fails: HTTP status {fault.error}")

    # --- the port -----------------------------------------------------------------------------------------------------

    def get(self, kind: Kind, key: Key) -> Json:
        return self._cluster.get(kind, key)

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        lag = self._lags.get(kind)
        if not lag:
            return self._cluster.list(kind, namespace, label_selector, field_selector)
        return self._cluster.list_as_of(self._cluster.clock.now() - lag, kind, namespace, label_selector, field_selector)

    def watch(self, kind: Kind, resource_version: str, namespace: str = "", label_selector: str = "",
              field_selector: str = "") -> MemoryWatch:
        lag = self._lags.get(kind, 0.0)
        first: Sequence[WatchEvent] = ()
        if lag and resource_version in ("", "0"):
            listing = self.list(kind, namespace, label_selector, field_selector)
            first = [WatchEvent("ADDED", obj) for obj in listing.objects]
            resource_version = listing.resource_version
        watch = self._cluster.watch(kind, resource_version, namespace, label_selector, field_selector)
        watch.begin_with(first)
        watch.lag = lag
        self._watches.setdefault(kind, weakref.WeakSet()).add(watch)
        return watch

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        self._call("create", kind, _key(kind, obj))
        return self._cluster.create(kind, obj, dry_run=dry_run)

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        self._call("updateStatus" if subresource else "update", kind, _key(kind, obj))
        return self._cluster.update(kind, obj, subresource=subresource, dry_run=dry_run)

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        """A patch of nothing but the status is a status write, whether or not the kind has the subresource."""
        status_only = "status" in patch and patch.keys() <= {"status", "metadata", "apiVersion", "kind"}
        self._call("updateStatus" if subresource or status_only else "patch", kind, key)
        return self._cluster.patch(kind, key, patch, subresource=subresource, dry_run=dry_run)

    def json_patch(self, kind: Kind, key: Key, patch: Sequence[Json], *, subresource: str = "", dry_run: bool = False) -> Json:
        self._call("updateStatus" if subresource else "patch", kind, key)
        return self._cluster.json_patch(kind, key, patch, subresource=subresource, dry_run=dry_run)

    def delete(self, kind: Kind, key: Key, *, uid: str = "", propagation: str = "Background",
               grace_seconds: int | None = None, dry_run: bool = False) -> None:
        self._call("delete", kind, key)
        self._cluster.delete(kind, key, uid=uid, propagation=propagation, grace_seconds=grace_seconds, dry_run=dry_run)

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        self._call("bind", POD, pod)
        self._cluster.bind(pod, node, uid=uid, annotations=annotations)

    def evict(self, pod: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        self._call("evict", POD, pod)
        self._cluster.evict(pod, uid=uid, grace_seconds=grace_seconds)


def _key(kind: Kind, obj: Json) -> Key:
    meta = obj.get("metadata") or {}
    name = meta.get("name") or meta.get("generateName") or ""
    return Key((meta.get("namespace") or "default") if kind.namespaced else "", name)
