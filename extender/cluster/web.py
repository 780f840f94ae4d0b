"""What our Flask applications share: pages of health and metrics, refusals in one line instead of Flask's own pages, and a
short way for what is asked often.

A service derives its Site, adds its own routes to what `application` returns, and says in `error` how it words a refusal."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from extender.api.errors import InvalidObject
from extender.cluster import serving
from extender.cluster.health import Health
from extender.cluster.logs import about

JSON = "application/json"

Post = Callable[[bytes], bytes]  # a body and the answer's, both JSON; may raise InvalidObject or Refusal

log = logging.getLogger(__name__)


class Refusal(HTTPException):
    """Raised by a view. Without a message the client is told the status and the path."""

    def __init__(self, status: HTTPStatus, message: str = "") -> None:
        super().__init__(message or None)
        self.code = status.value


@dataclass(frozen=True, slots=True)
class Posts:
    """What is answered, by path. `secured`: by TLS only, not on a health address. `anywhere`: below any other path, too."""

    by_path: Mapping[str, Post]
    secured: bool = True
    anywhere: bool = False

    def rules(self) -> Iterator[tuple[str, Post]]:
        for path, post in self.by_path.items():
            yield path, post
            if self.anywhere:
                yield f"/<path:above>{path}", post

    def find(self, path: str) -> Post | None:
        return self.by_path.get(path[path.rfind("/") :] if self.anywhere else path)

    def taken_by(self, environ: Mapping[str, Any]) -> bool:
        """Nothing but gunicorn tells: then there is no TLS at all, as in tests."""
        wire = environ.get("gunicorn.socket")
        return not self.secured or wire is None or isinstance(wire, ssl.SSLSocket)


class Application(Flask):
    """What is surely one of `posts` goes past Flask, whose routing and contexts cost several times what an answer does; whatever
    is in doubt, and every refusal, is Flask's."""

    def __init__(self, name: str, longest_body: int, posts: Posts) -> None:
        super().__init__(name, static_folder=None)
        self._longest, self._posts = longest_body, posts
        self.config["MAX_CONTENT_LENGTH"] = longest_body
        for rule, post in posts.rules():
            self.add_url_rule(rule, rule, partial(self._posted, post), methods=["POST"], provide_automatic_options=False)

    def wsgi_app(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        post = self._posts.find(environ["PATH_INFO"]) if environ["REQUEST_METHOD"] == "POST" else None
        length = environ.get("CONTENT_LENGTH", "")
        if (post is None or environ.get("CONTENT_TYPE") != JSON or not (length.isascii() and length.isdigit())
                or int(length) > self._longest or not self._posts.taken_by(environ)):  # fmt: skip
            return super().wsgi_app(environ, start_response)
        try:
            body = post(environ["wsgi.input"].read(int(length)))
        except Exception as error:
            with self.request_context(environ):
                return self.make_response(self.handle_user_exception(error))(environ, start_response)
        start_response("200 OK", [("Content-Type", JSON), ("Content-Length", str(len(body)))])
        return [body]

    def _posted(self, post: Post, **_: str) -> Response:
        """The long way to the same answer."""
        if not self._posts.taken_by(request.environ):
            raise Refusal(HTTPStatus.NOT_FOUND)
        if request.mimetype != JSON:
            raise Refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        if request.content_length is None:
            raise Refusal(HTTPStatus.LENGTH_REQUIRED)
        return Response(post(request.get_data(cache=False)), content_type=JSON)


class Site:
    """The views that every service has, and what becomes of a request that cannot be answered."""

    def __init__(self, health: Health, metrics: serving.Page) -> None:
        self.health, self._metrics = health, metrics

    def error(self, status: HTTPStatus, message: str) -> Response:
        """A refusal in the form that the service's clients read; counted."""
        raise NotImplementedError

    def application(self, name: str, longest_body: int, posts: Posts) -> Application:
        """With /healthz, /livez, /readyz, /metrics and these refusals."""
        app = Application(name, longest_body, posts)
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
        told = error.description if isinstance(error, Refusal) else None
        made = self.error(status, told or f"{status.value} {status.phrase.lower()}: {request.path}")
        if isinstance(allow := getattr(error, "valid_methods", None), list):
            made.headers["Allow"] = ", ".join(sorted(allow))
        return made

    def _failed(self, error: Exception) -> Response:
        """A fault of ours: told in the log, not to the client."""
        log.error("a request failed", exc_info=error, extra=about(path=request.path))
        return self.error(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error")


def _shown(page: serving.Page) -> Response:
    asked = serving.Request(request.path, request.args.to_dict(flat=False), request.headers.get("Accept", ""))
    shown = page(asked) or serving.NOT_FOUND
    return Response(shown.body, shown.status, shown.headers, content_type=shown.content_type)


def _without_arguments(view: Callable[[], Response]) -> Callable[..., Response]:
    return lambda **_: view()
