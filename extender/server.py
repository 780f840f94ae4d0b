"""The extender over HTTP: Flask over service.py, served by gunicorn's threads in this very process.

    POST /<verb>            filter, prioritize, bind, preempt; also below any path, such as /extender/v1/filter
    GET  /explain?group=ns/name     why a gang waits, as JSON
    GET  /healthz /livez /readyz /metrics

One process with one lock, because the books of gangs are in memory (cluster/in_process.py). A bind may hold its thread until
its gang is whole, so there are many threads, and some that no bind may take."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from flask import Flask, Response, request
from prometheus_client import CollectorRegistry

from extender.cluster.health import Health, metrics_page
from extender.cluster.in_process import LONGEST_BODY, Listen, Server
from extender.cluster.metrics import COUNTER, GAUGE, HISTOGRAM, Metric
from extender.cluster.web import JSON, Posts, Refusal
from extender.cluster.web import Site as WebSite
from extender.service import VERBS, NotReady, Service, unready

SPARE = 64  # threads that waiting binds never take
AT_ONCE = 256 * 1024  # bytes; a longer request, of more than some 10,000 nodes, is left to a thread

REQUESTS = Metric("volcano_extender_requests_total", COUNTER, "Requests of kube-scheduler, by verb and what came of them.",
                  ("verb", "outcome"))  # fmt: skip
SECONDS = Metric("volcano_extender_request_seconds", HISTOGRAM, "From request to answer; a bind may wait for its gang.",
                 ("verb",), (0.0005, 0.001, 0.002, 0.004, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0))  # fmt: skip
RECEIVED = Metric("volcano_extender_received_bytes_total", COUNTER, "Bytes of the bodies of requests.", ("verb",))
KEPT = Metric("volcano_extender_kept_nodes", GAUGE, "Members of gangs for which a node is kept.")
PROGRAM = (REQUESTS, SECONDS, RECEIVED, KEPT)


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
