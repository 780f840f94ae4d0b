"""What our Flask applications share: pages of health and metrics, and refusals in one line instead of Flask's own pages.

A service derives its Site, adds its own routes to what `application` returns, and says in `error` how it words a refusal."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from extender.api.errors import InvalidObject
from extender.cluster import serving
from extender.cluster.health import Health
from extender.cluster.logs import about

log = logging.getLogger(__name__)


class Site:
    """The views that every service has, and what becomes of a request that cannot be answered."""

    def __init__(self, health: Health, metrics: serving.Page) -> None:
        self.health, self._metrics = health, metrics

    def error(self, status: HTTPStatus, message: str) -> Response:
        """A refusal in the form that the service's clients read; counted."""
        raise NotImplementedError

    def application(self, name: str, longest_body: int) -> Flask:
        """With /healthz, /livez, /readyz, /metrics and these refusals."""
        app = Flask(name, static_folder=None)
        app.config["MAX_CONTENT_LENGTH"] = longest_body
        for path, page in {**self.health.pages(), "/metrics": self._metrics}.items():
            rule = f"{path}<path:below>" if path.endswith("/") else path
            app.add_url_rule(rule, path, _without_arguments(partial(_shown, page)))
        app.register_error_handler(InvalidObject, self._unreadable)
        app.register_error_handler(HTTPException, self._refused)
        app.register_error_handler(Exception, self._failed)
        return app

    def _unreadable(self, error: InvalidObject) -> Response:
        return self.error(HTTPStatus.BAD_REQUEST, str(error))

    def _refused(self, error: HTTPException) -> Response:
        status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
        made = self.error(status, f"{status.value} {status.phrase.lower()}: {request.path}")
        if isinstance(allow := getattr(error, "valid_methods", None), list):
            made.headers["Allow"] = ", ".join(sorted(allow))
        return made

    def _failed(self, error: Exception) -> Response:
        """A fault of ours: told in the log, not to the client."""
        log.error("a request failed", exc_info=error, extra=about(path=request.path))
        return self.error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")


def refusal(status: HTTPStatus) -> HTTPException:
    """To be raised by a view."""
    error = HTTPException()
    error.code = status.value
    return error


def _shown(page: serving.Page) -> Response:
    asked = serving.Request(request.path, request.args.to_dict(flat=False), request.headers.get("Accept", ""))
    shown = page(asked) or serving.NOT_FOUND
    return Response(shown.body, shown.status, shown.headers, content_type=shown.content_type)


def _without_arguments(view: Callable[[], Response]) -> Callable[..., Response]:
    return lambda **_: view()
