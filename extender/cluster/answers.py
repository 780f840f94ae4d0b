"""What an API server answers when it says no: its Status object becomes an error of api/errors.py, with its own words."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import orjson

from extender.api.errors import (
    AlreadyExists,
    BadRequest,
    ClusterError,
    Conflict,
    Denied,
    Fault,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from extender.api.meta import Json

_BY_REASON: dict[str, type[ClusterError]] = {
    "AlreadyExists": AlreadyExists,
    "BadRequest": BadRequest,
    "Conflict": Conflict,
    "Expired": Gone,
    "Forbidden": Denied,
    "Gone": Gone,
    "NotFound": NotFound,
    "ServerTimeout": Unavailable,
    "ServiceUnavailable": Unavailable,
    "Timeout": Unavailable,
    "TooManyRequests": TooManyRequests,
}
_BY_STATUS: dict[int, type[ClusterError]] = {
    400: BadRequest, 403: Denied, 404: NotFound, 409: Conflict, 410: Gone, 429: TooManyRequests,
    502: Unavailable, 503: Unavailable, 504: Unavailable,
}  # fmt: skip
_SHOWN = 500  # characters of an answer that is no Status


def error_of(status: int, body: bytes, headers: Mapping[str, str]) -> ClusterError:
    """The error that an answer with this HTTP status stands for, with the wait that it asks for."""
    answer = _decoded(body)
    if answer.get("kind") != "Status":
        said = body[:_SHOWN].decode("utf-8", "replace").strip()
        answer = {"message": "the server could not find the requested resource" if status == 404 else said}
    error = error_of_status(answer, status)
    error.retry_after = _retry_after(answer, headers)
    return error


def error_of_status(answer: Json, status: int = 0) -> ClusterError:
    """The error that a Status object stands for; `status` where it does not say itself."""
    code = int(answer.get("code") or status or 500)
    reason = str(answer.get("reason") or "")
    message = str(answer.get("message") or "") or f"the API server answered {code} {reason}".rstrip()
    if reason == "Invalid" or (code == 422 and not reason):
        return Invalid(message, _faults(answer))
    if message.startswith("admission webhook ") and " denied the request" in message:
        return Denied(message)
    kind = _BY_REASON.get(reason) or _BY_STATUS.get(code, ClusterError)
    error = kind(message)
    if kind is ClusterError or kind.status != code:
        error.status = code
    if kind is ClusterError and reason:
        error.reason = reason
    return error


def _retry_after(answer: Json, headers: Mapping[str, str]) -> float | None:
    with contextlib.suppress(KeyError, ValueError):
        return max(float(headers["Retry-After"]), 0.0)
    wanted = (answer.get("details") or {}).get("retryAfterSeconds")
    return float(wanted) if wanted else None


def _faults(answer: Json) -> list[Fault]:
    causes = (answer.get("details") or {}).get("causes") or ()
    return [Fault(str(cause.get("field") or ""), str(cause.get("message") or cause.get("reason") or "")) for cause in causes]


def _decoded(body: bytes) -> Json:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return answer if isinstance(answer, dict) else {}
