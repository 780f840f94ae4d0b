"""How fast requests go out, how long a failed one waits, and which error an answer stands for. Nothing here takes time."""

from __future__ import annotations

import random
from typing import Any

import orjson
import pytest

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
from extender.cluster.answers import error_of
from extender.cluster.clock import VirtualClock
from extender.cluster.retry import Backoff, TokenBucket

# --- how fast -----------------------------------------------------------------------------------------------------------


def seconds_for(requests: int, rate: float, burst: int) -> float:
    clock = VirtualClock(1000.0)
    bucket = TokenBucket(rate, burst, clock)
    for _ in range(requests):
        bucket.take()
    return clock.now() - 1000.0


RATES = {
    "a burst costs no time": (10, 5.0, 10, 0.0),
    "then they go at the rate": (20, 5.0, 10, 2.0),
    "a burst of one": (3, 10.0, 1, 0.2),
    "no rate, no limit": (1000, 0.0, 1, 0.0),
}


@pytest.mark.parametrize(("requests", "rate", "burst", "want"), RATES.values(), ids=RATES)
def test_the_rate(requests: int, rate: float, burst: int, want: float) -> None:
    assert seconds_for(requests, rate, burst) == pytest.approx(want)


def test_a_pause_fills_the_bucket_again_but_not_beyond_the_burst() -> None:
    clock = VirtualClock(0.0)
    bucket = TokenBucket(10.0, 5, clock)
    for _ in range(5):
        bucket.take()
    clock.sleep(100)
    for _ in range(6):
        bucket.take()
    assert clock.now() == pytest.approx(100.1)


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(first=1.0, longest=10.0, jitter=0.0)
    assert [backoff.wait(attempt, random.Random(0)) for attempt in (0, 1, 2, 3, 4, 5000)] == [1, 2, 4, 8, 10, 10]


def test_they_differ_by_chance_within_the_jitter() -> None:
    rng = random.Random(1)
    waits = {Backoff(first=8.0, jitter=0.5).wait(0, rng) for _ in range(100)}
    assert (len(waits) > 90, all(4.0 <= wait <= 8.0 for wait in waits)) == (True, True)


# --- what an answer means -----------------------------------------------------------------------------------------------


def status(code: int, reason: str, message: str = "words", **details: Any) -> bytes:
    return orjson.dumps({"kind": "Status", "code": code, "reason": reason, "message": message, "details": details})


ANSWERS: dict[str, tuple[int, bytes, type[ClusterError]]] = {
    "not found": (404, status(404, "NotFound"), NotFound),
    "conflict": (409, status(409, "Conflict"), Conflict),
    "already there": (409, status(409, "AlreadyExists"), AlreadyExists),
    "too old": (410, status(410, "Expired"), Gone),
    "gone": (410, status(410, "Gone"), Gone),
    "forbidden": (403, status(403, "Forbidden"), Denied),
    "invalid": (422, status(422, "Invalid"), Invalid),
    "unreadable": (400, status(400, "BadRequest"), BadRequest),
    "too many": (429, status(429, "TooManyRequests"), TooManyRequests),
    "no leader": (503, status(503, "ServiceUnavailable"), Unavailable),
    "timeout": (504, status(504, "Timeout"), Unavailable),
    "a webhook says no in its own code": (400, status(400, "", 'admission webhook "a.b" denied the request: no'), Denied),
    "a webhook says no in a code that means something else": (
        429, status(429, "", 'admission webhook "a.b" denied the request: no'), Denied
    ),
    "a gateway": (502, b"<html>bad gateway</html>", Unavailable),
    "something else": (500, status(500, "InternalError"), ClusterError),
}  # fmt: skip


@pytest.mark.parametrize(("code", "body", "want"), ANSWERS.values(), ids=ANSWERS)
def test_the_class_of_an_answer(code: int, body: bytes, want: type[ClusterError]) -> None:
    assert type(error_of(code, body, {})) is want


def test_an_error_has_the_servers_words_and_status() -> None:
    error = error_of(401, status(401, "Unauthorized", "who are you?"), {})
    assert (str(error), error.status, error.reason) == ("who are you?", 401, "Unauthorized")


def test_what_is_no_status_is_quoted() -> None:
    assert str(error_of(502, b"<html>bad gateway</html>", {})) == "<html>bad gateway</html>"


def test_an_invalid_object_has_its_faults() -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "too small", "field": "spec.a"}]
    error = error_of(422, status(422, "Invalid", causes=causes), {})
    assert isinstance(error, Invalid)
    assert error.faults == (Fault("spec.a", "too small"),)


WAITS: dict[str, tuple[dict[str, str], dict[str, Any], float | None]] = {
    "the header": ({"Retry-After": "7"}, {}, 7.0),
    "the status": ({}, {"retryAfterSeconds": 3}, 3.0),
    "the header before the status": ({"Retry-After": "7"}, {"retryAfterSeconds": 3}, 7.0),
    "a date is passed over": ({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
    "nothing": ({}, {}, None),
}


@pytest.mark.parametrize(("headers", "details", "want"), WAITS.values(), ids=WAITS)
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], details: dict[str, Any], want: float | None) -> None:
    assert error_of(429, status(429, "TooManyRequests", **details), headers).retry_after == want
