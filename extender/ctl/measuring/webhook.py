"""A vc-webhook-manager on an embedded cluster, as a process.

    python -m extender.ctl.measuring.webhook FOLDER PORT HEALTH_PORT WORKERS

Its certificates are in FOLDER (certs/folder.py). Everything is the daemon's own but for the cluster, which holds the queues
that are always there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from certs import folder as certificates
from certs.stock import Stock, restock
from extender.api.labels import SYSTEM_NAMESPACE
from extender.api.meta import NAMESPACE, QUEUE, Json
from extender.cluster.clock import SystemClock
from extender.cluster.logs import configure
from extender.cluster.memory import MemoryCluster
from extender.cluster.tls import TlsFiles
from extender.ctl.measuring.child import Child, free_ports
from extender.ctl.measuring.reviews import Target
from webhook.metrics import FOLDER
from webhook.routes import BY_PATH
from webhook.serving import Plan, Server
from webhook.settings import Settings

HOST = "localhost"


@contextmanager
def running(where: Path, workers: int) -> Iterator[tuple[Child, Target]]:
    """The process for as long as the block lasts, ready; certificates for HOST are made first. Raises NotMeasured."""
    certificates.save(where, restock(Stock(), [HOST], SystemClock().now()))
    (where / "metrics").mkdir()
    port, health = free_ports(2)
    child = Child(command(where, port, health, workers), where / "log", {FOLDER: str(where / "metrics")})
    try:
        child.await_page(f"http://127.0.0.1:{health}/readyz")
        yield child, Target(port, where / certificates.TRUSTED, HOST)
    finally:
        child.end()


def renew(where: Path) -> None:
    """A new serving pair by the same authority, file after file, as a mounted Secret changes."""
    stock = certificates.load(where)
    certificates.save(where, restock(Stock(stock.authority, None, stock.trusted), [HOST], SystemClock().now()))


def command(where: Path, port: int, health_port: int, workers: int) -> tuple[str, ...]:
    return (sys.executable, "-m", __name__, str(where), str(port), str(health_port), str(workers))


def connect() -> MemoryCluster:
    """Each worker has one of its own."""
    cluster = MemoryCluster(SystemClock())
    queues: list[Json] = [
        {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}, "spec": {}, "status": {"state": "Open"}}
        for name in ("root", "default")
    ]
    cluster.load([*queues, {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": SYSTEM_NAMESPACE}}])
    return cluster


def main(where: Path, port: int, health_port: int, workers: int) -> None:
    configure()
    files = TlsFiles(*(str(where / name) for name in (certificates.SERVING, certificates.SERVING_KEY, certificates.TRUSTED)))
    plan = Plan(Settings(enabled=tuple(BY_PATH)), files, connect, ("127.0.0.1", port), ("127.0.0.1", health_port),
                publish=False, workers=workers,
                graceful_seconds=10)  # fmt: skip
    Server(plan).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
