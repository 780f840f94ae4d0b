"""Lifecycle policies: from what happened to what is to be done, and after what delay.

Source: volcano ed72c7c, pkg/controllers/job/job_controller_util.go, applyPolicies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.job.requests import Request
from extender.api import duration
from extender.api.job import (
    ANY_EVENT,
    COMMAND_ISSUED,
    OUT_OF_SYNC_EVENT,
    POD_PENDING,
    POD_RUNNING,
    SYNC_JOB,
    Job,
    LifecyclePolicy,
)


class Choice(NamedTuple):
    action: str
    delay: float = 0.0


SYNC = Choice(SYNC_JOB)


def choose(job: Job, request: Request) -> Choice:
    """The action a request asks for. Events of a former job of the name or of a former incarnation only synchronise."""
    if request.action:
        return Choice(request.action)
    if request.event in (OUT_OF_SYNC_EVENT, COMMAND_ISSUED, POD_RUNNING, ""):
        return SYNC
    if request.job_uid and request.job_uid != job.metadata.uid:
        return SYNC
    if request.version is not None and request.version < job.status.version:
        return SYNC
    for policy in _policies(job, request.task):
        if _matches(policy, request):
            return Choice(policy.action, duration.seconds(policy.timeout, "policies.timeout") if policy.timeout else 0.0)
    return SYNC


def _policies(job: Job, task: str) -> Iterator[LifecyclePolicy]:
    """Those of the task come first."""
    for spec in job.spec.tasks:
        if spec.name == task:
            yield from spec.policies or ()
    yield from job.spec.policies or ()


def _matches(policy: LifecyclePolicy, request: Request) -> bool:
    events = {*(policy.events or ()), *((policy.event,) if policy.event else ())}
    named = request.event in events or ANY_EVENT in events
    if named and (request.event != POD_PENDING or policy.timeout):
        return True
    return policy.exit_code is not None and policy.exit_code == request.exit_code
