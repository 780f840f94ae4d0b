"""Operations carried out side by side: many requests on their way to the API server at once, what is about one object in order.

The time that a write takes is mostly waiting for the server, so a few threads bind as fast as the server can. Events about what
was done (Scheduled, Evict) are written behind, so that they do not hold up the next binding."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import perf_counter

from extender.api.errors import ClusterError
from extender.api.operations import Bind, Emit, Evict, Operation, target
from extender.cluster.apply import OnFailure, apply
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder, Recorder
from extender.cluster.logs import about
from extender.cluster.port import Cluster

WORKERS = 16  # requests on their way at once
BEHIND = 10_000  # events that wait to be written; what is more is left out, as client-go leaves out what is above its rate
_ANNOUNCERS = 2

log = logging.getLogger(__name__)

Failures = list[tuple[Operation, ClusterError]]


class SideBySide:
    """Takes the place of `apply`. Returns when all but the events is done; failures are told in the caller's thread, in the
    operations' order. `close` waits for the events.

    `on_bind` is given the seconds that each binding took; it is called from several threads."""

    def __init__(self, workers: int = WORKERS, on_bind: Callable[[float], None] = lambda _: None) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="write")
        self._announcers = ThreadPoolExecutor(_ANNOUNCERS, thread_name_prefix="announce")
        self._on_bind = on_bind
        self._behind = _Behind(self._announcers)

    def __call__(self, cluster: Cluster, operations: Sequence[Operation], *, clock: Clock, on_failure: OnFailure,
                 events: EventRecorder) -> None:  # fmt: skip
        groups: dict[Hashable, list[Operation]] = {}
        for operation in operations:
            groups.setdefault(_subject(operation), []).append(operation)
        carry_out = partial(self._carry_out, cluster, clock, events)
        started: list[Future[Failures]] = [self._pool.submit(carry_out, group) for group in groups.values()]
        failed = {id(operation): error for future in started for operation, error in future.result()}
        for operation in operations:
            if id(operation) in failed:
                on_failure(operation, failed[id(operation)])

    def close(self) -> None:
        self._pool.shutdown()
        self._announcers.shutdown()

    def _carry_out(self, cluster: Cluster, clock: Clock, events: EventRecorder, group: Sequence[Operation]) -> Failures:
        failures: Failures = []
        for operation in group:
            began = perf_counter()
            told = self._behind.of(events) if isinstance(operation, (Bind, Evict)) else events
            failures += apply(cluster, [operation], clock=clock, events=told).failures
            if isinstance(operation, Bind) and operation.awaits is None:
                self._on_bind(perf_counter() - began)
        return failures


class _Behind:
    """Events that are written when there is time."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._room = threading.BoundedSemaphore(BEHIND)

    def of(self, events: EventRecorder) -> Recorder:
        return _Later(self, events)

    def put(self, cluster: Cluster, emit: Emit, events: EventRecorder) -> None:
        if self._room.acquire(blocking=False):
            self._pool.submit(self._write, cluster, emit, events)
        else:
            log.warning("too many events: some are left out")

    def _write(self, cluster: Cluster, emit: Emit, events: EventRecorder) -> None:
        try:
            events.emit(cluster, emit)
        except ClusterError as error:  # what was done stays done
            log.warning("an event could not be written", extra=about(reason=emit.reason, error=str(error)))
        finally:
            self._room.release()


class _Later:
    def __init__(self, behind: _Behind, events: EventRecorder) -> None:
        self._behind, self._events = behind, events

    def emit(self, cluster: Cluster, emit: Emit) -> None:
        self._behind.put(cluster, emit, self._events)


def _subject(operation: Operation) -> Hashable:
    """Operations of one subject are carried out one after the other."""
    if isinstance(operation, Bind) and operation.before:
        return "claims"  # several pods may share one
    return target(operation)
