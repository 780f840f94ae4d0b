"""Carrying a decision out: stage by stage, with the answers kept for the store, and what may fail without harm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple, Protocol

from controller.reconciler import Decision
from extender.api.errors import AlreadyExists, ClusterError, Conflict, NotFound
from extender.api.meta import Json, Key, Kind, key_of
from extender.api.operations import Create, Delete, Emit, Operation, target
from extender.cluster.clock import Clock
from extender.cluster.port import Cluster, Listing, Watch

Answer = tuple[Kind, Key, Json | None]  # None: deleted


class Failure(NamedTuple):
    operation: Operation
    error: ClusterError


class Apply(Protocol):
    """Carries operations out, whatever becomes of the others; see extender/cluster/apply.py."""

    def __call__(self, cluster: Cluster, operations: Sequence[Operation], /, *, clock: Clock,
                 on_failure: Callable[[Operation, ClusterError], None]) -> object: ...  # fmt: skip


def spread(apply: Apply, pool: Executor, at_least: int = 8) -> Apply:
    """The same, with long stages cut into pieces that are carried out side by side; events go one after the other, for
    their recorder is shared. For a cluster that is far away."""
    events = threading.Lock()

    def apply_side_by_side(cluster: Cluster, operations: Sequence[Operation], /, *, clock: Clock,
                           on_failure: Callable[[Operation, ClusterError], None]) -> None:  # fmt: skip
        if any(isinstance(each, Emit) for each in operations):
            with events:
                apply(cluster, operations, clock=clock, on_failure=on_failure)
            return
        if len(operations) < at_least:
            apply(cluster, operations, clock=clock, on_failure=on_failure)
            return
        pieces = [operations[start::at_least] for start in range(at_least)]
        for done in [pool.submit(apply, cluster, piece, clock=clock, on_failure=on_failure) for piece in pieces]:
            done.result()

    return apply_side_by_side


class Recorder:
    """A Cluster that remembers the answers to one decision's writes. Thread-safe."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._answers: list[Answer] = []
        self._surprises: list[tuple[Kind, Key]] = []
        self._lock = threading.Lock()

    def answers(self) -> Sequence[Answer]:
        """In order."""
        with self._lock:
            return tuple(self._answers)

    def surprises(self) -> Sequence[tuple[Kind, Key]]:
        """What was there when it was to be made: what is known of it is stale."""
        with self._lock:
            return tuple(self._surprises)

    def deleted(self, kind: Kind, key: Key) -> bool:
        """It was there, and its deletion was accepted."""
        with self._lock:
            return (kind, key, None) in self._answers

    def get(self, kind: Kind, key: Key) -> Json:
        return self._cluster.get(kind, key)

    def list(self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "") -> Listing:
        return self._cluster.list(kind, namespace, label_selector, field_selector)

    def watch(self, kind: Kind, resource_version: str, namespace: str = "", label_selector: str = "",
              field_selector: str = "") -> Watch:  # fmt: skip
        return self._cluster.watch(kind, resource_version, namespace, label_selector, field_selector)

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        try:
            return self._keep(kind, self._cluster.create(kind, obj, dry_run=dry_run), dry_run)
        except AlreadyExists:
            with self._lock:
                self._surprises.append((kind, key_of(obj)))
            raise

    def update(self, kind: Kind, obj: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        return self._keep(kind, self._cluster.update(kind, obj, subresource=subresource, dry_run=dry_run), dry_run)

    def patch(self, kind: Kind, key: Key, patch: Json, *, subresource: str = "", dry_run: bool = False) -> Json:
        return self._keep(kind, self._cluster.patch(kind, key, patch, subresource=subresource, dry_run=dry_run), dry_run)

    def json_patch(self, kind: Kind, key: Key, patch: Sequence[Json], *, subresource: str = "", dry_run: bool = False) -> Json:
        answer = self._cluster.json_patch(kind, key, list(patch), subresource=subresource, dry_run=dry_run)
        return self._keep(kind, answer, dry_run)

    def delete(self, kind: Kind, key: Key, *, uid: str = "", propagation: str = "Background",
               grace_seconds: int | None = None, dry_run: bool = False) -> None:  # fmt: skip
        self._cluster.delete(kind, key, uid=uid, propagation=propagation, grace_seconds=grace_seconds, dry_run=dry_run)
        if not dry_run:
            with self._lock:
                self._answers.append((kind, key, None))

    def bind(self, pod: Key, node: str, *, uid: str = "", annotations: dict[str, str] | None = None) -> None:
        self._cluster.bind(pod, node, uid=uid, annotations=annotations)

    def evict(self, pod: Key, *, uid: str = "", grace_seconds: int | None = None) -> None:
        self._cluster.evict(pod, uid=uid, grace_seconds=grace_seconds)

    def _keep(self, kind: Kind, answer: Json, dry_run: bool) -> Json:
        if not dry_run:
            with self._lock:
                self._answers.append((kind, key_of(answer), answer))
        return answer


def carry_out(cluster: Recorder, decision: Decision, apply: Apply, clock: Clock) -> list[Failure]:
    """The failures that matter. What comes after one is left out, but for stages to be done regardless of others'."""
    failures: list[Failure] = []

    def note(operation: Operation, error: ClusterError) -> None:
        if decision.once or not harmless(operation, error):
            failures.append(Failure(operation, error))

    for stage in decision.stages:
        failed = {target(each.operation) for each in failures}
        operations = [each for each in stage.operations if target(each) not in failed]
        if operations and (stage.regardless or not failures):
            apply(cluster, operations, clock=clock, on_failure=note)
        if decision.once and not failures:
            failures += [
                Failure(each, NotFound(f"{each.kind} {each.key} was gone already"))
                for each in operations
                if isinstance(each, Delete) and not cluster.deleted(each.kind, each.key)
            ]
    return failures


def harmless(operation: Operation, error: ClusterError) -> bool:
    """The world is as the operation would have made it, or an event could not be written."""
    match operation:
        case Emit():
            return True
        case Create():
            return isinstance(error, AlreadyExists)
        case Delete():  # a Conflict: another object of the name
            return isinstance(error, (NotFound, Conflict))
        case _:
            return isinstance(error, NotFound)
