"""vc-webhook-manager's processes: a gunicorn master and its workers, put together without gunicorn's own files and variables.

Each worker has its own connection to the API server and its own view of the cluster, made after the fork. They share the
listeners, and a folder in which their metrics are summed."""

from __future__ import annotations

import gc
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication
from gunicorn.errors import HaltServer
from prometheus_client.multiprocess import mark_process_dead

from extender.cluster.clock import Clock, SteadyClock
from extender.cluster.from_files import FromFiles
from extender.cluster.logs import about
from extender.cluster.port import Cluster
from extender.cluster.tls import TlsFiles
from extender.cluster.worker import KEEP_ALIVE, PatientWorker, QuietLogger
from webhook.app import LONGEST_BODY, Site, create_app
from webhook.errands import Errands
from webhook.metrics import Metrics
from webhook.pods.groups import ResourceGroup, resource_groups
from webhook.routes import BY_PATH
from webhook.settings import Settings
from webhook.trust import keep_published, read_authority
from webhook.watched import WatchedView

SILENT_SECONDS = 60  # a worker whose loop stands still so long is replaced
CONNECTIONS = 1000  # of each worker
AT_ONCE = 32 * 1024  # bytes; a longer request is left to a thread, so that others are taken in meanwhile
ENDING = 5.0  # seconds for what was taken on before the end

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is served, where and by whom. `connect` makes the way to the cluster, once in each worker."""

    settings: Settings
    tls: TlsFiles
    connect: Callable[[], Cluster]
    address: tuple[str, int] = ("", 8443)
    health_address: tuple[str, int] | None = None
    admission_conf: str = ""
    publish: bool = True
    workers: int = 2
    threads: int = 8
    graceful_seconds: int = 30


class Server(BaseApplication):  # type: ignore[misc]
    """Raises what is wrong with the files at once: a server that cannot serve does not start."""

    def __init__(self, plan: Plan, clock: Clock | None = None) -> None:
        self._plan, self._clock = plan, clock or SteadyClock()
        self._stop = threading.Event()
        self._errands: Errands | None = None
        self._metrics: Metrics | None = None
        plan.tls.context()
        if plan.admission_conf:
            read_groups(plan.admission_conf)
        super().__init__()

    def load_config(self) -> None:
        plan = self._plan
        PatientWorker.longest_body = LONGEST_BODY
        PatientWorker.waits_for_nothing = staticmethod(_waits_for_nothing)
        PatientWorker.plain = frozenset([plan.health_address[1]] if plan.health_address else [])
        addresses = [plan.address, *([plan.health_address] if plan.health_address else [])]
        values: dict[str, Any] = {
            "bind": [_bind(*address) for address in addresses],
            "worker_class": PatientWorker,
            "workers": plan.workers,
            "threads": plan.threads,
            "worker_connections": CONNECTIONS,
            "certfile": plan.tls.certificate,
            "keyfile": plan.tls.key,
            "keepalive": KEEP_ALIVE,
            "timeout": SILENT_SECONDS,
            "graceful_timeout": plan.graceful_seconds,
            "control_socket_disable": True,
            "limit_request_fields": 100,
            "logger_class": QuietLogger,
            "proc_name": "vc-webhook-manager",
            "post_worker_init": lambda _: self._begin(),
            "worker_exit": lambda _server, _worker: self._end(),
            "child_exit": lambda _, worker: mark_process_dead(worker.pid),  # type: ignore[no-untyped-call]
        }
        for name, value in values.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """Ends with SystemExit."""
        try:
            super().run()
        except HaltServer as why:  # gunicorn raises it once more while it cleans up
            log.error("no worker could start", extra=about(reason=why.reason))
            sys.exit(why.exit_status)

    def load(self) -> Flask:
        """In a worker: everything that has threads or connections."""
        plan, metrics = self._plan, Metrics()
        failed = _told(metrics)
        PatientWorker.tls = plan.tls.followed(self._clock, failed)
        cluster = plan.connect()
        routes = [BY_PATH[path] for path in plan.settings.enabled]
        view = WatchedView(cluster, self._clock, dict.fromkeys(kind for route in routes for kind in route.reads))
        self._errands = Errands(cluster, self._clock, lambda outcome: metrics.writes.labels(outcome).inc())
        site = Site(_settings(plan, self._clock, failed), view, missing=lambda: view.missing, take=self._errands.take,
                    metrics=metrics)  # fmt: skip
        site.health.ready["shutdown"] = lambda: "shutting down" if self._stop.is_set() else None
        self._background: list[Callable[[], object]] = [self._errands.start, partial(view.start, self._stop)]
        if plan.publish and plan.tls.authority:
            file = plan.tls.authority
            bundle = FromFiles("authority", [file], partial(read_authority, file), self._clock, failed)
            work = partial(keep_published, cluster, plan.settings.enabled, bundle, self._clock, self._stop)
            self._background.append(threading.Thread(target=work, name="trust", daemon=True).start)
        return create_app(site, plan.settings.enabled)

    def _begin(self) -> None:
        gc.collect()
        gc.freeze()  # what is there by now stays: looking through it takes milliseconds in which nobody is answered
        for start in self._background:
            start()

    def _end(self) -> None:
        self._stop.set()
        if self._errands is not None:
            self._errands.close(ENDING)


def read_groups(file: str) -> tuple[ResourceGroup, ...] | None:
    """None where the file is not there (yet). Raises ConfError for one that cannot be used, OSError."""
    try:
        return resource_groups(Path(file).read_text())
    except FileNotFoundError:
        return None


def _settings(plan: Plan, clock: Clock, failed: Callable[[str], None]) -> Callable[[], Settings]:
    """The settings of the moment: the admission configuration follows its file."""
    if not plan.admission_conf:
        return lambda: plan.settings
    if not Path(plan.admission_conf).exists():
        log.warning("--admission-conf: no such file yet: %s", plan.admission_conf)

    def read() -> Settings:
        return replace(plan.settings, resource_groups=read_groups(plan.admission_conf))

    return FromFiles("admission configuration", [plan.admission_conf], read, clock, failed)


def _waits_for_nothing(request: bytearray) -> bool:
    """Handlers compute from what is in memory; only pods may need an owner that must be read first."""
    return len(request) <= AT_ONCE and request.startswith(b"POST /") and not request.startswith(b"POST /pods/mutate ")


def _told(metrics: Metrics) -> Callable[[str], None]:
    return lambda what: metrics.reload_failures.labels(what).inc()


def _bind(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
