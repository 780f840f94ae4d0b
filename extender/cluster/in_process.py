"""A Flask application served within this process: gunicorn's worker in a thread of ours, without its master.

For what keeps its books in memory (the extender), and for a trial (`pumice up`)."""

from __future__ import annotations

import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Flask
from gunicorn.config import Config

from extender.cluster.worker import KEEP_ALIVE, PatientWorker, QuietLogger

# Bytes. Of kube-scheduler with nodeCacheCapable come some 100 KiB, else a few thousand bytes for each node.
LONGEST_BODY = 10 * 1024 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listen:
    """`tls` gives the context for each new connection; None: plain HTTP. `at_once`: see PatientWorker.waits_for_nothing."""

    address: tuple[str, int]
    tls: Callable[[], ssl.SSLContext] | None = None
    threads: int = 1024
    longest_body: int = LONGEST_BODY
    graceful_seconds: int = 5
    at_once: Callable[[bytearray], bool] = PatientWorker.waits_for_nothing


class Server:
    """Serves the application from construction to `close`. Raises OSError where the address cannot be had."""

    def __init__(self, app: Flask, listen: Listen) -> None:
        host, port = listen.address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=1024)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        config = _config(listen)
        plain = frozenset() if listen.tls else frozenset([self.port])
        worker = type("Worker", (_InProcess,), {"tls": staticmethod(listen.tls or ssl.create_default_context), "plain": plain,
                                                "longest_body": listen.longest_body,
                                                "waits_for_nothing": staticmethod(listen.at_once)})  # fmt: skip
        self._worker = worker(0, 0, [self._socket], _Application(app), config.timeout, config, QuietLogger(config))
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._worker.init_process()
        except Exception:
            log.exception("the server failed")

    def close(self, timeout: float = 10.0) -> None:
        """What was taken on is answered first. Once is enough."""
        if self._socket.fileno() < 0:
            return
        self._worker.handle_exit(0, None)
        self._thread.join(timeout)
        self._socket.close()
        self._worker.tmp.close()
        for end in self._worker.PIPE:
            os.close(end)


class _Application:
    """What a gunicorn worker wants to know of an application."""

    def __init__(self, app: Flask) -> None:
        self._app = app

    def wsgi(self) -> Flask:
        return self._app


class _InProcess(PatientWorker):
    """Nobody forked it, so nobody watches over it, and signals are not its business."""

    def init_signals(self) -> None:
        pass

    def notify(self) -> None:
        pass

    def is_parent_alive(self) -> bool:
        return True


def _config(listen: Listen) -> Config:
    config = Config()
    values: dict[str, Any] = {
        "workers": 1, "threads": listen.threads, "worker_connections": 2 * listen.threads, "keepalive": KEEP_ALIVE,
        "graceful_timeout": listen.graceful_seconds, "control_socket_disable": True, "limit_request_fields": 100,
    }  # fmt: skip
    for name, value in values.items():
        config.set(name, value)
    return config
