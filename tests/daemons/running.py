"""Daemons in threads, and questions to them over loopback."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Sequence

from extender.cluster.daemon import Daemon
from extender.cluster.lease import Terms
from extender.cluster.serving import HttpServer

PATIENCE = 60.0  # seconds, as long as a busy machine may need for anything here
# Looked at often, and kept however long the machine stands still: nobody here waits for a lease to run out.
TERMS = Terms(duration=600.0, deadline=300.0, retry=0.05)
ELECTED = (f"--leader-elect-lease-duration={TERMS.duration}s", f"--leader-elect-renew-deadline={TERMS.deadline}s",
           f"--leader-elect-retry-period={TERMS.retry}s")  # fmt: skip


class Runs:
    """A daemon in a thread, until `stop`."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon, self.status = daemon, -1
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.status = self.daemon.run()

    def wait(self) -> int:
        """Its exit status."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.status

    def stop(self) -> int:
        self.daemon.ask_to_stop()
        return self.wait()


def ask(servers: Sequence[HttpServer], path: str) -> tuple[int, str]:
    """Status and body of a page of the first server."""
    connection = http.client.HTTPConnection("127.0.0.1", servers[0].port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def until(condition: Callable[[], bool]) -> bool:
    """Waits for what another thread does, as long as PATIENCE lasts."""
    tick, over = threading.Event(), time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > over:
            return False
        tick.wait(0.01)
    return True
