"""The extender over HTTP: Flask over service.py, served by gunicorn's threads in this very process.

    POST /<verb>            filter, prioritize, bind, preempt; also below any path, such as /extender/v1/filter
    GET  /explain?group=ns/name     why a gang waits, as JSON
    GET  /healthz /livez /readyz /metrics

One process with one lock, because the books of gangs are in memory: there is no gunicorn master, its worker runs in a thread
of ours. A bind may hold its thread until its gang is whole, so there are many threads, and some that no bind may take."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from flask import Flask, Response, request
from gunicorn.config import Config
from prometheus_client import CollectorRegistry

from extender.cluster.health import Health, metrics_page
from extender.cluster.metrics import COUNTER, GAUGE, HISTOGRAM, Metric
from extender.cluster.web import JSON, Posts, Refusal
from extender.cluster.web import Site as WebSite
from extender.cluster.worker import KEEP_ALIVE, PatientWorker, QuietLogger
from extender.service import VERBS, NotReady, Service, unready

LONGEST_BODY = 10 * 1024 * 1024  # bytes; with nodeCacheCapable some 100 KiB, else a few thousand bytes for each node
SPARE = 64  # threads that waiting binds never take
AT_ONCE = 256 * 1024  # bytes; a longer request, of more than some 10,000 nodes, is left to a thread

REQUESTS = Metric("volcano_extender_requests_total", COUNTER, "Requests of kube-scheduler, by verb and what came of them.",
                  ("verb", "outcome"))  # fmt: skip
SECONDS = Metric("volcano_extender_request_seconds", HISTOGRAM, "From request to answer; a bind may wait for its gang.",
                 ("verb",), (0.0005, 0.001, 0.002, 0.004, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0))  # fmt: skip
RECEIVED = Metric("volcano_extender_received_bytes_total", COUNTER, "Bytes of the bodies of requests.", ("verb",))
KEPT = Metric("volcano_extender_kept_nodes", GAUGE, "Members of gangs for which a node is kept.")
PROGRAM = (REQUESTS, SECONDS, RECEIVED, KEPT)

log = logging.getLogger(__name__)


class Metrics:
    """Of one process."""

    def __init__(self, registry: CollectorRegistry, service: Service) -> None:
        self.registry = registry
        self.requests, self.seconds, self.received, kept = (each.make(registry) for each in PROGRAM)
        kept.set_function(lambda: float(sum(len(held.seats) for held in list(service.extender.books))))

    def answered(self, verb: str, outcome: str, size: int, seconds: float) -> None:
        self.requests.labels(verb, outcome).inc()
        self.seconds.labels(verb).observe(seconds)
        self.received.labels(verb).inc(size)


class Site(WebSite):
    """The views."""

    def __init__(self, service: Service, health: Health, registry: CollectorRegistry) -> None:
        super().__init__(health, metrics_page(registry))
        self.service, self.metrics = service, Metrics(registry, service)
        health.ready.setdefault("lists", unready(service))

    def verb(self, verb: str, body: bytes) -> bytes:
        began = time.perf_counter()
        try:
            reply = self.service.answer(verb, body)
        except NotReady as why:
            raise Refusal(HTTPStatus.SERVICE_UNAVAILABLE, str(why)) from None
        self.metrics.answered(verb, reply.outcome, len(body), time.perf_counter() - began)
        return reply.body

    def explain(self) -> Response:
        told = self.service.explain(request.args.get("group", ""))
        status = HTTPStatus.OK if told is not None else HTTPStatus.NOT_FOUND
        body = orjson.dumps(told if told is not None else {"Error": "there is no such group"}, option=orjson.OPT_SERIALIZE_NUMPY)
        return Response(body, status, content_type=JSON)

    def error(self, status: HTTPStatus, message: str) -> Response:
        verb = request.path.rpartition("/")[2]
        self.metrics.requests.labels(verb if verb in VERBS else "none", str(status.value)).inc()
        return Response(orjson.dumps({"Error": message}), status, content_type=JSON)


def create_app(service: Service, registry: CollectorRegistry, health: Health | None = None, *,
               longest_body: int = LONGEST_BODY) -> Flask:  # fmt: skip
    site = Site(service, health or Health(), registry)
    posts = Posts({f"/{verb}": partial(site.verb, verb) for verb in VERBS}, secured=False, anywhere=True)
    app = site.application("extender", longest_body, posts)
    app.add_url_rule("/explain", "explain", site.explain)
    return app


_ASKS = re.compile(rb"POST /\S*(?:filter|prioritize) HTTP")


def at_once(request: bytearray) -> bool:
    """Most questions are answered by the worker's own loop: kube-scheduler asks them one after the other and waits. Who may have
    to wait for others, or for the API server, has a thread."""
    return len(request) <= AT_ONCE and _ASKS.match(request) is not None


# --- gunicorn without its master ------------------------------------------------------------------------------------------


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
        self._thread = threading.Thread(target=self._run, name="extender-http", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._worker.init_process()
        except Exception:
            log.exception("the extender's server failed")

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


@contextlib.contextmanager
def running(service: Service, listen: Listen, registry: CollectorRegistry, health: Health | None = None) -> Any:
    """A server and its service, for as long as the block lasts."""
    stop = threading.Event()
    work = threading.Thread(target=service.run, args=(stop,), name="extender", daemon=True)
    work.start()
    app = create_app(service, registry, health, longest_body=listen.longest_body)
    server = Server(app, replace(listen, at_once=at_once))
    try:
        yield server
    finally:
        stop.set()
        work.join()
        server.close()
