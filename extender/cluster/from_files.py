"""Values that are read from files and follow them. What was read last stays in force while the files cannot be read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from extender.api.errors import PumiceError
from extender.cluster.clock import Clock
from extender.cluster.logs import about

LOOK_SECONDS = 1.0

T = TypeVar("T")
_Stamp = tuple[int, int, int] | None

log = logging.getLogger(__name__)


class FromFiles(Generic[T]):
    """Call it for the present value. Thread-safe; the files are looked at once a second at most, when somebody asks.

    `read` raises OSError, ValueError (ssl.SSLError is an OSError) or PumiceError; the first time these are the caller's."""

    def __init__(
        self, what: str, files: Sequence[str | Path], read: Callable[[], T], clock: Clock,
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._what, self._files, self._read, self._clock, self._failed = what, files, read, clock, failed
        self._lock = threading.Lock()
        self._stamps = self._tried = self._look()
        self._value = read()
        self._due = clock.now() + LOOK_SECONDS

    def __call__(self) -> T:
        if self._clock.now() >= self._due and self._lock.acquire(blocking=False):
            try:
                self._due = self._clock.now() + LOOK_SECONDS
                self._follow()
            finally:
                self._lock.release()
        return self._value

    def _follow(self) -> None:
        """Files are replaced one after the other: what does not fit together now is tried again at the next look."""
        stamps = self._look()
        if stamps == self._stamps:
            return
        try:
            self._value = self._read()
        except (OSError, ValueError, PumiceError) as error:
            if stamps != self._tried:
                self._tried = stamps
                self._failed(self._what)
                told = about(what=self._what, error=str(error))
                log.warning("cannot be read again; what was read last is in force", extra=told)
            return
        self._stamps = self._tried = stamps
        log.info("read again", extra=about(what=self._what))

    def _look(self) -> list[_Stamp]:
        return [_stamp(Path(file)) for file in self._files]


def _stamp(file: Path) -> _Stamp:
    """Of what the name leads to now; a mounted Secret is changed by turning a link."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
