"""/healthz, /livez and /readyz as the API server has them, and /metrics.

    GET /readyz             ok                         or status 500 and every check with a mark
    GET /readyz?verbose     [+]ping ok ...             ?exclude=<check> leaves one out
    GET /readyz/<check>     ok                         of one check alone

A check answers why it is not well, None where it is. Alive means that a restart would not help; ready that work is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from extender.cluster.serving import NOT_FOUND, Answer, Page, Request

Check = Callable[[], str | None]


def _ping() -> str | None:
    return None


class Health:
    """What a process says about itself. Checks may be added at any time."""

    def __init__(self) -> None:
        self.alive: dict[str, Check] = {"ping": _ping}
        self.ready: dict[str, Check] = {"ping": _ping}

    def pages(self) -> Mapping[str, Page]:
        found: dict[str, Page] = {}
        for path, checks in (("/healthz", self.alive), ("/livez", self.alive), ("/readyz", self.ready)):
            found[path] = found[f"{path}/"] = partial(_answer, path, checks)
        return found


def _answer(path: str, checks: Mapping[str, Check], request: Request) -> Answer | None:
    below = request.path[len(path) :].strip("/")
    if below:
        return _one(checks[below]) if below in checks else NOT_FOUND
    left_out = {name for name in request.query.get("exclude", ()) if name}
    marks, failed = [], []
    for name, check in list(checks.items()):
        why = None if name in left_out else _asked(check)
        if name in left_out:
            marks.append(f"[+]{name} excluded: ok")
        elif why is None:
            marks.append(f"[+]{name} ok")
        else:
            marks.append(f"[-]{name} failed: {why}")
            failed.append(name)
    marks += [f'warn: some health checks cannot be excluded: no matches for "{name}"' for name in sorted(left_out - {*checks})]
    word = path.strip("/")
    if failed:
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "\n".join([*marks, f"{word} check failed", ""]))
    if "verbose" in request.query:
        return Answer(HTTPStatus.OK, "\n".join([*marks, f"{word} check passed", ""]))
    return Answer(HTTPStatus.OK, "ok")


def _one(check: Check) -> Answer:
    why = _asked(check)
    if why is None:
        return Answer(HTTPStatus.OK, "ok")
    return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {why}\n")


def _asked(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:  # a check that cannot be made is a check that fails
        return f"{type(error).__name__}: {error}"


def metrics_page(registry: CollectorRegistry) -> Page:
    """Text, or OpenMetrics for those who accept it."""

    def page(request: Request) -> Answer:
        encode, content_type = choose_encoder(request.accept)
        return Answer(HTTPStatus.OK, encode(registry), content_type)

    return page
