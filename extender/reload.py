"""scheduler.conf as a file that may change: the last good one stays in force.

A ConfigMap that is mounted is a symbolic link to a folder that is swapped, so both are looked at: the file that the path leads
to, and the link `..data` beside it. Looking costs two calls, and needs no watch that the file system may not have."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from extender.api.errors import ConfError
from extender.api.meta import Time
from extender.cluster.clock import Clock
from extender.cluster.logs import V, about
from extender.core.conf import DEFAULT, Conf
from extender.vocabulary import BUILT_IN

LOOK = 2.0  # seconds between two looks at the file
_LINK = "..data"

log = logging.getLogger(__name__)

Mark = tuple[object, ...]


class ConfFile:
    """`path` empty: what is built in, which never changes. `text` is what is in force."""

    def __init__(self, path: str, parse: Callable[[str, str], Conf] = BUILT_IN.read) -> None:
        self._path, self._parse = Path(path) if path else None, parse
        self._mark: Mark = ()
        self.text = DEFAULT.lstrip()
        self.error = ""  # why the file, as it is now, cannot be used

    @property
    def source(self) -> str:
        return str(self._path) if self._path is not None else "the built-in configuration"

    def load(self) -> Conf:
        """Raises ConfError; then what was in force before stays."""
        if self._path is None:
            return self._parse(self.text, self.source)
        self._mark = self._look()
        try:
            try:
                text = self._path.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise ConfError(f"{self._path}: cannot be read: {error}") from None
            conf = self._parse(text, self.source)
        except ConfError as error:
            self.error = str(error)
            raise
        self.text, self.error = text, ""
        return conf

    def changed(self) -> bool:
        """Is the file another one than the one last read?"""
        return self._path is not None and self._look() != self._mark

    def _look(self) -> Mark:
        assert self._path is not None
        return (*_mark_of(self._path, follow=True), *_mark_of(self._path.parent / _LINK, follow=False))


def _mark_of(path: Path, *, follow: bool) -> Mark:
    try:
        found = os.stat(path, follow_symlinks=follow)
    except OSError:  # not there, or just being replaced
        return (None,)
    return found.st_ino, found.st_mtime_ns, found.st_size


class Observer(Protocol):
    """Counts reloads (extender/metrics/scheduler.py)."""

    def reloaded(self, now: Time, *, success: bool) -> None: ...


class Reloads:
    """Looks at the file now and then. `say(type, reason, message)` makes an event."""

    def __init__(self, file: ConfFile, observer: Observer, clock: Clock, say: Callable[[str, str, str], None]) -> None:
        self.file = file
        self._observer, self._clock, self._say = observer, clock, say
        self._looked = clock.now()
        observer.reloaded(self._looked, success=True)

    def look(self) -> Conf | None:
        """A configuration that is to come into force. None: what is in force stays."""
        now = self._clock.now()
        if now - self._looked < LOOK:
            return None
        self._looked = now
        if not self.file.changed():
            return None
        before, failed_before = self.file.text, self.file.error
        try:
            conf = self.file.load()
        except ConfError as error:
            self._observer.reloaded(now, success=False)
            if str(error) != failed_before:
                for line in str(error).splitlines():
                    log.error("the configuration cannot be used, the last good one stays", extra=about(error=line))
                self._say("Warning", "ConfigReloadFailed", str(error))
            return None
        self._observer.reloaded(now, success=True)
        if self.file.text == before:
            return None  # written anew with the same words, or mended
        tell(self.file, conf)
        self._say("Normal", "ConfigReloaded", f"{self.file.source} is in force")
        return conf


def tell(file: ConfFile, conf: Conf) -> None:
    """What is in force from now on; its text with -v=2."""
    log.info("configuration", extra=about(source=file.source, warnings=len(conf.warnings)))
    for warning in conf.warnings:
        log.warning("configuration", extra=about(warning=warning))
    for number, line in enumerate(file.text.splitlines(), 1):
        log.log(V(2), f"configuration line {number}", extra=about(text=line))
