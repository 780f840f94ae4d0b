"""Logs: one line an event, in either form, with times to the millisecond, without secrets and without storms."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.api.meta import Key
from extender.cluster.logs import BURST, FORMATS, Limit, V, about, configure

Lines = Callable[[], list[str]]
WHEN = 1_736_121_600.25  # 2025-01-06T00:00:00.250Z


@pytest.fixture
def start() -> Iterator[Callable[..., Lines]]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def begin(form: str = "text", verbosity: int = 0) -> Lines:
        stream = io.StringIO()
        configure(form, verbosity, stream)
        return lambda: stream.getvalue().splitlines()

    yield begin
    root.handlers[:] = handlers
    root.setLevel(level)


def say(msg: str = "bound", level: int = logging.INFO, when: float = WHEN, **things: Any) -> None:
    record = logging.LogRecord("extender.loop", level, "", 0, msg, None, None)
    record.created = when
    record.__dict__.update(about(**things))
    logging.getLogger("extender.loop").handle(record)


def test_text(start: Callable[..., Lines]) -> None:
    lines = start()
    say(pod=Key("ns", "p"), node="n1", tries=2)
    assert lines() == ["2025-01-06T00:00:00.250Z info    extender.loop: bound pod=ns/p node=n1 tries=2"]


def test_json(start: Callable[..., Lines]) -> None:
    lines = start("json")
    say(pod=Key("ns", "p"), nodes=["n1", "n2"], fits=True, share=0.5)
    assert json.loads(lines()[0]) == {
        "ts": "2025-01-06T00:00:00.250Z", "level": "info", "logger": "extender.loop", "msg": "bound",
        "pod": "ns/p", "nodes": ["n1", "n2"], "fits": True, "share": 0.5,
    }  # fmt: skip


def test_what_has_no_value_is_left_out(start: Callable[..., Lines]) -> None:
    lines = start()
    say(pod=None, node="n1")
    assert lines()[0].endswith(": bound node=n1")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", ["two\nlines", 'a "quoted" word', "tab\there", "a\r\nb", ""])
def test_whatever_it_holds_an_event_is_one_line(start: Callable[..., Lines], form: str, text: str) -> None:
    lines = start(form)
    say(text, message=text)
    assert len(lines()) == 1


@pytest.mark.parametrize("form", FORMATS)
def test_an_exception_is_one_line_too(start: Callable[..., Lines], form: str) -> None:
    lines = start(form)
    try:
        raise ValueError("no such thing")
    except ValueError:
        logging.getLogger("extender.loop").exception("failed")
    assert (len(lines()), "ValueError: no such thing" in lines()[0]) == (1, True)


VERBOSITY = {
    "a message is told": (0, logging.INFO, True),
    "V(3) is not told with 2": (2, V(3), False),
    "V(3) is told with 3": (3, V(3), True),
    "a warning is always told": (0, logging.WARNING, True),
    "debug is V(10)": (9, logging.DEBUG, False),
    "all is told with 10": (10, logging.DEBUG, True),
}


@pytest.mark.parametrize(("verbosity", "level", "told"), VERBOSITY.values(), ids=VERBOSITY)
def test_verbosity(start: Callable[..., Lines], verbosity: int, level: int, told: bool) -> None:
    """As klog's levels."""
    lines = start(verbosity=verbosity)
    logging.getLogger("extender.loop").log(level, "session")
    assert bool(lines()) == told


@pytest.mark.parametrize("name", ["urllib3", "kubernetes.client.rest"])
@pytest.mark.parametrize(("verbosity", "told"), [(4, False), (8, False), (10, True)])
def test_libraries_are_quiet(start: Callable[..., Lines], name: str, verbosity: int, told: bool) -> None:
    lines = start(verbosity=verbosity)
    logging.getLogger(name).debug("a connection")
    assert bool(lines()) == told


SECRETS = {
    "by its name": {"token": "abc"},
    "by its name, inside": {"given": {"client-key": "abc"}},
    "a header": {"error": "request with Authorization: Bearer abcdefghijkl failed"},
    "a service account's token": {"error": "bad eyJhbGciOiJSUzI1NiJ9.abcdefghijkl.zzz given"},
    "a key": {"error": "-----BEGIN EC PRIVATE KEY-----\nabcdefghijkl\n-----END EC PRIVATE KEY-----"},
    "in a list": {"headers": ["Basic abcdefghijkl"]},
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("things", SECRETS.values(), ids=SECRETS)
def test_secrets_are_hidden(start: Callable[..., Lines], form: str, things: dict[str, Any]) -> None:
    lines = start(form)
    say(**things)
    assert ("abc" in lines()[0], "[hidden]" in lines()[0]) == (False, True)


def test_secrets_are_hidden_in_messages(start: Callable[..., Lines]) -> None:
    lines = start()
    logging.getLogger("x").warning("with %s", "Bearer abcdefghijkl")
    assert "abc" not in lines()[0]


def test_a_storm_becomes_a_breeze(start: Callable[..., Lines]) -> None:
    """A burst, then one a second; the next line that passes counts those that did not."""
    lines = start()
    for _ in range(BURST + 10):
        say("the server is down")
    say("the server is down", when=WHEN + 1.0)
    assert (len(lines()), lines()[-1].endswith("left_out=10")) == (BURST + 1, True)


def test_other_words_have_a_limit_of_their_own(start: Callable[..., Lines]) -> None:
    lines = start()
    for _ in range(BURST + 10):
        say("the server is down")
    say("the server is back")
    assert lines()[-1].endswith("the server is back")


def test_the_limit_goes_by_the_words_before_they_are_filled_in() -> None:
    limit = Limit()
    records = [logging.LogRecord("x", logging.INFO, "", 0, "pod %d", (i,), None) for i in range(BURST + 5)]
    for record in records:
        record.created = WHEN
    assert sum(limit.filter(record) for record in records) == BURST


def test_the_limit_remembers_a_bounded_number_of_keys() -> None:
    limit = Limit()
    for i in range(5000):
        limit.filter(logging.LogRecord("x", logging.INFO, "", 0, f"message {i}", None, None))
    assert len(limit._buckets) <= 1024
