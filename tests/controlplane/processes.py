"""Programs that a test run starts: each with a log of its own, ended by pid, none left over however the run ends."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_PORTS = (12_000, 32_000)  # Linux hands out those from 32768 on
_CHANCE = random.SystemRandom()  # whatever seeds tests set
_STOPPING = 10.0  # seconds until a program that was asked to stop is killed


class Processes:
    """A group that ends together, the last that was started first. `logs` is removed if the test process is killed."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._begins: dict[str, int] = {}  # where in its log a program has begun the last time
        reaper = [sys.executable, str(Path(__file__).with_name("reaper.py")), str(logs)]
        self._reaper = subprocess.Popen(reaper, stdin=subprocess.PIPE, start_new_session=True)

    def start(self, name: str, command: Sequence[str]) -> int:
        """The pid. What it says is appended to `<name>.log`."""
        with self.log(name).open("ab") as log:
            self._begins[name] = log.tell()
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)  # fmt: skip
        self._running[name] = process
        self._tell(f"+{process.pid}")
        return process.pid

    def end(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """Send the signal and wait until the program is gone."""
        process = self._running.pop(name)
        process.send_signal(number)
        try:
            process.wait(_STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._tell(f"-{process.pid}")

    def end_all(self) -> None:
        """At once: there is nothing that they should save."""
        for name in reversed(list(self._running)):
            self.end(name, signal.SIGKILL)
        assert self._reaper.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._reaper.stdin.close()
        self._reaper.wait()

    def exit_status(self, name: str) -> int | None:
        """None while it runs."""
        process = self._running.get(name)
        return process.poll() if process is not None else None

    def pid(self, name: str) -> int:
        return self._running[name].pid

    def said(self, name: str) -> str:
        """Since its last start, and none of what others of that name said before."""
        return self.log(name).read_bytes()[self._begins[name] :].decode(errors="replace")

    def log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _tell(self, line: str) -> None:
        assert self._reaper.stdin is not None
        self._reaper.stdin.write(f"{line}\n".encode())
        self._reaper.stdin.flush()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody has, all different, and below those that the system hands out: who is to have them binds
    them later, and until then neither a connection nor another test's server gets one by chance."""
    with contextlib.ExitStack() as stack:
        return [_bound(stack) for _ in range(count)]


def _bound(stack: contextlib.ExitStack) -> int:
    while True:
        each, port = stack.enter_context(socket.socket()), _CHANCE.randrange(*_PORTS)
        with contextlib.suppress(OSError):
            each.bind(("127.0.0.1", port))
            return port
