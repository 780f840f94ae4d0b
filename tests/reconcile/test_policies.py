"""From what happened to what is to be done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.job.delayed import DelayedActions
from controller.job.policies import Choice, choose
from controller.job.requests import Request
from extender.api.job import Job
from extender.api.views import view
from tests.reconcile.builders import UID, job, key, task

FAILED = Request(key("j"), "PodFailed", task="w", pod="j-w-0", exit_code=3, version=0, job_uid=UID)

CASES = {
    "no policy": ([], [], FAILED, ("SyncJob", 0)),
    "the job's": ([], [{"event": "PodFailed", "action": "AbortJob"}], FAILED, ("AbortJob", 0)),
    "the task's goes before the job's": (
        [{"event": "PodFailed", "action": "RestartPod"}], [{"event": "PodFailed", "action": "AbortJob"}], FAILED,
        ("RestartPod", 0)),
    "one of several events": ([], [{"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}], FAILED, ("RestartJob", 0)),
    "any event": ([], [{"event": "*", "action": "RestartJob"}], FAILED, ("RestartJob", 0)),
    "the exit code": ([], [{"exitCode": 3, "action": "RestartTask"}], FAILED, ("RestartTask", 0)),
    "another exit code": ([], [{"exitCode": 137, "action": "RestartTask"}], FAILED, ("SyncJob", 0)),
    "after a delay": ([], [{"event": "PodFailed", "action": "RestartJob", "timeout": "1m30s"}], FAILED, ("RestartJob", 90)),
    "pending needs a timeout": (
        [], [{"event": "*", "action": "AbortJob"}], replace(FAILED, event="PodPending", exit_code=0), ("SyncJob", 0)),
    "pending with a timeout": (
        [], [{"event": "PodPending", "action": "AbortJob", "timeout": "5s"}], replace(FAILED, event="PodPending", exit_code=0),
        ("AbortJob", 5)),
    "running is never an incident": (
        [], [{"event": "*", "action": "AbortJob"}], replace(FAILED, event="PodRunning"), ("SyncJob", 0)),
    "a pod of a former incarnation": (
        [], [{"event": "PodFailed", "action": "AbortJob"}], replace(FAILED, version=-1), ("SyncJob", 0)),
    "a pod of a former job of the name": (
        [], [{"event": "PodFailed", "action": "AbortJob"}], replace(FAILED, job_uid="other"), ("SyncJob", 0)),
    "a command goes before everything": (
        [], [{"event": "*", "action": "RestartJob"}], replace(FAILED, action="AbortJob", version=-1), ("AbortJob", 0)),
}  # fmt: skip


@pytest.mark.parametrize(("of_task", "of_job", "request_", "want"), CASES.values(), ids=CASES)
def test_choice(of_task: list[object], of_job: list[object], request_: Request, want: tuple[str, float]) -> None:
    """The first policy that answers, those of the task before those of the job."""
    found = choose(view(Job, job(task(policies=of_task), policies=of_job)), request_)
    assert found == Choice(*want)


PENDING = Request(key("j"), "PodPending", task="w", pod="j-w-0", pod_uid="u1", version=0)


def test_a_delayed_action_is_set_once() -> None:
    """A second event of the pod does not start the time anew."""
    book = DelayedActions()
    book.add(PENDING, "AbortJob")
    assert book.add(PENDING, "AbortJob") == (None, [])


def test_another_action_replaces_the_first() -> None:
    """The timer of the first is stopped."""
    book = DelayedActions()
    first, _ = book.add(PENDING, "AbortJob")
    assert book.add(PENDING, "RestartJob")[1] == [first]


OVERTAKEN = {
    "a pending pod that runs": (PENDING, "u1", "PodRunning", True),
    "a pending pod that is evicted": (PENDING, "u1", "PodEvicted", True),
    "a namesake that runs": (PENDING, "u2", "PodRunning", False),
    "a failed pod whose successor runs": (replace(PENDING, event="PodFailed"), "u2", "PodRunning", True),
    "a failed pod that is evicted": (replace(PENDING, event="PodFailed"), "u1", "PodEvicted", False),
}


@pytest.mark.parametrize(("cause", "uid", "event", "want"), OVERTAKEN.values(), ids=OVERTAKEN)
def test_what_cancels_a_delayed_action(cause: Request, uid: str, event: str, want: bool) -> None:
    """Its reason has gone."""
    book = DelayedActions()
    book.add(cause, "RestartJob")
    assert bool(book.overtaken(key("j"), "j-w-0", uid, event)) is want


SETTLED = {
    "an action of the job settles those of the job": ("RestartJob", PENDING, "AbortJob", True),
    "an action of a pod leaves those of the job": ("RestartJob", PENDING, "RestartPod", False),
    "of the same pod": ("RestartPod", PENDING, "RestartPod", True),
    "of another pod": ("RestartPod", replace(PENDING, pod="j-w-1"), "RestartPod", False),
    "of the same task": ("RestartTask", replace(PENDING, pod="j-w-1"), "RestartTask", True),
    "of another task": ("RestartTask", replace(PENDING, task="ps"), "RestartTask", False),
    "synchronising settles nothing": ("RestartJob", PENDING, "SyncJob", False),
}


@pytest.mark.parametrize(("waiting", "executed_for", "executed", "want"), SETTLED.values(), ids=SETTLED)
def test_what_an_executed_action_settles(waiting: str, executed_for: Request, executed: str, want: bool) -> None:
    """Those of its class that wait for the same."""
    book = DelayedActions()
    book.add(PENDING, waiting)
    assert bool(book.settled(executed_for, executed)) is want
