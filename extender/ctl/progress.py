"""How a run goes, on stderr while it goes: one line that changes on a terminal, now and then a line elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from rich.console import Console
from rich.status import Status

from extender.cluster.clock import Clock, SystemClock
from extender.core import status as st
from extender.loop import Cycle

T = TypeVar("T")


@dataclass(slots=True)
class _Making:
    """The line until the first cycle: pods are counted whenever the terminal is drawn, since nobody tells of each."""

    text: str
    pods: Callable[[], int]

    def __rich__(self) -> str:
        count = self.pods()
        return f"{self.text}{f', {count:,} pods made' if count else ''}"


_EVERY_TERMINAL, _EVERY_PLAIN = 0.1, 5.0  # seconds of real time between two lines
_BATCH = 500  # objects


class Progress:
    """`started`: where the run's clock begins; `pods`: how many there are now.

    Says nothing at all of what is done before a line is due."""

    def __init__(self, console: Console, started: float, pods: Callable[[], int], timer: Clock | None = None) -> None:
        self._console, self._started, self._timer = console, started, timer or SystemClock()
        spinner = "line" if console.options.ascii_only else "dots"
        self._making = _Making("starting", pods)
        self._status = Status(self._making, console=console, spinner=spinner) if console.is_terminal else None
        self._every = _EVERY_TERMINAL if self._status else _EVERY_PLAIN
        self._said = self._timer.now()

    def __enter__(self) -> Self:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._status:
            self._status.stop()

    def of(self, things: Sequence[T], what: str) -> Iterator[T]:
        """The same things, told one by one."""
        for number, thing in enumerate(things):
            if number % _BATCH == 0:
                self._making.text = f"{what} {number:,} of {len(things):,}"
                self._say(self._making)
            yield thing
        self._making.text = "controllers at work"

    def warn(self, text: str) -> None:
        """At once, and it stays."""
        self._console.print(f"warning: {text}", soft_wrap=True)

    def on_cycle(self, cycle: Cycle) -> None:
        if not self._due():
            return
        counts = np.bincount(cycle.result.session.task_status, minlength=st.STATUSES)
        running, waiting = int(counts[st.RUNNING]), int(counts[st.PENDING] + counts[st.PIPELINED])
        self._say(
            f"{cycle.at - self._started:,.0f}s: cycle {cycle.number:,}, {running:,} pods running, {waiting:,} waiting, "
            f"{int(counts[st.SUCCEEDED] + counts[st.FAILED]):,} ended"
        )

    def _due(self) -> bool:
        return self._timer.now() - self._said >= self._every

    def _say(self, text: str | _Making) -> None:
        if not self._due():
            return
        self._said = self._timer.now()
        if self._status:
            self._status.update(text)
        else:
            self._console.print(text, soft_wrap=True)
