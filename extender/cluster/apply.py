"""Operations > writes: the one place where what was decided is done.

Operations are carried out in their order; one that fails is told to `on_failure` and the rest goes on. Nothing is decided
here and nothing tried again: whoever decided sees the failure and decides anew."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from extender.api.errors import ClusterError, Conflict, NotFound
from extender.api.meta import POD, Json, Key, Kind, format_time
from extender.api.operations import Bind, Create, Delete, Emit, Evict, Operation, Patch, PatchStatus
from extender.api.pod import DISRUPTION_TARGET, PREEMPTED
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder, Recorder
from extender.cluster.pod_rules import with_condition
from extender.cluster.port import Cluster

OnFailure = Callable[[Operation, ClusterError], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a list of operations."""

    done: int
    failures: tuple[tuple[Operation, ClusterError], ...]


def apply(
    cluster: Cluster,
    operations: Iterable[Operation],
    *,
    clock: Clock,
    on_failure: OnFailure = lambda *_: None,
    events: Recorder | None = None,
) -> Report:
    """Carry out the operations. `events`: keep one per component, so that repeats are folded across calls."""
    writer = _Applier(cluster, clock, events or EventRecorder(clock))
    done, failures = 0, []
    for operation in operations:
        try:
            writer.carry_out(operation)
            done += 1
        except ClusterError as error:
            failures.append((operation, error))
            on_failure(operation, error)
    return Report(done, tuple(failures))


class _Applier:
    def __init__(self, cluster: Cluster, clock: Clock, events: Recorder) -> None:
        self._cluster = cluster
        self._clock = clock
        self._events = events

    def carry_out(self, operation: Operation) -> None:
        match operation:
            case Bind():
                self._bind(operation)
            case Evict():
                self._evict(operation)
            case Create(kind=kind, object=obj):
                self._cluster.create(kind, obj)
            case Patch(kind=kind, key=key):
                self._cluster.patch(kind, key, _guarded(operation))
            case PatchStatus(kind=kind, key=key):
                self._cluster.patch(kind, key, _guarded(operation), subresource=_status_of(kind))
            case Delete():
                with contextlib.suppress(NotFound):
                    self._cluster.delete(
                        operation.kind,
                        operation.key,
                        uid=operation.uid,
                        propagation=operation.propagation,
                        grace_seconds=operation.grace_seconds,
                    )
            case Emit():
                self._events.emit(self._cluster, operation)

    def _bind(self, bind: Bind) -> None:
        try:
            for write in bind.before:
                self.carry_out(write)
            if bind.awaits is not None:
                return
            self._cluster.bind(bind.pod, bind.node, uid=bind.uid, annotations=dict(bind.annotations) or None)
        except ClusterError as error:
            with contextlib.suppress(ClusterError):
                self._say_not_bound(bind, error)
            raise
        message = f"Successfully assigned {bind.pod} to {bind.node}"
        self._announce(Emit(POD, bind.pod, "Normal", "Scheduled", message, bind.uid))

    def _say_not_bound(self, bind: Bind, error: ClusterError) -> None:
        """The condition PodScheduled says why; a pod that has a node already is left alone."""
        pod = self._cluster.get(POD, bind.pod)
        if pod["spec"].get("nodeName") or (bind.uid and pod["metadata"]["uid"] != bind.uid):
            return
        message = f"failed to bind to node {bind.node}: {error}"
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError", "message": message}
        self._write_conditions(bind.pod, pod, [condition])

    def _evict(self, evict: Evict) -> None:
        """Always deletes, also where the conditions stand already (volcano ed72c7c does not: cache.go, evictor)."""
        pod = self._cluster.get(POD, evict.pod)
        uid = pod["metadata"]["uid"]
        if evict.uid and evict.uid != uid:
            raise Conflict(f"pod {evict.pod} is another one now: its uid is {uid}, not {evict.uid}")
        message = evict.message or f"Pod is evicted, because of {evict.reason}"
        self._announce(Emit(POD, evict.pod, "Warning", "Evict", message, uid))
        asker = pod["spec"].get("schedulerName", "")
        target = f"{asker}: preempting to accommodate a higher priority pod"
        conditions = [
            {"type": "Ready", "status": "False", "reason": "Evict", "message": message},
            {"type": DISRUPTION_TARGET, "status": "True", "reason": PREEMPTED, "message": target},
        ]
        with contextlib.suppress(ClusterError):  # they only explain the deletion
            self._write_conditions(evict.pod, pod, conditions)
        self._cluster.delete(POD, evict.pod, uid=uid)

    def _write_conditions(self, key: Key, pod: Json, conditions: list[Json]) -> None:
        status = pod.get("status") or {}
        for condition in conditions:
            status = with_condition(status, condition, format_time(self._clock.now()))
        if status.get("conditions") != (pod.get("status") or {}).get("conditions"):
            patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": status["conditions"]}}
            self._cluster.patch(POD, key, patch, subresource="status")

    def _announce(self, emit: Emit) -> None:
        """What has been done stays done whether or not the event could be written."""
        with contextlib.suppress(ClusterError):
            self._events.emit(self._cluster, emit)


def _status_of(kind: Kind) -> str:
    return "status" if kind.status_subresource else ""


def _guarded(operation: Patch | PatchStatus) -> Json:
    """The patch with its preconditions in its metadata, where the API server looks for them."""
    guards = {"uid": operation.uid, "resourceVersion": operation.resource_version}
    wanted = {name: value for name, value in guards.items() if value}
    if not wanted:
        return operation.patch
    return {**operation.patch, "metadata": {**(operation.patch.get("metadata") or {}), **wanted}}
