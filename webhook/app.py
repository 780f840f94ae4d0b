"""The routes over HTTP: a Flask application that turns reviews into questions and verdicts into answers, bytes to bytes.

A refusal is an answer (200, allowed: false). What is no review that could be answered gets a status of its own and one line
of text: 400 unreadable, 404, 405, 411 no length, 413 too long, 415 not JSON, 503 the cluster has not been read yet."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from extender.api.errors import Fault, InvalidObject
from extender.api.meta import Kind
from extender.api.operations import Operation
from extender.cluster import serving
from extender.cluster.health import Health
from extender.cluster.logs import about
from webhook import review
from webhook.admission import answer
from webhook.metrics import Metrics
from webhook.routes import BY_PATH, Route
from webhook.settings import Settings
from webhook.verdict import Allow, Deny, Verdict
from webhook.view import ClusterView

LONGEST_BODY = 3 * 1024 * 1024  # bytes; volcano ed72c7c, pkg/webhooks/util
JSON, TEXT = "application/json", "text/plain; charset=utf-8"

log = logging.getLogger(__name__)


class Site:
    """What the views share. `settings` is asked anew for each review; `missing` names kinds that have not been read yet."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        view: ClusterView,
        *,
        missing: Callable[[], Sequence[Kind]] = tuple,
        take: Callable[[Sequence[Operation]], None] = lambda _: None,
        health: Health | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.settings, self.view, self.missing, self.take = settings, view, missing, take
        self.health, self.metrics = health or Health(), metrics or Metrics()
        self.health.ready.setdefault("cluster", self._unread)

    def _unread(self) -> str | None:
        kinds = self.missing()
        return f"not read yet: {', '.join(kind.plural for kind in kinds)}" if kinds else None

    def judge(self, route: Route) -> Response:
        """One review of one route."""
        began = time.perf_counter()
        question = review.read(_body())
        if self.missing():
            return self._text(HTTPStatus.SERVICE_UNAVAILABLE, f"{self._unread()}\n")
        try:
            asked = review.request_of(question, route)
        except InvalidObject as error:
            verdict: Verdict = Deny((Fault("", str(error)),))
        else:
            verdict = answer(route, asked, self.view, self.settings())
            if isinstance(verdict, Allow) and verdict.operations and not asked.dry_run:
                self.take(verdict.operations)
        allowed = isinstance(verdict, Allow)
        self.metrics.reviewed(route.path, question.operation, allowed=allowed, seconds=time.perf_counter() - began)
        return Response(review.write(question.uid, verdict), content_type=JSON)

    def page(self, show: serving.Page) -> Response:
        asked = serving.Request(request.path, request.args.to_dict(flat=False), request.headers.get("Accept", ""))
        shown = show(asked) or serving.NOT_FOUND
        return Response(shown.body, shown.status, shown.headers, content_type=shown.content_type)

    def metrics_page(self, asked: serving.Request) -> serving.Answer:
        page, content_type = self.metrics.page(asked.accept)
        return serving.Answer(HTTPStatus.OK, page, content_type)

    def unreadable(self, error: InvalidObject) -> Response:
        return self._text(HTTPStatus.BAD_REQUEST, f"{error}\n")

    def refused(self, error: HTTPException) -> Response:
        """Flask's own refusals, without its pages."""
        status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
        made = self._text(status, f"{status.value} {status.phrase.lower()}: {request.path}\n")
        if isinstance(allow := getattr(error, "valid_methods", None), list):
            made.headers["Allow"] = ", ".join(sorted(allow))
        return made

    def failed(self, error: Exception) -> Response:
        """A fault of ours: told in the log, not to the client."""
        log.error("a review failed", exc_info=error, extra=about(path=request.path))
        return self._text(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error\n")

    def _text(self, status: HTTPStatus, text: str) -> Response:
        self.metrics.refused.labels(str(status.value)).inc()
        return Response(text, status, content_type=TEXT)


def create_app(site: Site, enabled: Sequence[str]) -> Flask:
    """Serves the enabled paths, /healthz, /livez, /readyz and /metrics."""
    app = Flask("webhook", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LONGEST_BODY
    for path in enabled:
        app.add_url_rule(path, path, partial(site.judge, BY_PATH[path]), methods=["POST"], provide_automatic_options=False)
    for path, page in {**site.health.pages(), "/metrics": site.metrics_page}.items():
        rule = f"{path}<path:below>" if path.endswith("/") else path
        app.add_url_rule(rule, path, _without_arguments(partial(site.page, page)))
    app.register_error_handler(InvalidObject, site.unreadable)
    app.register_error_handler(HTTPException, site.refused)
    app.register_error_handler(Exception, site.failed)
    return app


def _body() -> bytes:
    """Raises an HTTPException where there is none that we would read."""
    wire = request.environ.get("gunicorn.socket")
    if wire is not None and not isinstance(wire, ssl.SSLSocket):  # the health address
        raise _refusal(HTTPStatus.NOT_FOUND)
    if request.mimetype != JSON:
        raise _refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    if request.content_length is None:
        raise _refusal(HTTPStatus.LENGTH_REQUIRED)
    return request.get_data(cache=False)


def _refusal(status: HTTPStatus) -> HTTPException:
    error = HTTPException()
    error.code = status.value
    return error


def _without_arguments(view: Callable[[], Response]) -> Callable[..., Response]:
    return lambda **_: view()
