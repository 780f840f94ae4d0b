"""Requests to the job controller: values, so that equal ones are handled once.

Most say no more than "look at this job"; those that may trigger a policy carry what happened, and to which pod."""

from __future__ import annotations

from dataclasses import dataclass

from extender.api.job import OUT_OF_SYNC_EVENT
from extender.api.meta import Key, Time


@dataclass(frozen=True, slots=True)
class Request:
    """`version` is that of the incarnation the event is about (None: of any), `since` when the event happened (0: now).

    `action` is set for commands and for actions whose delay has passed (`delayed`)."""

    job: Key
    event: str = OUT_OF_SYNC_EVENT
    action: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    version: int | None = None
    job_uid: str = ""
    group_uid: str = ""
    since: Time = 0.0
    delayed: bool = False


@dataclass(frozen=True, slots=True)
class Announce:
    """The group of the job waits, says its newest condition: tell people by an event."""

    job: Key
    message: str


@dataclass(frozen=True, slots=True)
class Settle:
    """The action has been carried out for the request: delayed ones of its class are pointless now."""

    job: Key
    request: Request
    action: str
