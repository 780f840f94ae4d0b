"""Ends what a test run leaves behind: `+PID` and `-PID` lines on its input name who is to go when the input ends; the folder
that is its argument goes then, too.

The input is a pipe that only the test process holds open, so it ends however that process does, by `kill -9` too."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time

_PATIENCE = 5.0  # seconds between SIGTERM and SIGKILL


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    known: list[int] = []
    for line in sys.stdin:
        pid = int(line[1:])
        if line.startswith("+"):
            known.append(pid)
        elif pid in known:
            known.remove(pid)
    _send(known, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while any(map(_alive, known)) and time.monotonic() < deadline:
        time.sleep(0.05)
    _send(known, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in reversed(pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main()
