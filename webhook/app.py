"""The routes over HTTP: a Flask application that turns reviews into questions and verdicts into answers, bytes to bytes.

A refusal is an answer (200, allowed: false). What is no review that could be answered gets a status of its own and one line
of text: 400 unreadable, 404, 405, 411 no length, 413 too long, 415 not JSON, 503 the cluster has not been read yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus

from flask import Flask, Response

from extender.api.errors import Fault, InvalidObject
from extender.api.meta import Kind
from extender.api.operations import Operation
from extender.cluster import serving, web
from extender.cluster.health import Health
from webhook import review
from webhook.admission import answer
from webhook.metrics import Metrics
from webhook.routes import BY_PATH, Route
from webhook.settings import Settings
from webhook.verdict import Allow, Deny, Verdict
from webhook.view import ClusterView

LONGEST_BODY = 3 * 1024 * 1024  # bytes; volcano ed72c7c, pkg/webhooks/util
TEXT = "text/plain; charset=utf-8"


class Site(web.Site):
    """What the views share. `settings` is asked anew for each review; `missing` names kinds that have not been read yet."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        view: ClusterView,
        *,
        missing: Callable[[], Sequence[Kind]] = tuple,
        take: Callable[[Sequence[Operation]], None] = lambda _: None,
        metrics: Metrics | None = None,
    ) -> None:
        self.settings, self.view, self.missing, self.take = settings, view, missing, take
        self.counted = metrics or Metrics()
        super().__init__(Health(), self._metrics_page)
        self.health.ready["cluster"] = self._unread

    def _unread(self) -> str | None:
        kinds = self.missing()
        return f"not read yet: {', '.join(kind.plural for kind in kinds)}" if kinds else None

    def judge(self, route: Route, body: bytes) -> bytes:
        """One review of one route. Raises InvalidObject for what is none, Refusal while nobody may be answered."""
        began = time.perf_counter()
        question = review.read(body)
        if self.missing():
            raise web.Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"{self._unread()}")
        try:
            asked = review.request_of(question, route)
        except InvalidObject as error:
            verdict: Verdict = Deny((Fault("", str(error)),))
        else:
            verdict = answer(route, asked, self.view, self.settings())
            if isinstance(verdict, Allow) and verdict.operations and not asked.dry_run:
                self.take(verdict.operations)
        allowed = isinstance(verdict, Allow)
        self.counted.reviewed(route.path, question.operation, allowed=allowed, seconds=time.perf_counter() - began)
        return review.write(question.uid, verdict)

    def error(self, status: HTTPStatus, message: str) -> Response:
        self.counted.refused.labels(str(status.value)).inc()
        return Response(f"{message}\n", status, content_type=TEXT)

    def _metrics_page(self, asked: serving.Request) -> serving.Answer:
        page, content_type = self.counted.page(asked.accept)
        return serving.Answer(HTTPStatus.OK, page, content_type)


def create_app(site: Site, enabled: Sequence[str]) -> Flask:
    """Serves the enabled paths, /healthz, /livez, /readyz and /metrics."""
    posts = web.Posts({path: partial(site.judge, BY_PATH[path]) for path in enabled})
    return site.application("webhook", LONGEST_BODY, posts)
