"""Operations carried out side by side: many requests on their way to the API server at once, what is about one object in order.

The time that a write takes is mostly waiting for the server, so a few threads bind as fast as the server can."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from time import perf_counter

from extender.api.errors import ClusterError
from extender.api.operations import Bind, Operation, target
from extender.cluster.apply import OnFailure, apply
from extender.cluster.clock import Clock
from extender.cluster.events import EventRecorder
from extender.cluster.port import Cluster

WORKERS = 16  # requests on their way at once

Failures = list[tuple[Operation, ClusterError]]


class SideBySide:
    """Takes the place of `apply`. Returns when all is done; failures are told in the caller's thread, in the operations' order.

    `on_bind` is given the seconds that each binding took; it is called from several threads."""

    def __init__(self, workers: int = WORKERS, on_bind: Callable[[float], None] = lambda _: None) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="write")
        self._on_bind = on_bind

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

    def _carry_out(self, cluster: Cluster, clock: Clock, events: EventRecorder, group: Sequence[Operation]) -> Failures:
        failures: Failures = []
        for operation in group:
            began = perf_counter()
            failures += apply(cluster, [operation], clock=clock, events=events).failures
            if isinstance(operation, Bind):
                self._on_bind(perf_counter() - began)
        return failures


def _subject(operation: Operation) -> Hashable:
    """Operations of one subject are carried out one after the other."""
    if isinstance(operation, Bind) and operation.before:
        return "claims"  # several pods may share one
    return target(operation)
