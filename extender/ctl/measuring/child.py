"""A scheduler as a process of ours: started, looked at, ended, and what it used.

CPU seconds are those of the whole life of the process and of the processes it waited for. Peak memory is read from /proc
before the end, since what the system tells afterwards begins with the memory of whoever started the process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import urllib3

from extender.api.errors import PumiceError

PATIENCE = 30.0  # seconds from SIGTERM to SIGKILL
_STARTING = 60.0  # seconds to answer its first question
_LOOK = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")


class NotMeasured(PumiceError):
    """A process ended, or did not do what was to be measured; the message ends with what it said."""


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_seconds: float
    peak_mebibytes: float


class Child:
    """Runs from construction to `end`. What it says goes to the file `log`; `environ` is added to the environment.

    Raises OSError where it cannot be started."""

    def __init__(self, command: Sequence[str], log: Path, environ: Mapping[str, str] | None = None) -> None:
        self.log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                             env={**os.environ, **(environ or {})})  # fmt: skip
        self._used: tuple[float, float] | None = None  # CPU seconds, peak as the system tells it; once it has ended
        self._peak = 0.0

    def status(self) -> int | None:
        """Of its exit; None: it runs."""
        if self._used is None:
            self._reap(os.WNOHANG)
        return self._process.returncode

    def await_page(self, page: str) -> None:
        """Until that URL answers with 200. Raises NotMeasured."""
        deadline = time.monotonic() + _STARTING
        while not _answers(page):
            if self.status() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"{page} does not answer. It said:\n{self.says()}")
            time.sleep(_LOOK)

    def cpu_seconds(self) -> float:
        """Until now."""
        return self._used[0] if self._used is not None else _cpu_seconds(self._process.pid)

    def workers_cpu_seconds(self) -> float:
        """Until now, of the processes that it has started and that still run."""
        children = _proc(self._process.pid, f"task/{self._process.pid}/children")
        return sum(_cpu_seconds(int(pid)) for pid in children.split())

    def resident_mebibytes(self) -> float:
        return self._memory("VmRSS")

    def end(self) -> Usage:
        """Its end if it still runs, and what it used."""
        self._peak = max(self._peak, self._memory("VmHWM"))
        if self.status() is None:
            self._process.send_signal(signal.SIGTERM)
            deadline = time.monotonic() + PATIENCE
            while self.status() is None and time.monotonic() < deadline:
                time.sleep(_LOOK)
            if self.status() is None:
                self._process.kill()
                self._reap(0)
        assert self._used is not None
        seconds, told = self._used
        return Usage(seconds, self._peak or told)

    def says(self, characters: int = 2000) -> str:
        """The end of what it said."""
        return self.log.read_text(errors="replace")[-characters:]

    def _reap(self, options: int) -> None:
        pid, status, used = os.wait4(self._process.pid, options)
        if pid:
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._used = used.ru_utime + used.ru_stime, used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)

    def _memory(self, name: str) -> float:
        for line in _proc(self._process.pid, "status").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
        return 0.0


def free_ports(count: int) -> list[int]:
    """Of this machine, all different, free a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def _answers(page: str) -> bool:
    try:
        return urllib3.request("GET", page, timeout=1.0, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _cpu_seconds(pid: int) -> float:
    fields = _proc(pid, "stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS if fields else 0.0


def _proc(pid: int, name: str) -> str:
    """Empty where the system has no /proc, and where the process is gone."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""
