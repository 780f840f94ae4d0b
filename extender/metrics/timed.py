"""How long sessions take, and what in them. The core knows no clock: its actions and plugins are measured from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, cast

import numpy as np

from extender.api.meta import Kind, Time
from extender.core.conf import Action, ActionEntry, Conf, PluginEntry, Source
from extender.core.mirror import Mirror
from extender.core.plugin import Arguments, Plugin
from extender.core.reservations import Reservations
from extender.core.scheduling import Result
from extender.core.session import Session
from extender.loop import Decide, decide
from extender.metrics.names import ACTION, E2E, OPEN, PLUGIN
from extender.metrics.scheduler import SchedulerMetrics

_MS = 1000.0


class Timed:
    """Decides as `inner` does, and measures how long that took."""

    def __init__(self, metrics: SchedulerMetrics, inner: Decide = decide, timer: Callable[[], float] = perf_counter) -> None:
        self._metrics, self._inner, self._timer = metrics, inner, timer
        self._began = 0.0
        self._opened = False
        self._measured: tuple[Conf, Conf] | None = None

    def __call__(self, mirror: Mirror, conf: Conf, now: Time, rng: np.random.Generator, reservations: Reservations) -> Result:
        if self._measured is None or self._measured[0] is not conf:
            self._measured = (conf, self._measuring(conf))
        self._began, self._opened = self._timer(), False
        result = self._inner(mirror, self._measured[1], now, rng, reservations)
        self._metrics[E2E].observe((self._timer() - self._began) * _MS)
        return result

    def _measuring(self, conf: Conf) -> Conf:
        actions = tuple(ActionEntry(replace(entry.action, run=self._action(entry.action)), entry.args) for entry in conf.actions)
        tiers = tuple(tuple(self._plugin(entry) for entry in tier) for tier in conf.tiers)
        return replace(conf, actions=actions, tiers=tiers)

    def _action(self, action: Action) -> Callable[[Any, Any], None]:
        seconds = self._metrics[ACTION].labels(action.name)

        def run(ssn: Any, args: Any) -> None:
            began = self._timer()
            if not self._opened:
                self._opened = True
                self._metrics[OPEN].observe((began - self._began) * _MS)
            action.run(ssn, args)
            seconds.observe((self._timer() - began) * _MS)

        return run

    def _plugin(self, entry: PluginEntry) -> PluginEntry:
        opening, closing = (self._metrics[PLUGIN].labels(entry.name, f"OnSession{when}") for when in ("Open", "Close"))
        return replace(entry, plugin=_Source(entry.plugin, self._timer, opening.observe, closing.observe))


@dataclass(frozen=True, slots=True)
class _Source:
    """A plugin's source whose plugins say how long they took."""

    inner: Source
    timer: Callable[[], float]
    opened: Callable[[float], None]
    closed: Callable[[float], None]

    @property
    def hierarchical(self) -> bool:
        return self.inner.hierarchical

    def parse(self, arguments: Arguments) -> Any:
        return self.inner.parse(arguments)

    def follows(self, args: Any) -> tuple[Kind, ...]:
        return self.inner.follows(args)

    def __call__(self, args: Any, hierarchy: bool) -> Plugin[Any]:
        return cast(Plugin[Any], _Measured(self.inner(args, hierarchy), self))


class _Measured:
    """A plugin that says how long its beginning and its end took, and is otherwise as it was."""

    def __init__(self, plugin: Plugin[Any], source: _Source) -> None:
        self._plugin, self._source = plugin, source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plugin, name)

    def open(self, ssn: Session) -> None:
        began = self._source.timer()
        self._plugin.open(ssn)
        self._source.opened((self._source.timer() - began) * _MS)

    def close(self, ssn: Session) -> None:
        began = self._source.timer()
        self._plugin.close(ssn)
        self._source.closed((self._source.timer() - began) * _MS)
