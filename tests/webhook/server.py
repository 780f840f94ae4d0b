"""A vc-webhook-manager on the embedded cluster, for tests: `python server.py FOLDER PORT HEALTH_PORT`, certificates in FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from extender.api.meta import NAMESPACE, QUEUE, Json
from extender.cluster.clock import SystemClock
from extender.cluster.logs import configure
from extender.cluster.memory import MemoryCluster


def connect() -> MemoryCluster:
    """Each worker has one of its own, with the queues that are always there."""
    cluster = MemoryCluster(SystemClock())
    queues: list[Json] = [
        {"apiVersion": QUEUE.api_version, "kind": QUEUE.name, "metadata": {"name": name}, "spec": {}, "status": {"state": "Open"}}
        for name in ("root", "default")
    ]
    cluster.load([*queues, {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": "volcano-system"}}])
    return cluster


def main(folder: Path, port: int, health_port: int) -> None:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder / "metrics")
    (folder / "metrics").mkdir()
    configure(verbosity=9)
    from extender.cluster.tls import TlsFiles
    from webhook.routes import BY_PATH
    from webhook.serving import Plan, Server
    from webhook.settings import Settings

    files = TlsFiles(str(folder / "tls.crt"), str(folder / "tls.key"), str(folder / "ca.crt"))
    plan = Plan(Settings(enabled=tuple(BY_PATH)), files, connect, ("127.0.0.1", port), ("127.0.0.1", health_port),
                publish=False, graceful_seconds=10)  # fmt: skip
    Server(plan).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
