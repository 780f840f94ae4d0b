"""Daemons in threads, and questions to them over loopback."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Sequence

from extender.cluster.daemon import Daemon
from extender.cluster.serving import HttpServer


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
        self._thread.join(20)
        assert not self._thread.is_alive()
        return self.status

    def stop(self) -> int:
        self.daemon.ask_to_stop()
        return self.wait()


def ask(servers: Sequence[HttpServer], path: str) -> tuple[int, str]:
    """Status and body of a page of the first server."""
    connection = http.client.HTTPConnection("127.0.0.1", servers[0].port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def until(condition: Callable[[], bool]) -> bool:
    """Waits for what another thread does, ten seconds at most."""
    tick = threading.Event()
    return any(condition() or tick.wait(0.01) for _ in range(1000))
