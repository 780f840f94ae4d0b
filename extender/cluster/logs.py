"""Logs: one line for each event, as text or JSON, UTC to the millisecond, no secrets, no storms.

Modules log through the standard library and name things with `extra`:

    log.info("bound", extra=about(pod=key, node=name))         ts=... level=info msg=bound pod=ns/p node=n1
    log.log(V(4), "session", extra=about(session=number))      told with -v=4 and more, as klog's V(4)

structlog turns records into lines. What repeats faster than once a second after a burst is left out and counted."""

from __future__ import annotations

import logging
import re
import sys
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TextIO

import structlog

FORMATS = ("text", "json")
HIGHEST = 10  # klog's levels
BURST = 20  # lines of one key that may come at once
PER_SECOND = 1.0  # and then
REMEMBERED = 1024  # keys

_ABOUT = "about"  # attribute of a record
_SECRET = re.compile(r"token|password|passwd|secret|authorization|cookie|private|client.key|key.data", re.IGNORECASE)
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]+"
                     r"|-----BEGIN[^-]*PRIVATE KEY-----.*?(-----END[^-]*-----|$)", re.DOTALL)  # fmt: skip
_HIDDEN = "[hidden]"
_FIRST = ("ts", "level", "logger", "msg")
_QUIET = ("urllib3", "kubernetes", "asyncio", "gunicorn")  # they are told from -v=8 on

Event = MutableMapping[str, Any]


def V(level: int) -> int:
    """The standard library's number for klog's level: 20 (INFO) for 0 down to 10 (DEBUG) for 10."""
    return logging.INFO - min(max(level, 0), HIGHEST)


def about(**things: Any) -> dict[str, Mapping[str, Any]]:
    """For `extra`: what the line is about. Things without a value are left out."""
    return {_ABOUT: {name: thing for name, thing in things.items() if thing is not None}}


def configure(form: str = "text", verbosity: int = 0, stream: TextIO | None = None) -> logging.Handler:
    """Set the root logger up anew; what was there before goes. Returns the handler, mainly for tests."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(_formatter(form))
    handler.addFilter(Limit())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(V(verbosity))
    for name in _QUIET:
        logging.getLogger(name).setLevel(V(verbosity) if verbosity >= 8 else logging.WARNING)
    return handler


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled: float
    dropped: int = 0


class Limit(logging.Filter):
    """At most BURST lines of one key, then one a second; the key is the logger and the words before anything is filled in.

    The next line that passes says how many did not (`left_out`)."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: OrderedDict[tuple[str, int, str], _Bucket] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        key = (record.name, record.levelno, str(record.msg))
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(BURST, record.created)
        self._buckets.move_to_end(key)
        while len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        bucket.tokens = min(BURST, bucket.tokens + max(record.created - bucket.filled, 0.0) * PER_SECOND)
        bucket.filled = record.created
        if bucket.tokens < 1:
            bucket.dropped += 1
            return False
        bucket.tokens -= 1
        if bucket.dropped:
            setattr(record, _ABOUT, {**getattr(record, _ABOUT, {}), "left_out": bucket.dropped})
            bucket.dropped = 0
        return True


def _formatter(form: str) -> logging.Formatter:
    render: Any = structlog.processors.JSONRenderer(default=str) if form == "json" else _line
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[_from_record],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _hide, render],
    )


def _from_record(_: Any, __: str, event: Event) -> Event:
    """The record of the standard library as an event with its keys in order."""
    record: logging.LogRecord = event["_record"]
    when = datetime.fromtimestamp(record.created, UTC)
    event.update(ts=when.strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03d}Z",
                 level="info" if record.levelno <= logging.INFO else record.levelname.lower(),
                 logger=record.name, msg=event.pop("event"))  # fmt: skip
    event.update({name: _plain(thing) for name, thing in getattr(record, _ABOUT, {}).items()})
    if record.exc_info:
        event["error"] = logging.Formatter().formatException(record.exc_info)
    event.pop("exc_info", None)
    return {**{name: event[name] for name in _FIRST}, **{name: event[name] for name in event if name not in _FIRST}}


def _plain(thing: Any) -> Any:
    if isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, (list, set)) or (isinstance(thing, tuple) and not hasattr(thing, "_fields")):
        return [_plain(each) for each in thing]
    if isinstance(thing, Mapping):
        return {str(name): _plain(each) for name, each in thing.items()}
    return str(thing)


def _hide(_: Any, __: str, event: Event) -> Event:
    """Neither values under telling names nor what looks like a credential in any text."""
    return {name: _hidden(name, value) for name, value in event.items()}


def _hidden(name: str, value: Any) -> Any:
    if name not in _FIRST and _SECRET.search(name):
        return _HIDDEN
    if isinstance(value, str):
        return _BEARER.sub(_HIDDEN, value)
    if isinstance(value, Mapping):
        return {key: _hidden(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_hidden("", each) for each in value]
    return value


def _line(_: Any, __: str, event: Event) -> str:
    """`2025-01-06T00:00:00.000Z info logger: message key=value`; whatever a value holds, it stays one line."""
    head = f"{event.pop('ts')} {event.pop('level'):<7} {event.pop('logger')}: {_one_line(str(event.pop('msg')))}"
    return " ".join([head, *(f"{name}={_quoted(value)}" for name, value in event.items())])


def _one_line(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r") if "\n" in text or "\r" in text else text


def _quoted(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text and not re.search(r"[\s\"=\x00-\x1f]", text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
