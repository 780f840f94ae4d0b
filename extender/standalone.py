"""The loop as a daemon runs it: turn by turn, with a configuration that may change, and telling what happens.

    standalone = Standalone(Loop(...), reloads, metrics, clock)
    standalone.run(stop)            # until stop is set; what was begun is finished

One thread drives the loop and all that looks into it: reloads and state dumps happen between two sessions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from extender.api.errors import ClusterError, PluginError
from extender.api.meta import Time
from extender.api.operations import target
from extender.cluster.clock import Clock
from extender.cluster.logs import V, about
from extender.core.conf import Conf
from extender.dump import state, write
from extender.loop import PERIOD, Cycle, Failure, Loop
from extender.metrics.scheduler import SchedulerMetrics
from extender.node_shards import NodeShards
from extender.reload import Reloads

_SOON = 0.1  # seconds until it is looked for lists again
BACKOFF = 5.0  # seconds to wait where the API server does not answer
PATIENCE = 60.0  # --resource-sync-timeout
STUCK = 300.0  # seconds without a turn or a write after which the loop is taken for dead

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds. `patience`: after so long without the first lists it is told which are missing; 0: not at all."""

    period: float = PERIOD
    patience: float = PATIENCE


class Standalone:
    """`holds`: is the lease still ours? No session begins where it is not. `also` is told of a new configuration, too."""

    def __init__(self, loop: Loop, reloads: Reloads, metrics: SchedulerMetrics, clock: Clock, *, pace: Pace | None = None,
                 holds: Callable[[], bool] = lambda: True, dump_folder: str = "/tmp",
                 also: Callable[[Conf], None] = lambda _: None,
                 shards: NodeShards | None = None) -> None:  # fmt: skip
        self._shards = shards
        self.loop, self._reloads, self._metrics, self._clock = loop, reloads, metrics, clock
        self._pace, self._holds, self._dump_folder, self._also = pace or Pace(), holds, dump_folder, also
        self._dump_wanted = threading.Event()
        self._began: Time | None = None  # the first turn
        self._beat: Time | None = None  # the last turn, or write
        self._told: Time = 0.0  # when it was last told that lists are missing
        self._listed = False
        loop.observers.append(self._saw)
        metrics.watch(loop.mirror)

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                stop.wait(self.turn())
        finally:
            self.loop.close()
            if self._shards is not None:
                self._shards.close()

    def turn(self) -> float:
        """A session, if one is due, and what else is to be done; seconds until the next turn."""
        self._beat = now = self._clock.now()
        if self._began is None:
            self._began = self._told = now
        if self._dump_wanted.is_set():
            self._dump_wanted.clear()
            self._dump(now)
        conf = self._reloads.look()
        if conf is not None:
            self.loop.conf = conf
            self._also(conf)
        if not self._holds():
            return self._pace.period
        try:
            if not self._listed:
                self.loop.start()
                self._listed = not self.loop.lagging()
                if not self._listed:  # where others feed the mirror
                    self._tell_what_is_missing()
                    return _SOON
                log.info("every list has come")
            if self._shards is not None:
                self.loop.conf = self._shards.into(self.loop.conf)
            self.loop.step()
        except PluginError as error:
            log.error("nothing is decided: a plugin failed", extra=about(error=str(error)))
            return BACKOFF
        except ClusterError as error:
            log.warning("the API server does not answer as it should", extra=about(error=str(error)))
            self._tell_what_is_missing()
            return BACKOFF
        return self._pace.period

    # --- what others ask ------------------------------------------------------------------------------------------------

    def beat(self) -> None:
        """Something has got on: a turn that writes much takes long, and is alive. From any thread."""
        self._beat = self._clock.now()

    def alive(self) -> str | None:
        """A check for /livez. Who only waits for the lease is alive."""
        silent = self._clock.now() - self._beat if self._beat is not None else 0.0
        return None if silent < STUCK else f"nothing has got on for {silent:.0f} s"

    def ready(self) -> str | None:
        """A check for /readyz. Who only waits for the lease is ready to take over."""
        if self._began is None or self._listed:
            return None
        return f"not listed yet: {', '.join(kind.plural for kind in self.loop.lagging()) or 'queues'}"

    def ask_for_dump(self) -> None:
        """From any thread, and from a signal's handler; it is written before the next session."""
        self._dump_wanted.set()

    # --- what is told ---------------------------------------------------------------------------------------------------

    def _saw(self, cycle: Cycle) -> None:
        now = self._clock.now()
        self._metrics.observe(cycle, now)
        names = [type(each).__name__ for each in cycle.result.operations]
        done = {f"{name.lower()}s": names.count(name) for name in ("Bind", "Evict") if name in names}
        more = about(session=cycle.number, **done, waiting=len(cycle.result.waiting), refused=len(cycle.failures) or None,
                     seconds=round(now - cycle.at, 3))  # fmt: skip
        log.log(logging.INFO if done else V(3), "session", extra=more)
        for failure in cycle.failures:
            self._say_refused(cycle, failure)
        if log.isEnabledFor(V(4)):
            for each in cycle.result.waiting:
                log.log(V(4), "waits", extra=about(session=cycle.number, job=each.job, reason=each.reason, why=each.message))

    def _say_refused(self, cycle: Cycle, failure: Failure) -> None:
        kind, key = target(failure.operation)
        more = about(session=cycle.number, operation=type(failure.operation).__name__, kind=kind, object=key,
                     error=str(failure.error))  # fmt: skip
        log.warning("a write was refused", extra=more)

    def _tell_what_is_missing(self) -> None:
        now = self._clock.now()
        if not self._listed and self._pace.patience and now - self._told >= self._pace.patience:
            self._told = now
            missing = [kind.plural for kind in self.loop.lagging()]
            log.error("no session before every list has come", extra=about(missing=missing))

    def _dump(self, now: Time) -> None:
        try:
            with self.loop.intake.lock:
                dumped = state(self.loop, self._reloads.file.text, now)
            path = write(dumped, self._dump_folder, now)
        except OSError as error:
            log.error("the state could not be written", extra=about(folder=self._dump_folder, error=str(error)))
            return
        mirror = self.loop.mirror
        log.info("the state is written", extra=about(file=path, nodes=len(mirror.nodes.rows), queues=len(mirror.queues),
                                                     jobs=len(mirror.jobs.rows), tasks=len(mirror.tasks.rows)))  # fmt: skip
