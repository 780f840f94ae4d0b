"""What admission has made on the way: done after the answer, by one thread, so that no review waits for a write and no
write for a thread that another review holds (making a PodGroup is itself admitted, maybe by this very process).

An errand may be lost, when there are too many or at the end of the process: the controllers make what is missing."""

from __future__ import annotations

import logging
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable

from extender.api.errors import AlreadyExists, ClusterError
from extender.api.meta import Key, Kind, Time, key_of
from extender.api.operations import Create, Operation
from extender.cluster.apply import apply
from extender.cluster.clock import Clock
from extender.cluster.logs import about
from extender.cluster.port import Cluster

WAITING = 1000  # at most; more are left to the controllers
REMEMBERED, REMEMBER_SECONDS = 4096, 30.0  # pods of one workload come together and all want the same group

Outcome = str  # made, there, failed, left

log = logging.getLogger(__name__)


class Errands:
    """Thread-safe. `tell` hears the outcome of each."""

    def __init__(self, cluster: Cluster, clock: Clock, tell: Callable[[Outcome], None]) -> None:
        self._cluster, self._clock, self._tell = cluster, clock, tell
        self._waiting: queue.Queue[Operation | None] = queue.Queue(WAITING)
        self._made: OrderedDict[tuple[Kind, Key], Time] = OrderedDict()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def take(self, operations: Iterable[Operation]) -> None:
        """To be done soon; what was taken a moment ago is not taken again."""
        for operation in operations:
            if isinstance(operation, Create) and not self._is_new(operation):
                continue
            try:
                self._waiting.put_nowait(operation)
            except queue.Full:
                self._forget(operation)
                self._tell("left")

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="errands", daemon=True)
        self._thread.start()

    def close(self, patience: float = 5.0) -> None:
        """Do what was taken, if it does not take too long."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(patience)

    def run_one(self) -> bool:
        """The next one; False where it was the last."""
        operation = self._waiting.get()
        if operation is None:
            return False
        report = apply(self._cluster, [operation], clock=self._clock)
        for failed, error in report.failures:
            self._failed(failed, error)
        if not report.failures:
            self._tell("made")
        return True

    def _work(self) -> None:
        while self.run_one():
            pass

    def _failed(self, operation: Operation, error: ClusterError) -> None:
        if isinstance(error, AlreadyExists):
            self._tell("there")
            return
        self._forget(operation)
        self._tell("failed")
        log.warning("left to the controllers", extra=about(what=type(operation).__name__, error=str(error)))

    def _is_new(self, create: Create) -> bool:
        name, now = (create.kind, key_of(create.object)), self._clock.now()
        with self._lock:
            taken = self._made.get(name)
            if taken is not None and now < taken + REMEMBER_SECONDS:
                return False
            self._made[name] = now
            self._made.move_to_end(name)
            while len(self._made) > REMEMBERED:
                self._made.popitem(last=False)
        return True

    def _forget(self, operation: Operation) -> None:
        if isinstance(operation, Create):
            with self._lock:
                self._made.pop((operation.kind, key_of(operation.object)), None)
